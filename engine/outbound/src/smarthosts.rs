//! Smarthosts: hosts that relay our mail, as the configuration names them.
//!
//! A message is sent to a smarthost in the same way as to any other host, with four differences:
//! - If the smarthost cannot be reached, the smarthost is down, not each domain that uses it.
//! - A refusal before MAIL is never final: the operator may correct the cause.
//! - We log in if the configuration says so.
//! - The configured TLS is mandatory: nothing is sent without it. A password makes TLS mandatory
//!   too, unless `tls` is `none`. With a password and TLS, the certificate has to be valid for the
//!   smarthost's name, or for its address where it has no name.
//!
//! | `tls` | without a password | with a password |
//! |---|---|---|
//! | absent | TLS if it is offered, any certificate | TLS, valid certificate |
//! | `starttls`, `implicit` | TLS, any certificate | TLS, valid certificate |
//! | `none` | plaintext | plaintext |

use alloc::string::{String, ToString};
use core::net::SocketAddr;

use configuration::{Smarthost, SmarthostTls, Way};
use connections::ServerIdentity;
use dns::{Knowledge, Missing};
use relay::route::{Hop, MailRoute, Unroutable, Us};
use relay::{DeliveryOutcome, Stage as SmtpStage, TlsMode};
use resolver::route_to;

use super::host::{MailHost, MailHosts};

/// The name of a destination: the domain, or the host and port of the smarthost. A host with a port
/// is never the name of a domain.
pub(super) fn destination(domain: &str, way: &Way) -> String {
    match way {
        Way::Direct => domain.to_string(),
        Way::By(smarthost) => smarthost.place.to_string(),
    }
}

/// The addresses of a smarthost.
///
/// Errors: [`Missing`] says what must be looked up first.
pub(super) fn hosts(
    smarthost: &Smarthost,
    us: &Us<'_>,
    random: u64,
    knowledge: &Knowledge,
) -> Result<Result<MailHosts, Unroutable>, Missing> {
    Ok(match route_to(&smarthost.place.host, us, random, knowledge)? {
        // The addresses of the other family may still be unknown. The known addresses are enough.
        MailRoute::By { hops, .. } => {
            Ok(hops.into_iter().map(|hop| Ok(host(smarthost, hop))).collect())
        }
        MailRoute::Nowhere(why) => Err(why),
    })
}

fn host(smarthost: &Smarthost, hop: Hop) -> MailHost {
    let Smarthost { place, tls, login } = smarthost;
    let identity =
        if login.is_some() { ServerIdentity::Authorities } else { ServerIdentity::Unchecked };
    let (tls, identity) = match tls {
        SmarthostTls::None => (TlsMode::Never, ServerIdentity::Unchecked),
        SmarthostTls::IfOffered if login.is_none() => (TlsMode::IfOffered, identity),
        SmarthostTls::IfOffered | SmarthostTls::StartTls => (TlsMode::Required, identity),
        SmarthostTls::Implicit => (TlsMode::Implicit, identity),
    };
    let address = SocketAddr::new(hop.address, place.port);
    MailHost { name: hop.host, address, tls, identity, login: login.clone(), rule: None }
}

/// Makes an outcome at a smarthost temporary, if the smarthost refused before MAIL.
pub(super) fn mendable(outcome: DeliveryOutcome) -> DeliveryOutcome {
    match outcome {
        DeliveryOutcome::Never(reason) if reason.stage <= SmtpStage::Login => {
            DeliveryOutcome::Later(reason)
        }
        outcome => outcome,
    }
}
