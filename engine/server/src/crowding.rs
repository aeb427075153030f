//! What load shedding goes by: which addresses have too many connections, and which sessions keep
//! too much.

use machine::{Instant, Micros};
use mail::Strangers;

use crate::parts::Parts;

/// While memory is low, sessions that hold at least this many bytes end first.
const SHED_FROM: usize = 64 << 10;
/// The share of all connections that an address may always have, idle or not.
const SHARE_FAIR: u32 = 8;
/// How long a session may stand still while there is not enough for all.
pub(crate) const PATIENCE: Micros = Micros::from_secs(10);
/// The time between two turns that look, if nothing else brings one.
pub(crate) const LOOK_INTERVAL: Micros = Micros::from_millis(100);

/// How far a session had come, and when that was seen first: in milliseconds, which wrap around
/// after 49 days.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    bytes_moved: u32,
    since_ms: u32,
}

impl Mark {
    /// A session that has moved so many bytes by now.
    pub(crate) fn of(bytes_moved: u32, now: Instant) -> Mark {
        Mark { bytes_moved, since_ms: (now.0 / 1000) as u32 }
    }

    /// How long the session has not moved, if `now` it stands where it was marked.
    pub(crate) fn stands_since(self, now: Mark) -> Option<Micros> {
        let stood_ms = now.since_ms.wrapping_sub(self.since_ms);
        (self.bytes_moved == now.bytes_moved).then(|| Micros::from_millis(u64::from(stood_ms)))
    }
}

/// Which addresses have the largest shares of all connections, as far as it was looked at lately.
#[derive(Default)]
pub(crate) struct Crowding {
    looked_at: Option<Instant>,
    share_max: u32,
    /// When one of them lost a connection last.
    thinned_at: Option<Instant>,
}

impl Crowding {
    /// While connections run short: the share beyond which an address loses idle ones, half of the
    /// largest there is.
    pub(crate) fn share(&mut self, parts: &Parts, strangers: &Strangers) -> Option<u32> {
        if !parts.connections.is_tight() {
            return None;
        }
        if self.looked_at.is_none_or(|at| parts.turn.now >= at + LOOK_INTERVAL) {
            (self.looked_at, self.share_max) = (Some(parts.turn.now), strangers.share_max());
        }
        Some((self.share_max / 2).max(SHARE_FAIR))
    }

    /// An address with one of the largest shares loses a connection.
    pub(crate) fn thins(&mut self, now: Instant) {
        self.thinned_at = Some(now);
    }

    /// Whether those with the largest shares make room, so that others need not.
    pub(crate) fn makes_room(&self, now: Instant) -> bool {
        self.thinned_at.is_some_and(|at| now < at + PATIENCE)
    }
}

/// The order in which connections end while the machine's reserve of memory is touched: those that
/// keep most go first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shedding {
    /// Bytes that a session keeps at least to be ended next.
    from: usize,
}

impl Shedding {
    /// Whether a session that keeps so many bytes ends next.
    pub(crate) fn ends(self, bytes: usize) -> bool {
        bytes >= self.from
    }

    /// There are few of these: sessions that keep half as much are next.
    pub(crate) fn goes_on(&mut self) {
        self.from /= 2;
    }
}

impl Default for Shedding {
    fn default() -> Shedding {
        Shedding { from: SHED_FROM }
    }
}
