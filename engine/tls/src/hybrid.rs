//! X25519MLKEM768: a key exchange that is secure as long as one of its two parts is secure
//! (draft-ietf-tls-ecdhe-mlkem).
//!
//! An attacker may record traffic today, and decrypt it with a quantum computer later if X25519
//! alone protects it. So a client sends a key of ML-KEM-768 and a point of X25519. The server
//! answers with a secret that is encrypted (encapsulated) for the key, and with its own point. The
//! encapsulated secret and the secret of X25519 together are the secret of the handshake. In each
//! of these pairs, the part of ML-KEM comes first. As a client we also send the point alone, for
//! servers that support only X25519.
//!
//! As a server, we let the client choose the group: rustls takes the first group of the client's
//! list that we support. If the client has sent a share of that group, no further round trip is
//! needed. Otherwise we ask the client for a share of the group. This costs a round trip, but the
//! group that the client prefers gives longer protection.
//!
//! Invariants:
//! - The group is used only in TLS 1.3.
//! - A key that FIPS 203 section 7.2 does not allow is rejected. A share of a wrong length is
//!   rejected too.
//! - The encapsulated secret and the key of a client come from the random numbers of the machine,
//!   which are also the source of ring's keys.

use alloc::boxed::Box;
use alloc::vec::Vec;

use ml_kem::ml_kem_768::{DecapsulationKey, EncapsulationKey};
use ml_kem::{Ciphertext, Decapsulate, Key, KeyExport, MlKem768, SharedKey};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::crypto::ring::kx_group::X25519;
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

/// The size of a client's key of ML-KEM-768, which precedes the client's point.
const KEY_BYTES: usize = 1184;

/// The size of the ciphertext, which precedes the server's point.
const CIPHERTEXT_BYTES: usize = 1088;

/// The number of random bytes for a client's key.
const SEED_BYTES: usize = 64;

/// The number of random bytes for an encapsulated secret.
const MESSAGE_BYTES: usize = 32;

/// The group X25519MLKEM768, for clients and servers.
pub(crate) static X25519_MLKEM768: &dyn SupportedKxGroup = &Hybrid;

#[derive(Debug)]
struct Hybrid;

impl SupportedKxGroup for Hybrid {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut seed = [0; SEED_BYTES];
        SystemRandom::new().fill(&mut seed).map_err(|_| Error::FailedToGetRandomBytes)?;
        let key = DecapsulationKey::from_seed(seed.into());
        let point = X25519.start()?;
        let share = [key.encapsulation_key().to_bytes().as_slice(), point.pub_key()].concat();
        Ok(Box::new(HybridKeyExchange { key, point, share }))
    }

    fn start_and_complete(&self, share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (key, point) =
            share.split_at_checked(KEY_BYTES).ok_or(PeerMisbehaved::InvalidKeyShare)?;
        let (ciphertext, secret) = encapsulate(key)?;
        let curve = X25519.start_and_complete(point)?;
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: [ciphertext.as_slice(), &curve.pub_key].concat(),
            secret: SharedSecret::from([secret.as_slice(), curve.secret.secret_bytes()].concat()),
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

/// The state of a client that has sent its share, until the server answers.
struct HybridKeyExchange {
    key: DecapsulationKey,
    point: Box<dyn ActiveKeyExchange>,
    share: Vec<u8>,
}

impl ActiveKeyExchange for HybridKeyExchange {
    fn complete(self: Box<Self>, answer: &[u8]) -> Result<SharedSecret, Error> {
        let (ciphertext, point) =
            answer.split_at_checked(CIPHERTEXT_BYTES).ok_or(PeerMisbehaved::InvalidKeyShare)?;
        let ciphertext = Ciphertext::<MlKem768>::try_from(ciphertext)
            .map_err(|_| PeerMisbehaved::InvalidKeyShare)?;
        let secret = self.key.decapsulate(&ciphertext);
        let curve = self.point.complete(point)?;
        Ok(SharedSecret::from([secret.as_slice(), curve.secret_bytes()].concat()))
    }

    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.point.group(), self.point.pub_key()))
    }

    fn complete_hybrid_component(self: Box<Self>, point: &[u8]) -> Result<SharedSecret, Error> {
        self.point.complete(point)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

/// Makes a new secret for the owner of the public key `key`. Returns the ciphertext of the secret,
/// and the secret.
///
/// Errors: the key is invalid, or the machine has no random numbers.
fn encapsulate(key: &[u8]) -> Result<(Ciphertext<MlKem768>, SharedKey), Error> {
    let key =
        Key::<EncapsulationKey>::try_from(key).map_err(|_| PeerMisbehaved::InvalidKeyShare)?;
    let key = EncapsulationKey::new(&key).map_err(|_| PeerMisbehaved::InvalidKeyShare)?;
    let mut message = [0; MESSAGE_BYTES];
    SystemRandom::new().fill(&mut message).map_err(|_| Error::FailedToGetRandomBytes)?;
    Ok(key.encapsulate_deterministic(&message.into()))
}
