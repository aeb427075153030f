//! Tests of what is kept of policies.

use super::*;
use alloc::format;
use alloc::string::String;
use dns::Record;

fn id() -> PolicyId {
    announced(&[Record::Text(b"v=STSv1; id=1;".as_slice().into())]).expect("it announces one")
}

fn policy(hosts: usize, max_age_seconds: u64) -> Policy {
    let hosts: String = (0..hosts).map(|number| format!("mx: mx{number}.a.test\r\n")).collect();
    let text = format!("version: STSv1\r\nmode: enforce\r\n{hosts}max_age: {max_age_seconds}\r\n");
    Policy::read(text.as_bytes()).expect("it is one")
}

/// As many domains as are kept, each for a year.
fn full() -> Policies {
    let mut policies = Policies::default();
    for number in 0..POLICIES_MAX {
        policies.learn(&format!("{number}.test"), id(), Some(&policy(1, 31_557_600)), Instant::START);
    }
    assert_eq!(policies.known.len(), POLICIES_MAX);
    policies
}

#[test]
fn what_was_just_learnt_is_kept_in_a_full_table() {
    for fetched in [None, Some(&policy(1, 60))] {
        let mut policies = full();
        policies.learn("new.test", id(), fetched, Instant::START);
        assert!(policies.known.contains_key("new.test"));
        assert_eq!(policies.known.len(), POLICIES_MAX);
    }
}

#[test]
fn few_domains_with_large_policies_push_out_no_others() {
    let mut policies = full();
    let large = policy(1_500, 31_557_600);
    for number in 0..16 {
        policies.learn(&format!("{number}.large.test"), id(), Some(&large), Instant::START);
    }
    assert!((0..POLICIES_MAX).all(|number| policies.known.contains_key(&*format!("{number}.test"))));
}
