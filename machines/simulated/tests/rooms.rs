//! Tests that two runs of a scenario are equal. These tests also run some rooms, for developers
//! that run only the unit tests.

use machine::{Instant, Micros};

use simulated::room::{FAULTS, Fault, Scenario, Trace, run_scenario};

/// The scenario of `seed`, shortened to two seconds.
fn short(seed: u64) -> Scenario {
    Scenario { until: Instant::START + Micros::from_secs(2), ..Scenario::of_seed(seed) }
}

#[test]
fn the_same_seed_repeats_the_same_run() {
    for seed in 1..4 {
        let scenario = short(seed);
        assert_eq!(run_scenario(&scenario, Trace::Off), run_scenario(&scenario, Trace::Off));
    }
    assert_ne!(
        run_scenario(&short(1), Trace::Off).digest,
        run_scenario(&short(2), Trace::Off).digest
    );
}

#[test]
fn runs_repeat_with_any_number_of_cores() {
    let mut digests = Vec::new();
    for cores in [1, 2, 5, 8] {
        let scenario = Scenario { cores, ..short(4) };
        let report = run_scenario(&scenario, Trace::Off);
        assert_eq!(report, run_scenario(&scenario, Trace::Off), "{cores} cores");
        assert!(!digests.contains(&report.digest), "{cores} cores");
        digests.push(report.digest);
    }
}

#[test]
fn events_left_out_of_a_scenario_do_not_happen() {
    let whole = short(7);
    let faults = FAULTS.into_iter().fold(whole.faults, |faults, fault| faults.without(fault));
    let quiet = Scenario { faults, ..whole.clone() };
    assert_eq!(run_scenario(&quiet, Trace::Off).counts.cuts, 1, "only the one at the end");
    let empty = Scenario { left_out: (0..whole.events()).collect(), ..quiet };
    assert_eq!(run_scenario(&empty, Trace::Off).counts.deleted, 0);
}

#[test]
fn a_fault_is_found_by_its_name() {
    assert_eq!(Fault::named("cuts-in-a-row"), Some(Fault::CutsInARow));
    assert!(FAULTS.into_iter().all(|fault| Fault::named(&fault.to_string()) == Some(fault)));
    assert_eq!(Fault::named("luck"), None);
}
