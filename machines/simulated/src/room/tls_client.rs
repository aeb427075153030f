//! TLS at the client's end of a connection: rustls, with randomness from the room's dice.
//!
//! The TLS client works between a client and its TCP connection. It may have a fault: it damages
//! one of its own records before TCP computes the checksum, or it stops in the middle of its
//! handshake.
//!
//! Invariants:
//! - A client without a fault never sees a TLS error from the machine.
//! - After a damaged record the client sends nothing.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chance::Dice;
use machine::{Instant, Micros};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS12;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tls::Certificate;

use super::approach::Approach;
use super::fixture::{HOSTNAME, STARTED_SECONDS};

/// The length of a TLS record header, in bytes.
const HEAD_BYTES: usize = 5;
/// A machine that can begin no more handshakes may end a handshake that makes no progress, but only
/// one that has already taken this long.
const HANDSHAKE_AT_LEAST: Micros = Micros::from_secs(1);
/// The most sessions that a host can resume, for each port and choice of versions.
const TICKETS: usize = 8;

/// A fault in a client's own records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TlsFault {
    None,
    /// A bit of the record with this number flips, and the client sends nothing after that record.
    Damages {
        record: u64,
    },
    /// The client sends only `thousandths` / 1,000 of the handshake flight with this number, and
    /// then nothing.
    Stops {
        flight: u64,
        thousandths: usize,
    },
}

impl TlsFault {
    /// `damage`, `stopping`: chances in 10,000.
    pub(super) fn draw(damage: u64, stopping: u64, dice: &mut Dice) -> TlsFault {
        if dice.happens(damage) {
            TlsFault::Damages { record: dice.below(12) }
        } else if dice.happens(stopping) {
            TlsFault::Stops { flight: dice.below(2), thousandths: dice.below(1000) as usize }
        } else {
            TlsFault::None
        }
    }
}

/// The TLS version of a client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Versions {
    /// TLS 1.2, and no other version.
    Tls12Only,
    All,
}

/// The TLS sessions of a host's clients. Each configuration is for one port and one choice of
/// versions, and has the tickets that clients got with them.
#[derive(Default)]
pub(super) struct SessionCache(BTreeMap<(u16, Versions), ClientConfig>);

impl SessionCache {
    /// The configuration of a client that offers these ALPN protocols.
    fn settings(&mut self, port: u16, protocols: &[&str], dice: &mut Dice) -> ClientConfig {
        let versions = if dice.one_in(3) { Versions::Tls12Only } else { Versions::All };
        let mut settings =
            self.0.entry((port, versions)).or_insert_with(|| settings(versions)).clone();
        settings.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        settings
    }
}

/// One client's TLS.
pub(super) struct TlsClient {
    tls: ClientConnection,
    fault: TlsFault,
    has_fault_happened: bool,
    began: Option<Instant>,
    /// The number of records and of handshake flights that rustls has encrypted.
    records: u64,
    flights: u64,
    /// The bytes of the records that are sent next.
    pub(super) output: Vec<u8>,
    has_heard: bool,
    is_over: bool,
}

impl TlsClient {
    /// The TLS of a client that connects as `approach` says.
    pub(super) fn new(
        sessions: &mut SessionCache,
        approach: Approach,
        fault: TlsFault,
        dice: &mut Dice,
    ) -> TlsClient {
        let settings = sessions.settings(approach.port, approach.protocols, dice);
        chance::seed(dice.roll());
        let name = ServerName::try_from(HOSTNAME).expect("the hostname is a valid name");
        TlsClient {
            tls: ClientConnection::new(Arc::new(settings), name).expect("the settings are right"),
            fault,
            has_fault_happened: false,
            began: None,
            records: 0,
            flights: 0,
            output: Vec::new(),
            has_heard: false,
            is_over: false,
        }
    }

    /// Notes when the handshake starts.
    pub(super) fn begin(&mut self, now: Instant) {
        self.began = Some(now);
    }

    /// Encrypts some of `text`. Returns the number of bytes that will arrive undamaged, and the
    /// number that will not.
    pub(super) fn encrypt(&mut self, text: &[u8], dice: &mut Dice) -> (usize, usize) {
        chance::seed(dice.roll());
        self.flush(dice);
        // A client with a fault encrypts no data before the end of the handshake. Then the data of
        // each call is one record, which arrives undamaged or not at all.
        let waits = self.fault != TlsFault::None && self.tls.is_handshaking();
        if waits || self.has_fault_happened || self.is_over {
            return (0, 0);
        }
        let text = text.get(..16_000).unwrap_or(text);
        let taken = self.tls.writer().write(text).expect("I/O in memory cannot fail");
        self.flush(dice);
        if self.has_fault_happened { (0, taken) } else { (taken, 0) }
    }

    /// Decrypts bytes that have arrived, and appends the plaintext to `heard`.
    pub(super) fn hear(&mut self, bytes: &[u8], heard: &mut Vec<u8>, dice: &mut Dice) {
        chance::seed(dice.roll());
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_over {
            if self.tls.read_tls(&mut rest).expect("I/O in memory cannot fail") == 0 {
                return;
            }
            let result = self.tls.process_new_packets();
            let before = heard.len();
            match self.tls.reader().read_to_end(heard) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
                _ => self.has_heard |= heard.len() > before,
            }
            if let Err(error) = result {
                assert!(self.has_fault_happened, "the machine's TLS is wrong: {error}");
                self.is_over = true;
            }
        }
        self.flush(dice);
    }

    /// Sends a close_notify alert.
    pub(super) fn close(&mut self, dice: &mut Dice) {
        chance::seed(dice.roll());
        self.tls.send_close_notify();
        self.flush(dice);
    }

    /// Whether the TLS connection has failed.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether any plaintext has arrived.
    pub(super) fn has_heard(&self) -> bool {
        self.has_heard
    }

    /// Whether the machine may have a reason to reset the connection. A full server drops a
    /// handshake at its start, and may close one that takes long.
    pub(super) fn may_be_reset(&self, now: Instant) -> bool {
        let is_late = self.began.is_some_and(|began| now.since(began) >= HANDSHAKE_AT_LEAST);
        !self.has_heard && (is_late || self.flights <= 1)
    }

    /// Takes the records that rustls has to send, and applies the fault to them.
    fn flush(&mut self, dice: &mut Dice) {
        let start = self.output.len();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.output).expect("I/O in memory cannot fail");
        }
        let mut records_sent = self.output.split_off(start);
        if records_sent.is_empty() {
            return;
        }
        match self.fault {
            TlsFault::None => {}
            TlsFault::Damages { record } => self.damage(&mut records_sent, record, dice),
            TlsFault::Stops { flight, thousandths } => {
                if self.has_fault_happened {
                    records_sent.clear();
                } else if flight == self.flights {
                    records_sent.truncate(records_sent.len() * thousandths / 1000);
                    self.has_fault_happened = true;
                }
            }
        }
        self.flights += 1;
        self.output.append(&mut records_sent);
    }

    /// Flips a bit in the body of the record with this number. The header stays intact. With a
    /// wrong length the machine would wait for more bytes.
    fn damage(&mut self, records_sent: &mut [u8], wanted: u64, dice: &mut Dice) {
        let mut rest = records_sent;
        while let Some([_, _, _, high, low]) = rest.first_chunk::<HEAD_BYTES>().copied() {
            let (record, behind) =
                rest.split_at_mut(HEAD_BYTES + usize::from(u16::from_be_bytes([high, low])));
            if self.records == wanted && !self.has_fault_happened {
                let at = HEAD_BYTES + dice.below((record.len() - HEAD_BYTES) as u64) as usize;
                record[at] ^= 1 << dice.below(8);
                self.has_fault_happened = true;
            }
            self.records += 1;
            rest = behind;
        }
    }
}

/// The certificate of all machines with its key, and the same certificate as the authority that
/// clients trust.
fn trust() -> &'static (Certificate, CertificateDer<'static>) {
    static TRUST: OnceLock<(Certificate, CertificateDer<'static>)> = OnceLock::new();
    TRUST.get_or_init(|| {
        chance::seed(1);
        let key =
            KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key can be generated");
        let mut parameters =
            CertificateParams::new([HOSTNAME.to_string()]).expect("the hostname is a valid name");
        (parameters.not_before, parameters.not_after) =
            (date_time_ymd(2025, 1, 1), date_time_ymd(2125, 1, 1));
        let made = parameters.self_signed(&key).expect("the certificate can be signed");
        let certificate = Certificate::parse(made.pem().as_bytes(), key.serialize_pem().as_bytes());
        (
            certificate.expect("the key belongs to the certificate"),
            CertificateDer::from_pem_slice(made.pem().as_bytes())
                .expect("the certificate is valid"),
        )
    })
}

/// The certificates that machines present.
pub(super) fn certificates() -> Vec<Certificate> {
    vec![trust().0.clone()]
}

fn settings(versions: Versions) -> ClientConfig {
    let versions =
        if versions == Versions::Tls12Only { &[&TLS12][..] } else { rustls::DEFAULT_VERSIONS };
    let mut roots = RootCertStore::empty();
    roots.add(trust().1.clone()).expect("the root is a valid certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_details(provider, Arc::new(FixedClock));
    let builder = builder.with_protocol_versions(versions).expect("the versions are supported");
    let mut settings = builder.with_root_certificates(roots).with_no_client_auth();
    settings.resumption = Resumption::in_memory_sessions(TICKETS);
    settings
}

/// A clock that always shows the same time. Only the machines' clocks jump, and the machines decide
/// whether tickets are valid.
#[derive(Debug)]
struct FixedClock;

impl TimeProvider for FixedClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(STARTED_SECONDS)))
    }
}
