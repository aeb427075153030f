//! The chain of seals of those who have handed a message on: Authenticated Received Chain (RFC 8617 §4, §5.2).
//!
//! Whoever hands a message on adds a set of three fields: what he has found out about it (`ARC-Authentication-Results`), his signature of the message
//! as it leaves him (`ARC-Message-Signature`), and his signature of all sets so far (`ARC-Seal`), which says too whether the chain was whole when it came to him.
//!
//! Invariants:
//! - A chain of which anything is wrong fails as a whole.
//! - [`SETS_MAX`] sets are looked at and no more, and [`CHAIN_KEYS_MAX`] names of keys: a chain that has more of either fails, and nobody is asked for anything.
//! - One signature is computed a call: the newest one of the message, and then the seals from the newest down.
//!
//! Where the RFC leaves a choice:
//! - A chain of whose keys name servers do not answer for fails, since there is no other word for it (§5.2.1). Whoever asks can tell it from others ([`ChainVerdict::is_open`]).
//! - Signatures of the message under the newest one are not looked at: they say where it was changed, and that is asked for by nobody.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use dns::{Knowledge, Missing, Name};
use machine::UnixTime;

use crate::body::Form;
use crate::header::Header;
use crate::message::{Message, Stop, keys_of, prove};
use crate::signature::Signature;
use crate::tags::{Tags, number};
use crate::verdict::Reason;
use crate::vouching;

/// Sets that a chain has at most (RFC 8617 §4.2.1).
pub const SETS_MAX: usize = 50;
/// Names of keys that are asked for to judge one chain.
pub const CHAIN_KEYS_MAX: usize = 16;

const RESULTS: &[u8] = b"arc-authentication-results";
const MESSAGE: &[u8] = b"arc-message-signature";
const SEAL: &[u8] = b"arc-seal";

/// The sets of a message, the first one first.
pub(crate) struct Chain {
    pub(crate) sets: Vec<Set>,
    /// The newest signature of the message, where there are sets.
    newest: Option<Signature>,
}

/// A set of a chain: the fields that it is, and its seal.
pub(crate) struct Set {
    pub(crate) results: usize,
    pub(crate) message: usize,
    pub(crate) seal: usize,
    pub(crate) signature: Signature,
}

/// What a chain comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChainVerdict {
    /// There is none.
    None,
    /// Whoever handed the message on says what he has found out about it, and the last of them had it as it is.
    Pass,
    /// It proves nothing, for this reason.
    Fail(Flaw),
}

/// What is wrong with a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// It has more sets than a chain may have.
    TooLong,
    /// More keys would have to be known than are asked for.
    TooManyKeys,
    /// A set lacks something, or has it twice, or there is none.
    Incomplete,
    /// Something of it is not written as it should be.
    Syntax,
    /// Who sealed it last has found it broken.
    SealedAsBroken,
    /// A seal says of the chain before it what cannot be.
    WrongStatus,
    /// A signature of the message covers the chain itself.
    CoversItself,
    /// A signature of the set with this number does not count.
    Link(usize, Reason),
}

impl Chain {
    /// Reads the chain of a message: it may have no sets.
    ///
    /// Errors: what is wrong with it, whatever its signatures are worth.
    pub(crate) fn read(header: &Header) -> Result<Chain, Flaw> {
        let kinds = [RESULTS, MESSAGE, SEAL].map(|name| header.named(name));
        let count = kinds.iter().map(|fields| fields.len()).max().unwrap_or(0);
        if count > SETS_MAX {
            return Err(Flaw::TooLong);
        }
        let mut sets = vec![[None; 3]; count];
        for (kind, fields) in kinds.into_iter().enumerate() {
            for field in fields {
                let instance = instance(header.value(*field), kind == 0).ok_or(Flaw::Syntax)?;
                let set = instance.checked_sub(1).and_then(|number| sets.get_mut(number));
                // Where one is there twice, there is none in another place.
                *set.and_then(|set| set.get_mut(kind)).ok_or(Flaw::Incomplete)? = Some(*field);
            }
        }
        let sets = sets.into_iter().enumerate().map(|(number, fields)| match fields {
            [Some(results), Some(message), Some(seal)] => {
                let signature = seal_of(header.value(seal), number + 1, count)?;
                Ok(Set { results, message, seal, signature })
            }
            _ => Err(Flaw::Incomplete),
        });
        let sets = sets.collect::<Result<Vec<Set>, Flaw>>()?;
        let newest = sets
            .last()
            .map(|set| message_signature(header.value(set.message), count))
            .transpose()?;
        let chain = Chain { sets, newest };
        let mut keys: Vec<_> = chain.signatures().map(|signature| signature.question()).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.len() > CHAIN_KEYS_MAX { Err(Flaw::TooManyKeys) } else { Ok(chain) }
    }

    /// In which form its newest signature looks at the body.
    pub(crate) fn body_form(&self) -> Option<Form> {
        self.newest.as_ref().map(|newest| newest.body_form)
    }

    /// Those of its signatures that are looked at, if none of them is nothing at this time whatever its key is.
    pub(crate) fn countable(
        &self,
        authors: usize,
        now: UnixTime,
    ) -> impl Iterator<Item = &Signature> {
        let could_count = self.flaw_at(authors, now).is_none();
        self.signatures().filter(move |_| could_count)
    }

    /// What of it cannot count at this time whatever its keys are, if anything cannot.
    fn flaw_at(&self, authors: usize, now: UnixTime) -> Option<Flaw> {
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
            .find_map(|(instance, judged)| Some(Flaw::Link(instance, judged.err()?)))
    }

    /// About how many bytes it takes in memory.
    pub(crate) fn footprint(&self) -> usize {
        let signatures: usize = self.signatures().map(|signature| signature.signature.len()).sum();
        self.sets.capacity() * size_of::<Set>() + signatures
    }

    fn signatures(&self) -> impl Iterator<Item = &Signature> {
        self.newest.iter().chain(self.sets.iter().map(|set| &set.signature))
    }
}

impl Message {
    /// What its chain comes to where nothing is to be known or computed for that: there is none, or it cannot pass at this time.
    pub fn chain_at_once(&self, now: UnixTime) -> Option<ChainVerdict> {
        let chain = match &self.chain {
            Ok(chain) => chain,
            Err(flaw) => return Some(ChainVerdict::Fail(*flaw)),
        };
        let flaw = chain.flaw_at(self.header.named(b"from").len(), now);
        if chain.sets.is_empty() { Some(ChainVerdict::None) } else { flaw.map(ChainVerdict::Fail) }
    }

    /// Goes a step on with its chain, the first of which has the number 0. `None`: that was right, and there are more.
    ///
    /// Errors: [`Missing`] says what has to be known first.
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
            Err(Stop::Because(reason)) => {
                Ok(Some(ChainVerdict::Fail(Flaw::Link(instance, reason))))
            }
            Err(Stop::Missing(missing)) => Err(missing),
        }
    }

    /// Whether the last of these sets seals all of them.
    fn judge_seal(&self, sets: &[Set], knowledge: &Knowledge) -> Result<(), Stop> {
        let Some((last, before)) = sets.split_last() else { return Ok(()) };
        let keys = keys_of(&last.signature, knowledge)?;
        let mut signed = Vec::new();
        self.write_sets(before, &mut signed);
        for field in [last.results, last.message] {
            self.header.write_field(field, Form::Relaxed, &mut signed);
        }
        self.header.write_without(
            last.seal,
            last.signature.span.clone(),
            Form::Relaxed,
            &mut signed,
        );
        prove(&last.signature, &keys, &signed, || Ok(()))
    }

    /// Writes sets as seals cover them.
    pub(crate) fn write_sets(&self, sets: &[Set], out: &mut Vec<u8>) {
        for field in sets.iter().flat_map(|set| [set.results, set.message, set.seal]) {
            self.header.write_field(field, Form::Relaxed, out);
        }
    }

    /// Whom of those who sealed it last, as far back as they are trusted, has found that the message was of its author's domain (DMARC). Nobody's word is worth
    /// anything as long as the chain does not pass.
    pub fn vouched_by(&self, is_trusted: impl Fn(&Name) -> bool) -> Option<&Name> {
        let sets = self.chain.as_ref().map_or(&[][..], |chain| &chain.sets);
        let trusted = sets.iter().rev().take_while(|set| is_trusted(&set.signature.signer.domain));
        let mut vouching =
            trusted.filter(|set| vouching::has_found_pass(self.header.value(set.results)));
        vouching.next().map(|set| &set.signature.signer.domain)
    }
}

/// The number of the set to which a field belongs (RFC 8617 §4.2.1). In results that is not a tag among others, but stands before them.
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

/// Reads a seal (RFC 8617 §4.1.3). `count`: how many sets there are.
fn seal_of(value: &[u8], instance: usize, count: usize) -> Result<Signature, Flaw> {
    let tags = Tags::read(value).ok_or(Flaw::Syntax)?;
    if tags.get(b"h").is_some() {
        return Err(Flaw::Syntax);
    }
    match (tags.get(b"cv").ok_or(Flaw::Syntax)?, instance) {
        (b"none", 1) => {}
        (b"pass", 2..) => {}
        (b"fail", _) if instance == count => return Err(Flaw::SealedAsBroken),
        _ => return Err(Flaw::WrongStatus),
    }
    Signature::of_nothing(&tags).map_err(|reason| Flaw::Link(instance, reason))
}

/// Reads the signature of a message that the set with this number holds (RFC 8617 §4.1.2).
fn message_signature(value: &[u8], instance: usize) -> Result<Signature, Flaw> {
    let tags = Tags::read(value).ok_or(Flaw::Syntax)?;
    let signature = Signature::of_message(&tags).map_err(|reason| Flaw::Link(instance, reason))?;
    let is_of_chain =
        |name: &[u8]| [RESULTS, MESSAGE, SEAL].iter().any(|field| name.eq_ignore_ascii_case(field));
    if signature.names.iter().any(|name| is_of_chain(name)) {
        Err(Flaw::CoversItself)
    } else {
        Ok(signature)
    }
}

impl ChainVerdict {
    /// Whether it might be another one if name servers answered.
    pub fn is_open(&self) -> bool {
        matches!(self, ChainVerdict::Fail(Flaw::Link(_, Reason::KeyUnanswered(_))))
    }
}

impl fmt::Display for ChainVerdict {
    /// As `Authentication-Results` has it (RFC 8617 §10.1).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainVerdict::None => out.write_str("arc=none"),
            ChainVerdict::Pass => out.write_str("arc=pass"),
            ChainVerdict::Fail(flaw) => write!(out, "arc=fail reason=\"{flaw}\""),
        }
    }
}

impl fmt::Display for Flaw {
    /// For people, in words that may stand in a quoted string.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Flaw::TooLong => "the chain is too long",
            Flaw::TooManyKeys => "the chain needs too many keys",
            Flaw::Incomplete => "the chain is incomplete",
            Flaw::Syntax => "the chain is not written as chains are",
            Flaw::SealedAsBroken => "the chain was broken before",
            Flaw::WrongStatus => "a seal says of the chain what cannot be",
            Flaw::CoversItself => "the chain signs itself",
            Flaw::Link(instance, reason) => return write!(out, "set {instance}: {reason}"),
        })
    }
}
