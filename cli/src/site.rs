//! The site: a folder's files, packed with their compressed forms into one file for the machine.
//!
//! Names that begin with a dot are left out, except `.well-known` (RFC 8615). So `.git` is not
//! published by mistake.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use configuration::POLICY_PATH;
use flate2::Compression;
use flate2::write::GzEncoder;
use host::Failure;
use http::SiteFile;

/// The largest pack that a machine takes, in bytes: the limit of the image's `fw_cfg` reader.
const PACK_BYTES_MAX: usize = 64 << 20;
/// A compressed form is kept if it saves at least a twentieth of the size.
const WORTHWHILE: (usize, usize) = (19, 20);
/// Brotli's quality, of at most 11. The two higher levels take ten times as long for a few percent.
const BROTLI_QUALITY: i32 = 9;
/// The base-2 logarithm of brotli's window in bytes. Every client can use a window of this size.
const BROTLI_WINDOW_BITS: i32 = 22;

/// Packs the files of `folder` under their relative paths, and the MTA-STS policy of the machine's
/// domains, if any.
///
/// Errors: [`Failure::refused`] if the folder cannot be read or contains an entry that cannot be
/// served.
pub(crate) fn pack(folder: Option<&Path>, policy: Option<String>) -> Result<Vec<u8>, Failure> {
    let mut files = BTreeMap::new();
    if let Some(folder) = folder {
        let root = folder.canonicalize().map_err(|error| refused(folder, error))?;
        collect(&root, &root, "", &mut files)?;
    }
    if let Some(policy) = policy {
        files.insert(POLICY_PATH.to_string(), text(policy));
    }
    let pack = http::pack(&files).map_err(Failure::refused)?;
    if pack.len() > PACK_BYTES_MAX {
        let (has, most) = (pack.len() >> 20, PACK_BYTES_MAX >> 20);
        let what = format_args!("the packed site has {has} MiB; at most {most} MiB are allowed");
        return Err(Failure::refused(what));
    }
    Ok(pack)
}

/// A text file that changes with the configuration.
fn text(text: String) -> SiteFile {
    let (content_type, modified) =
        ("text/plain; charset=utf-8".to_string(), httpdate::fmt_http_date(SystemTime::now()));
    SiteFile { content_type, modified, gzip: None, brotli: None, plain: text.into_bytes() }
}

fn collect(
    root: &Path,
    folder: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, SiteFile>,
) -> Result<(), Failure> {
    for entry in fs::read_dir(folder).map_err(|error| refused(folder, error))? {
        let path = entry.map_err(|error| refused(folder, error))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(refused(&path, "the name is not UTF-8"));
        };
        if name.starts_with('.') && name != ".well-known" {
            continue;
        }
        let name = format!("{prefix}/{name}");
        let target = inside(root, &path)?;
        if target.is_dir() {
            if target != path {
                return Err(refused(
                    &path,
                    "this is a link to a folder; only links to files are followed",
                ));
            }
            collect(root, &target, &name, files)?;
        } else if target.is_file() {
            files.insert(name, file(&target)?);
        } else {
            return Err(refused(&path, "this is neither a file nor a folder"));
        }
    }
    Ok(())
}

/// The target of `path`, which must not be outside of the site.
fn inside(root: &Path, path: &Path) -> Result<PathBuf, Failure> {
    let target = path.canonicalize().map_err(|error| refused(path, error))?;
    if target.starts_with(root) {
        Ok(target)
    } else {
        Err(refused(path, "this link leads out of the site"))
    }
}

fn file(path: &Path) -> Result<SiteFile, Failure> {
    let plain = fs::read(path).map_err(|error| refused(path, error))?;
    let modified = fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .map_err(|error| refused(path, error))?;
    let is_worthwhile =
        |packed: &Vec<u8>| packed.len() * WORTHWHILE.1 <= plain.len() * WORTHWHILE.0;
    let gzip = Some(gzip(&plain).map_err(|error| refused(path, error))?).filter(is_worthwhile);
    let brotli = Some(brotli(&plain).map_err(|error| refused(path, error))?).filter(is_worthwhile);
    let modified = httpdate::fmt_http_date(modified.max(SystemTime::UNIX_EPOCH));
    Ok(SiteFile { content_type: content_type(path), modified, gzip, brotli, plain })
}

/// The content type of a file, by its name. Text is UTF-8.
fn content_type(path: &Path) -> String {
    let guess = mime_guess::from_path(path).first_or_octet_stream();
    let is_text = guess.type_() == mime_guess::mime::TEXT
        || guess == mime_guess::mime::APPLICATION_JAVASCRIPT;
    if is_text { format!("{guess}; charset=utf-8") } else { guess.to_string() }
}

fn gzip(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain)?;
    encoder.finish()
}

fn brotli(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = Vec::new();
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: BROTLI_QUALITY,
        lgwin: BROTLI_WINDOW_BITS,
        size_hint: plain.len(),
        ..Default::default()
    };
    brotli::BrotliCompress(&mut &*plain, &mut packed, &parameters)?;
    Ok(packed)
}

fn refused(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::refused(format_args!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Coding, Site};
    use std::io::Read;

    fn site(folder: &Path) -> Site {
        Site::new(Box::leak(pack(Some(folder), None).unwrap().into_boxed_slice())).unwrap()
    }

    #[test]
    fn a_folder_is_packed_with_its_types_and_its_compressed_forms() {
        let place = tempfile::tempdir().unwrap();
        let text = "All work and no play makes Jack a dull boy.\n".repeat(100);
        fs::create_dir_all(place.path().join("deep/er")).unwrap();
        fs::create_dir_all(place.path().join(".well-known")).unwrap();
        fs::create_dir_all(place.path().join(".git")).unwrap();
        for name in [
            "index.html",
            "deep/er/a b.css",
            ".well-known/security.txt",
            ".git/config",
            ".htpasswd",
        ] {
            fs::write(place.path().join(name), &text).unwrap();
        }
        fs::write(place.path().join("noise.bin"), [1, 2, 3]).unwrap();
        let site = site(place.path());
        assert_eq!(site.len(), 4, "names that begin with a dot are left out");
        let page = site.find("/index.html").unwrap();
        assert_eq!(page.content_type(), "text/html; charset=utf-8");
        assert_eq!(
            site.find("/deep/er/a b.css").unwrap().content_type(),
            "text/css; charset=utf-8"
        );
        assert_eq!(
            site.find("/.well-known/security.txt").unwrap().content_type(),
            "text/plain; charset=utf-8"
        );
        for representation in page.representations() {
            let mut found = String::new();
            let read =
                match representation.coding {
                    Coding::Identity => (&mut &*representation.bytes).read_to_string(&mut found),
                    Coding::Gzip => flate2::read::GzDecoder::new(representation.bytes)
                        .read_to_string(&mut found),
                    Coding::Brotli => brotli::Decompressor::new(representation.bytes, 4096)
                        .read_to_string(&mut found),
                };
            assert_eq!(read.unwrap(), text.len());
            assert_eq!(found, text);
        }
        assert_eq!(page.representations().count(), 3);
        let noise = site.find("/noise.bin").unwrap();
        assert_eq!(noise.content_type(), "application/octet-stream");
        assert_eq!(noise.representations().count(), 1, "compression would save too little");
    }

    #[test]
    fn mta_sts_policy_is_served_at_its_path_and_parses() {
        let text = "hostname = 'mail.a.test'\ndomains = ['a.test']\n[web]\nmta_sts = 'enforce'\n";
        let configuration = configuration::Configuration::parse(text).unwrap();
        let policy = configuration.web.policy(&configuration.hostname).unwrap();
        let pack = pack(None, Some(policy.clone())).unwrap();
        let site = Site::new(Box::leak(pack.into_boxed_slice())).unwrap();
        let file = site.find("/.well-known/mta-sts.txt").unwrap();
        assert_eq!((site.len(), file.content_type()), (1, "text/plain; charset=utf-8"));
        assert_eq!(file.representations().next().unwrap().bytes, policy.as_bytes());
        let read = relay::sts::StsPolicy::read(policy.as_bytes()).unwrap();
        assert_eq!(
            (read.mode, read.max_age.as_secs()),
            (relay::sts::StsMode::Enforce, 14 * 86_400)
        );
        assert!(read.allows(&dns::Name::parse("mail.a.test").unwrap()));
    }

    #[test]
    fn unservable_files_are_named() {
        let place = tempfile::tempdir().unwrap();
        let site = place.path().join("site");
        let refusal = |words: &str| {
            let failure = pack(Some(&site), None).err().unwrap();
            assert_eq!(failure.status(), 2);
            assert!(failure.to_string().contains(words), "{failure}");
        };
        refusal("No such file");
        fs::create_dir(&site).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", site.join("secrets")).unwrap();
        refusal("leads out of the site");
        fs::remove_file(site.join("secrets")).unwrap();
        std::os::unix::fs::symlink("nowhere", site.join("broken")).unwrap();
        refusal("broken");
        fs::remove_file(site.join("broken")).unwrap();
        fs::write(site.join("a"), "a").unwrap();
        std::os::unix::fs::symlink("a", site.join("b")).unwrap();
        assert_eq!(http::pack(&BTreeMap::new()).unwrap().len(), 16);
        assert!(pack(Some(&site), None).unwrap().len() > 16);
    }
}
