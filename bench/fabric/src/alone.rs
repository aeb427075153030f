//! The speed of the TLS libraries alone: rustls and ring without a machine, on the same processor.
//!
//! Only the server's part of a handshake is timed.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ServerConfig;
use rustls::{ClientConnection, HandshakeKind, ServerConnection};

use crate::measure::stay_on_first;
use crate::trusting::{NAME, Tickets, identity, settings};

/// The duration of each measurement.
const SPAN: Duration = Duration::from_millis(700);
/// The number of repetitions. The best one counts, since other load only makes a result worse.
const REPETITIONS: usize = 3;
/// The untimed runs before a measurement.
const WARM: u32 = 20;
/// The size of the encrypted text. Like the pages of a site, it exceeds the first-level cache.
const TEXT_BYTES: usize = 1 << 20;

/// The speed of the libraries.
#[derive(Clone, Copy, Debug)]
pub struct Alone {
    /// Full handshakes a second, by rustls with ring.
    pub full: f64,
    /// Resumed handshakes a second, by rustls with ring.
    pub resumed: f64,
    /// The mean duration of a full handshake's longest step: from the client's first message to the
    /// server's answer.
    pub step: Duration,
    /// The key operations of a handshake by ring, in rounds a second. A round makes a key, agrees
    /// on a secret (X25519), and signs with another key (ECDSA P-256).
    pub keys: f64,
    /// Bytes a second that ring encrypts in place with AES-128-GCM, in records of 4,000 bytes.
    pub sealed: f64,
    /// Bytes a second that ring encrypts in the same way in records of 16 KB.
    pub sealed_in_long_records: f64,
}

/// Measures the libraries, in a thread that stays on the first processor.
///
/// Errors: the text of the library's error.
pub fn alone() -> Result<Alone, String> {
    let measuring = std::thread::spawn(|| {
        stay_on_first()?;
        let identity = identity()?;
        let mut best = Alone {
            full: 0.0,
            resumed: 0.0,
            step: Duration::MAX,
            keys: 0.0,
            sealed: 0.0,
            sealed_in_long_records: 0.0,
        };
        for _ in 0..REPETITIONS {
            let (full, step) = handshakes(&identity, HandshakeKind::Full)?;
            best.full = best.full.max(full);
            best.step = best.step.min(step);
            best.resumed = best.resumed.max(handshakes(&identity, HandshakeKind::Resumed)?.0);
            best.keys = best.keys.max(keys().ok_or("ring signs nothing")?);
            best.sealed = best.sealed.max(sealed(4_000).ok_or("ring seals nothing")?);
            best.sealed_in_long_records =
                best.sealed_in_long_records.max(sealed(16 << 10).ok_or("ring seals nothing")?);
        }
        Ok(best)
    });
    measuring.join().map_err(|_| "the measurement panicked")?
}

/// Measures handshakes of one kind. Returns their number for each second of the server's time, and
/// the mean duration of the server's longest step.
fn handshakes(
    (certificate, key): &(String, String),
    kind: HandshakeKind,
) -> Result<(f64, Duration), String> {
    let tickets = if kind == HandshakeKind::Resumed { Tickets::Kept } else { Tickets::Forgotten };
    let client = settings(&["http/1.1"], tickets)?;
    let server = serving(certificate, key)?;
    let (mut spent, mut longest, mut done) = (Duration::ZERO, Duration::ZERO, 0_u32);
    let mut before = 0;
    let began = Instant::now();
    while began.elapsed() < SPAN {
        let name = ServerName::try_from(NAME).map_err(|error| error.to_string())?;
        let client =
            ClientConnection::new(Arc::clone(&client), name).map_err(|error| error.to_string())?;
        let (had, step, whole) = handshake(client, &server).map_err(|error| error.to_string())?;
        before += 1;
        if had == Some(kind) && before > WARM {
            (spent, longest, done) = (spent + whole, longest + step, done + 1);
        }
    }
    if done == 0 {
        return Err(format!("no handshake was {kind:?}"));
    }
    Ok((f64::from(done) / spent.as_secs_f64(), longest / done))
}

fn serving(certificate: &str, key: &str) -> Result<Arc<ServerConfig>, String> {
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes())
        .map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| error.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13]);
    let builder = builder.map_err(|error| error.to_string())?.with_no_client_auth();
    let mut config =
        builder.with_single_cert(vec![certificate], key).map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(|error| error.to_string())?;
    Ok(Arc::new(config))
}

/// Does a handshake. Returns the kind of the handshake, the duration of the server's longest step,
/// and the duration of all steps of the server. The kind is `None` if the handshake is incomplete.
fn handshake(
    mut client: ClientConnection,
    config: &Arc<ServerConfig>,
) -> Result<(Option<HandshakeKind>, Duration, Duration), rustls::Error> {
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let (mut longest, mut spent) = (Duration::ZERO, Duration::ZERO);
    let began = Instant::now();
    let mut server = ServerConnection::new(Arc::clone(config))?;
    spent += began.elapsed();
    for _ in 0..2 {
        write_all(|words| client.write_tls(words), &mut to_server);
        let began = Instant::now();
        read_all(|bytes| server.read_tls(bytes), &mut to_server);
        server.process_new_packets()?;
        write_all(|words| server.write_tls(words), &mut to_client);
        let took = began.elapsed();
        longest = longest.max(took);
        spent += took;
        read_all(|bytes| client.read_tls(bytes), &mut to_client);
        client.process_new_packets()?;
    }
    Ok((client.handshake_kind().filter(|_| !server.is_handshaking()), longest, spent))
}

fn write_all(mut write: impl FnMut(&mut dyn Write) -> std::io::Result<usize>, into: &mut Vec<u8>) {
    while write(into).is_ok_and(|count| count > 0) {}
}

fn read_all(
    mut read: impl FnMut(&mut dyn std::io::Read) -> std::io::Result<usize>,
    from: &mut Vec<u8>,
) {
    let mut rest = from.as_slice();
    while !rest.is_empty() && read(&mut rest).is_ok() {}
    from.clear();
}

/// Repeats the key operations of a handshake. Returns the number of rounds a second.
fn keys() -> Option<f64> {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).ok()?;
    let signer =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref(), &random)
            .ok()?;
    let peers = EphemeralPrivateKey::generate(&X25519, &random).ok()?.compute_public_key().ok()?;
    let (began, mut done) = (Instant::now(), 0_u32);
    while began.elapsed() < SPAN {
        let own = EphemeralPrivateKey::generate(&X25519, &random).ok()?;
        own.compute_public_key().ok()?;
        let peer = UnparsedPublicKey::new(&X25519, peers.as_ref());
        let secret = agree_ephemeral(own, &peer, |secret| secret.first().copied()).ok()??;
        signer.sign(&random, &[secret; 130]).ok()?;
        done += 1;
    }
    Some(f64::from(done) / began.elapsed().as_secs_f64())
}

/// Encrypts a text in place, one record after another. Returns the number of bytes a second.
fn sealed(record_bytes: usize) -> Option<f64> {
    let mut text: Vec<u8> =
        (0..TEXT_BYTES as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[7; 16]).ok()?);
    let (began, mut done, mut number) = (Instant::now(), 0_u64, 0_u64);
    while began.elapsed() < SPAN {
        for part in text.chunks_mut(record_bytes) {
            let mut nonce = [0; NONCE_LEN];
            nonce.last_chunk_mut::<8>()?.copy_from_slice(&number.to_be_bytes());
            number += 1;
            let tag = key.seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from([0; 5]),
                part,
            );
            let _ = std::hint::black_box(tag.ok()?);
            done += part.len() as u64;
        }
    }
    Some(done as f64 / began.elapsed().as_secs_f64())
}
