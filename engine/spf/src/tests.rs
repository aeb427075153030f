//! Tests of cases beyond the test suite of RFC 7208, which `tests/spf.py` runs, and of the limits
//! of a check.

mod oracle;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;

use dns::{Answer, Knowledge, Missing, Name, Question, Record, RecordKind, Unanswered};
use proptest::prelude::*;

use crate::expansion::Values;
use crate::policy::{POLICY_BYTES_MAX, SpfPolicy};
use crate::specification::Specification;
use crate::{SpfSender, SpfVerdict, check};

type World<'a> = &'a dyn Fn(&Question) -> Result<Vec<Record>, Unanswered>;

/// Checks a sender, with answers of name servers from `world`. Returns the verdict and the
/// questions.
fn in_world(sender: &SpfSender<'_>, world: World<'_>) -> (SpfVerdict, Vec<String>) {
    let (mut knowledge, mut asked) = (Knowledge::default(), Vec::new());
    loop {
        let question = match check(sender, &knowledge) {
            Ok(verdict) => return (verdict, asked),
            Err(Missing(question)) => question,
        };
        asked.push(format!("{:?} {}", question.kind, question.name));
        assert!(asked.len() < 150, "the number of questions is bounded");
        let answer = world(&question);
        let answer =
            answer.map(|records| Answer { exists: true, is_authenticated: false, records });
        knowledge.learn(question, answer);
    }
}

fn sender(address: &str) -> SpfSender<'static> {
    let address = address.parse().unwrap();
    SpfSender { address, hello: "mail.example.test", local_part: "ada", domain: "example.test" }
}

fn text(policy: &str) -> Record {
    Record::Text(policy.as_bytes().into())
}

/// The verdict of the policy of `example.test` on an address. No other name has records.
fn verdict(policy: &str, address: &str) -> SpfVerdict {
    let world: World<'_> = &|question| {
        let is_policy =
            question.kind == RecordKind::Text && question.name.as_str() == "example.test";
        Ok(if is_policy { Vec::from([text(policy)]) } else { Vec::new() })
    };
    in_world(&sender(address), world).0
}

#[test]
fn networks_match_by_their_first_bits() {
    for (network, address, expected) in [
        ("ip4:192.0.2.0/24", "192.0.2.255", SpfVerdict::Pass),
        ("ip4:192.0.2.0/24", "192.0.3.0", SpfVerdict::Fail),
        ("ip4:192.0.2.0/0", "203.0.113.9", SpfVerdict::Pass),
        ("ip4:192.0.2.1", "::ffff:192.0.2.1", SpfVerdict::Pass),
        ("ip4:192.0.2.1/0", "2001:db8::1", SpfVerdict::Fail),
        ("ip6:2001:db8::/32", "2001:db8:ffff::1", SpfVerdict::Pass),
        ("ip6:2001:db8::/33", "2001:db8:ffff::1", SpfVerdict::Fail),
        ("ip6:::/0", "2001:db8::1", SpfVerdict::Pass),
    ] {
        assert_eq!(
            verdict(&format!("v=spf1 {network} -all"), address),
            expected,
            "{network} {address}"
        );
    }
}

#[test]
fn invalid_policy_is_invalid_for_every_sender() {
    for broken in [
        "v=spf1 ip4:192.0.2.1 moo",
        "v=spf1 ip4:192.0.2.1 ip4:192.0.2.1/33",
        "v=spf1 ip4:192.0.2.1 ip4:192.0.2.1/08",
        "v=spf1 ip4:192.0.2.1 a/24/",
        "v=spf1 ip4:192.0.2.1 a//129",
        "v=spf1 ip4:192.0.2.1 include",
        "v=spf1 ip4:192.0.2.1 exists:%{x}.test",
        "v=spf1 ip4:192.0.2.1 exists:%{d0}.test",
        "v=spf1 ip4:192.0.2.1 exists:%{c}.test",
        "v=spf1 ip4:192.0.2.1 all:",
        "v=spf1 ip4:192.0.2.1 redirect=a.test redirect=b.test",
        "v=spf1 ip4:192.0.2.1 exp=a.test exp=b.test",
        "v=spf1 ip4:192.0.2.1 -redirect=a.test",
        "v=spf1 ip4:192.0.2.1 a:toplevel",
        "v=spf1 ip4:192.0.2.1 a:numeric.123",
    ] {
        assert_eq!(verdict(broken, "192.0.2.1"), SpfVerdict::PermError, "{broken}");
    }
    assert_eq!(verdict("v=spf1 ip4:192.0.2.1 moo=%{x", "192.0.2.1"), SpfVerdict::PermError);
    assert_eq!(verdict("v=spf1 moo=%{x} ip4:192.0.2.1", "192.0.2.1"), SpfVerdict::PermError);
    assert_eq!(verdict("v=spf1 moo=%{d} ip4:192.0.2.1", "192.0.2.1"), SpfVerdict::Pass);
}

#[test]
fn text_of_another_version_is_no_policy() {
    for other in ["v=spf10 -all", "v=spf2.0/pra -all", "spf1 -all", "", "v=spf1\t-all"] {
        assert_eq!(verdict(other, "192.0.2.1"), SpfVerdict::None, "{other}");
    }
    assert_eq!(verdict("V=SPF1 -ALL", "192.0.2.1"), SpfVerdict::Fail);
    assert_eq!(verdict("v=spf1", "192.0.2.1"), SpfVerdict::Neutral);
}

#[test]
fn silence_of_name_servers_is_temperror() {
    let silent: World<'_> = &|_| Err(Unanswered::Silence);
    assert_eq!(in_world(&sender("192.0.2.1"), silent).0, SpfVerdict::TempError);
    let later: World<'_> = &|question| match question.kind {
        RecordKind::Text => Ok(Vec::from([text("v=spf1 a:host.test -all")])),
        _ => Err(Unanswered::Silence),
    };
    assert_eq!(in_world(&sender("192.0.2.1"), later).0, SpfVerdict::TempError);
}

#[test]
fn local_part_is_expanded_within_labels() {
    let world: World<'_> = &|question| {
        let records = match question.kind {
            RecordKind::Text => Vec::from([text("v=spf1 exists:%{l1r-}.%{L}.user.test -all")]),
            _ => Vec::from([Record::Address(IpAddr::from([127, 0, 0, 2]))]),
        };
        Ok(records)
    };
    let strange = SpfSender { local_part: "Ada-b\\ c", ..sender("192.0.2.1") };
    let (verdict, asked) = in_world(&strange, world);
    assert_eq!(verdict, SpfVerdict::Pass);
    // The first word of the local part, and the whole local part with escapes.
    assert_eq!(asked[1], "Ipv4 ada.ada-b%5c%20c.user.test");
}

#[test]
fn first_labels_of_too_long_names_are_dropped() {
    let world: World<'_> = &|question| match question.kind {
        RecordKind::Text => Ok(Vec::from([text("v=spf1 exists:%{l}.long.test -all")])),
        _ => Ok(Vec::from([Record::Address(IpAddr::from([127, 0, 0, 2]))])),
    };
    let local_part = "longer.".repeat(40) + "end";
    let (verdict, asked) =
        in_world(&SpfSender { local_part: &local_part, ..sender("192.0.2.1") }, world);
    assert_eq!(verdict, SpfVerdict::Pass);
    // The kind and a space come before the name.
    let name = asked[1].strip_prefix("Ipv4 ").unwrap();
    assert!(
        name.starts_with("longer.longer.") && name.ends_with(".longer.end.long.test"),
        "{name}"
    );
    assert!((247..=253).contains(&name.len()), "{}", name.len());
}

#[test]
fn only_ten_names_of_an_address_are_used() {
    let world = |own: u8| {
        move |question: &Question| {
            let name = |number| Name::parse(&format!("p{number}.example.test")).unwrap();
            Ok(match question.kind {
                RecordKind::Text => Vec::from([text("v=spf1 ptr -all")]),
                RecordKind::Pointer => {
                    (1..=11).map(|number| Record::Pointer(name(number))).collect()
                }
                _ if question.name == name(own) => {
                    Vec::from([Record::Address(IpAddr::from([192, 0, 2, 1]))])
                }
                _ => Vec::new(),
            })
        }
    };
    assert_eq!(in_world(&sender("192.0.2.1"), &world(10)).0, SpfVerdict::Pass);
    assert_eq!(in_world(&sender("192.0.2.1"), &world(11)).0, SpfVerdict::Fail);
}

#[test]
fn circular_spf_policies_are_permanent_errors() {
    let includes_itself: World<'_> = &|_| Ok(Vec::from([text("v=spf1 include:%{d} -all")]));
    assert_eq!(in_world(&sender("192.0.2.1"), includes_itself).0, SpfVerdict::PermError);
    let redirects: World<'_> =
        &|question| Ok(Vec::from([text(&format!("v=spf1 redirect=a.{}", question.name))]));
    assert_eq!(in_world(&sender("192.0.2.1"), redirects).0, SpfVerdict::PermError);
}

#[test]
fn questions_of_a_policy_are_bounded() {
    let name = |text: String| Name::parse(&text).unwrap();
    let greedy: World<'_> = &|question| {
        let numbers = 0..10_u8;
        Ok(match question.kind {
            RecordKind::Text => {
                let terms: Vec<String> =
                    (0..10).map(|number| format!("mx:%{{p}}.{number}.test")).collect();
                Vec::from([text(&format!("v=spf1 {} -all", terms.join(" ")))])
            }
            RecordKind::Exchanger => numbers
                .map(|number| Record::Exchanger {
                    preference: 0,
                    host: name(format!("{number}.{}", question.name)),
                })
                .collect(),
            RecordKind::Pointer => {
                numbers.map(|number| Record::Pointer(name(format!("p{number}.test")))).collect()
            }
            _ => Vec::from([Record::Address(IpAddr::from([127, 0, 0, 1]))]),
        })
    };
    let (verdict, asked) = in_world(&sender("192.0.2.1"), greedy);
    assert_eq!(verdict, SpfVerdict::Fail);
    assert_eq!(
        asked.len(),
        1 + 11 + 10 * 11,
        "the policy, the sender's names, and ten times ten hosts: {asked:?}"
    );
}

const WORDS: [&str; 24] = [
    "a",
    "mx",
    "ptr",
    "include:",
    "exists:",
    "redirect=",
    "exp=",
    "ip4:",
    "ip6:",
    "all",
    "-",
    "~",
    "?",
    ":",
    "/24",
    "//64",
    "%{i}",
    "%{p}",
    "%{d2r-}",
    "%{S}",
    "b.test",
    "192.0.2.1",
    "::1",
    " ",
];

proptest! {
    #[test]
    fn any_policy_is_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = SpfPolicy::read(&[b"v=spf1 ", &bytes[..]].concat());
    }

    #[test]
    fn evaluation_of_any_set_of_spf_policies_ends(
        words in prop::collection::vec(prop::collection::vec(0..WORDS.len(), 0..24), 1..4),
        answers in prop::collection::vec(0_u8..5, 1..12),
        is_ipv6 in any::<bool>(),
    ) {
        let policies: Vec<String> = words
            .iter()
            .map(|words| format!("v=spf1 {}", words.iter().map(|word| WORDS[*word]).collect::<String>()))
            .collect();
        let world: World<'_> = &|question| {
            let length = question.name.as_str().len();
            Ok(match (answers[length % answers.len()], question.kind) {
                (0, _) => return Err(Unanswered::Silence),
                (1, _) => Vec::new(),
                (_, RecordKind::Text) => Vec::from([text(&policies[length % policies.len()])]),
                (_, RecordKind::Exchanger) => Vec::from([Record::Exchanger { preference: 1, host: question.name.clone() }]),
                (_, RecordKind::Pointer) => Vec::from([Record::Pointer(Name::parse("b.test").unwrap())]),
                (2, RecordKind::Ipv6) => Vec::from([Record::Address("2001:db8::1".parse().unwrap())]),
                (2, _) => Vec::from([Record::Address("192.0.2.1".parse().unwrap())]),
                _ => Vec::from([Record::Address("192.0.2.9".parse().unwrap())]),
            })
        };
        let address = if is_ipv6 { "2001:db8::1" } else { "192.0.2.1" };
        let (verdict, _) = in_world(&sender(address), world);
        prop_assert!(!verdict.to_string().is_empty());
    }
}

#[test]
fn policies_above_the_size_limit_are_invalid() {
    for (terms, verdict) in [(0, SpfVerdict::Fail), (1, SpfVerdict::PermError)] {
        let filler = " ?ip4:192.0.2.1".repeat((POLICY_BYTES_MAX - 11) / 15 + terms);
        let policy = format!("v=spf1{filler} -all");
        assert_eq!(policy.len() > POLICY_BYTES_MAX, verdict == SpfVerdict::PermError);
        let world = |_: &Question| Ok(Vec::from([Record::Text(policy.as_bytes().into())]));
        assert_eq!(in_world(&sender("192.0.2.9"), &world).0, verdict);
    }
}

/// The name of a specification, by dropping one label after the other.
fn name_by_labels(text: &str) -> String {
    let mut text = text;
    while text.len() > 253 {
        let Some((_, rest)) = text.split_once('.') else { break };
        text = rest;
    }
    text.into()
}

proptest! {
    #[test]
    fn long_expansions_keep_their_last_labels(
        local_part in "[a-z.]{0,64}",
        pieces in proptest::collection::vec(prop_oneof![
            3 => Just("%{s}"), 2 => Just("%{l}"), 1 => Just("."), 1 => Just("abc.d"), 1 => Just("%{h}"),
        ], 0..60),
    ) {
        let sender = SpfSender { local_part: &local_part, ..sender("192.0.2.1") };
        let values = Values { sender: &sender, domain: b"", validated: b"" };
        let text: String = pieces.concat();
        let specification = Specification::of_text(text.as_bytes()).unwrap();
        let whole = text
            .replace("%{s}", &format!("{local_part}@example.test"))
            .replace("%{l}", &local_part)
            .replace("%{h}", "mail.example.test");
        let name = values.expand(&specification);
        prop_assert!(name.capacity() < 4096);
        let expected = name_by_labels(&whole);
        if expected.len() <= 253 {
            prop_assert_eq!(String::from_utf8(name).unwrap(), expected);
        } else {
            prop_assert!(name.len() > 253, "the last label alone is too long");
        }
    }
}
