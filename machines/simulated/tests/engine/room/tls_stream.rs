//! Conversations over TLS. The client is rustls, an independent implementation, between a test and
//! the wire.

use std::io::{ErrorKind, Read, Write};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use http::Site;
use machine::UnixTime;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};
use server::Sizes;
use tls::Certificate;

use super::{Room, Talk};

/// The time of day at which the machine starts, within a second.
const NOW: UnixTime = UnixTime::from_seconds(1_767_225_600);

pub(crate) const BOTH: &[&SupportedProtocolVersion] =
    &[&rustls::version::TLS13, &rustls::version::TLS12];

/// A certificate, and the root certificate that clients trust.
pub(crate) struct Trust {
    pub(crate) certificate: Certificate,
    pub(crate) root: CertificateDer<'static>,
    /// The certificate, followed by its key.
    pub(crate) pem: Vec<u8>,
}

impl Trust {
    pub(crate) fn new(name: &str) -> Trust {
        Trust::until(name, 10_000)
    }

    /// A certificate that expires this many days after the machine starts.
    pub(crate) fn until(name: &str, days: u32) -> Trust {
        Trust::made(7, &[name], -365..i64::from(days))
    }

    /// A certificate with the key of this seed, for these names, valid on these days relative to
    /// the machine's start.
    pub(crate) fn made(seed: u64, names: &[&str], days: Range<i64>) -> Trust {
        chance::seed(seed);
        let key =
            KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key can be generated");
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let mut parameters = CertificateParams::new(names).expect("the names are valid");
        let day = |number: i64| {
            date_time_ymd(2020, 1, 1) + Duration::from_secs((2192 + number) as u64 * 24 * 3600)
        };
        (parameters.not_before, parameters.not_after) = (day(days.start), day(days.end));
        let made = parameters.self_signed(&key).expect("the certificate can be signed");
        let (pem, key) = (made.pem(), key.serialize_pem());
        let certificate = Certificate::parse(pem.as_bytes(), key.as_bytes())
            .expect("the key belongs to the certificate");
        let root =
            CertificateDer::from_pem_slice(pem.as_bytes()).expect("the certificate is valid");
        Trust { certificate, root, pem: [pem, key].concat().into_bytes() }
    }
}

#[derive(Debug)]
struct FixedClock;

impl TimeProvider for FixedClock {
    fn current_time(&self) -> Option<rustls::pki_types::UnixTime> {
        Some(rustls::pki_types::UnixTime::since_unix_epoch(std::time::Duration::from_secs(
            NOW.seconds(),
        )))
    }
}

/// A client configuration that trusts this certificate.
pub(crate) fn client(trust: &Trust, protocols: &[&str]) -> ClientConfig {
    client_of(trust, protocols, BOTH)
}

/// A client configuration that trusts all of these certificates.
pub(crate) fn client_of_all(trusted: &[&Trust], protocols: &[&str]) -> ClientConfig {
    client_with(trusted, protocols, BOTH)
}

pub(crate) fn client_of(
    trust: &Trust,
    protocols: &[&str],
    versions: &[&'static SupportedProtocolVersion],
) -> ClientConfig {
    client_with(&[trust], protocols, versions)
}

fn client_with(
    trusted: &[&Trust],
    protocols: &[&str],
    versions: &[&'static SupportedProtocolVersion],
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    trusted
        .iter()
        .for_each(|trust| roots.add(trust.root.clone()).expect("the root is a valid certificate"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_details(provider, Arc::new(FixedClock));
    let builder = builder.with_protocol_versions(versions).expect("the versions are supported");
    let mut client = builder.with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    client.resumption = Resumption::in_memory_sessions(8);
    client
}

impl TlsStream {
    /// Whether the host has taken all output.
    pub(crate) fn is_sent(&self) -> bool {
        self.to_send.is_empty()
    }
}

/// A connection over TLS.
pub(crate) struct TlsStream {
    pub(crate) talk: Talk,
    pub(crate) tls: ClientConnection,
    to_send: Vec<u8>,
    pub(crate) heard: Vec<u8>,
    /// The error that the client's TLS reports.
    pub(crate) complaint: Option<rustls::Error>,
    /// Whether the server has sent close_notify.
    pub(crate) is_closed: bool,
}

impl Room {
    /// A machine that serves this site over TLS, with a certificate for `mail.barepost.test`.
    pub(crate) fn with_tls(seed: u64, site: Site, sizes: Sizes) -> (Room, Trust) {
        let trust = Trust::new("mail.barepost.test");
        (Room::with_certificates(seed, site, vec![trust.certificate.clone()], sizes), trust)
    }

    pub(crate) fn connect_tls(&mut self, port: u16, client: &Arc<ClientConfig>) -> TlsStream {
        self.connect_tls_from(0, port, client)
    }

    pub(crate) fn connect_tls_from(
        &mut self,
        host: usize,
        port: u16,
        client: &Arc<ClientConfig>,
    ) -> TlsStream {
        chance::seed(u64::from(port) + host as u64);
        let talk = self.connect_from(host, port);
        self.start_tls(talk, client)
    }

    /// Starts TLS on a connection.
    pub(crate) fn start_tls(&self, talk: Talk, client: &Arc<ClientConfig>) -> TlsStream {
        let name = ServerName::try_from("mail.barepost.test").expect("a name");
        let tls = ClientConnection::new(Arc::clone(client), name)
            .expect("the client's own settings are right");
        TlsStream {
            talk,
            tls,
            to_send: Vec::new(),
            heard: Vec::new(),
            complaint: None,
            is_closed: false,
        }
    }

    /// Moves data between the client's TLS and the wire.
    pub(crate) fn exchange(&mut self, tls_stream: &mut TlsStream) {
        let TlsStream { talk, tls, to_send, heard, complaint, is_closed } = tls_stream;
        chance::seed(self.turns);
        self.listen(talk);
        while !talk.heard.is_empty() && complaint.is_none() {
            let mut rest = talk.heard.as_slice();
            let count = tls.read_tls(&mut rest).expect("I/O in memory cannot fail");
            talk.heard.drain(..count);
            *complaint = tls.process_new_packets().err();
            let mut text = [0; 4096];
            loop {
                match tls.reader().read(&mut text) {
                    Ok(0) => {
                        *is_closed = true;
                        break;
                    }
                    Ok(count) => heard.extend_from_slice(&text[..count]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => panic!("{error}"),
                }
            }
            if count == 0 {
                break;
            }
        }
        while tls.wants_write() {
            tls.write_tls(to_send).expect("I/O in memory cannot fail");
        }
        let sent = self.hosts[talk.host].send(talk.connection, to_send);
        to_send.drain(..sent);
    }

    /// Sends all of `text`, with as many steps as it takes.
    pub(crate) fn send_tls(&mut self, tls_stream: &mut TlsStream, text: &[u8]) {
        for part in text.chunks(16_000) {
            tls_stream.tls.writer().write_all(part).expect("I/O in memory cannot fail");
            self.until_tls(tls_stream, "all is sent", |tls_stream| tls_stream.to_send.is_empty());
        }
    }

    /// Steps until `reached`.
    pub(crate) fn until_tls(
        &mut self,
        tls_stream: &mut TlsStream,
        what: &str,
        mut reached: impl FnMut(&TlsStream) -> bool,
    ) {
        self.until(what, |room| {
            room.exchange(tls_stream);
            reached(tls_stream)
        });
    }

    /// Sends `command`, and returns the last line of an SMTP reply.
    pub(crate) fn smtp_tls(&mut self, tls_stream: &mut TlsStream, command: &str) -> String {
        self.send_tls(tls_stream, format!("{command}\r\n").as_bytes());
        loop {
            let line = self.line_tls(tls_stream);
            if line.as_bytes().get(3) != Some(&b'-') {
                return line;
            }
        }
    }

    /// Sends `command`, and returns the one line of a POP3 response.
    pub(crate) fn pop3_tls(&mut self, tls_stream: &mut TlsStream, command: &str) -> String {
        self.send_tls(tls_stream, format!("{command}\r\n").as_bytes());
        self.line_tls(tls_stream)
    }

    /// The next line that arrives, without its CRLF.
    pub(crate) fn line_tls(&mut self, tls_stream: &mut TlsStream) -> String {
        self.until_tls(tls_stream, "a line arrives", |tls_stream| {
            tls_stream.heard.contains(&b'\n')
        });
        let end =
            tls_stream.heard.iter().position(|byte| *byte == b'\n').expect("a line is complete");
        let line: Vec<u8> = tls_stream.heard.drain(..=end).collect();
        String::from_utf8(line).expect("the bytes are UTF-8").trim_end().to_string()
    }

    /// Steps until the handshake is done.
    pub(crate) fn complete_handshake(&mut self, tls_stream: &mut TlsStream) {
        self.until_tls(tls_stream, "the handshake is done", |tls_stream| {
            !tls_stream.tls.is_handshaking()
        });
    }

    /// Closes the connection with a close_notify alert.
    pub(crate) fn close_tls(&mut self, mut tls_stream: TlsStream) {
        tls_stream.tls.send_close_notify();
        self.exchange(&mut tls_stream);
        self.close(&tls_stream.talk);
    }

    /// Closes the connection with a close_notify alert, and waits until no client holds any
    /// resource of the engine.
    pub(crate) fn finish_tls(&mut self, mut tls_stream: TlsStream) {
        tls_stream.tls.send_close_notify();
        self.exchange(&mut tls_stream);
        self.part(tls_stream.talk);
    }
}
