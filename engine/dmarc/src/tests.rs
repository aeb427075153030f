//! Tests of records, tree walks, and verdicts.

mod oracle;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use dns::{Answer, Knowledge, Missing, Name, Question, Record, RecordKind, Unanswered};
use proptest::prelude::*;

use crate::DmarcPolicy::{Quarantine, Reject};
use crate::DmarcVerdict::{Fail, None as Nothing, Pass, TempError};
use crate::record::RECORD_BYTES_MAX;
use crate::{DmarcPolicy, DmarcVerdict, MessageOrigins, WALK_MAX, check};

/// The domains with their records.
type World<'a> = &'a [(&'a str, &'a str)];

const AUTHOR: &str = "mail.example.test";

/// The verdict on a message, and the questions. Name servers do not answer for a domain with the
/// record `silence`.
fn verdict_and_questions(
    author: &str,
    sender: Option<&str>,
    signers: &[&str],
    world: World<'_>,
) -> (DmarcVerdict, Vec<String>) {
    let name = |text: &str| Name::parse(text).unwrap();
    let (author, sender) = (name(author), sender.map(name));
    let signers: Vec<Name> = signers.iter().map(|signer| name(signer)).collect();
    let origins = MessageOrigins { author: &author, sender: sender.as_ref(), signers: &signers };
    let (mut knowledge, mut asked) = (Knowledge::default(), Vec::new());
    loop {
        let Missing(question) = match check(&origins, &knowledge) {
            Ok(verdict) => return (verdict, asked),
            Err(missing) => missing,
        };
        asked.push(format!("{:?} {}", question.kind, question.name));
        let answer = answer(&question, world);
        knowledge.learn(question, answer);
    }
}

fn answer(question: &Question, world: World<'_>) -> Result<Answer, Unanswered> {
    let mut records = Vec::new();
    for (domain, text) in world {
        let is_text = question.kind == RecordKind::Text
            && question.name.as_str() == format!("_dmarc.{domain}");
        if is_text && *text == "silence" {
            return Err(Unanswered::Silence);
        }
        if is_text {
            records.push(Record::Text(text.as_bytes().into()));
        }
        if question.kind == RecordKind::Ipv4
            && question.name.as_str() == *domain
            && *text == "address"
        {
            records.push(Record::Address(IpAddr::from([192, 0, 2, 1])));
        }
    }
    Ok(Answer { exists: true, is_authenticated: false, records })
}

/// The verdict on a message without a passed signature or sender.
fn unproved(author: &str, world: World<'_>) -> DmarcVerdict {
    verdict_and_questions(author, None, &[], world).0
}

#[test]
fn domain_without_a_record_has_no_policy() {
    for text in [
        "v=spf1 -all",
        "v=DMARC2; p=reject",
        "V=DMARC1; p=reject",
        "v=dmarc1; p=reject",
        "p=reject; v=DMARC1",
        "",
    ] {
        assert_eq!(unproved("example.test", &[("example.test", text)]), Nothing, "{text}");
    }
    let twice = [("example.test", "v=DMARC1; p=reject"), ("example.test", "v=DMARC1; p=reject")];
    assert_eq!(unproved("example.test", &twice), Nothing);
}

#[test]
fn record_states_the_policy() {
    // `more`: the number of bytes above the maximum length.
    let long = |more| format!("v=DMARC1; p=reject;{}", "x".repeat(RECORD_BYTES_MAX - 19 + more));
    for (text, expected) in [
        ("v=DMARC1; p=reject", Fail(Reject)),
        (" v = DMARC1 ;p= Quarantine ; ; moo; x=y", Fail(Quarantine)),
        ("v=DMARC1;p=none", Fail(DmarcPolicy::None)),
        ("v=DMARC1", Fail(DmarcPolicy::None)),
        ("v=DMARC1; p=moo", Nothing),
        ("v=DMARC1; p=moo; rua=mailto:a@b.test", Fail(DmarcPolicy::None)),
        ("v=DMARC1; p=reject; sp=moo", Nothing),
        (
            "v=DMARC1; p=reject; np=moo; rua=https://b.test , MAILTO:a@b.test",
            Fail(DmarcPolicy::None),
        ),
        ("v=DMARC1; p=moo; rua=mailto:, a@b.test, mailto:@b.test", Nothing),
        ("v=DMARC1; p=reject; t=y", Fail(Quarantine)),
        ("v=DMARC1; p=quarantine; t=y", Fail(DmarcPolicy::None)),
        ("v=DMARC1; p=reject; t=n; pct=0", Fail(Reject)),
        ("v=DMARC1; p=reject; sp=none; np=none", Fail(Reject)),
        (&long(0), Fail(Reject)),
        (&long(1), Nothing),
    ] {
        assert_eq!(unproved("example.test", &[("example.test", text)]), expected, "{text}");
    }
}

#[test]
fn subdomains_may_have_another_policy() {
    for (text, expected) in [
        ("v=DMARC1; p=reject", Fail(Reject)),
        ("v=DMARC1; p=reject; sp=none", Fail(DmarcPolicy::None)),
        ("v=DMARC1; p=none; np=reject", Fail(Reject)),
        ("v=DMARC1; p=none; sp=quarantine; np=reject", Fail(Reject)),
    ] {
        assert_eq!(unproved(AUTHOR, &[("example.test", text)]), expected, "{text}");
    }
    let existing =
        [("example.test", "v=DMARC1; p=none; sp=quarantine; np=reject"), (AUTHOR, "address")];
    assert_eq!(unproved(AUTHOR, &existing), Fail(Quarantine));
    let own = [("example.test", "v=DMARC1; p=none; sp=quarantine"), (AUTHOR, "v=DMARC1; p=reject")];
    assert_eq!(unproved(AUTHOR, &own), Fail(Reject));
}

#[test]
fn message_passes_if_domain_or_organization_is_proved() {
    let relaxed = [("example.test", "v=DMARC1; p=reject")];
    let strict = [("example.test", "v=DMARC1; p=reject; adkim=s; aspf=S")];
    for (proved, expected, strictly) in [
        (AUTHOR, Pass, Pass),
        ("example.test", Pass, Fail(Reject)),
        ("other.example.test", Pass, Fail(Reject)),
        ("a.mail.example.test", Pass, Fail(Reject)),
        ("test", Fail(Reject), Fail(Reject)),
        ("anexample.test", Fail(Reject), Fail(Reject)),
        ("mail.example.test.eve.test", Fail(Reject), Fail(Reject)),
    ] {
        for (world, expected) in [(&relaxed, expected), (&strict, strictly)] {
            assert_eq!(
                verdict_and_questions(AUTHOR, Some(proved), &[], world).0,
                expected,
                "{proved}"
            );
            assert_eq!(
                verdict_and_questions(AUTHOR, None, &["eve.test", proved], world).0,
                expected,
                "{proved}"
            );
        }
    }
    let half = [("example.test", "v=DMARC1; p=reject; adkim=s")];
    assert_eq!(verdict_and_questions(AUTHOR, Some("example.test"), &[], &half).0, Pass);
    assert_eq!(verdict_and_questions(AUTHOR, None, &["example.test"], &half).0, Fail(Reject));
}

#[test]
fn psd_tag_limits_the_organization() {
    // Domains below a public suffix belong to others.
    let public = [("test", "v=DMARC1; p=reject; psd=y")];
    assert_eq!(verdict_and_questions(AUTHOR, Some("a.example.test"), &[], &public).0, Pass);
    assert_eq!(verdict_and_questions(AUTHOR, Some("a.other.test"), &[], &public).0, Fail(Reject));
    // A part of an organization may be a separate organization.
    let part = [(AUTHOR, "v=DMARC1; p=reject; psd=n"), ("example.test", "v=DMARC1; p=none")];
    assert_eq!(verdict_and_questions(AUTHOR, Some("a.mail.example.test"), &[], &part).0, Pass);
    assert_eq!(verdict_and_questions(AUTHOR, Some("example.test"), &[], &part).0, Fail(Reject));
    let other = [("other.example.test", "v=DMARC1; psd=n"), ("example.test", "v=DMARC1; p=reject")];
    assert_eq!(
        verdict_and_questions(AUTHOR, Some("other.example.test"), &[], &other).0,
        Fail(Reject)
    );
    // A public suffix that sends mail itself is its own organization.
    assert_eq!(verdict_and_questions("test", Some("test"), &[], &public).0, Pass);
    assert_eq!(verdict_and_questions("test", Some("example.test"), &[], &public).0, Fail(Reject));
    let deep = [("co.test", "v=DMARC1; p=reject; psd=y")];
    assert_eq!(verdict_and_questions("co.test", Some("other.test"), &[], &deep).0, Fail(Reject));
    // The highest of several records decides the organization, but not the policy.
    let several = [(AUTHOR, "v=DMARC1; p=quarantine"), ("example.test", "v=DMARC1; p=reject")];
    assert_eq!(verdict_and_questions(AUTHOR, Some("example.test"), &[], &several).0, Pass);
    assert_eq!(unproved("a.mail.example.test", &several), Fail(Reject));
}

#[test]
fn tree_walk_of_long_domains_skips_the_middle() {
    let (verdict, names) = verdict_and_questions("a.b.c.d.e.f.g.h.i.example.test", None, &[], &[]);
    assert_eq!(verdict, Nothing);
    let expected =
        ["a.b.c.d.e.f.g.h.i.example.test", "e.f.g.h.i.example.test", "f.g.h.i.example.test"];
    assert_eq!(names[..3], expected.map(|name| format!("Text _dmarc.{name}")));
    assert_eq!((names.len(), names[WALK_MAX - 1].as_str()), (WALK_MAX, "Text _dmarc.test"));
    assert_eq!(verdict_and_questions("a.b.c.d.e.f.example.test", None, &[], &[]).1.len(), WALK_MAX);
}

#[test]
fn unaligned_domains_cause_no_questions() {
    let world = [("example.test", "v=DMARC1; p=reject")];
    let (verdict, names) = verdict_and_questions(
        "example.test",
        Some("eve.test"),
        &["a.eve.test", "b.eve.test", "test"],
        &world,
    );
    assert_eq!((verdict, names.len()), (Fail(Reject), 2), "{names:?}");
}

#[test]
fn silence_is_temperror_unless_the_message_is_proved() {
    let silent = [("example.test", "silence")];
    assert_eq!(unproved("example.test", &silent), TempError);
    let part = [("example.test", "v=DMARC1; p=reject"), ("a.example.test", "silence")];
    assert_eq!(
        verdict_and_questions("example.test", Some("a.example.test"), &[], &part).0,
        TempError
    );
    assert_eq!(
        verdict_and_questions("example.test", Some("a.example.test"), &["example.test"], &part).0,
        Pass
    );
}

proptest! {
    #[test]
    fn any_record_is_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = crate::record::DmarcRecord::read(&[b"v=DMARC1;", &bytes[..]].concat());
    }
}
