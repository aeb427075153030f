//! Tests of signatures that we make and verify. OpenSSL made the RSA keys.

use dns::NotAName;

use super::*;
use crate::{NotAKey, SigningKey, Unsignable};

pub(super) const RSA_2048: &str = include_str!("rsa_2048.pem");
const RSA_1024: &str = include_str!("rsa_1024.pem");
/// The private key of RFC 8463 appendix A.1.
pub(super) const ED25519: &str = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";

pub(super) fn rsa(pem: &str) -> Vec<u8> {
    let lines: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    Base64::decode_vec(&lines).unwrap()
}

pub(super) fn ed25519() -> Vec<u8> {
    let head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    [&head[..], &Base64::decode_vec(ED25519).unwrap()].concat()
}

pub(super) fn keys() -> [SigningKey; 2] {
    [ed25519(), rsa(RSA_2048)].map(|key| SigningKey::new(&key, "key").unwrap())
}

fn field(key: &SigningKey, message: &str) -> Result<String, Unsignable> {
    field_of(key, "example.test", message)
}

fn field_of(key: &SigningKey, domain: &str, message: &str) -> Result<String, Unsignable> {
    let mut reading = MessageReader::to_sign();
    message.as_bytes().chunks(7).for_each(|piece| reading.arrived(piece));
    reading.ended().sign(key, &Name::of_bytes(domain.as_bytes()).unwrap(), NOW)
}

/// The reason in the verdict on a signed message, if this key is the published one.
fn reason_with(key: &SigningKey, message: &str) -> SignatureReason {
    verdict_of(&read(message.as_bytes()), 0, Ok(&[key.record().as_bytes()])).reason
}

pub(super) const FIELDS: &str = "Received: from there\r\nFrom: Ada <ada@example.test>\r\nTo: bob@other.test,\r\n  eve@other.test\r\n\
                      Subject: dinner \r\nDate: Fri, 11 Jul 2003 21:00:37 -0700\r\nSender: ada@example.test\r\nX-Y: z\r\n";

#[test]
fn our_signature_passes_with_the_published_key() {
    for key in keys() {
        for body in ["", "\r\n", "Hi. \r\n\r\n\r\n", "Hi."] {
            let message = format!("{FIELDS}\r\n{body}");
            let field = field(&key, &message).unwrap();
            assert_eq!(
                reason_with(&key, &(field + &message)),
                SignatureReason::Verified,
                "{body:?}"
            );
        }
    }
}

#[test]
fn key_record_has_the_usual_form() {
    let [ed25519, rsa] = keys();
    assert_eq!(
        ed25519.record(),
        "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
    );
    let record = rsa.record();
    // A key of 2048 bits, in the form that names the algorithm.
    assert!(
        record.starts_with("v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA"),
        "{record}"
    );
}

#[test]
fn changes_of_signed_fields_and_body_are_detected() {
    for key in keys() {
        let message = format!("{FIELDS}\r\nHi.\r\n");
        let signed = field(&key, &message).unwrap() + &message;
        for name in [
            "From",
            "To",
            "Cc",
            "Reply-To",
            "Subject",
            "Date",
            "Message-ID",
            "References",
            "Content-Type",
        ] {
            for place in ["Received:", "X-Y:"] {
                let added = signed.replace(place, &format!("{name}: eve\r\n{place}"));
                assert_eq!(reason_with(&key, &added), SignatureReason::SignatureWrong, "{name}");
            }
        }
        for (from, to, expected) in [
            ("X-Y: z", "X-Y: y", SignatureReason::Verified),
            (
                "Received:",
                "Sender: list@other.test\r\nReceived: by us\r\nReceived:",
                SignatureReason::Verified,
            ),
            ("Sender: ada", "Sender: eve", SignatureReason::SignatureWrong),
            ("Subject: dinner \r\n", "Subject:\r\n\tdinner\r\n", SignatureReason::Verified),
            ("Hi.", "Ha.", SignatureReason::BodyChanged),
            ("Hi.", "Hi.\r\nHo.", SignatureReason::BodyChanged),
            ("Hi.\r\n", "Hi. \r\n\r\n", SignatureReason::Verified),
        ] {
            assert_eq!(reason_with(&key, &signed.replace(from, to)), expected, "{to}");
        }
    }
}

#[test]
fn signature_is_folded_into_short_lines() {
    for key in keys() {
        let many =
            format!("{}\r\n", FIELDS.replace("X-Y: z", &["To: bob@other.test"; 20].join("\r\n")));
        let field = field(&key, &many).unwrap();
        let lines: Vec<&str> = field.strip_suffix("\r\n").unwrap().split("\r\n").collect();
        assert!(
            lines.len() > 5 && lines.iter().all(|line| line.len() < 78 && !line.ends_with(' ')),
            "{field}"
        );
        assert!(lines[1..].iter().all(|line| line.starts_with(' ')), "{field}");
        assert!(!field.contains("l="), "it covers all of the body");
        assert_eq!(reason_with(&key, &(field + &many)), SignatureReason::Verified);
    }
}

#[test]
fn signature_fields_of_a_long_domain_are_folded() {
    let label = "x".repeat(60);
    let domain = [label.as_str(); 3].join(".");
    let [key, _] = keys();
    let field = field_of(&key, &domain, "From: ada@example.test\r\n\r\n").unwrap();
    assert!(field.contains(&format!("\r\n d={domain};\r\n s=key;")), "{field}");
}

#[test]
fn unsignable_message_is_refused() {
    let [key, _] = keys();
    for message in ["", "\r\n", "To: bob@other.test\r\n\r\nFrom: ada\r\n"] {
        assert_eq!(field(&key, message), Err(Unsignable::NoFrom));
    }
    assert_eq!(field(&key, &format!(" on\r\n{FIELDS}\r\n")), Err(Unsignable::BeginsFolded));
    let long = format!("{FIELDS}X: {}\r\n\r\n", "x".repeat(crate::HEADER_BYTES_MAX));
    assert_eq!(field(&key, &long), Err(Unsignable::HeaderTooLong));
    let relaxed = signed(&TAGS.replace("simple", "relaxed"), &super::FIELDS, BODY);
    assert_eq!(
        read(relaxed.as_bytes()).sign(&key, &Name::parse("example.test").unwrap(), NOW),
        Err(Unsignable::NotRead)
    );
}

#[test]
fn invalid_key_or_selector_is_refused() {
    let refusal = |key: &[u8], selector: &str| SigningKey::new(key, selector).err();
    let key = ed25519();
    assert_eq!(refusal(&key, "2026-11.key"), None);
    assert_eq!(refusal(&[], "key"), Some(NotAKey::OfAnotherKind));
    assert_eq!(refusal(&key[1..], "key"), Some(NotAKey::OfAnotherKind));
    assert_eq!(refusal(&rsa(RSA_1024), "key"), Some(NotAKey::OfAnotherKind), "RFC 8301 §3.2");
    for selector in ["", "a b", "k;x=1", "k\r\n", "a..b"] {
        assert_eq!(refusal(&key, selector), Some(NotAKey::NoSelector), "{selector}");
    }
    let [key, _] = keys();
    let long = ["x"; 125].join(".");
    assert_eq!(key.name_at(&Name::parse(&long).unwrap()), Err(NotAName));
    for domain in [&long, "a b", "a.test;x=1"] {
        assert_eq!(
            field_of(&key, domain, "From: ada\r\n\r\n"),
            Err(Unsignable::NoName),
            "{domain}"
        );
    }
}

#[test]
fn key_is_read_from_common_pem_files() {
    let key = SigningKey::read(RSA_2048.as_bytes(), "key").unwrap();
    assert_eq!(key.record(), keys()[1].record());
    assert_eq!(
        key.name_at(&Name::parse("example.test").unwrap()).unwrap().as_str(),
        "key._domainkey.example.test"
    );
    for text in ["", "nonsense", &RSA_2048.replace("PRIVATE", "PUBLIC")] {
        assert_eq!(SigningKey::read(text.as_bytes(), "key").err(), Some(NotAKey::NoKey));
    }
}
