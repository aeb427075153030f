//! The MTA-STS policies of domains: which hosts accept their mail, as each domain's web server says
//! over TLS. This is what all cores of a machine know of them.
//!
//! An enforced policy applies where no certificate is published under DNSSEC. Then nothing is sent
//! to a host that it does not allow, nor to a host without a certificate that is valid for its
//! name.
//!
//! Invariants:
//! - A known policy applies until its time is over, whatever is announced meanwhile, and whether or
//!   not its server can be reached. So an attacker can only prevent the first fetch.
//! - After a failed fetch, the server is left alone for [`PAUSE`].
//! - At most [`POLICIES_MAX`] domains are known, with at most [`BYTES_MAX`] in total. A policy that
//!   has ended is evicted first, then the one with the fewest connections, but never the one that
//!   was just stored. Counts end at [`USES_MAX`]; among equal ones the least recently used policy
//!   is evicted. The remaining time of a policy does not count. So a client that causes one message
//!   to each of many domains of its own evicts no domain to which our users write.
//! - A policy of more than [`KEPT_BYTES_MAX`] is not stored, so a few domains cannot evict all
//!   others. It does not replace an earlier version.
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

/// Connections that are counted for a policy: enough to tell a domain of our users' from one that a
/// client has made us write to.
const USES_MAX: u8 = 16;

/// The time without a connection in which a count halves.
const HALF_LIFE: Micros = Micros::from_secs(7 * 24 * 3600);

/// After a failed fetch there is no other for this time.
const PAUSE: Micros = Micros::from_secs(300);

/// What is known of the policies of domains, by keyed hashes of their names.
#[derive(Default)]
pub struct Policies {
    known: BTreeMap<u64, PolicyRow>,
}

/// What is known of one domain's policy, and how often it is used.
struct PolicyRow {
    known: Arc<KnownPolicy>,
    /// Connections that were made by it.
    uses: u8,
    last_use: Instant,
}

impl PolicyRow {
    /// The connections that still count.
    fn uses_at(&self, now: Instant) -> u8 {
        let halvings = now.since(self.last_use).as_secs() / HALF_LIFE.as_secs();
        self.uses >> halvings.min(7)
    }
}

/// What is known of one domain's policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownPolicy {
    policy: Option<(PolicyId, Arc<StsPolicy>)>,
    /// The end of the policy's validity, or of the memory of the last fetch.
    until: Instant,
    /// No fetch is made before this time.
    pause: Instant,
}

/// The result of a fetch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fetched {
    /// The version that was announced.
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

/// The policy that applies for a domain. `known`: what is known of its policy.
///
/// Errors: [`Missing`] says what must be looked up first.
pub fn look<'a>(
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
    /// What is known after a fetch with this result.
    pub fn after(known: Option<&KnownPolicy>, fetched: &Fetched) -> Option<KnownPolicy> {
        let Fetched { id, policy, at } = fetched;
        match policy {
            // If the next fetch fails, the known earlier version applies.
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
    /// What is known of a domain's policy.
    #[cfg(test)]
    fn of(&self, name: u64) -> Option<Arc<KnownPolicy>> {
        self.known.get(&name).map(|row| Arc::clone(&row.known))
    }

    /// What is known of a domain's policy, for a connection to it, which is counted.
    pub fn used(&mut self, name: u64, now: Instant) -> Option<Arc<KnownPolicy>> {
        let row = self.known.get_mut(&name)?;
        (row.uses, row.last_use) = ((row.uses_at(now) + 1).min(USES_MAX), now);
        Some(Arc::clone(&row.known))
    }

    /// Takes in the result of a fetch.
    pub fn learn(&mut self, name: u64, fetched: &Fetched) {
        let known = self.known.get(&name).map(|row| &*row.known);
        let Some(now_known) = KnownPolicy::after(known, fetched) else { return };
        let now_known = Arc::new(now_known);
        if let Some(row) = self.known.get_mut(&name) {
            row.known = now_known;
        } else {
            // It was fetched for a connection.
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
            unreachable!("one domain takes more than all may")
        };
        let first = *first;
        self.known.remove(&first);
    }

    fn bytes(&self) -> usize {
        self.known.values().map(|row| row.known.bytes()).sum()
    }
}
