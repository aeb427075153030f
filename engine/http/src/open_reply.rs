//! Replies that stay open: their pace, and how they end.

use machine::Micros;

/// What makes a reply one that stays open: its body is as long as the program goes on to say something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Open {
    /// By which the program names it.
    pub number: u64,
    /// Who says when there is more.
    pub pace: Pace,
}

/// Who says when there is more of a reply that stays open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// The program, when it has something to say. Who does not take that in time has heard enough.
    Program {
        /// How long nothing may be said.
        silence: Micros,
        /// What is said then, so that it shows whether anybody is still there.
        sign_of_life: &'static [u8],
    },
    /// The client, by taking what was said: then the program is asked for more, by [`crate::Actions::wanted`], and says as much as it likes to hold.
    Client {
        /// Bytes of the whole body, if the program knows how many there will be.
        length: Option<u64>,
    },
}

/// How a reply ends that stayed open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// All was said.
    Whole,
    /// There is more that cannot be said. The client is to see that, as far as its protocol can show it.
    Cut,
}

impl Open {
    /// Whether the client sets the pace.
    pub(crate) fn is_paced_by_client(&self) -> bool {
        matches!(self.pace, Pace::Client { .. })
    }
}
