//! The flood budget: a limit on the useless work that a client can cause.
//!
//! Every known flood attack uses frames that cost the sender almost nothing. In some floods the
//! client cancels requests at once (CVE-2023-44487), or makes the server cancel them
//! (CVE-2025-8671). Other floods use PING, SETTINGS, priorities, empty frames, endless heads, or
//! windows that open byte by byte (CVE-2019-9511 to 9518, CVE-2024-27316). So each such frame costs
//! the client points. Responses and sent bytes earn points. If a frame costs more points than the
//! client has left, the connection ends with ENHANCE_YOUR_CALM. No clock is used: a normal client
//! earns more than it spends, however fast it is.

use http2::ErrorCode;

/// The points of a client at the start, which are also its maximum.
const POINTS_MAX: i32 = 1000;

/// The price of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FrameCost {
    /// A frame that normal clients also send: it opens a window, sets a priority, or is unknown.
    Look = 1,
    /// A frame with little or no content, or a head in several frames.
    Nothing = 5,
    /// A frame that needs a response.
    Answer = 10,
    /// A stream that one side ends before its response.
    Reset = 20,
}

/// Points that a response earns: fewer than a reset costs.
const ANSWER: i32 = 5;
/// The number of sent body bytes that earn one point.
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

    /// Takes the price of a frame from the budget. Errors: the budget is used up.
    pub(super) fn pay(&mut self, price: FrameCost) -> Result<(), ErrorCode> {
        self.points -= price as i32;
        if self.points < 0 { Err(ErrorCode::EnhanceYourCalm) } else { Ok(()) }
    }

    /// Adds the points for a response to a request.
    pub(super) fn answered(&mut self) {
        self.earn(ANSWER);
    }

    /// Adds the points for `bytes` sent bytes of a body.
    pub(super) fn sent(&mut self, bytes: u32) {
        self.bytes += bytes;
        self.earn((self.bytes / BYTES_PER_POINT) as i32);
        self.bytes %= BYTES_PER_POINT;
    }

    fn earn(&mut self, points: i32) {
        self.points = POINTS_MAX.min(self.points + points);
    }
}
