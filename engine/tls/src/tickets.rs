//! Session tickets (RFC 5077, RFC 8446 section 4.6.1). A client presents a ticket to resume a
//! session without the signature of a full handshake. The keys of tickets expire.
//!
//! All cores get the same secret when the machine starts. From the secret each core derives the key
//! of each service and each period. So each core can decrypt the tickets of the other cores without
//! a request to them. The secret is never written to disk, so after a restart the machine accepts
//! no earlier ticket.
//!
//! Invariants:
//! - A ticket is valid only in the period of its encryption and in the next period. The clocks of
//!   two cores may differ by less than a period.
//! - A ticket of one service is invalid at every other service.

use alloc::vec::Vec;
use core::fmt;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use rustls::server::ProducesTickets;

use crate::clock::Clock;

/// The time for which one key encrypts tickets, in seconds.
pub const TICKET_PERIOD_SECONDS: u64 = 6 * 3600;

/// The secret that all cores of a machine share.
#[derive(Clone)]
pub struct TicketKeys {
    secret: hmac::Key,
}

impl TicketKeys {
    /// Makes the keys. `secret`: a random value, which is the same on each core.
    pub fn new(secret: &[u8; 32]) -> TicketKeys {
        TicketKeys { secret: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }

    /// The tickets of one service.
    pub(crate) fn of_service(&self, name: &str, clock: &Clock) -> Tickets {
        let secret = hmac::sign(&self.secret, name.as_bytes());
        Tickets { secret: hmac::Key::new(hmac::HMAC_SHA256, secret.as_ref()), clock: clock.clone() }
    }
}

/// The ticket keys of one service on one core.
pub(crate) struct Tickets {
    secret: hmac::Key,
    clock: Clock,
}

/// This implementation does not print the secret.
impl fmt::Debug for Tickets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Tickets")
    }
}

const PERIOD_BYTES: usize = size_of::<u64>();

impl Tickets {
    fn period(&self) -> u64 {
        self.clock.seconds() / TICKET_PERIOD_SECONDS
    }

    fn key(&self, period: u64) -> Option<LessSafeKey> {
        let key = hmac::sign(&self.secret, &period.to_be_bytes());
        UnboundKey::new(&CHACHA20_POLY1305, key.as_ref()).ok().map(LessSafeKey::new)
    }
}

/// A ticket is the number of its period, its nonce, its encrypted content, and the tag over the
/// content.
impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    /// The guaranteed lifetime of a ticket, in seconds. A ticket is valid at least for this time,
    /// even if it was issued at the end of a period.
    fn lifetime(&self) -> u32 {
        TICKET_PERIOD_SECONDS as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let period = self.period();
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut encrypted = Vec::from(plain);
        let key = self.key(period)?;
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::empty(),
            &mut encrypted,
        )
        .ok()?;
        Some([period.to_be_bytes().as_slice(), &nonce, &encrypted].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (period, rest) = ticket.split_first_chunk::<PERIOD_BYTES>()?;
        let (nonce, encrypted) = rest.split_first_chunk::<NONCE_LEN>()?;
        let period = u64::from_be_bytes(*period);
        // The next period is valid too, because the clock of another core may have reached it
        // already.
        let now = self.period();
        if period > now.saturating_add(1) || period.saturating_add(1) < now {
            return None;
        }
        let mut plain = Vec::from(encrypted);
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = self.key(period)?.open_in_place(nonce, Aad::empty(), &mut plain).ok()?.len();
        plain.truncate(length);
        Some(plain)
    }
}
