//! Makes signatures. They cover the header fields that users see, the fields that decide how a
//! message is read, and the whole body (RFC 6376 §5).
//!
//! Invariants:
//! - A field that should occur once is named once more than it occurs. So if such a field is added
//!   later, the signature becomes invalid (RFC 6376 §8.15).
//! - No line of a signature has more than [`LINE_BYTES_MAX`] bytes, unless the name of a domain
//!   alone is longer.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use base64ct::{Base64, Encoding};
use dns::{Name, NotAName};
use machine::UnixTime;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use x509_cert::der::Encode;
use x509_cert::der::asn1::{AnyRef, BitStringRef};
use x509_cert::spki::{AlgorithmIdentifierRef, SubjectPublicKeyInfoRef};

use crate::body::{CanonicalForm, Hashed};
use crate::header::{self, HeaderIndex};
use crate::key::RSA_ENCRYPTION;
use crate::message::CompleteMessage;
use crate::signature::{Algorithm, domain_of, key_name};

/// Fields that are signed once more than they occur.
const ONCE: [&str; 11] = [
    "from",
    "to",
    "cc",
    "reply-to",
    "subject",
    "date",
    "message-id",
    "in-reply-to",
    "references",
    "mime-version",
    "content-type",
];
/// Fields that are named as often as they occur: a forwarder may add another one.
const AS_THEY_ARE: [&str; 2] = ["sender", "content-transfer-encoding"];
/// The canonicalization of header and body in our signatures.
pub(crate) const SIGNED_FORM: CanonicalForm = CanonicalForm::Relaxed;
/// The most bytes of a line, without the line end.
const LINE_BYTES_MAX: usize = 76;
/// The length of the pieces into which a signature may be folded.
const PIECE: usize = 32;

/// A private key of domains.
pub struct SigningKey {
    pair: Pair,
    selector: Name,
}

enum Pair {
    Rsa(RsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Why a key cannot be used to sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAKey {
    /// The text has no key.
    NoKey,
    /// The key is of an unsupported kind, or an RSA key of an unsupported size.
    OfAnotherKind,
    /// The selector's name is not valid.
    NoSelector,
}

impl fmt::Display for NotAKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            NotAKey::NoKey => "the file contains no private key in PKCS#8 and PEM format",
            NotAKey::OfAnotherKind => {
                "the key is of an unsupported kind; use Ed25519, or RSA with 2048 to 4096 bits"
            }
            NotAKey::NoSelector => {
                "a selector consists of letters, digits, hyphens, underscores, and dots between them"
            }
        })
    }
}

/// Why a message cannot be signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsignable {
    /// The message has no `From` field.
    NoFrom,
    /// The header is too long.
    HeaderTooLong,
    /// The first line of the message would continue the signature above it.
    BeginsFolded,
    /// The message was read to be verified, and not to be signed.
    NotRead,
    /// The domain and the key's selector do not form a valid name.
    NoName,
    /// The key fails to sign.
    KeyFails,
    /// The chain of the message is broken or full, or does not fit the verdict that its new set
    /// would state.
    ChainBroken,
}

impl SigningKey {
    /// Reads a key in PKCS#8 in PEM form (RFC 7468). `selector`: the name under which domains
    /// publish the key.
    ///
    /// Errors: why it cannot be used.
    pub fn read(pem: &[u8], selector: &str) -> Result<SigningKey, NotAKey> {
        let key = PrivatePkcs8KeyDer::from_pem_slice(pem).map_err(|_| NotAKey::NoKey)?;
        SigningKey::new(key.secret_pkcs8_der(), selector)
    }

    /// Reads a key in binary PKCS#8 (RFC 5958). `selector`: the name under which domains publish
    /// the key.
    ///
    /// Errors: why it cannot be used.
    pub fn new(pkcs8: &[u8], selector: &str) -> Result<SigningKey, NotAKey> {
        let selector = domain_of(selector.as_bytes()).map_err(|_| NotAKey::NoSelector)?;
        let pair = match Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8) {
            Ok(pair) => Pair::Ed25519(pair),
            Err(_) => Pair::Rsa(RsaKeyPair::from_pkcs8(pkcs8).map_err(|_| NotAKey::OfAnotherKind)?),
        };
        Ok(SigningKey { pair, selector })
    }

    /// The name at which a domain publishes the key.
    ///
    /// Errors: the name would be too long.
    pub fn name_at(&self, domain: &Name) -> Result<Name, NotAName> {
        key_name(&self.selector, domain).map_err(|_| NotAName)
    }

    /// The record that a domain publishes, as text (RFC 6376 §3.6).
    pub fn record(&self) -> String {
        let (kind, key) = match &self.pair {
            Pair::Rsa(pair) => ("rsa", wrapped(pair.public_key().as_ref())),
            Pair::Ed25519(pair) => ("ed25519", pair.public_key().as_ref().into()),
        };
        format!("v=DKIM1; k={kind}; p={}", Base64::encode_string(&key))
    }

    /// The algorithm of the key's signatures.
    pub fn algorithm(&self) -> Algorithm {
        match self.pair {
            Pair::Rsa(_) => Algorithm::RsaSha256,
            Pair::Ed25519(_) => Algorithm::Ed25519Sha256,
        }
    }

    /// The signature over `signed`. This is the slow step of signing a message.
    ///
    /// Errors: `KeyFails`.
    pub fn sign(&self, signed: &[u8]) -> Result<Vec<u8>, Unsignable> {
        match &self.pair {
            Pair::Ed25519(pair) => Ok(pair.sign(digest(&SHA256, signed).as_ref()).as_ref().into()),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                // This padding needs no randomness.
                let random = SystemRandom::new();
                pair.sign(&RSA_PKCS1_SHA256, &random, signed, &mut signature)
                    .map_err(|_| Unsignable::KeyFails)?;
                Ok(signature)
            }
        }
    }
}

impl CompleteMessage {
    /// The field with a domain's signature, with its line end. It goes above all other fields.
    ///
    /// Errors: [`Unsignable`].
    pub fn sign(
        &self,
        key: &SigningKey,
        domain: &Name,
        now: UnixTime,
    ) -> Result<String, Unsignable> {
        let mut field = self.prepare(key, domain, now)?;
        let signature = key.sign(&field.take_signed())?;
        Ok(field.with_signature(&signature))
    }

    /// The field of [`CompleteMessage::sign`] without its signature. The caller computes the
    /// signature with the same key.
    ///
    /// Errors: [`Unsignable`].
    pub fn prepare(
        &self,
        key: &SigningKey,
        domain: &Name,
        now: UnixTime,
    ) -> Result<UnsignedField, Unsignable> {
        let body = self.body()?;
        self.check(key, domain)?;
        let mut lines = FoldedField::begin("DKIM-Signature: v=1;", key);
        lines.add_word("c=relaxed/relaxed;");
        lines.add_signer(key, domain, now);
        Ok(self.prepare_with(lines, names(&self.header, &AS_THEY_ARE), body))
    }

    /// The body that is signed.
    pub(crate) fn body(&self) -> Result<&Hashed, Unsignable> {
        let bodies = self.bodies.as_ref().ok_or(Unsignable::HeaderTooLong)?;
        bodies.of(SIGNED_FORM).filter(|_| self.is_to_be_signed).ok_or(Unsignable::NotRead)
    }

    /// Checks that `domain` can sign the message with `key`.
    pub(crate) fn check(&self, key: &SigningKey, domain: &Name) -> Result<(), Unsignable> {
        if self.header.named(b"from").is_empty() {
            return Err(Unsignable::NoFrom);
        }
        if self.header.begins_folded() {
            return Err(Unsignable::BeginsFolded);
        }
        let is_name = domain_of(domain.as_str().as_bytes())
            .and_then(|domain| key_name(&key.selector, &domain))
            .is_ok();
        if is_name { Ok(()) } else { Err(Unsignable::NoName) }
    }

    /// Adds to `lines` the signed names and the hash of the body. The signature of the returned
    /// field will cover the fields with these names, and the body.
    pub(crate) fn prepare_with(
        &self,
        mut lines: FoldedField,
        names: Vec<&'static str>,
        body: &Hashed,
    ) -> UnsignedField {
        lines.add_names(&names);
        lines.add_word(&format!("bh={};", Base64::encode_string(body.digest.as_ref())));
        let mut signed = Vec::new();
        self.header.write_selected(
            names.iter().map(|name| name.as_bytes()),
            None,
            SIGNED_FORM,
            &mut signed,
        );
        lines.end(signed)
    }
}

/// A DKIM or ARC field that still lacks its signature.
pub struct UnsignedField {
    lines: FoldedField,
    signed: Vec<u8>,
}

impl UnsignedField {
    /// The bytes to sign with [`SigningKey::sign`]. Empty once they were taken.
    pub fn take_signed(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.signed)
    }

    /// The field with its signature and line end.
    pub fn with_signature(mut self, signature: &[u8]) -> String {
        self.lines.add_signature(&Base64::encode_string(signature));
        self.lines.text + "\r\n"
    }
}

/// The names of the fields that are signed, once for each signed occurrence: the fields of `ONCE`,
/// and the fields of `as_they_are`.
pub(crate) fn names(header: &HeaderIndex, as_they_are: &[&'static str]) -> Vec<&'static str> {
    let times = |name: &'static str, more| {
        core::iter::repeat_n(name, header.named(name.as_bytes()).len() + more)
    };
    let once = ONCE.into_iter().flat_map(|name| times(name, 1));
    once.chain(as_they_are.iter().flat_map(|name| times(name, 0))).collect()
}

/// An RSA key in the usual form, which names the algorithm (RFC 5280 §4.1). Empty if the key cannot
/// be encoded.
fn wrapped(key: &[u8]) -> Vec<u8> {
    let algorithm = AlgorithmIdentifierRef { oid: RSA_ENCRYPTION, parameters: Some(AnyRef::NULL) };
    let key = BitStringRef::from_bytes(key);
    let key = key.map(|key| SubjectPublicKeyInfoRef { algorithm, subject_public_key: key });
    key.and_then(|key| key.to_der()).unwrap_or_default()
}

/// A signature field, folded.
pub(crate) struct FoldedField {
    text: String,
    /// The length of the last line.
    column: usize,
}

impl FoldedField {
    /// Begins a field. `beginning`: the field's name, and its first tags.
    pub(crate) fn begin(beginning: &str, key: &SigningKey) -> FoldedField {
        let mut lines = FoldedField { column: beginning.len(), text: beginning.into() };
        lines.add_word(&format!("a={};", key.algorithm()));
        lines
    }

    /// Adds the signer and the time.
    pub(crate) fn add_signer(&mut self, key: &SigningKey, domain: &Name, now: UnixTime) {
        self.add_word(&format!("d={};", domain.as_str()));
        self.add_word(&format!("s={};", key.selector.as_str()));
        self.add_word(&format!("t={};", now.seconds()));
    }

    /// The field without its signature. The signature covers `signed`, and then this field without
    /// the signature.
    pub(crate) fn end(mut self, mut signed: Vec<u8>) -> UnsignedField {
        self.add_word("b=");
        header::write_last(&[self.text.as_bytes(), b"\r\n"].concat(), SIGNED_FORM, &mut signed);
        UnsignedField { lines: self, signed }
    }

    fn add_names(&mut self, names: &[&str]) {
        self.add_word("h=");
        for (number, name) in names.iter().enumerate() {
            self.add(name, if number + 1 == names.len() { ";" } else { ":" });
        }
    }

    fn add_signature(&mut self, signature: &str) {
        for piece in signature.as_bytes().chunks(PIECE) {
            self.add(str::from_utf8(piece).unwrap_or_default(), "");
        }
    }

    /// Adds a word after white space.
    pub(crate) fn add_word(&mut self, word: &str) {
        if self.column + 1 + word.len() <= LINE_BYTES_MAX {
            self.text.push(' ');
            self.column += 1;
        }
        self.add(word, "");
    }

    /// Adds a text, on a new line if it does not fit into the current line.
    fn add(&mut self, text: &str, end: &str) {
        if self.column + text.len() + end.len() > LINE_BYTES_MAX {
            self.text.push_str("\r\n ");
            self.column = 1;
        }
        self.text.push_str(text);
        self.text.push_str(end);
        self.column += text.len() + end.len();
    }
}
