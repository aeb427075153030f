//! TCP (RFC 9293): from segments to ordered bytes and back, as a pure function of (connection, now, segment) to actions.
//!
//! Nothing here knows an address, a port, a frame or a clock. The caller finds out which connection a segment belongs
//! to, hands it over as a [`SegmentRepr`], and acts upon the [`Actions`] that come back; once a turn, or whenever
//! [`Tcb::wants_output`] says so, it lets the connection speak through [`Tcb::output`]. So acknowledgments ride on
//! replies, and a test drives two connections against each other with two variables and a fixed clock.
//!
//! A connection's life, from the caller's side (one flow table maps addresses and ports to one of the three homes):
//! ```text
//!                 SYN               completing ACK                    ended() == TimeWait
//!   (listener) ────────> HalfOpenTable ───────────> Tcb (128 bytes) ──────────────────────> TimeWaitTable ──> (gone)
//!       └── it is full: Cookies, and nothing kept ──^      │ ended() == Gone                     │ SYN: NewConnection
//!                          Tcb::connect ────────────┘      └─────────────> (gone)                └──> as (listener)
//! ```
//! - A segment for no connection: [`reset_for`], rate limited by the caller.
//! - Order of work after an event on a `Tcb`: act on `Actions` at once (deliver, [`Tcb::keep`] what the session leaves);
//!   in the out phase call `output` if `wants_output()`; then look at `ended()`, and if it is `Some`, call `release`,
//!   drop the TCB and, for `TimeWait`, insert into the [`TimeWaitTable`]. After `Actions::closed` the connection may still
//!   want output (a last ACK or RST); `ended()` stays `None` until that is out.
//! - Deadlines: one per connection, [`Tcb::deadline`], looked up after each event, send or output. Calling
//!   `deadline_expired` too early does nothing, so a timer need only be re-armed when the new deadline is earlier
//!   than the armed one; when it fires early, re-arm it from `deadline()`.
//! - [`Pools`] are one per core and are passed to whatever may borrow from them or give back.
//!
//! Invariants:
//! - `snd_una <= snd_max`, both within what was queued, FIN included ([`Tcb::assert_invariants`]).
//! - The right edge of the receive window never moves left; what was promised is taken if blocks are there.
//! - An idle connection owns no queue and no block.
//! - Nothing here panics on a segment, whatever it says.
//!
//! Nagle's algorithm is off by design: sessions write whole replies, so the small segment it would hold back is the
//! last one of a reply that the peer is waiting for. Silly windows are avoided at both ends all the same.
//!
//! How loss is found and repaired: `flight` knows what is on the way, `rack` (or duplicates, for peers without SACK) says what of
//! it is lost, `tcb::loss` acts upon that and `congestion` says how much may be sent, along the
//! curve of `cubic`; `slow_start` says when its first climb is to end. What only
//! counts while something is on the way lies in the lent send queue: an idle connection keeps its windows, its round
//! trip and nothing else.

mod actions;
mod ageing;
mod alarm;
mod beyond;
mod blocks;
mod closed;
mod congestion;
mod cookies;
mod cubic;
mod ecn;
mod flight;
mod half_open;
mod handshake;
mod knocks;
mod nodes;
mod options;
mod path;
mod pools;
mod rack;
mod receive_queue;
mod recovery;
mod ring;
mod round_trip;
mod row;
mod run;
mod runs;
mod segment;
mod send_queue;
mod sequence;
mod slow_start;
mod state;
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
pub use half_open::{HalfOpenId, HalfOpenTable, HalfOpenVerdict, Room, SYN_ACK_WAIT, SYN_ACKS_MAX};
pub use handshake::{Beginning, Handshake, InitialSequences, MSS_DEFAULT, MSS_MIN};
pub use knocks::{Knock, Knocks};
pub use options::{
    OPTIONS_BYTES_MAX, Options, SACK_BLOCKS_MAX, SackBlock, SackBlocks, Timestamps,
    WINDOW_SHIFT_MAX,
};
pub use pools::{PoolSizes, Pools};
pub use round_trip::{RTO_INITIAL, RTO_MAX, RTO_MIN};
pub use segment::{Flags, Full, SegmentRepr, SegmentToSend};
pub use send_queue::{SEND_BYTES, SEND_BYTES_MAX};
pub use sequence::SequenceNumber;
pub use state::Ended;
pub use tcb::{CHALLENGE_INTERVAL, SendLimits, Tcb};
pub use time_wait::{TIME_WAIT, TimeWait, TimeWaitId, TimeWaitTable, TimeWaitVerdict};
pub use timestamps::TimestampClock;
pub use window::{RECEIVE_WINDOW, RECEIVE_WINDOW_MAX, WINDOW_ON_SYN, WINDOW_SHIFT};

#[cfg(test)]
mod tests;
