//! The MTA-STS policies of domains, as all cores of a machine know them. A policy names the hosts
//! that accept a domain's mail. The domain's web server serves the policy over TLS.
//!
//! An enforced policy applies where no certificate is published under DNSSEC. Where an enforced
//! policy applies, nothing is sent to a host that the policy does not allow, or that has no
//! certificate valid for its name.
//!
//! Invariants:
//! - A known policy applies until it expires or another version was fetched. What the domain
//!   announces, and whether its web server can be reached, does not matter. So an attacker can only
//!   prevent the first fetch.
//! - After a failed fetch, no other fetch is made for the time [`PAUSE`].
//! - At most [`POLICIES_MAX`] domains are known, with at most [`BYTES_MAX`] in total. An expired
//!   policy is evicted first, then the policy with the fewest connections. The policy that was just
//!   stored is never evicted. Connections are counted up to [`USES_MAX`]. Among policies with equal
//!   counts, the least recently used one is evicted, whatever its remaining time. So a client that
//!   causes one message to each of many domains evicts no domain to which our users write.
//! - A policy of more than [`KEPT_BYTES_MAX`] is not stored, so a few domains cannot evict all
//!   others. If a new version is too large, the earlier version stays.
//!
//! Implements: RFC 8461 sections 3.3, 5 and 5.1.

#[cfg(test)]
mod tests;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use dns::{Knowledge, Missing, Name, Question, RecordKind};
use machine::{Instant, Micros};

use crate::sts::{PolicyId, StsPolicy, announced};

const POLICIES_MAX: usize = 512;
const BYTES_MAX: usize = 1 << 20;
/// The largest policy that is stored: hundreds of hosts.
const KEPT_BYTES_MAX: usize = BYTES_MAX / 64;

/// The greatest count of connections for a policy. A domain that our users write to soon reaches a
/// higher count than a domain to which a client has made us write once.
const USES_MAX: u8 = 16;

/// The time without a connection after which a count halves.
const HALF_LIFE: Micros = Micros::from_secs(7 * 24 * 3600);

/// The time after a failed fetch in which no other fetch is made.
const PAUSE: Micros = Micros::from_secs(300);

/// The known policies of domains, by keyed hashes of the domains' names.
#[derive(Default)]
pub struct Policies {
    known: BTreeMap<u64, PolicyRow>,
}

/// The knowledge about one domain's policy, and how often it is used.
struct PolicyRow {
    known: Arc<KnownPolicy>,
    /// The number of connections for which the policy was used.
    uses: u8,
    last_use: Instant,
}

impl PolicyRow {
    /// The number of uses that still count.
    fn uses_at(&self, now: Instant) -> u8 {
        let halvings = now.since(self.last_use).as_secs() / HALF_LIFE.as_secs();
        self.uses >> halvings.min(7)
    }
}

/// The knowledge about one domain's policy: a policy, a failed fetch, or both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownPolicy {
    policy: Option<(PolicyId, Arc<StsPolicy>)>,
    /// The end of the policy's validity. If no policy is known: the end of the pause after the last
    /// fetch.
    until: Instant,
    /// No fetch is made before this time.
    pause: Instant,
}

/// The result of a fetch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fetched {
    /// The announced version.
    pub id: PolicyId,
    /// `None`: the fetch failed.
    pub policy: Option<Arc<StsPolicy>>,
    /// The time of the fetch.
    pub at: Instant,
}

/// The result of a lookup.
pub enum PolicyLookup<'a> {
    /// This policy applies, or there is none.
    Known(Option<&'a StsPolicy>),
    /// This version must be fetched first. If that fails, the known policy applies.
    Fetch(PolicyId, Option<&'a StsPolicy>),
}

/// The policy that applies for a domain. `known`: the knowledge about its policy.
///
/// Errors: [`Missing`] says what must be looked up first.
pub fn look_up<'a>(
    known: Option<&'a KnownPolicy>,
    domain: &str,
    knowledge: &Knowledge,
    now: Instant,
) -> Result<PolicyLookup<'a>, Missing> {
    let Ok(name) = Name::parse(&["_mta-sts.", domain].concat()) else {
        return Ok(PolicyLookup::Known(None));
    };
    let answer = knowledge.of(Question { name, kind: RecordKind::Text })?;
    let announced = answer.ok().and_then(|answer| announced(&answer.records));
    let policy = known.filter(|known| now < known.until).and_then(|known| known.policy.as_ref());
    let is_paused = known.is_some_and(|known| now < known.pause);
    Ok(match (announced, policy) {
        (Some(id), Some((known, policy))) if id != *known && !is_paused => {
            PolicyLookup::Fetch(id, Some(policy))
        }
        (Some(id), None) if !is_paused => PolicyLookup::Fetch(id, None),
        (_, policy) => PolicyLookup::Known(policy.map(|(_, policy)| &**policy)),
    })
}

impl KnownPolicy {
    /// The knowledge after a fetch with this result.
    pub fn after(known: Option<&KnownPolicy>, fetched: &Fetched) -> Option<KnownPolicy> {
        let Fetched { id, policy, at } = fetched;
        match policy {
            // The policy is too large to be stored, so the earlier version stays.
            Some(policy) if policy.bytes() > KEPT_BYTES_MAX => known.cloned(),
            Some(policy) => {
                let (until, policy) =
                    (*at + policy.max_age, Some((id.clone(), Arc::clone(policy))));
                Some(KnownPolicy { policy, until, pause: Instant::START })
            }
            None => {
                let pause = *at + PAUSE;
                let none = || KnownPolicy { policy: None, until: pause, pause };
                Some(known.map_or_else(none, |known| KnownPolicy { pause, ..known.clone() }))
            }
        }
    }

    fn bytes(&self) -> usize {
        self.policy.as_ref().map_or(0, |(_, policy)| policy.bytes())
    }
}

impl Policies {
    /// The knowledge about a domain's policy.
    #[cfg(test)]
    fn of(&self, name: u64) -> Option<Arc<KnownPolicy>> {
        self.known.get(&name).map(|row| Arc::clone(&row.known))
    }

    /// The knowledge about a domain's policy, for a connection to the domain. Counts the
    /// connection.
    pub fn used(&mut self, name: u64, now: Instant) -> Option<Arc<KnownPolicy>> {
        let row = self.known.get_mut(&name)?;
        (row.uses, row.last_use) = ((row.uses_at(now) + 1).min(USES_MAX), now);
        Some(Arc::clone(&row.known))
    }

    /// Stores the result of a fetch.
    pub fn learn(&mut self, name: u64, fetched: &Fetched) {
        let known = self.known.get(&name).map(|row| &*row.known);
        let Some(now_known) = KnownPolicy::after(known, fetched) else { return };
        let now_known = Arc::new(now_known);
        if let Some(row) = self.known.get_mut(&name) {
            row.known = now_known;
        } else {
            // The policy was fetched for a connection, so this connection counts.
            self.known.insert(name, PolicyRow { known: now_known, uses: 1, last_use: fetched.at });
        }
        while self.known.len() > POLICIES_MAX || self.bytes() > BYTES_MAX {
            self.evict(name, fetched.at);
        }
        assert!(self.known.contains_key(&name), "the policy that was just stored stays");
    }

    /// Makes room for the policy that was just stored.
    fn evict(&mut self, stored: u64, now: Instant) {
        let others = self.known.iter().filter(|(known, _)| **known != stored);
        let worth = |row: &PolicyRow| (now < row.known.until, row.uses_at(now), row.last_use);
        let Some((first, _)) = others.min_by_key(|(_, row)| worth(row)) else {
            unreachable!("one policy is larger than the whole table")
        };
        let first = *first;
        self.known.remove(&first);
    }

    fn bytes(&self) -> usize {
        self.known.values().map(|row| row.known.bytes()).sum()
    }
}
