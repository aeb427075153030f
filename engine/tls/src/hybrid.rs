//! X25519MLKEM768: a key exchange that holds as long as either of its halves does (draft-ietf-tls-ecdhe-mlkem).
//!
//! Who listens today and has a quantum computer one day opens what X25519 alone has protected. So clients send a key of ML-KEM-768 beside a point of X25519, we answer with a secret
//! that is encapsulated to the one and with a point of ours, and both secrets together are that of the handshake. In each place ML-KEM comes first. Where we are the client it is the other way round; and the point is
//! sent alone too, for servers that know no more.
//!
//! Which group is spoken the client decides: rustls takes the first of his list that is known here. Who has sent a share of it is not asked again; who has sent shares of others alone is,
//! since what he likes best protects him longer.
//!
//! Invariants:
//! - It is spoken in TLS 1.3 alone.
//! - A key that FIPS 203 does not allow (section 7.2) is refused, and so is a share of another length.
//! - The secret that is encapsulated, and the key of a client, come from the machine's randomness, as ring's keys do.

use alloc::boxed::Box;
use alloc::vec::Vec;

use ml_kem::ml_kem_768::{DecapsulationKey, EncapsulationKey};
use ml_kem::{Ciphertext, Decapsulate, Key, KeyExport, MlKem768, SharedKey};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::crypto::ring::kx_group::X25519;
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

/// Bytes of a client's key of ML-KEM-768: what comes before his point.
const KEY_BYTES: usize = 1184;

/// Bytes of what is encapsulated to it: what comes before a server's point.
const CIPHERTEXT_BYTES: usize = 1088;

/// Bytes of the randomness that such a key is made of.
const SEED_BYTES: usize = 64;

/// Bytes of the randomness from which a secret is encapsulated.
const MESSAGE_BYTES: usize = 32;

/// Either half of X25519MLKEM768.
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
        Ok(Box::new(Begun { key, point, share }))
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

/// What a client has sent, and is to be answered.
struct Begun {
    key: DecapsulationKey,
    point: Box<dyn ActiveKeyExchange>,
    share: Vec<u8>,
}

impl ActiveKeyExchange for Begun {
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

/// A new secret for who has this key, and how he learns it: the ciphertext comes first.
///
/// Errors: it is no key, or the machine has no randomness.
fn encapsulate(key: &[u8]) -> Result<(Ciphertext<MlKem768>, SharedKey), Error> {
    let key =
        Key::<EncapsulationKey>::try_from(key).map_err(|_| PeerMisbehaved::InvalidKeyShare)?;
    let key = EncapsulationKey::new(&key).map_err(|_| PeerMisbehaved::InvalidKeyShare)?;
    let mut message = [0; MESSAGE_BYTES];
    SystemRandom::new().fill(&mut message).map_err(|_| Error::FailedToGetRandomBytes)?;
    Ok(key.encapsulate_deterministic(&message.into()))
}
