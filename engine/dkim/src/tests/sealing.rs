//! Tests of ARC sets that we make and verify.

use super::signing::{FIELDS as HEADER, keys};
use super::*;
use crate::{ArcError, ChainVerdict, SETS_MAX, Sealing, SigningKey, Unsignable};

const RESULTS: &str = "mx.example.test;\r\n\tspf=pass smtp.mailfrom=example.test;\r\n\tarc=none   ";

fn sealing(key: &SigningKey, message: &str, found: ChainVerdict) -> Result<String, Unsignable> {
    let mut reading = MessageReader::to_sign();
    message.as_bytes().chunks(7).for_each(|piece| reading.arrived(piece));
    let (message, domain) = (reading.ended(), Name::parse("example.test").unwrap());
    let mut sealing = Sealing::begin(&message, found, RESULTS)?;
    for step in 0..2 {
        assert!(sealing.is_open() && sealing.fields().is_empty(), "{step}");
        sealing.sign(&message, key, &domain, NOW)?;
    }
    assert!(!sealing.is_open());
    Ok(sealing.fields())
}

fn judged(key: &SigningKey, message: &str) -> ChainVerdict {
    let message = read(message.as_bytes());
    let mut knowledge = Knowledge::default();
    for question in message.missing(&knowledge, NOW) {
        let records = Vec::from([Record::Text(key.record().as_bytes().into())]);
        knowledge.learn(question, Ok(Answer { exists: true, is_authenticated: false, records }));
    }
    (0..).find_map(|step| message.judge_chain(step, &knowledge, NOW).unwrap()).unwrap()
}

#[test]
fn our_seals_pass_at_every_hop() {
    for key in keys() {
        for body in ["", "\r\n", "Hi. \r\n\r\n\r\n", "Hi."] {
            let (mut message, mut found) = (format!("{HEADER}\r\n{body}"), ChainVerdict::None);
            for _ in 0..4 {
                message = sealing(&key, &message, found).unwrap() + &message;
                found = judged(&key, &message);
                assert_eq!(found, ChainVerdict::Pass, "{message}");
                message =
                    format!("Received: by another\r\nAuthentication-Results: mx\r\n{message}");
            }
        }
    }
}

#[test]
fn set_has_its_seal_on_top_and_the_check_results() {
    let [_, key] = keys();
    let fields = sealing(&key, &format!("{HEADER}\r\n"), ChainVerdict::None).unwrap();
    assert!(
        fields.starts_with(
            "ARC-Seal: i=1; a=rsa-sha256; cv=none; d=example.test; s=key; t=2000000; b=\r\n "
        ),
        "{fields}"
    );
    let (_, message) = fields
        .split_once("\r\nARC-Message-Signature: i=1; a=rsa-sha256; c=relaxed/relaxed;")
        .unwrap();
    let (_, results) = message
        .split_once("\r\nARC-Authentication-Results: i=1; mx.example.test;\r\n\tspf=pass ")
        .unwrap();
    assert_eq!(results, "smtp.mailfrom=example.test;\r\n\tarc=none\r\n");
    assert!(fields.lines().all(|line| line.len() < 78), "{fields}");
    let again = sealing(&key, &format!("{fields}{HEADER}\r\n"), ChainVerdict::Pass).unwrap();
    assert!(again.starts_with("ARC-Seal: i=2; a=rsa-sha256; cv=pass; "), "{again}");
}

#[test]
fn all_signatures_are_covered_but_not_trace_fields() {
    let [key, _] = keys();
    let signed =
        format!("DKIM-Signature: v=1; first\r\nDKIM-Signature: v=1; second\r\n{HEADER}\r\nHi.\r\n");
    let sealed = sealing(&key, &signed, ChainVerdict::None).unwrap() + &signed;
    let changed = Some(ArcError::Link(1, SignatureReason::SignatureWrong));
    for (from, to, expected) in [
        ("v=1; first", "v=1; third", changed),
        ("v=1; second", "v=1; third", changed),
        ("Subject: dinner", "Subject: sinner", changed),
        ("X-Y: z", "To: eve@other.test\r\nX-Y: z", changed),
        ("X-Y: z", "X-Y: y", None),
        ("Hi.", "Ho.", Some(ArcError::Link(1, SignatureReason::BodyChanged))),
        (
            "DKIM-Signature: v=1; first",
            "DKIM-Signature: on top\r\nDKIM-Signature: v=1; first",
            None,
        ),
    ] {
        let expected = expected.map_or(ChainVerdict::Pass, ChainVerdict::Fail);
        assert_eq!(judged(&key, &sealed.replacen(from, to, 1)), expected, "{to}");
    }
}

#[test]
fn broken_or_full_chain_is_not_extended() {
    let [key, _] = keys();
    let plain = format!("{HEADER}\r\nHi.\r\n");
    let sealed = sealing(&key, &plain, ChainVerdict::None).unwrap() + &plain;
    let refused = |message: &str, found| sealing(&key, message, found).err();
    let broken = Some(Unsignable::ChainBroken);
    assert_eq!(refused(&plain, ChainVerdict::Pass), broken);
    assert_eq!(refused(&sealed, ChainVerdict::None), broken);
    assert_eq!(
        refused(&sealed, ChainVerdict::Fail(ArcError::Link(1, SignatureReason::BodyChanged))),
        broken
    );
    assert_eq!(refused(&sealed.replace("ARC-Seal", "X-Seal"), ChainVerdict::Pass), broken);
    let set = |instance: usize| {
        let status = if instance == 1 { "none" } else { "pass" };
        let signed = "a=ed25519-sha256; d=example.test; s=key; b=MTIz";
        format!(
            "ARC-Seal: i={instance}; cv={status}; {signed}\r\nARC-Message-Signature: i={instance}; h=from; bh=MTIz; {signed}\r\nARC-Authentication-Results: i={instance}; mx\r\n"
        )
    };
    let with = |count: usize| (1..=count).map(set).collect::<String>() + &plain;
    assert_eq!(refused(&with(SETS_MAX - 1), ChainVerdict::Pass), None);
    assert_eq!(refused(&with(SETS_MAX), ChainVerdict::Pass), broken);
    assert_eq!(refused("To: bob@other.test\r\n\r\n", ChainVerdict::None), Some(Unsignable::NoFrom));
}
