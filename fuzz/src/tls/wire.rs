//! The two ends of a connection and the wire between them. The server handles arriving bytes, and
//! the client reads the server's output.

use rustls::ClientConnection;
use tls::{
    Connection, ENCRYPTION_OVERHEAD_MAX, FLIGHT_BYTES_MAX, PLAINTEXT_BYTES_MAX, RECORD_BYTES_MAX,
    TlsEvent,
};

use super::endpoints::Endpoints;

/// The most plaintext that the server's session leaves before it takes some, in bytes.
const LEFT_BYTES_MAX: usize = 8192;

/// The way in which a session takes plaintext.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Appetite {
    /// All of it.
    All,
    /// This many bytes at a time.
    Bites(usize),
    /// Whole lines. From a line that exceeds [`LEFT_BYTES_MAX`] it takes all bytes.
    Lines,
}

pub(super) struct Wire {
    pub(super) client: ClientConnection,
    server: Connection,
    pub(super) appetite: Appetite,
    /// Bytes that have arrived at the server and are not consumed yet.
    pub(super) stream: Vec<u8>,
    /// Bytes that the server has sent and the client has not received yet.
    to_client: Vec<u8>,
    /// Plaintext that the server's session has taken.
    pub(super) received: Vec<u8>,
    pub(super) is_established: bool,
    pub(super) is_peer_closed: bool,
    pub(super) has_failed: bool,
    pub(super) has_closed: bool,
    /// Plaintext that the server's session has sent.
    sent: Vec<u8>,
    /// Plaintext that the client has read.
    client_read: Vec<u8>,
    /// Whether the client has reported an error other than an alert.
    pub(super) has_client_failed: bool,
    out: Vec<u8>,
}

impl Wire {
    pub(super) fn new(client: ClientConnection) -> Wire {
        Wire {
            client,
            server: Connection::accept(&Endpoints::get().settings).expect("the settings are right"),
            appetite: Appetite::All,
            stream: Vec::new(),
            to_client: Vec::new(),
            received: Vec::new(),
            is_established: false,
            is_peer_closed: false,
            has_failed: false,
            has_closed: false,
            sent: Vec::new(),
            client_read: Vec::new(),
            has_client_failed: false,
            out: vec![0; FLIGHT_BYTES_MAX],
        }
    }

    /// Takes the output of the client's TLS.
    pub(super) fn client_bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut bytes).expect("a write to memory succeeds");
        }
        bytes
    }

    /// Bytes arrive at the server.
    pub(super) fn arrive(&mut self, bytes: &[u8]) {
        self.stream.extend_from_slice(bytes);
        let (mut needs_more, mut steps) = (false, 0);
        while self.handle_next(&mut needs_more) {
            steps += 1;
            assert!(steps < 20_000 + self.stream.len() + bytes.len(), "an endless loop");
        }
        // The rest is plaintext that the session left, an incomplete handshake message, and less
        // than a record. Once close_notify has arrived, the server reads no further while the
        // session has plaintext to take.
        let held = self.server.held();
        assert!(held <= self.stream.len() && held <= RECORD_BYTES_MAX + LEFT_BYTES_MAX);
        let waits_behind_end = self.is_peer_closed && held > 0;
        assert!(
            waits_behind_end || self.stream.len() <= held + RECORD_BYTES_MAX,
            "{} bytes wait",
            self.stream.len()
        );
        assert!(
            self.server.wanted() > self.stream.len() || self.is_over(),
            "the server can make progress without more bytes"
        );
    }

    fn is_over(&self) -> bool {
        self.has_failed || self.is_peer_closed
    }

    /// Lets the server handle the start of the stream. False: the server needs more bytes.
    /// `needs_more`: the session has taken nothing of the last plaintext, so the server must
    /// decrypt more of the stream.
    fn handle_next(&mut self, needs_more: &mut bool) -> bool {
        let was_more = std::mem::take(needs_more);
        let mut progress = match was_more {
            true => self.server.more(&mut self.stream, &mut self.out),
            false => self.server.receive(&mut self.stream, &mut self.out),
        };
        if progress.event == TlsEvent::Work {
            assert!(
                !self.is_established
                    && !self.has_failed
                    && progress.done == 0
                    && progress.written == 0
            );
            progress = self.server.work(&mut self.stream, &mut self.out);
        }
        assert!(!self.has_failed || progress.written == 0, "nothing follows the alert");
        self.stream.drain(..progress.done);
        self.to_client.extend_from_slice(&self.out[..progress.written]);
        match progress.event {
            TlsEvent::Bytes => return false,
            TlsEvent::Work | TlsEvent::Nothing => assert!(!self.has_failed),
            TlsEvent::Established(_) => {
                assert!(!self.is_established && !self.has_failed);
                self.is_established = true;
            }
            TlsEvent::Plaintext(count) => self.text_arrived(count, was_more, needs_more),
            TlsEvent::PeerClosed => {
                assert!(!self.is_over() && self.is_established);
                self.is_peer_closed = true;
            }
            TlsEvent::Failed(_) => {
                assert!(!self.has_failed, "the connection fails once");
                self.has_failed = true;
                assert!(self.is_established || self.received.is_empty());
            }
        }
        true
    }

    fn text_arrived(&mut self, count: usize, was_more: bool, needs_more: &mut bool) {
        // The session may still get plaintext that arrived before the peer's close.
        assert!(
            self.is_established && !self.has_failed,
            "plaintext before the handshake's end or after a failure"
        );
        assert!(count > 0 && count <= LEFT_BYTES_MAX + PLAINTEXT_BYTES_MAX);
        let text = &self.stream[..count];
        let bite = match self.appetite {
            Appetite::All => count,
            Appetite::Bites(bite) => count.min(bite),
            Appetite::Lines => text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
        };
        let bite = if bite == 0 && count > LEFT_BYTES_MAX { count } else { bite };
        *needs_more = bite == 0;
        assert!(!was_more || count > 0);
        self.received.extend_from_slice(&text[..bite]);
        let done = self.server.taken(bite);
        assert!(done >= bite);
        self.stream.drain(..done);
    }

    /// The server's session encrypts the beginning of `text` into a buffer of `room` bytes.
    pub(super) fn server_sends(&mut self, text: &[u8], room: usize) {
        let mut block = vec![0; room];
        let sealed = self.server.encrypt(text, &mut block);
        let must_not_send = !self.is_established || self.has_failed || self.has_closed;
        assert!(
            !must_not_send || sealed.taken == 0 && sealed.written == 0,
            "a session without keys, or a closed one, sends"
        );
        assert!(
            must_not_send || room <= ENCRYPTION_OVERHEAD_MAX || text.is_empty() || sealed.taken > 0,
            "there was buffer space"
        );
        assert!(sealed.taken <= text.len() && sealed.written <= room);
        self.sent.extend_from_slice(&text[..sealed.taken]);
        self.to_client.extend_from_slice(&block[..sealed.written]);
    }

    /// The server's session closes the connection.
    pub(super) fn server_closes(&mut self) {
        let mut block = [0; 128];
        let written = self.server.close(&mut block);
        let must_not_send = !self.is_established || self.has_failed || self.has_closed;
        assert_eq!(written == 0, must_not_send, "the closing alert is sent once");
        self.has_closed |= written > 0;
        self.to_client.extend_from_slice(&block[..written]);
    }

    /// The client reads the output of the server.
    pub(super) fn client_reads(&mut self) {
        use std::io::Read;
        let bytes = std::mem::take(&mut self.to_client);
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            if self.client.read_tls(&mut rest).is_err() {
                break;
            }
            match self.client.process_new_packets() {
                Ok(_) => {}
                Err(rustls::Error::AlertReceived(_)) => break,
                Err(_) => {
                    self.has_client_failed = true;
                    break;
                }
            }
            let mut text = [0; 4096];
            while let Ok(count @ 1..) = self.client.reader().read(&mut text) {
                self.client_read.extend_from_slice(&text[..count]);
            }
        }
        assert!(self.sent.starts_with(&self.client_read), "the client reads other text");
    }

    /// Whether the client has read all plaintext of the server's session.
    pub(super) fn client_has_read_all(&self) -> bool {
        self.sent == self.client_read
    }
}
