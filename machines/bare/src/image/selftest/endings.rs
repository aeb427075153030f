//! Tests of the end of the machine's life after a broken invariant. Each ending breaks one
//! invariant. In the next life of the machine the test checks the report in the crash sector.
//!
//! Two sectors of the disk keep the state: one has the number of the current ending, the other is
//! the crash sector.

use super::disk::complete;
use super::{ensure, finish};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use bare::boot::OtherCore;
use bare::{BareMachine, crash, end};
use core::hint::black_box;
use machine::{DiskOperation, DiskRequest, DiskToken, Instant, Machine, SECTOR_BYTES, Sector};

const PROGRESS_SECTOR: u64 = 8;
const CRASH_SECTOR: u64 = 9;

/// The name of an ending, the function that breaks the invariant, and the text that the crash
/// sector must have.
type Ending = (&'static str, fn(&mut BareMachine, Vec<OtherCore>), &'static str);

const ENDINGS: [Ending; 9] = [
    ("a panic on another core", super::cores::break_another, "on purpose"),
    ("a panic in the midst of disk requests", panic_amid_requests, "on purpose"),
    ("a write into the image's text", write_text, "page fault 14 error 0x3"),
    ("a write into the image's constants", write_constants, "page fault 14 error 0x3"),
    ("a call into data", call_data, "page fault 14 error 0x11"),
    ("a null pointer", read_null, "page fault 14 error 0x0"),
    ("a stack without end", overflow_stack, "page fault 14 error 0x2"),
    ("an invalid instruction", run_nonsense, "invalid instruction 6"),
    ("more memory than there is", exhaust_memory, "memory allocation of"),
];

pub(super) fn run(machine: &mut BareMachine, others: Vec<OtherCore>) -> ! {
    let progress = read(machine, PROGRESS_SECTOR).first().map_or(0, |byte| usize::from(*byte));
    if let Some((name, _, expected)) =
        progress.checked_sub(1).and_then(|ending| ENDINGS.get(ending))
    {
        let sector = read(machine, CRASH_SECTOR);
        let report = crash::decode(&sector).unwrap_or("nothing");
        if ensure(report.contains(expected), "").is_err() {
            machine.print(format_args!("FAILED {name}: the crash sector says {report}"));
            write(machine, PROGRESS_SECTOR, 0);
            finish(machine, progress as u32 - 1, 1);
        }
        machine.print(format_args!("ok {name}"));
    }
    write(machine, CRASH_SECTOR, 0);
    let Some((name, break_it, _)) = ENDINGS.get(progress) else {
        write(machine, PROGRESS_SECTOR, 0);
        finish(machine, progress as u32, 0);
    };
    write(machine, PROGRESS_SECTOR, progress as u8 + 1);
    end::set_crash_sector(Sector(CRASH_SECTOR));
    break_it(machine, others);
    machine.print(format_args!("FAILED {name}: the machine lives on"));
    write(machine, PROGRESS_SECTOR, 0);
    finish(machine, progress as u32, 1)
}

fn read(machine: &mut BareMachine, sector: u64) -> Box<[u8]> {
    let buffer = vec![0; SECTOR_BYTES].into_boxed_slice();
    complete(machine, DiskOperation::Read, sector, buffer)
        .map_or(Box::default(), |done| done.buffer)
}

fn write(machine: &mut BareMachine, sector: u64, byte: u8) {
    let buffer = vec![byte; SECTOR_BYTES].into_boxed_slice();
    let is_written = complete(machine, DiskOperation::Write, sector, buffer)
        .is_ok_and(|done| done.result.is_ok());
    let is_flushed = complete(machine, DiskOperation::Flush, 0, Box::default())
        .is_ok_and(|done| done.result.is_ok());
    assert!(is_written && is_flushed, "the disk does not work");
}

fn panic_amid_requests(machine: &mut BareMachine, _: Vec<OtherCore>) {
    for token in 0..20 {
        let buffer = vec![0xEE; 64 << 10].into_boxed_slice();
        let sector = Sector(1000 + 128 * token);
        let request = DiskRequest {
            token: DiskToken(token),
            operation: DiskOperation::Write,
            sector,
            buffer,
        };
        assert!(machine.request(request).is_ok());
        if token == 15 {
            machine.ring_doorbells();
        }
    }
    assert!(black_box(false), "on purpose");
}

fn write_text(_: &mut BareMachine, _: Vec<OtherCore>) {
    let place = write_text as *const () as *mut u8;
    // SAFETY: none: this is to fault.
    unsafe { place.write_volatile(0) };
}

fn write_constants(_: &mut BareMachine, _: Vec<OtherCore>) {
    let place = black_box(ENDINGS.as_ptr()) as *mut u8;
    // SAFETY: none: this is to fault.
    unsafe { place.write_volatile(0) };
}

fn call_data(_: &mut BareMachine, _: Vec<OtherCore>) {
    let code: Box<[u8]> = Box::new([0xC3]);
    // SAFETY: none: this is to fault.
    let function: extern "C" fn() = unsafe { core::mem::transmute(black_box(code.as_ptr())) };
    function();
}

fn read_null(_: &mut BareMachine, _: Vec<OtherCore>) {
    // SAFETY: none: this is to fault.
    unsafe { core::arch::asm!("mov {0}, [{0}]", inout(reg) 0_u64 => _) };
}

fn overflow_stack(machine: &mut BareMachine, _: Vec<OtherCore>) {
    let ballast = black_box([0_u8; 1000]);
    if machine.now() > Instant::START {
        overflow_stack(machine, Vec::new());
    }
    black_box(ballast);
}

fn run_nonsense(_: &mut BareMachine, _: Vec<OtherCore>) {
    // SAFETY: none: this is to fault.
    unsafe { core::arch::asm!("ud2") };
}

fn exhaust_memory(machine: &mut BareMachine, _: Vec<OtherCore>) {
    let bytes = machine.memory().total + 1;
    black_box(vec![1_u8; bytes]);
}
