//! Tests of the disk, through `Machine` as the engine uses it.

use super::{Outcome, Test, ensure, wait_for};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use bare::BareMachine;
use machine::{
    DiskCompletion, DiskError, DiskOperation, DiskRequest, DiskToken, Machine, SECTOR_BYTES, Sector,
};

pub(super) const TESTS: [Test; 3] = [
    ("the disk keeps what was written and flushed", disk_keeps),
    ("many disk requests in flight complete once each", many_in_flight),
    ("a disk request outside of the disk is an error", outside_is_an_error),
];

/// Makes one request, and sleeps until it completes.
pub(super) fn complete(
    machine: &mut BareMachine,
    operation: DiskOperation,
    sector: u64,
    buffer: Box<[u8]>,
) -> Result<DiskCompletion, &'static str> {
    let request =
        DiskRequest { token: DiskToken(sector), operation, sector: Sector(sector), buffer };
    machine.request(request).map_err(|_| "the queue is full")?;
    wait_for(machine, |machine| machine.completed()).ok_or("the request never completed")
}

fn pattern(seed: u64, bytes: usize) -> Box<[u8]> {
    (0..bytes as u64)
        .map(|i| (seed.wrapping_mul(2_654_435_761).wrapping_add(i * i) >> 3) as u8)
        .collect()
}

fn disk_keeps(machine: &mut BareMachine) -> Outcome {
    ensure(machine.disk().durable, "the disk is not durable")?;
    for (sector, bytes) in [(64, 512), (100, 4096), (1000, 1 << 20)] {
        let written = complete(machine, DiskOperation::Write, sector, pattern(sector, bytes))?;
        ensure(
            written.result.is_ok() && written.buffer == pattern(sector, bytes),
            "the write failed",
        )?;
        let flushed = complete(machine, DiskOperation::Flush, 0, Box::default())?;
        ensure(
            flushed.result.is_ok() && flushed.operation == DiskOperation::Flush,
            "the flush failed",
        )?;
        let read =
            complete(machine, DiskOperation::Read, sector, vec![0; bytes].into_boxed_slice())?;
        ensure(
            read.result.is_ok() && read.buffer == pattern(sector, bytes),
            "other bytes are read",
        )?;
    }
    Ok(())
}

fn many_in_flight(machine: &mut BareMachine) -> Outcome {
    const EACH: usize = 2 * SECTOR_BYTES;
    for operation in [DiskOperation::Write, DiskOperation::Read] {
        let mut queued = Vec::new();
        for token in 0..1000 {
            let buffer = if operation == DiskOperation::Write {
                pattern(token, EACH)
            } else {
                vec![0; EACH].into()
            };
            let request = DiskRequest {
                token: DiskToken(token),
                operation,
                sector: Sector(3000 + 2 * token),
                buffer,
            };
            if machine.request(request).is_err() {
                break;
            }
            queued.push(token);
        }
        ensure(queued.len() >= 16, "the queue takes fewer than 16 requests")?;
        while !queued.is_empty() {
            let done = wait_for(machine, |machine| machine.completed())
                .ok_or("a request never completed")?;
            let place = queued
                .iter()
                .position(|&token| token == done.token.0)
                .ok_or("a request completed twice")?;
            queued.swap_remove(place);
            ensure(
                done.result.is_ok() && done.buffer == pattern(done.token.0, EACH),
                "other bytes are read",
            )?;
        }
    }
    ensure(machine.completed().is_none(), "a request completed that was never made")
}

fn outside_is_an_error(machine: &mut BareMachine) -> Outcome {
    let end = machine.disk().sectors;
    for (sector, bytes) in [(end, 512), (end - 1, 1024), (0, 100)] {
        let done =
            complete(machine, DiskOperation::Read, sector, vec![0; bytes].into_boxed_slice())?;
        ensure(done.result == Err(DiskError::OutOfRange), "the request was not refused")?;
    }
    Ok(())
}
