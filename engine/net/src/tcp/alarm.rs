//! The alarms of a connection, and the length of each. `tcb::timers` handles their expiry.

use machine::{Instant, Micros};

/// How long sent data may stay unacknowledged, or probes unanswered, before the connection is
/// closed. This is the user timeout of RFC 9293 §3.9.1.1, with its default of five minutes (§3.8.3
/// requires at least 100 seconds). Each connection may have another value.
pub const USER_TIMEOUT: Micros = Micros::from_secs(300);

/// The longest user timeout.
pub const USER_TIMEOUT_MAX: Micros = Micros::from_secs(3 * 3600);

/// The most retransmissions of a SYN before a connection attempt fails. The waits are 1, 2, 4, 8,
/// 16, 32, 60 and 60 seconds, 183 in all (RFC 9293 §3.8.3 requires three minutes).
pub const SYN_ATTEMPTS_MAX: u8 = 7;

/// How long an acknowledgment is delayed, so that it can be sent with a reply. RFC 9293 allows half
/// a second. A shorter delay helps peers that wait for the acknowledgment.
pub const ACKNOWLEDGE_DELAY: Micros = Micros::from_millis(40);

/// How long a peer may be silent before keep-alive probes start. RFC 9293 §3.8.4 requires a default
/// of two hours, but a mail session ends long before that.
pub const KEEPALIVE_IDLE: Micros = Micros::from_secs(300);

/// The time between two keep-alive probes.
pub const KEEPALIVE_INTERVAL: Micros = Micros::from_secs(30);

/// The number of unanswered keep-alive probes after which the connection is closed.
pub const KEEPALIVE_PROBES: u8 = 4;

/// How long a peer may be silent after it has acknowledged our FIN, before the connection is
/// removed. The span is longer than the peer's longest retransmission timeout. So the peer can
/// repeat one lost segment.
pub const FIN_WAIT: Micros = Micros::from_secs(120);

/// The wait until the pools are checked again for free buffers.
pub const ROOM_RETRY: Micros = Micros::from_millis(50);

/// A time in milliseconds modulo 2^32 (49 days), or none, in four bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Alarm(u32);

pub(super) fn millis(now: Instant) -> u32 {
    (now.0 / 1000) as u32
}

impl Alarm {
    pub(super) const NONE: Alarm = Alarm(0);

    /// The alarm for the first whole millisecond at or after `now + span`.
    #[inline]
    pub(super) fn after(now: Instant, span: Micros) -> Alarm {
        Alarm((((now + span).0.saturating_add(999)) / 1000) as u32).or_one()
    }

    fn or_one(self) -> Alarm {
        Alarm(self.0.max(1))
    }

    #[inline]
    pub(super) fn is_set(self) -> bool {
        self.0 != 0
    }

    /// Milliseconds until the alarm is due; zero or less if it is due; [`NOT_SET`] if it is not
    /// set.
    #[inline]
    fn left(self, now: Instant) -> i32 {
        if self.is_set() { self.0.wrapping_sub(millis(now)) as i32 } else { NOT_SET }
    }

    #[inline]
    pub(super) fn is_due(self, now: Instant) -> bool {
        self.left(now) <= 0
    }
}

/// The time left until an alarm that is not set: 24 days. No alarm is set that far ahead.
const NOT_SET: i32 = i32::MAX;

/// The event that the retransmit alarm waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AlarmReason {
    /// An acknowledgment of data in flight: RFC 6298.
    Acknowledgment,
    /// An acknowledgment of data in flight. On expiry only a tail loss probe is sent: RFC 8985 §7.
    TailAcknowledgment,
    /// An acknowledgment of segments that may have been reordered: RFC 8985 §6.2.
    Reordered,
    /// A wider send window: the persist timer.
    Window,
}

/// The three alarms of a connection.
#[derive(Clone, Copy)]
pub(super) struct Timers {
    pub(super) retransmit: Alarm,
    pub(super) acknowledge: Alarm,
    pub(super) idle: Alarm,
}

impl Timers {
    pub(super) const NONE: Timers =
        Timers { retransmit: Alarm::NONE, acknowledge: Alarm::NONE, idle: Alarm::NONE };

    #[inline]
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let left =
            self.retransmit.left(now).min(self.acknowledge.left(now)).min(self.idle.left(now));
        (left != NOT_SET).then(|| Instant((now.0 / 1000 + u64::try_from(left).unwrap_or(0)) * 1000))
    }
}
