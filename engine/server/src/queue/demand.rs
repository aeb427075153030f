//! What a host's domain demands of those who bring mail to the host (DANE for SMTP).
//!
//! Where the way to a host is authenticated, its domain may publish which certificate it shows. Then nothing is sent to a host that does not show it: who stands in between cannot take the offer of TLS away, nor answer for the
//! host. If name servers do not say what is published, the host is not called: whoever keeps that from us may be the same.
//!
//! Looked up is what is published for the name by which the host is called, not for one of which that is an alias; certificates of authorities have to be for that name.
//!
//! Answers to: RFC 7672 sections 2.1 and 2.2.

use alloc::vec::Vec;

use dns::{Knowledge, Missing, Name, Question, Record, RecordKind, Unanswered};
use relay::route::Hop;
use tls::Published;

/// What is demanded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Demand {
    /// Nothing.
    Nothing,
    /// TLS, with one of these certificates; none: with any, since what is published is of no use (RFC 7672 section 2.2).
    Tls(Vec<Published>),
    /// Nobody knows now.
    Unknown(Unanswered),
}

impl Demand {
    /// What is demanded of who goes this way.
    ///
    /// Errors: [`Missing`] says what has to be known first.
    pub(super) fn on(hop: &Hop, knowledge: &Knowledge) -> Result<Demand, Missing> {
        let Some(host) = hop.host.as_ref().filter(|_| hop.is_authenticated) else { return Ok(Demand::Nothing) };
        // Longer than a name may be: nothing can be published there.
        let Ok(name) = Name::parse(&["_25._tcp.", host.as_str()].concat()) else { return Ok(Demand::Nothing) };
        let answer = match knowledge.of(Question { name, kind: RecordKind::Tlsa })? {
            Ok(answer) => answer,
            Err(unanswered) => return Ok(Demand::Unknown(unanswered)),
        };
        if !answer.is_authenticated || answer.records.is_empty() {
            return Ok(Demand::Nothing);
        }
        let usable = |record: &Record| match record {
            Record::Tlsa { usage, selector, matching, data } => Published::read(*usage, *selector, *matching, data),
            _ => None,
        };
        Ok(Demand::Tls(answer.records.iter().filter_map(usable).collect()))
    }
}
