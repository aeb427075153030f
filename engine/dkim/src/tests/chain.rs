//! Tests of the verdicts on chains (RFC 8617 §5.2). A simple implementation in the tests makes the
//! chains.

use super::*;
use crate::{ArcError, CHAIN_KEYS_MAX, ChainVerdict, SETS_MAX};

/// The fields of a set: check results, message signature, and seal.
type Set = [String; 3];

const SIGNER: &str = "a=ed25519-sha256; d=example.test; s=key";
const COVERED: &str = "c=relaxed/relaxed; h=From:To:Subject";

/// Deviations of a set from a valid one.
struct SetOptions<'a> {
    results: &'a str,
    message: &'a str,
    seal: &'a str,
    status: &'a str,
}

const USUAL: SetOptions<'static> =
    SetOptions { results: "", message: SIGNER, seal: SIGNER, status: "" };

/// The next set of a chain, on top of a message.
fn set(before: &[Set], options: &SetOptions<'_>, fields: &[&str], body: &str) -> Set {
    let instance = before.len() + 1;
    let results = match options.results {
        "" => format!(
            "ARC-Authentication-Results: i={instance}; mx.example.test;\r\n\tdmarc=pass header.from=example.test\r\n"
        ),
        results => format!("ARC-Authentication-Results: {results}\r\n"),
    };
    let tags = if options.message.contains("h=") {
        options.message.into()
    } else {
        format!("{}; {COVERED}", options.message)
    };
    let numbered = |tags: &str| match tags.split(';').any(|tag| tag.trim().starts_with('i')) {
        true => tags.to_string(),
        false => format!("i={instance}; {tags}"),
    };
    let message = signature("ARC-Message-Signature", &numbered(&tags), fields, body);
    let status = match (options.status, instance) {
        ("", 1) => "none",
        ("", _) => "pass",
        (status, _) => status,
    };
    let seal = format!("ARC-Seal: {}; cv={status}; b=", numbered(options.seal));
    let sets =
        before.iter().flatten().chain([&results, &message]).map(|field| field_in("relaxed", field));
    let covered = sets.collect::<String>()
        + field_in("relaxed", &format!("{seal}\r\n")).trim_end_matches("\r\n");
    [results, message, format!("{seal}{}\r\n", proof_of(&covered))]
}

fn sets(count: usize) -> Vec<Set> {
    let mut sets = Vec::new();
    for _ in 0..count {
        sets.push(set(&sets, &USUAL, &FIELDS, BODY));
    }
    sets
}

/// A message with these sets, the newest on top.
fn with(sets: &[Set]) -> String {
    let sets: String =
        sets.iter().rev().flat_map(|set| set.iter().rev()).map(String::as_str).collect();
    format!("{sets}{}\r\n{BODY}", FIELDS.concat())
}

/// The verdict on a chain, and the number of steps that lead to it. Each question for a key is
/// answered with `keys`.
fn judged(message: &str, keys: Texts<'_>) -> (ChainVerdict, usize) {
    let message = read(message.as_bytes());
    let (mut knowledge, mut step) = (Knowledge::default(), 0);
    for question in message.missing(&knowledge, NOW) {
        let records = |keys: &[&[u8]]| keys.iter().map(|key| Record::Text((*key).into())).collect();
        let answer = keys.map(|keys| Answer {
            exists: true,
            is_authenticated: false,
            records: records(keys),
        });
        knowledge.learn(question, answer);
    }
    loop {
        if let Some(verdict) =
            message.judge_chain(step, &knowledge, NOW).expect("all requested keys are known")
        {
            return (verdict, step + 1);
        }
        step += 1;
    }
}

fn verdict(message: &str) -> ChainVerdict {
    judged(message, Ok(&[record("").as_bytes()])).0
}

fn fails(message: &str) -> ArcError {
    match verdict(message) {
        ChainVerdict::Fail(error) => error,
        other => panic!("{other:?}: {message}"),
    }
}

#[test]
fn chain_is_verified_one_signature_at_a_time() {
    assert_eq!(judged(&with(&[]), Ok(&[])), (ChainVerdict::None, 1));
    for count in 1..=5 {
        let keys = record("");
        assert_eq!(
            judged(&with(&sets(count)), Ok(&[keys.as_bytes()])),
            (ChainVerdict::Pass, count + 1)
        );
    }
    let texts = [
        ChainVerdict::None,
        ChainVerdict::Pass,
        ChainVerdict::Fail(ArcError::Link(2, SignatureReason::BodyChanged)),
    ];
    let texts = texts.map(|verdict| verdict.to_string());
    assert_eq!(
        texts,
        ["arc=none", "arc=pass", "arc=fail reason=\"set 2: the body was changed after signing\""]
    );
}

#[test]
fn chain_passes_however_its_message_is_cut() {
    let message = with(&sets(2));
    for piece in [1, 2, 7, 100, message.len()] {
        let mut reading = MessageReader::to_verify();
        message.as_bytes().chunks(piece).for_each(|piece| reading.arrived(piece));
        let mut knowledge = Knowledge::default();
        for question in reading.missing(&knowledge, NOW) {
            let records = Vec::from([Record::Text(record("").as_bytes().into())]);
            knowledge
                .learn(question, Ok(Answer { exists: true, is_authenticated: false, records }));
        }
        let message = reading.ended();
        let verdicts = (0..3).map(|step| message.judge_chain(step, &knowledge, NOW).unwrap());
        assert_eq!(verdicts.collect::<Vec<_>>(), [None, None, Some(ChainVerdict::Pass)]);
    }
    let [first, second] = &sets(2)[..] else { panic!("two") };
    let fields = [
        &first[2],
        "X: y\r\n",
        &second[0],
        &first[0],
        "Received: from there\r\n",
        &second[2],
        &second[1],
        &first[1],
    ];
    assert_eq!(
        verdict(&format!("{}{}\r\n{BODY}", fields.concat(), FIELDS.concat())),
        ChainVerdict::Pass
    );
    assert_eq!(verdict(&message.replace("ARC-Seal: i", "arc-SEAL:  \r\n\ti")), ChainVerdict::Pass);
}

#[test]
fn changed_message_fails_unless_it_was_sealed_again() {
    let [first, ..] = &sets(1)[..] else { panic!("one") };
    let second = set(core::slice::from_ref(first), &USUAL, &FIELDS, "Hi.\r\n");
    assert_eq!(
        fails(&with(&[first.clone(), second.clone()])),
        ArcError::Link(2, SignatureReason::BodyChanged)
    );
    let resealed = with(&[first.clone(), second]).replace(BODY, "Hi.\r\n");
    assert_eq!(
        verdict(&resealed),
        ChainVerdict::Pass,
        "the older message signature is not verified"
    );
    assert_eq!(
        fails(&with(&sets(3)).replace("hungry", "angry")),
        ArcError::Link(3, SignatureReason::BodyChanged)
    );
    assert_eq!(
        fails(&with(&sets(3)).replace("dinner", "sinner")),
        ArcError::Link(3, SignatureReason::SignatureWrong)
    );
    let hidden = with(&sets(1)).replace("Subject:", "From: eve@other.test\r\nSubject:");
    assert_eq!(fails(&hidden), ArcError::Link(1, SignatureReason::FromNotSigned));
}

#[test]
fn any_change_of_a_chain_breaks_a_seal() {
    let whole = sets(3);
    for (number, field) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)] {
        let mut changed = whole.clone();
        // Changes a word, or adds an unknown tag.
        changed[number][field] =
            changed[number][field].replace("\r\n\td", "\r\n\tx").replace("; s=", "; y=z; s=");
        assert_ne!(changed, whole);
        assert_eq!(
            fails(&with(&changed)),
            ArcError::Link(3, SignatureReason::SignatureWrong),
            "{number} {field}"
        );
    }
    // A chain with one broken seal, to which later forwarders have added valid sets.
    for broken in 1..=3 {
        let mut sets: Vec<Set> = Vec::new();
        for number in 1..=3 {
            let mut next = set(&sets, &USUAL, &FIELDS, BODY);
            if number == broken {
                next[2] = next[2].replace("; s=", "; t=1; s=");
            }
            sets.push(next);
        }
        assert_eq!(fails(&with(&sets)), ArcError::Link(broken, SignatureReason::SignatureWrong));
    }
}

#[test]
fn chain_with_missing_or_repeated_fields_fails() {
    let whole = sets(3);
    for number in 0..3 {
        for field in 0..3 {
            let mut lacking = whole.clone();
            lacking[number][field] = String::new();
            assert_eq!(fails(&with(&lacking)), ArcError::Incomplete, "{number} {field}");
            let mut twice = whole.clone();
            twice[number][field] = whole[number][field].repeat(2);
            assert_eq!(fails(&with(&twice)), ArcError::Incomplete, "{number} {field}");
        }
        let mut gap = whole.clone();
        gap.remove(number);
        let expected = if number == 2 { None } else { Some(ArcError::Incomplete) };
        assert_eq!(expected.is_none(), verdict(&with(&gap)) == ChainVerdict::Pass);
    }
    let one = with(&sets(1));
    for number in ["0", "2", "50", "51", "99"] {
        assert_eq!(
            fails(&one.replace("i=1", &format!("i={number}"))),
            ArcError::Incomplete,
            "{number}"
        );
    }
    for number in ["", "-1", "1.", "one", "100", "001", "1 1"] {
        assert_eq!(
            fails(&one.replace("i=1", &format!("i={number}"))),
            ArcError::Syntax,
            "{number}"
        );
    }
    for (field, broken) in [
        ("Results: i=1; ", "Results: "),
        ("Results: i=1; ", "Results: x; i=1; "),
        ("Seal: i=1; ", "Seal: "),
    ] {
        assert!(one.contains(field));
        assert_eq!(fails(&one.replace(field, broken)), ArcError::Syntax, "{broken}");
    }
    assert_eq!(
        fails(&one.replace("Message-Signature: i=1; ", "Message-Signature: ")),
        ArcError::Syntax
    );
}

#[test]
fn set_numbers_may_be_anywhere_with_spaces_and_zeros() {
    for (results, tags) in
        [("i=1; mx", "i=1"), (" i = 01 ; mx", "i=01"), ("\r\n i\r\n\t=1\r\n ;mx", "i = 1")]
    {
        let tags = format!("{SIGNER}; {tags}");
        let one =
            set(&[], &SetOptions { results, message: &tags, seal: &tags, ..USUAL }, &FIELDS, BODY);
        assert_eq!(verdict(&with(&[one])), ChainVerdict::Pass, "{results}");
    }
}

#[test]
fn seal_status_must_fit_its_position() {
    let sealed = |statuses: &[&str]| {
        let mut sets = Vec::new();
        for status in statuses {
            sets.push(set(&sets, &SetOptions { status, ..USUAL }, &FIELDS, BODY));
        }
        verdict(&with(&sets))
    };
    for (statuses, expected) in [
        (&["none", "pass", "pass"][..], ChainVerdict::Pass),
        (&["pass"], ChainVerdict::Fail(ArcError::WrongStatus)),
        (&["fail"], ChainVerdict::Fail(ArcError::SealedAsBroken)),
        (&["none", "none"], ChainVerdict::Fail(ArcError::WrongStatus)),
        (&["none", "fail"], ChainVerdict::Fail(ArcError::SealedAsBroken)),
        (&["none", "fail", "pass"], ChainVerdict::Fail(ArcError::WrongStatus)),
        (&["fail", "fail"], ChainVerdict::Fail(ArcError::WrongStatus)),
        (&["none", "PASS"], ChainVerdict::Fail(ArcError::WrongStatus)),
        (&["none", "maybe"], ChainVerdict::Fail(ArcError::WrongStatus)),
    ] {
        assert_eq!(sealed(statuses), expected, "{statuses:?}");
    }
    assert_eq!(fails(&with(&sets(1)).replace("; cv=none", "")), ArcError::Syntax);
}

#[test]
fn invalid_signatures_fail_the_chain() {
    let made = |options: &SetOptions<'_>| {
        let first = set(&[], options, &FIELDS, BODY);
        fails(&with(&[first]))
    };
    let link = |reason| ArcError::Link(1, reason);
    for (from, to, of_seal, of_message) in [
        ("ed25519-sha256", "rsa-sha1", link(SignatureReason::Sha1), link(SignatureReason::Sha1)),
        ("ed25519-sha256", "ed448", link(SignatureReason::Unknown), link(SignatureReason::Unknown)),
        ("d=example.test; ", "", link(SignatureReason::Syntax), link(SignatureReason::Syntax)),
        ("s=key", "s=", link(SignatureReason::Syntax), link(SignatureReason::Syntax)),
        (
            "s=key",
            "s=key; x=1999999",
            link(SignatureReason::Expired),
            link(SignatureReason::Expired),
        ),
        (
            "s=key",
            "s=key; t=2003601",
            link(SignatureReason::FromTheFuture),
            link(SignatureReason::FromTheFuture),
        ),
        ("s=key", "s=key; s=key", ArcError::Syntax, ArcError::Syntax),
    ] {
        let tags = SIGNER.replace(from, to);
        assert_eq!(made(&SetOptions { seal: &tags, ..USUAL }), of_seal, "{to}");
        assert_eq!(made(&SetOptions { message: &tags, ..USUAL }), of_message, "{to}");
    }
    assert_eq!(
        made(&SetOptions { seal: &format!("{SIGNER}; h=From"), ..USUAL }),
        ArcError::Syntax,
        "RFC 8617 §4.1.3"
    );
    for (covered, expected) in [
        ("h=To:Subject", link(SignatureReason::FromNotSigned)),
        ("h=From:ARC-Seal", ArcError::CoversItself),
        ("h=From:arc-authentication-results", ArcError::CoversItself),
        ("c=loose; h=From", link(SignatureReason::Unknown)),
        ("l=5; h=From", link(SignatureReason::BodyPartlySigned)),
    ] {
        assert_eq!(
            made(&SetOptions { message: &format!("{SIGNER}; {covered}"), ..USUAL }),
            expected,
            "{covered}"
        );
    }
    let with_unknown_tags = format!("v=7; x_y=z; {SIGNER}");
    let one = set(
        &[],
        &SetOptions { message: &with_unknown_tags, seal: &with_unknown_tags, ..USUAL },
        &FIELDS,
        BODY,
    );
    assert_eq!(
        verdict(&with(&[one])),
        ChainVerdict::Pass,
        "unknown tags and a version are ignored"
    );
}

#[test]
fn chain_without_key_answers_is_open() {
    let judged = |keys: Texts<'_>| judged(&with(&sets(2)), keys).0;
    let fail = |reason| ChainVerdict::Fail(ArcError::Link(2, reason));
    assert_eq!(judged(Ok(&[])), fail(SignatureReason::NoKey));
    assert_eq!(judged(Ok(&[b"v=DKIM1; k=ed25519; p="])), fail(SignatureReason::KeyRevoked));
    assert_eq!(judged(Ok(&[record("t=y; ").as_bytes()])), fail(SignatureReason::Testing));
    assert!(!judged(Ok(&[])).is_open() && !ChainVerdict::Pass.is_open());
    let silent = judged(Err(Unanswered::Silence));
    assert_eq!(silent, fail(SignatureReason::KeyUnanswered(Unanswered::Silence)));
    assert!(silent.is_open());
}

#[test]
fn sets_and_keys_of_a_chain_are_limited() {
    let longest = sets(SETS_MAX);
    assert_eq!(verdict(&with(&longest)), ChainVerdict::Pass);
    let one_more = with(&[&longest[..], &sets(1)].concat());
    assert_eq!(fails(&one_more), ArcError::TooLong);
    for (count, expected) in [
        (CHAIN_KEYS_MAX, ChainVerdict::Pass),
        (CHAIN_KEYS_MAX + 1, ChainVerdict::Fail(ArcError::TooManyKeys)),
    ] {
        let mut sets: Vec<Set> = Vec::new();
        for number in 0..count {
            let signer = SIGNER.replace("s=key", &format!("s=key{number}"));
            sets.push(set(
                &sets,
                &SetOptions { message: &signer, seal: &signer, ..USUAL },
                &FIELDS,
                BODY,
            ));
        }
        let message = with(&sets);
        assert_eq!(verdict(&message), expected);
        let mut asked = read(message.as_bytes()).missing(&Knowledge::default(), NOW);
        asked.dedup();
        assert_eq!(asked.is_empty(), count > CHAIN_KEYS_MAX, "{asked:?}");
    }
    // No key is asked for if the newest signature cannot count.
    let old = with(&[set(
        &[],
        &SetOptions { message: &format!("{SIGNER}; x=5"), ..USUAL },
        &FIELDS,
        BODY,
    )]);
    assert_eq!(read(old.as_bytes()).missing(&Knowledge::default(), NOW), []);
}

#[test]
fn chain_in_a_too_long_header_fails() {
    let long = format!("X: {}\r\n", "x".repeat(crate::HEADER_BYTES_MAX));
    assert_eq!(
        fails(&with(&sets(1)).replace("Subject: ", &format!("{long}Subject: "))),
        ArcError::Link(1, SignatureReason::HeaderTooLong)
    );
}

#[test]
fn trusted_forwarders_vouch_while_all_newer_are_trusted() {
    const FOUND: &str = "mx; spf=fail; DMARC = Pass (p=reject) header.from=example.test";
    let vouched = |signers: &[(&str, &str)]| {
        let mut sets: Vec<Set> = Vec::new();
        for (domain, results) in signers {
            let tags = SIGNER.replace("example.test", domain);
            let results = format!("i={}; {results}", sets.len() + 1);
            sets.push(set(
                &sets,
                &SetOptions { results: &results, message: &tags, seal: &tags, ..USUAL },
                &FIELDS,
                BODY,
            ));
        }
        let message = read(with(&sets).as_bytes());
        let trusted = Name::parse("good.test").unwrap();
        message
            .trusted_forwarder(|name| name.is_within(&trusted))
            .map(|name| name.as_str().to_string())
    };
    let good = |name: &str| Some(name.to_string());
    assert_eq!(vouched(&[]), None);
    assert_eq!(vouched(&[("good.test", FOUND)]), good("good.test"));
    assert_eq!(vouched(&[("list.good.test", FOUND)]), good("list.good.test"));
    assert_eq!(vouched(&[("notgood.test", FOUND)]), None);
    assert_eq!(
        vouched(&[("good.test", FOUND), ("bad.test", FOUND)]),
        None,
        "the last forwarder may have changed it"
    );
    assert_eq!(vouched(&[("bad.test", FOUND), ("good.test", "mx; dmarc=fail")]), None);
    assert_eq!(
        vouched(&[("a.good.test", FOUND), ("b.good.test", "mx; dmarc=fail")]),
        good("a.good.test")
    );
    for found in [
        "mx; dmarc=fail",
        "mx; dmarc=passed",
        "mx; dkim=pass",
        "mx; dmarc=fail reason=\"x; dmarc=pass\"",
        "mx; dmarc=fail (x; dmarc=pass)",
        "mx; dmarc=fail (x (y) ; dmarc=pass)",
        "mx; spf=pass smtp.mailfrom=\"a\\\"; dmarc=pass;\"",
        "mx; xdmarc=pass",
        "dmarc",
    ] {
        assert_eq!(vouched(&[("good.test", found)]), None, "{found}");
    }
    assert_eq!(
        vouched(&[("good.test", "(by us) mx ; dmarc/1 (DMARC)=(yes) pass")]),
        good("good.test")
    );
}
