//! Tests of the parsing of answers and names.

use domain::base::iana::{TlsaCertificateUsage, TlsaMatchingType, TlsaSelector};
use domain::rdata::{Aaaa, Mx, Ptr, Srv, Tlsa, Txt};
use proptest::prelude::*;

use super::*;
use crate::message::{OutgoingQuery, ReceivedReply, read};

/// The result for a reply with the records of `build`.
fn result_of(
    name: &str,
    kind: RecordKind,
    build: impl FnOnce(&mut AnswerBuilder<Vec<u8>>),
) -> ReceivedReply {
    let question = question(name, kind);
    let sent = OutgoingQuery::new(&question, 7, || true).unwrap();
    read(&reply(&sent.bytes, Rcode::NOERROR, build), &question, &sent, false)
}

fn records(
    name: &str,
    kind: RecordKind,
    build: impl FnOnce(&mut AnswerBuilder<Vec<u8>>),
) -> Vec<Record> {
    match result_of(name, kind, build) {
        ReceivedReply::Answer(answer, _) => answer.records,
        other => panic!("{other:?}"),
    }
}

const HOUR: Ttl = Ttl::HOUR;

#[test]
fn mx_records_have_preferences() {
    let read = records("example.test", RecordKind::Exchanger, |answer| {
        answer
            .push((labels("example.test"), HOUR, Mx::new(20, labels("Backup.Example.Test"))))
            .unwrap();
        answer
            .push((labels("EXAMPLE.test"), HOUR, Mx::new(10, labels("mail.example.test"))))
            .unwrap();
    });
    let exchanger =
        |preference, host| Record::Exchanger { preference, host: Name::parse(host).unwrap() };
    assert_eq!(read, [exchanger(20, "backup.example.test"), exchanger(10, "mail.example.test")]);
}

#[test]
fn null_mx_is_the_root() {
    let read = records("example.test", RecordKind::Exchanger, |answer| {
        answer.push((labels("example.test"), HOUR, Mx::new(0, Labels::root_vec()))).unwrap();
    });
    assert!(matches!(&read[..], [Record::Exchanger { preference: 0, host }] if host.is_root()));
}

#[test]
fn strings_of_a_text_are_joined() {
    let long = [b'x'; 300];
    let mut bytes = b"v=spf1 ".to_vec();
    bytes.extend(long);
    let text = Txt::<Vec<u8>>::build_from_slice(&bytes).unwrap();
    let read = records("example.test", RecordKind::Text, |answer| {
        answer.push((labels("example.test"), HOUR, text)).unwrap();
    });
    assert_eq!(read, [Record::Text(bytes.into())]);
}

#[test]
fn addresses_pointers_and_certificates_are_read() {
    let read = records("a.test", RecordKind::Ipv6, |answer| {
        answer
            .push((labels("a.test"), HOUR, Aaaa::new([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into())))
            .unwrap();
    });
    assert_eq!(read, [Record::Address("2001:db8::1".parse().unwrap())]);
    let read = records("1.2.0.192.in-addr.arpa", RecordKind::Pointer, |answer| {
        answer
            .push((labels("1.2.0.192.in-addr.arpa"), HOUR, Ptr::new(labels("Mail.Example.test"))))
            .unwrap();
    });
    assert_eq!(read, [Record::Pointer(Name::parse("mail.example.test").unwrap())]);
    let hash = [7; 32];
    let read = records("_25._tcp.mail.test", RecordKind::Tlsa, |answer| {
        let (usage, part) = (TlsaCertificateUsage::DANE_EE, TlsaSelector::SPKI);
        let tlsa = Tlsa::new(usage, part, TlsaMatchingType::SHA2_256, hash);
        answer.push((labels("_25._tcp.mail.test"), HOUR, tlsa)).unwrap();
    });
    assert_eq!(read, [Record::Tlsa { usage: 3, selector: 1, matching: 1, data: hash.into() }]);
}

#[test]
fn srv_records_have_ports_and_the_root_means_no_service() {
    let read = records("_pop3s._tcp.a.test", RecordKind::Service, |answer| {
        answer
            .push((labels("_pop3s._tcp.a.test"), HOUR, Srv::new(1, 2, 995, labels("Mail.a.test"))))
            .unwrap();
        answer
            .push((labels("_pop3s._tcp.a.test"), HOUR, Srv::new(0, 0, 0, Labels::root_vec())))
            .unwrap();
    });
    let service = |priority, weight, port, host| Record::Service {
        priority,
        weight,
        port,
        host: Name::parse(host).unwrap(),
    };
    assert_eq!(read, [service(1, 2, 995, "mail.a.test"), service(0, 0, 0, "")]);
}

#[test]
fn aliases_are_followed_in_any_order() {
    let read = records("a.test", RecordKind::Ipv4, |answer| {
        address(answer, "c.test", 3);
        alias(answer, "B.test", "c.test", 300);
        alias(answer, "a.test", "b.TEST", 300);
    });
    assert_eq!(read, [Record::Address(IpAddr::from([192, 0, 2, 3]))]);
}

#[test]
fn circular_and_endless_aliases_are_rejected() {
    let circle = result_of("a.test", RecordKind::Ipv4, |answer| {
        alias(answer, "a.test", "b.test", 300);
        alias(answer, "b.test", "a.test", 300);
    });
    assert_eq!(circle, ReceivedReply::Unanswered(Unanswered::Nonsense));
    let chain = |length: u32| {
        result_of("0.test", RecordKind::Ipv4, |answer| {
            for number in 0..length {
                alias(
                    answer,
                    &alloc::format!("{number}.test"),
                    &alloc::format!("{}.test", number + 1),
                    300,
                );
            }
            address(answer, &alloc::format!("{length}.test"), 1);
        })
    };
    assert!(
        matches!(chain(12), ReceivedReply::Answer(Answer { records, .. }, _) if records.len() == 1)
    );
    assert_eq!(chain(13), ReceivedReply::Unanswered(Unanswered::Nonsense));
}

#[test]
fn alias_without_target_has_no_records() {
    let read = records("a.test", RecordKind::Ipv4, |answer| alias(answer, "a.test", "b.test", 300));
    assert_eq!(read, []);
}

#[test]
fn ad_bit_is_reported() {
    for is_authenticated in [false, true] {
        let reading = result_of("a.test", RecordKind::Ipv4, |answer| {
            answer.header_mut().set_ad(is_authenticated);
            address(answer, "a.test", 1);
        });
        assert!(
            matches!(reading, ReceivedReply::Answer(answer, 300) if answer.is_authenticated == is_authenticated)
        );
    }
}

#[test]
fn broken_record_invalidates_the_answer() {
    let question = question("a.test", RecordKind::Ipv4);
    let sent = OutgoingQuery::new(&question, 7, || false).unwrap();
    let whole = reply(&sent.bytes, Rcode::NOERROR, |answer| address(answer, "a.test", 1));
    for length in sent.bytes.len()..whole.len() {
        let reading = read(&whole[..length], &question, &sent, false);
        assert!(
            !matches!(reading, ReceivedReply::Answer(..)),
            "{length} of {} bytes: {reading:?}",
            whole.len()
        );
    }
}

#[test]
fn names_are_compared_without_case_and_last_dot() {
    assert_eq!(Name::parse("Mail.Example.TEST."), Name::parse("mail.example.test"));
    assert!(Name::parse(".").unwrap().is_root() && Name::parse("").unwrap().is_root());
    for broken in
        ["a..b", ".a", "a.b..", &alloc::format!("{}.test", "x".repeat(64)), &"x.".repeat(128)]
    {
        assert_eq!(Name::parse(broken), Err(crate::NotAName), "{broken}");
    }
    for (name, is_host_name) in [
        ("mail-1.test", true),
        ("_dmarc.test", false),
        ("-a.test", false),
        ("a-.test", false),
        ("a b.test", false),
        ("", false),
    ] {
        assert_eq!(Name::parse(name).unwrap().is_host_name(), is_host_name, "{name}");
    }
}

#[test]
fn names_may_have_any_bytes_except_dots() {
    let name = |bytes: &[u8]| Name::of_bytes(bytes);
    assert_eq!(name(b"Mail.Example.test."), Name::parse("mail.example.test"));
    assert_eq!(name(b"a\\b c.test"), Name::parse("a\\\\b\\ c.test"));
    let long = ["x".repeat(64), "x.".repeat(127) + "x"];
    for broken in [&b""[..], b".", b"a..b", b".a", long[0].as_bytes(), long[1].as_bytes()] {
        assert_eq!(name(broken), Err(crate::NotAName), "{}", broken.escape_ascii());
    }
}

#[test]
fn address_has_a_reverse_name() {
    let reverse = |address: &str| Name::reverse(address.parse().unwrap()).to_string();
    assert_eq!(reverse("192.0.2.1"), "1.2.0.192.in-addr.arpa");
    let digits = "b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
    assert_eq!(reverse("2001:db8::567:89ab"), digits);
}

#[test]
fn listed_address_has_a_name_below_the_list() {
    let list = Name::parse("List.test").unwrap();
    let name = |list: &Name, address: &str| Name::in_list(list, address.parse().unwrap());
    assert_eq!(name(&list, "192.0.2.99"), Name::parse("99.2.0.192.list.test"));
    let digits = "2.0.a.b.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.list.test";
    assert_eq!(name(&list, "2001:db8::ba02"), Name::parse(digits));
    let long = Name::parse(&["x".repeat(63), "y".repeat(63), "z".repeat(63)].join(".")).unwrap();
    assert!(name(&long, "192.0.2.99").is_ok());
    assert_eq!(name(&long, "2001:db8::ba02"), Err(crate::NotAName));
}

#[test]
fn name_is_within_itself_and_its_parents() {
    let within = |name: &str, other: &str| {
        Name::parse(name).unwrap().is_within(&Name::parse(other).unwrap())
    };
    assert!(
        within("a.example.test", "example.test")
            && within("example.test", "example.test")
            && within("a.test", ".")
    );
    assert!(
        !within("anexample.test", "example.test")
            && !within("test", "example.test")
            && !within("a\\.test", "test")
    );
}

#[test]
fn parent_drops_the_first_label() {
    let parent =
        |name: &str| Name::parse(name).unwrap().parent().map(|name| String::from(name.as_str()));
    assert_eq!(parent("a.example.test").as_deref(), Some("example.test"));
    assert_eq!(parent("a\\.b.test").as_deref(), Some("test"));
    assert_eq!(parent("a\\\\.test").as_deref(), Some("test"));
    assert_eq!((parent("test").as_deref(), parent("")), (Some(""), None));
}

proptest! {
    #[test]
    fn any_reply_is_read_without_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        at in 0_usize..120,
        change in any::<u8>(),
        is_stream in any::<bool>(),
    ) {
        let question = question("a.test", RecordKind::Exchanger);
        let sent = OutgoingQuery::new(&question, 7, || false).unwrap();
        read(&bytes, &question, &sent, is_stream);
        let mut changed = reply(&sent.bytes, Rcode::NOERROR, |answer| {
            answer.push((labels("a.test"), HOUR, Mx::new(20, labels("b.a.test")))).unwrap();
        });
        changed.extend(&bytes);
        if let Some(byte) = changed.get_mut(at) {
            *byte ^= change;
        }
        read(&changed, &question, &sent, is_stream);
    }

    #[test]
    fn valid_names_round_trip(text in "[ -~]{0,40}") {
        if let Ok(name) = Name::parse(&text) {
            prop_assert_eq!(Name::parse(name.as_str()), Ok(name.clone()));
            prop_assert!(name.labels().is_some());
        }
    }
}
