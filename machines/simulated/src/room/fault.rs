//! The kinds of faults that a room may have. Each is enabled or not. `docs/faults.md` describes how
//! the server must react to each.

use std::fmt;

/// A kind of fault that a room may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Fault {
    /// Frames get lost.
    Loss,
    /// Frames arrive twice.
    Duplication,
    /// Frames overtake each other.
    Reordering,
    /// Frames take a long time.
    Delay,
    /// Bits of frames flip. Checksums show the damage.
    Corruption,
    /// Frames arrive that have correct checksums and wrong headers.
    Forgery,
    /// Hosts lose their cable for a while.
    Partition,
    /// The card's rings are short, and it sends slowly.
    ShortRings,
    /// Clients disconnect abruptly.
    Leavers,
    /// Some turns take a long time.
    Stalls,
    /// The disk answers late.
    SlowDisk,
    /// The disk does not answer for a while.
    DeafDisk,
    /// The disk fails writes for a while.
    FailedWrites,
    /// The disk fails flushes for a while.
    FailedFlushes,
    /// The disk is gone for a while.
    GoneDisk,
    /// Some reads fail.
    ReadErrors,
    /// Sectors become unreadable.
    Unreadable,
    /// Bits of sectors flip.
    Rot,
    /// Writes do not reach their sectors, but are reported as done.
    LostWrites,
    /// Reads and writes reach the wrong sectors.
    Misdirection,
    /// The disk is small.
    SmallDisk,
    /// Machines have few connections, buffers and transactions.
    TightPools,
    /// The power is cut.
    Cuts,
    /// The power is cut again while the machine recovers.
    CutsInARow,
    /// The time of day jumps.
    ClockJumps,
    /// The machine's clock is fast or slow.
    Drift,
    /// The MTU of a path shrinks, and a router reports it.
    NarrowPaths,
    /// The MTU of a path shrinks, and no router reports it.
    BlackHoles,
    /// Hosts disappear for ever.
    Vanishing,
    /// Rare events happen often: see `buggify!` in `engine/sometimes`.
    Mishaps,
    /// Only some of the cores have a queue pair of the card.
    FewQueues,
    /// Frames arrive in the wrong core's queue.
    Strays,
    /// The card changes how it spreads flows over its queues.
    Spreading,
    /// The cores' clocks disagree.
    CoreClocks,
    /// TLS records change before TCP computes the checksum, so that no checksum shows the damage.
    DamagedRecords,
    /// Clients stop in the middle of a handshake, and stay connected.
    HalfHandshakes,
    /// Crowds of clients make the machine keep as much memory as they can, and stay connected.
    Hoarders,
}

/// All faults, in the order of their random draws. New ones are added at the end.
pub const FAULTS: [Fault; 37] = [
    Fault::Loss,
    Fault::Duplication,
    Fault::Reordering,
    Fault::Delay,
    Fault::Corruption,
    Fault::Forgery,
    Fault::Partition,
    Fault::ShortRings,
    Fault::Leavers,
    Fault::Stalls,
    Fault::SlowDisk,
    Fault::DeafDisk,
    Fault::FailedWrites,
    Fault::FailedFlushes,
    Fault::GoneDisk,
    Fault::ReadErrors,
    Fault::Unreadable,
    Fault::Rot,
    Fault::LostWrites,
    Fault::Misdirection,
    Fault::SmallDisk,
    Fault::TightPools,
    Fault::Cuts,
    Fault::CutsInARow,
    Fault::ClockJumps,
    Fault::Drift,
    Fault::NarrowPaths,
    Fault::BlackHoles,
    Fault::Vanishing,
    Fault::Mishaps,
    Fault::FewQueues,
    Fault::Strays,
    Fault::Spreading,
    Fault::CoreClocks,
    Fault::DamagedRecords,
    Fault::HalfHandshakes,
    Fault::Hoarders,
];

/// The faults of machines with several cores.
pub(super) const FAULTS_OF_CORES: [Fault; 4] =
    [Fault::FewQueues, Fault::Strays, Fault::Spreading, Fault::CoreClocks];

impl Fault {
    /// The fault with this name, in the form that [`fmt::Display`] writes.
    pub fn named(name: &str) -> Option<Fault> {
        FAULTS.into_iter().find(|fault| fault.to_string() == name)
    }
}

/// The name in lower case with hyphens: `CutsInARow` is written `cuts-in-a-row`.
impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{self:?}");
        for (at, character) in name.char_indices() {
            if at > 0 && character.is_ascii_uppercase() {
                out.write_str("-")?;
            }
            write!(out, "{}", character.to_ascii_lowercase())?;
        }
        Ok(())
    }
}

/// A set of faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults(u64);

impl Faults {
    /// Returns the set with `fault` added.
    #[must_use]
    pub fn with(self, fault: Fault) -> Faults {
        Faults(self.0 | 1 << fault as u64)
    }

    /// Returns the set with `fault` removed.
    #[must_use]
    pub fn without(self, fault: Fault) -> Faults {
        Faults(self.0 & !(1 << fault as u64))
    }

    /// Whether `fault` is in the set.
    pub fn contain(self, fault: Fault) -> bool {
        self.0 & 1 << fault as u64 != 0
    }
}
