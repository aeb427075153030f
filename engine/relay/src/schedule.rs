//! The schedule of the delivery attempts for a message.
//!
//! The delay before the next attempt depends only on the age of the message. It is as long as the
//! age, but at least five minutes and at most four hours. So no state is stored in addition to the
//! message, and a machine that was off continues where it stopped. After five days a last attempt
//! is made, and then the message is given up (RFC 5321 section 4.5.4.1 asks for four or five days).
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
/// The sender of a message that was not delivered at this age gets one delay report.
pub const DELAY_NOTICE_AFTER: Micros = Micros::from_secs(4 * 3600);

/// The next step for a message that could not be delivered now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextTry {
    /// The message is tried again after this delay.
    After(Micros),
    /// The message is given up.
    GiveUp,
}

/// The next step for a message of this age after a failed attempt. `random`: any number. It moves
/// the delay by up to a quarter, so that messages that failed together are not all tried at the
/// same time.
pub fn next_attempt(age: Micros, random: u64) -> NextTry {
    if age >= LIFETIME {
        return NextTry::GiveUp;
    }
    let rest = LIFETIME.0 - age.0;
    NextTry::After(Micros(jittered(age.clamp(SHORTEST, LONGEST), random).0.min(rest)))
}

/// Whether a delay report is due for a message of this age.
pub fn is_delay_report_due(age: Micros) -> bool {
    age >= DELAY_NOTICE_AFTER
}

/// A span, up to a quarter longer or shorter.
pub(crate) fn jittered(span: Micros, random: u64) -> Micros {
    Micros(span.0 - span.0 / 4 + random % (span.0 / 2 + 1))
}
