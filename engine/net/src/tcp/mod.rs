//! TCP (RFC 9293): from segments to ordered bytes and back, as a pure function of (connection, now,
//! segment) to actions.
//!
//! This module knows no addresses, ports, frames or clocks. The caller finds the connection of a
//! segment, passes the segment as a [`SegmentRepr`], and handles the returned [`Actions`]. Once a
//! turn, or when [`Tcb::wants_output`] returns true, the caller calls [`Tcb::output`]. So an
//! acknowledgment is sent together with the reply. A test needs only two variables and a clock of
//! its own to connect two connections.
//!
//! The life of a connection, from the caller's side. One flow table maps addresses and ports to one
//! of the three tables. A `Tcb` has 128 bytes.
//! ```text
//!               SYN               completing ACK       ended(): TimeWait
//!   (listener) ─────> HalfOpenTable ────────────> Tcb ──────────────────> TimeWaitTable ──> (gone)
//!       │                                         ^ ^ │ ended(): Gone         │ SYN: NewConnection
//!       └─ full: Cookies, without an entry ───────┘ │ └─────────> (gone)      └──> as (listener)
//!                               Tcb::connect ───────┘
//! ```
//!
//! - For a segment without a connection, the caller sends [`reset_for`], at a limited rate.
//! - After an event on a `Tcb`, the caller handles the `Actions` first: it delivers the data. It
//!   passes the bytes that the session does not consume to [`Tcb::keep`]. In the out phase it calls
//!   `output` if `wants_output()`, and checks `ended()` after that. If that is `Some`, the caller
//!   calls `release`, drops the TCB and, for `TimeWait`, adds an entry to the [`TimeWaitTable`].
//!   After `Actions::closed`, the connection may still have to send a last ACK or RST. Until that
//!   is sent, `ended()` is `None`.
//! - Each connection has one deadline, [`Tcb::deadline`]. The caller reads it after each event,
//!   send or output. Calling `deadline_expired` too early does nothing. So the caller must set its
//!   timer again only if the new deadline is earlier than the timer. If the timer expires too
//!   early, the caller sets it to `deadline()`.
//! - Each core has one set of [`Pools`]. It is passed to every function that borrows or returns
//!   buffers.
//!
//! Invariants:
//! - `snd_una <= snd_max`, and both are within the queued data, FIN included
//!   ([`Tcb::assert_invariants`]).
//! - The right edge of the receive window never moves left. Data within it is accepted if blocks
//!   are free.
//! - An idle connection owns no queue and no block.
//! - No segment causes a panic here.
//!
//! Nagle's algorithm is off. It would delay small segments, but sessions write whole replies. So a
//! small segment is nearly always the end of a reply that the peer waits for. Both ends still avoid
//! silly windows (segments and window updates of a few bytes).
//!
//! Loss recovery: `flight` records the data in flight. `rack` (or duplicate acknowledgments, for
//! peers without SACK) decides what is lost, and `tcb::loss` reacts. `congestion` decides how much
//! may be sent, along the curve of `cubic`. `slow_start` decides when the first slow start ends.
//! State that is needed only while data is in flight is in the borrowed send queue. An idle
//! connection has only its windows and its round trip.

mod actions;
mod ageing;
mod alarm;
mod blocks;
mod closed;
mod congestion;
mod cookies;
mod cubic;
mod ecn;
mod flight;
mod half_open;
mod handshake;
mod nodes;
mod options;
mod out_of_order;
mod path;
mod piece_queue;
mod pools;
mod rack;
mod receive_queue;
mod recovery;
mod ring;
mod round_trip;
mod run;
mod runs;
mod segment;
mod send_queue;
mod sequence;
mod slow_start;
mod state;
mod syn_retry_filter;
mod tcb;
mod time_wait;
mod timestamps;
mod window;

pub use actions::{Actions, CloseReason};
pub use alarm::{
    ACKNOWLEDGE_DELAY, FIN_WAIT, KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_PROBES, ROOM_RETRY,
    SYN_ATTEMPTS_MAX, USER_TIMEOUT, USER_TIMEOUT_MAX,
};
pub use blocks::RECEIVE_RESERVE;
pub use closed::reset_for;
pub use cookies::Cookies;
pub use half_open::{
    FullTable, HalfOpenId, HalfOpenTable, HalfOpenVerdict, SYN_ACK_WAIT, SYN_ACKS_MAX,
};
pub use handshake::{InitialNumbers, InitialSequences, MSS_DEFAULT, MSS_MIN, TcpHandshake};
pub use options::{
    OPTIONS_BYTES_MAX, Options, SACK_BLOCKS_MAX, SackBlock, SackBlocks, Timestamps,
    WINDOW_SHIFT_MAX,
};
pub use pools::{PoolSizes, Pools};
pub use round_trip::{RTO_INITIAL, RTO_MARGIN_MIN, RTO_MAX};
pub use segment::{CardFull, SegmentRepr, SegmentToSend, TcpFlags};
pub use send_queue::{SEND_BYTES, SEND_BYTES_MAX};
pub use sequence::SequenceNumber;
pub use state::CloseOutcome;
pub use syn_retry_filter::{SynHistory, SynRetryFilter};
pub use tcb::{CHALLENGE_INTERVAL, SendLimits, Tcb};
pub use time_wait::{TIME_WAIT, TimeWait, TimeWaitId, TimeWaitTable, TimeWaitVerdict};
pub use timestamps::TimestampClock;
pub use window::{RECEIVE_WINDOW, RECEIVE_WINDOW_MAX, WINDOW_ON_SYN, WINDOW_SHIFT};

#[cfg(test)]
mod tests;
