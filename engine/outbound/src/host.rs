//! A host that accepts mail: its address, and the TLS that is required with it.
//!
//! The certificates of most hosts prove nothing, so they are not verified
//! (`tls::ClientSettings::for_any_certificate`). TLS without a check protects from an eavesdropper,
//! but not from an active attacker. Where the domain demands more (`tls_policy`), nothing is sent
//! to a host that does not offer TLS, or does not show what the domain has published. This rule
//! also applies to two kinds of smarthosts (`smarthosts`): those for which the configuration
//! demands TLS, and those with a password, unless the configuration excludes TLS.
//!
//! Implements: RFC 7435, RFC 7672.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::SocketAddr;

use configuration::SmarthostLogin;
use connections::ServerIdentity;
use dns::{Name, Unanswered};
use relay::TlsMode;
use relay::route::{Hop, Unroutable};
use relay::sts::StsPolicy;
use relay::tally::{Rule, Shortfall};
use tls::Published;

/// The port for mail between servers.
const PORT: u16 = 25;

/// The TLS that the domain of a host demands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TlsDemand {
    /// No TLS is demanded.
    Nothing,
    /// TLS, with one of these certificates. Empty: TLS with any certificate, since the published
    /// records are unusable (RFC 7672 section 2.2).
    Tls(Vec<Published>),
    /// The demand is not known now, for this reason.
    Unknown(Unanswered),
}

/// A host that accepts mail.
#[derive(Clone, Debug)]
pub(super) struct MailHost {
    /// `None`: only its address is known.
    pub(super) name: Option<Name>,
    pub(super) address: SocketAddr,
    pub(super) tls: TlsMode,
    pub(super) identity: ServerIdentity,
    pub(super) login: Option<SmarthostLogin>,
    /// The rule under which the TLS statistics count the result with this host. `None`: the result
    /// is not counted, or was counted already.
    pub(super) rule: Option<Rule>,
}

/// Why a host must not be called.
#[derive(Clone, Debug)]
pub(super) struct RejectedHost {
    pub(super) why: Unroutable,
    /// The rule and the failure that the TLS statistics count for the host, if TLS is the reason.
    pub(super) counts_as: Option<(Rule, Shortfall)>,
}

/// The hosts in the order in which they are called. `Err`: the host must not be called.
pub(super) type MailHosts = Vec<Result<MailHost, RejectedHost>>;

impl RejectedHost {
    /// A host that must not be called, for a reason other than TLS.
    pub(super) fn by(why: Unroutable) -> RejectedHost {
        RejectedHost { why, counts_as: None }
    }
}

impl MailHost {
    /// A host that accepts mail for `domain`. `policy`: the domain's policy in enforce mode. It
    /// applies if `demand` is [`TlsDemand::Nothing`].
    ///
    /// Errors: the host must not be called, or the demand is not known now.
    pub(super) fn of(
        hop: Hop,
        domain: &str,
        demand: TlsDemand,
        policy: Option<&StsPolicy>,
    ) -> Result<MailHost, RejectedHost> {
        let is_allowed =
            |policy: &StsPolicy| hop.host.as_ref().is_some_and(|host| policy.allows(host));
        let rejected =
            |why, rule, shortfall| Err(RejectedHost { why, counts_as: Some((rule, shortfall)) });
        let (tls, identity, rule) = match demand {
            TlsDemand::Nothing => match policy.map(is_allowed) {
                None => (TlsMode::IfOffered, ServerIdentity::Unchecked, Rule::None),
                Some(true) => (TlsMode::Required, ServerIdentity::Authorities, Rule::Sts),
                Some(false) => {
                    return rejected(Unroutable::Forbidden, Rule::Sts, Shortfall::Failed);
                }
            },
            TlsDemand::Tls(published) if published.is_empty() => {
                (TlsMode::Required, ServerIdentity::Unchecked, Rule::Tlsa)
            }
            TlsDemand::Tls(published) => (
                TlsMode::Required,
                ServerIdentity::Published(published, domain.to_string()),
                Rule::Tlsa,
            ),
            TlsDemand::Unknown(why) => {
                return rejected(Unroutable::Unknown(why), Rule::Tlsa, Shortfall::DnssecInvalid);
            }
        };
        let address = SocketAddr::new(hop.address, PORT);
        Ok(MailHost { name: hop.host, address, tls, identity, login: None, rule: Some(rule) })
    }

    /// The TLS result of an encrypted connection with the host. It is a failure if the published
    /// records are unusable.
    pub(super) fn proven(&self) -> Result<(), Shortfall> {
        let is_of_no_use =
            self.rule == Some(Rule::Tlsa) && self.identity == ServerIdentity::Unchecked;
        if is_of_no_use { Err(Shortfall::TlsaInvalid) } else { Ok(()) }
    }

    /// The name or address of the host that the client sends in the handshake. A verified
    /// certificate must be valid for it.
    pub(super) fn called(&self) -> Option<String> {
        match (&self.name, &self.identity) {
            (Some(name), _) => Some(name.as_str().to_string()),
            (None, ServerIdentity::Authorities) => Some(self.address.ip().to_string()),
            (None, _) => None,
        }
    }
}
