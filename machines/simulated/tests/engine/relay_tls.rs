//! The TLS of remote hosts, with the server of rustls, and the ways in which it fails.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};
use simulated::Connection;

use super::relay::PEER;
use super::room::Room;
use super::room::tls_stream::Trust;

/// The TLS behaviour of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TlsBehaviour {
    /// The host does not offer TLS.
    None,
    /// `Tls12`, `Tls13`: the host offers this version of TLS.
    Tls12,
    Tls13,
    /// The host offers TLS, and then refuses STARTTLS.
    Refuses,
    /// The host offers TLS, and then sends data that is not TLS.
    Babbles,
    FallsSilent,
    /// The host sends a byte a minute instead of its handshake.
    Drips,
    HangsUp,
    /// The host sends further data after the 220 reply, as an attacker might inject it.
    Injects,
    /// The host sends an invalid record in the middle of a message.
    Spoils,
    /// The handshake works, but the host closes the connection at the EHLO within TLS.
    HangsUpLater,
}

impl TlsBehaviour {
    /// The reply to EHLO in clear text. The SIZE in it prevents mail if a client uses this reply
    /// within TLS.
    pub(super) fn hello(self) -> &'static str {
        match self {
            TlsBehaviour::Tls12 | TlsBehaviour::Tls13 => {
                "250-far.test\r\n250-STARTTLS\r\n250 SIZE 1\r\n"
            }
            _ => "250-far.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 STARTTLS\r\n",
        }
    }

    pub(super) fn answer(self) -> &'static str {
        match self {
            TlsBehaviour::None => "502 5.5.1 What?\r\n",
            TlsBehaviour::Refuses => "454 4.7.0 TLS not available\r\n",
            TlsBehaviour::Injects => "220 2.0.0 Go on\r\n250-far.test\r\n250 AUTH PLAIN\r\n",
            _ => "220 2.0.0 Go on\r\n",
        }
    }
}

/// The TLS layer between a host and its connection.
#[derive(Default)]
pub(super) struct TlsLayer {
    tls: Option<Box<ServerConnection>>,
    /// The server name that the client sent.
    pub(super) called: Option<String>,
    /// The time at which the next byte of a dripping handshake is due.
    drips_at: Option<machine::Instant>,
    /// Whether the host closes the connection at the first data within TLS.
    hangs_up: bool,
}

impl TlsLayer {
    pub(super) fn is_on(&self) -> bool {
        self.tls.is_some()
    }

    /// Starts TLS after the 220 reply, as `tls_behaviour` says.
    pub(super) fn begin(
        &mut self,
        tls_behaviour: TlsBehaviour,
        trust: &Trust,
        room: &mut Room,
        connection: Connection,
    ) {
        let version = match tls_behaviour {
            TlsBehaviour::Tls12 => &rustls::version::TLS12,
            TlsBehaviour::Tls13 | TlsBehaviour::Spoils | TlsBehaviour::HangsUpLater => {
                &rustls::version::TLS13
            }
            TlsBehaviour::Babbles => {
                room.hosts[PEER].send(connection, b"220 And I have something to say\r\n");
                return;
            }
            TlsBehaviour::HangsUp => return room.hosts[PEER].close(connection),
            TlsBehaviour::Drips => {
                self.drips_at = Some(room.machine.now);
                return;
            }
            TlsBehaviour::None
            | TlsBehaviour::Refuses
            | TlsBehaviour::FallsSilent
            | TlsBehaviour::Injects => return,
        };
        self.hangs_up = tls_behaviour == TlsBehaviour::HangsUpLater;
        self.start(trust, version, room);
    }

    /// Starts TLS with this certificate and TLS version.
    pub(super) fn start(
        &mut self,
        trust: &Trust,
        version: &'static SupportedProtocolVersion,
        room: &Room,
    ) {
        chance::seed(room.turns);
        self.tls = Some(Box::new(
            ServerConnection::new(config(trust, version)).expect("the settings are right"),
        ));
    }

    pub(super) fn say(&mut self, room: &mut Room, connection: Connection, bytes: &[u8]) {
        match &mut self.tls {
            None => {
                room.hosts[PEER].send(connection, bytes);
            }
            Some(tls) => {
                tls.writer().write_all(bytes).expect("I/O in memory cannot fail");
                self.send(room, connection);
            }
        }
    }

    fn send(&mut self, room: &mut Room, connection: Connection) {
        let Some(tls) = &mut self.tls else { return };
        let mut bytes = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut bytes).expect("I/O in memory cannot fail");
        }
        let host = &mut room.hosts[PEER];
        let sent = host.send(connection, &bytes);
        assert!(
            sent == bytes.len() || !host.is_open(connection),
            "the buffer has space for replies"
        );
    }

    /// The data that has arrived since the last call.
    pub(super) fn heard(&mut self, room: &mut Room, connection: Connection) -> Vec<u8> {
        let bytes = room.hosts[PEER].received(connection);
        if self.drips_at.is_some_and(|at| at <= room.machine.now) {
            self.drips_at = Some(room.machine.now + machine::Micros::from_secs(60));
            // The byte may be the beginning of a record.
            room.hosts[PEER].send(connection, &[22]);
        }
        let Some(tls) = &mut self.tls else { return bytes };
        chance::seed(room.turns);
        let mut rest = bytes.as_slice();
        let mut text = Vec::new();
        while !rest.is_empty() {
            tls.read_tls(&mut rest).expect("I/O in memory cannot fail");
            if tls.process_new_packets().is_err() {
                // The client has sent an alert, so the host closes.
                room.hosts[PEER].close(connection);
                return Vec::new();
            }
            let mut part = [0; 20_000];
            while let Ok(count @ 1..) = tls.reader().read(&mut part) {
                text.extend(part.iter().take(count));
            }
        }
        self.called = tls.server_name().map(str::to_string);
        if self.hangs_up && !text.is_empty() {
            room.hosts[PEER].close(connection);
            self.tls = None;
            return Vec::new();
        }
        self.send(room, connection);
        text
    }

    /// Sends data that is not encrypted.
    pub(super) fn spoil(&mut self, room: &mut Room, connection: Connection) {
        room.hosts[PEER].send(connection, b"\x17\x03\x03\x00\x20thirty-two bytes no client sealed");
    }
}

/// The certificate that hosts present by default. It is expired, for another name, and from an
/// unknown authority.
pub(super) fn shown() -> Trust {
    Trust::made(9, &["somewhere.else.test"], -30..-3)
}

fn config(trust: &Trust, version: &'static SupportedProtocolVersion) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("the version is supported");
    let key = PrivateKeyDer::from_pem_slice(&trust.pem).expect("the key is valid");
    let chain = vec![trust.root.clone()];
    Arc::new(
        builder
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("the key belongs to the certificate"),
    )
}
