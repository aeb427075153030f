//! Signatures as they are written: the field `DKIM-Signature` (RFC 6376 §3.5), and those of a chain, which are much like it (RFC 8617 §4.1).

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use dns::{Name, Question, RecordKind};
use machine::UnixTime;

use crate::body::Form;
use crate::tags::{Tags, decoded, members, number};
use crate::verdict::{Reason, Signer};

/// How far into the future a signature may have been made, in seconds: clocks are not all right.
const AHEAD_MAX: u64 = 3600;
/// How many characters of a signature tell it from others of the same message (RFC 6008 §4).
const PREFIX_CHARACTERS: usize = 8;

/// How a signature is computed.
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
    /// As signatures name it.
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
pub(crate) struct Signature {
    pub(crate) signer: Signer,
    /// Where its keys are.
    key: Name,
    /// For whose part of the domain it is made. `None` where that is no domain.
    agent: Option<Name>,
    pub(crate) header_form: Form,
    pub(crate) body_form: Form,
    /// How many bytes of the body it covers, if not all.
    pub(crate) body_bytes: Option<u64>,
    pub(crate) body_hash: Vec<u8>,
    /// The names of the fields that it covers, as they are listed.
    pub(crate) names: Vec<Box<[u8]>>,
    pub(crate) signature: Vec<u8>,
    /// Where in the field's value the signature itself stands.
    pub(crate) span: Range<usize>,
    made: Option<u64>,
    expires: Option<u64>,
}

impl Signature {
    /// Reads a field's value.
    ///
    /// Errors: why it is none that anybody could verify.
    pub(crate) fn read(value: &[u8]) -> Result<Signature, Reason> {
        let tags = Tags::read(value).ok_or(Reason::Syntax)?;
        if tags.get(b"v").ok_or(Reason::Syntax)? != b"1" {
            return Err(Reason::Unknown);
        }
        let signature = Signature::of_message(&tags)?;
        let agent = match tags.get(b"i") {
            Some(agent) => agent
                .rsplit(|byte| *byte == b'@')
                .next()
                .and_then(|agent| Name::of_bytes(agent).ok()),
            None => signature.agent,
        };
        Ok(Signature { agent, ..signature })
    }

    /// A signature of a message, by the domain itself.
    ///
    /// Errors: why it is none that anybody could verify.
    pub(crate) fn of_message(tags: &Tags<'_>) -> Result<Signature, Reason> {
        let (header_form, body_form) = forms(tags.get(b"c").unwrap_or(b"simple"))?;
        Ok(Signature {
            header_form,
            body_form,
            body_bytes: optional(tags, b"l")?,
            body_hash: bytes(required(tags, b"bh")?)?,
            names: names(required(tags, b"h")?)?,
            ..Signature::of_nothing(tags)?
        })
    }

    /// Who has signed, and how; what is covered by it is not said, and the form is the relaxed one.
    ///
    /// Errors: why it is none that anybody could verify.
    pub(crate) fn of_nothing(tags: &Tags<'_>) -> Result<Signature, Reason> {
        let get = |name: &str| required(tags, name.as_bytes());
        let algorithm = match get("a")? {
            b"rsa-sha256" => Algorithm::RsaSha256,
            b"rsa-sha1" => Algorithm::RsaSha1,
            b"ed25519-sha256" => Algorithm::Ed25519Sha256,
            _ => return Err(Reason::Unknown),
        };
        if tags.get(b"q").is_some_and(|ways| !members(ways).any(|way| way == b"dns/txt")) {
            return Err(Reason::Unknown);
        }
        let (domain, selector) = (domain_of(get("d")?)?, domain_of(get("s")?)?);
        let (made, expires) = (optional(tags, b"t")?, optional(tags, b"x")?);
        if made.zip(expires).is_some_and(|(made, expires)| expires <= made) {
            return Err(Reason::Syntax);
        }
        Ok(Signature {
            key: key_name(&selector, &domain)?,
            agent: Some(domain.clone()),
            header_form: Form::Relaxed,
            body_form: Form::Relaxed,
            body_bytes: None,
            body_hash: Vec::new(),
            names: Vec::new(),
            signature: bytes(get("b")?)?,
            span: tags.span(b"b").ok_or(Reason::Syntax)?,
            made,
            expires,
            signer: Signer { domain, selector, algorithm, prefix: prefix(get("b")?) },
        })
    }

    /// Whether it can count at all at this time, whatever its key is (RFC 6376 §6.1.1). `authors`: how many fields say who has written the message.
    ///
    /// Errors: why not.
    pub(crate) fn judge(&self, authors: usize, now: UnixTime) -> Result<(), Reason> {
        self.judge_itself(now)?;
        let listed = self.names.iter().filter(|name| name.eq_ignore_ascii_case(b"from")).count();
        if listed == 0 || listed < authors {
            return Err(Reason::FromNotSigned);
        }
        Ok(())
    }

    /// The same of one that does not cover who has written the message.
    ///
    /// Errors: why not.
    pub(crate) fn judge_itself(&self, now: UnixTime) -> Result<(), Reason> {
        if self.signer.algorithm == Algorithm::RsaSha1 {
            return Err(Reason::Sha1);
        }
        if !self.agent.as_ref().is_some_and(|agent| agent.is_within(&self.signer.domain)) {
            return Err(Reason::ForeignAgent);
        }
        if self.expires.is_some_and(|expires| expires < now.seconds()) {
            return Err(Reason::Expired);
        }
        if self.made.is_some_and(|made| made > now.seconds().saturating_add(AHEAD_MAX)) {
            return Err(Reason::FromTheFuture);
        }
        Ok(())
    }

    /// What its keys are asked for by.
    pub(crate) fn question(&self) -> Question {
        Question { name: self.key.clone(), kind: RecordKind::Text }
    }

    /// Whether it is made for the domain as such, and for no part of it.
    pub(crate) fn is_for_domain_itself(&self) -> bool {
        self.agent.as_ref() == Some(&self.signer.domain)
    }
}

fn required<'a>(tags: &Tags<'a>, name: &[u8]) -> Result<&'a [u8], Reason> {
    tags.get(name).ok_or(Reason::Syntax)
}

fn optional(tags: &Tags<'_>, name: &[u8]) -> Result<Option<u64>, Reason> {
    tags.get(name).map(|value| number(value).ok_or(Reason::Syntax)).transpose()
}

/// The forms of header and body; of a body alone that nothing is said of, the simple one.
fn forms(value: &[u8]) -> Result<(Form, Form), Reason> {
    let form = |name: &[u8]| match name {
        b"simple" => Ok(Form::Simple),
        b"relaxed" => Ok(Form::Relaxed),
        _ => Err(Reason::Unknown),
    };
    let mut names = value.splitn(2, |byte| *byte == b'/');
    Ok((form(names.next().unwrap_or_default())?, names.next().map_or(Ok(Form::Simple), form)?))
}

/// A domain's name, or a selector's: of letters, digits, hyphens and underscores.
pub(crate) fn domain_of(value: &[u8]) -> Result<Name, Reason> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let name = Name::of_bytes(value).map_err(|_| Reason::Syntax)?;
    if value.iter().all(is_plain) { Ok(name) } else { Err(Reason::Syntax) }
}

/// Where a domain publishes a key.
pub(crate) fn key_name(selector: &Name, domain: &Name) -> Result<Name, Reason> {
    Name::of_bytes(format!("{selector}._domainkey.{domain}").as_bytes()).map_err(|_| Reason::Syntax)
}

fn names(value: &[u8]) -> Result<Vec<Box<[u8]>>, Reason> {
    let name = |name: &[u8]| {
        let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
        is_name.then(|| name.into()).ok_or(Reason::Syntax)
    };
    members(value).map(name).collect()
}

fn bytes(value: &[u8]) -> Result<Vec<u8>, Reason> {
    decoded(value).filter(|bytes| !bytes.is_empty()).ok_or(Reason::Syntax)
}

fn prefix(value: &[u8]) -> Box<str> {
    let dense = value.iter().filter(|byte| !byte.is_ascii_whitespace());
    dense.take(PREFIX_CHARACTERS).map(|byte| char::from(*byte)).collect()
}
