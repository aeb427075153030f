//! The verdict on a signature, and its form in header fields (RFC 8601 §2.7.1).

use alloc::boxed::Box;
use core::fmt;

use dns::{Name, Unanswered};

use crate::signature::Algorithm;

/// The verdict on a signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignatureVerdict {
    /// The reason for the outcome.
    pub reason: SignatureReason,
    /// The signer, if the signature can be read.
    pub signer: Option<SignerIdentity>,
}

/// The signer of a signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignerIdentity {
    /// The domain (`d=`).
    pub domain: Name,
    /// The selector of the key (`s=`).
    pub selector: Name,
    /// The algorithm (`a=`).
    pub algorithm: Algorithm,
    /// The first characters of the signature (`b=`), which distinguish it from other signatures of
    /// the same message (RFC 6008).
    pub prefix: Box<str>,
}

/// The outcome of a signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignatureOutcome {
    /// There is no signature.
    None,
    /// The signature is valid, and nothing that it covers was changed.
    Pass,
    /// The covered parts were changed, or another signer made the signature.
    Fail,
    /// The signature may be valid, but our policy does not accept it.
    Policy,
    /// The signature is ignored, or has a form that we cannot verify.
    Neutral,
    /// Name servers did not answer. They may answer later.
    TempError,
    /// The signature cannot be verified, now or later.
    PermError,
}

/// The reason for an outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignatureReason {
    /// The message has no such signature.
    NotSigned,
    /// The signature is valid.
    Verified,
    /// The body differs from the signed body.
    BodyChanged,
    /// The header differs from the signed header, or another key made the signature.
    SignatureWrong,
    /// The syntax of the signature is not valid.
    Syntax,
    /// The version, algorithm, canonicalization or query method is not supported.
    Unknown,
    /// The time of the signature is in the future.
    FromTheFuture,
    /// The message has more signatures than are verified.
    NotLookedAt,
    /// The domain is testing DKIM.
    Testing,
    /// The header is too long.
    HeaderTooLong,
    /// The body continues after the signed part.
    BodyPartlySigned,
    /// The key is too weak (RFC 8301 §3.2).
    KeyTooShort,
    /// The key is larger than we support.
    KeyTooLong,
    /// The key could not be looked up.
    KeyUnanswered(Unanswered),
    /// The algorithm is RSA over SHA-1, which is not secure.
    Sha1,
    /// A `From` field is not signed.
    FromNotSigned,
    /// The agent is outside the domain that signs.
    ForeignAgent,
    /// The signature has expired.
    Expired,
    /// The body ends before the signed part does.
    BodyTooShort,
    /// The domain has no such key.
    NoKey,
    /// The record of the domain is not a valid key.
    KeyBroken,
    /// The domain has revoked the key.
    KeyRevoked,
    /// The key is for another algorithm.
    KeyOfAnotherKind,
    /// The key is for other hashes.
    KeyOfAnotherHash,
    /// The key is not for mail.
    KeyNotForMail,
    /// The key is not for subdomains.
    KeyNotForPart,
}

impl SignatureVerdict {
    /// The outcome of the signature.
    pub fn outcome(&self) -> SignatureOutcome {
        self.reason.outcome()
    }
}

impl SignatureReason {
    fn outcome(self) -> SignatureOutcome {
        use SignatureReason::*;
        match self {
            NotSigned => SignatureOutcome::None,
            Verified => SignatureOutcome::Pass,
            BodyChanged | SignatureWrong => SignatureOutcome::Fail,
            Syntax | Unknown | FromTheFuture | NotLookedAt | Testing => SignatureOutcome::Neutral,
            HeaderTooLong | BodyPartlySigned | KeyTooShort | KeyTooLong => SignatureOutcome::Policy,
            KeyUnanswered(_) => SignatureOutcome::TempError,
            Sha1 | FromNotSigned | ForeignAgent | Expired | BodyTooShort => {
                SignatureOutcome::PermError
            }
            NoKey | KeyBroken | KeyRevoked | KeyOfAnotherKind | KeyOfAnotherHash
            | KeyNotForMail | KeyNotForPart => SignatureOutcome::PermError,
        }
    }
}

impl fmt::Display for SignatureOutcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            SignatureOutcome::None => "none",
            SignatureOutcome::Pass => "pass",
            SignatureOutcome::Fail => "fail",
            SignatureOutcome::Policy => "policy",
            SignatureOutcome::Neutral => "neutral",
            SignatureOutcome::TempError => "temperror",
            SignatureOutcome::PermError => "permerror",
        })
    }
}

impl fmt::Display for SignatureReason {
    /// The reason as text for people, in characters that are allowed in a quoted string.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            SignatureReason::NotSigned => "the message is not signed",
            SignatureReason::Verified => "the signature is valid",
            SignatureReason::BodyChanged => "the body was changed after signing",
            SignatureReason::SignatureWrong => "the signature is not valid",
            SignatureReason::Syntax => "the signature has a syntax error",
            SignatureReason::Unknown => "the signature algorithm is not supported",
            SignatureReason::FromTheFuture => "the signature was made in the future",
            SignatureReason::NotLookedAt => "the message has too many signatures",
            SignatureReason::Testing => "the domain is testing DKIM",
            SignatureReason::HeaderTooLong => "the header is too long",
            SignatureReason::BodyPartlySigned => "only a part of the body is signed",
            SignatureReason::KeyTooShort => "the key is too short",
            SignatureReason::KeyTooLong => "the key is too long",
            SignatureReason::KeyUnanswered(why) => return fmt::Display::fmt(why, out),
            SignatureReason::Sha1 => "SHA-1 is not secure",
            SignatureReason::FromNotSigned => "the From field is not signed",
            SignatureReason::ForeignAgent => "the signature is for another domain",
            SignatureReason::Expired => "the signature has expired",
            SignatureReason::BodyTooShort => "the body is shorter than the signed part",
            SignatureReason::NoKey => "the domain has no such key",
            SignatureReason::KeyBroken => "the domain's key record is not valid",
            SignatureReason::KeyRevoked => "the domain has revoked the key",
            SignatureReason::KeyOfAnotherKind => "the key is for another algorithm",
            SignatureReason::KeyOfAnotherHash => "the key does not allow this hash",
            SignatureReason::KeyNotForMail => "the key is not for mail",
            SignatureReason::KeyNotForPart => "the key is not for subdomains",
        })
    }
}

impl fmt::Display for SignatureVerdict {
    /// The form in `Authentication-Results` (RFC 8601 §2.2).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = self.outcome();
        write!(out, "dkim={outcome}")?;
        if !matches!(outcome, SignatureOutcome::None | SignatureOutcome::Pass) {
            write!(out, " reason=\"{}\"", self.reason)?;
        }
        if let Some(SignerIdentity { domain, selector, algorithm, prefix }) = &self.signer {
            // The prefix is quoted, because base64 has characters that are not allowed in a token.
            write!(
                out,
                " header.d={domain} header.s={selector} header.a={algorithm} header.b=\"{prefix}\""
            )?;
        }
        Ok(())
    }
}
