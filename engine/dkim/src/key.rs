//! Public keys of domains, and the verification of signatures (RFC 6376 §3.6.1, RFC 8301 §3.2, RFC
//! 8463 §3, §4).

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use ring::signature::{
    ED25519, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY as RSA, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use x509_cert::der::asn1::UintRef;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{Decode, Reader, SliceReader};
use x509_cert::spki::SubjectPublicKeyInfoRef;

use crate::signature::{Algorithm, DkimSignature};
use crate::tags::{Tags, decoded, members};
use crate::verdict::SignatureReason;

/// The most keys of one name that are tried, in their order in the answer.
pub const KEYS_MAX: usize = 4;
/// The sizes of RSA keys that are accepted.
const RSA_BITS: RangeInclusive<usize> = 1024..=4096;
/// The length of an Ed25519 key.
const ED25519_BYTES: usize = 32;
/// `rsaEncryption` (RFC 8017 appendix A.1).
pub(crate) const RSA_ENCRYPTION: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// A key that a domain has published.
pub(crate) struct PublishedKey {
    kind: KeyType,
    /// Whether the key allows signatures with SHA-256.
    has_hash: bool,
    is_for_mail: bool,
    /// Whether the domain is testing DKIM.
    is_test: bool,
    /// Whether the key is only for the domain itself, and not for its subdomains.
    is_strict: bool,
    /// Empty if the key was revoked.
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyType {
    Rsa,
    Ed25519,
    Other,
}

/// The modulus and the exponent of an RSA key, without leading zeros.
struct Numbers<'a> {
    modulus: &'a [u8],
    exponent: &'a [u8],
}

impl PublishedKey {
    /// Reads a key record. `None`: it is not valid.
    pub(crate) fn read(text: &[u8]) -> Option<PublishedKey> {
        let tags = Tags::read(text)?;
        if tags.get(b"v").is_some_and(|version| version != b"DKIM1") {
            return None;
        }
        let lists = |name: &[u8], wanted: &[&[u8]]| {
            tags.get(name).map(|value| members(value).any(|member| wanted.contains(&member)))
        };
        let kind = match tags.get(b"k") {
            None | Some(b"rsa") => KeyType::Rsa,
            Some(b"ed25519") => KeyType::Ed25519,
            Some(_) => KeyType::Other,
        };
        Some(PublishedKey {
            kind,
            has_hash: lists(b"h", &[b"sha256"]).unwrap_or(true),
            is_for_mail: lists(b"s", &[b"*", b"email"]).unwrap_or(true),
            is_test: lists(b"t", &[b"y"]).unwrap_or(false),
            is_strict: lists(b"t", &[b"s"]).unwrap_or(false),
            bytes: decoded(tags.get(b"p")?)?,
        })
    }

    /// Whether a signature may be verified with this key (RFC 6376 §6.1.2).
    ///
    /// Errors: the reason for the refusal.
    pub(crate) fn judge(&self, signature: &DkimSignature) -> Result<(), SignatureReason> {
        let kind = match signature.signer.algorithm {
            Algorithm::RsaSha256 | Algorithm::RsaSha1 => KeyType::Rsa,
            Algorithm::Ed25519Sha256 => KeyType::Ed25519,
        };
        let refusals = [
            (self.is_test, SignatureReason::Testing),
            (!self.is_for_mail, SignatureReason::KeyNotForMail),
            (self.is_strict && !signature.is_for_domain_itself(), SignatureReason::KeyNotForPart),
            (!self.has_hash, SignatureReason::KeyOfAnotherHash),
            (self.bytes.is_empty(), SignatureReason::KeyRevoked),
            (self.kind != kind, SignatureReason::KeyOfAnotherKind),
        ];
        match refusals.into_iter().find(|(refuses, _)| *refuses) {
            Some((_, reason)) => Err(reason),
            None => Ok(()),
        }
    }

    /// Whether `signature` is a signature of `signed` with this key.
    ///
    /// Errors: why the signature proves nothing.
    pub(crate) fn verify(&self, signed: &[u8], signature: &[u8]) -> Result<(), SignatureReason> {
        let verified = match self.kind {
            KeyType::Rsa => {
                let Numbers { modulus, exponent } =
                    numbers(&self.bytes).ok_or(SignatureReason::KeyBroken)?;
                let bits = modulus
                    .first()
                    .map_or(0, |first| 8 * modulus.len() - first.leading_zeros() as usize);
                if bits < *RSA_BITS.start() {
                    return Err(SignatureReason::KeyTooShort);
                }
                if bits > *RSA_BITS.end() {
                    return Err(SignatureReason::KeyTooLong);
                }
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(&RSA, signed, signature)
            }
            KeyType::Ed25519 if self.bytes.len() == ED25519_BYTES => {
                // The signature covers the hash as if it were the message (RFC 8463 §3).
                let hash = ring::digest::digest(&ring::digest::SHA256, signed);
                UnparsedPublicKey::new(&ED25519, &self.bytes).verify(hash.as_ref(), signature)
            }
            KeyType::Ed25519 | KeyType::Other => return Err(SignatureReason::KeyBroken),
        };
        verified.map_err(|_| SignatureReason::SignatureWrong)
    }
}

/// Reads an RSA key in one of two forms. RFC 6376 has the short form (RFC 8017 appendix A.1.1). The
/// usual form also names the algorithm (RFC 5280 §4.1).
fn numbers(bytes: &[u8]) -> Option<Numbers<'_>> {
    let key = match SubjectPublicKeyInfoRef::from_der(bytes) {
        Ok(key) if key.algorithm.oid == RSA_ENCRYPTION => key.subject_public_key.as_bytes()?,
        Ok(_) => return None,
        Err(_) => bytes,
    };
    let mut reader = SliceReader::new(key).ok()?;
    let (modulus, exponent) = reader
        .sequence(|reader| {
            Ok::<_, x509_cert::der::Error>((UintRef::decode(reader)?, UintRef::decode(reader)?))
        })
        .ok()?;
    reader.finish().ok()?;
    Some(Numbers { modulus: modulus.as_bytes(), exponent: exponent.as_bytes() })
}
