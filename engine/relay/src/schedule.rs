//! When a letter is tried again.
//!
//! It is worked out of the letter's age alone: after as long again as it has waited already, but for not less than five minutes and not more than four hours. So it takes minutes
//! at first and hours later, nothing has to be kept beside the letter, and a machine that was away goes on where it stands. After five days it is given up, and the last attempt
//! is made then (RFC 5321 section 4.5.4.1 asks for four or five).
//!
//! ```text
//!   0   5   10   20   40 min   80 min   2.7 h   5.3 h   9.3 h   13.3 h   …   5 days          without the jitter
//! ```

use machine::Micros;

/// A letter waits at least so long between two attempts.
const SHORTEST: Micros = Micros::from_secs(5 * 60);
/// And at most so long, but for the jitter.
const LONGEST: Micros = Micros::from_secs(4 * 3600);
/// A letter that was not delivered at this age never is.
pub const LIFETIME: Micros = Micros::from_secs(5 * 24 * 3600);
/// Who wrote a letter that was not delivered at this age is told, once.
pub const DELAY_NOTICE_AFTER: Micros = Micros::from_secs(4 * 3600);

/// What becomes of a letter that could not be delivered now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// It is tried again after so long.
    After(Micros),
    /// It is given up.
    GiveUp,
}

/// What becomes of a letter of this age after an attempt that failed. `random`: any number; letters that failed together are not tried together again, but a quarter of the
/// time sooner or later.
pub fn next_attempt(age: Micros, random: u64) -> Next {
    if age >= LIFETIME {
        return Next::GiveUp;
    }
    let rest = LIFETIME.0 - age.0;
    Next::After(Micros(jittered(age.clamp(SHORTEST, LONGEST), random).0.min(rest)))
}

/// Whether it is time to tell who wrote a letter of this age that it takes long.
pub fn is_delay_to_be_told(age: Micros) -> bool {
    age >= DELAY_NOTICE_AFTER
}

/// A quarter more or less.
pub(crate) fn jittered(span: Micros, random: u64) -> Micros {
    Micros(span.0 - span.0 / 4 + random % (span.0 / 2 + 1))
}
