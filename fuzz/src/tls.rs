//! TLS: the bytes of a rustls client on their way to the server: cut, changed, doubled, reordered,
//! or with other bytes in between.
//!
//! The first byte chooses the version and how far the connection has come when the script begins.
//!
//! | byte (mod 16) | and after it | what happens |
//! |---|---|---|
//! | 0 to 3 | n | the client sends its pending TLS messages, then the next n bytes of text |
//! | 4 | | the client sends its pending TLS messages alone |
//! | 5 | place, 2 bytes | one bit changes in the client's last words that did not arrive yet |
//! | 6 | n | the same is cut: its last n bytes are lost |
//! | 7 | | the same comes twice |
//! | 8 | n | the same comes in pieces of n bytes |
//! | 9 | n, n bytes | another party says these |
//! | 10 | kind, n, n bytes | or these, in a record of this kind |
//! | 11 | | the client renews its keys |
//! | 12 | | the client closes |
//! | 13 | n, room | the server's session says 16 × n bytes |
//! | 14 | | the server's session closes |
//! | 15 | how | the session takes plaintext in another way |
//!
//! Oracles:
//! - Any input: no panic, steps end, and never more bytes are kept than a record and what the
//!   session left (`wire`).
//! - Plaintext is a prefix of what the client said. None arrives before the handshake is done, none
//!   from a damaged record after that, and none after a failure.
//! - Undamaged data arrives wholly, both ways. The client of an undamaged connection reports no
//!   error.
//! - After a failure nothing is said but the alert, and arriving bytes are ignored (`wire`).

mod house;
mod wire;

use house::House;
use wire::{Appetite, Wire};

/// The most bytes of the client's text.
const TEXT_BYTES_MAX: usize = 40_000;

/// Renewals of keys that are borne in a row, and more.
const RENEWALS_MAX: usize = 16;

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&[first], script)) = data.split_first_chunk() else { return };
    let house = House::get();
    chance::seed(2);
    let mut connection = Harmed::new(house, first & 1 != 0);
    match first / 2 % 4 {
        0 => {}
        1 => connection.goes_on(),
        _ => (0..4).for_each(|_| connection.goes_on()),
    }
    let mut script = Script(script);
    while connection.step(&mut script).is_some() {}
    connection.ends();
}

/// A script that is read to its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn take(&mut self, length: u8) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(usize::from(length).min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }
}

/// A connection to which harm may be done.
struct Harmed {
    wire: Wire,
    /// All that the client has said, its text sealed.
    said: Vec<u8>,
    /// Where records begin in it, and how much of the text lies before each.
    marks: Vec<(usize, usize)>,
    /// The part of it that is on its way, in its present form.
    flight: Vec<u8>,
    /// How much of what was said has arrived as it was said.
    arrived: usize,
    /// All of the client's text.
    text: Vec<u8>,
    /// The most text that may be heard, once different bytes have arrived than were said with keys.
    limit: Option<usize>,
    renewals: usize,
    was_harmed: bool,
    has_closed: bool,
}

impl Harmed {
    fn new(house: &House, is_old: bool) -> Harmed {
        let wire = Wire::new(house.client(is_old));
        let mut connection = Harmed {
            wire,
            said: Vec::new(),
            marks: Vec::new(),
            flight: Vec::new(),
            arrived: 0,
            text: Vec::new(),
            limit: None,
            renewals: 0,
            was_harmed: false,
            has_closed: false,
        };
        connection.speaks(0);
        connection
    }

    /// Sends what TLS has to send. `before`: bytes of the text that were sent before.
    fn speaks(&mut self, before: usize) {
        let bytes = self.wire.client_bytes();
        self.marks.push((self.said.len(), before));
        self.said.extend_from_slice(&bytes);
        self.flight.extend_from_slice(&bytes);
    }

    /// All bytes under way arrive, and the client reads the answer.
    fn goes_on(&mut self) {
        self.arrives(usize::MAX);
        self.wire.client_listens();
        self.speaks(self.text.len());
    }

    fn arrives(&mut self, cut: usize) {
        let flight = std::mem::take(&mut self.flight);
        // Some of a handshake's bytes may be damaged without effect. The following bytes are
        // compared from their own beginning.
        let is_sealed = self.wire.is_established;
        for bytes in flight.chunks(cut.max(1)) {
            if is_sealed {
                self.is_compared(bytes);
            }
            self.wire.arrive(bytes);
            self.check();
        }
        if !is_sealed {
            self.arrived = self.said.len();
        }
    }

    /// Compares the bytes about to arrive with what was said. Nothing may be heard of the first
    /// record that differs. Lost bytes may be equal to those that follow them.
    fn is_compared(&mut self, bytes: &[u8]) {
        let same = bytes
            .iter()
            .zip(&self.said[self.arrived..])
            .take_while(|(came, said)| came == said)
            .count();
        self.arrived += same;
        if same < bytes.len() {
            self.limit = self.limit.or(Some(self.text_before(self.arrived)));
        }
    }

    /// How much of the text lies before the record that holds this place of what was said or will
    /// be said.
    fn text_before(&self, place: usize) -> usize {
        let behind = self.marks.partition_point(|(start, _)| *start <= place);
        match behind.checked_sub(1) {
            Some(last) if place < self.said.len() => self.marks[last].1,
            _ => self.text.len(),
        }
    }

    fn check(&self) {
        let heard = &self.wire.heard;
        assert!(self.text.starts_with(heard), "received text was sent");
        assert!(
            self.limit.is_none_or(|limit| heard.len() <= limit),
            "nothing of a damaged record is received"
        );
        assert!(self.was_harmed || !self.wire.has_failed, "undamaged bytes cause no failure");
        assert!(self.was_harmed || !self.wire.is_client_confused, "the client sees no error");
    }

    fn step(&mut self, script: &mut Script<'_>) -> Option<()> {
        match script.byte()? % 16 {
            0..=3 => self.says(script.byte()?),
            4 => self.goes_on(),
            5 => {
                let [high, low] = [script.byte()?, script.byte()?];
                self.bit_changes(usize::from(u16::from_be_bytes([high, low])));
            }
            6 => {
                let left = self.flight.len().saturating_sub(usize::from(script.byte()?) + 1);
                if left < self.flight.len() {
                    self.flight.truncate(left);
                    self.was_harmed = true;
                }
            }
            7 => {
                if !self.flight.is_empty() && self.flight.len() < TEXT_BYTES_MAX {
                    // All of the flight comes twice: all of it is heard once.
                    self.flight.extend_from_within(..);
                    self.was_harmed = true;
                }
            }
            8 => {
                let cut = usize::from(script.byte()?) + 1;
                self.arrives(cut);
            }
            9 => {
                let length = script.byte()?;
                self.attacker_sends(&script.take(length));
            }
            10 => {
                let (kind, length) = (script.byte()?, script.byte()?);
                let payload = script.take(length);
                let head = [20 + kind % 5, 3, 3, 0, payload.len() as u8];
                self.attacker_sends(&[&head[..], &payload].concat());
            }
            11 => {
                self.renewals += 1;
                let may_renew = self.is_new() && self.renewals <= RENEWALS_MAX;
                if may_renew && self.wire.client.refresh_traffic_keys().is_ok() {
                    self.speaks(self.text.len());
                }
            }
            12 if self.wire.client.is_handshaking() => {}
            12 => {
                self.wire.client.send_close_notify();
                self.has_closed = true;
                self.speaks(self.text.len());
            }
            13 => {
                let (count, room) = (script.byte()?, script.byte()?);
                let text: Vec<u8> = (0..usize::from(count) * 16).map(|place| place as u8).collect();
                self.wire.server_says(&text, usize::from(room) * 80);
            }
            14 => self.wire.server_closes(),
            _ => {
                self.wire.appetite = match script.byte()? {
                    0 => Appetite::All,
                    255 => Appetite::Lines,
                    bite => Appetite::Bites(usize::from(bite)),
                };
                self.wire.arrive(&[]);
            }
        }
        self.check();
        Some(())
    }

    fn is_new(&self) -> bool {
        let version = self.wire.client.protocol_version();
        version == Some(rustls::ProtocolVersion::TLSv1_3)
            && !self.wire.client.is_handshaking()
            && !self.has_closed
    }

    /// The client says more of its text: lines of all lengths.
    fn says(&mut self, count: u8) {
        use std::io::Write;
        if self.wire.client.is_handshaking() || self.has_closed || self.text.len() > TEXT_BYTES_MAX
        {
            return;
        }
        let start = self.text.len();
        let length = usize::from(count) * usize::from(count % 16 + 1) + 1;
        let is_end = |place: usize| place % 89 == 88 || place % 7 == 6;
        let more: Vec<u8> = (start..start + length)
            .map(|place| if is_end(place) { b'\n' } else { place as u8 })
            .collect();
        // A client that was told of a failure says no more.
        if self.wire.client.writer().write_all(&more).is_err() {
            return;
        }
        self.text.extend_from_slice(&more);
        self.speaks(start);
    }

    fn bit_changes(&mut self, place: usize) {
        let bits = self.flight.len() * 8;
        if bits == 0 {
            return;
        }
        self.flight[place % bits / 8] ^= 1 << (place % 8);
        self.was_harmed = true;
    }

    /// Bytes come that the client has not said: before all that is on its way.
    fn attacker_sends(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.was_harmed = true;
        if self.wire.is_established {
            self.is_compared(bytes);
        }
        self.wire.arrive(bytes);
    }

    /// Nothing more is said.
    fn ends(&mut self) {
        (0..3).for_each(|_| self.goes_on());
        self.check();
        if self.was_harmed {
            return;
        }
        if self.wire.is_established && self.wire.appetite != Appetite::Lines {
            assert_eq!(self.wire.heard.len(), self.text.len(), "all of the text is received");
        }
        assert!(
            !self.wire.is_established || self.wire.client_has_heard_all(),
            "and so is all that the server said"
        );
        assert_eq!(self.wire.is_peer_closed, self.has_closed && self.wire.is_established);
    }
}
