//! The keys that sign messages (DKIM, RFC 6376): the files of the data folder's `dkim`, each named
//! after its selector.
//!
//! If the folder has no keys, two are created: an RSA key, which every server can verify, and an
//! Ed25519 key, which is harder to break and costs less (RFC 8463). An administrator can add other
//! keys. Every domain of the configuration signs with all keys. An unusable key is refused before
//! the machine boots, with the path of its file.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use configuration::Configuration;
use dkim::{Algorithm, SigningKey};
use dns::Name;
use host::Failure;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use rcgen::{KeyPair, PKCS_ED25519};
use rsa::Generate;
use rsa::pkcs8::{EncodePrivateKey, LineEnding};

use super::certificates::write;

/// The folder of the keys, and the extension of their file names.
const FOLDER: &str = "dkim";
const EXTENSION: &str = "pem";
/// The selectors of the keys that Barepost creates.
const RSA: &str = "barepost-rsa";
const ED25519: &str = "barepost-ed25519";
/// The size of a new RSA key. A longer key would have a record that is too large for some name
/// servers, and signing would take several times as long.
const RSA_BITS: usize = 2048;
/// The maximum number of keys. The signatures of this many keys fit above a message, unless names
/// are long. So an administrator can keep an old key for a while.
const KEYS_MAX: usize = 4;

/// The data folder's keys, in the order of their signatures above messages. Creates keys if the
/// folder has none.
///
/// Errors: [`Failure::refused`] if a file cannot be read, or contains no usable key.
pub(crate) fn keys(
    folder: &Path,
    configuration: &Configuration,
) -> Result<Vec<SigningKey>, Failure> {
    Ok(named(folder, configuration)?.into_iter().map(|(_, key)| key).collect())
}

/// The keys and their selectors, packed for the machine.
///
/// Errors: as for [`keys`].
pub(super) fn pack(folder: &Path, configuration: &Configuration) -> Result<Vec<u8>, Failure> {
    let keys = named(folder, configuration)?;
    Ok(configuration::pack::pack(
        keys.iter().map(|((selector, pem), _)| (selector.as_bytes(), pem.as_slice())),
    ))
}

fn named(
    folder: &Path,
    configuration: &Configuration,
) -> Result<Vec<(Named, SigningKey)>, Failure> {
    // Keys cannot be read without randomness.
    host::randomness::provide();
    let folder = folder.join(FOLDER);
    let mut files = files(&folder)?;
    if files.is_empty() {
        make(&folder)?;
        files = self::files(&folder)?;
    }
    if files.len() > KEYS_MAX {
        let count = files.len();
        return Err(Failure::refused(format_args!(
            "{}: the folder has {count} keys; at most {KEYS_MAX} are allowed",
            folder.display()
        )));
    }
    let mut keys = Vec::new();
    for (selector, pem) in files {
        let refused = |why: &dyn std::fmt::Display| {
            Failure::refused(format_args!("{}: {why}", file_of(&folder, &selector).display()))
        };
        let key = SigningKey::read(&pem, &selector).map_err(|error| refused(&error))?;
        for domain in &configuration.domains {
            let name = Name::parse(domain.as_str()).and_then(|domain| key.name_at(&domain));
            name.map_err(|_| {
                refused(&format_args!("the file name is too long for a key of {}", domain.as_str()))
            })?;
        }
        keys.push(((selector, pem), key));
    }
    // RSA keys are first. A verifier may check only the first signature, or stop at an algorithm
    // that it does not know. Every server can verify RSA.
    keys.sort_by_key(|(_, key)| key.algorithm() != Algorithm::RsaSha256);
    Ok(keys)
}

/// A selector, and the content of its file.
type Named = (String, Vec<u8>);

/// The path of a key's file. The selector may contain dots, so no extension is replaced.
fn file_of(folder: &Path, selector: &str) -> PathBuf {
    folder.join(format!("{selector}.{EXTENSION}"))
}

/// All key files of the folder, in the order of their selectors.
fn files(folder: &Path) -> Result<Vec<Named>, Failure> {
    let refused =
        |path: &Path, error| Failure::refused(format_args!("{}: {error}", path.display()));
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(refused(folder, error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| refused(folder, error))?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            let selector = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            files.push((selector, std::fs::read(&path).map_err(|error| refused(&path, error))?));
        }
    }
    files.sort();
    Ok(files)
}

fn make(folder: &Path) -> Result<(), Failure> {
    let broke =
        |error: &dyn std::fmt::Display| Failure::broke(format_args!("making a key: {error}"));
    let refused =
        |error: std::io::Error| Failure::refused(format_args!("{}: {error}", folder.display()));
    let seed = <[u8; 32]>::try_generate().map_err(|error| broke(&error))?;
    let key = rsa::PrivateKey::new(&mut ChaCha20Rng::from_seed(seed), RSA_BITS)
        .map_err(|error| broke(&error))?;
    let rsa = key.to_pkcs8_pem(LineEnding::LF).map_err(|error| broke(&error))?;
    let ed25519 =
        KeyPair::generate_for(&PKCS_ED25519).map_err(|error| broke(&error))?.serialize_pem();
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refused)?;
    for (selector, pem) in [(RSA, rsa.as_str()), (ED25519, &ed25519)] {
        write(&file_of(folder, selector), pem.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn configuration(domain: &str) -> Configuration {
        Configuration::parse(&format!(
            "hostname = 'mail.a.test'\ndomains = ['a.test', '{domain}']\n"
        ))
        .unwrap()
    }

    fn records(folder: &Path) -> Vec<String> {
        keys(folder, &configuration("b.test")).unwrap().iter().map(SigningKey::record).collect()
    }

    #[test]
    fn signing_keys_of_both_kinds_are_created_once_and_private() {
        let place = tempfile::tempdir().unwrap();
        let made = records(place.path());
        assert_eq!(made.len(), 2);
        assert!(
            made[0].starts_with("v=DKIM1; k=rsa; p=")
                && made[1].starts_with("v=DKIM1; k=ed25519; p="),
            "{made:?}"
        );
        assert_eq!(records(place.path()), made);
        for (name, mode) in [
            ("dkim", 0o700),
            ("dkim/barepost-rsa.pem", 0o600),
            ("dkim/barepost-ed25519.pem", 0o600),
        ] {
            let permissions = place.path().join(name).metadata().unwrap().permissions();
            assert_eq!(permissions.mode() & 0o777, mode, "{name}");
        }
        let other = tempfile::tempdir().unwrap();
        assert_ne!(records(other.path())[0], made[0]);
    }

    #[test]
    fn existing_keys_are_used_and_none_is_created() {
        let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let made = records(other.path());
        std::fs::create_dir(place.path().join("dkim")).unwrap();
        std::fs::copy(
            other.path().join("dkim/barepost-rsa.pem"),
            place.path().join("dkim/2026-11.key.pem"),
        )
        .unwrap();
        std::fs::write(place.path().join("dkim/notes.txt"), "no key").unwrap();
        assert_eq!(records(place.path()), made[..1]);
        let domain = Name::parse("a.test").unwrap();
        let [key] = &keys(place.path(), &configuration("b.test")).unwrap()[..] else {
            panic!("one key")
        };
        assert_eq!(key.name_at(&domain).unwrap().as_str(), "2026-11.key._domainkey.a.test");
    }

    #[test]
    fn unusable_signing_key_is_refused_with_file_and_reason() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("dkim");
        std::fs::create_dir(&folder).unwrap();
        let refusal = |name: &str, text: &str, domain: &str| {
            std::fs::write(folder.join(name), text).unwrap();
            let failure = keys(place.path(), &configuration(domain)).err().unwrap();
            std::fs::remove_file(folder.join(name)).unwrap();
            assert_eq!(failure.status(), 2);
            assert!(
                failure.to_string().contains(&folder.join(name).display().to_string()),
                "{failure}"
            );
            failure.to_string()
        };
        host::randomness::provide();
        let right = KeyPair::generate_for(&PKCS_ED25519).unwrap().serialize_pem();
        let other = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap().serialize_pem();
        assert!(refusal("2026.key.pem", "nonsense", "b.test").contains("contains no private key"));
        assert!(refusal("key.pem", &other, "b.test").contains("use Ed25519, or RSA"));
        assert!(refusal("two words.pem", &right, "b.test").contains("a selector consists of"));
        let long = ["x".repeat(60).as_str(); 4].join(".");
        assert!(refusal("key.pem", &right, &long).contains("too long for a key of x"));
        for number in 0..=KEYS_MAX {
            std::fs::write(folder.join(format!("key{number}.pem")), &right).unwrap();
        }
        let failure = keys(place.path(), &configuration("b.test")).err().unwrap();
        assert!(failure.to_string().ends_with("5 keys; at most 4 are allowed"), "{failure}");
    }
}
