//! Rooms are lived through the same way whenever they are, and some of them here, for whoever runs the unit tests alone.

use machine::{Instant, Micros};

use simulated::room::{FAULTS, Fault, Scenario, Trace, live};

/// The scenario of `seed`, with little time.
fn short(seed: u64) -> Scenario {
    Scenario { until: Instant::START + Micros::from_secs(2), ..Scenario::of_seed(seed) }
}

#[test]
fn the_same_seed_is_the_same_life() {
    for seed in 1..4 {
        let scenario = short(seed);
        assert_eq!(live(&scenario, Trace::Off), live(&scenario, Trace::Off));
    }
    assert_ne!(live(&short(1), Trace::Off).digest, live(&short(2), Trace::Off).digest);
}

#[test]
fn machines_of_any_number_of_cores_live_the_same_life_again() {
    let mut digests = Vec::new();
    for cores in [1, 2, 5, 8] {
        let scenario = Scenario { cores, ..short(4) };
        let report = live(&scenario, Trace::Off);
        assert_eq!(report, live(&scenario, Trace::Off), "{cores} cores");
        assert!(!digests.contains(&report.digest), "{cores} cores");
        digests.push(report.digest);
    }
}

#[test]
fn what_is_left_out_of_a_scenario_does_not_happen() {
    let whole = short(7);
    let faults = FAULTS.into_iter().fold(whole.faults, |faults, fault| faults.without(fault));
    let quiet = Scenario { faults, ..whole.clone() };
    assert_eq!(live(&quiet, Trace::Off).counts.cuts, 1, "only the one at the end");
    let empty = Scenario { left_out: (0..whole.deeds()).collect(), ..quiet };
    assert_eq!(live(&empty, Trace::Off).counts.deleted, 0);
}

#[test]
fn a_fault_is_found_by_its_name() {
    assert_eq!(Fault::named("cuts-in-a-row"), Some(Fault::CutsInARow));
    assert!(FAULTS.into_iter().all(|fault| Fault::named(&fault.to_string()) == Some(fault)));
    assert_eq!(Fault::named("luck"), None);
}
