//! When a message is tried again.
//!
//! The time follows from the message's age alone: after as long again as it has waited already, but
//! at least five minutes and at most four hours. So the delay is minutes at first and hours later,
//! no state is kept beside the message, and a machine that was away goes on where it was. After
//! five days the message is given up, with a last attempt at that time (RFC 5321 section 4.5.4.1
//! asks for four or five).
//!
//! ```text
//!   0   5   10   20   40 min   80 min   2.7 h   5.3 h   9.3 h   13.3 h   …   5 days   (no jitter)
//! ```

use machine::Micros;

/// The shortest delay between two attempts.
const SHORTEST: Micros = Micros::from_secs(5 * 60);
/// The longest delay, without the jitter.
const LONGEST: Micros = Micros::from_secs(4 * 3600);
/// A message that was not delivered at this age is given up.
pub const LIFETIME: Micros = Micros::from_secs(5 * 24 * 3600);
/// The sender of a message that was not delivered at this age is told, once.
pub const DELAY_NOTICE_AFTER: Micros = Micros::from_secs(4 * 3600);

/// The future of a message that could not be delivered now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextTry {
    /// It is tried again after this delay.
    After(Micros),
    /// It is given up.
    GiveUp,
}

/// The future of a message of this age after a failed attempt. `random`: any number. It moves the
/// delay by up to a quarter, so that messages that failed together are not all tried at the same
/// time.
pub fn next_attempt(age: Micros, random: u64) -> NextTry {
    if age >= LIFETIME {
        return NextTry::GiveUp;
    }
    let rest = LIFETIME.0 - age.0;
    NextTry::After(Micros(jittered(age.clamp(SHORTEST, LONGEST), random).0.min(rest)))
}

/// Whether the sender of a message of this age is to be told of the delay.
pub fn is_delay_to_be_told(age: Micros) -> bool {
    age >= DELAY_NOTICE_AFTER
}

/// A span, up to a quarter longer or shorter.
pub(crate) fn jittered(span: Micros, random: u64) -> Micros {
    Micros(span.0 - span.0 / 4 + random % (span.0 / 2 + 1))
}
