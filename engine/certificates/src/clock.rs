//! The time of day that the server uses, and the warnings about a wrong clock.
//!
//! The clock of a machine with an empty battery may be years behind. The program was built before
//! it runs, so its build date plus the time since the start is a lower bound for the time of day.
//! Above that bound the server uses the machine's clock. If the clock is behind the newest message
//! on the disk, the server still uses the clock, but warns. The clock gives messages their dates,
//! but does not order events.

use machine::{ConsoleLines, Instant, UnixTime};
use tls::Day;

/// The time that the clock may be behind the newest message without a warning. The message may come
/// from a core with another clock, or from before a restart.
const BEHIND_SECONDS_MAX: u64 = 24 * 3600;

/// The time of day: the machine's clock, unless it is before the build of the program.
pub fn time_of_day(clock: UnixTime, program_date: UnixTime, now: Instant) -> UnixTime {
    clock.max(UnixTime(program_date.0.saturating_add(now.0)))
}

/// Warns about a wrong clock at start. `clock`: the machine's clock. `used`: the time of this turn.
/// `newest`: the date of the newest message on the disk.
pub fn announce(
    console: &mut ConsoleLines,
    (clock, program_date): (UnixTime, UnixTime),
    used: UnixTime,
    newest: Option<UnixTime>,
) {
    if clock < program_date {
        console.print(format_args!(
            "clock: SET THE CLOCK: it shows {}, before this version was built; using {} instead",
            Day(clock),
            Day(used)
        ));
    }
    if let Some(newest) =
        newest.filter(|newest| newest.seconds() > used.seconds() + BEHIND_SECONDS_MAX)
    {
        console.print(format_args!(
            "clock: SET THE CLOCK: it shows {}, but the newest message is from {}",
            Day(used),
            Day(newest)
        ));
    }
}
