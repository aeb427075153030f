//! The flood budget: a limit on work that a client causes without any use to itself.
//!
//! Every known flood uses frames that cost the sender next to nothing. Some floods cancel requests
//! at once (CVE-2023-44487), or make the server cancel them (CVE-2025-8671). Others use PING,
//! SETTINGS, priorities, empty frames, endless heads, or windows that open byte by byte
//! (CVE-2019-9511 to 9518, CVE-2024-27316). So each such frame has a price. Responses and sent
//! bytes earn points back. A client with no points left gets ENHANCE_YOUR_CALM. No clock is used: a
//! normal client earns more than it spends, however fast it is.

use http2::ErrorCode;

/// The points of a client at first, and at most.
const POINTS_MAX: i32 = 1000;

/// The price of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FrameCost {
    /// A frame that is often legitimate: it opens a window, sets a priority, or is unknown.
    Look = 1,
    /// A frame with little or no content, or a head in several frames.
    Nothing = 5,
    /// A frame that needs a response.
    Answer = 10,
    /// A stream that ends before its response, no matter which side ends it.
    Reset = 20,
}

/// Points for a response to a request: less than the price of a reset.
const ANSWER: i32 = 5;
/// This many sent bytes of bodies earn one point.
const BYTES_PER_POINT: u32 = 1024;

/// The budget of one client.
#[derive(Debug)]
pub(super) struct FloodBudget {
    points: i32,
    bytes: u32,
}

impl FloodBudget {
    pub(super) fn new() -> FloodBudget {
        FloodBudget { points: POINTS_MAX, bytes: 0 }
    }

    /// Errors: the budget is used up.
    pub(super) fn pay(&mut self, price: FrameCost) -> Result<(), ErrorCode> {
        self.points -= price as i32;
        if self.points < 0 { Err(ErrorCode::EnhanceYourCalm) } else { Ok(()) }
    }

    /// A request was answered.
    pub(super) fn answered(&mut self) {
        self.earn(ANSWER);
    }

    /// This many bytes of a body were sent.
    pub(super) fn sent(&mut self, bytes: u32) {
        self.bytes += bytes;
        self.earn((self.bytes / BYTES_PER_POINT) as i32);
        self.bytes %= BYTES_PER_POINT;
    }

    fn earn(&mut self, points: i32) {
        self.points = POINTS_MAX.min(self.points + points);
    }
}
