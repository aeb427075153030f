//! A connection's alarms, and how long each waits. `tcb::timers` says what happens then.

use machine::{Instant, Micros};

/// How long what was sent may stay unacknowledged, or a probe unanswered, until the peer is given up: the user timeout of RFC
/// 9293 §3.9.1.1, with its default of five minutes (§3.8.3 asks for 100 seconds at least). Each connection may have
/// another.
pub const USER_TIMEOUT: Micros = Micros::from_secs(300);

/// The longest user timeout.
pub const USER_TIMEOUT_MAX: Micros = Micros::from_secs(3 * 3600);

/// SYNs without an answer: 1 + 2 + 4 + … seconds, 187 in all (RFC 9293 §3.8.3 asks for three minutes).
pub const SYN_ATTEMPTS_MAX: u8 = 7;

/// How long an acknowledgment may wait for a reply to ride on. RFC 9293 allows half a second; peers that wait for
/// it deserve better.
pub const ACKNOWLEDGE_DELAY: Micros = Micros::from_millis(40);

/// How long a peer may be silent before it is asked whether it still lives. RFC 9293 §3.8.4 says two hours unless set
/// otherwise; a mail session is over long before that.
pub const KEEPALIVE_IDLE: Micros = Micros::from_secs(300);

/// The time between two such questions.
pub const KEEPALIVE_INTERVAL: Micros = Micros::from_secs(30);

/// Questions without an answer.
pub const KEEPALIVE_PROBES: u8 = 4;

/// How long a peer may be silent after we have closed and it has acknowledged that, before it is forgotten: longer than
/// its longest timeout, so that it may have something lost on the way.
pub const FIN_WAIT: Micros = Micros::from_secs(120);

/// How soon room in the pools is looked for again.
pub const ROOM_RETRY: Micros = Micros::from_millis(50);

/// A point in time in milliseconds on a circle of 49 days, in four bytes; or none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Alarm(u32);

pub(super) fn millis(now: Instant) -> u32 {
    (now.0 / 1000) as u32
}

impl Alarm {
    pub(super) const NONE: Alarm = Alarm(0);

    /// The first whole millisecond that is not before `now + span`.
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

    /// Milliseconds until it is due, zero or less when it is; [`NOT_SET`] when it is not set.
    #[inline]
    fn left(self, now: Instant) -> i32 {
        if self.is_set() { self.0.wrapping_sub(millis(now)) as i32 } else { NOT_SET }
    }

    #[inline]
    pub(super) fn is_due(self, now: Instant) -> bool {
        self.left(now) <= 0
    }
}

/// No alarm is set for as late as this: 24 days.
const NOT_SET: i32 = i32::MAX;

/// What the retransmit alarm waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Awaited {
    /// An acknowledgment of what is on the way: RFC 6298.
    Acknowledgment,
    /// The same, but when none comes only the tail is probed: RFC 8985 §7.
    TailAcknowledgment,
    /// What may have been overtaken: RFC 8985 §6.2.
    Reordered,
    /// A wider window of the peer's: the persist timer.
    Window,
}

/// The three alarms.
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
