//! Tests of the canonicalization of headers and bodies, compared with a simple signer.

use super::*;
use crate::SignatureReason::{SignatureWrong, Verified};
use crate::body::{BodyHash, CanonicalForm};
use proptest::prelude::*;

/// Reads a message in pieces of these lengths, repeatedly.
fn read_in(message: &str, pieces: &[usize]) -> CompleteMessage {
    let (mut reading, mut rest) = (MessageReader::to_verify(), message.as_bytes());
    for piece in pieces.iter().cycle() {
        let (next, left) = rest.split_at((*piece).min(rest.len()));
        reading.arrived(next);
        rest = left;
        if rest.is_empty() {
            break;
        }
    }
    reading.ended()
}

#[test]
fn bodies_are_canonicalized_by_the_rfc() {
    for (body, simple, relaxed) in [
        (" C \r\nD \t E\r\n\r\n\r\n", " C \r\nD \t E\r\n", " C\r\nD E\r\n"),
        ("", "\r\n", ""),
        ("\r\n", "\r\n", ""),
        ("\r\n\r\n\r\n", "\r\n", ""),
        (" \r\n\t\r\n", " \r\n\t\r\n", ""),
        ("no end", "no end\r\n", "no end\r\n"),
        ("a\r\n\r\n\r\nb\r\n", "a\r\n\r\n\r\nb\r\n", "a\r\n\r\n\r\nb\r\n"),
        ("\r\n \t a\r\n", "\r\n \t a\r\n", "\r\n a\r\n"),
        ("a\rb\nc\r\r\n", "a\rb\nc\r\r\n", "a\rb\nc\r\r\n"),
        ("a\r", "a\r\r\n", "a\r\r\n"),
    ] {
        for (form, expected) in [(CanonicalForm::Simple, simple), (CanonicalForm::Relaxed, relaxed)]
        {
            let mut hash = BodyHash::new(form);
            hash.arrived(body.as_bytes());
            let hashed = hash.ended();
            assert_eq!(
                hashed.digest.as_ref(),
                digest(&SHA256, expected.as_bytes()).as_ref(),
                "{body:?} {form:?}"
            );
            assert_eq!(hashed.bytes, expected.len() as u64, "{body:?} {form:?}");
        }
    }
}

#[test]
fn many_empty_lines_count_only_before_text() {
    for lines in [1, 63, 64, 65, 66, 127, 128, 129, 1000] {
        for (end, text) in [("", ""), ("x\r\n", "x\r\n"), ("x", "x\r\n"), (" y\r\n\r\n", " y\r\n")]
        {
            let empty = "\r\n".repeat(lines);
            let body = format!("a\r\n{empty}{end}{empty}");
            let kept = if text.is_empty() { String::new() } else { format!("{empty}{text}") };
            let expected = format!("a\r\n{kept}");
            for (form, pieces) in [
                (CanonicalForm::Simple, 7),
                (CanonicalForm::Relaxed, 3),
                (CanonicalForm::Relaxed, 500),
            ] {
                let mut hash = BodyHash::new(form);
                body.as_bytes().chunks(pieces).for_each(|piece| hash.arrived(piece));
                let hashed = hash.ended();
                let digest = digest(&SHA256, expected.as_bytes());
                assert_eq!(hashed.digest.as_ref(), digest.as_ref(), "{lines} {end:?} {form:?}");
                assert_eq!(hashed.bytes, expected.len() as u64);
            }
        }
    }
}

#[test]
fn lowest_of_repeated_fields_is_signed_first() {
    let fields = ["From: ada@example.test\r\n", "X: upper\r\n", "X: lower\r\n"];
    let tags = TAGS.replace("Subject", "X");
    let message = signed(&tags, &fields, BODY);
    assert_eq!(reason(&message), Verified);
    assert_eq!(reason(&message.replace("upper", "other")), Verified);
    assert_eq!(reason(&message.replace("lower", "other")), SignatureWrong);
    assert_eq!(
        reason(&message.replace("X: upper\r\nX: lower\r\n", "X: lower\r\nX: upper\r\n")),
        SignatureWrong
    );
    let both = signed(&tags.replace("X", "X:X"), &fields, BODY);
    assert_eq!(reason(&both), Verified);
    assert_eq!(reason(&both.replace("upper", "other")), SignatureWrong);
}

#[test]
fn oversigned_field_cannot_be_added() {
    let message = signed(&TAGS.replace("h=From", "h=From:Cc:From"), &FIELDS, BODY);
    assert_eq!(reason(&message), Verified);
    for added in ["From: eve@other.test\r\n", "Cc: eve@other.test\r\n"] {
        assert_eq!(
            reason(&message.replace("To: ", &format!("{added}To: "))),
            SignatureWrong,
            "{added}"
        );
        assert_eq!(reason(&format!("{added}{message}")), SignatureWrong, "{added}");
    }
    assert_eq!(reason(&message.replace("To: ", "X: y\r\nTo: ")), Verified);
}

#[test]
fn signature_covers_others_but_not_itself() {
    let tags = TAGS.replace("h=From", "h=DKIM-Signature:From");
    let other = "DKIM-Signature: v=1; d=other.test; b=MTIz\r\n";
    let message = signed(&tags, &[other, FIELDS[0], FIELDS[1], FIELDS[2]], BODY);
    assert_eq!(reason(&message), Verified);
    assert_eq!(reason(&message.replace("d=other", "d=another")), SignatureWrong);
    assert_eq!(reason(&signed(&tags, &FIELDS, BODY)), Verified);
}

#[test]
fn signature_value_may_be_folded_anywhere() {
    for form in ["simple/simple", "relaxed/simple"] {
        let message = signed(&TAGS.replace("relaxed/simple", form), &FIELDS, BODY);
        let (before, rest) = message.split_once(" b=").unwrap();
        let (proof, after) = rest.split_once("\r\n").unwrap();
        let (left, right) = proof.split_at(20);
        assert_eq!(
            reason(&format!("{before} b=\r\n\t {left}\r\n {right} \r\n\t\r\n{after}")),
            Verified,
            "{form}"
        );
    }
}

#[test]
fn only_relaxed_form_survives_white_space() {
    for (form, expected) in [("simple/simple", SignatureWrong), ("relaxed/relaxed", Verified)] {
        let message = signed(&TAGS.replace("relaxed/simple", form), &FIELDS, BODY);
        for (from, to) in [
            ("From: ada", "From:ada"),
            ("From: ada", "FROM \t:  ada"),
            ("Subject: dinner", "Subject: \r\n\tdinner \r\n "),
            ("DKIM-Signature: v=1;", "dkim-signature:v=1;\r\n\t"),
        ] {
            assert_eq!(reason(&message.replace(from, to)), expected, "{form} {to}");
        }
        // A space where there was none changes both forms.
        assert_eq!(reason(&message.replace("d=example", "d= example")), SignatureWrong);
    }
}

#[test]
fn default_canonicalization_is_simple() {
    for forms in ["c=simple", "c=relaxed", "q=dns/txt"] {
        let tags = TAGS.replace("c=relaxed/simple", forms);
        assert_eq!(reason(&signed(&tags, &FIELDS, BODY)), Verified, "{forms}");
    }
}

/// Words of fields and bodies that differ between the two forms.
const WORDS: [&str; 12] =
    ["a", "B", " ", "\t", "\r\n", "\r\n\r\n", "  \r\n", "\r\n ", "=20", "\r", "\n", "\u{fc}"];
const NAMES: [&str; 6] = ["From", "from ", "To", "TO\t", "Subject", "X-Y"];
const LISTED: [&str; 7] = ["From", "to", " X-Y", "Subject ", "\r\n from", "Date", "To"];

proptest! {
    #[test]
    fn signed_message_passes_however_it_is_cut(
        body in prop::collection::vec(0..WORDS.len(), 0..24),
        fields in prop::collection::vec((0..NAMES.len(), prop::collection::vec(0..WORDS.len() - 3, 0..8)), 0..8),
        listed in prop::collection::vec(0..LISTED.len(), 0..6),
        forms in prop::sample::select(&["simple/simple", "simple/relaxed", "relaxed/simple", "relaxed/relaxed"][..]),
        pieces in prop::collection::vec(1_usize..40, 1..6),
        flipped in any::<prop::sample::Index>(),
    ) {
        let body: String = body.iter().map(|word| WORDS[*word]).collect();
        let fields: Vec<String> = fields
            .iter()
            .map(|(name, value)| {
                let value: String = value.iter().map(|word| WORDS[*word]).collect();
                // Each line within a field begins with white space.
                format!("{}:{}\r\n", NAMES[*name], value.replace("\r\n", "\r\n ").trim_end_matches("\r\n "))
            })
            .collect();
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let listed: String = listed.iter().map(|name| format!(":{}", LISTED[*name])).collect();
        let authors = fields.iter().filter(|field| field.to_lowercase().starts_with("from")).count();
        let from = ["From"].repeat(authors.max(1)).join(":");
        let tags = TAGS.replace("relaxed/simple", forms).replace("From:To:Subject", &format!("{from}{listed}"));
        let message = signed(&tags, &fields, &body);
        let key = record("");
        let verdict = verdict_of(&read_in(&message, &pieces), 0, Ok(&[key.as_bytes()]));
        prop_assert_eq!(verdict.reason, Verified, "{:?}", message);
        prop_assert_eq!(reason_of_flipped(&message, flipped, &pieces), reason_of_flipped(&message, flipped, &[usize::MAX]));
    }
}

/// The reason for a message with one changed byte.
fn reason_of_flipped(message: &str, at: prop::sample::Index, pieces: &[usize]) -> SignatureReason {
    let mut bytes = Vec::from(message);
    let at = at.index(bytes.len());
    bytes[at] ^= 1;
    let text = String::from_utf8_lossy(&bytes);
    let message = read_in(&text, pieces);
    let mut knowledge = Knowledge::default();
    if let Err(Missing(question)) = message.verify(0, &knowledge, NOW) {
        let records = Vec::from([Record::Text(record("").as_bytes().into())]);
        knowledge.learn(question, Ok(Answer { exists: true, is_authenticated: false, records }));
    }
    message.verify(0, &knowledge, NOW).unwrap().reason
}
