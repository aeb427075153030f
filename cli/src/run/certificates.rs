//! The certificates of a machine: those that `barepost.toml` names, or the data folder's own
//! certificate.
//!
//! If `barepost.toml` names none, the first run creates the folder's own certificate. It is
//! self-signed, with an ECDSA P-256 key. Later runs use it again, so that clients can trust it.
//!
//! An unusable certificate is refused before the machine boots. The error names the line and column
//! of `barepost.toml`, or the file in the folder.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use configuration::{Configuration, NamedFile};
use host::Failure;
use machine::UnixTime;
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use tls::Certificate;

/// The subfolder of the data folder for its own certificate and key.
const FOLDER: &str = "tls";
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";

/// All certificates with their keys, packed for the machine.
///
/// `wrong`: returns the error for a fault in `barepost.toml`. Its argument is the text that follows
/// the name `barepost.toml` in the error. Errors: [`Failure::refused`] if a file cannot be read, or
/// if its certificate or key is unusable.
pub(super) fn pack(
    folder: &Path,
    configuration: &Configuration,
    wrong: impl Fn(&dyn std::fmt::Display) -> Failure,
) -> Result<Vec<u8>, Failure> {
    // Keys cannot be read without randomness.
    host::randomness::provide();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = UnixTime::from_seconds(now.as_secs());
    let mut pairs = Vec::new();
    for named in &configuration.certificates {
        let refused = |file: &NamedFile, why: &dyn std::fmt::Display| {
            let NamedFile { name, line, column } = file;
            wrong(&format_args!("{line}:{column}: [[tls]] {}: {why}", folder.join(name).display()))
        };
        let read = |file: &NamedFile| {
            std::fs::read(folder.join(&file.name)).map_err(|error| refused(file, &error))
        };
        let pair = (read(&named.certificate)?, read(&named.key)?);
        check(&pair, now).map_err(|error| {
            let file = if error.is_of_key() { &named.key } else { &named.certificate };
            refused(file, &error)
        })?;
        pairs.push(pair);
    }
    if pairs.is_empty() {
        pairs.push(own(&folder.join(FOLDER), configuration, now)?);
    }
    Ok(configuration::pack::pack(
        pairs.iter().map(|(certificate, key)| (certificate.as_slice(), key.as_slice())),
    ))
}

/// The contents of a certificate's file and of its key's file.
type Pair = (Vec<u8>, Vec<u8>);

fn check((certificate, key): &Pair, now: UnixTime) -> Result<(), tls::CertificateError> {
    Certificate::parse(certificate, key)?.check(now)
}

/// The folder's own certificate and key. Creates both if either is missing.
fn own(folder: &Path, configuration: &Configuration, now: UnixTime) -> Result<Pair, Failure> {
    let path = folder.join(CERTIFICATE);
    let refused = |why: &dyn std::fmt::Display| {
        Failure::refused(format_args!(
            "{}: {why}; remove the certificate and its key to have new ones made",
            path.display()
        ))
    };
    let pair = match (std::fs::read(&path), std::fs::read(folder.join(KEY))) {
        (Ok(certificate), Ok(key)) => (certificate, key),
        (Err(error), _) | (_, Err(error)) if error.kind() == ErrorKind::NotFound => {
            make(folder, configuration)?
        }
        (Err(error), _) | (_, Err(error)) => return Err(refused(&error)),
    };
    check(&pair, now).map_err(|error| refused(&error))?;
    Ok(pair)
}

/// Creates a certificate for the machine's name, its mail domains and `localhost`. It is valid
/// until 2120.
fn make(folder: &Path, configuration: &Configuration) -> Result<Pair, Failure> {
    let broke = |error: rcgen::Error| Failure::broke(format_args!("making a certificate: {error}"));
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(broke)?;
    let mut names = vec![configuration.hostname.as_str().to_string(), "localhost".to_string()];
    names.extend(configuration.domains.iter().map(|domain| domain.as_str().to_string()));
    names.dedup();
    let mut parameters = CertificateParams::new(names).map_err(broke)?;
    parameters.distinguished_name.push(DnType::CommonName, configuration.hostname.as_str());
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters.not_before = date_time_ymd(2020, 1, 1);
    parameters.not_after = date_time_ymd(2120, 1, 1);
    let certificate = parameters.self_signed(&key).map_err(broke)?;
    let pair = (certificate.pem().into_bytes(), key.serialize_pem().into_bytes());
    let refused =
        |error: std::io::Error| Failure::refused(format_args!("{}: {error}", folder.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refused)?;
    // If this run ends between the two writes, the next run finds no certificate, and creates both
    // again. If it finds an old certificate beside the new key, it asks for the removal of both.
    write(&folder.join(KEY), &pair.1)?;
    write(&folder.join(CERTIFICATE), &pair.0)?;
    Ok(pair)
}

/// Writes a file that no other user may read.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let refused = |error: std::io::Error| {
        Failure::refused(format_args!("{}: writing: {error}", path.display()))
    };
    // The file is created anew, because an existing file would keep its permissions.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(refused(error)),
        _ => {}
    }
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(refused)?;
    file.write_all(bytes).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::DataFolder;
    use std::os::unix::fs::PermissionsExt;

    const BASE: &str = "hostname = 'mail.a.test'\ndomains = ['a.test']\n";

    fn open(folder: &Path, more: &str) -> Result<DataFolder, Failure> {
        std::fs::write(folder.join("barepost.toml"), format!("{BASE}{more}")).unwrap();
        DataFolder::open(folder)
    }

    fn certificates(data: &DataFolder) -> Vec<Certificate> {
        let pack = std::fs::read(&data.certificates_path).unwrap();
        configuration::pack::certificates(&pack).unwrap()
    }

    fn names(data: &DataFolder) -> Vec<String> {
        certificates(data)
            .iter()
            .flat_map(|one| one.names().map(String::from).collect::<Vec<_>>())
            .collect()
    }

    #[test]
    fn certificate_is_created_once_and_its_key_is_private() {
        let place = tempfile::tempdir().unwrap();
        let data = open(place.path(), "").unwrap();
        assert_eq!(names(&data), ["mail.a.test", "localhost", "a.test"]);
        drop(data);
        let read = |name: &str| std::fs::read(place.path().join(name)).unwrap();
        let before = (read("tls/certificate.pem"), read("tls/key.pem"));
        open(place.path(), "").unwrap();
        assert_eq!((read("tls/certificate.pem"), read("tls/key.pem")), before);
        for name in ["tls/certificate.pem", "tls/key.pem", "certificates.pack"] {
            let mode = place.path().join(name).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        assert_eq!(
            place.path().join("tls").metadata().unwrap().permissions().mode() & 0o777,
            0o700
        );
    }

    #[test]
    fn configured_certificates_are_used_and_none_is_created() {
        let place = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        open(other.path(), "").unwrap();
        let named = format!(
            "[[tls]]\ncertificate = '{0}/tls/certificate.pem'\nkey = '{0}/tls/key.pem'\n",
            other.path().display()
        );
        let data = open(place.path(), &named.repeat(2)).unwrap();
        assert_eq!(certificates(&data).len(), 2);
        assert!(!place.path().join("tls").exists());
    }

    #[test]
    fn unusable_certificate_is_refused_with_place_and_reason() {
        let place = tempfile::tempdir().unwrap();
        let refusal = |certificate: &str, key: &str, at: &str| {
            let named = format!("[[tls]]\ncertificate = '{certificate}'\nkey = '{key}'\n");
            let failure = open(place.path(), &named).err().unwrap();
            assert_eq!(failure.status(), 2);
            let text = failure.to_string();
            let prefix = place.path().join("barepost.toml").display().to_string();
            let files = format!("{prefix}:{at}: [[tls]] {}/", place.path().display());
            text.strip_prefix(&files).unwrap_or_else(|| panic!("{text}")).to_string()
        };
        host::randomness::provide();
        let pair = |from: i32, until: i32| {
            let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
            let mut parameters = CertificateParams::new(vec!["mail.a.test".to_string()]).unwrap();
            (parameters.not_before, parameters.not_after) =
                (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
            (parameters.self_signed(&key).unwrap().pem(), key.serialize_pem())
        };
        let write = |name: &str, (certificate, key): (String, String)| {
            std::fs::write(place.path().join(format!("{name}.pem")), certificate).unwrap();
            std::fs::write(place.path().join(format!("{name}.key")), key).unwrap();
        };
        write("old", pair(2020, 2021));
        write("early", pair(2119, 2120));
        write("one", pair(2020, 2120));
        write("other", pair(2020, 2120));
        let (certificate, key) = ("4:15", "5:7");
        let said = refusal("none.pem", "one.key", certificate);
        assert!(said.starts_with("none.pem: No such file"), "{said}");
        let said = refusal("one.pem", "none.key", key);
        assert!(said.starts_with("none.key: No such file"), "{said}");
        let said = refusal("old.pem", "old.key", certificate);
        assert!(said.contains("it was valid until 2021-01-01"), "{said}");
        let said = refusal("early.pem", "early.key", certificate);
        assert!(said.contains("is not valid before 2119-01-01"), "{said}");
        let said = refusal("one.pem", "other.key", key);
        assert_eq!(said, "other.key: the private key does not belong to the certificate");
        let said = refusal("one.key", "one.key", certificate);
        assert!(said.contains("contains no certificate"), "{said}");
        let said = refusal("one.pem", "one.pem", key);
        assert_eq!(said, "one.pem: the file contains no private key");
    }

    #[test]
    fn own_certificate_is_refused_if_broken_and_remade_if_missing() {
        let place = tempfile::tempdir().unwrap();
        open(place.path(), "").unwrap();
        let path = place.path().join("tls/certificate.pem");
        std::fs::write(&path, "nonsense").unwrap();
        let failure = open(place.path(), "").err().unwrap();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains("to have new ones made"), "{failure}");
        std::fs::remove_file(&path).unwrap();
        open(place.path(), "").unwrap();
    }
}
