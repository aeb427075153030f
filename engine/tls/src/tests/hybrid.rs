//! Tests of X25519MLKEM768 with a client that uses another implementation of ML-KEM: `fips203`.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use fips203::ml_kem_768::{CipherText, DecapsKey, KG};
use fips203::traits::{Decaps, KeyGen, SerDes};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::crypto::ring::kx_group::{SECP256R1, X25519};
use rustls::crypto::{ActiveKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::{Error, HandshakeKind, NamedGroup, PeerMisbehaved, ProtocolVersion};

use super::world::{BOTH, PLAIN, Pems, TestConnection, TestServer, pems_p256, provider, seed};
use crate::{CHAIN_BYTES_MAX, TlsEvent};

const KEY_BYTES: usize = 1184;
const CIPHERTEXT_BYTES: usize = 1088;

/// The group X25519MLKEM768 of the client.
#[derive(Debug)]
struct Client {
    /// Changes the share of the client before it is sent.
    spoil: fn(&mut Vec<u8>),
    /// The versions for which the client offers the group.
    versions: &'static [ProtocolVersion],
}

/// The group of a normal client.
pub(super) static HYBRID: &dyn SupportedKxGroup =
    &Client { spoil: |_| {}, versions: &[ProtocolVersion::TLSv1_3] };

impl SupportedKxGroup for Client {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut seeds = [[0; 32]; 2];
        seeds.iter_mut().for_each(|seed| SystemRandom::new().fill(seed).unwrap());
        let (key, secret) = KG::keygen_from_seed(seeds[0], seeds[1]);
        let point = X25519.start()?;
        let mut share = [key.into_bytes().as_slice(), point.pub_key()].concat();
        (self.spoil)(&mut share);
        Ok(Box::new(ClientKeyExchange { secret, point, share }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        self.versions.contains(&version)
    }
}

struct ClientKeyExchange {
    secret: DecapsKey,
    point: Box<dyn ActiveKeyExchange>,
    share: Vec<u8>,
}

impl ActiveKeyExchange for ClientKeyExchange {
    fn complete(self: Box<Self>, answer: &[u8]) -> Result<SharedSecret, Error> {
        assert_eq!(answer.len(), CIPHERTEXT_BYTES + 32);
        let (ciphertext, point) = answer.split_at(CIPHERTEXT_BYTES);
        let ciphertext = CipherText::try_from_bytes(ciphertext.try_into().unwrap()).unwrap();
        let lattice = self.secret.try_decaps(&ciphertext).unwrap().into_bytes();
        let curve = self.point.complete(point)?;
        Ok(SharedSecret::from([lattice.as_slice(), curve.secret_bytes()].concat()))
    }

    /// As browsers do, the client also sends a share of X25519 if it supports X25519.
    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((NamedGroup::X25519, self.point.pub_key()))
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

/// A connection of a client with these groups to our server. The preferred group is the first.
fn client_of(groups: &[&'static dyn SupportedKxGroup], pems: Pems) -> TestConnection {
    let mut provider = provider();
    provider.kx_groups = groups.to_vec();
    TestServer::with(&[pems], &PLAIN, provider, BOTH).connect("mail.test")
}

/// The result of a handshake between a client with these groups and our server.
fn agreed(groups: &[&'static dyn SupportedKxGroup]) -> (Option<NamedGroup>, Option<HandshakeKind>) {
    let mut connection = client_of(groups, pems_p256("mail.test"));
    connection.established();
    connection.client_says(b"hello");
    connection.settle(usize::MAX).unwrap();
    assert_eq!(connection.plaintext, b"hello");
    (
        connection.client.negotiated_key_exchange_group().map(|group| group.name()),
        connection.client.handshake_kind(),
    )
}

#[test]
fn a_preferred_hybrid_group_needs_no_retry() {
    seed(90);
    let at_once = Some(HandshakeKind::Full);
    assert_eq!(agreed(&[HYBRID]), (Some(NamedGroup::X25519MLKEM768), at_once));
    assert_eq!(agreed(&[HYBRID, X25519, SECP256R1]), (Some(NamedGroup::X25519MLKEM768), at_once));
}

#[test]
fn another_preferred_group_needs_no_retry() {
    seed(91);
    let at_once = Some(HandshakeKind::Full);
    assert_eq!(agreed(&[X25519, HYBRID]), (Some(NamedGroup::X25519), at_once));
    assert_eq!(agreed(&[SECP256R1, HYBRID, X25519]), (Some(NamedGroup::secp256r1), at_once));
}

#[test]
fn the_hybrid_group_is_not_used_in_tls_1_2() {
    seed(92);
    let mut provider = provider();
    let named = Client { spoil: |_| {}, versions: &[ProtocolVersion::TLSv1_2] };
    provider.kx_groups = vec![Box::leak(Box::new(named)), X25519];
    let server =
        TestServer::with(&[pems_p256("mail.test")], &PLAIN, provider, &[&rustls::version::TLS12]);
    let mut connection = server.connect("mail.test");
    connection.established();
    assert_eq!(
        connection.client.negotiated_key_exchange_group().map(|group| group.name()),
        Some(NamedGroup::X25519)
    );
}

#[test]
fn an_invalid_hybrid_share_is_rejected() {
    seed(93);
    // The changes are: a 12-bit number that is not below 3329; a point of small order; one byte is
    // missing; one byte too many; half a share; almost no share.
    let broken: [fn(&mut Vec<u8>); 6] = [
        |share| share[..2].fill(0xff),
        |share| share[KEY_BYTES..].fill(0),
        |share| share.truncate(KEY_BYTES + 31),
        |share| share.push(0),
        |share| share.truncate(KEY_BYTES),
        |share| share.truncate(1),
    ];
    for (which, spoil) in broken.into_iter().enumerate() {
        let client = Client { spoil, versions: &[ProtocolVersion::TLSv1_3] };
        let mut connection = client_of(&[Box::leak(Box::new(client))], pems_p256("mail.test"));
        let error = connection.settle(usize::MAX).unwrap_err();
        assert_eq!(
            error,
            Error::AlertReceived(rustls::AlertDescription::IllegalParameter),
            "{which}"
        );
        let misbehaved = crate::Failure::Handshake(PeerMisbehaved::InvalidKeyShare.into());
        assert_eq!(connection.events, [TlsEvent::Failed(misbehaved)], "{which}");
    }
}

#[test]
fn a_hybrid_answer_fits_with_the_longest_chain() {
    seed(94);
    let mut pems = pems_p256("mail.test");
    let one = pems.certificate.clone();
    // The limit is on certificates in binary form, which are shorter than in PEM. So the loop adds
    // certificates until one more would be too long.
    while crate::Certificate::parse(
        (pems.certificate.clone() + &one).as_bytes(),
        pems.key.as_bytes(),
    )
    .is_ok()
    {
        pems.certificate += &one;
    }
    let mut connection = client_of(&[HYBRID], pems);
    let hello = connection.client_bytes();
    assert!(hello.len() > KEY_BYTES);
    for segment in hello.chunks(536) {
        connection.arrive(segment);
    }
    let flight = connection.to_client.len();
    assert!(flight > CHAIN_BYTES_MAX + CIPHERTEXT_BYTES, "{flight}");
    connection.established();
    assert_eq!(
        connection.client.negotiated_key_exchange_group().map(|group| group.name()),
        Some(NamedGroup::X25519MLKEM768)
    );
}
