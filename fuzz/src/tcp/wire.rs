//! The wire. For each frame a choice decides whether it is delivered, lost, delayed, doubled or
//! damaged.

use machine::{Instant, Micros};

use super::Choices;

/// The usual delay of a frame, in milliseconds.
const USUAL_DELAY: u64 = 10;

struct InFlight {
    at: Instant,
    number: u64,
    to: usize,
    frame: Vec<u8>,
}

/// The wire, with the frames that have not arrived yet.
#[derive(Default)]
pub(super) struct Wire {
    frames: Vec<InFlight>,
    sent: u64,
    /// The number of lost or damaged frames.
    pub(super) lost: u32,
}

impl Wire {
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.frames.iter().map(|flight| flight.at).min()
    }

    /// Sends a frame to the side `to`.
    pub(super) fn send(
        &mut self,
        now: Instant,
        to: usize,
        frame: Vec<u8>,
        choices: &mut Choices<'_>,
    ) {
        // The delays of the first and the second copy, in milliseconds.
        let (first, second) = match choices.next() {
            0..160 => (Some(USUAL_DELAY), None),
            160..190 => (None, None),
            190..205 => (Some(USUAL_DELAY), Some(USUAL_DELAY)),
            205..240 => (Some(u64::from(choices.next()) * 8), None),
            240..250 => {
                let at = usize::from(choices.next()) << 3 | usize::from(choices.next() & 7);
                return self.damage(now, to, frame, at);
            }
            250.. => (Some(USUAL_DELAY), Some(u64::from(choices.next()) * 64)),
        };
        self.lost += u32::from(first.is_none());
        for millis in [first, second].into_iter().flatten() {
            self.carry(now + Micros::from_millis(millis), to, &frame);
        }
    }

    /// Damages one byte after the Ethernet header. A checksum must detect this. ARP has no
    /// checksum, so frames of ARP are not damaged.
    fn damage(&mut self, now: Instant, to: usize, mut frame: Vec<u8>, at: usize) {
        if frame[12..14] == [8, 0] {
            let at = 14 + at % (frame.len() - 14);
            frame[at] ^= 0x41;
            self.lost += 1;
        }
        self.carry(now + Micros::from_millis(USUAL_DELAY), to, &frame);
    }

    fn carry(&mut self, at: Instant, to: usize, frame: &[u8]) {
        self.sent += 1;
        self.frames.push(InFlight { at, number: self.sent, to, frame: frame.to_vec() });
    }

    /// Takes the frames that have arrived by `now`, in the order of arrival.
    pub(super) fn arrivals(&mut self, now: Instant) -> Vec<(usize, Vec<u8>)> {
        let mut due: Vec<InFlight> =
            self.frames.extract_if(.., |flight| flight.at <= now).collect();
        due.sort_by_key(|flight| (flight.at, flight.number));
        due.into_iter().map(|flight| (flight.to, flight.frame)).collect()
    }
}
