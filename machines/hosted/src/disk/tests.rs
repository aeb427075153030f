//! Tests of a disk in a file, used as the store uses it.

use super::*;
use machine::{DiskToken, Sector};
use std::time::{Duration, Instant};

const SECTORS: u64 = 256;

fn file() -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(SECTORS * SECTOR_BYTES as u64 + 100).unwrap();
    file
}

fn disk_in(file: &File) -> FileDisk {
    FileDisk::start(file.try_clone().unwrap(), &Bell::new().unwrap()).unwrap()
}

fn request(token: u64, operation: DiskOperation, sector: u64, buffer: Vec<u8>) -> DiskRequest {
    DiskRequest {
        token: DiskToken(token),
        operation,
        sector: Sector(sector),
        buffer: buffer.into_boxed_slice(),
    }
}

fn next(disk: &mut FileDisk) -> DiskCompletion {
    let started = Instant::now();
    loop {
        if let Some(completion) = disk.completed() {
            return completion;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "a request did not complete");
        std::thread::yield_now();
    }
}

#[test]
fn written_data_is_read_back_and_in_the_file_after_a_flush() {
    let file = file();
    let mut disk = disk_in(&file);
    assert_eq!(disk.disk(), Disk { sectors: SECTORS, durable: true });
    disk.request(request(1, DiskOperation::Write, 3, vec![7; 2 * SECTOR_BYTES])).unwrap();
    let written = next(&mut disk);
    assert_eq!(
        (written.token, written.operation, written.result),
        (DiskToken(1), DiskOperation::Write, Ok(()))
    );
    assert_eq!(written.buffer.len(), 2 * SECTOR_BYTES, "the buffer is returned");
    disk.request(request(2, DiskOperation::Flush, 0, vec![])).unwrap();
    assert_eq!(next(&mut disk).result, Ok(()));
    disk.request(request(3, DiskOperation::Read, 4, vec![0; SECTOR_BYTES])).unwrap();
    assert_eq!(*next(&mut disk).buffer, [7; SECTOR_BYTES]);
    let mut bytes = [0; SECTOR_BYTES];
    file.read_exact_at(&mut bytes, 3 * SECTOR_BYTES as u64).unwrap();
    assert_eq!(bytes, [7; SECTOR_BYTES]);
}

#[test]
fn a_request_outside_of_the_disk_is_refused_and_touches_nothing() {
    let file = file();
    let before = file.metadata().unwrap().len();
    let mut disk = disk_in(&file);
    for (operation, sector, bytes) in [
        (DiskOperation::Write, SECTORS, SECTOR_BYTES),
        (DiskOperation::Write, SECTORS - 1, 2 * SECTOR_BYTES),
        (DiskOperation::Write, u64::MAX, SECTOR_BYTES),
        (DiskOperation::Read, 0, 100),
        (DiskOperation::Read, 0, 0),
    ] {
        disk.request(request(1, operation, sector, vec![0; bytes])).unwrap();
        assert!(disk.has_finished());
        assert_eq!(next(&mut disk).result, Err(DiskError::OutOfRange), "{operation:?} at {sector}");
    }
    drop(disk);
    assert_eq!(file.metadata().unwrap().len(), before);
}

#[test]
fn excess_requests_are_returned_and_accepted_later() {
    let mut disk = disk_in(&file());
    for token in 0..REQUESTS_MAX as u64 {
        disk.request(request(token, DiskOperation::Read, token % SECTORS, vec![0; SECTOR_BYTES]))
            .unwrap();
    }
    let one_too_many = disk.request(request(999, DiskOperation::Flush, 0, vec![])).unwrap_err();
    assert_eq!(one_too_many.token, DiskToken(999));
    next(&mut disk);
    disk.request(one_too_many).unwrap();
    let mut tokens: Vec<u64> = (0..REQUESTS_MAX).map(|_| next(&mut disk).token.0).collect();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), REQUESTS_MAX, "each request completes once");
    assert!(disk.completed().is_none());
}

#[test]
fn a_read_only_file_fails_only_writes() {
    let place = tempfile::NamedTempFile::new().unwrap();
    place.as_file().set_len(SECTORS * SECTOR_BYTES as u64).unwrap();
    let mut disk = disk_in(&File::open(place.path()).unwrap());
    disk.request(request(1, DiskOperation::Write, 0, vec![1; SECTOR_BYTES])).unwrap();
    assert_eq!(next(&mut disk).result, Err(DiskError::Failed));
    disk.request(request(2, DiskOperation::Read, 0, vec![1; SECTOR_BYTES])).unwrap();
    assert_eq!(next(&mut disk).result, Ok(()));
}

#[test]
fn a_flush_fails_if_linux_reports_an_error() {
    // Linux can flush only files and block devices.
    let mut disk = disk_in(&File::open("/dev/null").unwrap());
    disk.request(request(1, DiskOperation::Flush, 0, vec![])).unwrap();
    assert_eq!(next(&mut disk).result, Err(DiskError::Failed));
}

#[test]
fn dropping_the_disk_performs_outstanding_requests_first() {
    let file = file();
    let mut disk = disk_in(&file);
    for sector in 0..100 {
        disk.request(request(
            sector,
            DiskOperation::Write,
            sector,
            vec![sector as u8 + 1; SECTOR_BYTES],
        ))
        .unwrap();
    }
    drop(disk);
    for sector in 0..100 {
        let mut bytes = [0; SECTOR_BYTES];
        file.read_exact_at(&mut bytes, sector * SECTOR_BYTES as u64).unwrap();
        assert_eq!(bytes, [sector as u8 + 1; SECTOR_BYTES]);
    }
}
