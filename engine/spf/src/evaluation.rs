//! What a policy says of who sends (RFC 7208 §4, §5).

use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use dns::{Answer, Knowledge, Missing, Name, Question, Record, RecordKind, Unanswered};

use crate::expansion::Values;
use crate::policy::{Mechanism, Policy, Prefixes, Qualifier, is_policy};
use crate::specification::{Letter, Macro, Piece, Specification};

/// Terms of one check that may ask for names (RFC 7208 §4.6.4).
const LOOKUPS_MAX: usize = 10;
/// Lookups of theirs that may find nothing.
const VOID_LOOKUPS_MAX: usize = 2;
/// Exchangers of a domain that are looked at: with more, the policy is broken.
const EXCHANGERS_MAX: usize = 10;
/// Names of an address that are looked at: further ones are not.
const POINTERS_MAX: usize = 10;
/// What there is instead of a host's name.
const UNKNOWN: &[u8] = b"unknown";

/// Who sends a message.
#[derive(Clone, Copy, Debug)]
pub struct Sender<'a> {
    /// The host's address.
    pub address: IpAddr,
    /// What it calls itself.
    pub hello: &'a str,
    /// What stands before the `@` of the sender's address; `postmaster` where there is nothing.
    pub local_part: &'a str,
    /// The domain that is asked; of the null sender what the host calls itself.
    pub domain: &'a str,
}

/// What a domain says (RFC 7208 §2.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It has no policy.
    None,
    /// It does not say.
    Neutral,
    /// The host may send for it.
    Pass,
    /// The host may not.
    Fail,
    /// The host hardly may.
    SoftFail,
    /// Name servers did not answer: asked again later they may.
    TempError,
    /// What it says is broken.
    PermError,
}

impl fmt::Display for Verdict {
    /// As header fields name it (RFC 8601 §2.7.2).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Verdict::None => "none",
            Verdict::Neutral => "neutral",
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::SoftFail => "softfail",
            Verdict::TempError => "temperror",
            Verdict::PermError => "permerror",
        })
    }
}

/// Whether who sends may, as its domain says: `check_host()`.
///
/// Errors: [`Missing`] says what has to be known first. There is an end to that: a check asks for fewer than 150 names.
pub fn check(sender: &Sender<'_>, knowledge: &Knowledge) -> Result<Verdict, Missing> {
    let address = sender.address.to_canonical();
    let sender = &Sender { address, ..*sender };
    let mut evaluation = Evaluation { sender, knowledge, lookups: 0, voids: 0 };
    let Ok(domain) = Name::of_bytes(sender.domain.as_bytes()) else { return Ok(Verdict::None) };
    match evaluation.check_host(&domain) {
        Ok(verdict) => Ok(verdict),
        Err(Stop::Temporary) => Ok(Verdict::TempError),
        Err(Stop::Permanent) => Ok(Verdict::PermError),
        Err(Stop::Missing(missing)) => Err(missing),
    }
}

/// Why an evaluation does not go on.
enum Stop {
    Temporary,
    Permanent,
    Missing(Missing),
}

impl From<Missing> for Stop {
    fn from(missing: Missing) -> Stop {
        Stop::Missing(missing)
    }
}

impl From<Unanswered> for Stop {
    fn from(_: Unanswered) -> Stop {
        Stop::Temporary
    }
}

struct Evaluation<'a> {
    sender: &'a Sender<'a>,
    knowledge: &'a Knowledge,
    lookups: usize,
    voids: usize,
}

impl<'a> Evaluation<'a> {
    fn check_host(&mut self, domain: &Name) -> Result<Verdict, Stop> {
        // Of one label no domain that sends mail is.
        if !domain.as_str().contains('.') {
            return Ok(Verdict::None);
        }
        let Some(text) = self.policy_of(domain)? else { return Ok(Verdict::None) };
        let policy = Policy::read(text).map_err(|_| Stop::Permanent)?;
        for directive in &policy.directives {
            if self.matches(&directive.mechanism, domain)? {
                return Ok(match directive.qualifier {
                    Qualifier::Pass => Verdict::Pass,
                    Qualifier::Fail => Verdict::Fail,
                    Qualifier::SoftFail => Verdict::SoftFail,
                    Qualifier::Neutral => Verdict::Neutral,
                });
            }
        }
        let Some(redirect) = &policy.redirect else { return Ok(Verdict::Neutral) };
        self.count_lookup()?;
        let target = self.expand(redirect, domain)?.ok_or(Stop::Permanent)?;
        match self.check_host(&target)? {
            Verdict::None => Err(Stop::Permanent),
            verdict => Ok(verdict),
        }
    }

    /// The text of a domain's policy, if it has one.
    fn policy_of(&self, domain: &Name) -> Result<Option<&'a [u8]>, Stop> {
        let question = Question { name: domain.clone(), kind: RecordKind::Text };
        let texts =
            self.knowledge.of(question)??.records.iter().filter_map(|record| match record {
                Record::Text(text) => Some(&text[..]),
                _ => None,
            });
        let mut policies = texts.filter(|text| is_policy(text));
        match (policies.next(), policies.next()) {
            (policy, None) => Ok(policy),
            (_, Some(_)) => Err(Stop::Permanent),
        }
    }

    fn matches(&mut self, mechanism: &Mechanism, domain: &Name) -> Result<bool, Stop> {
        match mechanism {
            Mechanism::All => Ok(true),
            Mechanism::Ipv4(network, bits) => {
                Ok(is_in(self.sender.address, (*network).into(), *bits))
            }
            Mechanism::Ipv6(network, bits) => {
                Ok(is_in(self.sender.address, (*network).into(), *bits))
            }
            Mechanism::Include(target) => {
                self.count_lookup()?;
                let target = self.expand(target, domain)?.ok_or(Stop::Permanent)?;
                match self.check_host(&target)? {
                    Verdict::Pass => Ok(true),
                    Verdict::None => Err(Stop::Permanent),
                    _ => Ok(false),
                }
            }
            Mechanism::Address(target, prefixes) => {
                self.count_lookup()?;
                let Some(target) = self.target(target.as_ref(), domain)? else { return Ok(false) };
                self.is_address_of(target, *prefixes)
            }
            Mechanism::Exchanger(target, prefixes) => {
                self.count_lookup()?;
                let Some(target) = self.target(target.as_ref(), domain)? else { return Ok(false) };
                self.is_exchanger_of(target, *prefixes)
            }
            Mechanism::Pointer(target) => {
                self.count_lookup()?;
                let Some(target) = self.target(target.as_ref(), domain)? else { return Ok(false) };
                Ok(self.validated_names()?.iter().any(|name| name.is_within(&target)))
            }
            Mechanism::Exists(target) => {
                self.count_lookup()?;
                let Some(name) = self.expand(target, domain)? else { return Ok(false) };
                Ok(!self.look_up(name, RecordKind::Ipv4)?.records.is_empty())
            }
        }
    }

    fn is_address_of(&mut self, name: Name, prefixes: Prefixes) -> Result<bool, Stop> {
        let (address, kind) = (self.sender.address, self.kind());
        let bits = if address.is_ipv4() { prefixes.ipv4 } else { prefixes.ipv6 };
        let found = &self.look_up(name, kind)?.records;
        Ok(found
            .iter()
            .any(|record| matches!(record, Record::Address(found) if is_in(address, *found, bits))))
    }

    fn is_exchanger_of(&mut self, name: Name, prefixes: Prefixes) -> Result<bool, Stop> {
        let found = &self.look_up(name, RecordKind::Exchanger)?.records;
        if found.len() > EXCHANGERS_MAX {
            return Err(Stop::Permanent);
        }
        for record in found {
            if let Record::Exchanger { host, .. } = record
                && self.is_address_of(host.clone(), prefixes)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Names of the sending host that are its own: whose address is its address. Where name servers do not answer there is none.
    fn validated_names(&mut self) -> Result<Vec<Name>, Stop> {
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

    /// The records of a name, for a mechanism: only so many may be none.
    fn look_up(&mut self, name: Name, kind: RecordKind) -> Result<&'a Answer, Stop> {
        let answer = self.knowledge.of(Question { name, kind })??;
        if answer.records.is_empty() {
            self.voids += 1;
            if self.voids > VOID_LOOKUPS_MAX {
                return Err(Stop::Permanent);
            }
        }
        Ok(answer)
    }

    fn count_lookup(&mut self) -> Result<(), Stop> {
        self.lookups += 1;
        if self.lookups > LOOKUPS_MAX { Err(Stop::Permanent) } else { Ok(()) }
    }

    /// The records that hold addresses such as the sender's.
    fn kind(&self) -> RecordKind {
        if self.sender.address.is_ipv4() { RecordKind::Ipv4 } else { RecordKind::Ipv6 }
    }

    /// The name that a mechanism means. `None` where what was expanded is no name, which nothing matches (RFC 7208 §4.8).
    fn target(
        &mut self,
        specification: Option<&Specification>,
        domain: &Name,
    ) -> Result<Option<Name>, Stop> {
        match specification {
            Some(specification) => self.expand(specification, domain),
            None => Ok(Some(domain.clone())),
        }
    }

    fn expand(
        &mut self,
        specification: &Specification,
        domain: &Name,
    ) -> Result<Option<Name>, Stop> {
        let wants_name = |piece: &Piece| {
            matches!(piece, Piece::Macro(Macro { letter: Letter::ValidatedName, .. }))
        };
        let names = match specification.0.iter().any(wants_name) {
            true => self.validated_names()?,
            false => Vec::new(),
        };
        // The domain itself, or one below it, before any other (RFC 7208 §7.3).
        let own = names
            .iter()
            .find(|name| *name == domain)
            .or_else(|| names.iter().find(|name| name.is_within(domain)));
        let validated = own.or(names.first()).map_or(UNKNOWN, |name| name.as_str().as_bytes());
        let values = Values { sender: self.sender, domain: domain.as_str().as_bytes(), validated };
        Ok(Name::of_bytes(&values.expand(specification)).ok())
    }
}

/// Whether an address lies in a network of its family.
fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
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
