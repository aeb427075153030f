//! The wire: a switch with everybody's frames on their way, and what becomes of them.
//!
//! What a fault may do is what a correct TCP survives: see `docs/faults.md`.

use std::collections::BTreeMap;

use machine::{Ethernet, Instant, Micros};
use smoltcp::wire::{EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet, PrettyPrinter, TcpPacket, TcpSeqNumber};

use super::chronicle::Chronicle;
use super::scenario::Rates;
use crate::Dice;

/// Who is at an end of the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(super) enum End {
    Station(usize),
    Host(usize),
}

pub(super) struct Wire {
    pub(super) rates: Rates,
    in_flight: BTreeMap<(Instant, u64), (End, Vec<u8>)>,
    sent: u64,
    dice: Dice,
}

impl Wire {
    pub(super) fn new(rates: Rates, dice: Dice) -> Wire {
        Wire { rates, in_flight: BTreeMap::new(), sent: 0, dice }
    }

    /// From now on nothing happens to frames.
    pub(super) fn heal(&mut self) {
        let Rates { loss, duplication, reordering, corruption, forgery, .. } = &mut self.rates;
        [loss, duplication, reordering, corruption, forgery].into_iter().for_each(|rate| *rate = 0);
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.in_flight.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn arrival(&mut self) -> Option<(End, Vec<u8>)> {
        self.in_flight.pop_first().map(|(_, arrived)| arrived)
    }

    /// Somebody sends a frame to one other, or to all.
    pub(super) fn send(&mut self, from: End, frame: &[u8], everybody: &[(End, Ethernet)], story: &mut Chronicle) {
        story.fold((from, frame));
        story.counts.frames += 1;
        let is_to_all = frame.first().is_some_and(|first| first & 1 == 1);
        for (end, hardware) in everybody {
            if *end != from && (is_to_all || frame.starts_with(&hardware.0)) {
                self.send_to(*end, frame, story);
            }
        }
    }

    fn send_to(&mut self, to: End, frame: &[u8], story: &mut Chronicle) {
        if self.dice.happens(self.rates.loss) {
            return story.tell(|| format!("lost on its way to {to:?}: {}", describe(frame)));
        }
        story.tell(|| format!("to {to:?}: {}", describe(frame)));
        let mut frame = frame.to_vec();
        if self.dice.happens(self.rates.corruption) {
            self.corrupt(&mut frame);
            story.tell(|| "  which is corrupted".to_string());
        }
        if matches!(to, End::Station(_)) && self.dice.happens(self.rates.forgery) {
            let mut forged = frame.clone();
            if forge(&mut forged, &mut self.dice).is_some() {
                story.tell(|| format!("  and forged: {}", describe(&forged)));
                self.fly(to, forged, story);
            }
        }
        if self.dice.happens(self.rates.duplication) {
            self.fly(to, frame.clone(), story);
        }
        self.fly(to, frame, story);
    }

    fn fly(&mut self, to: End, frame: Vec<u8>, story: &mut Chronicle) {
        let mut span = self.rates.delay;
        if self.dice.happens(self.rates.reordering) {
            span = span + Micros(self.dice.below(self.rates.detour.0));
        }
        self.sent += 1;
        self.in_flight.insert((story.now + span, self.sent), (to, frame));
    }

    /// Turns over bits that lie within 15 of each other: no Internet checksum misses that.
    fn corrupt(&mut self, frame: &mut [u8]) {
        let is_checked = EthernetFrame::new_checked(&*frame).is_ok_and(|f| f.ethertype() == EthernetProtocol::Ipv4);
        let room = frame.len().saturating_sub(16);
        if !is_checked || room == 0 {
            return;
        }
        let at = 14 + self.dice.below(room as u64) as usize;
        let pattern = ((self.dice.roll() as u16 | 1) & 0x7fff).to_be_bytes();
        frame.iter_mut().skip(at).zip(pattern).for_each(|(byte, pattern)| *byte ^= pattern);
    }
}

/// Makes of a good frame one with right checksums and a header that says something else; the good one comes too.
fn forge(frame: &mut [u8], dice: &mut Dice) -> Option<()> {
    let mut ethernet = EthernetFrame::new_checked(frame).ok()?;
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    let mut ip = Ipv4Packet::new_checked(ethernet.payload_mut()).ok()?;
    if ip.next_header() != IpProtocol::Tcp {
        return None;
    }
    let (source, destination) = (ip.src_addr(), ip.dst_addr());
    let of_tcp = dice.below(10);
    if of_tcp < 8 {
        let mut tcp = TcpPacket::new_checked(ip.payload_mut()).ok()?;
        let elsewhere = TcpSeqNumber(tcp.seq_number().0.wrapping_add((dice.roll() as i32) | 0x0100_0000));
        match of_tcp {
            0 => tcp.set_seq_number(elsewhere),
            1 => {
                tcp.set_rst(true);
                tcp.set_seq_number(elsewhere);
            }
            2 => tcp.set_syn(true),
            3 => tcp.set_ack_number(TcpSeqNumber(tcp.ack_number().0.wrapping_add((dice.roll() as i32) | 0x0100_0000))),
            4 => {
                tcp.set_urg(true);
                tcp.set_urgent_at(dice.roll() as u16);
            }
            5 => tcp.set_window_len(dice.below(3) as u16),
            6 => tcp.set_header_len(4 * dice.below(5) as u8),
            _ => {
                tcp.set_fin(true);
                tcp.set_seq_number(elsewhere);
            }
        }
        // A data offset of nonsense makes the payload unreadable, the sum is over all bytes all the same.
        tcp.fill_checksum(&source.into(), &destination.into());
        return Some(());
    }
    match dice.below(4) {
        0 => ip.set_hop_limit(0),
        1 => ip.set_next_header(IpProtocol::from(dice.roll() as u8 | 0x80)),
        2 => ip.set_frag_offset(8 * dice.below(180) as u16 + 8),
        _ => ip.set_more_frags(true),
    }
    ip.fill_checksum();
    Some(())
}

fn describe(frame: &[u8]) -> String {
    let text = PrettyPrinter::<EthernetFrame<&[u8]>>::new("", &frame).to_string();
    text.lines().map(|line| line.trim_start_matches([' ', '\\'])).collect::<Vec<_>>().join(", ")
}
