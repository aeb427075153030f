//! Tests of TLS on the bare machine. They cover the libraries' vector code, their detection of the
//! processor's features, and their requests for randomness.
//!
//! The client is rustls' own, in the same memory.

use super::{Outcome, Test, ensure};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use bare::BareMachine;
use machine::{Machine, UnixTime};
use rustls::client::UnbufferedClientConnection;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::unbuffered::ConnectionState;
use rustls::{ClientConfig, RootCertStore, SupportedCipherSuite};
use rustls_pki_types::pem::PemObject;
use tls::{Certificate, Clock, Connection, FLIGHT_BYTES_MAX, Offer, TlsEvent, TlsSettings};

pub(super) const TESTS: [Test; 1] =
    [("TLS works with each suite, in both directions", |machine| shake(machine, 1))];

const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.pem");
const KEY: &[u8] = include_bytes!("tls/key.pem");
/// A time at which the certificate is valid.
const NOW: UnixTime = UnixTime::from_seconds(1_800_000_000);
const OFFER: Offer<'static> = Offer { name: "selftest", protocols: &[], tickets: None };

const QUESTION: &[u8] = b"ping";
const ANSWER: [u8; 3000] = [b'x'; 3000];

/// Runs a handshake with each suite. No two handshakes may have the same first bytes of the server,
/// which contain random bytes.
pub(super) fn shake(machine: &mut BareMachine, _: usize) -> Outcome {
    let clock = Clock::default();
    clock.set(NOW);
    let certificate =
        Certificate::parse(CERTIFICATE, KEY).map_err(|_| "the certificate is rejected")?;
    ensure(certificate.check(NOW).is_ok(), "the certificate is not valid")?;
    let settings = TlsSettings::new(vec![certificate], &clock, &OFFER)
        .map_err(|_| "the settings are rejected")?;
    let mut suites = 0;
    let mut hellos = Vec::new();
    for suite in ring::default_provider().cipher_suites {
        // Half of the suites of TLS 1.2 are for RSA, and the certificate has no RSA key.
        let Some(mut client) = client(suite, &clock) else { continue };
        let Ok((ticks, hello)) = talk(&mut client, &settings) else { continue };
        suites += 1;
        ensure(!hellos.contains(&hello), "a server's hello was the same twice")?;
        hellos.push(hello);
        machine.print(format_args!(
            "{ticks} ticks for the server's side of a handshake with {:?}",
            suite.suite()
        ));
    }
    ensure(suites == 6, "a handshake failed with some suite")
}

fn client(suite: SupportedCipherSuite, clock: &Clock) -> Option<UnbufferedClientConnection> {
    let mut provider = ring::default_provider();
    provider.cipher_suites = vec![suite];
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CERTIFICATE).ok()?).ok()?;
    let config = ClientConfig::builder_with_details(Arc::new(provider), Arc::new(clock.clone()));
    let config =
        config.with_protocol_versions(&[suite.version()]).ok()?.with_root_certificates(roots);
    UnbufferedClientConnection::new(
        Arc::new(config.with_no_client_auth()),
        ServerName::try_from("bare.test").ok()?,
    )
    .ok()
}

/// Runs one connection, from its first byte to the answer. Returns the ticks of the server's steps,
/// and the server's first bytes.
fn talk(
    client: &mut UnbufferedClientConnection,
    settings: &TlsSettings,
) -> Result<(u64, Vec<u8>), &'static str> {
    let mut server = Connection::accept(settings).map_err(|_| "no connection")?;
    let (mut to_client, mut to_server, mut hello) = (Vec::new(), Vec::new(), Vec::new());
    let (mut out, mut ticks, mut has_asked) = (vec![0; FLIGHT_BYTES_MAX], 0, false);
    for _ in 0..20 {
        if client_acts(client, &mut to_client, &mut to_server, &mut has_asked)? {
            return Ok((ticks, hello));
        }
        loop {
            let start = super::costs::ticks();
            let mut progress = server.receive(&mut to_server, &mut out);
            if progress.event == TlsEvent::Work {
                progress = server.work(&mut to_server, &mut out);
                ticks += super::costs::ticks() - start;
            }
            to_server.drain(..progress.done);
            to_client.extend(out.iter().take(progress.written));
            match progress.event {
                TlsEvent::Bytes => break,
                TlsEvent::Nothing | TlsEvent::Established(_) => {}
                TlsEvent::Plaintext(count) => {
                    ensure(
                        to_server.get(..count) == Some(QUESTION),
                        "the question is not the one that was asked",
                    )?;
                    to_server.drain(..server.taken(count));
                    let sealed = server.encrypt(&ANSWER, &mut out);
                    ensure(sealed.taken == ANSWER.len(), "the answer does not fit")?;
                    to_client.extend(out.iter().take(sealed.written));
                }
                _ => return Err("the server gave up"),
            }
        }
        if hello.is_empty() {
            hello.clone_from(&to_client);
        }
    }
    Err("the exchange never ended")
}

/// Lets the client act. Returns whether it has its answer.
fn client_acts(
    client: &mut UnbufferedClientConnection,
    received: &mut Vec<u8>,
    sent: &mut Vec<u8>,
    has_asked: &mut bool,
) -> Result<bool, &'static str> {
    let mut block = vec![0; FLIGHT_BYTES_MAX];
    loop {
        let status = client.process_tls_records(received);
        let discard = status.discard;
        let mut is_waiting = false;
        match status.state.map_err(|_| "the client gave up")? {
            ConnectionState::EncodeTlsData(mut data) => {
                let written =
                    data.encode(&mut block).map_err(|_| "no space for the client's flight")?;
                sent.extend(block.iter().take(written));
            }
            ConnectionState::TransmitTlsData(data) => data.done(),
            ConnectionState::WriteTraffic(mut traffic) if !*has_asked => {
                let written = traffic
                    .encrypt(QUESTION, &mut block)
                    .map_err(|_| "no space for the question")?;
                sent.extend(block.iter().take(written));
                *has_asked = true;
            }
            ConnectionState::ReadTraffic(mut traffic) => {
                let record = traffic
                    .next_record()
                    .ok_or("no record")?
                    .map_err(|_| "the answer cannot be read")?;
                return ensure(record.payload == ANSWER, "the answer has other bytes")
                    .map(|()| true);
            }
            _ => is_waiting = true,
        }
        received.drain(..discard);
        if is_waiting {
            return Ok(false);
        }
    }
}
