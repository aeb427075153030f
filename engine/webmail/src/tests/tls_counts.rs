//! Tests of TLS statistics.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use machine::UnixTime;

use outbound::TlsCount;

use crate::TlsRow;

/// Noon of the eighth day.
const NOW: UnixTime = UnixTime::from_seconds(8 * 86_400 + 43_200);

fn count(
    day: u64,
    domain: &str,
    policy: &'static str,
    failure: Option<&'static str>,
    count: u32,
) -> TlsCount {
    TlsCount { day, domain: domain.into(), policy, failure, count }
}

fn rows(counts: Vec<TlsCount>) -> Vec<String> {
    let row = |row: TlsRow| {
        let TlsRow { domain, day, policy, sessions, failures } = row;
        format!("{domain} {day} {policy} {sessions} {failures}")
    };
    TlsRow::all(counts, NOW).into_iter().map(row).collect()
}

#[test]
fn counts_of_cores_are_summed_and_sorted_by_failures() {
    let (one, other) = ("certificate-expired", "starttls-not-supported");
    let rows = rows(
        [
            count(8, "a.test", "no-policy-found", None, 90),
            count(8, "b.test", "sts", None, 2),
            count(8, "b.test", "sts", Some(one), 3),
            count(7, "c.test", "tlsa", Some(other), 4),
            count(8, "", "no-policy-found", None, 1),
            // These are the counts of another core.
            count(8, "a.test", "no-policy-found", None, 10),
            count(8, "b.test", "sts", Some(one), 1),
            count(8, "b.test", "sts", Some(other), 1),
            count(7, "b.test", "sts", Some(one), 1),
        ]
        .into(),
    );
    assert_eq!(
        rows,
        [
            "b.test today sts 2 4 certificate-expired, 1 starttls-not-supported",
            "c.test yesterday tlsa 0 4 starttls-not-supported",
            "b.test yesterday sts 0 1 certificate-expired",
            "a.test today no-policy-found 100 0",
            "others today no-policy-found 1 0",
        ]
    );
}

#[test]
fn page_shows_only_the_rows_with_most_failures() {
    let rows = rows(
        (0..100)
            .map(|number| count(8, &format!("{number}.test"), "sts", Some("x"), number))
            .collect(),
    );
    assert_eq!(
        (rows.len(), rows[0].as_str(), rows[19].as_str()),
        (20, "99.test today sts 0 99 x", "80.test today sts 0 80 x")
    );
}
