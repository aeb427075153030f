//! Tests of the transmit queue. The test acts as the card.

use super::*;
use crate::mmio::Mmio;
use crate::virtio::queue::tests::FakeDevice;
use alloc::sync::Arc;
use core::num::NonZeroU16;
use machine::{BLOCK_BYTES, Block, ChecksumOffload};

fn transmitter(offloads: Offloads) -> (Transmitter, FakeDevice<ENTRIES>) {
    let register = Box::leak(Box::new(0_u32));
    // SAFETY: the register is leaked, and only this doorbell uses it.
    let register = unsafe { Mmio::new(NonNull::from(register).cast(), 4) };
    let transmitter =
        Transmitter::new(Events::ByIndex, offloads, |_, _| Ok(Doorbell::new(register, 1))).unwrap();
    let device = FakeDevice::new(&transmitter.queue);
    (transmitter, device)
}

const ALL: Offloads = Offloads { checksum: true, segmentation_ipv4: true, segmentation_ipv6: true };
const NONE: Offloads =
    Offloads { checksum: false, segmentation_ipv4: false, segmentation_ipv6: false };

fn plain<'a>(head: &'a [u8], payload: &'a [Piece]) -> OutgoingFrame<'a> {
    OutgoingFrame { head, payload, checksum: None, segment_bytes: None }
}

/// The next frame that the card sends: the virtio header, the frame, and the number of descriptors.
fn sent(device: &mut FakeDevice<ENTRIES>) -> Option<(Vec<u8>, Vec<u8>, usize)> {
    let chain = device.next()?;
    let mut bytes = Vec::new();
    for &(address, length, _) in &chain.parts {
        // SAFETY: the card may read the parts of the chain until it marks the chain as used.
        bytes.extend_from_slice(unsafe {
            core::slice::from_raw_parts(address as *const u8, length as usize)
        });
    }
    let frame = bytes.split_off(HEADER_BYTES);
    device.finish(chain.head, 0);
    Some((bytes, frame, chain.parts.len()))
}

fn block(fill: u8) -> Arc<Block> {
    Arc::new([fill; BLOCK_BYTES])
}

#[test]
fn head_and_pieces_are_sent_in_order() {
    let (mut transmitter, mut device) = transmitter(NONE);
    let pieces = [
        Piece::from_block(block(1), 0..1000),
        Piece::from_static(b""),
        Piece::from_static(b"tail"),
        Piece::from_block(block(2), 5..9),
    ];
    transmitter.transmit(&plain(b"head", &pieces)).unwrap();
    assert!(sent(&mut device).is_none(), "a frame was seen before the doorbell");
    transmitter.ring_doorbell();
    let (header, frame, parts) = sent(&mut device).unwrap();
    assert_eq!(header, [0; HEADER_BYTES]);
    assert_eq!(parts, 4, "an empty piece takes no descriptor");
    assert_eq!(frame, [&b"head"[..], &[1; 1000], b"tail", &[2; 4]].concat());
}

#[test]
fn small_payload_is_copied_into_the_head_descriptor() {
    let (mut transmitter, mut device) = transmitter(NONE);
    let shared = block(7);
    let pieces = [Piece::from_block(shared.clone(), 0..COPY_BYTES_MAX as u32)];
    transmitter.transmit(&plain(&[3; HEAD_BYTES_MAX], &pieces)).unwrap();
    drop(pieces);
    assert_eq!(Arc::strong_count(&shared), 1);
    transmitter.ring_doorbell();
    let (_, frame, parts) = sent(&mut device).unwrap();
    assert_eq!((frame, parts), ([&[3; HEAD_BYTES_MAX][..], &[7; COPY_BYTES_MAX]].concat(), 1));
}

#[test]
fn pieces_are_held_until_the_card_has_sent_them() {
    let (mut transmitter, mut device) = transmitter(NONE);
    let shared = block(7);
    transmitter.transmit(&plain(b"head", &[Piece::from_block(shared.clone(), 0..4096)])).unwrap();
    transmitter.ring_doorbell();
    transmitter.reap();
    assert_eq!(Arc::strong_count(&shared), 2);
    sent(&mut device).unwrap();
    transmitter.reap();
    assert_eq!(Arc::strong_count(&shared), 1);
}

#[test]
fn full_ring_takes_frames_again_after_some_were_sent() {
    let (mut transmitter, mut device) = transmitter(NONE);
    let pieces = vec![Piece::from_block(block(9), 0..1000); PIECES_MAX];
    let frame = plain(b"head", &pieces);
    for _ in 0..50 {
        let mut queued = 0;
        while transmitter.transmit(&frame).is_ok() {
            queued += 1;
        }
        assert_eq!(queued, ENTRIES / (1 + PIECES_MAX));
        assert_eq!(transmitter.transmit(&frame), Err(TransmitError::Full));
        assert!(transmitter.may_sleep(), "the machine may sleep until the card has sent a frame");
        transmitter.ring_doorbell();
        for _ in 0..queued {
            assert_eq!(sent(&mut device).unwrap().1.len(), 4 + 1000 * PIECES_MAX);
        }
    }
}

#[test]
fn sleeper_on_a_full_ring_wakes_when_half_was_sent() {
    let (mut transmitter, mut device) = transmitter(NONE);
    while transmitter.transmit(&plain(b"head", &[])).is_ok() {}
    transmitter.ring_doorbell();
    assert!(transmitter.may_sleep());
    let chains: Vec<_> = core::iter::from_fn(|| device.next()).collect();
    assert_eq!(chains.len(), ENTRIES);
    let wakes: Vec<usize> = (1..)
        .zip(chains)
        .filter(|(_, chain)| device.finish(chain.head, 0))
        .map(|(sent, _)| sent)
        .collect();
    assert_eq!(wakes, [ENTRIES / 2]);
    assert!(transmitter.transmit(&plain(b"head", &[])).is_ok());
}

#[test]
fn chains_used_out_of_order_never_mix() {
    let (mut transmitter, mut device) = transmitter(NONE);
    let pieces = [Piece::from_block(block(1), 0..600), Piece::from_block(block(2), 0..600)];
    for round in 0..1000_u32 {
        let head = round.to_le_bytes();
        let count = round as usize % 3;
        for _ in 0..5 {
            transmitter.transmit(&plain(&head, &pieces[..count])).unwrap();
        }
        transmitter.ring_doorbell();
        let mut chains: Vec<_> = core::iter::from_fn(|| device.next()).collect();
        assert!(chains.len() == 5 && chains.iter().all(|chain| chain.parts.len() == 1 + count));
        chains.rotate_left(round as usize % 5);
        for chain in &chains {
            device.finish(chain.head, 0);
        }
        transmitter.reap();
        assert_eq!(transmitter.free as usize, ENTRIES);
    }
}

#[test]
fn card_is_told_checksum_offset_and_segment_size() {
    let (mut transmitter, mut device) = transmitter(ALL);
    let payload = [Piece::from_block(block(1), 0..4096)];
    let frame = OutgoingFrame {
        head: &[0; 54],
        payload: &payload,
        checksum: Some(ChecksumOffload { start: 34, offset: 16 }),
        segment_bytes: NonZeroU16::new(1460),
    };
    transmitter.transmit(&frame).unwrap();
    transmitter.transmit(&OutgoingFrame { segment_bytes: None, ..frame }).unwrap();
    transmitter.ring_doorbell();
    assert_eq!(sent(&mut device).unwrap().0, [1, 1, 54, 0, 0xB4, 0x05, 34, 0, 16, 0, 0, 0]);
    assert_eq!(sent(&mut device).unwrap().0, [1, 0, 0, 0, 0, 0, 34, 0, 16, 0, 0, 0]);

    let mut head = [0; 74];
    head[12..14].copy_from_slice(&[0x86, 0xdd]);
    let frame = OutgoingFrame {
        head: &head,
        checksum: Some(ChecksumOffload { start: 54, offset: 16 }),
        ..frame
    };
    transmitter.transmit(&frame).unwrap();
    transmitter.ring_doorbell();
    assert_eq!(sent(&mut device).unwrap().0, [1, 4, 74, 0, 0xB4, 0x05, 54, 0, 16, 0, 0, 0]);
}

#[test]
fn frame_over_a_limit_is_never_queued() {
    let (mut transmitter, mut device) = transmitter(NONE);
    let piece = Piece::from_block(block(1), 0..4096);
    let too_many = vec![piece.clone(); PIECES_MAX + 1];
    let too_long = vec![piece.clone(); PIECES_MAX];
    let one = [piece];
    let checksum = Some(ChecksumOffload { start: 34, offset: 16 });
    let malformed = [
        plain(b"head", &too_many),
        plain(b"head", &too_long),
        plain(&[0; HEAD_BYTES_MAX + 1], &one),
        plain(&[0; SLOT_BYTES], &[]),
        OutgoingFrame { checksum, ..plain(b"head", &one) },
        OutgoingFrame { segment_bytes: NonZeroU16::new(1460), ..plain(b"head", &one) },
    ];
    for frame in &malformed {
        assert_eq!(transmitter.transmit(frame), Err(TransmitError::Malformed));
    }
    transmitter.ring_doorbell();
    assert!(sent(&mut device).is_none());
}

#[test]
fn misbehaving_card_frees_no_descriptor_twice() {
    let (mut transmitter, mut device) = transmitter(NONE);
    transmitter.transmit(&plain(b"head", &[])).unwrap();
    transmitter.ring_doorbell();
    let head = device.next().unwrap().head;
    for lie in [head, head, head, 77] {
        device.finish(lie, 0);
    }
    transmitter.reap();
    assert_eq!(transmitter.free as usize, ENTRIES);
}
