//! What is to be thought of a signature, and how header fields say it (RFC 8601 §2.7.1).

use alloc::boxed::Box;
use core::fmt;

use dns::{Name, Unanswered};

use crate::signature::Algorithm;

/// What is to be thought of a signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Why it is what it is.
    pub reason: Reason,
    /// Whose signature it is, where it says so in a way that can be read.
    pub signer: Option<Signer>,
}

/// Whose signature it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signer {
    /// The domain (`d=`).
    pub domain: Name,
    /// Which of its keys (`s=`).
    pub selector: Name,
    /// How it is computed (`a=`).
    pub algorithm: Algorithm,
    /// The first characters of the signature (`b=`), by which it is told from others of the same message (RFC 6008).
    pub prefix: Box<str>,
}

/// What a signature comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// There is none.
    None,
    /// Who signed is who it says, and nothing that it signed was changed.
    Pass,
    /// Somebody changed what was signed, or it was somebody else who did.
    Fail,
    /// It may be right, and is not taken here.
    Policy,
    /// Nothing can be said of it.
    Neutral,
    /// Name servers did not answer: asked again later they may.
    TempError,
    /// It cannot be verified, now or later.
    PermError,
}

/// Why a signature comes to what it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The message has no such signature.
    NotSigned,
    /// It is right.
    Verified,
    /// The body is not the one that was signed.
    BodyChanged,
    /// The header is not the one that was signed, or another key has signed it.
    SignatureWrong,
    /// It is not written as signatures are.
    Syntax,
    /// Its version, its algorithm, its canonicalization or the way to its keys is none that there is here.
    Unknown,
    /// It was made in the future.
    FromTheFuture,
    /// The message has more signatures than are looked at.
    NotLookedAt,
    /// The domain only tests.
    Testing,
    /// The header is longer than what is looked at.
    HeaderTooLong,
    /// The body goes on behind what was signed.
    BodyPartlySigned,
    /// The key can be broken (RFC 8301 §3.2).
    KeyTooShort,
    /// The key is larger than what is computed with.
    KeyTooLong,
    /// Nobody knows the key.
    KeyUnanswered(Unanswered),
    /// RSA over SHA-1 proves nothing.
    Sha1,
    /// A field that says who has written the message is not part of what was signed.
    FromNotSigned,
    /// It is made for somebody outside of the domain that signs.
    ForeignAgent,
    /// It was good until some time ago.
    Expired,
    /// The body ends before what was signed does.
    BodyTooShort,
    /// The domain has no such key.
    NoKey,
    /// The domain has something there that is no key.
    KeyBroken,
    /// The domain has taken the key back.
    KeyRevoked,
    /// The key is for another algorithm.
    KeyOfAnotherKind,
    /// The key is for other hashes.
    KeyOfAnotherHash,
    /// The key is for something else than mail.
    KeyNotForMail,
    /// The key is not for parts of the domain.
    KeyNotForPart,
}

impl Verdict {
    /// What the signature comes to.
    pub fn outcome(&self) -> Outcome {
        self.reason.outcome()
    }
}

impl Reason {
    fn outcome(self) -> Outcome {
        use Reason::*;
        match self {
            NotSigned => Outcome::None,
            Verified => Outcome::Pass,
            BodyChanged | SignatureWrong => Outcome::Fail,
            Syntax | Unknown | FromTheFuture | NotLookedAt | Testing => Outcome::Neutral,
            HeaderTooLong | BodyPartlySigned | KeyTooShort | KeyTooLong => Outcome::Policy,
            KeyUnanswered(_) => Outcome::TempError,
            Sha1 | FromNotSigned | ForeignAgent | Expired | BodyTooShort => Outcome::PermError,
            NoKey | KeyBroken | KeyRevoked | KeyOfAnotherKind | KeyOfAnotherHash
            | KeyNotForMail | KeyNotForPart => Outcome::PermError,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Outcome::None => "none",
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::Policy => "policy",
            Outcome::Neutral => "neutral",
            Outcome::TempError => "temperror",
            Outcome::PermError => "permerror",
        })
    }
}

impl fmt::Display for Reason {
    /// For people, in words that may stand in a quoted string.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Reason::NotSigned => "the message is not signed",
            Reason::Verified => "the signature is right",
            Reason::BodyChanged => "the body is not the one that was signed",
            Reason::SignatureWrong => "the signature is wrong",
            Reason::Syntax => "the signature is not written as signatures are",
            Reason::Unknown => "the signature is of an unknown kind",
            Reason::FromTheFuture => "the signature was made in the future",
            Reason::NotLookedAt => "the message has too many signatures",
            Reason::Testing => "the domain is only testing",
            Reason::HeaderTooLong => "the header is too long",
            Reason::BodyPartlySigned => "only the beginning of the body is signed",
            Reason::KeyTooShort => "the key is too short",
            Reason::KeyTooLong => "the key is too long",
            Reason::KeyUnanswered(why) => return fmt::Display::fmt(why, out),
            Reason::Sha1 => "SHA-1 proves nothing",
            Reason::FromNotSigned => "a field From is not signed",
            Reason::ForeignAgent => "the signature is for another domain",
            Reason::Expired => "the signature has expired",
            Reason::BodyTooShort => "more than the body is signed",
            Reason::NoKey => "the domain has no such key",
            Reason::KeyBroken => "the domain's key is broken",
            Reason::KeyRevoked => "the domain has revoked the key",
            Reason::KeyOfAnotherKind => "the key is for another algorithm",
            Reason::KeyOfAnotherHash => "the key is for other hashes",
            Reason::KeyNotForMail => "the key is not for mail",
            Reason::KeyNotForPart => "the key is not for parts of the domain",
        })
    }
}

impl fmt::Display for Verdict {
    /// As `Authentication-Results` has it (RFC 8601 §2.2).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = self.outcome();
        write!(out, "dkim={outcome}")?;
        if !matches!(outcome, Outcome::None | Outcome::Pass) {
            write!(out, " reason=\"{}\"", self.reason)?;
        }
        if let Some(Signer { domain, selector, algorithm, prefix }) = &self.signer {
            // What base64 has beyond words is quoted.
            write!(
                out,
                " header.d={domain} header.s={selector} header.a={algorithm} header.b=\"{prefix}\""
            )?;
        }
        Ok(())
    }
}
