//! Tests of frames through a pair of sockets. The test acts as Linux at the other end.

use super::*;
use machine::{BLOCK_BYTES, Block, ChecksumOffload};
use std::num::NonZeroU16;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

const CARD: Card = Card {
    address: Ethernet([2, 0, 0, 0, 0, 1]),
    mtu: 1500,
    offloads: Offloads { checksum: true, segmentation_ipv4: true, segmentation_ipv6: true },
    queues: 1,
};

fn connected() -> (Tap, UnixDatagram) {
    let (ours, linux) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (Tap::over(ours.into(), CARD, BUFFERS), linux)
}

fn received(linux: &UnixDatagram) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 17];
    let count = linux.recv(&mut bytes).unwrap();
    bytes.truncate(count);
    bytes
}

const PLAIN: OutgoingFrame<'_> =
    OutgoingFrame { head: &[7; 60], payload: &[], checksum: None, segment_bytes: None };

#[test]
fn frames_of_any_length_arrive_without_the_virtio_header() {
    let (mut tap, linux) = connected();
    for bytes in [60, 1514, FRAME_BYTES_MAX] {
        linux.send(&[vec![0; HEADER_BYTES], vec![9; bytes]].concat()).unwrap();
        let frame = tap.receive().unwrap();
        assert_eq!(frame.bytes(), vec![9; bytes]);
        assert_eq!(frame.checksum(), Checksum::Unknown);
        tap.give_back(frame);
    }
    assert!(tap.receive().is_none());
    assert!(!tap.is_gone());
}

#[test]
fn a_checksum_that_linux_has_checked_is_verified() {
    let (mut tap, linux) = connected();
    for (flags, expected) in [
        (FLAG_NEEDS_CHECKSUM, Checksum::Verified),
        (FLAG_CHECKSUM_VALID, Checksum::Verified),
        (0, Checksum::Unknown),
    ] {
        let mut bytes = vec![0; HEADER_BYTES + 60];
        bytes[0] = flags;
        linux.send(&bytes).unwrap();
        let frame = tap.receive().unwrap();
        assert_eq!(frame.checksum(), expected);
        tap.give_back(frame);
    }
}

#[test]
fn frames_wait_in_linux_while_the_engine_has_all_buffers() {
    let (mut tap, linux) = connected();
    for number in 0..=BUFFERS as u8 {
        linux.send(&[number; HEADER_BYTES + 60]).unwrap();
    }
    let mut frames: Vec<Frame> = std::iter::from_fn(|| tap.receive()).collect();
    assert_eq!(frames.len(), BUFFERS);
    tap.give_back(frames.remove(0));
    assert_eq!(tap.receive().unwrap().bytes(), [BUFFERS as u8; 60]);
}

#[test]
fn a_frame_is_sent_after_an_empty_virtio_header() {
    let (mut tap, linux) = connected();
    let block: Arc<Block> = Arc::new([5; BLOCK_BYTES]);
    let pieces = [Piece::from_block(block, 0..900), Piece::from_static(b"end")];
    tap.transmit(&OutgoingFrame {
        head: &[1; 54],
        payload: &pieces,
        checksum: None,
        segment_bytes: None,
    })
    .unwrap();
    assert_eq!(received(&linux), [&[0; HEADER_BYTES][..], &[1; 54], &[5; 900], b"end"].concat());
}

#[test]
fn a_long_frame_requests_checksum_and_segmentation() {
    let (mut tap, linux) = connected();
    let block: Arc<Block> = Arc::new([5; BLOCK_BYTES]);
    let pieces: Vec<Piece> =
        (0..7).map(|_| Piece::from_block(Arc::clone(&block), 0..BLOCK_BYTES as u32)).collect();
    let checksum = Some(ChecksumOffload { start: 34, offset: 16 });
    let frame = OutgoingFrame {
        head: &[1; 66],
        payload: &pieces,
        checksum,
        segment_bytes: NonZeroU16::new(1448),
    };
    tap.transmit(&frame).unwrap();
    let bytes = received(&linux);
    assert_eq!(bytes.len(), HEADER_BYTES + 66 + 7 * BLOCK_BYTES);
    // struct virtio_net_hdr: flags, kind, then header length, segment size, and start and offset of
    // the checksum.
    assert_eq!(bytes[..2], [1, 1]);
    let words: Vec<u16> =
        bytes[2..10].chunks(2).map(|word| u16::from_ne_bytes([word[0], word[1]])).collect();
    assert_eq!(words, [66, 1448, 34, 16]);

    let mut head = [1; 74];
    head[12..14].copy_from_slice(&[0x86, 0xdd]);
    tap.transmit(&OutgoingFrame { head: &head, ..frame }).unwrap();
    assert_eq!(received(&linux)[..2], [1, 4], "the kind of segmentation is for IPv6");
}

#[test]
fn a_frame_beyond_a_limit_is_never_sent() {
    let (mut tap, linux) = connected();
    linux.set_nonblocking(true).unwrap();
    let piece = Piece::from_static(b"x");
    let too_many = vec![piece.clone(); PIECES_MAX + 1];
    let long: Arc<Block> = Arc::new([0; BLOCK_BYTES]);
    let too_long: Vec<Piece> =
        (0..9).map(|_| Piece::from_block(Arc::clone(&long), 0..BLOCK_BYTES as u32)).collect();
    for wrong in [
        OutgoingFrame { payload: &too_many, ..PLAIN },
        OutgoingFrame { payload: &too_long, ..PLAIN },
        OutgoingFrame {
            head: &[0; HEAD_BYTES_MAX + 1],
            payload: std::slice::from_ref(&piece),
            ..PLAIN
        },
        OutgoingFrame { segment_bytes: NonZeroU16::new(1460), ..PLAIN },
    ] {
        assert_eq!(tap.transmit(&wrong), Err(TransmitError::Malformed));
    }
    assert!(linux.recv(&mut [0; 10]).is_err());
}

#[test]
fn a_full_interface_takes_a_frame_once_it_has_space() {
    let (mut tap, linux) = connected();
    let mut sent = 0;
    while tap.transmit(&PLAIN).is_ok() {
        sent += 1;
        assert!(sent < 100_000);
    }
    assert_eq!(tap.transmit(&PLAIN), Err(TransmitError::Full));
    assert!(tap.awaited().contains(PollFlags::OUT), "space ends a sleep");
    received(&linux);
    tap.transmit(&PLAIN).unwrap();
    assert_eq!(tap.awaited(), PollFlags::IN);
    assert!(!tap.is_gone());
}

#[test]
fn a_removed_interface_is_gone() {
    let (mut tap, linux) = connected();
    drop(linux);
    tap.transmit(&PLAIN).unwrap();
    assert!(tap.is_gone());
    assert!(tap.receive().is_none());
}

#[test]
fn our_address_differs_from_the_interfaces_and_is_stable() {
    let theirs = Ethernet([0x3a, 0x17, 1, 2, 3, 4]);
    let Ethernet([first, ..]) = opposite(theirs);
    assert_eq!(first & 0b11, 0b10, "the address is locally administered, and not a group address");
    assert_ne!(opposite(theirs), theirs);
    assert_eq!(opposite(theirs), opposite(theirs));
    assert_ne!(opposite(theirs), opposite(Ethernet([0x3a, 0x17, 1, 2, 3, 5])));
}
