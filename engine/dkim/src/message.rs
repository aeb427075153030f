//! A message that has been read, and what its signatures are worth (RFC 6376 §6.1).

use alloc::vec::Vec;

use dns::{Knowledge, Missing, Question, Record};
use machine::UnixTime;

use crate::body::{Form, Hashed};
use crate::chain::{Chain, Flaw};
use crate::header::Header;
use crate::key::{KEYS_MAX, Key};
use crate::signature::Signature;
use crate::verdict::{Reason, Verdict};

/// Signatures of a message that are looked at, from the top.
pub const SIGNATURES_MAX: usize = 8;

/// What signatures are called.
const FIELD: &[u8] = b"dkim-signature";

/// A message that has been read.
pub struct Message {
    pub(crate) header: Header,
    pub(crate) signatures: Vec<Signed>,
    pub(crate) chain: Result<Chain, Flaw>,
    /// `None` where the header is too long, or has too many fields.
    pub(crate) bodies: Option<Bodies<Hashed>>,
    pub(crate) is_to_be_signed: bool,
}

/// A signature of a message.
pub(crate) struct Signed {
    /// The field that it is.
    field: usize,
    signature: Result<Signature, Reason>,
}

/// One of each form that is wanted.
pub(crate) struct Bodies<T> {
    pub(crate) simple: Option<T>,
    pub(crate) relaxed: Option<T>,
}

impl Message {
    /// Its header.
    pub fn header(&self) -> &[u8] {
        self.header.bytes()
    }

    /// Whether no more than a beginning of its header was looked at.
    pub fn is_cut(&self) -> bool {
        self.bodies.is_none()
    }

    /// How many signatures it has.
    pub fn signatures(&self) -> usize {
        self.header.named(FIELD).len()
    }

    /// What has to be known before its signatures and its chain can be judged, and is not.
    pub fn missing(&self, knowledge: &Knowledge, now: UnixTime) -> Vec<Question> {
        missing(&self.header, &self.signatures, &self.chain, knowledge, now)
    }

    /// About how many bytes it takes in memory.
    pub fn footprint(&self) -> usize {
        self.header.footprint() + self.chain.as_ref().map_or(0, Chain::footprint)
    }

    /// What is to be thought of one of its signatures, counted from the top; and that there is none, where there is no such signature.
    ///
    /// Errors: [`Missing`] says what has to be known first: the keys, one name for each signature.
    pub fn verify(
        &self,
        number: usize,
        knowledge: &Knowledge,
        now: UnixTime,
    ) -> Result<Verdict, Missing> {
        let Some(Signed { field, signature }) = self.signatures.get(number) else {
            let is_there = number < self.signatures();
            let reason = if is_there { Reason::NotLookedAt } else { Reason::NotSigned };
            return Ok(Verdict { reason, signer: None });
        };
        let signature = match signature {
            Ok(signature) => signature,
            Err(reason) => return Ok(Verdict { reason: *reason, signer: None }),
        };
        let reason = match self.judge(*field, signature, knowledge, now) {
            Ok(()) => Reason::Verified,
            Err(Stop::Because(reason)) => reason,
            Err(Stop::Missing(missing)) => return Err(missing),
        };
        Ok(Verdict { reason, signer: Some(signature.signer.clone()) })
    }

    /// Whether a field is a signature of the message, and right.
    pub(crate) fn judge(
        &self,
        field: usize,
        signature: &Signature,
        knowledge: &Knowledge,
        now: UnixTime,
    ) -> Result<(), Stop> {
        let bodies = self.bodies.as_ref().ok_or(Reason::HeaderTooLong)?;
        signature.judge(self.header.named(b"from").len(), now)?;
        let keys = keys_of(signature, knowledge)?;
        let mut signed = Vec::new();
        let form = signature.header_form;
        self.header.write_selected(
            signature.names.iter().map(AsRef::as_ref),
            Some(field),
            form,
            &mut signed,
        );
        self.header.write_without(field, signature.span.clone(), form, &mut signed);
        let body = bodies.of(signature.body_form).ok_or(Reason::BodyChanged)?;
        prove(signature, &keys, &signed, || judge_body(signature, body))
    }
}

impl Signed {
    /// The signatures of a header that are looked at.
    pub(crate) fn all_of(header: &Header) -> Vec<Signed> {
        let fields = header.named(FIELD).iter().take(SIGNATURES_MAX);
        fields
            .map(|field| Signed { field: *field, signature: Signature::read(header.value(*field)) })
            .collect()
    }

    /// In which form it looks at the body, if it can be read.
    pub(crate) fn body_form(&self) -> Option<Form> {
        self.signature.as_ref().ok().map(|signature| signature.body_form)
    }
}

/// The names of keys that are not known, of those signatures that could count.
pub(crate) fn missing(
    header: &Header,
    signatures: &[Signed],
    chain: &Result<Chain, Flaw>,
    knowledge: &Knowledge,
    now: UnixTime,
) -> Vec<Question> {
    let authors = header.named(b"from").len();
    let readable = signatures.iter().filter_map(|signed| signed.signature.as_ref().ok());
    let could_count = readable.filter(|signature| signature.judge(authors, now).is_ok());
    let links = chain.iter().flat_map(|chain| chain.countable(authors, now));
    let unknown =
        could_count.chain(links).filter_map(|signature| knowledge.of(signature.question()).err());
    unknown.map(|Missing(key)| key).collect()
}

impl<T> Bodies<T> {
    pub(crate) fn each(&mut self, mut act: impl FnMut(&mut T)) {
        self.simple.iter_mut().chain(&mut self.relaxed).for_each(&mut act);
    }

    pub(crate) fn map<U>(self, become_other: impl Fn(T) -> U) -> Bodies<U> {
        Bodies { simple: self.simple.map(&become_other), relaxed: self.relaxed.map(&become_other) }
    }

    pub(crate) fn of(&self, form: Form) -> Option<&T> {
        match form {
            Form::Simple => self.simple.as_ref(),
            Form::Relaxed => self.relaxed.as_ref(),
        }
    }
}

/// Why a signature is not right, or not yet.
pub(crate) enum Stop {
    Because(Reason),
    Missing(Missing),
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Stop {
        Stop::Because(reason)
    }
}

impl From<Missing> for Stop {
    fn from(missing: Missing) -> Stop {
        Stop::Missing(missing)
    }
}

/// Whether a signature is right by one of its keys. `covers`: whether what else it covers is as it says, which is asked once it is known that a key may be used.
pub(crate) fn prove(
    signature: &Signature,
    keys: &[Key],
    signed: &[u8],
    covers: impl Fn() -> Result<(), Reason>,
) -> Result<(), Stop> {
    let verify = |key: &Key| {
        key.judge(signature)?;
        covers()?;
        key.verify(signed, &signature.signature)
    };
    let mut verdicts = keys.iter().map(verify);
    let first = verdicts.next().unwrap_or(Err(Reason::NoKey));
    if first.is_ok() || verdicts.any(|verdict| verdict.is_ok()) {
        Ok(())
    } else {
        first.map_err(Stop::from)
    }
}

/// The keys that a signature may be verified with: at least one.
pub(crate) fn keys_of(signature: &Signature, knowledge: &Knowledge) -> Result<Vec<Key>, Stop> {
    let answer = knowledge.of(signature.question())?.map_err(Reason::KeyUnanswered)?;
    let texts = answer.records.iter().filter_map(|record| match record {
        Record::Text(text) => Some(text),
        _ => None,
    });
    let keys: Vec<Key> = texts.filter_map(|text| Key::read(text)).take(KEYS_MAX).collect();
    match keys.is_empty() {
        true if answer.records.is_empty() => Err(Reason::NoKey.into()),
        true => Err(Reason::KeyBroken.into()),
        false => Ok(keys),
    }
}

/// Whether the body is the one that was signed, all of it.
fn judge_body(signature: &Signature, body: &Hashed) -> Result<(), Reason> {
    let signed = signature.body_bytes.unwrap_or(body.bytes);
    if signed > body.bytes {
        return Err(Reason::BodyTooShort);
    }
    if signed < body.bytes {
        return Err(Reason::BodyPartlySigned);
    }
    if signature.body_hash == body.digest.as_ref() { Ok(()) } else { Err(Reason::BodyChanged) }
}
