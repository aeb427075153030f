//! What a client may cost us that brings it nothing.
//!
//! Every known flood is made of frames that cost their sender next to nothing: requests that are taken back at once (CVE-2023-44487), or made so that we take them back
//! (CVE-2025-8671); PING, SETTINGS, priorities, empty frames, parts of a head without end, windows that open byte by byte (CVE-2019-9511 to 9518, CVE-2024-27316). So each of these
//! has its price, answers that are given and bytes that are taken earn some of it back, and who has nothing left is told to calm down. No clock is asked: who does what clients do
//! earns more than he spends, however fast he is.

use http2::ErrorCode;

/// What a client has at first, and at most.
const POINTS_MAX: i32 = 1000;

/// What it costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Price {
    /// A frame that has to be looked at, and may well belong: a window that is opened, a priority, something unknown.
    Look = 1,
    /// A frame with nothing in it, or next to nothing; one more frame for a head.
    Nothing = 5,
    /// A frame that wants an answer.
    Answer = 10,
    /// A stream that ends before its answer is given, whoever ends it.
    Reset = 20,
}

/// What an answer to a request earns: less than it costs to take one back.
const ANSWER: i32 = 5;
/// What bytes of bodies that were sent earn: one for so many.
const BYTES_PER_POINT: u32 = 1024;

/// What a client has left.
#[derive(Debug)]
pub(super) struct Calm {
    points: i32,
    bytes: u32,
}

impl Calm {
    pub(super) fn new() -> Calm {
        Calm { points: POINTS_MAX, bytes: 0 }
    }

    /// Errors: it has nothing left.
    pub(super) fn pay(&mut self, price: Price) -> Result<(), ErrorCode> {
        self.points -= price as i32;
        if self.points < 0 { Err(ErrorCode::EnhanceYourCalm) } else { Ok(()) }
    }

    /// A request was answered.
    pub(super) fn answered(&mut self) {
        self.earn(ANSWER);
    }

    /// So many bytes of a body were sent.
    pub(super) fn sent(&mut self, bytes: u32) {
        self.bytes += bytes;
        self.earn((self.bytes / BYTES_PER_POINT) as i32);
        self.bytes %= BYTES_PER_POINT;
    }

    fn earn(&mut self, points: i32) {
        self.points = POINTS_MAX.min(self.points + points);
    }
}
