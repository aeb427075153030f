//! The data folder: `barepost.toml`, `disk.img`, a certificate and keys that sign messages. All are
//! made on the first run, and checked before every boot.
//!
//! Invariant: a data folder serves one machine at a time. The disk is locked (`flock`), and the
//! lock is passed on to QEMU, so that it ends when both processes have ended.

use std::fmt::Display;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use configuration::Configuration;
use host::Failure;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use crate::disk;
use crate::guest::GuestFiles;
use crate::run::disk_file::{self, MissingDisk};
use crate::run::{LEAVE_PATIENCE, authorities, certificates, demo, signing};
use crate::site;

/// The page that is made on the first run.
const DEMO_PAGE: &str = include_str!("demo/index.html");

/// What is required of a folder to open it.
pub(crate) struct Terms<'a> {
    pub(crate) missing_disk: MissingDisk,
    /// Checks the configuration before anything else is made. Errors: `LINE: ` and what is wrong
    /// there.
    pub(crate) accepts: &'a dyn Fn(&Configuration) -> Result<(), String>,
}

/// A data folder, locked for this process.
pub struct DataFolder {
    /// What `barepost.toml` says.
    pub configuration: Configuration,
    /// Where `barepost.toml` is.
    pub configuration_path: PathBuf,
    /// The demo's users and their passwords, as long as `barepost.toml` has not changed since the
    /// first run.
    pub(crate) demo_users: Option<String>,
    /// Where the disk's image is.
    pub disk_path: PathBuf,
    /// The size of the disk in bytes if this run made it.
    pub(crate) new_disk_bytes: Option<u64>,
    /// The packed site, if there is one.
    pub site_path: Option<PathBuf>,
    /// The packed certificates and their keys.
    pub certificates_path: PathBuf,
    /// The packed keys that sign messages.
    pub signing_keys_path: PathBuf,
    /// The packed certificates of authorities, if any are named.
    pub authorities_path: Option<PathBuf>,
    disk: File,
}

impl DataFolder {
    /// Opens the folder and makes what is missing, but a disk only on the first run.
    ///
    /// Errors: as those of [`DataFolder::open_on`].
    pub fn open(folder: &Path) -> Result<DataFolder, Failure> {
        let terms = Terms { missing_disk: MissingDisk::MakeOnFirstRun, accepts: &|_| Ok(()) };
        DataFolder::open_on(&terms, folder)
    }

    /// Opens the folder and makes what is missing.
    ///
    /// Errors: refused when another machine uses it, when the configuration is wrong, when the disk
    /// is missing and may not be made, or when this version cannot serve the disk.
    pub(crate) fn open_on(terms: &Terms<'_>, folder: &Path) -> Result<DataFolder, Failure> {
        let refused = |doing: &str, path: &Path| {
            let path = path.display().to_string();
            let doing = doing.to_string();
            move |error: std::io::Error| Failure::refused(format_args!("{path}: {doing}: {error}"))
        };
        if folder.exists() && !folder.is_dir() {
            return Err(Failure::refused(format_args!(
                "{}: this is not a folder",
                folder.display()
            )));
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(refused("cannot create the folder", folder))?;
        let folder = folder.canonicalize().map_err(refused("cannot find the folder", folder))?;
        let place = disk_file::find(&folder, terms.missing_disk)?;
        let configuration_path = folder.join("barepost.toml");
        if !configuration_path.exists() {
            let text = demo::make()?;
            make_demo(&folder, &configuration_path, &text)
                .map_err(refused("cannot create the file", &configuration_path))?;
        }
        let (text, configuration) = read_configuration(&configuration_path)?;
        let wrong = |what: &dyn Display| wrong(&configuration_path, what);
        (terms.accepts)(&configuration).map_err(|what| wrong(&what))?;

        let file = disk_file::open(&place).map_err(refused("opening", &place.path))?;
        lock(&file, &folder)?;
        disk::check_format(&file, &place.path)?;
        let policy = configuration.web.policy(&configuration.hostname);
        let site_path = match configuration.web.site.as_ref().map(|site| folder.join(site)) {
            None if policy.is_none() => None,
            site => {
                let pack = site::pack(site.as_deref(), policy)
                    .map_err(|failure| wrong(&format_args!(" [web] site: {failure}")))?;
                let path = folder.join("site.pack");
                certificates::write(&path, &pack)?;
                Some(path)
            }
        };
        let certificates_path = folder.join("certificates.pack");
        certificates::write(
            &certificates_path,
            &certificates::pack(&folder, &configuration, wrong)?,
        )?;
        let signing_keys_path = folder.join("signing-keys.pack");
        certificates::write(&signing_keys_path, &signing::pack(&folder, &configuration)?)?;
        let authorities_path = authorities::pack(&folder, &configuration, wrong)?;
        let demo_users = demo::users(&text, &configuration);
        Ok(DataFolder {
            configuration,
            configuration_path,
            demo_users,
            disk_path: place.path,
            new_disk_bytes: place.is_new.then_some(disk_file::NEW_BYTES),
            site_path,
            certificates_path,
            signing_keys_path,
            authorities_path,
            disk: file,
        })
    }

    /// How large the packed site is; 0 if there is none.
    pub(crate) fn site_bytes(&self) -> Result<u64, Failure> {
        let Some(path) = &self.site_path else { return Ok(0) };
        Ok(path.metadata().map_err(Failure::io("measuring the packed site"))?.len())
    }

    /// The disk, for a machine in this process.
    ///
    /// Errors: those of Linux.
    pub fn disk(&self) -> Result<File, Failure> {
        self.disk.try_clone().map_err(Failure::io("opening the disk"))
    }

    /// The folder's files that a guest gets.
    pub fn files(&self) -> GuestFiles {
        GuestFiles {
            disk: self.disk_path.clone(),
            configuration: self.configuration_path.clone(),
            site: self.site_path.clone(),
            certificates: self.certificates_path.clone(),
            signing_keys: self.signing_keys_path.clone(),
            authorities: self.authorities_path.clone(),
        }
    }

    /// Lets programs that start from now on inherit the lock.
    pub fn pass_lock_on(&self) -> Result<(), Failure> {
        fcntl(&self.disk, FcntlArg::F_SETFD(FdFlag::empty())).map(drop).map_err(|error| {
            Failure::broke(format_args!("passing the lock of the disk on: {error}"))
        })
    }
}

/// The text of a `barepost.toml`, and its parsed configuration.
///
/// Errors: refused when it cannot be read or is wrong, with its place.
pub(crate) fn read_configuration(path: &Path) -> Result<(String, Configuration), Failure> {
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::refused(format_args!("{}: reading: {error}", path.display())))?;
    let text =
        String::from_utf8(bytes).map_err(|error| wrong(path, &not_text(error.as_bytes())))?;
    let configuration = Configuration::parse(&text).map_err(|error| wrong(path, &error))?;
    Ok((text, configuration))
}

/// `what`: the error, with its place in the configuration.
fn wrong(path: &Path, what: &dyn Display) -> Failure {
    Failure::refused(format_args!("{}:{what}", path.display()))
}

/// All files hold secrets.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Makes the configuration if there is none, and the page that it names.
fn make_demo(folder: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    match private(OpenOptions::new().write(true).create_new(true)).open(path) {
        Ok(mut file) => {
            file.write_all(text.as_bytes())?;
            let site = folder.join("site");
            if site.exists() {
                return Ok(());
            }
            std::fs::create_dir(&site)?;
            std::fs::write(site.join("index.html"), DEMO_PAGE)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Where the bytes cease to be text, in the form of all configuration errors.
fn not_text(bytes: &[u8]) -> String {
    let before = bytes.utf8_chunks().next().map(|chunk| chunk.valid()).unwrap_or_default();
    let line = before.matches('\n').count().saturating_add(1);
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count().saturating_add(1);
    format!("{line}:{column}: this byte is not valid UTF-8; expected text in UTF-8")
}

fn lock(disk: &File, folder: &Path) -> Result<(), Failure> {
    let started = Instant::now();
    loop {
        match disk.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if started.elapsed() < LEAVE_PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => {
                let folder = folder.display();
                return Err(Failure::refused(format_args!(
                    "{folder}: another barepost is using this data folder"
                )));
            }
            Err(TryLockError::Error(error)) => {
                return Err(Failure::refused(format_args!(
                    "{}: locking the disk: {error}",
                    folder.display()
                )));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_folder_gets_and_keeps_configuration_and_sparse_disk() {
        use std::os::unix::fs::MetadataExt;
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b");
        let data = DataFolder::open(&folder).unwrap();
        assert!(
            data.demo_users.is_some() && data.site_path.as_ref().is_some_and(|path| path.exists())
        );
        let disk = data.disk_path.metadata().unwrap();
        assert_eq!(
            (disk.len(), data.new_disk_bytes),
            (disk_file::NEW_BYTES, Some(disk_file::NEW_BYTES))
        );
        assert!(disk.blocks() * 512 < 1 << 20, "the disk is sparse");
        drop(data);
        std::fs::write(
            folder.join("barepost.toml"),
            "hostname = 'mail.a.test'\ndomains = ['a.test']\n",
        )
        .unwrap();
        std::fs::write(folder.join("disk.img"), vec![0; 2 << 20]).unwrap();
        let data = DataFolder::open(&folder).unwrap();
        assert!(data.demo_users.is_none() && data.new_disk_bytes.is_none());
        assert_eq!(data.disk_path.metadata().unwrap().len(), 2 << 20, "the disk that was there");
        assert_eq!(
            std::fs::read_dir(&folder).unwrap().count(),
            8,
            "site and pack are left alone, and beside certificate and keys, and a pack of each, nothing else is there"
        );
    }

    #[test]
    fn a_folder_that_has_lost_its_disk_is_refused_and_left_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        drop(DataFolder::open(place.path()).unwrap());
        std::fs::remove_file(place.path().join("disk.img")).unwrap();
        std::fs::remove_file(place.path().join("barepost.toml")).unwrap();
        let failure = DataFolder::open(place.path()).err().unwrap();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains("disk.img: the disk is missing"), "{failure}");
        for name in ["disk.img", "barepost.toml"] {
            assert!(!place.path().join(name).exists(), "{name} was made");
        }
        let terms = Terms { missing_disk: MissingDisk::Make, accepts: &|_| Ok(()) };
        let data = DataFolder::open_on(&terms, place.path()).unwrap();
        assert_eq!(data.new_disk_bytes, Some(disk_file::NEW_BYTES));
    }

    #[test]
    fn a_wrong_configuration_is_refused_with_file_and_line() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(
            place.path().join("barepost.toml"),
            "hostname = 'mail.a.test'\ndomain = ['a.test']\n",
        )
        .unwrap();
        let failure = DataFolder::open(place.path()).err().unwrap();
        assert_eq!(failure.status(), 2);
        assert!(
            failure.to_string().contains("barepost.toml:2:1: `domain` is not a valid key"),
            "{failure}"
        );
        assert!(!place.path().join("disk.img").exists(), "nothing was made");
    }

    #[test]
    fn a_configuration_that_is_not_accepted_leaves_no_disk() {
        let place = tempfile::tempdir().unwrap();
        let refuse = |_: &Configuration| Err("7: not here".to_string());
        let terms = Terms { missing_disk: MissingDisk::MakeOnFirstRun, accepts: &refuse };
        let failure = DataFolder::open_on(&terms, place.path()).err().unwrap();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().ends_with("barepost.toml:7: not here"), "{failure}");
        assert!(!place.path().join("disk.img").exists() && !place.path().join("tls").exists());
    }

    #[test]
    fn configuration_that_is_not_utf8_is_refused_with_line() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("barepost.toml");
        std::fs::write(&path, b"hostname = 'mail.a.test'\n# Caf\xe9\ndomains = ['a.test']\n")
            .unwrap();
        let failure = DataFolder::open(place.path()).err().unwrap();
        assert_eq!(failure.status(), 2);
        assert!(
            failure.to_string().contains("barepost.toml:2:6: this byte is not valid UTF-8"),
            "{failure}"
        );
    }

    #[test]
    fn a_file_in_the_place_of_the_folder_is_called_no_folder() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let failure = DataFolder::open(place.path()).err().unwrap();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains("not a folder"), "{failure}");
    }

    #[test]
    fn a_data_folder_serves_one_machine_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let first = DataFolder::open(place.path()).unwrap();
        let failure = DataFolder::open(place.path()).err().unwrap();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains("another barepost"), "{failure}");
        drop(first);
        DataFolder::open(place.path()).unwrap();
    }
}
