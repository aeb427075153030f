//! The web server of a remote domain with its MTA-STS policy.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use rustls::version::TLS13;
use simulated::Connection;

use super::relay::PEER;
use super::relay_tls::TlsLayer;
use super::room::Room;
use super::room::tls_stream::Trust;

/// The behaviour of the policy server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mood {
    Answers,
    /// The server has no policy.
    KnowsNothing,
    /// The server accepts connections, and sends nothing.
    Silent,
    /// The server closes the connection in the middle of its response.
    CutsOff,
    Down,
}

/// The policy server, on port 443.
pub(super) struct PolicyServer {
    connection: Connection,
    tls_layer: TlsLayer,
    /// Whether the client has connected, and the server has started TLS.
    has_tls_begun: bool,
    heard: Vec<u8>,
    pub(super) mood: Mood,
    pub(super) policy: String,
    /// Makes the certificate that the server presents.
    pub(super) presented: fn() -> Trust,
    /// The server name (SNI) of each request.
    pub(super) asked: Vec<String>,
}

impl PolicyServer {
    pub(super) fn new(policy: &str, presented: fn() -> Trust, room: &mut Room) -> PolicyServer {
        PolicyServer {
            connection: room.hosts[PEER].listen(443),
            tls_layer: TlsLayer::default(),
            has_tls_begun: false,
            heard: Vec::new(),
            mood: Mood::Answers,
            policy: policy.to_string(),
            presented,
            asked: Vec::new(),
        }
    }

    pub(super) fn serve(&mut self, room: &mut Room) {
        let connection = self.connection;
        if room.hosts[PEER].is_over(connection) {
            self.connection = room.hosts[PEER].listen(443);
            (self.tls_layer, self.has_tls_begun) = (TlsLayer::default(), false);
            self.heard.clear();
            return;
        }
        if self.mood == Mood::Down && room.hosts[PEER].is_open(connection) {
            return room.hosts[PEER].abort(connection);
        }
        if self.mood == Mood::Silent {
            return;
        }
        if room.hosts[PEER].is_open(connection) && !self.has_tls_begun {
            self.has_tls_begun = true;
            self.tls_layer.start(&(self.presented)(), &TLS13, room);
        }
        let heard = self.tls_layer.heard(room, connection);
        self.heard.extend(heard);
        if self.has_tls_begun && !room.hosts[PEER].is_open(connection) {
            room.hosts[PEER].close(connection);
        }
        if !self.heard.ends_with(b"\r\n\r\n") {
            return;
        }
        let request =
            String::from_utf8(std::mem::take(&mut self.heard)).expect("the bytes are UTF-8");
        assert!(request.starts_with("GET /.well-known/mta-sts.txt HTTP/1.0\r\n"), "{request}");
        assert!(request.contains("\r\nHost: mta-sts.far.test\r\n"), "{request}");
        self.asked.push(self.tls_layer.called.clone().unwrap_or_default());
        let (policy, length) = (&self.policy, self.policy.len());
        let response = match self.mood {
            Mood::KnowsNothing => {
                "HTTP/1.0 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n"
                    .to_string()
            }
            Mood::CutsOff => format!(
                "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n{}",
                &policy[..length - 2]
            ),
            _ => format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{policy}"
            ),
        };
        self.tls_layer.say(room, connection, response.as_bytes());
        if self.mood == Mood::CutsOff {
            room.hosts[PEER].close(connection);
        }
    }
}
