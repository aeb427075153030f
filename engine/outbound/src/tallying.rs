//! How often TLS was had with the hosts that take mail, and why not: counted as it comes, and told to administrators with the queue.
//!
//! A connection counts once, when its first letter is over, if it came so far that there would be TLS; one that goes on in the clear since its TLS has failed is the same. A host whose turn has come and that
//! may not be called for what its domain demands counts as one with which it failed; and so does a policy that could not be had. Smarthosts are not counted: whoever runs the machine has said what they speak.
//!
//! Invariant: what was counted is in memory alone.

use alloc::string::ToString;
use alloc::vec::Vec;

use machine::UnixTime;
use relay::tally::{Counted, Rule, Shortfall};

use super::questions::TlsCount;
use super::state::Queue;

impl Queue {
    /// This came of TLS with a host of this domain's.
    pub(super) fn count_tls(
        &mut self,
        domain: &str,
        rule: Rule,
        came: Result<(), Shortfall>,
        wall: UnixTime,
    ) {
        self.tally.count(domain, rule, came, day(wall));
    }

    /// What this core has counted today and yesterday.
    pub(super) fn tls_counts(&self, wall: UnixTime) -> Vec<TlsCount> {
        let told = |counted: Counted<'_>| TlsCount {
            day: counted.day,
            domain: counted.domain.to_string(),
            policy: counted.rule.name(),
            failure: counted.came.err().map(Shortfall::name),
            count: counted.count,
        };
        self.tally.counted(day(wall)).map(told).collect()
    }
}

/// The number of a day since 1970.
fn day(time: UnixTime) -> u64 {
    time.seconds() / 86_400
}
