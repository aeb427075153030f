//! `[[tls]]`: certificates and their keys, by file name.
//!
//! The command line opens these files and checks their content, before anything boots.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::CERTIFICATES_MAX;
use super::document::Section;
use super::error::ConfigurationError;

/// One certificate with its chain, and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateFiles {
    /// The certificate file, with the server's own certificate first, as named in the
    /// configuration.
    pub certificate: String,
    /// The private key file.
    pub key: String,
    /// The line of the configuration that names them.
    pub line: usize,
}

pub(super) fn certificates(
    root: &Section<'_, '_>,
) -> Result<Vec<CertificateFiles>, ConfigurationError> {
    root.sections("tls", CERTIFICATES_MAX)?.iter().map(files).collect()
}

fn files(section: &Section<'_, '_>) -> Result<CertificateFiles, ConfigurationError> {
    section.refuse_unknown(&["certificate", "key"])?;
    Ok(CertificateFiles {
        certificate: name(
            section,
            "certificate",
            "the file of a certificate, such as \"cert.pem\"",
        )?,
        key: name(
            section,
            "key",
            "the file of the certificate's private key, such as \"key.pem\"",
        )?,
        line: section.line(),
    })
}

fn name(
    section: &Section<'_, '_>,
    key: &str,
    expected: &str,
) -> Result<String, ConfigurationError> {
    let item = section.required(key, expected)?;
    match item.string(expected)? {
        "" => Err(item.error("the name of the file is empty", expected)),
        name => Ok(name.to_string()),
    }
}
