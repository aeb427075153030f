//! Smarthosts: hosts that send our mail on, as the configuration names them.
//!
//! A letter goes by one like by any other host, with four differences. It is the smarthost that is down where it cannot be reached, and not each of the domains behind it. What it says against us before it hears of a letter is never final: whoever
//! looks after the machine may mend it. We log in where we are to. And of TLS it has to be true what was written: where TLS is written, or a password, nothing is said without; where there is a password,
//! its certificate has to be valid for its name, or for its address where it has no other.
//!
//! | written | without a password | with one |
//! |---|---|---|
//! | nothing | TLS if it is offered, with anybody | TLS, certificate valid |
//! | `starttls`, `implicit` | TLS, with anybody | TLS, certificate valid |
//! | `none` | in the clear | in the clear |

use alloc::string::{String, ToString};
use core::net::SocketAddr;

use configuration::{Smarthost, SmarthostTls, Way};
use connections::Identity;
use dns::{Knowledge, Missing};
use relay::route::{Hop, Route, Unroutable, Us};
use relay::{Outcome, Stage as Talk, Tls};
use resolver::route_to;

use super::host::{MailHost, MailHosts};

/// By what a destination is known: a domain, or a smarthost by its place, which no domain is called.
pub(super) fn destination(domain: &str, way: &Way) -> String {
    match way {
        Way::Direct => domain.to_string(),
        Way::By(smarthost) => smarthost.place.to_string(),
    }
}

/// The addresses of a smarthost.
///
/// Errors: [`Missing`] says what has to be known first.
pub(super) fn hosts(
    smarthost: &Smarthost,
    us: &Us<'_>,
    random: u64,
    knowledge: &Knowledge,
) -> Result<Result<MailHosts, Unroutable>, Missing> {
    Ok(match route_to(&smarthost.place.host, us, random, knowledge)? {
        // Of another family there may be addresses that nobody knows now: those that are known will do.
        Route::By { hops, .. } => {
            Ok(hops.into_iter().map(|hop| Ok(host(smarthost, hop))).collect())
        }
        Route::Nowhere(why) => Err(why),
    })
}

fn host(smarthost: &Smarthost, hop: Hop) -> MailHost {
    let Smarthost { place, tls, login } = smarthost;
    let identity = if login.is_some() { Identity::Vouched } else { Identity::Anybody };
    let (tls, identity) = match tls {
        SmarthostTls::None => (Tls::Never, Identity::Anybody),
        SmarthostTls::IfOffered if login.is_none() => (Tls::IfOffered, identity),
        SmarthostTls::IfOffered | SmarthostTls::StartTls => (Tls::Required, identity),
        SmarthostTls::Implicit => (Tls::Implicit, identity),
    };
    let address = SocketAddr::new(hop.address, place.port);
    MailHost { name: hop.host, address, tls, identity, login: login.clone(), rule: None }
}

/// What came of a letter that went by a smarthost: nothing is final that it says before it hears of the letter.
pub(super) fn mendable(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Never(reason) if reason.stage <= Talk::Login => Outcome::Later(reason),
        outcome => outcome,
    }
}
