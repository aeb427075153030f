//! Data for load shedding: the addresses with too many connections, and the sessions that hold too
//! much memory.

use machine::{Instant, Micros, Turn};

use crate::Connections;

/// While memory is low, sessions that hold at least this many bytes end first.
const SHED_FROM: usize = 64 << 10;
/// The number of connections that an address may always have, whether they are idle or not.
const SHARE_FAIR: u32 = 8;
/// The longest time for which a session may make no progress while resources are short.
pub const PATIENCE: Micros = Micros::from_secs(10);
/// The time between two turns that examine sessions, if no event causes a turn.
pub const LOOK_INTERVAL: Micros = Micros::from_millis(100);

/// The progress of a session, and the time when this progress was first seen. The time is in
/// milliseconds, which wrap around after 49 days.
#[derive(Clone, Copy, Debug)]
pub struct ProgressMark {
    bytes_moved: u32,
    since_ms: u32,
}

impl ProgressMark {
    /// The progress of a session that has sent and received `bytes_moved` bytes by now.
    pub fn of(bytes_moved: u32, now: Instant) -> ProgressMark {
        ProgressMark { bytes_moved, since_ms: (now.0 / 1000) as u32 }
    }

    /// The time in which the session has made no progress. `None` if it has made progress since.
    pub fn unchanged_for(self, now: ProgressMark) -> Option<Micros> {
        let stood_ms = now.since_ms.wrapping_sub(self.since_ms);
        (self.bytes_moved == now.bytes_moved).then(|| Micros::from_millis(u64::from(stood_ms)))
    }
}

/// The largest share of all connections that one address has, as found at the last examination.
#[derive(Default)]
pub struct Crowding {
    looked_at: Option<Instant>,
    share_max: u32,
    /// The time when an address with one of the largest shares last lost a connection.
    thinned_at: Option<Instant>,
}

impl Crowding {
    /// The share above which an address loses idle connections: half of the largest share, and at
    /// least [`SHARE_FAIR`]. `None` if connections are not short.
    pub fn share(
        &mut self,
        turn: Turn,
        connections: &Connections,
        share_max: impl FnOnce() -> u32,
    ) -> Option<u32> {
        if !connections.is_tight() {
            return None;
        }
        if self.looked_at.is_none_or(|at| turn.now >= at + LOOK_INTERVAL) {
            (self.looked_at, self.share_max) = (Some(turn.now), share_max());
        }
        Some((self.share_max / 2).max(SHARE_FAIR))
    }

    /// Notes that an address with one of the largest shares loses a connection.
    pub fn thins(&mut self, now: Instant) {
        self.thinned_at = Some(now);
    }

    /// Whether addresses with the largest shares still lose connections, so that other addresses
    /// need not lose any.
    pub fn makes_room(&self, now: Instant) -> bool {
        self.thinned_at.is_some_and(|at| now < at + PATIENCE)
    }
}

/// The order in which sessions end while the memory reserve is in use: the largest first.
#[derive(Clone, Copy, Debug)]
pub struct Shedding {
    /// A session that holds at least this many bytes ends next.
    from: usize,
}

impl Shedding {
    /// Whether a session that holds this many bytes ends next.
    pub fn ends(self, bytes: usize) -> bool {
        bytes >= self.from
    }

    /// Halves the limit, when few sessions above it are left.
    pub fn goes_on(&mut self) {
        self.from /= 2;
    }
}

impl Default for Shedding {
    fn default() -> Shedding {
        Shedding { from: SHED_FROM }
    }
}
