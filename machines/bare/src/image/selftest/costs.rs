//! Measures the cost of the drivers, in ticks of the time-stamp counter. Under QEMU's `-icount
//! shift=0` a tick is one instruction. In this mode the test also compares the costs with the
//! promised limit.

use super::network::{QUESTION_BYTES, question, send};
use super::{Outcome, Test, ensure, wait_for};
use alloc::vec::Vec;
use bare::BareMachine;
use machine::{Block, DiskOperation, DiskRequest, DiskToken, Machine, Micros, Piece, Sector};

pub(super) const TESTS: [Test; 3] = [
    ("sending a frame costs at most the promised limit", sending_is_cheap),
    ("receiving a frame costs at most the promised limit", receiving_is_cheap),
    ("a disk request costs at most the promised limit", disk_is_cheap),
];

/// The maximum number of instructions for one frame or one request.
const PROMISED: u64 = 400;

/// The number of operations at a time, which every ring can hold.
const BATCH: u64 = 32;

pub(super) fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Whether a tick is an instruction. If so, a loop takes as many ticks as it runs instructions.
fn counts_instructions() -> bool {
    let start = ticks();
    for _ in 0..10_000 {
        // SAFETY: the instruction has no effect.
        unsafe { core::arch::asm!("nop", options(nomem, nostack, preserves_flags)) };
    }
    (10_000..60_000).contains(&(ticks() - start)) && {
        let start = ticks();
        // SAFETY: the port has no function. The read is slow everywhere, but is one instruction.
        (0..100).for_each(|_| unsafe {
            core::arch::asm!("in al, 0x80", out("al") _, options(nomem, nostack))
        });
        ticks() - start < 2_000
    }
}

fn judge(machine: &mut BareMachine, what: &str, ticks: u64, count: u64) -> Outcome {
    let each = ticks / count.max(1);
    machine.print(format_args!("{each} ticks for one {what}"));
    ensure(each <= PROMISED || !counts_instructions(), "the cost is above the promised limit")
}

fn sending_is_cheap(machine: &mut BareMachine) -> Outcome {
    let head = question(machine);
    let block = alloc::sync::Arc::new([0; size_of::<Block>()]);
    let payload = [Piece::from_block(block, 0..1000)];
    let cases: [(&str, &[Piece]); 2] =
        [("short frame sent", &[]), ("frame of head and piece sent", &payload)];
    for (what, payload) in cases {
        drain(machine);
        let start = ticks();
        for _ in 0..BATCH {
            send(machine, &head, payload)?;
        }
        machine.ring_doorbells();
        let mut spent = ticks() - start;
        // When the answers have arrived, the card has sent all frames. The next call releases the
        // sent frames, and its cost counts too.
        let pause = machine_time(machine, 100);
        machine.idle(pause);
        let start = ticks();
        let frame = machine.receive();
        spent += ticks() - start;
        frame.into_iter().for_each(|frame| machine.give_back(frame));
        drain(machine);
        judge(machine, what, spent, BATCH)?;
    }
    Ok(())
}

fn receiving_is_cheap(machine: &mut BareMachine) -> Outcome {
    let head: [u8; QUESTION_BYTES] = question(machine);
    drain(machine);
    for _ in 0..BATCH {
        send(machine, &head, &[])?;
    }
    machine.ring_doorbells();
    let pause = machine_time(machine, 300);
    while machine.now() < pause {}
    let first = machine.receive().ok_or("no answer arrived")?;
    machine.give_back(first);
    let start = ticks();
    let mut count = 0;
    while let Some(frame) = machine.receive() {
        count += u64::from(!frame.bytes().is_empty());
        machine.give_back(frame);
    }
    machine.ring_doorbells();
    let spent = ticks() - start;
    ensure(count > BATCH / 2, "most answers are missing")?;
    judge(machine, "frame received", spent, count)
}

fn disk_is_cheap(machine: &mut BareMachine) -> Outcome {
    let requests: Vec<DiskRequest> = (0..BATCH)
        .map(|token| DiskRequest {
            token: DiskToken(token),
            operation: DiskOperation::Write,
            sector: Sector(200 + 8 * token),
            buffer: alloc::vec![0; 4096].into_boxed_slice(),
        })
        .collect();
    let mut done = Vec::with_capacity(requests.len());
    let start = ticks();
    for request in requests {
        machine.request(request).map_err(|_| "the queue is full")?;
    }
    machine.ring_doorbells();
    let mut spent = ticks() - start;
    while done.len() < BATCH as usize {
        let start = ticks();
        while let Some(completion) = machine.completed() {
            done.push(completion);
        }
        spent += ticks() - start;
        if done.len() < BATCH as usize {
            let completion = wait_for(machine, |machine| machine.completed())
                .ok_or("a request never completed")?;
            done.push(completion);
        }
    }
    judge(machine, "disk request", spent, BATCH)
}

fn machine_time(machine: &mut BareMachine, millis: u64) -> machine::Instant {
    machine.now() + Micros::from_millis(millis)
}

fn drain(machine: &mut BareMachine) {
    let pause = machine_time(machine, 20);
    while machine.now() < pause {
        while let Some(frame) = machine.receive() {
            machine.give_back(frame);
        }
        machine.ring_doorbells();
    }
}
