//! Tests with servers that must match published TLSA records.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use std::string::{String, ToString};

use machine::UnixTime;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PublicKeyData,
    date_time_ymd,
};
use ring::digest::{SHA256, SHA512, digest};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, SupportedProtocolVersion};

use super::client::Call;
use super::world::{BOTH, TODAY, provider, seed};
use crate::{CertificateFault, ClientSettings, Clock, Failure, Published, TlsEvent};

const HOST: &str = "mx.test";
const DOMAIN: &str = "mail-for.test";

/// A certificate, its key, and the bytes of its public key.
pub(super) struct Made {
    certificate: CertificateDer<'static>,
    pub(super) pem: String,
    key: KeyPair,
    public: Vec<u8>,
    parameters: CertificateParams,
}

pub(super) fn made(
    name: &str,
    years: Range<i32>,
    authority: Option<&Made>,
    is_authority: bool,
) -> Made {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let mut parameters = CertificateParams::new(vec![name.to_string()]).unwrap();
    parameters.distinguished_name.push(DnType::CommonName, name);
    (parameters.not_before, parameters.not_after) =
        (date_time_ymd(years.start, 1, 1), date_time_ymd(years.end, 1, 1));
    if is_authority {
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let certificate = match authority {
        None => parameters.self_signed(&key).unwrap(),
        Some(authority) => {
            let issuer = Issuer::from_params(&authority.parameters, &authority.key);
            parameters.signed_by(&key, &issuer).unwrap()
        }
    };
    Made {
        certificate: certificate.der().clone(),
        pem: certificate.pem(),
        public: key.subject_public_key_info(),
        key,
        parameters,
    }
}

pub(super) fn server(chain: &[&Made], version: &'static SupportedProtocolVersion) -> ServerConfig {
    let certificates = chain.iter().map(|made| made.certificate.clone()).collect();
    let key = PrivateKeyDer::try_from(chain[0].key.serialize_der()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[version])
        .unwrap();
    builder.with_no_client_auth().with_single_cert(certificates, key).unwrap()
}

/// Whether a server with the certificates `chain` matches the records `published`. Asserts that the
/// result is the same in both TLS versions.
fn matches_records(published: &[Published], chain: &[&Made]) -> bool {
    let found = BOTH.iter().map(|version| is_accepted(published, server(chain, version)));
    let found: Vec<bool> = found.collect();
    assert!(found.iter().all(|one| *one == found[0]));
    found[0]
}

/// Whether our client accepts the server, if it requires that the server matches these records.
fn is_accepted(published: &[Published], config: ServerConfig) -> bool {
    let clock = Clock::default();
    clock.set(UnixTime::from_seconds(TODAY));
    let settings = ClientSettings::for_published(published.to_vec(), DOMAIN, &clock).unwrap();
    let mut call = Call::with(&settings, config, Some(HOST));
    let _ = call.settle(usize::MAX);
    match call.events.as_slice() {
        [TlsEvent::Established(_)] => true,
        [TlsEvent::Failed(failure)] if failure.fault() == Some(CertificateFault::NotProven) => {
            false
        }
        events => panic!("{events:?}"),
    }
}

fn read(usage: u8, selector: u8, matching: u8, data: &[u8]) -> Published {
    Published::read(usage, selector, matching, data).unwrap()
}

/// All records with this usage that describe the certificate.
fn all_of(usage: u8, made: &Made) -> Vec<Published> {
    let mut all = Vec::new();
    for (selector, part) in [(0, made.certificate.as_ref()), (1, made.public.as_slice())] {
        all.push(read(usage, selector, 0, part));
        all.push(read(usage, selector, 1, digest(&SHA256, part).as_ref()));
        all.push(read(usage, selector, 2, digest(&SHA512, part).as_ref()));
    }
    all
}

#[test]
fn dane_ee_accepts_the_published_certificate_or_key() {
    seed(220);
    // This certificate is for another name, and has expired.
    let own = made("other.test", 2000..2001, None, false);
    let another = made(HOST, 2000..2100, None, false);
    let wrong = all_of(3, &another);
    for published in all_of(3, &own) {
        assert!(matches_records(std::slice::from_ref(&published), &[&own]), "{published:?}");
        assert!(
            matches_records(&[wrong.clone(), vec![published.clone()]].concat(), &[&own]),
            "one matching record is enough"
        );
        assert!(!matches_records(std::slice::from_ref(&published), &[&another]), "{published:?}");
        assert!(
            !matches_records(&[published], &[&another, &own]),
            "a published certificate must be the server's own"
        );
    }
}

#[test]
fn dane_ta_checks_name_and_validity() {
    seed(221);
    let root = made("Root", 2000..2100, None, true);
    let middle = made("Middle", 2000..2100, Some(&root), true);
    let good = made(HOST, 2020..2100, Some(&middle), false);
    let ended = made(HOST, 2020..2021, Some(&middle), false);
    let other = made("other.test", 2020..2100, Some(&middle), false);
    let alone = made(HOST, 2020..2100, None, false);
    let of_domain = made(DOMAIN, 2020..2100, Some(&middle), false);
    for published in [all_of(2, &root), all_of(2, &middle)].concat() {
        let published = [published];
        assert!(matches_records(&published, &[&good, &middle, &root]), "{published:?}");
        assert!(
            matches_records(&published, &[&of_domain, &middle, &root]),
            "a certificate for the recipient domain is valid"
        );
        assert!(
            matches_records(&published, &[&good, &root, &middle]),
            "the chain may be in any order"
        );
        for (shown, why) in [
            (&ended, "the certificate has expired"),
            (&other, "the certificate is for another name"),
            (&alone, "no authority has signed the certificate"),
        ] {
            assert!(!matches_records(&published, &[shown, &middle, &root]), "{why}");
        }
        assert!(
            !matches_records(&published, &[&good]),
            "an authority counts only if the server sends it"
        );
    }
    assert!(!matches_records(&all_of(2, &alone), &[&good, &middle, &root]));
    assert!(matches_records(&all_of(2, &middle), &[&good, &middle]), "the root is not needed");
    assert!(
        !matches_records(&all_of(2, &root), &[&good, &root]),
        "without the intermediate certificate there is no chain"
    );
}

/// A certificate is public, so a server with only the certificate proves nothing.
#[test]
fn dane_needs_the_key_of_the_certificate() {
    seed(222);
    let own = made(HOST, 2000..2100, None, false);
    let thief = made(HOST, 2000..2100, None, false);
    for version in BOTH {
        let key = PrivateKeyDer::try_from(thief.key.serialize_der()).unwrap();
        let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
        let shown = Arc::new(CertifiedKey::new(vec![own.certificate.clone()], key));
        let builder = ServerConfig::builder_with_provider(Arc::new(provider()));
        let builder = builder.with_protocol_versions(&[version]).unwrap().with_no_client_auth();
        let resolver = Arc::new(rustls::sign::SingleCertAndKey::from(shown));
        for published in all_of(3, &own) {
            assert!(!is_accepted(
                &[published],
                builder.clone().with_cert_resolver(resolver.clone())
            ));
        }
    }
}

#[test]
fn malformed_tlsa_records_are_unusable() {
    for (usage, selector, matching, length, is_usable) in [
        (3, 1, 1, 32, true),
        (2, 0, 2, 64, true),
        (3, 0, 0, 1, true),
        (0, 1, 1, 32, false),
        (1, 1, 1, 32, false),
        (4, 1, 1, 32, false),
        (255, 1, 1, 32, false),
        (3, 2, 1, 32, false),
        (3, 1, 3, 32, false),
        (3, 1, 1, 31, false),
        (3, 1, 1, 33, false),
        (3, 1, 2, 32, false),
        (3, 1, 0, 0, false),
        (3, 1, 1, 0, false),
    ] {
        let read = Published::read(usage, selector, matching, &vec![7; length]);
        assert_eq!(read.is_some(), is_usable, "{usage} {selector} {matching} {length}");
    }
}

#[test]
fn other_failures_are_not_certificate_errors() {
    assert_eq!(Failure::PeerLeft.fault(), None);
    assert_eq!(
        Failure::Handshake(rustls::PeerIncompatible::NoCipherSuitesInCommon.into()).fault(),
        None
    );
}
