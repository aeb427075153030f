//! A budget limits the work of one phase of a turn, so that no phase starves the others.

/// Work that may still be done in this phase, in units of that phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    left: u32,
}

impl Budget {
    /// A budget of `units`.
    pub const fn new(units: u32) -> Budget {
        Budget { left: units }
    }

    /// Takes one unit. Returns false if none is left.
    pub fn take(&mut self) -> bool {
        let available = self.left > 0;
        self.left = self.left.saturating_sub(1);
        available
    }

    /// Whether the budget is used up. The remaining work waits for the next turn.
    pub const fn is_spent(self) -> bool {
        self.left == 0
    }
}
