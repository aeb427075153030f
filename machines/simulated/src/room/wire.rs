//! The wire: a switch with all frames in flight, and the faults that affect frames.
//!
//! A correct TCP survives each of these faults: see `docs/faults.md`.

use std::collections::BTreeMap;

use chance::Dice;
use machine::{Ethernet, Instant, Micros};
use smoltcp::wire::{EthernetFrame, EthernetProtocol, PrettyPrinter};

use super::chronicle::Chronicle;
use super::forgery::forge;
use super::narrow::{Endpoint, Narrow};
use super::scenario::{Rates, RouterReport};

pub(super) struct Wire {
    pub(super) rates: Rates,
    /// The frames on their way, by time of arrival and number.
    in_flight: BTreeMap<(Instant, u64), (Endpoint, Vec<u8>)>,
    narrow: Vec<Narrow>,
    /// The number of frames so far.
    sent: u64,
    dice: Dice,
}

impl Wire {
    pub(super) fn new(rates: Rates, dice: Dice) -> Wire {
        Wire { rates, in_flight: BTreeMap::new(), narrow: Vec::new(), sent: 0, dice }
    }

    /// Ends the faults of frames. A path that is narrow for ever stays narrow, because TCP can use
    /// it.
    pub(super) fn heal(&mut self) {
        let Rates { loss, duplication, reordering, corruption, forgery, .. } = &mut self.rates;
        [loss, duplication, reordering, corruption, forgery].into_iter().for_each(|rate| *rate = 0);
    }

    /// Adds a path with a reduced MTU.
    pub(super) fn add_narrow(&mut self, narrow: Narrow) {
        self.narrow.push(narrow);
    }

    /// Whether a path is or was a black hole for long packets.
    pub(super) fn drops(&self, from: Endpoint, to: Endpoint) -> bool {
        let is_missing = |narrow: &Narrow| narrow.report == RouterReport::Missing;
        self.narrow
            .iter()
            .any(|narrow| (narrow.from, narrow.to) == (from, to) && is_missing(narrow))
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.in_flight.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn arrival(&mut self) -> Option<(Endpoint, Vec<u8>)> {
        self.in_flight.pop_first().map(|(_, arrived)| arrived)
    }

    /// Sends a frame from one end to the end with its destination address, or to all ends.
    pub(super) fn send(
        &mut self,
        from: Endpoint,
        frame: &[u8],
        ends: &[(Endpoint, Ethernet)],
        story: &mut Chronicle,
    ) {
        story.fold((from, frame));
        story.counts.frames += 1;
        let is_to_all = frame.first().is_some_and(|first| first & 1 == 1);
        for (end, hardware) in ends {
            if *end == from || !(is_to_all || frame.starts_with(&hardware.0)) {
                continue;
            }
            let now = story.now;
            match self.narrow.iter().find(|narrow| narrow.stops(now, from, *end, frame)) {
                None => self.send_to(*end, frame, story),
                Some(narrow) => {
                    story.trace(|| format!("too long for its way to {end:?}: {}", describe(frame)));
                    if let Some(report) = narrow.icmp_report(frame) {
                        self.send_to(from, &report, story);
                    }
                }
            }
        }
    }

    fn send_to(&mut self, to: Endpoint, frame: &[u8], story: &mut Chronicle) {
        if self.dice.happens(self.rates.loss) {
            return story.trace(|| format!("lost on its way to {to:?}: {}", describe(frame)));
        }
        story.trace(|| format!("to {to:?}: {}", describe(frame)));
        let mut frame = frame.to_vec();
        if matches!(to, Endpoint::Station(_)) && self.dice.happens(self.rates.forgery) {
            // The frame is forged before it is corrupted. A forged frame gets correct checksums,
            // and over corrupted bytes these would deliver a payload that no peer has sent.
            let mut forged = frame.clone();
            if forge(&mut forged, &mut self.dice).is_some() {
                story.trace(|| format!("  and forged: {}", describe(&forged)));
                self.put_in_flight(to, forged, story);
            }
        }
        if self.dice.happens(self.rates.corruption) {
            self.corrupt(&mut frame);
            story.trace(|| "  which is corrupted".to_string());
        }
        if self.dice.happens(self.rates.duplication) {
            self.put_in_flight(to, frame.clone(), story);
        }
        self.put_in_flight(to, frame, story);
    }

    fn put_in_flight(&mut self, to: Endpoint, frame: Vec<u8>, story: &mut Chronicle) {
        let mut span = self.rates.delay;
        if self.dice.happens(self.rates.reordering) {
            span = span + Micros(self.dice.below(self.rates.detour.0));
        }
        self.sent += 1;
        self.in_flight.insert((story.now + span, self.sent), (to, frame));
    }

    /// Flips some of 15 consecutive bits. An Internet checksum always detects that.
    fn corrupt(&mut self, frame: &mut [u8]) {
        let is_ip = |protocol| matches!(protocol, EthernetProtocol::Ipv4 | EthernetProtocol::Ipv6);
        let is_checked =
            EthernetFrame::new_checked(&*frame).is_ok_and(|ethernet| is_ip(ethernet.ethertype()));
        let room = frame.len().saturating_sub(16);
        if !is_checked || room == 0 {
            return;
        }
        let at = 14 + self.dice.below(room as u64) as usize;
        let pattern = ((self.dice.roll() as u16 | 1) & 0x7fff).to_be_bytes();
        frame.iter_mut().skip(at).zip(pattern).for_each(|(byte, pattern)| *byte ^= pattern);
    }
}

fn describe(frame: &[u8]) -> String {
    let text = PrettyPrinter::<EthernetFrame<&[u8]>>::new("", &frame).to_string();
    text.lines().map(|line| line.trim_start_matches([' ', '\\'])).collect::<Vec<_>>().join(", ")
}
