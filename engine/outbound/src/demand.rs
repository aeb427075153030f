//! Which hosts take a domain's mail, and what TLS with them has to prove: by what the host's domain
//! publishes of certificates (DANE for SMTP), or else by the policy of the mail's domain
//! (`relay::policies`).
//!
//! Where the way to a host is authenticated, its domain may publish which certificate it shows. Then nothing is sent to a host that does not show it: who stands in between cannot take the offer of TLS away, nor answer for the
//! host. If name servers do not say what is published, the host is not called: whoever keeps that from us may be the same.
//!
//! Looked up is what is published for the name by which the host is called, not for one of which that is an alias; certificates of authorities have to be for that name.
//!
//! Answers to: RFC 7672 sections 2.1 and 2.2, RFC 8461 section 2.

use alloc::boxed::Box;
use alloc::sync::Arc;

use dns::{Knowledge, Missing, Name, Question, Record, RecordKind};
use relay::policies::{KnownPolicy, Look, look};
use relay::route::{Hop, Route, Target, Unroutable, Us, route};
use relay::sts::{Mode, Policy};
use tls::Published;

use super::context::Context;
use super::host::{Barred, Demand, MailHost, MailHosts};
use super::inquiring::Inquiry;

/// What was found of a way.
pub(super) enum Found {
    Hosts(MailHosts),
    /// Something is to be asked of the domain's web server first.
    Inquiry(Box<Inquiry>),
}

/// What came of the fetch of a domain's policy in this attempt.
pub(super) enum FetchedPolicy {
    NotTried,
    Tried(Option<Arc<Policy>>),
}

/// The hosts that take a domain's mail, or why one is not to be called; or why there are none.
///
/// Errors: [`Missing`] says what has to be known first.
pub(super) fn find(
    domain: &str,
    us: &Us<'_>,
    random: u64,
    known: Option<&KnownPolicy>,
    fetched: &FetchedPolicy,
    parts: &Context<'_>,
    knowledge: &Knowledge,
) -> Result<Result<Found, Unroutable>, Missing> {
    let (hops, missing) =
        match route(&Target::Domain(smtp::Domain::Name(domain)), us, random, knowledge)? {
            Route::By { hops, missing } => (hops, missing),
            Route::Nowhere(why) => return Ok(Err(why)),
        };
    let policy = match look(known, domain, knowledge, parts.turn.now)? {
        Look::Known(policy) => policy,
        Look::Fetch(id, known) => match fetched {
            FetchedPolicy::Tried(fetched) => fetched.as_deref().or(known),
            FetchedPolicy::NotTried => {
                match Inquiry::about(domain, id, us, random, knowledge, parts.turn.now)? {
                    Some(inquiry) => return Ok(Ok(Found::Inquiry(Box::new(inquiry)))),
                    None => known,
                }
            }
        },
    };
    let policy = policy.filter(|policy| policy.mode == Mode::Enforce);
    let with_demand = |hop: Hop| {
        let demand =
            if parts.names.is_trusted() { Demand::on(&hop, knowledge)? } else { Demand::Nothing };
        Ok(MailHost::of(hop, domain, demand, policy))
    };
    let others = missing.map(|why| Ok(Err(Barred::by(Unroutable::Unknown(why)))));
    let hosts =
        hops.into_iter().map(with_demand).chain(others).collect::<Result<MailHosts, Missing>>()?;
    Ok(Ok(Found::Hosts(hosts)))
}

impl Demand {
    /// What is demanded of who goes this way.
    ///
    /// Errors: [`Missing`] says what has to be known first.
    pub(super) fn on(hop: &Hop, knowledge: &Knowledge) -> Result<Demand, Missing> {
        let Some(host) = hop.host.as_ref().filter(|_| hop.is_authenticated) else {
            return Ok(Demand::Nothing);
        };
        // Longer than a name may be: nothing can be published there.
        let Ok(name) = Name::parse(&["_25._tcp.", host.as_str()].concat()) else {
            return Ok(Demand::Nothing);
        };
        let answer = match knowledge.of(Question { name, kind: RecordKind::Tlsa })? {
            Ok(answer) => answer,
            Err(unanswered) => return Ok(Demand::Unknown(unanswered)),
        };
        if !answer.is_authenticated || answer.records.is_empty() {
            return Ok(Demand::Nothing);
        }
        let usable = |record: &Record| match record {
            Record::Tlsa { usage, selector, matching, data } => {
                Published::read(*usage, *selector, *matching, data)
            }
            _ => None,
        };
        Ok(Demand::Tls(answer.records.iter().filter_map(usable).collect()))
    }
}
