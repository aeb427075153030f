//! Statistics about TLS with other servers. Merges the counts of all cores into rows of the queue
//! page. A row has the counts of one domain, one day (UTC) and one policy.
//!
//! Implements: RFC 8460 sections 4.2 and 4.3 (the names of policies and failures).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use machine::UnixTime;
use outbound::TlsCount;

use crate::moments::day;

/// The maximum number of rows on a page.
const ROWS: usize = 20;

/// A row, as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsRow {
    /// The domain of the hosts.
    pub domain: String,
    /// The day: today or yesterday.
    pub day: &'static str,
    /// The policy that applied.
    pub policy: &'static str,
    /// The number of sessions with TLS.
    pub sessions: u64,
    /// The numbers of failures, with their reasons.
    pub failures: String,
}

/// The sums of all cores for a row.
#[derive(Default)]
struct TlsSum {
    sessions: u64,
    failed: u64,
    failures: BTreeMap<&'static str, u64>,
}

impl TlsRow {
    /// The rows for these counts, sorted by failures in descending order.
    pub(crate) fn all(counts: Vec<TlsCount>, now: UnixTime) -> Vec<TlsRow> {
        let mut sums: BTreeMap<(String, u64, &str), TlsSum> = BTreeMap::new();
        for TlsCount { day, domain, policy, failure, count } in counts {
            let (sum, count) = (sums.entry((domain, day, policy)).or_default(), u64::from(count));
            match failure {
                None => sum.sessions += count,
                Some(failure) => {
                    sum.failed += count;
                    *sum.failures.entry(failure).or_default() += count;
                }
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, sum)| core::cmp::Reverse((sum.failed, sum.sessions)));
        sums.truncate(ROWS);
        sums.into_iter().map(|(of, sum)| TlsRow::of(of, &sum, day(now))).collect()
    }

    fn of((domain, day, policy): (String, u64, &'static str), sum: &TlsSum, today: u64) -> TlsRow {
        let failures: Vec<String> =
            sum.failures.iter().map(|(failure, count)| format!("{count} {failure}")).collect();
        TlsRow {
            domain: if domain.is_empty() { "others".to_string() } else { domain },
            day: if day == today { "today" } else { "yesterday" },
            policy,
            sessions: sum.sessions,
            failures: if failures.is_empty() { "0".to_string() } else { failures.join(", ") },
        }
    }
}
