//! Certificates and keys as they are handed to a machine: each with its length before it, in pairs.
//!
//! The machine parses them again; what is packed is what stood in the files.

use alloc::vec::Vec;

use crate::certificate::{Certificate, CertificateError};

/// Bytes of a length.
const LENGTH_BYTES: usize = size_of::<u32>();

/// What is wrong with a pack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadPack {
    /// It ends too early.
    Cut,
    /// One of the certificates is not to be used.
    Certificate(CertificateError),
}

impl core::fmt::Display for BadPack {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            BadPack::Cut => out.write_str("it ends too early"),
            BadPack::Certificate(error) => write!(out, "{error}"),
        }
    }
}

/// Packs the texts of certificates, each with that of its key.
pub fn pack<'t>(pairs: impl IntoIterator<Item = (&'t [u8], &'t [u8])>) -> Vec<u8> {
    let mut pack = Vec::new();
    for text in pairs.into_iter().flat_map(|(certificate, key)| [certificate, key]) {
        pack.extend_from_slice(&(text.len() as u32).to_le_bytes());
        pack.extend_from_slice(text);
    }
    pack
}

/// The certificates of a pack, the one for everybody else first.
///
/// Errors: the pack was cut, or a certificate is not to be used.
pub fn unpack(mut pack: &[u8]) -> Result<Vec<Certificate>, BadPack> {
    let mut certificates = Vec::new();
    while !pack.is_empty() {
        let certificate = next(&mut pack).ok_or(BadPack::Cut)?;
        let key = next(&mut pack).ok_or(BadPack::Cut)?;
        certificates.push(Certificate::parse(certificate, key).map_err(BadPack::Certificate)?);
    }
    Ok(certificates)
}

fn next<'p>(pack: &mut &'p [u8]) -> Option<&'p [u8]> {
    let (length, rest) = pack.split_first_chunk::<LENGTH_BYTES>()?;
    let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *pack = rest;
    Some(text)
}
