//! Tests of the stored policies.

use super::*;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use dns::{Answer, Record};

fn record(id: u32) -> Record {
    Record::Text(format!("v=STSv1; id={id};").into_bytes().into())
}

fn id() -> PolicyId {
    announced(&[record(1)]).expect("the record announces a policy")
}

fn policy(hosts: usize, max_age_seconds: u64) -> StsPolicy {
    let hosts: String = (0..hosts).map(|number| format!("mx: mx{number}.a.test\r\n")).collect();
    let text = format!("version: STSv1\r\nmode: enforce\r\n{hosts}max_age: {max_age_seconds}\r\n");
    StsPolicy::read(text.as_bytes()).expect("the text is a policy")
}

fn fetched(id: PolicyId, policy: Option<StsPolicy>) -> Fetched {
    Fetched { id, policy: policy.map(Arc::new), at: Instant::START }
}

/// A full table of domains, each with a policy for a year.
fn full() -> Policies {
    let mut policies = Policies::default();
    for name in 0..POLICIES_MAX as u64 {
        policies.learn(name, &fetched(id(), Some(policy(1, 31_557_600))));
    }
    assert_eq!(policies.known.len(), POLICIES_MAX);
    policies
}

#[test]
fn new_policy_is_stored_in_a_full_table() {
    for policy in [None, Some(policy(1, 60))] {
        let mut policies = full();
        policies.learn(u64::MAX, &fetched(id(), policy));
        assert!(policies.of(u64::MAX).is_some());
        assert_eq!(policies.known.len(), POLICIES_MAX);
    }
}

/// The domains of an external client have policies for a year. The domains that our users write to
/// have short policies.
#[test]
fn many_new_domains_evict_no_domain_in_use() {
    let mut policies = Policies::default();
    let ours = 1_000..1_100;
    for name in ours.clone() {
        policies.learn(name, &fetched(id(), Some(policy(1, 86_400))));
        (0..2).for_each(|_| assert!(policies.used(name, Instant::START).is_some()));
    }
    for name in 10_000..12_000 {
        policies.learn(name, &fetched(id(), Some(policy(1, 31_557_600))));
        assert!(policies.used(name, Instant::START).is_some());
    }
    assert!(ours.clone().all(|name| policies.of(name).is_some()));
}

#[test]
fn domains_without_recent_connections_are_evicted() {
    let mut policies = Policies::default();
    let year = Some(policy(1, 31_557_600));
    for name in 0..POLICIES_MAX as u64 {
        policies.learn(name, &fetched(id(), year.clone()));
        (0..USES_MAX).for_each(|_| assert!(policies.used(name, Instant::START).is_some()));
    }
    let later = Instant::START + Micros::from_secs(5 * HALF_LIFE.as_secs());
    assert!(policies.used(7, later).is_some());
    for name in 10_000..10_000 + POLICIES_MAX as u64 - 1 {
        policies.learn(name, &Fetched { at: later, ..fetched(id(), year.clone()) });
        assert!(policies.used(name, later).is_some());
    }
    assert!((0..POLICIES_MAX as u64).all(|name| policies.of(name).is_some() == (name == 7)));
}

#[test]
fn an_expired_policy_is_evicted_first() {
    let mut policies = full();
    policies.learn(7, &fetched(id(), Some(policy(1, 60))));
    (0..USES_MAX).for_each(|_| assert!(policies.used(7, Instant::START).is_some()));
    let later = Instant::START + Micros::from_secs(60);
    policies.learn(u64::MAX, &Fetched { at: later, ..fetched(id(), Some(policy(1, 86_400))) });
    assert!(policies.of(7).is_none());
    assert_eq!(policies.known.len(), POLICIES_MAX);
}

#[test]
fn large_policies_do_not_evict_all_others() {
    let mut policies = full();
    for number in 0..16 {
        policies.learn(u64::MAX - number, &fetched(id(), Some(policy(1_500, 31_557_600))));
    }
    assert!((0..POLICIES_MAX as u64).all(|name| policies.of(name).is_some()));
}

#[test]
fn oversized_policy_does_not_replace_the_earlier_one() {
    let (mut policies, small, mut knowledge) =
        (Policies::default(), policy(1, 60), Knowledge::default());
    policies.learn(7, &fetched(id(), Some(small.clone())));
    let name = Name::parse("_mta-sts.a.test").expect("the text is a name");
    let answer = Answer { records: vec![record(2)], exists: true, is_authenticated: false };
    knowledge.learn(Question { name, kind: RecordKind::Text }, Ok(answer));
    let second = announced(&[record(2)]).expect("the record announces a policy");
    policies.learn(7, &fetched(second.clone(), Some(policy(1_500, 31_557_600))));
    let known = policies.of(7);
    let lookup = look_up(known.as_deref(), "a.test", &knowledge, Instant::START)
        .expect("the answer is known");
    assert!(
        matches!(lookup, PolicyLookup::Fetch(id, Some(known)) if id == second && *known == small)
    );
}
