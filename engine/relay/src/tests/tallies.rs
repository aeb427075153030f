//! TLS statistics.

use std::collections::BTreeSet;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use crate::tally::{Counted, DOMAINS_MAX, OTHERS, Rule, Shortfall, Tally};

fn lines(tally: &Tally, today: u64) -> Vec<String> {
    let line = |counted: Counted<'_>| {
        let Counted { day, domain, rule, result, count } = counted;
        let result = result.err().map_or("good", Shortfall::name);
        format!("{day} {domain} {} {result} {count}", rule.name())
    };
    tally.counted(today).map(line).collect()
}

#[test]
fn tls_results_are_counted_by_day_domain_policy_and_reason() {
    let mut tally = Tally::default();
    assert_eq!(tally.counted(7).count(), 0);
    for (domain, rule, result) in [
        ("b.test", Rule::Sts, Err(Shortfall::Expired)),
        ("a.test", Rule::None, Ok(())),
        ("a.test", Rule::None, Err(Shortfall::NoStartTls)),
        ("a.test", Rule::None, Ok(())),
        ("a.test", Rule::Tlsa, Ok(())),
        ("b.test", Rule::Sts, Err(Shortfall::OtherName)),
    ] {
        tally.count(domain, rule, result, 7);
    }
    let wanted = [
        "7 a.test tlsa good 1",
        "7 a.test no-policy-found good 2",
        "7 a.test no-policy-found starttls-not-supported 1",
        "7 b.test sts certificate-host-mismatch 1",
        "7 b.test sts certificate-expired 1",
    ];
    assert_eq!(lines(&tally, 7), wanted);
}

#[test]
fn only_today_and_yesterday_are_counted() {
    let mut tally = Tally::default();
    let count = |tally: &mut Tally, day| tally.count("a.test", Rule::None, Ok(()), day);
    count(&mut tally, 7);
    count(&mut tally, 8);
    assert_eq!(
        lines(&tally, 8),
        ["7 a.test no-policy-found good 1", "8 a.test no-policy-found good 1"]
    );
    assert_eq!(
        lines(&tally, 9),
        ["8 a.test no-policy-found good 1"],
        "even if nothing was counted since"
    );
    assert_eq!(lines(&tally, 10), [""; 0]);
    count(&mut tally, 9);
    assert_eq!(lines(&tally, 8), ["8 a.test no-policy-found good 1"], "day 7 is forgotten");
    count(&mut tally, 3);
    assert_eq!(lines(&tally, 9), [""; 0], "the clock was wrong");
    assert_eq!(lines(&tally, 3), ["3 a.test no-policy-found good 1"]);
}

#[test]
fn domains_beyond_the_limit_count_as_others() {
    let mut tally = Tally::default();
    for number in 0..1000 {
        tally.count(&format!("{number:04}.test"), Rule::None, Ok(()), 7);
    }
    tally.count("0000.test", Rule::None, Ok(()), 7);
    let of = |domain: &str| -> Vec<u32> {
        tally
            .counted(7)
            .filter(|counted| counted.domain == domain)
            .map(|counted| counted.count)
            .collect()
    };
    let domains: BTreeSet<String> =
        tally.counted(7).map(|counted| counted.domain.to_string()).collect();
    assert_eq!(domains.len(), DOMAINS_MAX + 1);
    assert_eq!(of(OTHERS), [1000 - DOMAINS_MAX as u32]);
    assert_eq!(of("0000.test"), [2]);
    tally.count("late.test", Rule::Sts, Err(Shortfall::Failed), 8);
    assert_eq!(
        tally.counted(8).filter(|counted| counted.domain == "late.test").count(),
        1,
        "each day has its own limit"
    );
}
