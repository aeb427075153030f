//! Whether a letter is its author's, and what is to be done if not (RFC 9989, identifier alignment and policy discovery).

use core::fmt;

use dns::{Knowledge, Missing, Name, Question, RecordKind};

use crate::record::{Handling, Record};
use crate::walk::{Stop, Walk};

/// Whose letter it is said and proved to be.
#[derive(Clone, Copy, Debug)]
pub struct Letter<'a> {
    /// The domain of the one address in `From`. Where there is none, or addresses of several, nothing can be checked.
    pub author: &'a Name,
    /// The domain for which SPF has passed.
    pub sender: Option<&'a Name>,
    /// The domains whose signatures have passed.
    pub signers: &'a [Name],
}

/// What a domain says of a letter in its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It says nothing.
    None,
    /// It is a letter of its own.
    Pass,
    /// Nobody proves that, and this is to be done with such.
    Fail(Handling),
    /// Name servers did not answer: asked again later they may.
    TempError,
}

impl fmt::Display for Verdict {
    /// As header fields name it (RFC 7489 §11.2).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Verdict::None => "none",
            Verdict::Pass => "pass",
            Verdict::Fail(_) => "fail",
            Verdict::TempError => "temperror",
        })
    }
}

/// What the domain of a letter's author says of it.
///
/// Errors: [`Missing`] says what has to be known first.
pub fn check(letter: &Letter<'_>, knowledge: &Knowledge) -> Result<Verdict, Missing> {
    match evaluate(letter, knowledge) {
        Ok(verdict) => Ok(verdict),
        Err(Stop::Temporary) => Ok(Verdict::TempError),
        Err(Stop::Missing(missing)) => Err(missing),
    }
}

fn evaluate(letter: &Letter<'_>, knowledge: &Knowledge) -> Result<Verdict, Stop> {
    let walk = Walk::from(letter.author, knowledge)?;
    let Some((domain, record)) = walk.record() else { return Ok(Verdict::None) };
    let organization = walk.organization();
    let mut is_unknown = false;
    let signers = letter.signers.iter().map(|signer| (signer, record.is_strict_for_signatures));
    let sender = letter.sender.map(|sender| (sender, record.is_strict_for_senders));
    for (proved, is_strict) in sender.into_iter().chain(signers) {
        match is_aligned(letter.author, &organization, proved, is_strict, knowledge) {
            Ok(true) => return Ok(Verdict::Pass),
            Ok(false) => {}
            Err(Stop::Temporary) => is_unknown = true,
            Err(missing) => return Err(missing),
        }
    }
    if is_unknown {
        return Err(Stop::Temporary);
    }
    let handling = wanted(letter.author, domain, record, knowledge)?;
    Ok(Verdict::Fail(if record.is_test { milder(handling) } else { handling }))
}

/// Whether what was proved of a domain is proved of the author's.
fn is_aligned(
    author: &Name,
    organization: &Name,
    proved: &Name,
    is_strict: bool,
    knowledge: &Knowledge,
) -> Result<bool, Stop> {
    if author == proved {
        return Ok(true);
    }
    // What lies elsewhere is of another organization: that needs no question.
    if is_strict || !proved.is_within(organization) {
        return Ok(false);
    }
    Ok(Walk::from(proved, knowledge)?.organization() == *organization)
}

/// What is to be done with letters of the author's domain, as the record of `domain` says.
fn wanted(
    author: &Name,
    domain: &Name,
    record: &Record,
    knowledge: &Knowledge,
) -> Result<Handling, Missing> {
    if author == domain {
        return Ok(record.own);
    }
    let below = record.below.unwrap_or(record.own);
    match record.below_nothing {
        Some(handling) if handling != below && !exists(author, knowledge)? => Ok(handling),
        _ => Ok(below),
    }
}

/// Whether there is a domain that could have to do with mail. Where nobody knows there is.
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

/// What is done while a domain tests.
fn milder(handling: Handling) -> Handling {
    match handling {
        Handling::Reject => Handling::Quarantine,
        Handling::Quarantine | Handling::None => Handling::None,
    }
}
