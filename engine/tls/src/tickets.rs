//! Session tickets (RFC 5077, RFC 8446 section 4.6.1), which a client presents to skip the
//! signature of a handshake. Their keys expire.
//!
//! All cores get one secret when the machine starts. Each core derives the key of each service and
//! each period from it. So each core decrypts the tickets of the others without a request. The
//! secret is never written to disk, and after a restart the machine accepts no earlier ticket.
//!
//! Invariants:
//! - A ticket is valid in the period of its encryption and in the next one, and never later. The
//!   clocks of two cores may differ by less than a period.
//! - A ticket of one service is invalid at every other.

use alloc::vec::Vec;
use core::fmt;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use rustls::server::ProducesTickets;

use crate::clock::Clock;

/// How long one key encrypts tickets, in seconds.
pub const TICKET_PERIOD_SECONDS: u64 = 6 * 3600;

/// The secret that all cores of a machine share.
#[derive(Clone)]
pub struct TicketKeys {
    secret: hmac::Key,
}

impl TicketKeys {
    /// `secret`: random, and the same on each core.
    pub fn new(secret: &[u8; 32]) -> TicketKeys {
        TicketKeys { secret: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }

    /// The keys of one service.
    pub(crate) fn of_service(&self, name: &str, clock: &Clock) -> Tickets {
        let secret = hmac::sign(&self.secret, name.as_bytes());
        Tickets { secret: hmac::Key::new(hmac::HMAC_SHA256, secret.as_ref()), clock: clock.clone() }
    }
}

/// The tickets of one service on one core.
pub(crate) struct Tickets {
    secret: hmac::Key,
    clock: Clock,
}

/// Secrets are not printed.
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

    /// The guaranteed lifetime of a ticket, in whatever part of a period it was issued.
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
        // One period ahead is valid too: the clock of another core may have reached it already.
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
