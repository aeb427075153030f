//! Evaluates a policy for a sender (RFC 7208 §4, §5).

use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use dns::{Answer, Knowledge, Missing, Name, Question, Record, RecordKind, Unanswered};

use crate::expansion::Values;
use crate::policy::{Prefixes, Qualifier, SpfMechanism, SpfPolicy, is_policy};
use crate::specification::{Macro, MacroLetter, MacroPiece, Specification};

/// The most terms that may look up names in one check (RFC 7208 §4.6.4).
const LOOKUPS_MAX: usize = 10;
/// The most lookups that may find nothing in one check.
const VOID_LOOKUPS_MAX: usize = 2;
/// The most MX hosts of a domain. If a domain has more, the policy is invalid.
const EXCHANGERS_MAX: usize = 10;
/// The most PTR names of an address that are used.
const POINTERS_MAX: usize = 10;
/// The value of the macro `p` if the host name is unknown.
const UNKNOWN: &[u8] = b"unknown";

/// The sender of a message.
#[derive(Clone, Copy, Debug)]
pub struct SpfSender<'a> {
    /// The address of the sending host.
    pub address: IpAddr,
    /// The EHLO name.
    pub hello: &'a str,
    /// The local part of the sender's address, or `postmaster` if the address has none.
    pub local_part: &'a str,
    /// The domain of the policy that is checked. For the null sender it is the EHLO name.
    pub domain: &'a str,
}

/// The result of a policy (RFC 7208 §2.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpfVerdict {
    /// The domain has no policy.
    None,
    /// The policy makes no statement.
    Neutral,
    /// The host may send for the domain.
    Pass,
    /// The host may not send for the domain.
    Fail,
    /// The host probably may not send for the domain.
    SoftFail,
    /// Name servers did not answer: they may answer later.
    TempError,
    /// The policy is not valid.
    PermError,
}

impl fmt::Display for SpfVerdict {
    /// The name in header fields (RFC 8601 §2.7.2).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            SpfVerdict::None => "none",
            SpfVerdict::Neutral => "neutral",
            SpfVerdict::Pass => "pass",
            SpfVerdict::Fail => "fail",
            SpfVerdict::SoftFail => "softfail",
            SpfVerdict::TempError => "temperror",
            SpfVerdict::PermError => "permerror",
        })
    }
}

/// Whether the sender is authorized by the policy of its domain: `check_host()`.
///
/// Errors: [`Missing`] has the question that must be answered first. The number of questions is
/// bounded: a check asks for fewer than 150 names.
pub fn check(sender: &SpfSender<'_>, knowledge: &Knowledge) -> Result<SpfVerdict, Missing> {
    let address = sender.address.to_canonical();
    let sender = &SpfSender { address, ..*sender };
    let mut evaluation = Evaluation { sender, knowledge, lookups: 0, voids: 0 };
    let Ok(domain) = Name::of_bytes(sender.domain.as_bytes()) else { return Ok(SpfVerdict::None) };
    match evaluation.check_host(&domain) {
        Ok(verdict) => Ok(verdict),
        Err(EvaluationStop::Temporary) => Ok(SpfVerdict::TempError),
        Err(EvaluationStop::Permanent) => Ok(SpfVerdict::PermError),
        Err(EvaluationStop::Missing(missing)) => Err(missing),
    }
}

/// Why an evaluation stops.
enum EvaluationStop {
    Temporary,
    Permanent,
    Missing(Missing),
}

impl From<Missing> for EvaluationStop {
    fn from(missing: Missing) -> EvaluationStop {
        EvaluationStop::Missing(missing)
    }
}

impl From<Unanswered> for EvaluationStop {
    fn from(_: Unanswered) -> EvaluationStop {
        EvaluationStop::Temporary
    }
}

/// A check in progress.
struct Evaluation<'a> {
    sender: &'a SpfSender<'a>,
    knowledge: &'a Knowledge,
    /// The number of terms so far that looked up names.
    lookups: usize,
    /// The number of lookups so far that found nothing.
    voids: usize,
}

impl<'a> Evaluation<'a> {
    /// The verdict of the policy of `domain` on the sender.
    fn check_host(&mut self, domain: &Name) -> Result<SpfVerdict, EvaluationStop> {
        // A single-label domain never sends mail.
        if !domain.as_str().contains('.') {
            return Ok(SpfVerdict::None);
        }
        let Some(text) = self.policy_of(domain)? else { return Ok(SpfVerdict::None) };
        let policy = SpfPolicy::read(text).map_err(|_| EvaluationStop::Permanent)?;
        for directive in &policy.directives {
            if self.matches(&directive.mechanism, domain)? {
                return Ok(match directive.qualifier {
                    Qualifier::Pass => SpfVerdict::Pass,
                    Qualifier::Fail => SpfVerdict::Fail,
                    Qualifier::SoftFail => SpfVerdict::SoftFail,
                    Qualifier::Neutral => SpfVerdict::Neutral,
                });
            }
        }
        let Some(redirect) = &policy.redirect else { return Ok(SpfVerdict::Neutral) };
        self.count_lookup()?;
        let target = self.expand(redirect, domain)?.ok_or(EvaluationStop::Permanent)?;
        match self.check_host(&target)? {
            SpfVerdict::None => Err(EvaluationStop::Permanent),
            verdict => Ok(verdict),
        }
    }

    /// The text of a domain's policy, if it has one.
    fn policy_of(&self, domain: &Name) -> Result<Option<&'a [u8]>, EvaluationStop> {
        let question = Question { name: domain.clone(), kind: RecordKind::Text };
        let texts =
            self.knowledge.of(question)??.records.iter().filter_map(|record| match record {
                Record::Text(text) => Some(&text[..]),
                _ => None,
            });
        let mut policies = texts.filter(|text| is_policy(text));
        match (policies.next(), policies.next()) {
            (policy, None) => Ok(policy),
            (_, Some(_)) => Err(EvaluationStop::Permanent),
        }
    }

    /// Whether a mechanism in the policy of `domain` matches the sender.
    fn matches(&mut self, mechanism: &SpfMechanism, domain: &Name) -> Result<bool, EvaluationStop> {
        match mechanism {
            SpfMechanism::All => Ok(true),
            SpfMechanism::Ipv4(network, bits) => {
                Ok(is_in_network(self.sender.address, (*network).into(), *bits))
            }
            SpfMechanism::Ipv6(network, bits) => {
                Ok(is_in_network(self.sender.address, (*network).into(), *bits))
            }
            SpfMechanism::Include(target) => {
                self.count_lookup()?;
                let target = self.expand(target, domain)?.ok_or(EvaluationStop::Permanent)?;
                match self.check_host(&target)? {
                    SpfVerdict::Pass => Ok(true),
                    SpfVerdict::None => Err(EvaluationStop::Permanent),
                    _ => Ok(false),
                }
            }
            SpfMechanism::Address(target, prefixes) => {
                self.count_lookup()?;
                let Some(target) = self.target(target.as_ref(), domain)? else { return Ok(false) };
                self.sender_is_at(target, *prefixes)
            }
            SpfMechanism::Exchanger(target, prefixes) => {
                self.count_lookup()?;
                let Some(target) = self.target(target.as_ref(), domain)? else { return Ok(false) };
                self.sender_is_exchanger_of(target, *prefixes)
            }
            SpfMechanism::Pointer(target) => {
                self.count_lookup()?;
                let Some(target) = self.target(target.as_ref(), domain)? else { return Ok(false) };
                Ok(self.validated_names()?.iter().any(|name| name.is_within(&target)))
            }
            SpfMechanism::Exists(target) => {
                self.count_lookup()?;
                let Some(name) = self.expand(target, domain)? else { return Ok(false) };
                Ok(!self.look_up(name, RecordKind::Ipv4)?.records.is_empty())
            }
        }
    }

    /// Whether the sending host has an address of `name`. `prefixes`: how many bits must be equal.
    fn sender_is_at(&mut self, name: Name, prefixes: Prefixes) -> Result<bool, EvaluationStop> {
        let (address, kind) = (self.sender.address, self.kind());
        let bits = if address.is_ipv4() { prefixes.ipv4 } else { prefixes.ipv6 };
        let found = &self.look_up(name, kind)?.records;
        Ok(found
            .iter()
            .any(|record| matches!(record, Record::Address(found) if is_in_network(address, *found, bits))))
    }

    /// Whether the sending host has an address of an MX host of `name`.
    fn sender_is_exchanger_of(
        &mut self,
        name: Name,
        prefixes: Prefixes,
    ) -> Result<bool, EvaluationStop> {
        let found = &self.look_up(name, RecordKind::Exchanger)?.records;
        if found.len() > EXCHANGERS_MAX {
            return Err(EvaluationStop::Permanent);
        }
        for record in found {
            if let Record::Exchanger { host, .. } = record
                && self.sender_is_at(host.clone(), prefixes)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The validated names of the sending host: each of these names has the host's address. The
    /// list is empty if name servers do not answer.
    fn validated_names(&mut self) -> Result<Vec<Name>, EvaluationStop> {
        let reverse =
            Question { name: Name::reverse(self.sender.address), kind: RecordKind::Pointer };
        let Ok(found) = self.knowledge.of(reverse)? else { return Ok(Vec::new()) };
        let mut validated = Vec::new();
        for record in found.records.iter().take(POINTERS_MAX) {
            let Record::Pointer(name) = record else { continue };
            let question = Question { name: name.clone(), kind: self.kind() };
            if let Ok(answer) = self.knowledge.of(question)?
                && answer.records.contains(&Record::Address(self.sender.address))
            {
                validated.push(name.clone());
            }
        }
        Ok(validated)
    }

    /// The records of a name, for a mechanism. The number of empty answers is limited.
    fn look_up(&mut self, name: Name, kind: RecordKind) -> Result<&'a Answer, EvaluationStop> {
        let answer = self.knowledge.of(Question { name, kind })??;
        if answer.records.is_empty() {
            self.voids += 1;
            if self.voids > VOID_LOOKUPS_MAX {
                return Err(EvaluationStop::Permanent);
            }
        }
        Ok(answer)
    }

    /// Counts a term that looks up names. Errors: there were too many.
    fn count_lookup(&mut self) -> Result<(), EvaluationStop> {
        self.lookups += 1;
        if self.lookups > LOOKUPS_MAX { Err(EvaluationStop::Permanent) } else { Ok(()) }
    }

    /// The kind of address records for the address family of the sender.
    fn kind(&self) -> RecordKind {
        if self.sender.address.is_ipv4() { RecordKind::Ipv4 } else { RecordKind::Ipv6 }
    }

    /// The name to which a mechanism refers. `None`: the expansion is not a valid name, so the
    /// mechanism does not match (RFC 7208 §4.8).
    fn target(
        &mut self,
        specification: Option<&Specification>,
        domain: &Name,
    ) -> Result<Option<Name>, EvaluationStop> {
        match specification {
            Some(specification) => self.expand(specification, domain),
            None => Ok(Some(domain.clone())),
        }
    }

    fn expand(
        &mut self,
        specification: &Specification,
        domain: &Name,
    ) -> Result<Option<Name>, EvaluationStop> {
        let wants_name = |piece: &MacroPiece| {
            matches!(
                piece,
                MacroPiece::Macro(Macro { macro_letter: MacroLetter::ValidatedName, .. })
            )
        };
        let names = match specification.0.iter().any(wants_name) {
            true => self.validated_names()?,
            false => Vec::new(),
        };
        // The order of preference is: the domain itself, then a name below it, then any other name
        // (RFC 7208 §7.3).
        let own = names
            .iter()
            .find(|name| *name == domain)
            .or_else(|| names.iter().find(|name| name.is_within(domain)));
        let validated = own.or(names.first()).map_or(UNKNOWN, |name| name.as_str().as_bytes());
        let values = Values { sender: self.sender, domain: domain.as_str().as_bytes(), validated };
        Ok(Name::of_bytes(&values.expand(specification)).ok())
    }
}

/// Whether an address is in a network of its family.
fn is_in_network(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let same = |difference: u128, width: u32| {
        let rest = width.saturating_sub(u32::from(bits));
        difference.checked_shr(rest).unwrap_or(0) == 0
    };
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            same((address.to_bits() ^ network.to_bits()).into(), 32)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            same(address.to_bits() ^ network.to_bits(), 128)
        }
        _ => false,
    }
}
