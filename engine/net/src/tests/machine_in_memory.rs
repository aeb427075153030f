//! A machine that has only a card. The card puts frames into a queue, and performs offloads as a
//! real card does.

use core::fmt;
use core::net::IpAddr;
use std::collections::VecDeque;
use std::vec::Vec;

use machine::*;

use crate::checksum::Sum;

pub(super) const CARD: Ethernet = Ethernet([0x02, 0, 0, 0, 0, 0xaa]);

pub(super) struct TestMachine {
    pub(super) card: Card,
    /// The number of frames that the card's ring has room for.
    pub(super) ring: usize,
    /// Frames on the wire.
    pub(super) sent: VecDeque<Vec<u8>>,
    /// Frames passed to the card, before segmentation.
    pub(super) handed_over: usize,
}

impl TestMachine {
    pub(super) fn new(offloads: Offloads) -> TestMachine {
        TestMachine {
            card: Card { address: CARD, mtu: 1500, offloads, queues: 1 },
            ring: usize::MAX,
            sent: VecDeque::new(),
            handed_over: 0,
        }
    }

    fn cut(&mut self, head: &[u8], payload: &[u8], segment_bytes: usize, offload: ChecksumOffload) {
        let start = usize::from(offload.start);
        for (number, part) in payload.chunks(segment_bytes).enumerate() {
            let is_last = (number + 1) * segment_bytes >= payload.len();
            let mut frame = [head, part].concat();
            let (source, destination): (IpAddr, IpAddr) = if frame[12..14] == [0x86, 0xdd] {
                let ip_bytes = (frame.len() - 54) as u16;
                frame[18..20].copy_from_slice(&ip_bytes.to_be_bytes());
                (octets::<16>(&frame[22..38]).into(), octets::<16>(&frame[38..54]).into())
            } else {
                let ip_bytes = (frame.len() - 14) as u16;
                frame[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
                frame[24..26].fill(0);
                let field = Sum::of(&frame[14..34]).field();
                frame[24..26].copy_from_slice(&field);
                (octets::<4>(&frame[26..30]).into(), octets::<4>(&frame[30..34]).into())
            };
            let sequence = u32::from_be_bytes(frame[start + 4..start + 8].try_into().unwrap());
            let sequence = sequence.wrapping_add((number * segment_bytes) as u32);
            frame[start + 4..start + 8].copy_from_slice(&sequence.to_be_bytes());
            if !is_last {
                frame[start + 13] &= !0x09;
            }
            frame[start + 16..start + 18].fill(0);
            let sum = Sum::pseudo_header(
                source.into(),
                destination.into(),
                6,
                (frame.len() - start) as u16,
            );
            let field = sum.and(&frame[start..]).field();
            frame[start + 16..start + 18].copy_from_slice(&field);
            self.sent.push_back(frame);
        }
    }
}

fn octets<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap()
}

impl Entropy for TestMachine {
    fn random(&mut self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

impl Machine for TestMachine {
    fn now(&mut self) -> Instant {
        Instant::START
    }

    fn wall_clock(&mut self) -> UnixTime {
        UnixTime(0)
    }

    fn print(&mut self, _line: fmt::Arguments<'_>) {}

    fn card(&self) -> Card {
        self.card
    }

    fn receive(&mut self) -> Option<Frame> {
        None
    }

    fn give_back(&mut self, _frame: Frame) {}

    fn transmit(&mut self, frame: &OutgoingFrame<'_>) -> Result<(), TransmitError> {
        if self.sent.len() >= self.ring {
            return Err(TransmitError::Full);
        }
        self.handed_over += 1;
        let payload: Vec<u8> =
            frame.payload.iter().flat_map(|piece| piece.bytes().iter().copied()).collect();
        assert!(frame.payload.is_empty() || frame.head.len() <= HEAD_BYTES_MAX);
        assert!(frame.payload.len() <= PIECES_MAX && frame.head.len() + payload.len() <= 65_535);
        assert!(
            frame.checksum.is_none() || self.card.offloads.checksum,
            "the card does not support the offload"
        );
        if let Some(segment_bytes) = frame.segment_bytes {
            assert!(self.card.offloads.can_cut(frame), "the card does not support the offload");
            let offload = frame.checksum.expect("segmentation needs checksum offload");
            self.cut(frame.head, &payload, usize::from(segment_bytes.get()), offload);
            return Ok(());
        }
        let mut whole = [frame.head, &payload].concat();
        assert!(whole.len() <= 14 + usize::from(self.card.mtu), "longer than the link carries");
        if let Some(offload) = frame.checksum {
            let start = usize::from(offload.start);
            let field = Sum::of(&whole[start..]).field();
            let at = start + usize::from(offload.offset);
            whole[at..at + 2].copy_from_slice(&field);
        }
        self.sent.push_back(whole);
        Ok(())
    }

    fn disk(&self) -> Disk {
        Disk { sectors: 0, durable: false }
    }

    fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest> {
        Err(request)
    }

    fn completed(&mut self) -> Option<DiskCompletion> {
        None
    }

    /// There is no other core.
    fn wake(&mut self, _core: CoreId) {}

    fn ring_doorbells(&mut self) {}

    fn is_low_on_memory(&mut self) -> bool {
        false
    }

    fn stop_requested(&mut self) -> bool {
        false
    }
}
