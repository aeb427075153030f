//! TLS: a rustls client sends bytes to the server. On the way they are cut, changed or doubled, or
//! bytes of an attacker come before them.
//!
//! The first byte selects the version, and the state of the connection when the script begins.
//!
//! | byte (mod 16) | and after it | what happens |
//! |---|---|---|
//! | 0 to 3 | n | the client adds a text to the flight; its length depends on n |
//! | 4 | | the flight arrives, the client reads the answer and sends its TLS messages |
//! | 5 | place, 2 bytes | one bit of the flight changes |
//! | 6 | n | the last n + 1 bytes of the flight are lost |
//! | 7 | | the flight is doubled |
//! | 8 | n | the flight arrives in pieces of n + 1 bytes |
//! | 9 | n, n bytes | an attacker sends these bytes |
//! | 10 | kind, n, n bytes | an attacker sends these bytes in a record of this kind |
//! | 11 | | the client renews its keys |
//! | 12 | | the client closes |
//! | 13 | n, room | the server's session sends 16 × n bytes |
//! | 14 | | the server's session closes |
//! | 15 | how | the session takes plaintext in another way |
//!
//! The flight is the client's output that has not arrived at the server yet.
//!
//! Oracles:
//! - Any input: no panic, and the steps end. The server keeps at most a record and the plaintext
//!   that the session left (`wire`).
//! - The received plaintext is a prefix of the client's text. No plaintext arrives before the end
//!   of the handshake, from a damaged record, or after a failure.
//! - Without damage all data arrives in both directions, and the client reports no error.
//! - After a failure the server sends only the alert, and ignores arriving bytes (`wire`).

mod endpoints;
mod wire;

use endpoints::Endpoints;
use wire::{Appetite, Wire};

/// The most bytes of the client's text.
const TEXT_BYTES_MAX: usize = 40_000;

/// The most renewals of keys in one script. The server accepts this many in a row.
const RENEWALS_MAX: usize = 16;

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&[first], script)) = data.split_first_chunk() else { return };
    let endpoints = Endpoints::get();
    chance::seed(2);
    let mut connection = DamagedConnection::new(endpoints, first & 1 != 0);
    match first / 2 % 4 {
        0 => {}
        1 => connection.exchange(),
        _ => (0..4).for_each(|_| connection.exchange()),
    }
    let mut script = Script(script);
    while connection.step(&mut script).is_some() {}
    connection.finish();
}

/// The rest of a script.
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

/// A connection on which the wire may damage bytes.
struct DamagedConnection {
    wire: Wire,
    /// All bytes that the client has sent, with its text encrypted.
    sent: Vec<u8>,
    /// For each output of the client its start in `sent`, and the length of the text before it.
    marks: Vec<(usize, usize)>,
    /// The sent bytes that have not arrived, possibly damaged.
    flight: Vec<u8>,
    /// The number of bytes at the start of `sent` that have arrived unchanged.
    arrived: usize,
    /// All of the client's text.
    text: Vec<u8>,
    /// The most text that the server may receive. Set when encrypted bytes arrive damaged.
    limit: Option<usize>,
    renewals: usize,
    was_damaged: bool,
    has_closed: bool,
}

impl DamagedConnection {
    fn new(endpoints: &Endpoints, is_tls12: bool) -> DamagedConnection {
        let wire = Wire::new(endpoints.client(is_tls12));
        let mut connection = DamagedConnection {
            wire,
            sent: Vec::new(),
            marks: Vec::new(),
            flight: Vec::new(),
            arrived: 0,
            text: Vec::new(),
            limit: None,
            renewals: 0,
            was_damaged: false,
            has_closed: false,
        };
        connection.send_output(0);
        connection
    }

    /// Adds the output of the client's TLS to the flight. `before`: the length of the text that was
    /// sent before.
    fn send_output(&mut self, before: usize) {
        let bytes = self.wire.client_bytes();
        self.marks.push((self.sent.len(), before));
        self.sent.extend_from_slice(&bytes);
        self.flight.extend_from_slice(&bytes);
    }

    /// The flight arrives, the client reads the answer, and sends its TLS messages.
    fn exchange(&mut self) {
        self.deliver(usize::MAX);
        self.wire.client_reads();
        self.send_output(self.text.len());
    }

    fn deliver(&mut self, cut: usize) {
        let flight = std::mem::take(&mut self.flight);
        // Damage to some bytes of a handshake has no effect. So the comparison begins with the
        // first bytes after the handshake.
        let is_sealed = self.wire.is_established;
        for bytes in flight.chunks(cut.max(1)) {
            if is_sealed {
                self.compare(bytes);
            }
            self.wire.arrive(bytes);
            self.check();
        }
        if !is_sealed {
            self.arrived = self.sent.len();
        }
    }

    /// Compares the arriving bytes with the sent bytes. The server must not receive any text of the
    /// first record that differs. A loss of bytes may show only some bytes later, because the bytes
    /// after the loss may equal the lost ones.
    fn compare(&mut self, bytes: &[u8]) {
        let same = bytes
            .iter()
            .zip(&self.sent[self.arrived..])
            .take_while(|(came, sent)| came == sent)
            .count();
        self.arrived += same;
        if same < bytes.len() {
            self.limit = self.limit.or(Some(self.text_before(self.arrived)));
        }
    }

    /// The length of the text before the record at this position of the client's output. The
    /// position may be after the end of the output.
    fn text_before(&self, place: usize) -> usize {
        let outputs = self.marks.partition_point(|(start, _)| *start <= place);
        match outputs.checked_sub(1) {
            Some(last) if place < self.sent.len() => self.marks[last].1,
            _ => self.text.len(),
        }
    }

    fn check(&self) {
        let received = &self.wire.received;
        assert!(self.text.starts_with(received), "the received text differs from the sent text");
        assert!(
            self.limit.is_none_or(|limit| received.len() <= limit),
            "text of a damaged record is received"
        );
        assert!(self.was_damaged || !self.wire.has_failed, "undamaged bytes cause no failure");
        assert!(self.was_damaged || !self.wire.has_client_failed, "the client sees no error");
    }

    fn step(&mut self, script: &mut Script<'_>) -> Option<()> {
        match script.byte()? % 16 {
            0..=3 => self.send_text(script.byte()?),
            4 => self.exchange(),
            5 => {
                let [high, low] = [script.byte()?, script.byte()?];
                self.change_bit(usize::from(u16::from_be_bytes([high, low])));
            }
            6 => {
                let left = self.flight.len().saturating_sub(usize::from(script.byte()?) + 1);
                if left < self.flight.len() {
                    self.flight.truncate(left);
                    self.was_damaged = true;
                }
            }
            7 => {
                if !self.flight.is_empty() && self.flight.len() < TEXT_BYTES_MAX {
                    // The flight arrives twice. The server may receive its text once.
                    self.flight.extend_from_within(..);
                    self.was_damaged = true;
                }
            }
            8 => {
                let cut = usize::from(script.byte()?) + 1;
                self.deliver(cut);
            }
            9 => {
                let length = script.byte()?;
                self.send_as_attacker(&script.take(length));
            }
            10 => {
                let (kind, length) = (script.byte()?, script.byte()?);
                let payload = script.take(length);
                let head = [20 + kind % 5, 3, 3, 0, payload.len() as u8];
                self.send_as_attacker(&[&head[..], &payload].concat());
            }
            11 => {
                self.renewals += 1;
                let may_renew = self.may_renew_keys() && self.renewals <= RENEWALS_MAX;
                if may_renew && self.wire.client.refresh_traffic_keys().is_ok() {
                    self.send_output(self.text.len());
                }
            }
            12 if self.wire.client.is_handshaking() => {}
            12 => {
                self.wire.client.send_close_notify();
                self.has_closed = true;
                self.send_output(self.text.len());
            }
            13 => {
                let (count, room) = (script.byte()?, script.byte()?);
                let text: Vec<u8> = (0..usize::from(count) * 16).map(|place| place as u8).collect();
                self.wire.server_sends(&text, usize::from(room) * 80);
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

    /// Whether the client may renew its keys: TLS 1.3, after the handshake, before the close.
    fn may_renew_keys(&self) -> bool {
        let version = self.wire.client.protocol_version();
        version == Some(rustls::ProtocolVersion::TLSv1_3)
            && !self.wire.client.is_handshaking()
            && !self.has_closed
    }

    /// The client sends more text, in lines of different lengths.
    fn send_text(&mut self, count: u8) {
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
        // A client that has received an alert cannot send.
        if self.wire.client.writer().write_all(&more).is_err() {
            return;
        }
        self.text.extend_from_slice(&more);
        self.send_output(start);
    }

    /// Inverts one bit of the flight.
    fn change_bit(&mut self, place: usize) {
        let bits = self.flight.len() * 8;
        if bits == 0 {
            return;
        }
        self.flight[place % bits / 8] ^= 1 << (place % 8);
        self.was_damaged = true;
    }

    /// Lets bytes of an attacker arrive before the flight.
    fn send_as_attacker(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.was_damaged = true;
        if self.wire.is_established {
            self.compare(bytes);
        }
        self.wire.arrive(bytes);
    }

    /// Ends the script: delivers all pending bytes, and makes the final checks.
    fn finish(&mut self) {
        (0..3).for_each(|_| self.exchange());
        self.check();
        if self.was_damaged {
            return;
        }
        if self.wire.is_established && self.wire.appetite != Appetite::Lines {
            assert_eq!(self.wire.received.len(), self.text.len(), "all of the text is received");
        }
        assert!(
            !self.wire.is_established || self.wire.client_has_read_all(),
            "all of the server's text is received"
        );
        assert_eq!(self.wire.is_peer_closed, self.has_closed && self.wire.is_established);
    }
}
