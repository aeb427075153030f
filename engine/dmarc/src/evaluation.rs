//! Checks whether a message comes from its author's domain, and finds the policy if it does not
//! (RFC 9989, identifier alignment and policy discovery).

use core::fmt;

use dns::{Knowledge, Missing, Name, Question, RecordKind};

use crate::record::{DmarcPolicy, DmarcRecord};
use crate::walk::{Walk, WalkStop};

/// The claimed and proved origins of a message.
#[derive(Clone, Copy, Debug)]
pub struct MessageOrigins<'a> {
    /// The domain of the address in `From`. Without an address, or with addresses of several
    /// domains, a message cannot be checked.
    pub author: &'a Name,
    /// The domain for which SPF has passed.
    pub sender: Option<&'a Name>,
    /// The domains of the signatures that have passed.
    pub signers: &'a [Name],
}

/// The verdict of a domain on a message in its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DmarcVerdict {
    /// The domain has no policy.
    None,
    /// The message comes from the domain.
    Pass,
    /// Nothing proves that the message comes from the domain. This is the domain's policy for such
    /// messages.
    Fail(DmarcPolicy),
    /// Name servers did not answer: they may answer later.
    TempError,
}

impl fmt::Display for DmarcVerdict {
    /// The name in header fields (RFC 7489 §11.2).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            DmarcVerdict::None => "none",
            DmarcVerdict::Pass => "pass",
            DmarcVerdict::Fail(_) => "fail",
            DmarcVerdict::TempError => "temperror",
        })
    }
}

/// The verdict of the author's domain on a message.
///
/// Errors: [`Missing`] has the question that must be answered first.
pub fn check(origins: &MessageOrigins<'_>, knowledge: &Knowledge) -> Result<DmarcVerdict, Missing> {
    match evaluate(origins, knowledge) {
        Ok(verdict) => Ok(verdict),
        Err(WalkStop::Temporary) => Ok(DmarcVerdict::TempError),
        Err(WalkStop::Missing(missing)) => Err(missing),
    }
}

fn evaluate(origins: &MessageOrigins<'_>, knowledge: &Knowledge) -> Result<DmarcVerdict, WalkStop> {
    let walk = Walk::from(origins.author, knowledge)?;
    let Some((domain, record)) = walk.record() else { return Ok(DmarcVerdict::None) };
    let organization = walk.organization();
    let mut is_unknown = false;
    let signers = origins.signers.iter().map(|signer| (signer, record.is_strict_for_signatures));
    let sender = origins.sender.map(|sender| (sender, record.is_strict_for_senders));
    for (proved, is_strict) in sender.into_iter().chain(signers) {
        match is_aligned(origins.author, &organization, proved, is_strict, knowledge) {
            Ok(true) => return Ok(DmarcVerdict::Pass),
            Ok(false) => {}
            Err(WalkStop::Temporary) => is_unknown = true,
            Err(missing) => return Err(missing),
        }
    }
    if is_unknown {
        return Err(WalkStop::Temporary);
    }
    let handling = policy_for(origins.author, domain, record, knowledge)?;
    Ok(DmarcVerdict::Fail(if record.is_test { milder(handling) } else { handling }))
}

/// Whether a proved domain is aligned with the author's.
fn is_aligned(
    author: &Name,
    organization: &Name,
    proved: &Name,
    is_strict: bool,
    knowledge: &Knowledge,
) -> Result<bool, WalkStop> {
    if author == proved {
        return Ok(true);
    }
    // A domain outside the organization belongs to another organization, so no question is needed.
    if is_strict || !proved.is_within(organization) {
        return Ok(false);
    }
    Ok(Walk::from(proved, knowledge)?.organization() == *organization)
}

/// The policy for messages of the author's domain, by the record of `domain`.
fn policy_for(
    author: &Name,
    domain: &Name,
    record: &DmarcRecord,
    knowledge: &Knowledge,
) -> Result<DmarcPolicy, Missing> {
    if author == domain {
        return Ok(record.own);
    }
    let below = record.below.unwrap_or(record.own);
    match record.below_nothing {
        Some(handling) if handling != below && !exists(author, knowledge)? => Ok(handling),
        _ => Ok(below),
    }
}

/// Whether `domain` has MX or address records. If name servers do not answer, the domain counts as
/// existing.
fn exists(domain: &Name, knowledge: &Knowledge) -> Result<bool, Missing> {
    for kind in [RecordKind::Exchanger, RecordKind::Ipv4, RecordKind::Ipv6] {
        let answer = knowledge.of(Question { name: domain.clone(), kind })?;
        if answer.is_ok_and(|answer| answer.records.is_empty()) {
            continue;
        }
        return Ok(true);
    }
    Ok(false)
}

/// The milder policy that applies while a domain is testing.
fn milder(handling: DmarcPolicy) -> DmarcPolicy {
    match handling {
        DmarcPolicy::Reject => DmarcPolicy::Quarantine,
        DmarcPolicy::Quarantine | DmarcPolicy::None => DmarcPolicy::None,
    }
}
