//! `disk.img` of the data folder: found, or made if no machine has run there before.
//!
//! A missing disk is usually a mistake: a volume is not mounted, or `--data` is mistyped. A new
//! disk in its place would start without an error, show empty mailboxes, and take mail that belongs
//! elsewhere.
//!
//! Invariants:
//! - A disk is made without `--new` only in a folder that shows no trace of an earlier run.
//! - An existing disk is never replaced, whatever the options are.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use host::Failure;

const NAME: &str = "disk.img";
/// The size of a new disk. The file is sparse: it occupies only what is written to it.
pub(super) const NEW_BYTES: u64 = 1 << 30;
/// What a run leaves in the folder besides the disk.
const TRACES: &[&str] =
    &["tls", "dkim", "certificates.pack", "signing-keys.pack", "authorities.pack", "site.pack"];

/// What to do if the disk is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MissingDisk {
    /// It is made in a folder that shows no trace of an earlier run, and refused in others.
    MakeOnFirstRun,
    /// It is made, as `--new` asks; `--new` is refused if a disk is there.
    Make,
}

/// The disk's path, examined and not changed yet.
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) is_new: bool,
}

/// Looks whether the folder's disk is there, or may be made. Changes nothing.
///
/// Errors: refused when it is missing and the folder has been used before, or when it is there and
/// a new one is requested.
pub(super) fn find(folder: &Path, missing: MissingDisk) -> Result<Place, Failure> {
    let path = folder.join(NAME);
    let refused = |what: &dyn Display| Failure::refused(format_args!("{}: {what}", path.display()));
    // An empty file remains when a disk could not be copied.
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

/// Opens the disk. A new disk is made, with its size.
pub(super) fn open(place: &Place) -> std::io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(place.is_new)
        .mode(0o600)
        .open(&place.path)?;
    // Not the metadata's length, which is 0 for a block device.
    if place.is_new && file.seek(SeekFrom::End(0))? == 0 {
        file.set_len(NEW_BYTES)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_disk_beside_traces_of_a_run_is_refused() {
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
            assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "nothing was made");
        }
    }

    #[test]
    fn a_link_to_no_disk_and_an_empty_file_count_as_missing() {
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
    fn a_disk_that_is_there_is_never_replaced() {
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
    fn a_disk_that_vanishes_before_it_is_opened_is_not_made_anew() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join(NAME), "mail").unwrap();
        let found = find(place.path(), MissingDisk::MakeOnFirstRun).unwrap();
        std::fs::remove_file(&found.path).unwrap();
        assert_eq!(open(&found).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
