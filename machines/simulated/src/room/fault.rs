//! The kinds of trouble that a room may have, each there or not: see `docs/faults.md` for what must come of them.

use std::fmt;

/// A kind of trouble that a room may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Fault {
    /// Frames get lost.
    Loss,
    /// Frames come twice.
    Duplication,
    /// Frames overtake each other.
    Reordering,
    /// Frames take long.
    Delay,
    /// Bits of frames change, so that a checksum says so.
    Corruption,
    /// Frames come whose checksums are right and whose headers are not.
    Forgery,
    /// Hosts lose their cable for a while.
    Partition,
    /// The card's rings are short, and it sends slowly.
    ShortRings,
    /// Clients leave without a word.
    Leavers,
    /// Turns take long now and then.
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
    /// The disk fails reads now and then.
    ReadErrors,
    /// Sectors cannot be read any more.
    Unreadable,
    /// Bits of sectors turn over.
    Rot,
    /// Writes do not reach their sectors, and are reported done.
    LostWrites,
    /// Reads and writes reach the wrong sectors.
    Misdirection,
    /// The disk is small.
    SmallDisk,
    /// There are few connections, buffers and transactions.
    TightPools,
    /// The power is cut.
    Cuts,
    /// The power is cut again while the machine recovers.
    CutsInARow,
    /// The time of day jumps.
    ClockJumps,
    /// The machine's clock goes fast or slow.
    Drift,
    /// A path carries less than before, and a router says so.
    NarrowPaths,
    /// A path carries less than before, and nobody says so.
    BlackHoles,
    /// Hosts are gone for good.
    Vanishing,
    /// Rare things happen often: see `buggify!` in `engine/sometimes`.
    Mishaps,
    /// Of several cores not each has a queue of the card's.
    FewQueues,
    /// Frames come into the wrong core's queue.
    Strays,
    /// The card spreads flows over its queues in another way from some moment on.
    Spreading,
    /// The cores' clocks disagree.
    CoreClocks,
    /// Records of TLS change before TCP has them, so that no checksum of its says so.
    DamagedRecords,
    /// Clients stop in the middle of a handshake, and stay.
    HalfHandshakes,
    /// Crowds of clients make the machine keep what they can, and stay.
    Hoarders,
}

/// All of them, in the order in which the dice are asked for them: new ones go to the end.
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

/// Those of machines with several cores.
pub(super) const FAULTS_OF_CORES: [Fault; 4] =
    [Fault::FewQueues, Fault::Strays, Fault::Spreading, Fault::CoreClocks];

impl Fault {
    /// The fault of this name, as [`fmt::Display`] writes it.
    pub fn named(name: &str) -> Option<Fault> {
        FAULTS.into_iter().find(|fault| fault.to_string() == name)
    }
}

/// `CutsInARow` is written `cuts-in-a-row`.
impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{self:?}");
        for (at, letter) in name.char_indices() {
            if at > 0 && letter.is_ascii_uppercase() {
                out.write_str("-")?;
            }
            write!(out, "{}", letter.to_ascii_lowercase())?;
        }
        Ok(())
    }
}

/// A set of faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults(u64);

impl Faults {
    /// These and `fault`.
    #[must_use]
    pub fn with(self, fault: Fault) -> Faults {
        Faults(self.0 | 1 << fault as u64)
    }

    /// These without `fault`.
    #[must_use]
    pub fn without(self, fault: Fault) -> Faults {
        Faults(self.0 & !(1 << fault as u64))
    }

    /// Whether `fault` is one of them.
    pub fn contain(self, fault: Fault) -> bool {
        self.0 & 1 << fault as u64 != 0
    }
}
