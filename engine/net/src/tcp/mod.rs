//! TCP (RFC 9293): from segments to ordered bytes and back, as a pure function of (connection, now,
//! segment) to actions.
//!
//! This module knows no addresses, ports, frames or clocks. The caller finds the connection of a
//! segment, passes the segment as a [`SegmentRepr`], and handles the returned [`Actions`]. Once a
//! turn, or whenever [`Tcb::wants_output`] says so, it calls [`Tcb::output`]. So acknowledgments
//! are sent with replies. And a test can connect two connections with two variables and a fixed
//! clock.
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
//! - A segment without a connection: [`reset_for`], rate-limited by the caller.
//! - After an event on a `Tcb`, the caller first handles the `Actions`: it delivers the data. It
//!   passes the bytes that the session does not consume to [`Tcb::keep`]. In the out phase it calls
//!   `output` if `wants_output()`. Then it checks `ended()`. If that is `Some`, it calls `release`,
//!   drops the TCB and, for `TimeWait`, adds an entry to the [`TimeWaitTable`]. After
//!   `Actions::closed` the connection may still have output (a last ACK or RST); `ended()` stays
//!   `None` until that output is sent.
//! - Each connection has one deadline, [`Tcb::deadline`], read after each event, send or output.
//!   Calling `deadline_expired` too early does nothing. So a timer must be re-armed only when the
//!   new deadline is earlier than the armed one. When it fires early, it is re-armed from
//!   `deadline()`.
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
//! Nagle's algorithm is off by design. Sessions write whole replies, so the small segment that it
//! would delay is the end of a reply that the peer waits for. Both ends still avoid silly windows.
//!
//! Loss recovery: `flight` knows what is in flight. `rack` (or duplicate acknowledgments, for peers
//! without SACK) decides what is lost. `tcb::loss` acts on that. `congestion` decides how much may
//! be sent, along the curve of `cubic`, and `slow_start` decides when the first slow start ends.
//! State that only matters while data is in flight is in the borrowed send queue. An idle
//! connection keeps only its windows and its round trip.

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
pub use round_trip::{RTO_INITIAL, RTO_MAX, RTO_MIN};
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
