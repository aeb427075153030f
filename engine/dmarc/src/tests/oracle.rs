//! Checks the same worlds with mail-auth, an independent implementation with the same tree walk
//! (RFC 9989).
//!
//! The random worlds contain no known difference. The last test has the known differences, in which
//! the RFC supports us.

use alloc::string::ToString;
use core::net::Ipv4Addr;

use futures_util::FutureExt;
use known::{AUTHENTICATOR, Known, first, records, silence};
use mail_auth::common::parse::TxtRecordParser;
use mail_auth::dkim::Signature;
use mail_auth::dmarc::verify::DmarcParameters;
use mail_auth::dmarc::{Dmarc, Policy};
use mail_auth::{
    AuthenticatedMessage, DkimOutput, DmarcResult, Parameters, RecordSet, SpfOutput, SpfResult, Txt,
};
use proptest::sample::{select, subsequence};
use proptest::{collection, option};

use super::*;

/// The texts and addresses of a world, in the form that mail-auth asks for.
fn known(world: World<'_>) -> (Known<Txt>, Known<RecordSet<Ipv4Addr>>) {
    let under = |wanted: &str| {
        world.iter().filter(|(domain, _)| *domain == wanted).map(|(_, text)| *text).collect()
    };
    let texts = world.iter().map(|(domain, _)| {
        let texts: Vec<&str> = under(domain);
        let is_silent = texts.contains(&"silence");
        let read = texts
            .iter()
            .filter(|text| **text != "address")
            .map(|text| Dmarc::parse(text.as_bytes()));
        (format!("_dmarc.{domain}"), if is_silent { silence() } else { first(read) })
    });
    let addresses = world.iter().filter(|(_, text)| *text == "address");
    let addresses =
        addresses.map(|(domain, _)| (domain.to_string(), records([Ipv4Addr::new(192, 0, 2, 1)])));
    (Known::texts(texts), Known::new(addresses, |_| None))
}

/// The verdict of mail-auth on a message.
fn theirs(author: &str, sender: Option<&str>, signers: &[&str], world: World<'_>) -> String {
    let message = format!("From: ada@{author}\r\n\r\n");
    let message = AuthenticatedMessage::parse(message.as_bytes()).unwrap();
    let signatures: Vec<Signature> = signers
        .iter()
        .map(|signer| Signature { d: signer.to_string(), ..Signature::default() })
        .collect();
    let signatures =
        signatures.iter().map(|signature| DkimOutput::pass().with_signature(signature));
    let signatures: Vec<DkimOutput<'_>> = signatures.collect();
    let passed = if sender.is_some() { SpfResult::Pass } else { SpfResult::Fail };
    let sender = sender.unwrap_or(author);
    let sent = SpfOutput::new(sender.into()).with_result(passed);
    let asked = DmarcParameters {
        message: &message,
        dkim_output: &signatures,
        dkim2_output: None,
        rfc5321_mail_from_domain: sender,
        spf_output: &sent,
    };
    let (texts, addresses) = known(world);
    let asked = Parameters::new(asked).with_txt_cache(&texts).with_ipv4_cache(&addresses);
    let output = AUTHENTICATOR.verify_dmarc(asked).now_or_never();
    let output = output.expect("mail-auth asks no server");
    match output.result() {
        DmarcResult::Pass => "pass".into(),
        DmarcResult::Fail(_) => match output.policy() {
            Policy::None => "fail none".into(),
            Policy::Quarantine => "fail quarantine".into(),
            Policy::Reject => "fail reject".into(),
            Policy::Unspecified => unreachable!(),
        },
        DmarcResult::TempError(_) => "temperror".into(),
        DmarcResult::PermError(_) => "permerror".into(),
        DmarcResult::None => "none".into(),
    }
}

fn ours(author: &str, sender: Option<&str>, signers: &[&str], world: World<'_>) -> String {
    match verdict_and_questions(author, sender, signers, world).0 {
        Fail(DmarcPolicy::None) => "fail none".into(),
        Fail(Quarantine) => "fail quarantine".into(),
        Fail(Reject) => "fail reject".into(),
        verdict => verdict.to_string(),
    }
}

const DOMAINS: [&str; 11] = [
    "invalid",
    "example.invalid",
    "mail.example.invalid",
    "a.mail.example.invalid",
    "b.mail.example.invalid",
    "news.example.invalid",
    "anexample.invalid",
    "other.invalid",
    "e.f.g.h.i.example.invalid",
    "d.e.f.g.h.i.example.invalid",
    "a.b.c.d.e.f.g.h.i.example.invalid",
];

fn record() -> impl Strategy<Value = String> {
    let handling = || select(&["none", "quarantine", "Reject"][..]);
    let handlings = ["sp=", "np="].map(|tag| {
        option::of(handling()).prop_map(move |policy| policy.map(|policy| format!("{tag}{policy}")))
    });
    let tags = [
        &["adkim=s", "adkim=r"],
        &["aspf=s", "aspf=R"],
        &["t=y", "t=n"],
        &["moo=x", "rua=mailto:ada@example.invalid"],
    ];
    let tags = tags.map(|tag| option::of(select(&tag[..])));
    let role = option::weighted(0.3, select(&["psd=y", "psd=n", "psd=u"][..]));
    (handling(), handlings, tags, role).prop_map(|(own, handlings, tags, role)| {
        let own = Vec::from([String::from("v=DMARC1"), format!("p={own}")]);
        let tags = tags.into_iter().flatten().chain(role).map(String::from);
        own.into_iter()
            .chain(handlings.into_iter().flatten())
            .chain(tags)
            .collect::<Vec<_>>()
            .join("; ")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn dmarc_verdicts_agree_with_mail_auth(
        author in select(&DOMAINS[1..]),
        sender in option::of(select(&DOMAINS[..])),
        signers in collection::vec(select(&DOMAINS[..]), 0..3),
        named in subsequence(&DOMAINS[..], 0..6),
        records in collection::vec(prop::option::weighted(0.93, record()), 6),
        is_there in any::<bool>(),
    ) {
        let records: Vec<String> = records.into_iter().map(|record| record.unwrap_or("silence".into())).collect();
        let mut world: Vec<(&str, &str)> = named.into_iter().zip(records.iter().map(String::as_str)).collect();
        world.extend(is_there.then_some((author, "address")));
        prop_assert_eq!(ours(author, sender, &signers, &world), theirs(author, sender, &signers, &world));
    }
}

#[test]
fn known_differences_from_mail_auth_follow_the_rfc() {
    let other = ("mail.example.invalid", "address");
    for (why, author, world, expected) in [
        (
            "two records count as none",
            "example.invalid",
            &[("example.invalid", "v=DMARC1; p=reject"); 2][..],
            ["none", "fail reject"],
        ),
        (
            "a record without a policy means `none`",
            "example.invalid",
            &[("example.invalid", "v=DMARC1")],
            ["fail none", "none"],
        ),
        (
            "a tag with an invalid value is ignored",
            "example.invalid",
            &[("example.invalid", "v=DMARC1; p=reject; adkim=x"), other],
            ["fail reject", "permerror"],
        ),
        (
            "a domain with one label may have a record",
            "invalid",
            &[("invalid", "v=DMARC1; p=reject")],
            ["fail reject", "none"],
        ),
    ] {
        assert_eq!(
            [ours(author, None, &[], world), theirs(author, None, &[], world)],
            expected,
            "{why}"
        );
    }
}
