//! Checks the same worlds with mail-auth, an independent implementation. It must give the same
//! verdicts and ask the same questions.
//!
//! The random worlds contain no known difference. The last test has all of them: there the RFC
//! supports us or leaves the choice.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::cell::RefCell;
use core::net::{Ipv4Addr, Ipv6Addr};

use futures_util::FutureExt;
use known::{AUTHENTICATOR, Known, first, records, silence};
use mail_auth::common::parse::TxtRecordParser;
use mail_auth::spf::Spf;
use mail_auth::spf::verify::SpfParameters;
use mail_auth::{MX, Parameters, RecordSet, Txt};
use proptest::prop_oneof;
use proptest::sample::select;
use proptest::{collection, option};

use super::*;

/// The parent of names that `exists` asks for. mail-auth's resolver sends no question for names
/// below this top-level domain, since nothing exists there (RFC 6761 §6.4).
const LISTED: &str = ".listed.invalid";
/// The first label of the PTR names of the sender's address.
const POINTED: &str = "pointed";
/// The most lookups that may find nothing.
const VOIDS_MAX: usize = 2;

/// The records of names.
#[derive(Clone, Default, Debug)]
struct Zone {
    /// `None`: name servers do not answer.
    texts: BTreeMap<String, Option<Vec<String>>>,
    exchangers: BTreeMap<String, Vec<String>>,
    addresses: BTreeMap<String, Vec<IpAddr>>,
    /// The PTR names of the sender's address.
    pointers: Vec<String>,
}

/// The sender.
#[derive(Clone, Debug)]
struct TestSender {
    address: IpAddr,
    hello: &'static str,
    local_part: &'static str,
}

/// A verdict, and the kinds and names of the questions.
type CheckRecord = (String, BTreeSet<(&'static str, String)>);

impl Zone {
    /// The answer of name servers.
    fn answer(&self, question: &Question) -> Result<Vec<Record>, Unanswered> {
        let name = question.name.as_str();
        let host = |host: &String| Name::parse(host).unwrap();
        Ok(match question.kind {
            RecordKind::Text => match self.texts.get(name) {
                Some(texts) => texts
                    .as_ref()
                    .ok_or(Unanswered::Silence)?
                    .iter()
                    .map(|policy| text(policy))
                    .collect(),
                None => Vec::new(),
            },
            RecordKind::Exchanger => {
                let hosts = self.exchangers.get(name).into_iter().flatten();
                hosts.map(|name| Record::Exchanger { preference: 0, host: host(name) }).collect()
            }
            RecordKind::Pointer => {
                self.pointers.iter().map(|name| Record::Pointer(host(name))).collect()
            }
            kind => {
                let addresses = self.addresses.get(name).into_iter().flatten();
                let of_kind =
                    addresses.filter(|address| address.is_ipv4() == (kind == RecordKind::Ipv4));
                of_kind.map(|address| Record::Address(*address)).collect()
            }
        })
    }

    /// Our verdict and questions.
    fn ours(&self, test_sender: &TestSender) -> CheckRecord {
        let asked = RefCell::new(BTreeSet::new());
        let world: World<'_> = &|question| {
            let kind = match question.kind {
                RecordKind::Text => "TXT",
                RecordKind::Exchanger => "MX",
                RecordKind::Ipv4 => "A",
                RecordKind::Ipv6 => "AAAA",
                _ => return self.answer(question),
            };
            asked.borrow_mut().insert((kind, question.name.as_str().into()));
            self.answer(question)
        };
        let TestSender { address, hello, local_part } = *test_sender;
        let verdict =
            in_world(&SpfSender { address, hello, local_part, domain: "d0.test" }, world).0;
        (verdict.to_string(), asked.into_inner())
    }

    /// The verdict and questions of mail-auth, and the number of its void lookups, which it does
    /// not count.
    fn theirs(&self, test_sender: &TestSender) -> (CheckRecord, usize) {
        let cache = OracleZone::of(self);
        let reverse_path = format!("{}@d0.test", test_sender.local_part);
        let asked = SpfParameters::new(
            test_sender.address,
            "d0.test",
            test_sender.hello,
            "mx.test",
            &reverse_path,
        );
        let asked =
            Parameters::new(asked).with_txt_cache(&cache.texts).with_mx_cache(&cache.exchangers);
        let asked = asked
            .with_ipv4_cache(&cache.ipv4)
            .with_ipv6_cache(&cache.ipv6)
            .with_ptr_cache(&cache.pointers);
        let output = AUTHENTICATOR.check_host(asked).now_or_never();
        let verdict = output.expect("mail-auth asks no server").result().to_string().to_lowercase();
        let log = cache.asked();
        // mail-auth also asks for AAAA records with `exists`, and for explanations of refusals.
        let is_ours = |kind: &str, name: &str| {
            !(kind == "AAAA" && name.ends_with(LISTED)) && name != "why.test"
        };
        let log = log.iter().filter(|(kind, name, _)| is_ours(kind, name));
        let is_void = |kind: &str, name: &str, found: bool| {
            !found && kind != "TXT" && !name.starts_with(POINTED)
        };
        let voids = log.clone().filter(|(kind, name, found)| is_void(kind, name, *found)).count();
        ((verdict, log.map(|(kind, name, _)| (*kind, name.clone())).collect()), voids)
    }
}

/// A zone in the form that mail-auth asks for.
struct OracleZone {
    texts: Known<Txt>,
    exchangers: Known<RecordSet<MX>>,
    ipv4: Known<RecordSet<Ipv4Addr>>,
    ipv6: Known<RecordSet<Ipv6Addr>>,
    pointers: Known<RecordSet<Box<str>>>,
}

impl OracleZone {
    fn of(zone: &Zone) -> OracleZone {
        let texts = zone.texts.iter().map(|(name, texts)| {
            let read = texts
                .as_ref()
                .map(|texts| first(texts.iter().map(|text| Spf::parse(text.as_bytes()))));
            (name.clone(), read.unwrap_or_else(silence))
        });
        let exchangers = zone.exchangers.iter().map(|(name, hosts)| {
            let exchanges = hosts.iter().map(|host| host.as_str().into()).collect();
            (name.clone(), records([MX { exchanges, preference: 0 }]))
        });
        let pointers: Vec<Box<str>> =
            zone.pointers.iter().map(|name| name.as_str().into()).collect();
        OracleZone {
            texts: Known::texts(texts),
            exchangers: Known::new(exchangers, |_| Some(records([]))),
            ipv4: zone.family(
                |address| if let IpAddr::V4(address) = address { Some(address) } else { None },
            ),
            ipv6: zone.family(
                |address| if let IpAddr::V6(address) = address { Some(address) } else { None },
            ),
            pointers: Known::new([], move |_| Some(records(pointers.clone()))),
        }
    }

    /// The kinds and names of the questions, and whether there was a record.
    fn asked(&self) -> Vec<(&'static str, String, bool)> {
        let all = [
            ("TXT", self.texts.asked()),
            ("MX", self.exchangers.asked()),
            ("A", self.ipv4.asked()),
            ("AAAA", self.ipv6.asked()),
        ];
        all.into_iter()
            .flat_map(|(kind, asked)| {
                asked.into_iter().map(move |(name, found)| (kind, name, found))
            })
            .collect()
    }
}

impl Zone {
    /// The addresses of one family.
    fn family<A: 'static>(&self, of_family: fn(IpAddr) -> Option<A>) -> Known<RecordSet<A>> {
        let all = self.addresses.iter().map(|(name, addresses)| {
            let addresses: Vec<A> = addresses.iter().copied().filter_map(of_family).collect();
            (name.clone(), addresses)
        });
        let found = all.filter(|(_, addresses)| !addresses.is_empty());
        Known::new(found.map(|(name, addresses)| (name, records(addresses))), |name| {
            (!name.ends_with(LISTED)).then(|| records([]))
        })
    }
}

const DOMAINS: [&str; 5] = ["d0.test", "d1.test", "d2.test", "d3.test", "d4.test"];
const HOSTS: [&str; 4] = ["h0.test", "h1.test", "mail.d0.test", "mail.d1.test"];
const IPV4: [&str; 4] = ["192.0.2.1", "192.0.2.77", "198.51.100.9", "203.0.113.200"];
const IPV6: [&str; 3] = ["2001:db8::1", "2001:db8:0:1::9", "2001:db9::77"];
/// Terms that both implementations reject.
const BROKEN: [&str; 19] = [
    "all:",
    "all/24",
    "include",
    "include:",
    "include:d1.test/24",
    "exists",
    "exists:",
    "exists:%{z}.test",
    "exists:%d.test",
    "ip4",
    "ip4:192.0.2",
    "ip4:192.0.2.1x",
    "ip4:d1.test",
    "ip6:2001:db8::1::2",
    "ip6:moo",
    "ptr/24",
    "a:%{d}/x",
    "redirect:d1.test",
    "redirect=d1.test redirect=d2.test",
];

fn joined(
    first: impl Strategy<Value = String>,
    second: impl Strategy<Value = String>,
) -> impl Strategy<Value = String> {
    (first, second).prop_map(|(first, second)| first + &second)
}

fn one_of(all: &'static [&'static str]) -> impl Strategy<Value = String> + Clone {
    select(all).prop_map(String::from)
}

fn qualifier() -> impl Strategy<Value = String> {
    one_of(&["", "", "+", "-", "~", "?"])
}

/// Macros and the text between them.
fn specification(
    macro_letters: &'static [&'static str],
    between: &'static [&'static str],
) -> impl Strategy<Value = String> {
    let number = one_of(&["", "", "1", "2", "3", "12"]);
    let delimiters = one_of(&["", "", "-", "+", ".-", "-+=", "_/,"]);
    let expanded = (one_of(macro_letters), number, one_of(&["", "r", "R"]), delimiters).prop_map(
        |(macro_letter, number, reverses, delimiters)| {
            format!("%{{{macro_letter}{number}{reverses}{delimiters}}}")
        },
    );
    let piece = prop_oneof![3 => expanded, 1 => one_of(between)];
    collection::vec(piece, 1..3).prop_map(|pieces| pieces.join("."))
}

/// Terms that refer to no other policy.
fn term() -> impl Strategy<Value = String> {
    let target = prop_oneof![
        2 => Just(String::new()),
        3 => one_of(&[":h0.test", ":h1.test", ":mail.d0.test", ":d1.test", ":missing.test", ":H0.Test"]),
        1 => one_of(&[":%{d}", ":mail.%{d}", ":%{h}", ":%{o}", ":%{d1r}.d0.test"]),
    ];
    let prefixes = one_of(&["", "", "", "/24", "/32", "/0", "/25", "//64", "//128", "/23//48"]);
    let hosts = joined(one_of(&["a", "mx", "A", "MX"]), joined(target, prefixes));
    let ipv4 = one_of(&[
        "ip4:192.0.2.0/24",
        "ip4:192.0.2.64/26",
        "ip4:192.0.2.1",
        "ip4:198.51.100.0/23",
        "IP4:203.0.113.128/25",
        "ip4:0.0.0.0/0",
        "ip4:192.0.2.77/32",
    ]);
    let ipv6 = one_of(&[
        "ip6:2001:db8::/32",
        "ip6:2001:db8::1",
        "ip6:2001:db8:0:1::/64",
        "ip6:2001:DB8:8000::/33",
        "ip6:2001:db0::/28",
    ]);
    // mail-auth's resolver accepts only names of hosts.
    let plain = specification(&["o", "d", "i", "v", "h", "D", "I"], &["a", "b-c", "_x"]);
    let plain = prop_oneof![1 => plain, 1 => one_of(&["yes", "no"])];
    let exists = plain.prop_map(|plain| format!("exists:{plain}{LISTED}"));
    let strange = specification(&["s", "l", "o", "d", "S", "L"], &["a", "%%", "%-"]);
    let strange = (one_of(&["a", "mx"]), strange)
        .prop_map(|(name, strange)| format!("{name}:{strange}.strange.test"));
    let all = one_of(&["all", "ALL"]);
    let mechanism =
        prop_oneof![5 => hosts, 2 => ipv4, 2 => ipv6, 2 => exists, 1 => strange, 1 => all];
    let modifier = one_of(&["moo=%{d}", "exp=why.test", "x-y.z=1"]);
    prop_oneof![20 => joined(qualifier(), mechanism), 1 => modifier, 1 => one_of(&BROKEN)]
}

/// The TXT records of a name: a policy of these terms, sometimes beside another text, or no policy.
fn texts(
    term: impl Strategy<Value = String>,
    redirects: &'static [&'static str],
) -> impl Strategy<Value = Option<Vec<String>>> {
    let redirect =
        option::weighted(0.3, select(redirects).prop_map(|domain| format!("redirect={domain}")));
    let terms = (collection::vec(term, 0..6), redirect, any::<prop::sample::Index>());
    let policy = terms.prop_map(|(mut terms, redirect, place)| {
        let place = place.index(terms.len() + 1);
        redirect.into_iter().for_each(|redirect| terms.insert(place, redirect));
        Vec::from([format!("v=spf1 {}", terms.join(" "))])
    });
    let beside = policy.prop_flat_map(|policy| {
        let two = [&[String::from("moo")][..], &policy].concat();
        prop_oneof![4 => Just(policy), 1 => Just(two)]
    });
    prop_oneof![
        12 => beside.prop_map(Some),
        1 => Just(Some(Vec::new())),
        1 => Just(Some(Vec::from(["v=spf10 -all".into()]))),
        1 => Just(None),
    ]
}

fn hosts() -> impl Strategy<Value = Zone> {
    let address = prop_oneof![select(&IPV4[..]), select(&IPV6[..])]
        .prop_map(|address| address.parse().unwrap());
    let named = [&DOMAINS[..], &HOSTS].concat();
    let addresses = collection::btree_map(
        select(named.clone()).prop_map(String::from),
        collection::vec(address, 1..3),
        3..9,
    );
    let exchangers = collection::btree_map(
        select(named).prop_map(String::from),
        collection::vec(one_of(&HOSTS), 1..4),
        2..6,
    );
    (addresses, exchangers).prop_map(|(mut addresses, exchangers)| {
        addresses.insert(format!("yes{LISTED}"), Vec::from([IpAddr::from([127, 0, 0, 2])]));
        Zone { addresses, exchangers, ..Zone::default() }
    })
}

fn test_sender() -> impl Strategy<Value = TestSender> {
    let address = prop_oneof![3 => select(&IPV4[..]), 2 => select(&IPV6[..])];
    let local_part = select(&["ada", "strong-bad", "a.b.c", "x+y-z", "Ada_L=q/r,s"][..]);
    (address, select(&DOMAINS[1..]), local_part).prop_map(|(address, hello, local_part)| {
        TestSender { address: address.parse().unwrap(), hello, local_part }
    })
}

fn with_texts(zone: Zone, texts: Vec<Option<Vec<String>>>) -> Zone {
    let texts = DOMAINS.iter().map(|domain| domain.to_string()).zip(texts).collect();
    Zone { texts, ..zone }
}

/// The policy of the first domain refers to others in every way. The other policies only redirect
/// to each other.
fn flat() -> impl Strategy<Value = Zone> {
    let include = joined(
        qualifier(),
        one_of(&[
            "include:d1.test",
            "include:d2.test",
            "include:d3.test",
            "include:D4.Test",
            "include:missing.test",
            "include:%{h}",
        ]),
    );
    let own = texts(prop_oneof![2 => term(), 1 => include], &DOMAINS[1..]);
    let others = collection::vec(texts(term(), &DOMAINS[1..]), 4);
    (hosts(), own, others)
        .prop_map(|(zone, own, others)| with_texts(zone, [&[own][..], &others].concat()))
}

/// All policies include others, also in circles. If an included policy passes, the check passes.
fn deep() -> impl Strategy<Value = Zone> {
    let include = joined(
        one_of(&["", "+"]),
        select(&DOMAINS[..]).prop_map(|domain| format!("include:{domain}")),
    );
    let texts =
        collection::vec(texts(prop_oneof![2 => term(), 1 => include], &DOMAINS), DOMAINS.len());
    (hosts(), texts).prop_map(|(zone, texts)| with_texts(zone, texts))
}

/// One policy that asks for the name of the sender's address, validated or not.
fn pointed() -> impl Strategy<Value = Zone> {
    let pointer = joined(
        qualifier(),
        one_of(&[
            "ptr",
            "ptr:d0.test",
            "ptr:pointed.d1.test",
            "PTR:D1.test",
            "ptr:%{d}",
            "ptr:test.test",
        ]),
    );
    let own = collection::vec(prop_oneof![1 => term(), 1 => pointer], 1..4);
    let name = one_of(&["pointed.d0.test", "pointed.d1.test", "pointedd0.test"]);
    (hosts(), own, option::of(name), collection::vec(select(&IPV4[..]), 0..4)).prop_map(
        |(mut zone, own, name, addresses)| {
            zone.pointers = name.into_iter().collect();
            for name in &zone.pointers {
                let all =
                    addresses.iter().chain(&IPV6[..2]).map(|address| address.parse().unwrap());
                zone.addresses.insert(name.clone(), all.collect());
            }
            with_texts(zone, Vec::from([Some(Vec::from([format!("v=spf1 {}", own.join(" "))]))]))
        },
    )
}

/// A policy with many lookups, perhaps too many. All lookups succeed, and none matches.
fn greedy() -> impl Strategy<Value = Zone> {
    let term = one_of(&[
        "a:h0.test",
        "mx:h0.test",
        "?mx:h0.test/32",
        "include:d1.test",
        "include:d2.test",
    ]);
    let terms = collection::vec(term, 5..13);
    (terms, one_of(&["", "~all", "redirect=d3.test"])).prop_map(|(terms, end)| {
        let own = format!("v=spf1 {} {end}", terms.join(" "));
        let included = [
            ("d1.test", "v=spf1 ~all"),
            ("d2.test", "v=spf1 a:h0.test -all"),
            ("d3.test", "v=spf1 mx:h0.test -all"),
        ];
        let zone = zone(&[&[("d0.test", own.as_str())][..], &included].concat());
        let addresses = ["203.0.113.1", "2001:dbf::1"].map(|address| address.parse().unwrap());
        Zone {
            addresses: BTreeMap::from([("h0.test".into(), addresses.into())]),
            exchangers: BTreeMap::from([("h0.test".into(), Vec::from(["h0.test".into()]))]),
            ..zone
        }
    })
}

/// The verdict, which must be common to both implementations.
fn agreed(zone: &Zone, test_sender: &TestSender) -> Result<String, TestCaseError> {
    let (ours, (theirs, voids)) = (zone.ours(test_sender), zone.theirs(test_sender));
    if voids > VOIDS_MAX {
        prop_assert_eq!(&ours.0, "permerror", "{:?}", theirs);
    } else {
        prop_assert_eq!(&ours, &theirs);
    }
    Ok(ours.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn spf_verdicts_agree_with_mail_auth(zone in flat(), test_sender in test_sender()) {
        agreed(&zone, &test_sender)?;
    }

    #[test]
    fn nested_policies_agree_with_mail_auth(zone in deep(), test_sender in test_sender()) {
        agreed(&zone, &test_sender)?;
    }

    #[test]
    fn lookup_counts_agree_with_mail_auth(zone in greedy(), test_sender in test_sender()) {
        agreed(&zone, &test_sender)?;
    }

    #[test]
    fn pointer_lookups_agree_with_mail_auth(zone in pointed(), test_sender in test_sender()) {
        agreed(&zone, &test_sender)?;
    }
}

/// A zone with these policies.
fn zone(policies: &[(&str, &str)]) -> Zone {
    let mut zone = Zone::default();
    for (domain, policy) in policies {
        zone.texts
            .entry(domain.to_string())
            .or_insert(Some(Vec::new()))
            .as_mut()
            .unwrap()
            .push(policy.to_string());
    }
    zone
}

fn with_addresses(zone: Zone, named: &[(&str, &str)]) -> Zone {
    let addresses = named
        .iter()
        .map(|(name, address)| (name.to_string(), Vec::from([address.parse().unwrap()])));
    Zone { addresses: addresses.collect(), ..zone }
}

/// Our verdict and the verdict of mail-auth.
fn both_verdicts(zone: &Zone, address: &str) -> [String; 2] {
    let test_sender =
        TestSender { address: address.parse().unwrap(), hello: "d4.test", local_part: "d1" };
    [zone.ours(&test_sender).0, zone.theirs(&test_sender).0.0]
}

#[test]
fn known_differences_from_mail_auth_follow_the_rfc() {
    let broken = |policy: &str| zone(&[("d0.test", policy), ("d1.test", "v=spf1 ?all")]);
    let own = |policy: &str| zone(&[("d0.test", policy)]);
    let nested = [
        ("d0.test", "v=spf1 ?include:d1.test"),
        ("d1.test", "v=spf1 include:d2.test"),
        ("d2.test", "v=spf1 all"),
    ];
    let named = [("d0.test", "v=spf1 include:%{l}.test"), ("d1.test", "v=spf1 a:%{d1}.asked.test")];
    let many = (0..11).map(|number| format!("h{number}.test")).collect();
    let pointers = |zone: Zone| Zone { pointers: Vec::from(["pointed.test".into()]), ..zone };
    for (section, zone, address, expected) in [
        (
            "4.5: two policies are an error",
            zone(&[("d0.test", "v=spf1 all"), ("d0.test", "v=spf1 -all")]),
            IPV4[0],
            ["permerror", "pass"],
        ),
        ("4.5: a space follows the version", own("v=spf1\t-all"), IPV4[0], ["none", "fail"]),
        (
            "4.6: this mechanism is unknown",
            broken("v=spf1 moo ?all"),
            IPV4[0],
            ["permerror", "neutral"],
        ),
        (
            "4.6.1: a modifier has no qualifier",
            broken("v=spf1 -redirect=d1.test"),
            IPV4[0],
            ["permerror", "neutral"],
        ),
        (
            "4.6.4: three lookups find nothing",
            own("v=spf1 a:x.test mx:x.test exists:x.listed.invalid ?all"),
            IPV4[0],
            ["permerror", "neutral"],
        ),
        (
            "4.6.4: names of addresses have a limit of their own",
            pointers(own(&format!("v=spf1{}", " ptr:x.test".repeat(6)))),
            IPV4[0],
            ["neutral", "permerror"],
        ),
        (
            "4.6.4: a domain has eleven exchangers",
            Zone {
                exchangers: BTreeMap::from([("d0.test".into(), many)]),
                ..with_addresses(own("v=spf1 mx"), &[("h0.test", IPV4[0])])
            },
            IPV4[0],
            ["permerror", "pass"],
        ),
        (
            "5: an address of IPv4 that is written as one of IPv6",
            with_addresses(own("v=spf1 a:h0.test"), &[("h0.test", IPV4[0])]),
            "::ffff:192.0.2.1",
            ["pass", "neutral"],
        ),
        (
            "5: a network of IPv6 has no address of IPv4",
            own("v=spf1 ip6:::/0"),
            IPV4[0],
            ["neutral", "pass"],
        ),
        (
            "5.2: an included policy matches only if it passes",
            zone(&nested),
            IPV4[0],
            ["neutral", "pass"],
        ),
        (
            "5.3: no address has that many bits",
            broken("v=spf1 a/33 ?all"),
            IPV4[0],
            ["permerror", "neutral"],
        ),
        (
            "5.6: no address has that many bits",
            broken("v=spf1 ip4:192.0.2.1/33 ?all"),
            IPV4[1],
            ["permerror", "neutral"],
        ),
        (
            "5.7: only IPv4 addresses count",
            with_addresses(
                own("v=spf1 exists:h0.listed.invalid"),
                &[("h0.listed.invalid", IPV6[0])],
            ),
            IPV6[1],
            ["neutral", "pass"],
        ),
        (
            "7.1: no label is kept",
            broken("v=spf1 a:%{d0}.test ?all"),
            IPV4[0],
            ["permerror", "neutral"],
        ),
        ("7.1: a macro has an end", own("v=spf1 ?all a:%{d"), IPV4[0], ["permerror", "neutral"]),
        (
            "7.1: no domain ends with this label",
            broken("v=spf1 a:toplevel ?all"),
            IPV4[0],
            ["permerror", "neutral"],
        ),
        (
            "7.3: a name that is not the address's own",
            pointers(with_addresses(
                own("v=spf1 exists:%{p}.listed.invalid"),
                &[("unknown.listed.invalid", IPV4[0])],
            )),
            IPV4[0],
            ["pass", "neutral"],
        ),
        (
            "7.3: a domain has no dot at its end",
            with_addresses(zone(&named), &[("test.asked.test", IPV4[0])]),
            IPV4[0],
            ["pass", "neutral"],
        ),
        (
            "12: a modifier may have no value",
            own("v=spf1 moo= ?all"),
            IPV4[0],
            ["neutral", "permerror"],
        ),
        (
            "12: a modifier may have any value",
            own("v=spf1 moo=a/b:c ?all"),
            IPV4[0],
            ["neutral", "permerror"],
        ),
        (
            "12: a modifier may have any name",
            own("v=spf1 ip4=192.0.2.1"),
            IPV4[0],
            ["neutral", "permerror"],
        ),
    ] {
        assert_eq!(both_verdicts(&zone, address), expected, "{section}");
    }
}
