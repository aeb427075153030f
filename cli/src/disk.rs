//! Reads the disk's image file with the store's own code: for `barepost fsck`, and for the check
//! before every boot.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use clap::Args;
use host::{Failure, remark, say};
use machine::{Disk, DiskCompletion, DiskError, DiskOperation, SECTOR_BYTES, Sector};
use store::{Limits, ReadSectors, State, Store, UnreadableSectors};

#[derive(Args)]
pub(crate) struct Options {
    /// The disk image, such as data/disk.img, or a block device
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Prints the content of a disk and its faults. Never writes to the disk.
///
/// Errors: [`Failure::refused`] if the file cannot be read or is not a Barepost disk,
/// [`Failure::Told`] if the disk has faults.
pub(crate) fn fsck(options: &Options) -> Result<(), Failure> {
    let path = options.file.display();
    let file = File::open(&options.file)
        .map_err(|error| Failure::refused(format_args!("{path}: {error}")))?;
    let mut image =
        Image::of(&file).map_err(|error| Failure::refused(format_args!("{path}: {error}")))?;
    if is_served(&file) {
        remark(format_args!(
            "barepost: {path}: a machine is using this disk; data that it is writing now may look damaged"
        ));
    }
    let report = store::fsck(&mut image);
    if let Some(reason) = report.refused {
        return Err(Failure::refused(format_args!("{path}: {reason}")));
    }
    say(report.to_string().trim_end());
    if report.is_clean() { Ok(()) } else { Err(Failure::Told) }
}

/// Whether a machine uses the disk now. If so, a reader may see half of a write.
fn is_served(file: &File) -> bool {
    match file.try_lock_shared() {
        // The lock is released at once, so that a machine can start.
        Ok(()) => file.unlock().is_err(),
        Err(error) => matches!(error, TryLockError::WouldBlock),
    }
}

/// Checks that the machine will open this disk. Makes a store on the disk and answers the store's
/// first requests, which read the superblocks. Then reads the store's state. Writes nothing.
///
/// Errors: [`Failure::refused`] with the store's reason.
pub(crate) fn check_format(file: &File, path: &Path) -> Result<(), Failure> {
    let refused =
        |what: &dyn std::fmt::Display| Failure::refused(format_args!("{}: {what}", path.display()));
    let mut image = Image::of(file).map_err(|error| refused(&error))?;
    let limits = Limits {
        deliveries: 0,
        recipients: 0,
        reads: 1,
        buffer_bytes: 0,
        resident_bytes: u64::MAX,
    };
    let mut store = Store::new(limits, image.disk(), [0; 32]);
    let mut requests = Vec::new();
    while let Some(request) = store.next_request() {
        requests.push(request);
    }
    for mut request in requests {
        let result = match request.operation {
            DiskOperation::Read => {
                image.read(request.sector, &mut request.buffer).map_err(|_| DiskError::Failed)
            }
            DiskOperation::Write | DiskOperation::Flush => Err(DiskError::Failed),
        };
        let (token, operation, buffer) = (request.token, request.operation, request.buffer);
        store.disk_completed(DiskCompletion { token, operation, result, buffer });
    }
    match store.state() {
        State::Refused(reason) => Err(refused(&reason)),
        _ => Ok(()),
    }
}

/// A file as a read-only disk.
struct Image<'a> {
    file: &'a File,
    sectors: u64,
}

impl Image<'_> {
    fn of(file: &File) -> std::io::Result<Image<'_>> {
        // A folder can be opened like a file, but its length has another meaning.
        if file.metadata()?.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        // The length in the metadata is not used, because it is 0 for a block device.
        let bytes = std::io::Seek::seek(&mut &*file, std::io::SeekFrom::End(0))?;
        Ok(Image { file, sectors: bytes / SECTOR_BYTES as u64 })
    }

    fn disk(&self) -> Disk {
        Disk { sectors: self.sectors, durable: true }
    }
}

impl ReadSectors for Image<'_> {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn read(&mut self, sector: Sector, bytes: &mut [u8]) -> Result<(), UnreadableSectors> {
        let start = sector.0.checked_mul(SECTOR_BYTES as u64).ok_or(UnreadableSectors)?;
        self.file.read_exact_at(bytes, start).map_err(|_| UnreadableSectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK_BYTES: u64 = 4 << 20;

    /// The result for a disk that starts with `start` and is otherwise empty.
    fn said_of(start: &[u8], bytes: u64) -> Result<(), Failure> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("disk.img");
        std::fs::write(&path, start).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        file.set_len(bytes).unwrap();
        let said = check_format(&file, &path);
        let mut after = std::fs::read(&path).unwrap();
        assert_eq!(after.len() as u64, bytes);
        assert!(
            after.split_off(start.len()).iter().all(|byte| *byte == 0) && after == start,
            "the check has written to the disk"
        );
        said
    }

    #[test]
    fn blank_disk_is_accepted_and_not_written() {
        said_of(b"", DISK_BYTES).unwrap();
    }

    #[test]
    fn a_disk_that_is_not_ours_is_refused_unwritten() {
        let failure = said_of(&b"some other file system ".repeat(200), DISK_BYTES).unwrap_err();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains("disk.img: "), "{failure}");
    }

    #[test]
    fn a_disk_of_a_newer_format_is_refused_unwritten() {
        let mut superblock = b"BAREPOST".to_vec();
        superblock.extend_from_slice(&(store::FORMAT_VERSION + 1).to_le_bytes());
        let failure = said_of(&superblock, DISK_BYTES).unwrap_err();
        assert_eq!(failure.status(), 2);
        assert!(
            failure.to_string().contains(&format!("format {}", store::FORMAT_VERSION + 1)),
            "{failure}"
        );
    }

    #[test]
    fn folder_is_refused_as_a_directory() {
        let place = tempfile::tempdir().unwrap();
        let failure = fsck(&Options { file: place.path().into() }).unwrap_err();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains("is a directory"), "{failure}");
    }

    #[test]
    fn disk_is_in_use_as_long_as_its_lock_is_held() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("disk.img");
        let machine = File::create(&path).unwrap();
        machine.lock().unwrap();
        let looked_at = File::open(&path).unwrap();
        assert!(is_served(&looked_at));
        drop(machine);
        assert!(!is_served(&looked_at));
        File::open(&path).unwrap().try_lock().unwrap();
    }

    #[test]
    fn a_disk_that_is_too_small_is_refused() {
        assert_eq!(said_of(b"", 4096).unwrap_err().status(), 2);
    }
}
