//! Certificates that end soon are shouted about: when the machine starts, and once a day.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use machine::{Instant, Micros, UnixTime};
use tls::{Certificate, Day};

use crate::engine::Engine;

const DAY_SECONDS: u64 = 24 * 3600;

/// How long before its end a certificate is spoken of.
const WARNING_SECONDS: u64 = 14 * DAY_SECONDS;

/// When certificates end, and when that is looked at next.
#[derive(Default)]
pub(crate) struct Expiry {
    ends: Vec<(String, UnixTime)>,
    look_at: Option<Instant>,
}

impl Expiry {
    pub(crate) fn of(certificates: &[Certificate]) -> Expiry {
        let name = |one: &Certificate| one.names().next().unwrap_or("nobody").to_string();
        let ends: Vec<_> = certificates.iter().map(|one| (name(one), one.valid_until())).collect();
        Expiry { look_at: (!ends.is_empty()).then_some(Instant::START), ends }
    }

    /// When to look next.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.look_at
    }
}

impl Engine {
    /// Says which certificates end soon, or have, if nobody has looked for a day.
    pub(crate) fn look_at_expiry(&mut self) {
        if self.expiry.look_at.is_none_or(|at| self.common.turn.now < at) {
            return;
        }
        self.expiry.look_at = Some(self.common.turn.now + Micros::from_secs(DAY_SECONDS));
        let now = self.common.turn.wall;
        for (name, end) in &self.expiry.ends {
            if end.seconds() < now.seconds() {
                self.common.console.print(format_args!(
                    "tls: THE CERTIFICATE FOR {name} HAS EXPIRED: it was valid until {}",
                    Day(*end)
                ));
            } else if end.seconds() - now.seconds() < WARNING_SECONDS {
                self.common.console.print(format_args!(
                    "tls: THE CERTIFICATE FOR {name} EXPIRES SOON: it is valid until {}",
                    Day(*end)
                ));
            }
        }
    }
}
