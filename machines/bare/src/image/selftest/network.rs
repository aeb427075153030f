//! Tests of the card, through `Machine` as the engine uses it. They send ARP questions to QEMU's
//! router at 10.0.2.2, and receive its answers.

use super::{Outcome, Test, ensure, wait_for};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bare::BareMachine;
use machine::{BLOCK_BYTES, Frame, Instant, Machine, Micros, OutgoingFrame, Piece};

pub(super) const TESTS: [Test; 3] = [
    ("the answer to a sent frame arrives and ends the sleep", answer_ends_the_sleep),
    ("a frame in pieces is sent whole", pieces_go_out_whole),
    ("the ring still works after a thousand frames", ring_serves_on),
];

const ROUTER: [u8; 4] = [10, 0, 2, 2];
const OURS: [u8; 4] = [10, 0, 2, 15];

/// The size of a question: Ethernet header and ARP packet.
pub(super) const QUESTION_BYTES: usize = 42;

/// An ARP request for the router's address (RFC 826).
pub(super) fn question(machine: &BareMachine) -> [u8; QUESTION_BYTES] {
    let address = machine.card().address.0;
    let mut frame = [0; QUESTION_BYTES];
    let parts: [&[u8]; 8] = [
        &[0xFF; 6],
        &address,
        &[8, 6],
        &[0, 1, 8, 0, 6, 4, 0, 1],
        &address,
        &OURS,
        &[0; 6],
        &ROUTER,
    ];
    frame.iter_mut().zip(parts.into_iter().flatten()).for_each(|(place, byte)| *place = *byte);
    frame
}

fn is_answer(frame: &Frame) -> bool {
    let bytes = frame.bytes();
    bytes.get(12..14) == Some(&[8, 6])
        && bytes.get(20..22) == Some(&[0, 2])
        && bytes.get(28..32) == Some(&ROUTER)
}

/// Sends a frame without offloads.
pub(super) fn send(machine: &mut BareMachine, head: &[u8], payload: &[Piece]) -> Outcome {
    let frame = OutgoingFrame { head, payload, checksum: None, segment_bytes: None };
    machine.transmit(&frame).map_err(|_| "the frame was not queued")
}

pub(super) fn wait_for_answer(machine: &mut BareMachine) -> Outcome {
    wait_for(machine, |machine| {
        let frame = machine.receive()?;
        let is_answer = is_answer(&frame);
        machine.give_back(frame);
        is_answer.then_some(())
    })
    .ok_or("no answer arrived")
}

fn answer_ends_the_sleep(machine: &mut BareMachine) -> Outcome {
    let mut best = Micros(u64::MAX);
    for _ in 0..20 {
        let start: Instant = machine.now();
        let head = question(machine);
        send(machine, &head, &[])?;
        wait_for_answer(machine)?;
        best = best.min(machine.now().since(start));
    }
    machine.print(format_args!("at best {} us from question to answer", best.0));
    ensure(best < Micros::from_millis(50), "no answer ended the sleep")
}

fn pieces_go_out_whole(machine: &mut BareMachine) -> Outcome {
    let whole = question(machine);
    let (head, packet) = whole.split_at(14);
    let mut block = [0; BLOCK_BYTES];
    block.iter_mut().skip(100).zip(packet).for_each(|(place, byte)| *place = *byte);
    let block = Arc::new(block);
    // The pieces are too long to be copied into the ring. The router ignores the bytes after the
    // ARP packet.
    let pieces = [(100..110), (110..128), (1000..1300), (2000..2600)]
        .map(|range| Piece::from_block(block.clone(), range));
    for _ in 0..200 {
        send(machine, head, &pieces)?;
        wait_for_answer(machine)?;
    }
    let held = Arc::strong_count(&block) - 1 - pieces.len();
    machine.receive();
    ensure(held <= pieces.len(), "pieces are held after they were sent")
}

fn ring_serves_on(machine: &mut BareMachine) -> Outcome {
    let head = question(machine);
    for _ in 0..50 {
        let sent: Vec<Outcome> = (0..20).map(|_| send(machine, &head, &[])).collect();
        sent.into_iter().collect::<Outcome>()?;
        for _ in 0..20 {
            wait_for_answer(machine)?;
        }
    }
    Ok(())
}
