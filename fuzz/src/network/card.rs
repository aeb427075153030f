//! A machine that has only a network card. The card computes checksums and cuts segments for the
//! engine, and checks every sent frame.

use std::collections::VecDeque;
use std::fmt;

use machine::*;

use super::check;

pub(crate) struct CheckedCard {
    card: Card,
    /// The number of frames that the transmit ring can take now.
    pub(crate) ring: usize,
    /// Sent frames.
    pub(crate) sent: VecDeque<Vec<u8>>,
}

impl CheckedCard {
    pub(crate) fn new(address: Ethernet, offloads: Offloads) -> CheckedCard {
        CheckedCard {
            card: Card { address, mtu: 1500, offloads, queues: 1 },
            ring: usize::MAX,
            sent: VecDeque::new(),
        }
    }

    fn send(&mut self, mut frame: Vec<u8>, offload: Option<ChecksumOffload>) {
        if let Some(offload) = offload {
            let start = usize::from(offload.start);
            let field = check::field(check::sum(&frame[start..]));
            let at = start + usize::from(offload.offset);
            frame[at..at + 2].copy_from_slice(&field);
        }
        assert!(
            frame.len() <= 14 + usize::from(self.card.mtu),
            "a frame is longer than the link allows"
        );
        assert_eq!(frame[6..12], self.card.address.0, "the source address is the card's");
        check::frame(&frame);
        self.sent.push_back(frame);
    }

    /// Cuts TCP over IPv4 into frames of `segment_bytes` each, as a card with segmentation offload
    /// does.
    fn cut(&mut self, head: &[u8], payload: &[u8], segment_bytes: usize, offload: ChecksumOffload) {
        let start = usize::from(offload.start);
        for (number, part) in payload.chunks(segment_bytes).enumerate() {
            let mut frame = [head, part].concat();
            let ip_bytes = (frame.len() - 14) as u16;
            frame[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
            frame[24..26].fill(0);
            let field = check::field(check::sum(&frame[14..34]));
            frame[24..26].copy_from_slice(&field);
            let sequence = u32::from_be_bytes([
                frame[start + 4],
                frame[start + 5],
                frame[start + 6],
                frame[start + 7],
            ]);
            let sequence = sequence.wrapping_add((number * segment_bytes) as u32);
            frame[start + 4..start + 8].copy_from_slice(&sequence.to_be_bytes());
            if (number + 1) * segment_bytes < payload.len() {
                frame[start + 13] &= !0x09;
            }
            let pseudo = check::sum(&frame[26..34]) + 6 + u32::from(ip_bytes - 20);
            let field = check::field(pseudo).map(|byte| !byte);
            frame[start + 16..start + 18].copy_from_slice(&field);
            self.send(frame, Some(offload));
        }
    }
}

impl Entropy for CheckedCard {
    fn random(&mut self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

impl Machine for CheckedCard {
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

    fn give_back(&mut self, frame: Frame) {
        drop(frame);
    }

    fn transmit(&mut self, frame: &OutgoingFrame<'_>) -> Result<(), TransmitError> {
        if self.ring == 0 {
            return Err(TransmitError::Full);
        }
        self.ring -= 1;
        let payload: Vec<u8> =
            frame.payload.iter().flat_map(|piece| piece.bytes().iter().copied()).collect();
        assert!(frame.payload.is_empty() || frame.head.len() <= HEAD_BYTES_MAX);
        assert!(frame.payload.len() <= PIECES_MAX && frame.head.len() + payload.len() <= 65_535);
        assert!(
            frame.checksum.is_none() || self.card.offloads.checksum,
            "checksum offload without that capability"
        );
        match frame.segment_bytes {
            Some(segment_bytes) => {
                assert!(self.card.offloads.segmentation_ipv4, "segmentation without capability");
                let offload = frame.checksum.expect("segmentation comes with checksum offload");
                self.cut(frame.head, &payload, usize::from(segment_bytes.get()), offload);
            }
            None => self.send([frame.head, &payload].concat(), frame.checksum),
        }
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

    /// The machine has one core.
    fn wake(&mut self, _core: CoreId) {}

    fn ring_doorbells(&mut self) {}

    fn is_low_on_memory(&mut self) -> bool {
        false
    }

    fn stop_requested(&mut self) -> bool {
        false
    }
}
