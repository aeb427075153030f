//! Tests of clocks and sleep.

use super::{Outcome, Test, ensure};
use bare::BareMachine;
use machine::{Machine, Micros, UnixTime};

pub(super) const TESTS: [Test; 3] = [
    ("time never goes back", time_goes_on),
    ("the time of day is of this century and keeps pace", time_of_day_keeps_pace),
    ("the timer ends a sleep in time", timer_wakes),
];

/// 2024-01-01 and 2100-01-01.
const THIS_CENTURY: core::ops::Range<u64> = 1_704_067_200..4_102_444_800;

fn time_goes_on(machine: &mut BareMachine) -> Outcome {
    let mut before = machine.now();
    for _ in 0..10_000 {
        let now = machine.now();
        ensure(now >= before, "the time went back")?;
        before = now;
    }
    Ok(())
}

fn time_of_day_keeps_pace(machine: &mut BareMachine) -> Outcome {
    let (start, day_start) = (machine.now(), machine.wall_clock());
    ensure(THIS_CENTURY.contains(&day_start.seconds()), "the time of day is of another century")?;
    while machine.now().since(start) < Micros::from_millis(50) {}
    let UnixTime(passed) = UnixTime(machine.wall_clock().0 - day_start.0);
    ensure((49_000..5_000_000).contains(&passed), "the time of day does not keep pace")
}

fn timer_wakes(machine: &mut BareMachine) -> Outcome {
    let best_lateness = best_lateness(machine, Micros::from_millis(5))?;
    machine.print(format_args!("at best {} us late", best_lateness.0));
    ensure(best_lateness < Micros::from_millis(5), "every sleep ended too late")
}

/// Sleeps 20 times for `sleep`. Returns the lateness of the sleep that ended closest to its time.
pub(super) fn best_lateness(
    machine: &mut BareMachine,
    sleep: Micros,
) -> Result<Micros, &'static str> {
    let mut best_lateness = Micros(u64::MAX);
    for _ in 0..20 {
        let until = machine.now() + sleep;
        let mut sleeps = 0;
        while machine.now() < until {
            machine.idle(until);
            while let Some(frame) = machine.receive() {
                machine.give_back(frame);
            }
            machine.ring_doorbells();
            sleeps += 1;
            ensure(sleeps < 100, "the sleeps end at once")?;
        }
        best_lateness = best_lateness.min(machine.now().since(until));
    }
    Ok(best_lateness)
}
