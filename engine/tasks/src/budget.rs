//! A budget: how much one phase of a turn may do, so that no phase starves the others.

/// Work that may still be done in this phase, in units of the phase's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    left: u32,
}

impl Budget {
    /// A budget of `units`.
    pub const fn new(units: u32) -> Budget {
        Budget { left: units }
    }

    /// Takes one unit; false when there is none left.
    pub fn take(&mut self) -> bool {
        let available = self.left > 0;
        self.left = self.left.saturating_sub(1);
        available
    }

    /// Whether it is used up: what is left to do waits for the next turn.
    pub const fn is_spent(self) -> bool {
        self.left == 0
    }
}
