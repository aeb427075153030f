//! Tests of the fairness between clients, and of jobs that other cores compute.

use super::*;
use alloc::string::ToString;
use core::net::Ipv4Addr;
use machine::Micros;
use tasks::{EntryPoint, FrameId};

const NOW: Instant = Instant::START;
const HASH: Micros = Micros::from_millis(20);

fn jobs_of(core: u8, cores: u8) -> Compute {
    Compute::new(CoreId(core), cores, Arc::from([]))
}

fn at(index: u32) -> Continuation {
    Continuation { frame: FrameId::new(index, 0), entry: EntryPoint(0) }
}

fn address(network: u8, host: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, network, host))
}

/// Requests a hash: a client at `address` has given a password for the account `name`.
fn ask(jobs: &mut Compute, index: u32, address: IpAddr, name: &str) -> JobNumber {
    let applicant = Applicant { address, name: Some(name.to_string()) };
    jobs.ask_hash(at(index), applicant, HashTask::Spend { password: Vec::new() })
}

/// Computes a hash. Returns the index of the session that requested it.
fn compute(jobs: &mut Compute, throttle: &Throttle) -> Option<usize> {
    let (waiting, _) = jobs.next_hash(throttle, NOW, true)?;
    jobs.computed(waiting, JobResult::Wrong);
    jobs.next_done().map(|done| done.continuation.frame.index())
}

/// Makes 100 clients of one network fail to log in to one account, and requests a hash for each.
/// Returns the throttle with these failures.
fn flood(jobs: &mut Compute) -> Throttle {
    let mut throttle = Throttle::new([1; 16]);
    for host in 0..100 {
        throttle.failure_known(address(1, host), "ada", NOW);
        ask(jobs, u32::from(host), address(1, host), "ada");
    }
    throttle
}

#[test]
fn a_client_without_failures_does_not_wait_for_a_flood() {
    let mut jobs = jobs_of(0, 1);
    let throttle = flood(&mut jobs);
    ask(&mut jobs, 200, address(2, 1), "grace");
    ask(&mut jobs, 201, address(3, 1), "ada");
    let turns: Vec<usize> = (0..4).filter_map(|_| compute(&mut jobs, &throttle)).collect();
    assert_eq!(turns, [200, 201, 0, 1], "other networks come first, even for the attacked account");
}

#[test]
fn every_fourth_hash_is_the_one_that_has_waited_longest() {
    let mut jobs = jobs_of(0, 1);
    let throttle = flood(&mut jobs);
    let mut turns = Vec::new();
    for index in 200..208 {
        ask(&mut jobs, index, address(2, index as u8), "grace");
        turns.extend(compute(&mut jobs, &throttle));
    }
    assert_eq!(turns, [200, 201, 202, 0, 203, 204, 205, 1]);
}

#[test]
fn a_busy_core_hashes_half_of_its_time() {
    let mut jobs = jobs_of(0, 1);
    let throttle = flood(&mut jobs);
    let (mut now, mut hashed) = (NOW, Micros(0));
    let end = NOW + Micros::from_secs(1);
    while now < end {
        match jobs.next_hash(&throttle, now, false) {
            Some((waiting, _)) => {
                let began = now;
                now = now + HASH;
                hashed = Micros(hashed.0 + HASH.0);
                jobs.rest(began, now);
                jobs.computed(waiting, JobResult::Wrong);
            }
            None => now = now + Micros::from_millis(1),
        }
    }
    assert_eq!(hashed, Micros::from_millis(500));
    assert!(jobs.next_hash(&throttle, now, true).is_some(), "an idle core does not rest");
}

#[test]
fn a_core_reports_when_it_has_rested() {
    let mut jobs = jobs_of(0, 1);
    assert_eq!(jobs.next_deadline(), None);
    let throttle = flood(&mut jobs);
    let (waiting, _) = jobs.next_hash(&throttle, NOW, false).unwrap();
    jobs.rest(NOW, NOW + HASH);
    jobs.computed(waiting, JobResult::Wrong);
    assert_eq!(jobs.next_deadline(), Some(NOW + HASH + HASH));
}

/// Core `own` requests `count` hashes. Returns the cores that compute them, each with its number of
/// hashes.
fn cores_asked(own: u8, cores: u8, count: u32) -> Vec<(usize, usize)> {
    let mut jobs = jobs_of(own, cores);
    for index in 0..count {
        ask(&mut jobs, index, address(1, 1), "ada");
    }
    let mut computed: BTreeMap<usize, usize> = BTreeMap::new();
    while let Some((core, _)) = jobs.next_message() {
        *computed.entry(core.0.into()).or_default() += 1;
    }
    if !jobs.hashes.is_empty() {
        computed.insert(own.into(), jobs.hashes.len());
    }
    computed.into_iter().collect()
}

#[test]
fn the_first_of_several_cores_computes_no_hash() {
    assert_eq!(cores_asked(0, 1, 9), [(0, 9)]);
    assert_eq!(cores_asked(0, 2, 9), [(1, 9)]);
    assert_eq!(cores_asked(1, 2, 9), [(1, 9)]);
    assert_eq!(cores_asked(0, 4, 9), [(1, 3), (2, 3), (3, 3)]);
    assert_eq!(cores_asked(2, 4, 9), [(1, 3), (2, 3), (3, 3)]);
    assert_eq!(cores_asked(2, 4, 1), [(2, 1)], "an idle core computes its own hash");
}

#[test]
fn the_first_of_several_cores_computes_no_signature() {
    let mut cores = [jobs_of(0, 2), jobs_of(1, 2)];
    let number = cores[0].ask_signature(at(3), b"signed".to_vec(), 1);
    assert!(!cores[0].compute_signature());
    assert_eq!(carry(&mut cores), []);
    let job = &cores[1].signatures[0];
    assert_eq!((job.signed.as_slice(), job.key), (&b"signed"[..], 1));
    assert!(cores[1].compute_signature());
    assert_eq!(carry(&mut cores), [FrameId::new(3, 0)]);
    assert!(matches!(cores[0].take_result(number), Some(JobResult::Signed(None))));
}

#[test]
fn a_signature_does_not_wait_for_hashes() {
    let mut jobs = jobs_of(0, 1);
    flood(&mut jobs);
    jobs.ask_signature(at(1), Vec::new(), 0);
    assert!(jobs.compute_signature());
}

/// Delivers the messages of two cores to each other. Returns the sessions that are resumed.
fn carry(cores: &mut [Compute; 2]) -> Vec<FrameId> {
    let mut resumed = Vec::new();
    for from in [0, 1] {
        while let Some((core, message)) = cores[from].next_message() {
            let to = &mut cores[usize::from(core.0)];
            to.message_arrived(CoreId(from as u8), message);
            resumed.extend(to.next_done().map(|done| done.continuation.frame));
        }
    }
    resumed
}

#[test]
fn a_hash_of_another_core_returns_only_to_its_job() {
    let throttle = Throttle::new([1; 16]);
    let mut cores = [jobs_of(0, 2), jobs_of(1, 2)];
    let [early, wanted] = [0, 1].map(|_| ask(&mut cores[0], 7, address(1, 1), "ada"));
    assert_eq!(carry(&mut cores), []);
    // The session abandons its first job during the computation, and requests another.
    let (waiting, _) = cores[1].next_hash(&throttle, NOW, true).unwrap();
    cores[0].abandon(early);
    cores[1].computed(waiting, JobResult::Wrong);
    assert_eq!(carry(&mut cores), [], "no frame waits for the abandoned job");
    let (waiting, _) = cores[1].next_hash(&throttle, NOW, true).unwrap();
    cores[1].computed(waiting, JobResult::Wrong);
    assert_eq!(carry(&mut cores), [FrameId::new(7, 0)]);
    assert!(cores[0].take_result(early).is_none());
    assert!(cores[0].take_result(wanted).is_some());
    let unwanted = ask(&mut cores[0], 7, address(1, 1), "ada");
    carry(&mut cores);
    cores[0].abandon(unwanted);
    carry(&mut cores);
    assert!(
        cores[1].next_hash(&throttle, NOW, true).is_none(),
        "the abandoned job is not computed"
    );
    assert!(cores[0].away.is_empty() && cores[0].results.is_empty());
}
