//! The files of certificate authorities that `barepost.toml` names. The machine trusts them for
//! other servers, in addition to the authorities of the web.
//!
//! A file without a certificate of an authority is refused before the machine boots. The error has
//! the line that names the file.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use configuration::Configuration;
use host::Failure;
use tls::Authorities;

/// Packs the authorities into a file of the folder. Creates no file if none are named.
///
/// `wrong`: returns the error for a fault in `barepost.toml`. Its argument is the text that follows
/// the name `barepost.toml` in the error. Errors: [`Failure::refused`] if a file cannot be read, or
/// contains no authority.
pub(super) fn pack(
    folder: &Path,
    configuration: &Configuration,
    wrong: impl Fn(&dyn Display) -> Failure,
) -> Result<Option<PathBuf>, Failure> {
    let mut pairs = Vec::new();
    for named in &configuration.relay.authorities {
        let path = folder.join(&named.file);
        let refused = |why: &dyn Display| {
            wrong(&format_args!("{}: [relay] ca: {}: {why}", named.line, path.display()))
        };
        let text = std::fs::read(&path).map_err(|error| refused(&error))?;
        pairs.push((named.file.clone(), text));
        Authorities::with(pairs.iter().map(|(_, text)| text.as_slice()))
            .map_err(|error| refused(&error))?;
    }
    if pairs.is_empty() {
        return Ok(None);
    }
    let path = folder.join("authorities.pack");
    let pack = configuration::pack::pack(
        pairs.iter().map(|(file, text)| (file.as_bytes(), text.as_slice())),
    );
    std::fs::write(&path, pack)
        .map_err(|error| Failure::refused(format_args!("{}: {error}", path.display())))?;
    Ok(Some(path))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use crate::run::DataFolder;

    #[test]
    fn authority_files_are_packed_and_bad_ones_refused_with_line() {
        host::randomness::provide();
        let place = tempfile::tempdir().unwrap();
        let open = |more: &str| {
            let text = format!("hostname = 'mail.a.test'\ndomains = ['a.test']\n{more}");
            std::fs::write(place.path().join("barepost.toml"), text).unwrap();
            DataFolder::open(place.path())
        };
        assert!(open("").unwrap().authorities_path.is_none());
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        let pem = CertificateParams::new(vec!["ca.test".to_string()])
            .unwrap()
            .self_signed(&key)
            .unwrap()
            .pem();
        std::fs::write(place.path().join("ca.pem"), pem).unwrap();
        std::fs::write(place.path().join("key.pem"), key.serialize_pem()).unwrap();
        let data = open("[relay]\nca = 'ca.pem'\n").unwrap();
        let pack = std::fs::read(data.authorities_path.as_ref().unwrap()).unwrap();
        let authorities = configuration::pack::authorities(&pack).unwrap();
        assert!(format!("{authorities:?}").ends_with("1 named)"));
        drop(data);
        for (file, why) in
            [("gone.pem", "No such file"), ("key.pem", "the file contains no certificate")]
        {
            let failure = open(&format!("[relay]\nca = ['ca.pem', '{file}']\n")).err().unwrap();
            assert_eq!(failure.status(), 2);
            let text = failure.to_string();
            assert!(
                text.contains(":4: [relay] ca: ") && text.contains(file) && text.contains(why),
                "{text}"
            );
        }
    }
}
