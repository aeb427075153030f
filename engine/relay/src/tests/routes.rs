//! Routes of messages.

use alloc::collections::BTreeSet;
use core::net::IpAddr;

use dns::{Answer, Knowledge, Missing, Name, Question, Record, RecordKind, Unanswered};

use super::*;
use crate::route::{Families, HOPS_MAX, Hop, MailRoute, RouteTarget, Unroutable, Us, route};

/// The answers about names, one a line. `there.test MX 10 mx.there.test` and `mx.there.test A
/// 192.0.2.1` are records. `gone.test -`: the name does not exist. `down.test ?`: no server
/// answers. `down.test A ?`: no server answers about addresses (A). `there.test signed`: the
/// answers are authenticated.
struct World<'a>(&'a [&'a str]);

impl World<'_> {
    fn answer(&self, question: &Question) -> Result<Answer, Unanswered> {
        let kind = match question.kind {
            RecordKind::Exchanger => "MX",
            RecordKind::Ipv4 => "A",
            RecordKind::Ipv6 => "AAAA",
            kind => panic!("{kind:?} is not asked for"),
        };
        let (mut records, mut exists, mut is_authenticated) = (Vec::new(), true, false);
        for line in self.0 {
            let words: Vec<_> = line.split(' ').collect();
            match words[..] {
                [name, _, ..] if name != question.name.as_str() => {}
                [_, "signed"] => is_authenticated = true,
                [_, "-"] => exists = false,
                [_, "?"] => return Err(Unanswered::Silence),
                [_, of, "?"] if of == kind => return Err(Unanswered::Silence),
                [_, "MX", preference, host] if kind == "MX" => records.push(Record::Exchanger {
                    preference: preference.parse().unwrap(),
                    host: Name::parse(host.trim_end_matches('.')).unwrap(),
                }),
                [_, of, address] if of == kind => {
                    records.push(Record::Address(address.parse().unwrap()))
                }
                _ => {}
            }
        }
        Ok(Answer { records, exists, is_authenticated })
    }

    fn route(&self, target: &RouteTarget<'_>, families: Families, random: u64) -> MailRoute {
        let name = Name::parse("us.test").unwrap();
        let addresses = ["203.0.113.1".parse().unwrap(), "2001:db8:f::1".parse().unwrap()];
        let range = |first: &str, last: &str| first.parse().unwrap()..=last.parse().unwrap();
        let callable =
            [range("192.0.0.0", "192.0.127.255"), range("2001:db8::", "2001:db8:ffff::")];
        let us = Us { name: &name, addresses: &addresses, callable: &callable, families };
        let (mut knowledge, mut asked) = (Knowledge::default(), 0);
        loop {
            match route(target, &us, random, &knowledge) {
                Ok(route) => return route,
                Err(Missing(question)) => {
                    asked += 1;
                    assert!(asked <= 11, "the number of questions is bounded");
                    let answer = self.answer(&question);
                    knowledge.learn(question, answer);
                }
            }
        }
    }

    /// The hops of a domain's mail in words, or why there are none.
    fn hops(&self, domain: &str, families: Families, random: u64) -> String {
        let target = RouteTarget::Domain(smtp::Domain::Name(domain));
        match self.route(&target, families, random) {
            MailRoute::By { hops, missing } => {
                assert!(hops.len() <= HOPS_MAX);
                let tell =
                    |hop: &Hop| std::format!("{} {}", hop.host.as_ref().unwrap(), hop.address);
                let missing = missing.map(|why| std::format!("perhaps others: {why}"));
                hops.iter().map(tell).chain(missing).collect::<Vec<_>>().join(", ")
            }
            MailRoute::Nowhere(why) => std::format!("{} {why}", why.status()),
        }
    }
}

#[test]
fn preferred_host_comes_first_with_all_its_addresses() {
    let world = World(&[
        "there.test MX 20 second.there.test",
        "there.test MX 10 first.there.test",
        "first.there.test A 192.0.2.1",
        "first.there.test AAAA 2001:db8::1",
        "second.there.test A 192.0.2.2",
    ]);
    let first =
        "first.there.test 2001:db8::1, first.there.test 192.0.2.1, second.there.test 192.0.2.2";
    assert_eq!(world.hops("There.Test", Families::Both, 7), first);
    assert_eq!(
        world.hops("there.test", Families::Ipv4, 7),
        "first.there.test 192.0.2.1, second.there.test 192.0.2.2"
    );
    assert_eq!(world.hops("there.test", Families::Ipv6, 7), "first.there.test 2001:db8::1");
}

#[test]
fn equally_preferred_hosts_take_turns() {
    let world = World(&[
        "there.test MX 10 a.test",
        "there.test MX 10 b.test",
        "there.test MX 10 c.test",
        "there.test MX 5 z.test",
        "a.test A 192.0.2.1",
        "b.test A 192.0.2.2",
        "c.test A 192.0.2.3",
        "z.test A 192.0.2.26",
    ]);
    let routes: BTreeSet<_> =
        (0..100).map(|random| world.hops("there.test", Families::Both, random)).collect();
    assert_eq!(routes.len(), 6, "in all orders");
    assert!(routes.iter().all(|route| route.starts_with("z.test")));
}

#[test]
fn route_does_not_depend_on_answer_order() {
    let mut records = [
        "there.test MX 10 a.test",
        "there.test MX 10 b.test",
        "there.test MX 10 c.test",
        "a.test A 192.0.2.1",
        "a.test A 192.0.2.2",
        "b.test A 192.0.2.3",
        "c.test A 192.0.2.4",
    ];
    let routes = |records: &[&'static str]| -> Vec<String> {
        (0..600).map(|random| World(records).hops("there.test", Families::Both, random)).collect()
    };
    let first = routes(&records);
    records.reverse();
    assert_eq!(routes(&records), first);
    // Hosts, and addresses of one host, are chosen equally often.
    let count = |begin: &str| first.iter().filter(|route| route.starts_with(begin)).count();
    for (begin, expected) in [("a", 200), ("b", 200), ("c", 200), ("a.test 192.0.2.1,", 100)] {
        assert!(count(begin).abs_diff(expected) < 50, "{begin}: {}", count(begin));
    }
}

#[test]
fn domain_without_mx_is_its_own_mail_host() {
    let world = World(&["there.test A 192.0.2.1"]);
    assert_eq!(world.hops("there.test", Families::Both, 7), "there.test 192.0.2.1");
    let world = World(&["there.test MX 10 mx.test", "there.test A 192.0.2.1"]);
    assert_eq!(
        world.hops("there.test", Families::Both, 7),
        "5.4.4 the mail servers of the domain have no reachable address",
        "but not a domain with unusable MX hosts"
    );
}

#[test]
fn null_mx_domain_gets_no_mail() {
    let none = "5.1.10 the domain does not accept mail";
    assert_eq!(
        World(&["there.test MX 0 .", "there.test A 192.0.2.1"]).hops(
            "there.test",
            Families::Both,
            7
        ),
        none
    );
    let world = World(&["there.test MX 0 .", "there.test MX 10 mx.test", "mx.test A 192.0.2.1"]);
    assert_eq!(
        world.hops("there.test", Families::Both, 7),
        "mx.test 192.0.2.1",
        "an MX host beside a null MX counts"
    );
}

#[test]
fn missing_domain_is_final_and_unknown_is_temporary() {
    assert_eq!(
        World(&["there.test -"]).hops("there.test", Families::Both, 7),
        "5.1.2 the domain does not exist"
    );
    let later =
        "4.4.3 the mail servers of the domain could not be looked up: no name server answered";
    assert_eq!(World(&["there.test ?"]).hops("there.test", Families::Both, 7), later);
    assert_eq!(
        World(&["there.test MX 1 mx.test", "mx.test ?"]).hops("there.test", Families::Both, 7),
        later
    );
    assert_eq!(
        World(&["there.test MX 1 mx.test", "mx.test AAAA ?"]).hops("there.test", Families::Both, 7),
        later
    );
    // The known answers are enough to begin with.
    let world = World(&[
        "there.test MX 1 a.test",
        "there.test MX 2 b.test",
        "a.test ?",
        "b.test AAAA ?",
        "b.test A 192.0.2.2",
    ]);
    let begun = "b.test 192.0.2.2, perhaps others: no name server answered";
    assert_eq!(world.hops("there.test", Families::Both, 7), begun);
    assert!(
        Unroutable::Unknown(Unanswered::Silence).is_temporary()
            && !Unroutable::NoDomain.is_temporary()
    );
    for name in ["a..test", "bücher.test", &"x".repeat(64)] {
        let expected = "5.1.2 the part after the @ is not a valid domain name";
        assert_eq!(World(&[]).hops(name, Families::Both, 7), expected);
    }
}

#[test]
fn hosts_less_preferred_than_us_are_skipped() {
    let world = World(&[
        "there.test MX 10 first.test",
        "there.test MX 20 us.test",
        "there.test MX 20 equal.test",
        "there.test MX 30 last.test",
        "first.test A 192.0.2.1",
        "equal.test A 192.0.2.2",
        "last.test A 192.0.2.3",
    ]);
    assert_eq!(world.hops("there.test", Families::Both, 7), "first.test 192.0.2.1");
    let back = "5.4.6 the MX records of the domain point to this server, which does not accept mail for it";
    assert_eq!(World(&["there.test MX 10 us.test"]).hops("there.test", Families::Both, 7), back);
    assert_eq!(World(&["us.test A 203.0.113.1"]).hops("us.test", Families::Both, 7), back);
}

/// An MX host may be this server by another name. Less preferred hosts would send the message to
/// it.
#[test]
fn hosts_less_preferred_than_our_address_are_skipped() {
    let lines = [
        "there.test MX 10 first.test",
        "there.test MX 20 alias.test",
        "there.test MX 20 equal.test",
        "there.test MX 30 last.test",
        "first.test A 192.0.2.1",
        "alias.test A 192.0.2.4",
        "alias.test A 203.0.113.1",
        "equal.test A 192.0.2.2",
        "last.test A 192.0.2.3",
    ];
    for random in 0..10 {
        assert_eq!(
            World(&lines).hops("there.test", Families::Both, random),
            "first.test 192.0.2.1"
        );
    }
    let back = "5.4.6 the MX records of the domain point to this server, which does not accept mail for it";
    assert_eq!(World(&lines[1..]).hops("there.test", Families::Both, 7), back);
    assert_eq!(
        World(&["there.test AAAA 2001:db8:f::1"]).hops("there.test", Families::Both, 7),
        back
    );
    assert_eq!(
        World(&["there.test AAAA ?", "there.test A 203.0.113.1"]).hops(
            "there.test",
            Families::Both,
            7
        ),
        back
    );
}

#[test]
fn loopback_multicast_and_own_addresses_are_not_tried() {
    let world = World(&[
        "there.test A 127.0.0.1",
        "there.test A 0.0.0.0",
        "there.test A 224.0.0.1",
        "there.test A 255.255.255.255",
        "there.test AAAA ::1",
        "there.test AAAA ::ffff:127.0.0.1",
    ]);
    let none = "5.4.4 the mail servers of the domain have no reachable address";
    assert_eq!(world.hops("there.test", Families::Both, 7), none);
}

#[test]
fn route_is_bounded_whatever_a_domain_publishes() {
    let mut lines = Vec::new();
    for host in 0..40 {
        lines.push(std::format!("there.test MX {host} mx{host}.test"));
        for address in 0..20 {
            lines.push(std::format!("mx{host}.test A 192.0.{host}.{address}"));
            lines.push(std::format!("mx{host}.test AAAA 2001:db8:{host}::{address}"));
        }
    }
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let route = World(&lines).hops("there.test", Families::Both, 7);
    assert_eq!(route.split(", ").count(), HOPS_MAX);
    assert!(route.contains("mx4.test") && !route.contains("mx5.test"));
    let others: BTreeSet<_> =
        (0..50).map(|random| World(&lines).hops("there.test", Families::Both, random)).collect();
    assert!(others.len() > 40, "the addresses take turns");
}

#[test]
fn address_literal_and_smarthost_need_no_mx() {
    let world = World(&["smart.test A 192.0.2.9", "smart.test MX 10 other.test"]);
    let literal = |address: &str| {
        let target = RouteTarget::Domain(smtp::Domain::Literal(address.parse().unwrap()));
        world.route(&target, Families::Ipv4, 7)
    };
    let hop = |host: Option<Name>, address: &str| {
        let address: IpAddr = address.parse().unwrap();
        MailRoute::By {
            hops: Vec::from([Hop { host, address, is_authenticated: false }]),
            missing: None,
        }
    };
    assert_eq!(literal("192.0.2.7"), hop(None, "192.0.2.7"));
    assert_eq!(literal("2001:db8::7"), MailRoute::Nowhere(Unroutable::NoAddress));
    assert_eq!(literal("127.0.0.1"), MailRoute::Nowhere(Unroutable::NoAddress));
    assert_eq!(literal("203.0.113.1"), MailRoute::Nowhere(Unroutable::ComesBack));
    let smart = Name::parse("smart.test").unwrap();
    assert_eq!(
        world.route(&RouteTarget::Smarthost(&smart), Families::Both, 7),
        hop(Some(smart.clone()), "192.0.2.9")
    );
    let at = |address: &str| {
        world.route(&RouteTarget::SmarthostAt(address.parse().unwrap()), Families::Ipv4, 7)
    };
    assert_eq!(at("192.0.2.9"), hop(None, "192.0.2.9"));
}

#[test]
fn unreachable_smarthost_is_temporary() {
    let none = MailRoute::Nowhere(Unroutable::NoSmarthost);
    let at = |address: &str| {
        World(&[]).route(&RouteTarget::SmarthostAt(address.parse().unwrap()), Families::Ipv4, 7)
    };
    for address in ["2001:db8::7", "127.0.0.1", "203.0.113.1"] {
        assert_eq!(at(address), none, "{address}");
    }
    let smart = Name::parse("smart.test").unwrap();
    for world in [World(&[]), World(&["smart.test A 127.0.0.1"])] {
        assert_eq!(world.route(&RouteTarget::Smarthost(&smart), Families::Ipv4, 7), none);
    }
    assert!(Unroutable::NoSmarthost.is_temporary());
}

#[test]
fn route_is_authenticated_only_if_all_answers_are() {
    let is_authenticated = |signed: &[&str]| {
        let lines = [&["there.test MX 1 mx.test", "mx.test A 192.0.2.1"], signed].concat();
        match World(&lines).route(
            &RouteTarget::Domain(smtp::Domain::Name("there.test")),
            Families::Ipv4,
            7,
        ) {
            MailRoute::By { hops, .. } => hops[0].is_authenticated,
            MailRoute::Nowhere(why) => panic!("{why}"),
        }
    };
    assert!(is_authenticated(&["there.test signed", "mx.test signed"]));
    assert!(!is_authenticated(&["there.test signed"]) && !is_authenticated(&["mx.test signed"]));
}

const PRIVATE: &str = "5.4.4 the domain's mail servers have only private or reserved addresses, which this server does not connect to";

#[test]
fn records_do_not_lead_to_private_addresses() {
    for address in
        ["A 10.0.2.2", "A 192.168.1.1", "A 100.64.0.1", "AAAA fd00::1", "AAAA ::ffff:10.0.2.2"]
    {
        let (own, behind) =
            (std::format!("there.test {address}"), std::format!("mx.test {address}"));
        assert_eq!(World(&[&own]).hops("there.test", Families::Both, 7), PRIVATE, "{address}");
        let world = World(&["there.test MX 10 mx.test", &behind]);
        assert_eq!(world.hops("there.test", Families::Both, 7), PRIVATE, "{address}");
    }
    let world = World(&[
        "there.test MX 10 mx.test",
        "there.test MX 20 second.test",
        "mx.test A 10.0.2.2",
        "mx.test A 192.0.2.1",
        "second.test A 10.0.2.3",
        "second.test AAAA 2001:db8::2",
    ]);
    let public = "mx.test 192.0.2.1, second.test 2001:db8::2";
    assert_eq!(world.hops("there.test", Families::Both, 7), public, "the others are tried");
    let world = World(&[
        "there.test MX 1 a.test",
        "there.test MX 2 b.test",
        "a.test ?",
        "b.test A 10.0.2.2",
    ]);
    let later =
        "4.4.3 the mail servers of the domain could not be looked up: no name server answered";
    assert_eq!(
        world.hops("there.test", Families::Both, 7),
        later,
        "the other one may have a public address"
    );
    assert!(!Unroutable::Private.is_temporary());
}

#[test]
fn only_the_configuration_leads_to_private_addresses() {
    let host = Name::parse("host.test").unwrap();
    let world = World(&["host.test A 10.0.0.9"]);
    let address: IpAddr = "10.0.0.9".parse().unwrap();
    let is_called = |target: &RouteTarget<'_>| match world.route(target, Families::Both, 7) {
        MailRoute::By { hops, .. } => hops.iter().any(|hop| hop.address == address),
        MailRoute::Nowhere(why) => {
            assert_eq!(why, Unroutable::Private);
            false
        }
    };
    assert!(
        is_called(&RouteTarget::Smarthost(&host)) && is_called(&RouteTarget::SmarthostAt(address))
    );
    assert!(!is_called(&RouteTarget::Host(&host)));
    assert!(!is_called(&RouteTarget::Domain(smtp::Domain::Literal(address))));
    assert!(!is_called(&RouteTarget::Domain(smtp::Domain::Name("host.test"))));
}
