//! The ARC chain of a message: Authenticated Received Chain (RFC 8617 §4, §5.2).
//!
//! A server that forwards a message adds a set of three fields. `ARC-Authentication-Results` has
//! its check results. `ARC-Message-Signature` is its signature of the message that it sends.
//! `ARC-Seal` is its signature of all sets so far. The seal also says whether the chain was valid
//! when the message arrived.
//!
//! Invariants:
//! - A chain with any fault fails as a whole.
//! - At most [`SETS_MAX`] sets and [`CHAIN_KEYS_MAX`] names of keys are used. A chain with more
//!   sets or keys fails, and no name server is asked.
//! - Each call verifies one signature. The first call verifies the newest message signature. The
//!   next calls verify the seals, from the newest to the oldest.
//!
//! Choices that the RFC leaves open:
//! - A chain fails if name servers do not answer for its keys, since the RFC has no result for this
//!   case (§5.2.1). [`ChainVerdict::is_open`] recognizes such a failure.
//! - Message signatures older than the newest one are not verified. They would show only which
//!   forwarder changed the message.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use dns::{Knowledge, Missing, Name};
use machine::UnixTime;

use crate::arc_results;
use crate::body::CanonicalForm;
use crate::header::HeaderIndex;
use crate::message::{CompleteMessage, VerificationStop, keys_of, verify_with_any_key};
use crate::signature::DkimSignature;
use crate::tags::{Tags, number};
use crate::verdict::SignatureReason;

/// The most sets of a chain (RFC 8617 §4.2.1).
pub const SETS_MAX: usize = 50;
/// The most names of keys that are looked up for one chain.
pub const CHAIN_KEYS_MAX: usize = 16;

const RESULTS: &[u8] = b"arc-authentication-results";
const MESSAGE: &[u8] = b"arc-message-signature";
const SEAL: &[u8] = b"arc-seal";

/// The sets of a message, oldest first.
pub(crate) struct Chain {
    pub(crate) sets: Vec<Set>,
    /// The newest message signature, if there are sets.
    newest: Option<DkimSignature>,
}

/// A set of a chain: the numbers of its fields, and the parsed seal.
pub(crate) struct Set {
    pub(crate) results: usize,
    pub(crate) message: usize,
    pub(crate) seal: usize,
    pub(crate) signature: DkimSignature,
}

/// The verdict on a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChainVerdict {
    /// There is no chain.
    None,
    /// All seals are valid, and the message has not changed since the last forwarder.
    Pass,
    /// The chain proves nothing, for this reason.
    Fail(ArcError),
}

/// Why a chain fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArcError {
    /// The chain has more sets than are allowed.
    TooLong,
    /// The chain needs more keys than are looked up.
    TooManyKeys,
    /// A set is incomplete, or has a field twice, or is missing.
    Incomplete,
    /// A field has invalid syntax.
    Syntax,
    /// The last forwarder found the chain broken.
    SealedAsBroken,
    /// A seal has a status that is impossible for its place in the chain.
    WrongStatus,
    /// A message signature covers the chain itself.
    CoversItself,
    /// A signature of the set with this number is not valid.
    Link(usize, SignatureReason),
}

impl Chain {
    /// Reads the chain of a message. It may have no sets.
    ///
    /// Errors: a fault of the chain that needs no check of its signatures.
    pub(crate) fn read(header: &HeaderIndex) -> Result<Chain, ArcError> {
        let kinds = [RESULTS, MESSAGE, SEAL].map(|name| header.named(name));
        let count = kinds.iter().map(|fields| fields.len()).max().unwrap_or(0);
        if count > SETS_MAX {
            return Err(ArcError::TooLong);
        }
        let mut sets = vec![[None; 3]; count];
        for (kind, fields) in kinds.into_iter().enumerate() {
            for field in fields {
                let instance = instance(header.value(*field), kind == 0).ok_or(ArcError::Syntax)?;
                let set = instance.checked_sub(1).and_then(|number| sets.get_mut(number));
                // If a set has a field twice, another set lacks that field. The check below finds
                // this.
                *set.and_then(|set| set.get_mut(kind)).ok_or(ArcError::Incomplete)? = Some(*field);
            }
        }
        let sets = sets.into_iter().enumerate().map(|(number, fields)| match fields {
            [Some(results), Some(message), Some(seal)] => {
                let signature = seal_of(header.value(seal), number + 1, count)?;
                Ok(Set { results, message, seal, signature })
            }
            _ => Err(ArcError::Incomplete),
        });
        let sets = sets.collect::<Result<Vec<Set>, ArcError>>()?;
        let newest = sets
            .last()
            .map(|set| message_signature(header.value(set.message), count))
            .transpose()?;
        let chain = Chain { sets, newest };
        let mut keys: Vec<_> = chain.signatures().map(|signature| signature.question()).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.len() > CHAIN_KEYS_MAX { Err(ArcError::TooManyKeys) } else { Ok(chain) }
    }

    /// The canonicalization of the body for the newest message signature.
    pub(crate) fn body_form(&self) -> Option<CanonicalForm> {
        self.newest.as_ref().map(|newest| newest.body_form)
    }

    /// The signatures of the chain. The result is empty if one of them is invalid at this time,
    /// whatever its key is.
    pub(crate) fn countable(
        &self,
        authors: usize,
        now: UnixTime,
    ) -> impl Iterator<Item = &DkimSignature> {
        let could_count = self.error_at(authors, now).is_none();
        self.signatures().filter(move |_| could_count)
    }

    /// The first fault at this time that does not depend on keys.
    fn error_at(&self, authors: usize, now: UnixTime) -> Option<ArcError> {
        let of_message =
            self.newest.iter().map(|newest| (self.sets.len(), newest.judge(authors, now)));
        let seals = self
            .sets
            .iter()
            .enumerate()
            .rev()
            .map(|(before, set)| (before + 1, set.signature.judge_itself(now)));
        of_message
            .chain(seals)
            .find_map(|(instance, judged)| Some(ArcError::Link(instance, judged.err()?)))
    }

    /// The approximate memory of the chain, in bytes.
    pub(crate) fn footprint(&self) -> usize {
        let signatures: usize = self.signatures().map(|signature| signature.signature.len()).sum();
        self.sets.capacity() * size_of::<Set>() + signatures
    }

    fn signatures(&self) -> impl Iterator<Item = &DkimSignature> {
        self.newest.iter().chain(self.sets.iter().map(|set| &set.signature))
    }
}

impl CompleteMessage {
    /// The verdict on the chain of the message, if it needs no key: there is no chain, or the chain
    /// cannot pass at this time.
    pub fn chain_at_once(&self, now: UnixTime) -> Option<ChainVerdict> {
        let chain = match &self.chain {
            Ok(chain) => chain,
            Err(error) => return Some(ChainVerdict::Fail(*error)),
        };
        let error = chain.error_at(self.header.named(b"from").len(), now);
        if chain.sets.is_empty() { Some(ChainVerdict::None) } else { error.map(ChainVerdict::Fail) }
    }

    /// Verifies one step of the chain of the message. The first step has the number 0. `None`: the
    /// step was valid, and more steps follow.
    ///
    /// Errors: [`Missing`] has the question that must be answered first.
    pub fn judge_chain(
        &self,
        step: usize,
        knowledge: &Knowledge,
        now: UnixTime,
    ) -> Result<Option<ChainVerdict>, Missing> {
        let links = self
            .chain
            .as_ref()
            .ok()
            .and_then(|chain| Some((chain, chain.newest.as_ref()?, chain.sets.last()?)));
        let (Some((chain, newest, set)), None) = (links, self.chain_at_once(now)) else {
            return Ok(self.chain_at_once(now));
        };
        let (instance, judged) = match step.checked_sub(1) {
            None => (chain.sets.len(), self.judge(set.message, newest, knowledge, now)),
            Some(newer) => {
                let instance = chain.sets.len().saturating_sub(newer);
                (
                    instance,
                    self.judge_seal(chain.sets.get(..instance).unwrap_or_default(), knowledge),
                )
            }
        };
        match judged {
            Ok(()) if step > 0 && instance <= 1 => Ok(Some(ChainVerdict::Pass)),
            Ok(()) => Ok(None),
            Err(VerificationStop::Because(reason)) => {
                Ok(Some(ChainVerdict::Fail(ArcError::Link(instance, reason))))
            }
            Err(VerificationStop::Missing(missing)) => Err(missing),
        }
    }

    /// Whether the seal of the last set is a valid signature of all these sets.
    fn judge_seal(&self, sets: &[Set], knowledge: &Knowledge) -> Result<(), VerificationStop> {
        let Some((last, before)) = sets.split_last() else { return Ok(()) };
        let keys = keys_of(&last.signature, knowledge)?;
        let mut signed = Vec::new();
        self.write_sets(before, &mut signed);
        for field in [last.results, last.message] {
            self.header.write_field(field, CanonicalForm::Relaxed, &mut signed);
        }
        self.header.write_without(
            last.seal,
            last.signature.span.clone(),
            CanonicalForm::Relaxed,
            &mut signed,
        );
        verify_with_any_key(&last.signature, &keys, &signed, || Ok(()))
    }

    /// Writes sets in the form that seals cover.
    pub(crate) fn write_sets(&self, sets: &[Set], out: &mut Vec<u8>) {
        for field in sets.iter().flat_map(|set| [set.results, set.message, set.seal]) {
            self.header.write_field(field, CanonicalForm::Relaxed, out);
        }
    }

    /// The newest trusted forwarder at which DMARC passed. The search begins at the newest set, and
    /// ends at the first set of an untrusted domain. The result is valid only if the chain passes.
    pub fn trusted_forwarder(&self, is_trusted: impl Fn(&Name) -> bool) -> Option<&Name> {
        let sets = self.chain.as_ref().map_or(&[][..], |chain| &chain.sets);
        let trusted = sets.iter().rev().take_while(|set| is_trusted(&set.signature.signer.domain));
        let mut arc_results =
            trusted.filter(|set| arc_results::says_dmarc_passed(self.header.value(set.results)));
        arc_results.next().map(|set| &set.signature.signer.domain)
    }
}

/// The number of the set that a field belongs to (RFC 8617 §4.2.1). In check results, the number is
/// not a tag, but precedes the other text.
fn instance(value: &[u8], is_of_results: bool) -> Option<usize> {
    let digits = match is_of_results {
        true => {
            let first = value.split(|byte| *byte == b';').next()?.trim_ascii();
            first.strip_prefix(b"i")?.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start()
        }
        false => Tags::read(value)?.get(b"i")?,
    };
    if digits.len() > 2 { None } else { number(digits).map(|number| number as usize) }
}

/// Reads a seal (RFC 8617 §4.1.3). `count`: the number of sets.
fn seal_of(value: &[u8], instance: usize, count: usize) -> Result<DkimSignature, ArcError> {
    let tags = Tags::read(value).ok_or(ArcError::Syntax)?;
    if tags.get(b"h").is_some() {
        return Err(ArcError::Syntax);
    }
    match (tags.get(b"cv").ok_or(ArcError::Syntax)?, instance) {
        (b"none", 1) => {}
        (b"pass", 2..) => {}
        (b"fail", _) if instance == count => return Err(ArcError::SealedAsBroken),
        _ => return Err(ArcError::WrongStatus),
    }
    DkimSignature::of_nothing(&tags).map_err(|reason| ArcError::Link(instance, reason))
}

/// Reads the message signature of the set with this number (RFC 8617 §4.1.2).
fn message_signature(value: &[u8], instance: usize) -> Result<DkimSignature, ArcError> {
    let tags = Tags::read(value).ok_or(ArcError::Syntax)?;
    let signature =
        DkimSignature::of_message(&tags).map_err(|reason| ArcError::Link(instance, reason))?;
    let is_of_chain =
        |name: &[u8]| [RESULTS, MESSAGE, SEAL].iter().any(|field| name.eq_ignore_ascii_case(field));
    if signature.names.iter().any(|name| is_of_chain(name)) {
        Err(ArcError::CoversItself)
    } else {
        Ok(signature)
    }
}

impl ChainVerdict {
    /// Whether the verdict could change if name servers answered.
    pub fn is_open(&self) -> bool {
        matches!(self, ChainVerdict::Fail(ArcError::Link(_, SignatureReason::KeyUnanswered(_))))
    }
}

impl fmt::Display for ChainVerdict {
    /// The form in `Authentication-Results` (RFC 8617 §10.1).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainVerdict::None => out.write_str("arc=none"),
            ChainVerdict::Pass => out.write_str("arc=pass"),
            ChainVerdict::Fail(error) => write!(out, "arc=fail reason=\"{error}\""),
        }
    }
}

impl fmt::Display for ArcError {
    /// The error as text for people, in characters that are allowed in a quoted string.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ArcError::TooLong => "the chain is too long",
            ArcError::TooManyKeys => "the chain needs too many keys",
            ArcError::Incomplete => "the chain is incomplete",
            ArcError::Syntax => "the chain has a syntax error",
            ArcError::SealedAsBroken => "the chain was marked as failed before",
            ArcError::WrongStatus => "a seal has an impossible status",
            ArcError::CoversItself => "the chain signs itself",
            ArcError::Link(instance, reason) => return write!(out, "set {instance}: {reason}"),
        })
    }
}
