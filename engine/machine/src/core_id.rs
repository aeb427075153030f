//! The cores of a machine. Each core has its own engine.

use core::fmt;

/// The number of a core. The numbers begin at 0 and have no gap. Core 0 starts the machine, owns
/// its disk, and gets the request to stop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CoreId(pub u8);

impl CoreId {
    /// The first core, which every machine has.
    pub const FIRST: CoreId = CoreId(0);

    /// The index of this core in a list with one entry for each core.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CoreId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "core {}", self.0)
    }
}
