//! Tests of the models: no call is lost, the counters match the work that was done, and the work
//! grows as in the papers.

use std::time::Duration;

use crate::contention::{contend, growth};
use crate::livelock::{Kind, offer};
use crate::queues::{self, EVENTS, Load, Scheduling};
use crate::scaling::{Machine, calls_in_a_period};
use crate::{Chain, Clocks, Contention, Costs, DevicePlace, Ran, Stage, Units, cores};

const BOTH: [Contention; 2] = [Contention::SoftwareQueue, Contention::SelfContinuation];
const PLACES: [DevicePlace; 2] = [DevicePlace::Apart, DevicePlace::OnAUnit];

fn costs(round_trip_micros: u64) -> Costs {
    Costs::counted(Clocks::from_micros(round_trip_micros))
}

#[test]
fn a_call_passes_every_thread_of_the_chain_in_order_and_once() {
    let mut chain = Chain::new(1, 1, Contention::SoftwareQueue, DevicePlace::Apart);
    assert!(chain.send(0));
    let mut passed = Vec::new();
    while let Some((frame, stage)) = chain.next_ready() {
        passed.push(stage);
        if let Ran::Requested(continuation) = chain.run(frame) {
            assert_eq!(chain.next_ready(), None, "no thread waits for a device");
            chain.completed(continuation);
        }
    }
    use Stage::{Device, Gate, Handler, Receiver, Semaphore, Sender, SystemCall};
    assert_eq!(passed, [Sender, Gate, SystemCall, Semaphore, Device, Handler, Receiver]);
    assert_eq!((chain.counts().done, chain.underway()), (1, 0));
}

#[test]
fn every_sent_call_completes_exactly_once() {
    for contention in BOTH {
        for place in PLACES {
            for (units, devices) in [(1, 1), (1, 3), (3, 1), (4, 4), (7, 3)] {
                let run = Units::run_batch(units, devices, 500, contention, place, costs(2));
                assert_eq!(
                    (run.counts().done, run.underway()),
                    (500, 0),
                    "{contention:?} {place:?} {units} {devices}"
                );
            }
        }
    }
}

#[test]
fn work_of_a_call_is_seven_threads_and_failed_attempts() {
    for contention in BOTH {
        for calls in [1, 2, 17, 200] {
            let work = contend(calls, contention, costs(2));
            assert_eq!(work.runs, 7 * work.calls + work.self_continuations);
        }
    }
}

#[test]
fn self_continuation_is_quadratic_and_software_queue_linear() {
    for calls in [5, 10, 20, 40, 60, 80, 320] {
        let n = calls as u64;
        // For each call that passes the gate, every waiting call runs once in vain.
        assert_eq!(
            contend(calls, Contention::SelfContinuation, costs(2)).self_continuations,
            n * (n - 1) / 2
        );
        assert_eq!(contend(calls, Contention::SoftwareQueue, costs(2)).self_continuations, 0);
    }
    let clocks = |contention, calls| contend(calls, contention, costs(2)).clocks.0;
    let slope =
        |contention| growth((1_000, clocks(contention, 1_000)), (2_000, clocks(contention, 2_000)));
    assert!((slope(Contention::SelfContinuation) - 2.0).abs() < 0.05);
    assert!((slope(Contention::SoftwareQueue) - 1.0).abs() < 0.01);
}

#[test]
fn a_device_works_on_one_request_at_a_time() {
    // The device handles the calls one after another. So 100 calls take 100 round trips, even with
    // many units.
    for place in PLACES {
        let run = Units::run_batch(8, 1, 100, Contention::SoftwareQueue, place, costs(6));
        assert!(run.now() >= Clocks::from_micros(600), "{:?}", run.now());
    }
}

#[test]
fn busy_time_of_units_does_not_exceed_the_elapsed_time() {
    for units in [1, 2, 5] {
        let run = Units::run_batch(
            units,
            3,
            300,
            Contention::SoftwareQueue,
            DevicePlace::OnAUnit,
            costs(4),
        );
        assert_eq!(run.busy().0, 300 * (7 * 200 + 4_000));
        assert!(run.busy().0 <= run.now().0 * units as u64);
    }
}

#[test]
fn throughput_grows_with_pairs_of_device_and_unit() {
    for round_trip in [0, 2, 4, 6] {
        let calls = |pairs: u32| {
            let contention = Contention::SoftwareQueue;
            let place = DevicePlace::OnAUnit;
            let costs = costs(round_trip);
            calls_in_a_period(Machine {
                devices: pairs,
                units: pairs as usize,
                contention,
                place,
                costs,
            }) as f64
        };
        for pairs in [2, 3, 4] {
            assert!(
                calls(pairs) >= 0.9 * f64::from(pairs) * calls(1),
                "{pairs} pairs, {round_trip} µs"
            );
        }
    }
}

#[test]
fn throughput_is_the_most_calls_that_fit_in_the_period() {
    let costs = costs(2);
    let (contention, place) = (Contention::SoftwareQueue, DevicePlace::Apart);
    let most =
        calls_in_a_period(Machine { devices: 2, units: 2, contention, place, costs }) as usize;
    let end = |calls| Units::run_batch(2, 2, calls, contention, place, costs).now();
    assert!(end(most) <= Clocks(100_000) && end(most + 1) > Clocks(100_000));
}

#[test]
fn every_core_completes_calls() {
    let done = cores::calls_on(2, Duration::from_micros(1), Duration::from_millis(20));
    assert_eq!(done.len(), 2);
    assert!(done.iter().all(|calls| *calls > 0), "{done:?}");
}

#[test]
fn every_offered_call_is_done_lost_or_left() {
    for kind in [Kind::Turns, Kind::Interrupts, Kind::SelfContinuation] {
        for per_second in [10_000, 600_000, 2_000_000, 50_000_000] {
            let outcome = offer(kind, per_second, Clocks(20_000_000), 7);
            assert_eq!(
                outcome.offered,
                outcome.done + outcome.lost + outcome.left,
                "{kind:?} {per_second}"
            );
        }
    }
}

#[test]
fn useful_work_stays_flat_past_saturation() {
    let done = |kind, per_second| offer(kind, per_second, Clocks(50_000_000), 1).done as f64;
    let saturated = done(Kind::Turns, 700_000);
    for per_second in [1_000_000, 5_000_000, 20_000_000, 100_000_000] {
        assert!(done(Kind::Turns, per_second) >= 0.99 * saturated, "{per_second}");
    }
    // The other kinds complete as much under light load, and almost no calls under heavy load.
    for kind in [Kind::Interrupts, Kind::SelfContinuation] {
        assert!(done(kind, 400_000) >= 0.99 * done(Kind::Turns, 400_000), "{kind:?}");
        assert!(done(kind, 5_000_000) < 0.05 * saturated, "{kind:?}");
    }
}

const LOAD: Load = Load {
    threads: 20,
    emails: 2_000,
    silent: 0,
    turnaround: Clocks::from_micros(200),
    linger: Clocks::from_micros(5_000),
    handle: Clocks(6_000),
    step: Clocks(100),
    seed: 3,
};

#[test]
fn either_scheduling_takes_every_email_and_ends_every_task() {
    for scheduling in [Scheduling::OneQueue, Scheduling::ResumeAndDelay] {
        for (threads, silent) in [(1, 0), (20, 0), (20, 50), (300, 1)] {
            let outcome = queues::run(scheduling, Load { threads, silent, ..LOAD });
            assert_eq!(outcome.emails, 2_000);
            // The useful steps of an email: one for each event, and one for the end of the task.
            assert_eq!(
                outcome.steps - outcome.in_vain,
                2_000 * u64::from(EVENTS + 1),
                "{scheduling:?} {threads}"
            );
        }
    }
}

#[test]
fn resume_and_delay_queue_waste_no_step_on_silent_clients() {
    let alone = queues::run(Scheduling::ResumeAndDelay, LOAD);
    let among_silent = queues::run(Scheduling::ResumeAndDelay, Load { silent: 5_000, ..LOAD });
    assert_eq!((alone.in_vain, among_silent.in_vain), (0, 0));
    assert_eq!((alone.steps, alone.elapsed), (among_silent.steps, among_silent.elapsed));
    let polled = queues::run(Scheduling::OneQueue, LOAD);
    let polled_among_silent = queues::run(Scheduling::OneQueue, Load { silent: 5_000, ..LOAD });
    assert!(polled.in_vain > polled.emails);
    assert!(polled_among_silent.elapsed.0 > 2 * polled.elapsed.0);
}

#[test]
fn skipped_rounds_count_as_if_each_step_ran() {
    // With one client, only steps in vain happen between two events. So the turnarounds consist of
    // steps in vain, except for a partial step at each end.
    let load = Load { threads: 1, emails: 50, linger: Clocks(0), ..LOAD };
    let outcome = queues::run(Scheduling::OneQueue, load);
    let idle = outcome.elapsed.0 - 50 * u64::from(EVENTS) * (load.handle.0 + load.step.0);
    let most = idle / load.step.0;
    // Before each connection no task exists. The queue is empty, and no step happens.
    assert!(
        outcome.in_vain <= most && outcome.in_vain * 10 >= most * 8,
        "{} of {most}",
        outcome.in_vain
    );
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for scheduling in [Scheduling::OneQueue, Scheduling::ResumeAndDelay] {
        assert_eq!(queues::run(scheduling, LOAD), queues::run(scheduling, LOAD));
        assert_ne!(
            queues::run(scheduling, LOAD),
            queues::run(scheduling, Load { seed: 4, ..LOAD })
        );
    }
    assert_eq!(
        offer(Kind::Turns, 900_000, Clocks(9_000_000), 5),
        offer(Kind::Turns, 900_000, Clocks(9_000_000), 5)
    );
}
