//! Packs of host files for the machine: certificates with their keys, signing keys with their
//! selectors, and authorities with the names of their files. A pack is a list of pairs of texts,
//! each text preceded by its length.
//!
//! A pack has the texts unchanged, because the machine parses them again.

use alloc::vec::Vec;

use dkim::{NotAKey, SigningKey};
use tls::{Authorities, Certificate, CertificateError, NotAuthorities};

/// The size of a length field, in bytes.
const LENGTH_BYTES: usize = size_of::<u32>();

/// An error in a pack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadPack {
    /// The pack ends too early.
    Cut,
    /// One of the certificates is unusable.
    Certificate(CertificateError),
    /// One of the signing keys is invalid.
    SigningKey(NotAKey),
    /// The texts of authorities are invalid.
    Authorities(NotAuthorities),
}

impl core::fmt::Display for BadPack {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            BadPack::Cut => out.write_str("it ends too early"),
            BadPack::Certificate(error) => write!(out, "{error}"),
            BadPack::SigningKey(error) => write!(out, "{error}"),
            BadPack::Authorities(error) => write!(out, "{error}"),
        }
    }
}

/// Packs pairs of texts: a certificate and its key, a selector and its key, or the name of a file
/// and its authorities.
pub fn pack<'t>(pairs: impl IntoIterator<Item = (&'t [u8], &'t [u8])>) -> Vec<u8> {
    let mut pack = Vec::new();
    for text in pairs.into_iter().flat_map(|(one, other)| [one, other]) {
        pack.extend_from_slice(&(text.len() as u32).to_le_bytes());
        pack.extend_from_slice(text);
    }
    pack
}

/// The certificates of a pack, the default one first.
///
/// Errors: the pack is incomplete, or a certificate is unusable.
pub fn certificates(pack: &[u8]) -> Result<Vec<Certificate>, BadPack> {
    read(pack, |certificate, key| {
        Certificate::parse(certificate, key).map_err(BadPack::Certificate)
    })
}

/// The DKIM signing keys of a pack, in the order of their signatures in a message.
///
/// Errors: the pack is incomplete, or a key is invalid.
pub fn signing_keys(pack: &[u8]) -> Result<Vec<SigningKey>, BadPack> {
    read(pack, |selector, key| {
        let selector = core::str::from_utf8(selector).map_err(|_| NotAKey::NoSelector);
        selector.and_then(|selector| SigningKey::read(key, selector)).map_err(BadPack::SigningKey)
    })
}

/// The authorities of the web, and those of a pack.
///
/// Errors: the pack is incomplete, or a text has no authority.
pub fn authorities(pack: &[u8]) -> Result<Authorities, BadPack> {
    let texts = read(pack, |_, text| Ok(text.to_vec()))?;
    Authorities::with(texts.iter().map(Vec::as_slice)).map_err(BadPack::Authorities)
}

fn read<T>(
    mut pack: &[u8],
    read: impl Fn(&[u8], &[u8]) -> Result<T, BadPack>,
) -> Result<Vec<T>, BadPack> {
    let mut all = Vec::new();
    while !pack.is_empty() {
        let one = next(&mut pack).ok_or(BadPack::Cut)?;
        let other = next(&mut pack).ok_or(BadPack::Cut)?;
        all.push(read(one, other)?);
    }
    Ok(all)
}

fn next<'p>(pack: &mut &'p [u8]) -> Option<&'p [u8]> {
    let (length, rest) = pack.split_first_chunk::<LENGTH_BYTES>()?;
    let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *pack = rest;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = include_str!("../../dkim/src/tests/rsa_2048.pem");
    const CERTIFICATE: &str = include_str!("../../tls/src/tests/keys/rsa3072.pem");
    const CERTIFICATE_KEY: &str = include_str!("../../tls/src/tests/keys/rsa3072.key.pem");

    fn packed(pairs: &[(&str, &str)]) -> Vec<u8> {
        pack(pairs.iter().map(|(one, other)| (one.as_bytes(), other.as_bytes())))
    }

    #[test]
    fn a_pack_survives_unpacking_and_an_incomplete_one_fails() {
        let pack = packed(&[("one", KEY), ("two", KEY)]);
        let names: Vec<_> = signing_keys(&pack).unwrap();
        let domain = dns::Name::parse("a.test").unwrap();
        let names: Vec<_> = names.iter().map(|key| key.name_at(&domain).unwrap()).collect();
        assert_eq!(
            names.iter().map(dns::Name::as_str).collect::<Vec<_>>(),
            ["one._domainkey.a.test", "two._domainkey.a.test"]
        );
        assert!(signing_keys(&[]).unwrap().is_empty());
        // The first half is a complete pack with one key.
        for length in (1..pack.len()).filter(|length| *length != pack.len() / 2) {
            assert_eq!(signing_keys(&pack[..length]).err(), Some(BadPack::Cut), "{length}");
        }
        let pack = packed(&[(CERTIFICATE, CERTIFICATE_KEY); 2]);
        assert_eq!(certificates(&pack).unwrap().len(), 2);
        assert_eq!(certificates(&pack[1..]).unwrap_err(), BadPack::Cut);
    }

    #[test]
    fn certificate_authorities_survive_packing() {
        let pack = packed(&[("ca.pem", CERTIFICATE)]);
        assert!(alloc::format!("{:?}", authorities(&pack).unwrap()).ends_with("1 named)"));
        assert_eq!(authorities(&pack[1..]).err(), Some(BadPack::Cut));
        assert_eq!(
            authorities(&packed(&[("ca.pem", KEY)])).err(),
            Some(BadPack::Authorities(NotAuthorities::None))
        );
    }

    #[test]
    fn a_pack_with_a_wrong_certificate_or_key_is_rejected() {
        let mixed = certificates(&packed(&[(CERTIFICATE, KEY)])).unwrap_err();
        assert_eq!(mixed, BadPack::Certificate(CertificateError::KeyOfAnother));
        for (selector, key, error) in
            [("a b", KEY, NotAKey::NoSelector), ("key", CERTIFICATE, NotAKey::NoKey)]
        {
            assert_eq!(
                signing_keys(&packed(&[(selector, key)])).err(),
                Some(BadPack::SigningKey(error))
            );
        }
        assert_eq!(
            signing_keys(&pack([(&[0xff][..], KEY.as_bytes())])).err(),
            Some(BadPack::SigningKey(NotAKey::NoSelector))
        );
    }
}
