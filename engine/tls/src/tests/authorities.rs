//! Tests with servers that must prove their name by a certificate authority.

use std::string::String;
use std::vec::Vec;

use machine::UnixTime;

use super::client::Call;
use super::dane::{Made, made, server};
use super::world::{BOTH, TODAY, seed};
use crate::{
    AUTHORITIES_MAX, Authorities, CertificateFault, ClientSettings, Clock, NotAuthorities, TlsEvent,
};

/// The fault of a server that shows the certificates `chain`, when our client connects to it as
/// `host`. Asserts that the fault is the same in both TLS versions.
fn fault(authorities: &Authorities, chain: &[&Made], host: &str) -> Option<CertificateFault> {
    let clock = Clock::default();
    clock.set(UnixTime::from_seconds(TODAY));
    let settings = ClientSettings::for_vouched(authorities.clone(), &clock).unwrap();
    let found: Vec<Option<CertificateFault>> = BOTH
        .iter()
        .map(|version| {
            let mut call = Call::with(&settings, server(chain, version), Some(host));
            let _ = call.settle(usize::MAX);
            match call.events.as_slice() {
                [TlsEvent::Established(_)] => None,
                [TlsEvent::Failed(failure)] if failure.fault().is_some() => failure.fault(),
                events => panic!("{events:?}"),
            }
        })
        .collect();
    assert_eq!(found[0], found[1]);
    found[0]
}

fn named(all: &[&Made]) -> Authorities {
    let texts: Vec<String> = all.iter().map(|made| made.pem.clone()).collect();
    Authorities::with(texts.iter().map(String::as_bytes)).unwrap()
}

#[test]
fn a_configured_authority_vouches_for_name_and_validity() {
    seed(230);
    let root = made("Root", 2000..2100, None, true);
    let other_root = made("Root", 2000..2100, None, true);
    let middle = made("Middle", 2000..2100, Some(&root), true);
    let good = made("mx.test", 2020..2100, Some(&middle), false);
    let ended = made("mx.test", 2020..2021, Some(&middle), false);
    let early = made("mx.test", 2090..2100, Some(&middle), false);
    let authorities = named(&[&root]);
    assert_eq!(fault(&authorities, &[&good, &middle], "mx.test"), None);
    assert_eq!(fault(&authorities, &[&good, &middle], "MX.TEST"), None);
    for (chain, host, why) in [
        (&[&good, &middle][..], "other.test", CertificateFault::OtherName),
        (&[&good, &middle], "test", CertificateFault::OtherName),
        (&[&good, &middle], "192.0.2.1", CertificateFault::OtherName),
        (&[&ended, &middle], "mx.test", CertificateFault::NotToday),
        (&[&early, &middle], "mx.test", CertificateFault::NotToday),
        (&[&good], "mx.test", CertificateFault::NotProven),
    ] {
        assert_eq!(fault(&authorities, chain, host), Some(why), "{host}");
    }
    for others in [Authorities::default(), named(&[&other_root])] {
        assert_eq!(
            fault(&others, &[&good, &middle, &root], "mx.test"),
            Some(CertificateFault::NotProven)
        );
    }
}

#[test]
fn a_server_called_by_address_needs_it_in_its_certificate() {
    seed(231);
    let root = made("Root", 2000..2100, None, true);
    let [at, named_so] =
        ["192.0.2.1", "mx.test"].map(|name| made(name, 2020..2100, Some(&root), false));
    let six = made("2001:db8::1", 2020..2100, Some(&root), false);
    let authorities = named(&[&root]);
    assert_eq!(fault(&authorities, &[&at], "192.0.2.1"), None);
    assert_eq!(fault(&authorities, &[&six], "2001:db8::1"), None);
    assert_eq!(fault(&authorities, &[&at], "192.0.2.2"), Some(CertificateFault::OtherName));
    assert_eq!(fault(&authorities, &[&named_so], "192.0.2.1"), Some(CertificateFault::OtherName));
}

/// A certificate of `openssl req -x509` claims to be an authority, so both kinds are tested.
#[test]
fn a_configured_certificate_needs_only_its_name() {
    seed(232);
    for is_authority in [false, true] {
        // The validity period is ignored, as with DANE-EE (`dane`).
        let own = made("mx.test", 2000..2001, None, is_authority);
        let another = made("mx.test", 2000..2100, None, is_authority);
        assert_eq!(fault(&named(&[&own]), &[&own], "mx.test"), None);
        assert_eq!(
            fault(&named(&[&own]), &[&own], "other.test"),
            Some(CertificateFault::OtherName)
        );
        assert_eq!(
            fault(&named(&[&own]), &[&another], "mx.test"),
            Some(CertificateFault::NotProven)
        );
        let behind = fault(&named(&[&own]), &[&another, &own], "mx.test");
        assert!(behind.is_some(), "a named certificate must be the server's own");
    }
}

#[test]
fn a_file_without_authorities_is_rejected() {
    seed(233);
    let root = made("Root", 2000..2100, None, true);
    let with = |text: &str| Authorities::with([text.as_bytes()]).err();
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(with(""), Some(NotAuthorities::None));
    assert_eq!(with("-----BEGIN CERTIFICATE-----\n!\n"), Some(NotAuthorities::BadPem));
    assert_eq!(with(broken), Some(NotAuthorities::BadCertificate));
    assert_eq!(with(&[root.pem.as_str(), broken].concat()), Some(NotAuthorities::BadCertificate));
    assert_eq!(with(&root.pem.repeat(AUTHORITIES_MAX)), None);
    assert_eq!(with(&root.pem.repeat(AUTHORITIES_MAX + 1)), Some(NotAuthorities::TooMany));
}
