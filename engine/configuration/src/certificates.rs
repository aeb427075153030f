//! `[[tls]]`: certificates and their keys, by file name.
//!
//! The command line opens these files and checks their content before a machine boots.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::CERTIFICATES_MAX;
use super::document::{Section, UncheckedSection};
use super::error::ConfigurationError;
use super::keys::keys;

keys! {
    KEYS, described, "[[tls]]", [],
    format!(
        "A certificate and its private key. There may be up to {CERTIFICATES_MAX} sections. The \
        first certificate is shown to every client, and the others to clients that ask for one of \
        their names (SNI). Without any section the machine has a self-signed certificate, \
        `data/tls/certificate.pem`. It is made at the first run; remove it and its key to get \
        another.\n\n\
        TLS 1.3 and 1.2 are available on ports 443, 465 and 995, and on ports 25 and 587 (STARTTLS) \
        and 110 (STLS) after the client asks for it. HTTP/2 is available on port 443. The console \
        warns of a certificate that expires within 14 days. A certificate that cannot be used is \
        refused at the start. A certificate can also be [replaced while the machine \
        runs](running.md#certificates)."
    );
    "certificate" {
        form: "file name",
        default: "none, the key is required",
        range: "a PEM file, relative to the configuration",
        example: r#""cert.pem""#,
        meaning: "The certificate of the server, followed by its chain.",
    }
    "key" {
        form: "file name",
        default: "none, the key is required",
        range: "a PEM file, relative to the configuration",
        example: r#""key.pem""#,
        meaning: "The private key of the certificate: ECDSA P-256 or P-384, Ed25519, or RSA of \
            2048 to 3072 bits.",
    }
}

/// One certificate with its chain, and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateFiles {
    /// The certificate file. The server's own certificate is the first in the file.
    pub certificate: NamedFile,
    /// The private key file.
    pub key: NamedFile,
}

/// A file that the configuration names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedFile {
    /// The name, as it is in the configuration.
    pub name: String,
    /// The line of the name in the configuration, counted from 1.
    pub line: usize,
    /// The column of the name in characters, counted from 1.
    pub column: usize,
}

pub(super) fn certificates(
    root: &Section<'_, '_>,
) -> Result<Vec<CertificateFiles>, ConfigurationError> {
    root.tables("tls", CERTIFICATES_MAX)?.into_iter().map(files).collect()
}

fn files(table: UncheckedSection<'_, '_>) -> Result<CertificateFiles, ConfigurationError> {
    let section = &table.section(KEYS)?;
    Ok(CertificateFiles {
        certificate: file(
            section,
            "certificate",
            "the file of a certificate, such as \"cert.pem\"",
        )?,
        key: file(
            section,
            "key",
            "the file of the certificate's private key, such as \"key.pem\"",
        )?,
    })
}

fn file(
    section: &Section<'_, '_>,
    key: &str,
    expected: &str,
) -> Result<NamedFile, ConfigurationError> {
    let item = section.required(key, expected)?;
    let name = item.string(expected)?.to_string();
    if name.is_empty() {
        return Err(item.error("the name of the file is empty", expected));
    }
    let ConfigurationError { line, column, .. } = item.error("", "");
    Ok(NamedFile { name, line, column })
}
