//! Warnings about certificates that expire soon: when the machine starts, and once a day.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use machine::{ConsoleLines, Instant, Micros, Turn, UnixTime};
use tls::{Certificate, Day};

const DAY_SECONDS: u64 = 24 * 3600;

/// The time before the end of a certificate at which the warnings begin.
const WARNING_SECONDS: u64 = 14 * DAY_SECONDS;

/// The names and end dates of the certificates, and the time of the next check.
#[derive(Default)]
pub(super) struct Expiry {
    ends: Vec<(String, UnixTime)>,
    next_check: Option<Instant>,
}

impl Expiry {
    pub(super) fn of(certificates: &[Certificate]) -> Expiry {
        let name = |one: &Certificate| one.names().next().unwrap_or("nobody").to_string();
        let ends: Vec<_> = certificates.iter().map(|one| (name(one), one.valid_until())).collect();
        Expiry { next_check: (!ends.is_empty()).then_some(Instant::START), ends }
    }

    /// The time of the next check.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.next_check
    }

    /// Whether the next check is due.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next_check.is_some_and(|at| at <= now)
    }

    /// Warns about certificates that expire soon or have expired, and sets the time of the next
    /// check.
    pub(super) fn check(&mut self, turn: Turn, console: &mut ConsoleLines) {
        self.next_check = Some(turn.now + Micros::from_secs(DAY_SECONDS));
        let now = turn.wall;
        for (name, end) in &self.ends {
            if end.seconds() < now.seconds() {
                console.print(format_args!(
                    "tls: THE CERTIFICATE FOR {name} HAS EXPIRED: it was valid until {}; renew it",
                    Day(*end)
                ));
            } else if end.seconds() - now.seconds() < WARNING_SECONDS {
                console.print(format_args!(
                    "tls: THE CERTIFICATE FOR {name} EXPIRES SOON: it is valid until {}; renew it",
                    Day(*end)
                ));
            }
        }
    }
}
