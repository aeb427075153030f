//! The data folder: `barepost.toml`, `disk.img`, a certificate and keys that sign messages. All are
//! created on the first run, and checked before every boot.
//!
//! Invariant: one machine at a time uses a data folder. The disk is locked (`flock`), and QEMU
//! inherits the lock. So the lock ends when both processes have ended.

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

/// The web page that is created on the first run.
const DEMO_PAGE: &str = include_str!("demo/index.html");

/// The conditions for the opening of a folder.
pub(crate) struct Terms<'a> {
    pub(crate) missing_disk: MissingDisk,
    /// Checks the configuration before other files are created. Errors: `LINE: ` and the fault in
    /// this line.
    pub(crate) accepts: &'a dyn Fn(&Configuration) -> Result<(), String>,
}

/// A data folder, locked for this process.
pub struct DataFolder {
    /// The parsed `barepost.toml`.
    pub configuration: Configuration,
    /// The path of `barepost.toml`.
    pub configuration_path: PathBuf,
    /// The demo's users and their passwords, as long as `barepost.toml` has not changed since the
    /// first run.
    pub(crate) demo_users: Option<String>,
    /// The path of the disk's image.
    pub disk_path: PathBuf,
    /// The size of the disk in bytes if this run created it.
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
    /// Opens the folder and creates missing files, but a disk only on the first run.
    ///
    /// Errors: as for [`DataFolder::open_on`].
    pub fn open(folder: &Path) -> Result<DataFolder, Failure> {
        let terms = Terms { missing_disk: MissingDisk::MakeOnFirstRun, accepts: &|_| Ok(()) };
        DataFolder::open_on(&terms, folder)
    }

    /// Opens the folder and creates missing files.
    ///
    /// Errors: [`Failure::refused`] if another machine uses the folder, if the configuration is
    /// wrong, if the disk is missing and must not be created, or if this version cannot serve the
    /// disk.
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

    /// The size of the packed site in bytes; 0 if there is none.
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

    /// Lets programs that are started from now on inherit the lock.
    pub fn pass_lock_on(&self) -> Result<(), Failure> {
        fcntl(&self.disk, FcntlArg::F_SETFD(FdFlag::empty())).map(drop).map_err(|error| {
            Failure::broke(format_args!("passing the lock of the disk on: {error}"))
        })
    }
}

/// The text of a `barepost.toml`, and its parsed configuration.
///
/// Errors: [`Failure::refused`] if the file cannot be read or is wrong, with the path and the line.
pub(crate) fn read_configuration(path: &Path) -> Result<(String, Configuration), Failure> {
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::refused(format_args!("{}: reading: {error}", path.display())))?;
    let text =
        String::from_utf8(bytes).map_err(|error| wrong(path, &not_text(error.as_bytes())))?;
    let configuration = Configuration::parse(&text).map_err(|error| wrong(path, &error))?;
    Ok((text, configuration))
}

/// A configuration error. `what`: the text that follows the path and a colon.
fn wrong(path: &Path, what: &dyn Display) -> Failure {
    Failure::refused(format_args!("{}:{what}", path.display()))
}

/// Lets only the owner read a new file: all files of the folder may contain secrets.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Creates the configuration if it does not exist, and the web page that it names.
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

/// The error for the first byte that is not UTF-8, in the form of all configuration errors.
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
        assert_eq!(data.disk_path.metadata().unwrap().len(), 2 << 20, "the existing disk is used");
        assert_eq!(
            std::fs::read_dir(&folder).unwrap().count(),
            8,
            "configuration, disk, site and its pack, certificate and keys, and a pack of each"
        );
    }

    #[test]
    fn used_folder_without_a_disk_is_refused_and_unchanged() {
        let place = tempfile::tempdir().unwrap();
        drop(DataFolder::open(place.path()).unwrap());
        std::fs::remove_file(place.path().join("disk.img")).unwrap();
        std::fs::remove_file(place.path().join("barepost.toml")).unwrap();
        let failure = DataFolder::open(place.path()).err().unwrap();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains("disk.img: the disk is missing"), "{failure}");
        for name in ["disk.img", "barepost.toml"] {
            assert!(!place.path().join(name).exists(), "{name} was created");
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
        assert!(!place.path().join("disk.img").exists(), "a disk was created");
    }

    #[test]
    fn no_disk_is_created_for_a_rejected_configuration() {
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
    fn file_in_place_of_the_data_folder_is_refused() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let failure = DataFolder::open(place.path()).err().unwrap();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains("not a folder"), "{failure}");
    }

    #[test]
    fn data_folder_is_used_by_one_machine_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let first = DataFolder::open(place.path()).unwrap();
        let failure = DataFolder::open(place.path()).err().unwrap();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains("another barepost"), "{failure}");
        drop(first);
        DataFolder::open(place.path()).unwrap();
    }
}
