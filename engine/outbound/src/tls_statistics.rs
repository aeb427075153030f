//! TLS statistics: how often TLS succeeded with the hosts that accept mail, and why it failed
//! otherwise. Administrators see them with the queue.
//!
//! A connection counts once, when its first message is over, if the conversation has reached the
//! point where TLS begins. If TLS fails, the second connection in plaintext is not counted. A host
//! that must not be called because of its domain's policy counts as a failure when its turn comes.
//! A policy that could not be fetched also counts as a failure. Smarthosts are not counted: the
//! operator has configured their TLS.
//!
//! Invariant: the statistics are only in memory.

use alloc::string::ToString;
use alloc::vec::Vec;

use machine::UnixTime;
use relay::tally::{Counted, Rule, Shortfall};

use super::questions::TlsCount;
use super::state::Queue;

impl Queue {
    /// Counts a TLS result with a host of this domain.
    pub(super) fn count_tls(
        &mut self,
        domain: &str,
        rule: Rule,
        result: Result<(), Shortfall>,
        wall: UnixTime,
    ) {
        self.tally.count(domain, rule, result, day(wall));
    }

    /// The statistics of this core for today and yesterday.
    pub(super) fn tls_counts(&self, wall: UnixTime) -> Vec<TlsCount> {
        let row = |counted: Counted<'_>| TlsCount {
            day: counted.day,
            domain: counted.domain.to_string(),
            policy: counted.rule.name(),
            failure: counted.result.err().map(Shortfall::name),
            count: counted.count,
        };
        self.tally.counted(day(wall)).map(row).collect()
    }
}

/// The number of a day since 1970-01-01.
fn day(time: UnixTime) -> u64 {
    time.seconds() / 86_400
}
