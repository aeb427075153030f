//! Tests of certificates and keys in files. Each error is reported.

use alloc::vec::Vec;

use machine::UnixTime;

use super::world::{pems, pems_p256, seed};
use crate::{Certificate, CertificateError};

fn parse(certificate: &str, key: &str) -> Result<Certificate, CertificateError> {
    Certificate::parse(certificate.as_bytes(), key.as_bytes())
}

#[test]
fn each_certificate_error_is_reported() {
    seed(30);
    let (one, other) = (pems_p256("one.test"), pems(&["one.test"], &rcgen::PKCS_ED25519));
    parse(&one.certificate, &one.key).unwrap();
    parse(&other.certificate, &other.key).unwrap();
    let error = |certificate: &str, key: &str| parse(certificate, key).unwrap_err();
    assert_eq!(error(&one.certificate, &other.key), CertificateError::KeyOfAnother);
    assert_eq!(error(&one.certificate, &pems_p256("one.test").key), CertificateError::KeyOfAnother);
    assert_eq!(error("", &one.key), CertificateError::NoCertificate);
    assert_eq!(error(&one.key, &one.key), CertificateError::NoCertificate);
    assert_eq!(error(&one.certificate, &one.certificate), CertificateError::NoKey);
    assert_eq!(error(&one.certificate, ""), CertificateError::NoKey);
    assert_eq!(
        error(&one.certificate.replace('M', "!"), &one.key),
        CertificateError::BadCertificatePem
    );
    assert_eq!(error(&one.certificate, &one.key.replace('M', "!")), CertificateError::BadKeyPem);
    let short = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    assert_eq!(error(short, &one.key), CertificateError::BadCertificate);
    let short = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
    assert_eq!(error(&one.certificate, short), CertificateError::BadKey);
    let chain: Vec<&str> = [one.certificate.as_str()].repeat(40);
    assert_eq!(error(&chain.concat(), &one.key), CertificateError::ChainTooLong);
    for error in
        [CertificateError::BadKey, CertificateError::KeyOfAnother, CertificateError::ChainTooLong]
    {
        assert!(alloc::format!("{error}").len() > 20, "the error is described in words");
    }
}

#[test]
fn an_rsa_key_above_3072_bits_is_rejected() {
    let long = include_str!("keys/rsa4096.pem");
    assert_eq!(
        parse(long, include_str!("keys/rsa4096.key.pem")).unwrap_err(),
        CertificateError::SlowKey
    );
    let text = alloc::format!("{}", CertificateError::SlowKey);
    assert!(text.contains("3072 bits") && text.contains("ECDSA P-256"), "{text}");
    parse(include_str!("keys/rsa3072.pem"), include_str!("keys/rsa3072.key.pem")).unwrap();
}

#[test]
fn a_certificate_is_invalid_before_and_after_its_period() {
    seed(31);
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let mut parameters = rcgen::CertificateParams::new(Vec::from(["a.test".into()])).unwrap();
    parameters.not_before = rcgen::date_time_ymd(2026, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2026, 3, 1);
    let pem = parameters.self_signed(&key).unwrap().pem();
    let certificate = parse(&pem, &key.serialize_pem()).unwrap();
    let (from, until) =
        (UnixTime::from_seconds(1_767_225_600), UnixTime::from_seconds(1_772_323_200));
    let second = |time: UnixTime, add: i64| {
        UnixTime::from_seconds(time.seconds().saturating_add_signed(add))
    };
    assert_eq!(certificate.valid_until(), until);
    assert_eq!(certificate.check(from), Ok(()));
    assert_eq!(certificate.check(until), Ok(()));
    assert_eq!(certificate.check(second(from, -1)), Err(CertificateError::NotYetValid(from)));
    let expired = certificate.check(second(until, 1)).unwrap_err();
    assert_eq!(expired, CertificateError::Expired(until));
    assert!(alloc::format!("{expired}").ends_with("until 2026-03-01T00:00:00Z"), "{expired}");
}
