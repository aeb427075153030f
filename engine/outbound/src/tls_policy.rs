//! Finds the hosts that accept a domain's mail, and the TLS that each host requires. The host's
//! domain may publish the certificates of the host (DANE for SMTP). If it does not, the policy of
//! the recipients' domain applies (`relay::policies`).
//!
//! If DNSSEC authenticates the route to a host, its domain may publish the certificate of the host.
//! In that case nothing is sent to a host that does not show this certificate. So an active
//! attacker can neither remove the offer of TLS nor answer in place of the host. If name servers do
//! not say what is published, the host is not called: an attacker may have suppressed the answer.
//!
//! The lookup uses the name by which the host is called, not the target of an alias. A certificate
//! that an authority has issued must be valid for the same name.
//!
//! Implements: RFC 7672 sections 2.1 and 2.2, RFC 8461 section 2.

use alloc::boxed::Box;
use alloc::sync::Arc;

use dns::{Knowledge, Missing, Name, Question, Record, RecordKind};
use relay::policies::{KnownPolicy, PolicyLookup, look_up};
use relay::route::{Hop, MailRoute, RouteTarget, Unroutable, Us, route};
use relay::sts::{StsMode, StsPolicy};
use tls::Published;

use super::context::OutboundContext;
use super::host::{MailHost, MailHosts, RejectedHost, TlsDemand};
use super::policy_fetch::PolicyFetch;

/// The result of looking up a route.
pub(super) enum HostSearch {
    Hosts(MailHosts),
    /// The domain's web server must be asked for the policy first.
    PolicyFetch(Box<PolicyFetch>),
}

/// The result of fetching a domain's policy in this attempt.
pub(super) enum FetchedPolicy {
    NotTried,
    Tried(Option<Arc<StsPolicy>>),
}

/// Finds the hosts that accept a domain's mail, or the reason why there are none. A host that must
/// not be called is listed with the reason.
///
/// Errors: [`Missing`] says what must be looked up first.
pub(super) fn find(
    domain: &str,
    us: &Us<'_>,
    random: u64,
    known: Option<&KnownPolicy>,
    fetched: &FetchedPolicy,
    parts: &OutboundContext<'_>,
    knowledge: &Knowledge,
) -> Result<Result<HostSearch, Unroutable>, Missing> {
    let (hops, missing) =
        match route(&RouteTarget::Domain(smtp::Domain::Name(domain)), us, random, knowledge)? {
            MailRoute::By { hops, missing } => (hops, missing),
            MailRoute::Nowhere(why) => return Ok(Err(why)),
        };
    let policy = match look_up(known, domain, knowledge, parts.turn.now)? {
        PolicyLookup::Known(policy) => policy,
        PolicyLookup::Fetch(id, known) => match fetched {
            FetchedPolicy::Tried(fetched) => fetched.as_deref().or(known),
            FetchedPolicy::NotTried => {
                match PolicyFetch::about(domain, id, us, random, knowledge, parts.turn.now)? {
                    Some(policy_fetch) => {
                        return Ok(Ok(HostSearch::PolicyFetch(Box::new(policy_fetch))));
                    }
                    None => known,
                }
            }
        },
    };
    let policy = policy.filter(|policy| policy.mode == StsMode::Enforce);
    let with_demand = |hop: Hop| {
        let demand = if parts.names.is_trusted() {
            TlsDemand::on(&hop, knowledge)?
        } else {
            TlsDemand::Nothing
        };
        Ok(MailHost::of(hop, domain, demand, policy))
    };
    let others = missing.map(|why| Ok(Err(RejectedHost::by(Unroutable::Unknown(why)))));
    let hosts =
        hops.into_iter().map(with_demand).chain(others).collect::<Result<MailHosts, Missing>>()?;
    Ok(Ok(HostSearch::Hosts(hosts)))
}

impl TlsDemand {
    /// The TLS that the domain of this host demands.
    ///
    /// Errors: [`Missing`] says what must be looked up first.
    pub(super) fn on(hop: &Hop, knowledge: &Knowledge) -> Result<TlsDemand, Missing> {
        let Some(host) = hop.host.as_ref().filter(|_| hop.is_authenticated) else {
            return Ok(TlsDemand::Nothing);
        };
        // If the prefix makes the name too long, nothing can be published there.
        let Ok(name) = Name::parse(&["_25._tcp.", host.as_str()].concat()) else {
            return Ok(TlsDemand::Nothing);
        };
        let answer = match knowledge.of(Question { name, kind: RecordKind::Tlsa })? {
            Ok(answer) => answer,
            Err(unanswered) => return Ok(TlsDemand::Unknown(unanswered)),
        };
        if !answer.is_authenticated || answer.records.is_empty() {
            return Ok(TlsDemand::Nothing);
        }
        let usable = |record: &Record| match record {
            Record::Tlsa { usage, selector, matching, data } => {
                Published::read(*usage, *selector, *matching, data)
            }
            _ => None,
        };
        Ok(TlsDemand::Tls(answer.records.iter().filter_map(usable).collect()))
    }
}
