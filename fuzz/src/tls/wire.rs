//! The two ends of a connection and the wire between them: what arrives at the server, how the
//! server handles it, and what the client hears.

use rustls::ClientConnection;
use tls::{
    Connection, ENCRYPTION_OVERHEAD_MAX, FLIGHT_BYTES_MAX, PLAINTEXT_BYTES_MAX, RECORD_BYTES_MAX,
    TlsEvent,
};

use super::house::House;

/// The server's session keeps no more plaintext than this before it takes some, in bytes.
const LEFT_BYTES_MAX: usize = 8192;

/// How a session takes plaintext.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Appetite {
    /// All of it.
    All,
    /// So many bytes at a time.
    Bites(usize),
    /// Whole lines, as long as they are no longer than [`LEFT_BYTES_MAX`].
    Lines,
}

pub(super) struct Wire {
    pub(super) client: ClientConnection,
    server: Connection,
    pub(super) appetite: Appetite,
    /// Bytes that have arrived at the server and were not consumed.
    pub(super) stream: Vec<u8>,
    /// Bytes that the server has sent and the client has not received.
    to_client: Vec<u8>,
    /// Plaintext that the server's session has taken.
    pub(super) heard: Vec<u8>,
    pub(super) is_established: bool,
    pub(super) is_peer_closed: bool,
    pub(super) has_failed: bool,
    pub(super) has_closed: bool,
    /// Plaintext that the server's session has sent.
    said: Vec<u8>,
    /// The part of it that the client has read.
    client_heard: Vec<u8>,
    /// Whether the client has complained of anything but an alert.
    pub(super) is_client_confused: bool,
    out: Vec<u8>,
}

impl Wire {
    pub(super) fn new(client: ClientConnection) -> Wire {
        Wire {
            client,
            server: Connection::accept(&House::get().settings).expect("the settings are right"),
            appetite: Appetite::All,
            stream: Vec::new(),
            to_client: Vec::new(),
            heard: Vec::new(),
            is_established: false,
            is_peer_closed: false,
            has_failed: false,
            has_closed: false,
            said: Vec::new(),
            client_heard: Vec::new(),
            is_client_confused: false,
            out: vec![0; FLIGHT_BYTES_MAX],
        }
    }

    /// What the client has to say.
    pub(super) fn client_bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut bytes).expect("it is memory");
        }
        bytes
    }

    /// Bytes arrive at the server.
    pub(super) fn arrive(&mut self, bytes: &[u8]) {
        self.stream.extend_from_slice(bytes);
        let (mut needs_more, mut steps) = (false, 0);
        while self.goes_on(&mut needs_more) {
            steps += 1;
            assert!(steps < 20_000 + self.stream.len() + bytes.len(), "it comes to an end");
        }
        // The rest is plaintext that the session left, an incomplete handshake message, and less
        // than a record. Behind a close_notify the server does not look further while the session
        // has not taken the plaintext before it.
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
            "more bytes bring more"
        );
    }

    fn is_over(&self) -> bool {
        self.has_failed || self.is_peer_closed
    }

    /// Looks at the front of what has arrived. False: there is nothing to be done.
    fn goes_on(&mut self, needs_more: &mut bool) -> bool {
        let looks_again = std::mem::take(needs_more);
        let mut progress = match looks_again {
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
            TlsEvent::Plaintext(count) => self.text_arrived(count, looks_again, needs_more),
            TlsEvent::PeerClosed => {
                assert!(!self.is_over() && self.is_established);
                self.is_peer_closed = true;
            }
            TlsEvent::Failed(_) => {
                assert!(!self.has_failed, "it fails once");
                self.has_failed = true;
                assert!(self.is_established || self.heard.is_empty());
            }
        }
        true
    }

    fn text_arrived(&mut self, count: usize, was_more: bool, needs_more: &mut bool) {
        // What came before the peer closed may still be offered.
        assert!(
            self.is_established && !self.has_failed,
            "no plaintext before the handshake's end or behind ours"
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
        self.heard.extend_from_slice(&text[..bite]);
        let done = self.server.taken(bite);
        assert!(done >= bite);
        self.stream.drain(..done);
    }

    /// The server's session encrypts the beginning of `text` into a buffer of `room` bytes.
    pub(super) fn server_says(&mut self, text: &[u8], room: usize) {
        let mut block = vec![0; room];
        let sealed = self.server.encrypt(text, &mut block);
        let is_mute = !self.is_established || self.has_failed || self.has_closed;
        assert!(!is_mute || sealed.taken == 0 && sealed.written == 0, "this session sends nothing");
        assert!(
            is_mute || room <= ENCRYPTION_OVERHEAD_MAX || text.is_empty() || sealed.taken > 0,
            "there was room"
        );
        assert!(sealed.taken <= text.len() && sealed.written <= room);
        self.said.extend_from_slice(&text[..sealed.taken]);
        self.to_client.extend_from_slice(&block[..sealed.written]);
    }

    /// The server's session has nothing more to say.
    pub(super) fn server_closes(&mut self) {
        let mut block = [0; 128];
        let written = self.server.close(&mut block);
        let is_mute = !self.is_established || self.has_failed || self.has_closed;
        assert_eq!(written == 0, is_mute, "the closing alert is sent once");
        self.has_closed |= written > 0;
        self.to_client.extend_from_slice(&block[..written]);
    }

    /// The client hears what the server has sent.
    pub(super) fn client_listens(&mut self) {
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
                    self.is_client_confused = true;
                    break;
                }
            }
            let mut text = [0; 4096];
            while let Ok(count @ 1..) = self.client.reader().read(&mut text) {
                self.client_heard.extend_from_slice(&text[..count]);
            }
        }
        assert!(self.said.starts_with(&self.client_heard), "the client receives what was sent");
    }

    /// Whether the client has heard all that was said.
    pub(super) fn client_has_heard_all(&self) -> bool {
        self.said == self.client_heard
    }
}
