//! Tests of the disk's requests. The test acts as the device.

use super::*;
use crate::mmio::Mmio;
use crate::virtio::queue::tests::{Chain, FakeDevice};
use core::ptr::NonNull;
use machine::Sector;

const SECTORS: u64 = 1000;

fn requests(has_flush: bool) -> (Requests, FakeDevice<ENTRIES>) {
    let register = Box::leak(Box::new(0_u32));
    // SAFETY: the register is leaked, and only this doorbell uses it.
    let register = unsafe { Mmio::new(NonNull::from(register).cast(), 4) };
    let queue = Queue::new(Events::ByIndex);
    let device = FakeDevice::new(&queue);
    (Requests::new(queue, Doorbell::new(register, 0), SECTORS, has_flush), device)
}

fn request(token: u64, operation: DiskOperation, sector: u64, bytes: usize) -> DiskRequest {
    let buffer = vec![token as u8; bytes].into_boxed_slice();
    DiskRequest { token: DiskToken(token), operation, sector: Sector(sector), buffer }
}

/// Performs the request of a chain on `disk`.
fn serve(disk: &mut [u8], chain: &Chain, status: u8) {
    let (header, _, _) = chain.parts[0];
    // SAFETY: the device has the parts of the chain until it marks the chain as used. The first
    // part is a header, and the last is a status.
    unsafe {
        let kind = (header as *const u32).read();
        let place = (header as *const u64).add(1).read() as usize * SECTOR_BYTES;
        let (end, 1, WRITE) = chain.parts[chain.parts.len() - 1] else {
            panic!("no place for the status")
        };
        match (kind, &chain.parts[1..chain.parts.len() - 1]) {
            (KIND_READ, [(address, bytes, flags)]) => {
                assert_eq!(*flags, WRITE | NEXT);
                let bytes = *bytes as usize;
                (*address as *mut u8)
                    .copy_from_nonoverlapping(disk[place..place + bytes].as_ptr(), bytes);
            }
            (KIND_WRITE, [(address, bytes, flags)]) => {
                assert_eq!(*flags, NEXT);
                let source = core::slice::from_raw_parts(*address as *const u8, *bytes as usize);
                disk[place..place + source.len()].copy_from_slice(source);
            }
            (KIND_FLUSH, []) => {}
            other => panic!("{other:?}"),
        }
        (end as *mut u8).write(status);
    }
}

fn serve_all(requests: &mut Requests, device: &mut FakeDevice<ENTRIES>, disk: &mut [u8]) {
    requests.ring_doorbell();
    while let Some(chain) = device.next() {
        serve(disk, &chain, STATUS_OK);
        device.finish(chain.head, 1);
    }
}

#[test]
fn written_data_is_read_back_with_its_buffer_and_token() {
    let (mut requests, mut device) = requests(true);
    let mut disk = vec![0; SECTORS as usize * SECTOR_BYTES];
    requests.request(request(0xAB, DiskOperation::Write, 7, 1024)).unwrap();
    requests.request(request(1, DiskOperation::Flush, 0, 0)).unwrap();
    requests.request(request(2, DiskOperation::Read, 8, 512)).unwrap();
    assert!(requests.completed().is_none());
    serve_all(&mut requests, &mut device, &mut disk);
    let done: Vec<_> = core::iter::from_fn(|| requests.completed()).collect();
    assert_eq!(
        done.iter().map(|c| (c.token.0, c.result)).collect::<Vec<_>>(),
        [(0xAB, Ok(())), (1, Ok(())), (2, Ok(()))]
    );
    assert_eq!(done[0].buffer.len(), 1024);
    assert_eq!(done[1].buffer.len(), 0);
    assert_eq!(*done[2].buffer, [0xAB; 512]);
}

#[test]
fn request_beyond_the_last_slot_is_handed_back() {
    let (mut requests, mut device) = requests(true);
    let mut disk = vec![0; SECTORS as usize * SECTOR_BYTES];
    for round in 0..20 {
        for slot in 0..SLOTS as u64 {
            requests.request(request(slot, DiskOperation::Write, slot, 512)).unwrap();
        }
        let refused = requests.request(request(99, DiskOperation::Write, 0, 512)).unwrap_err();
        assert_eq!((refused.token, refused.buffer.len()), (DiskToken(99), 512));
        serve_all(&mut requests, &mut device, &mut disk);
        assert_eq!(core::iter::from_fn(|| requests.completed()).count(), SLOTS, "round {round}");
        assert!(requests.is_idle());
    }
}

#[test]
fn completions_keep_the_order_of_the_device() {
    let (mut requests, mut device) = requests(true);
    for token in 0..3 {
        requests.request(request(token, DiskOperation::Write, token, 512)).unwrap();
    }
    requests.ring_doorbell();
    let chains: Vec<_> = core::iter::from_fn(|| device.next()).collect();
    let mut disk = vec![0; SECTORS as usize * SECTOR_BYTES];
    for (place, status) in [(2, STATUS_OK), (0, 1), (1, 2)] {
        serve(&mut disk, &chains[place], status);
        device.finish(chains[place].head, 1);
    }
    let done: Vec<_> =
        core::iter::from_fn(|| requests.completed()).map(|c| (c.token.0, c.result)).collect();
    assert_eq!(done, [(2, Ok(())), (0, Err(DiskError::Failed)), (1, Err(DiskError::Failed))]);
}

#[test]
fn request_beyond_the_disk_never_reaches_the_device() {
    let (mut requests, mut device) = requests(true);
    let outside = [(SECTORS, 512), (SECTORS - 1, 1024), (0, 0), (0, 100), (u64::MAX, 512)];
    for (sector, bytes) in outside {
        requests.request(request(5, DiskOperation::Write, sector, bytes)).unwrap();
        let completion = requests.completed().unwrap();
        assert_eq!(
            (completion.result, completion.buffer.len()),
            (Err(DiskError::OutOfRange), bytes)
        );
    }
    requests.ring_doorbell();
    assert!(device.next().is_none());
    requests.request(request(5, DiskOperation::Read, SECTORS - 1, 512)).unwrap();
    requests.ring_doorbell();
    assert!(device.next().is_some());
}

#[test]
fn device_without_flush_gets_no_flush_request() {
    let (mut requests, mut device) = requests(false);
    requests.request(request(1, DiskOperation::Flush, 0, 0)).unwrap();
    requests.ring_doorbell();
    assert!(device.next().is_none());
    assert!(!requests.may_sleep());
    assert_eq!(requests.completed().unwrap().result, Ok(()));
}

#[test]
fn misbehaving_device_is_dropped_and_requests_complete_once() {
    for lie in [1, 3 * (SLOTS as u16 - 1), 126] {
        let (mut requests, mut device) = requests(true);
        (0..3).for_each(|token| {
            requests.request(request(token, DiskOperation::Write, 0, 512)).unwrap()
        });
        requests.ring_doorbell();
        device.finish(lie, 1);
        assert!(requests.completed().is_none() && requests.is_broken);
        requests.give_up(true);
        let done: Vec<_> = core::iter::from_fn(|| requests.completed()).collect();
        assert!(done.iter().all(|c| c.result == Err(DiskError::Gone) && c.buffer.len() == 512));
        assert!((2..=3).contains(&done.len()));
        requests.request(request(7, DiskOperation::Read, 0, 512)).unwrap();
        assert_eq!(requests.completed().unwrap().result, Err(DiskError::Gone));
    }
}

/// Requests `operations` and sleeps. Returns, for each completion, whether the device ends the
/// sleep after it.
fn sleep_ends_after(operations: &[DiskOperation]) -> Vec<bool> {
    let (mut requests, mut device) = requests(true);
    for (token, operation) in operations.iter().enumerate() {
        let bytes = if *operation == DiskOperation::Flush { 0 } else { 512 };
        requests.request(request(token as u64, *operation, 0, bytes)).unwrap();
    }
    requests.ring_doorbell();
    assert!(requests.may_sleep());
    let ends = operations.iter().map(|_| {
        let head = device.next().unwrap().head;
        device.finish(head, 1)
    });
    ends.collect()
}

#[test]
fn wakeup_on_last_write_or_first_read_or_flush() {
    use DiskOperation::{Flush, Read, Write};
    assert_eq!(sleep_ends_after(&[Write]), [true]);
    assert_eq!(sleep_ends_after(&[Write, Write, Write]), [false, false, true]);
    assert_eq!(sleep_ends_after(&[Write, Read, Write]), [true, false, false]);
    assert_eq!(sleep_ends_after(&[Write, Flush]), [true, false]);
}
