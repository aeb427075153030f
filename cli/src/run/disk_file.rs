//! `disk.img` of the data folder. It is created if no machine has run in the folder before.
//!
//! A missing disk is usually a mistake: a volume is not mounted, or `--data` is mistyped. With a
//! new disk in its place the machine would start without an error, show empty mailboxes, and store
//! new mail on the wrong disk.
//!
//! Invariants:
//! - Without `--new` a disk is created only in a folder that has no trace of an earlier run.
//! - An existing disk is never replaced, whatever the options are.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use host::Failure;

const NAME: &str = "disk.img";
/// The size of a new disk. The file is sparse: it occupies only the written blocks.
pub(super) const NEW_BYTES: u64 = 1 << 30;
/// The files and folders that only a run creates, in addition to the disk. A user may have written
/// the configuration and the site before the first run.
const TRACES: &[&str] =
    &["tls", "dkim", "certificates.pack", "signing-keys.pack", "authorities.pack", "site.pack"];

/// The treatment of a missing disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MissingDisk {
    /// A disk is created if the folder has no trace of an earlier run. Otherwise it is an error.
    MakeOnFirstRun,
    /// A disk is created, as `--new` requests. An existing disk is an error.
    Make,
}

/// The path of the disk. Nothing has been created or changed there yet.
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) is_new: bool,
}

/// Checks that the folder's disk exists or may be created. Changes nothing.
///
/// Errors: [`Failure::refused`] if the disk is missing in a folder that has been used before, or if
/// it exists and a new one is requested.
pub(super) fn find(folder: &Path, missing: MissingDisk) -> Result<Place, Failure> {
    let path = folder.join(NAME);
    let refused = |what: &dyn Display| Failure::refused(format_args!("{}: {what}", path.display()));
    // An empty file counts as missing: a failed copy of a disk leaves one.
    let is_new = match path.metadata() {
        Ok(metadata) => metadata.is_file() && metadata.len() == 0,
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(error) => return Err(refused(&error)),
    };
    match (missing, is_new) {
        (MissingDisk::MakeOnFirstRun, true) => {
            let traces = traces(folder, &path);
            if !traces.is_empty() {
                return Err(refused(&format_args!(
                    "the disk is missing, but {} there from an earlier run. Is a volume not mounted, or --data \
                     mistyped? Use --new to start with a new, empty disk",
                    said(&traces)
                )));
            }
        }
        (MissingDisk::Make, false) => {
            return Err(refused(
                &"this disk exists already, and --new never replaces a disk; start without --new",
            ));
        }
        (MissingDisk::MakeOnFirstRun, false) | (MissingDisk::Make, true) => {}
    }
    Ok(Place { path, is_new })
}

/// The files that show that the folder has been used before.
fn traces(folder: &Path, disk: &Path) -> Vec<&'static str> {
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    let link = is_there(disk).then_some("a link or an empty file in its place");
    link.into_iter()
        .chain(TRACES.iter().copied().filter(|name| is_there(&folder.join(name))))
        .collect()
}

fn said(traces: &[&str]) -> String {
    let verb = if traces.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", traces.join(", "))
}

/// Opens the disk. Creates a new disk with its full size.
pub(super) fn open(place: &Place) -> std::io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(place.is_new)
        .mode(0o600)
        .open(&place.path)?;
    // The length in the metadata is not used, because it is 0 for a block device.
    if place.is_new && file.seek(SeekFrom::End(0))? == 0 {
        file.set_len(NEW_BYTES)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_disk_in_a_used_folder_is_refused() {
        for trace in TRACES {
            let place = tempfile::tempdir().unwrap();
            std::fs::write(place.path().join(trace), "").unwrap();
            let failure = find(place.path(), MissingDisk::MakeOnFirstRun).err().unwrap();
            assert_eq!(failure.status(), 2);
            let text = failure.to_string();
            for said in [NAME, trace, "not mounted", "--data", "--new"] {
                assert!(text.contains(said), "{said}: {text}");
            }
            assert!(find(place.path(), MissingDisk::Make).unwrap().is_new);
            assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "a file was created");
        }
    }

    #[test]
    fn broken_link_and_empty_file_count_as_a_missing_disk() {
        let place = tempfile::tempdir().unwrap();
        let disk = place.path().join(NAME);
        std::os::unix::fs::symlink(place.path().join("volume/disk.img"), &disk).unwrap();
        assert!(
            find(place.path(), MissingDisk::MakeOnFirstRun)
                .err()
                .unwrap()
                .to_string()
                .contains("link")
        );
        std::fs::remove_file(&disk).unwrap();
        std::fs::write(&disk, "").unwrap();
        assert!(
            find(place.path(), MissingDisk::MakeOnFirstRun)
                .err()
                .unwrap()
                .to_string()
                .contains("empty file")
        );
        let new = find(place.path(), MissingDisk::Make).unwrap();
        assert_eq!(open(&new).unwrap().metadata().unwrap().len(), NEW_BYTES);
    }

    #[test]
    fn existing_disk_is_never_replaced() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join(NAME), "mail").unwrap();
        let failure = find(place.path(), MissingDisk::Make).err().unwrap();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains("--new never replaces"), "{failure}");
        let found = find(place.path(), MissingDisk::MakeOnFirstRun).unwrap();
        assert!(!found.is_new);
        open(&found).unwrap();
        assert_eq!(std::fs::read(place.path().join(NAME)).unwrap(), b"mail");
    }

    #[test]
    fn disk_removed_before_its_opening_is_not_created_again() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join(NAME), "mail").unwrap();
        let found = find(place.path(), MissingDisk::MakeOnFirstRun).unwrap();
        std::fs::remove_file(&found.path).unwrap();
        assert_eq!(open(&found).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
