//! The syntax of signatures: the field `DKIM-Signature` (RFC 6376 §3.5), and the similar fields of
//! a chain (RFC 8617 §4.1).

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use dns::{Name, Question, RecordKind};
use machine::UnixTime;

use crate::body::CanonicalForm;
use crate::tags::{Tags, decoded, members, number};
use crate::verdict::{SignatureReason, SignerIdentity};

/// The most seconds by which the time of a signature may be in the future, since some clocks are
/// wrong.
const AHEAD_MAX: u64 = 3600;
/// The number of characters that distinguish the signatures of one message (RFC 6008 §4).
const PREFIX_CHARACTERS: usize = 8;

/// The algorithm of a signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// RSA over SHA-256.
    RsaSha256,
    /// RSA over SHA-1, which proves nothing (RFC 8301 §3.1).
    RsaSha1,
    /// Ed25519 over SHA-256 (RFC 8463).
    Ed25519Sha256,
}

impl fmt::Display for Algorithm {
    /// The name in signatures.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Algorithm::RsaSha256 => "rsa-sha256",
            Algorithm::RsaSha1 => "rsa-sha1",
            Algorithm::Ed25519Sha256 => "ed25519-sha256",
        })
    }
}

/// A signature.
#[derive(Debug)]
pub(crate) struct DkimSignature {
    pub(crate) signer: SignerIdentity,
    /// The name at which the keys are published.
    key: Name,
    /// The domain of the agent or user (`i=`). `None`: the value has no valid domain.
    agent: Option<Name>,
    pub(crate) header_form: CanonicalForm,
    pub(crate) body_form: CanonicalForm,
    /// The number of bytes of the body that the signature covers. `None`: all.
    pub(crate) body_bytes: Option<u64>,
    pub(crate) body_hash: Vec<u8>,
    /// The names of the fields that the signature covers, in their order.
    pub(crate) names: Vec<Box<[u8]>>,
    pub(crate) signature: Vec<u8>,
    /// The range of the signature itself in the field's value.
    pub(crate) span: Range<usize>,
    made: Option<u64>,
    expires: Option<u64>,
}

impl DkimSignature {
    /// Reads a field's value.
    ///
    /// Errors: why it cannot be verified.
    pub(crate) fn read(value: &[u8]) -> Result<DkimSignature, SignatureReason> {
        let tags = Tags::read(value).ok_or(SignatureReason::Syntax)?;
        if tags.get(b"v").ok_or(SignatureReason::Syntax)? != b"1" {
            return Err(SignatureReason::Unknown);
        }
        let signature = DkimSignature::of_message(&tags)?;
        let agent = match tags.get(b"i") {
            Some(agent) => agent
                .rsplit(|byte| *byte == b'@')
                .next()
                .and_then(|agent| Name::of_bytes(agent).ok()),
            None => signature.agent,
        };
        Ok(DkimSignature { agent, ..signature })
    }

    /// Reads a signature of a message. The result has the domain itself as its agent.
    ///
    /// Errors: why it cannot be verified.
    pub(crate) fn of_message(tags: &Tags<'_>) -> Result<DkimSignature, SignatureReason> {
        let (header_form, body_form) = forms(tags.get(b"c").unwrap_or(b"simple"))?;
        Ok(DkimSignature {
            header_form,
            body_form,
            body_bytes: optional(tags, b"l")?,
            body_hash: bytes(required(tags, b"bh")?)?,
            names: names(required(tags, b"h")?)?,
            ..DkimSignature::of_nothing(tags)?
        })
    }

    /// Reads the signer and the algorithm. The result covers nothing, and its canonicalization is
    /// relaxed.
    ///
    /// Errors: why it cannot be verified.
    pub(crate) fn of_nothing(tags: &Tags<'_>) -> Result<DkimSignature, SignatureReason> {
        let get = |name: &str| required(tags, name.as_bytes());
        let algorithm = match get("a")? {
            b"rsa-sha256" => Algorithm::RsaSha256,
            b"rsa-sha1" => Algorithm::RsaSha1,
            b"ed25519-sha256" => Algorithm::Ed25519Sha256,
            _ => return Err(SignatureReason::Unknown),
        };
        if tags
            .get(b"q")
            .is_some_and(|methods| !members(methods).any(|method| method == b"dns/txt"))
        {
            return Err(SignatureReason::Unknown);
        }
        let (domain, selector) = (domain_of(get("d")?)?, domain_of(get("s")?)?);
        let (made, expires) = (optional(tags, b"t")?, optional(tags, b"x")?);
        if made.zip(expires).is_some_and(|(made, expires)| expires <= made) {
            return Err(SignatureReason::Syntax);
        }
        Ok(DkimSignature {
            key: key_name(&selector, &domain)?,
            agent: Some(domain.clone()),
            header_form: CanonicalForm::Relaxed,
            body_form: CanonicalForm::Relaxed,
            body_bytes: None,
            body_hash: Vec::new(),
            names: Vec::new(),
            signature: bytes(get("b")?)?,
            span: tags.span(b"b").ok_or(SignatureReason::Syntax)?,
            made,
            expires,
            signer: SignerIdentity { domain, selector, algorithm, prefix: prefix(get("b")?) },
        })
    }

    /// Whether the signature can be valid at this time, whatever its key is (RFC 6376 §6.1.1).
    /// `authors`: the number of `From` fields.
    ///
    /// Errors: the reason why it cannot be valid.
    pub(crate) fn judge(&self, authors: usize, now: UnixTime) -> Result<(), SignatureReason> {
        self.judge_itself(now)?;
        let listed = self.names.iter().filter(|name| name.eq_ignore_ascii_case(b"from")).count();
        if listed == 0 || listed < authors {
            return Err(SignatureReason::FromNotSigned);
        }
        Ok(())
    }

    /// As [`Self::judge`], for a signature that need not cover `From`.
    ///
    /// Errors: the reason why it cannot be valid.
    pub(crate) fn judge_itself(&self, now: UnixTime) -> Result<(), SignatureReason> {
        if self.signer.algorithm == Algorithm::RsaSha1 {
            return Err(SignatureReason::Sha1);
        }
        if !self.agent.as_ref().is_some_and(|agent| agent.is_within(&self.signer.domain)) {
            return Err(SignatureReason::ForeignAgent);
        }
        if self.expires.is_some_and(|expires| expires < now.seconds()) {
            return Err(SignatureReason::Expired);
        }
        if self.made.is_some_and(|made| made > now.seconds().saturating_add(AHEAD_MAX)) {
            return Err(SignatureReason::FromTheFuture);
        }
        Ok(())
    }

    /// The question for the keys of the signature.
    pub(crate) fn question(&self) -> Question {
        Question { name: self.key.clone(), kind: RecordKind::Text }
    }

    /// Whether the signature is made for the domain itself, and not for a subdomain.
    pub(crate) fn is_for_domain_itself(&self) -> bool {
        self.agent.as_ref() == Some(&self.signer.domain)
    }
}

/// The value of a tag that a signature must have.
fn required<'a>(tags: &Tags<'a>, name: &[u8]) -> Result<&'a [u8], SignatureReason> {
    tags.get(name).ok_or(SignatureReason::Syntax)
}

/// The number in a tag that a signature may have.
fn optional(tags: &Tags<'_>, name: &[u8]) -> Result<Option<u64>, SignatureReason> {
    tags.get(name).map(|value| number(value).ok_or(SignatureReason::Syntax)).transpose()
}

/// The canonicalizations of header and body. If the value has only one form, it is for the header,
/// and the form for the body is simple.
fn forms(value: &[u8]) -> Result<(CanonicalForm, CanonicalForm), SignatureReason> {
    let form = |name: &[u8]| match name {
        b"simple" => Ok(CanonicalForm::Simple),
        b"relaxed" => Ok(CanonicalForm::Relaxed),
        _ => Err(SignatureReason::Unknown),
    };
    let mut names = value.splitn(2, |byte| *byte == b'/');
    Ok((
        form(names.next().unwrap_or_default())?,
        names.next().map_or(Ok(CanonicalForm::Simple), form)?,
    ))
}

/// The name of a domain or a selector: alphanumeric characters, hyphens and underscores.
pub(crate) fn domain_of(value: &[u8]) -> Result<Name, SignatureReason> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let name = Name::of_bytes(value).map_err(|_| SignatureReason::Syntax)?;
    if value.iter().all(is_plain) { Ok(name) } else { Err(SignatureReason::Syntax) }
}

/// The name at which a domain publishes a key.
pub(crate) fn key_name(selector: &Name, domain: &Name) -> Result<Name, SignatureReason> {
    Name::of_bytes(format!("{selector}._domainkey.{domain}").as_bytes())
        .map_err(|_| SignatureReason::Syntax)
}

/// The names of the signed fields (`h=`).
fn names(value: &[u8]) -> Result<Vec<Box<[u8]>>, SignatureReason> {
    let name = |name: &[u8]| {
        let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
        is_name.then(|| name.into()).ok_or(SignatureReason::Syntax)
    };
    members(value).map(name).collect()
}

/// The bytes of a hash or signature, which must not be empty.
fn bytes(value: &[u8]) -> Result<Vec<u8>, SignatureReason> {
    decoded(value).filter(|bytes| !bytes.is_empty()).ok_or(SignatureReason::Syntax)
}

/// The first characters of a signature, without white space.
fn prefix(value: &[u8]) -> Box<str> {
    let dense = value.iter().filter(|byte| !byte.is_ascii_whitespace());
    dense.take(PREFIX_CHARACTERS).map(|byte| char::from(*byte)).collect()
}
