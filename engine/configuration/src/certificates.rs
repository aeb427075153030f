//! `[[tls]]`: certificates and their keys, by the names of their files.
//!
//! What the files hold is looked at by whoever can open them: the command line, before anything boots.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::CERTIFICATES_MAX;
use super::document::Section;
use super::error::ConfigurationError;

/// One certificate with its chain, and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateFiles {
    /// The file of the certificate, the server's own first, as the configuration names it.
    pub certificate: String,
    /// The file of the private key.
    pub key: String,
    /// The line of the configuration in which they are named.
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
