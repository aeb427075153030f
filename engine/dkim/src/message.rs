//! A complete message, and the verdicts on its signatures (RFC 6376 §6.1).

use alloc::vec::Vec;

use dns::{Knowledge, Missing, Question, Record};
use machine::UnixTime;

use crate::body::{CanonicalForm, Hashed};
use crate::chain::{ArcError, Chain};
use crate::header::HeaderIndex;
use crate::key::{KEYS_MAX, PublishedKey};
use crate::signature::DkimSignature;
use crate::verdict::{SignatureReason, SignatureVerdict};

/// The most signatures of a message that are verified. The topmost ones are chosen.
pub const SIGNATURES_MAX: usize = 8;

/// The name of signature fields.
const FIELD: &[u8] = b"dkim-signature";

/// A complete message.
pub struct CompleteMessage {
    pub(crate) header: HeaderIndex,
    pub(crate) signatures: Vec<Signed>,
    pub(crate) chain: Result<Chain, ArcError>,
    /// `None`: the header is too long, or has too many fields.
    pub(crate) bodies: Option<Bodies<Hashed>>,
    pub(crate) is_to_be_signed: bool,
}

/// A signature of a message.
pub(crate) struct Signed {
    /// The number of the field.
    field: usize,
    signature: Result<DkimSignature, SignatureReason>,
}

/// One value for each canonicalization that is used.
pub(crate) struct Bodies<T> {
    pub(crate) simple: Option<T>,
    pub(crate) relaxed: Option<T>,
}

impl CompleteMessage {
    /// The header of the message, or the beginning of a header that is too long.
    pub fn header(&self) -> &[u8] {
        self.header.bytes()
    }

    /// Whether only the beginning of the header was read.
    pub fn is_cut(&self) -> bool {
        self.bodies.is_none()
    }

    /// The number of signatures of the message.
    pub fn signatures(&self) -> usize {
        self.header.named(FIELD).len()
    }

    /// The questions about keys for the signatures and the chain that have no answer yet.
    pub fn missing(&self, knowledge: &Knowledge, now: UnixTime) -> Vec<Question> {
        missing(&self.header, &self.signatures, &self.chain, knowledge, now)
    }

    /// The approximate memory of the message, in bytes.
    pub fn footprint(&self) -> usize {
        self.header.footprint() + self.chain.as_ref().map_or(0, Chain::footprint)
    }

    /// The verdict on the signature with this number. The topmost signature has the number 0. If
    /// there is no such signature, the verdict is [`SignatureReason::NotSigned`]. For a number
    /// beyond [`SIGNATURES_MAX`], it is [`SignatureReason::NotLookedAt`].
    ///
    /// Errors: [`Missing`] has the question for the keys of the signature.
    pub fn verify(
        &self,
        number: usize,
        knowledge: &Knowledge,
        now: UnixTime,
    ) -> Result<SignatureVerdict, Missing> {
        let Some(Signed { field, signature }) = self.signatures.get(number) else {
            let exists = number < self.signatures();
            let reason =
                if exists { SignatureReason::NotLookedAt } else { SignatureReason::NotSigned };
            return Ok(SignatureVerdict { reason, signer: None });
        };
        let signature = match signature {
            Ok(signature) => signature,
            Err(reason) => return Ok(SignatureVerdict { reason: *reason, signer: None }),
        };
        let reason = match self.judge(*field, signature, knowledge, now) {
            Ok(()) => SignatureReason::Verified,
            Err(VerificationStop::Because(reason)) => reason,
            Err(VerificationStop::Missing(missing)) => return Err(missing),
        };
        Ok(SignatureVerdict { reason, signer: Some(signature.signer.clone()) })
    }

    /// Whether a field is a valid signature of the message.
    pub(crate) fn judge(
        &self,
        field: usize,
        signature: &DkimSignature,
        knowledge: &Knowledge,
        now: UnixTime,
    ) -> Result<(), VerificationStop> {
        let bodies = self.bodies.as_ref().ok_or(SignatureReason::HeaderTooLong)?;
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
        let body = bodies.of(signature.body_form).ok_or(SignatureReason::BodyChanged)?;
        verify_with_any_key(signature, &keys, &signed, || judge_body(signature, body))
    }
}

impl Signed {
    /// The signatures of a header that must be verified: the topmost [`SIGNATURES_MAX`].
    pub(crate) fn all_of(header: &HeaderIndex) -> Vec<Signed> {
        let fields = header.named(FIELD).iter().take(SIGNATURES_MAX);
        fields
            .map(|field| Signed {
                field: *field,
                signature: DkimSignature::read(header.value(*field)),
            })
            .collect()
    }

    /// The canonicalization of the body, if the signature can be read.
    pub(crate) fn body_form(&self) -> Option<CanonicalForm> {
        self.signature.as_ref().ok().map(|signature| signature.body_form)
    }
}

/// The questions for unknown keys of the signatures that could be valid at this time.
pub(crate) fn missing(
    header: &HeaderIndex,
    signatures: &[Signed],
    chain: &Result<Chain, ArcError>,
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
    /// Calls `act` with each value that exists.
    pub(crate) fn each(&mut self, mut act: impl FnMut(&mut T)) {
        self.simple.iter_mut().chain(&mut self.relaxed).for_each(&mut act);
    }

    pub(crate) fn map<U>(self, become_other: impl Fn(T) -> U) -> Bodies<U> {
        Bodies { simple: self.simple.map(&become_other), relaxed: self.relaxed.map(&become_other) }
    }

    /// The value for a canonicalization, if this canonicalization is used.
    pub(crate) fn of(&self, form: CanonicalForm) -> Option<&T> {
        match form {
            CanonicalForm::Simple => self.simple.as_ref(),
            CanonicalForm::Relaxed => self.relaxed.as_ref(),
        }
    }
}

/// Why a signature is not valid, or cannot be verified yet.
pub(crate) enum VerificationStop {
    Because(SignatureReason),
    Missing(Missing),
}

impl From<SignatureReason> for VerificationStop {
    fn from(reason: SignatureReason) -> VerificationStop {
        VerificationStop::Because(reason)
    }
}

impl From<Missing> for VerificationStop {
    fn from(missing: Missing) -> VerificationStop {
        VerificationStop::Missing(missing)
    }
}

/// Whether a signature of `signed` is valid with one of its keys. If the signature also covers the
/// body, `covers` checks the body. This function calls `covers` only if a key is usable.
pub(crate) fn verify_with_any_key(
    signature: &DkimSignature,
    keys: &[PublishedKey],
    signed: &[u8],
    covers: impl Fn() -> Result<(), SignatureReason>,
) -> Result<(), VerificationStop> {
    let verify = |key: &PublishedKey| {
        key.judge(signature)?;
        covers()?;
        key.verify(signed, &signature.signature)
    };
    let mut verdicts = keys.iter().map(verify);
    let first = verdicts.next().unwrap_or(Err(SignatureReason::NoKey));
    if first.is_ok() || verdicts.any(|verdict| verdict.is_ok()) {
        Ok(())
    } else {
        first.map_err(VerificationStop::from)
    }
}

/// The keys for a signature. The result has at least one key.
pub(crate) fn keys_of(
    signature: &DkimSignature,
    knowledge: &Knowledge,
) -> Result<Vec<PublishedKey>, VerificationStop> {
    let answer = knowledge.of(signature.question())?.map_err(SignatureReason::KeyUnanswered)?;
    let texts = answer.records.iter().filter_map(|record| match record {
        Record::Text(text) => Some(text),
        _ => None,
    });
    let keys: Vec<PublishedKey> =
        texts.filter_map(|text| PublishedKey::read(text)).take(KEYS_MAX).collect();
    match keys.is_empty() {
        true if answer.records.is_empty() => Err(SignatureReason::NoKey.into()),
        true => Err(SignatureReason::KeyBroken.into()),
        false => Ok(keys),
    }
}

/// Whether the body equals the signed body, and the whole body was signed.
fn judge_body(signature: &DkimSignature, body: &Hashed) -> Result<(), SignatureReason> {
    let signed = signature.body_bytes.unwrap_or(body.bytes);
    if signed > body.bytes {
        return Err(SignatureReason::BodyTooShort);
    }
    if signed < body.bytes {
        return Err(SignatureReason::BodyPartlySigned);
    }
    if signature.body_hash == body.digest.as_ref() {
        Ok(())
    } else {
        Err(SignatureReason::BodyChanged)
    }
}
