//! The time of day that the server uses, and what the console is told of a clock that is wrong.
//!
//! A flat battery sets a clock back by years. The program was made before it ran: its date, and the
//! time since the start, are a lower bound. Above it the machine's clock is used as it is. One that
//! is behind the newest message is used, too, and announced: nothing is ordered by it, and the
//! dates of messages say when this clock said they came.

use machine::{ConsoleLines, Instant, UnixTime};
use tls::Day;

/// So far behind the newest message a clock may be without a word: a message may have come from a
/// core or a life with another clock.
const BEHIND_SECONDS_MAX: u64 = 24 * 3600;

/// The time of day: the machine's, unless it is before the program was made.
pub(crate) fn time_of_day(told: UnixTime, program_date: UnixTime, now: Instant) -> UnixTime {
    told.max(UnixTime(program_date.0.saturating_add(now.0)))
}

/// Says what is wrong with the clock of a machine that starts. `told`: what it says now, and `used`:
/// what this turn takes for the time. `newest`: the date of the newest message on the disk.
pub(crate) fn announce(
    console: &mut ConsoleLines,
    (told, program_date): (UnixTime, UnixTime),
    used: UnixTime,
    newest: Option<UnixTime>,
) {
    if told < program_date {
        console.print(format_args!(
            "clock: SET THE CLOCK: it says {}, before this program was made; {} is used",
            Day(told),
            Day(used)
        ));
    }
    if let Some(newest) = newest.filter(|newest| newest.seconds() > used.seconds() + BEHIND_SECONDS_MAX) {
        console.print(format_args!(
            "clock: SET THE CLOCK: it is {} by it, and the newest message is of {}",
            Day(used),
            Day(newest)
        ));
    }
}
