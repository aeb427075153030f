//! Tests of the limits of headers and signatures, and of messages without signatures.

use super::*;
use crate::{FIELDS_MAX, HEADER_BYTES_MAX, SIGNATURES_MAX};

#[test]
fn verdict_without_a_signature_is_none() {
    for message in [
        "",
        "\r\n",
        "From: ada@example.test",
        "From: ada@example.test\r\n\r\nHi.\r\n",
        "\r\nDKIM-Signature: v=1\r\n",
    ] {
        let message = read(message.as_bytes());
        assert_eq!(message.signatures(), 0);
        let verdict = verdict_of(&message, 0, Ok(&[]));
        assert_eq!(
            (verdict.outcome(), verdict.to_string().as_str()),
            (SignatureOutcome::None, "dkim=none")
        );
    }
}

#[test]
fn keys_are_requested_once_the_header_is_complete() {
    let other = signed(&TAGS.replace("s=key", "s=other"), &FIELDS, BODY);
    let sha1 = signed(&TAGS.replace("ed25519-sha256", "rsa-sha1"), &FIELDS, BODY);
    let field = |message: &str| message.split_once("\r\nFrom:").unwrap().0.to_string();
    let message =
        format!("{}\r\n{}\r\n{}", field(&other), field(&sha1), signed(TAGS, &FIELDS, BODY));
    let header = message.find("\r\n\r\n").unwrap() + 4;
    let mut knowledge = Knowledge::default();
    let mut reading = MessageReader::to_verify();
    reading.arrived(&message.as_bytes()[..header - 1]);
    assert_eq!((reading.header(), reading.missing(&knowledge, NOW)), (None, Vec::new()));
    reading.arrived(&message.as_bytes()[header - 1..header + 3]);
    assert_eq!(reading.header(), Some(&message.as_bytes()[..header - 2]));
    let missing = reading.missing(&knowledge, NOW);
    let names: Vec<&str> = missing.iter().map(|question| question.name.as_str()).collect();
    assert_eq!(names, ["other._domainkey.example.test", "key._domainkey.example.test"]);
    assert!(!reading.is_cut() && reading.footprint() > header);
    knowledge.learn(missing[0].clone(), Err(Unanswered::Silence));
    assert_eq!(reading.missing(&knowledge, NOW), missing[1..]);
    let message = reading.ended();
    assert_eq!(
        (message.missing(&knowledge, NOW), message.is_cut()),
        (missing[1..].to_vec(), false)
    );
}

#[test]
fn signatures_beyond_the_limit_are_neutral() {
    let mut message = signed(TAGS, &FIELDS, BODY);
    let (signature, _) = message.split_once("\r\n").unwrap();
    message = format!("{signature}\r\n").repeat(SIGNATURES_MAX) + &message;
    let message = read(message.as_bytes());
    assert_eq!(message.signatures(), SIGNATURES_MAX + 1);
    let reason = |number| verdict_of(&message, number, Ok(&[record("").as_bytes()])).reason;
    assert!((0..SIGNATURES_MAX).all(|number| reason(number) == SignatureReason::Verified));
    assert_eq!(reason(SIGNATURES_MAX), SignatureReason::NotLookedAt);
    assert_eq!(reason(SIGNATURES_MAX + 1), SignatureReason::NotSigned);
}

/// A message with a header of this many bytes, including the empty line after it.
fn with_header_of(bytes: usize) -> String {
    let message = signed(TAGS, &FIELDS, BODY);
    let present = message.find("\r\n\r\n").unwrap() + 4;
    let (header, body) = message.split_at(present - 2);
    format!("{header}X: {}\r\n{body}", "x".repeat(bytes - present - 5))
}

#[test]
fn too_long_header_passes_nothing_however_it_is_cut() {
    for (bytes, expected) in [
        (HEADER_BYTES_MAX, SignatureReason::Verified),
        (HEADER_BYTES_MAX + 1, SignatureReason::HeaderTooLong),
    ] {
        let message = with_header_of(bytes);
        assert_eq!(message.find("\r\n\r\n").unwrap() + 4, bytes);
        for piece in [1, 1_000, HEADER_BYTES_MAX - 1, HEADER_BYTES_MAX, message.len()] {
            let mut reading = MessageReader::to_verify();
            message.as_bytes().chunks(piece).for_each(|piece| reading.arrived(piece));
            let message = reading.ended();
            let verdict = verdict_of(&message, 0, Ok(&[record("").as_bytes()]));
            assert_eq!((verdict.reason, message.signatures()), (expected, 1), "{bytes} {piece}");
            assert!(verdict.signer.is_some());
        }
    }
}

#[test]
fn header_with_too_many_fields_passes_nothing() {
    let message = signed(TAGS, &FIELDS, BODY);
    let (header, body) = message.split_once("\r\n\r\n").unwrap();
    let present = header.split("\r\n").filter(|line| !line.starts_with([' ', '\t'])).count();
    for (fields, expected) in
        [(FIELDS_MAX, SignatureReason::Verified), (FIELDS_MAX + 1, SignatureReason::HeaderTooLong)]
    {
        let more: String = (present..fields).map(|number| format!("X{number}:\r\n")).collect();
        let whole = format!("{header}\r\n{more}\r\n{body}");
        let mut reading = MessageReader::to_verify();
        reading.arrived(whole.as_bytes());
        assert_eq!(reading.is_cut(), fields > FIELDS_MAX);
        assert!(reading.footprint() < HEADER_BYTES_MAX * 2, "{}", reading.footprint());
        let verdict = verdict_of(&reading.ended(), 0, Ok(&[record("").as_bytes()]));
        assert_eq!(verdict.reason, expected, "{fields}");
    }
}
