//! Policies of domains (MTA-STS): which hosts take their mail, as a web server of each domain's own
//! says it over TLS. What is known of them; `inquiring` fetches them.
//!
//! ```text
//!   sought ── an unknown version is announced ──▸ inquired: each address of the server ──▸ sought
//! ```
//! A policy that is enforced binds where no certificate is published by names that are
//! authenticated (`demand`). Then nothing goes to a host that it does not allow, nor to one without
//! a certificate that is valid for its name.
//!
//! Invariants:
//! - What is known holds until its time is over, whatever is announced meanwhile and whether or not
//!   its server can be reached. So an attacker in between can only keep us from a first fetch.
//! - A server from which nothing came is left alone for [`PAUSE`].
//! - There are at most [`POLICIES_MAX`] domains of which something is known, and [`BYTES_MAX`] in
//!   all. The one that ends first has to go, but never the one that was just learnt. A policy of
//!   more than [`KEPT_BYTES_MAX`] is not kept, so a few domains cannot push out all others. It
//!   takes no earlier version away.
//! - An attempt fetches a policy once, and holds to what came of that, be it kept here or not.
//!
//! Answers to: RFC 8461 sections 3.3, 5 and 5.1.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use dns::{Knowledge, Missing, Name, Question, RecordKind};
use machine::{Instant, Micros};
use relay::sts::{Policy, PolicyId, announced};

const POLICIES_MAX: usize = 512;
const BYTES_MAX: usize = 1 << 20;
/// The largest policy that is kept: hundreds of hosts.
const KEPT_BYTES_MAX: usize = BYTES_MAX / 64;

/// How long after a fetch of which nothing came there is no other.
const PAUSE: Micros = Micros::from_secs(300);

/// What a core knows of domains' policies.
#[derive(Default)]
pub(super) struct Policies {
    known: BTreeMap<Box<str>, Known>,
}

/// What is known of one domain's.
struct Known {
    policy: Option<(PolicyId, Policy)>,
    /// Until when that holds, or what came of the last fetch.
    until: Instant,
    /// No fetch before this.
    pause: Instant,
}

/// What a look comes to.
pub(super) enum Look<'a> {
    /// This holds, or there is none.
    Known(Option<&'a Policy>),
    /// This version is to be fetched first. If that fails, this holds.
    Fetch(PolicyId, Option<&'a Policy>),
}

impl Policies {
    /// What holds for a domain.
    ///
    /// Errors: [`Missing`] says what has to be known first.
    pub(super) fn of(&self, domain: &str, knowledge: &Knowledge, now: Instant) -> Result<Look<'_>, Missing> {
        let Ok(name) = Name::parse(&["_mta-sts.", domain].concat()) else { return Ok(Look::Known(None)) };
        let answer = knowledge.of(Question { name, kind: RecordKind::Text })?;
        let announced = answer.ok().and_then(|answer| announced(&answer.records));
        let known = self.known.get(domain);
        let policy = known.filter(|known| now < known.until).and_then(|known| known.policy.as_ref());
        let is_paused = known.is_some_and(|known| now < known.pause);
        Ok(match (announced, policy) {
            (Some(id), Some((known, policy))) if id != *known && !is_paused => Look::Fetch(id, Some(policy)),
            (Some(id), None) if !is_paused => Look::Fetch(id, None),
            (_, policy) => Look::Known(policy.map(|(_, policy)| policy)),
        })
    }

    /// This came of a fetch.
    pub(super) fn learn(&mut self, domain: &str, id: PolicyId, fetched: Option<&Policy>, now: Instant) {
        match fetched {
            // Where it cannot be fetched the next time, an earlier version holds that is known.
            Some(policy) if policy.bytes() > KEPT_BYTES_MAX => {}
            Some(policy) => {
                let (until, policy) = (now + policy.max_age, Some((id, policy.clone())));
                self.known.insert(domain.into(), Known { policy, until, pause: Instant::START });
            }
            None => {
                let pause = now + PAUSE;
                let known = self.known.entry(domain.into());
                known.or_insert(Known { policy: None, until: pause, pause }).pause = pause;
            }
        }
        while self.known.len() > POLICIES_MAX || self.bytes() > BYTES_MAX {
            let others = self.known.iter().filter(|(known, _)| ***known != *domain);
            let first = others.min_by_key(|(_, known)| known.until).map(|(domain, _)| domain.clone());
            let Some(first) = first else { unreachable!("one domain takes more than all may") };
            self.known.remove(&first);
        }
    }

    fn bytes(&self) -> usize {
        let policies = self.known.values().filter_map(|known| known.policy.as_ref());
        let names: usize = self.known.keys().map(|domain| domain.len()).sum();
        names + policies.map(|(_, policy)| policy.bytes()).sum::<usize>()
    }
}
