//! The self-test image: it tests the machine that it runs on. Its tests need a real boot, real
//! devices or a real end, which a host test does not have.
//!
//! The file `opt/barepost/selftest` from QEMU selects the mode:
//! - `machine`, or no file: runs all tests of a running machine, and prints one line for each;
//! - `cores`: tests the interaction of the cores;
//! - `endings`: breaks one invariant after another, and after each reset checks the report in the
//!   crash sector;
//! - `idle`: sleeps for ten seconds, so that the host can measure the cost of an idle machine;
//! - `nothing`: ends at once, so that the host can subtract the cost of the boot;
//! - `key`: sleeps until a key press asks the machine to stop.
//!
//! QEMU's network must have a router at 10.0.2.2, as in the user-mode network. The contents of the
//! disk are overwritten.

mod cores;
mod costs;
mod disk;
mod endings;
mod memory;
mod network;
mod time;
mod tls;

use alloc::vec::Vec;
use bare::{BareMachine, boot, end, fw_cfg};
use machine::{Instant, Machine, Micros};

/// The result of a test: success, or a text about the failed check.
type Outcome = Result<(), &'static str>;

/// The promise that a test checks, and the test.
type Test = (&'static str, fn(&mut BareMachine) -> Outcome);

/// The longest time for which a test waits for a device before it fails: the host may be busy.
const PATIENCE: Micros = Micros::from_secs(10);

/// Runs the selected mode, and ends the machine's life.
pub(super) fn run(machine: boot::Machine) -> ! {
    let boot::Machine { first: mut machine, others } = machine;
    let mode = fw_cfg::file("opt/barepost/selftest").unwrap_or_else(|| Vec::from(b"machine"));
    match mode.as_slice() {
        b"cores" => cores::run(machine, others),
        b"endings" => endings::run(&mut machine, others),
        b"idle" => idle(&mut machine, Micros::from_secs(10)),
        b"key" => wait_for_key(&mut machine),
        b"nothing" => idle(&mut machine, Micros(0)),
        _ => run_all(&mut machine),
    }
}

fn run_all(machine: &mut BareMachine) -> ! {
    let (mut passed, mut failed) = (0, 0);
    let tests = [
        &memory::TESTS[..],
        &time::TESTS,
        &disk::TESTS,
        &network::TESTS,
        &costs::TESTS,
        &tls::TESTS,
    ];
    for (name, test) in tests.into_iter().flatten() {
        machine.now();
        match test(machine) {
            Ok(()) => {
                passed += 1;
                machine.print(format_args!("ok {name}"));
            }
            Err(reason) => {
                failed += 1;
                machine.print(format_args!("FAILED {name}: {reason}"));
            }
        }
    }
    finish(machine, passed, failed)
}

fn finish(machine: &mut BareMachine, passed: u32, failed: u32) -> ! {
    machine.print(format_args!("{passed} passed, {failed} failed"));
    end::stop(if failed == 0 { end::Status::Stopped } else { end::Status::TestFailed })
}

fn idle(machine: &mut BareMachine, span: Micros) -> ! {
    let end = machine.now() + span;
    let mut sleeps = 0;
    while machine.now() < end {
        let until = machine.now() + Micros::from_millis(250);
        machine.idle(until.min(end));
        sleeps += 1;
    }
    machine.print(format_args!("slept {sleeps} times"));
    end::stop(end::Status::Stopped)
}

fn wait_for_key(machine: &mut BareMachine) -> ! {
    machine.print(format_args!("press q"));
    let end = machine.now() + PATIENCE;
    while machine.now() < end && !machine.stop_requested() {
        machine.idle(end);
    }
    let is_stop_requested = machine.now() < end;
    finish(machine, u32::from(is_stop_requested), u32::from(!is_stop_requested))
}

fn ensure(holds: bool, otherwise: &'static str) -> Outcome {
    if holds { Ok(()) } else { Err(otherwise) }
}

/// Calls `look` and sleeps, again and again, until `look` returns a value or [`PATIENCE`] has
/// passed.
fn wait_for<T>(
    machine: &mut BareMachine,
    mut look: impl FnMut(&mut BareMachine) -> Option<T>,
) -> Option<T> {
    let end: Instant = machine.now() + PATIENCE;
    loop {
        machine.ring_doorbells();
        if let Some(found) = look(machine) {
            return Some(found);
        }
        if machine.now() >= end {
            return None;
        }
        machine.idle(end);
    }
}
