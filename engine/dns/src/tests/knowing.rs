//! What it remembers, and for how long.

use super::*;

const KINDS: [RecordKind; 2] = [RecordKind::Ipv4, RecordKind::Text];

/// Asks, and has the answer that `make` makes.
fn learn(house: &mut House, name: &str, make: impl FnOnce(&[u8]) -> Vec<u8>) {
    assert_eq!(house.ask(0, name, RecordKind::Ipv4), None, "it isn't known");
    let asked = house.heard();
    house.replies(&asked, &make(&asked.bytes));
    assert_eq!(house.told().len(), 1);
}

#[test]
fn what_was_told_is_known_until_its_time_is_over() {
    let mut house = House::new(&[FIRST]);
    learn(&mut house, "a.test", |asked| {
        reply(asked, Rcode::NOERROR, |answer| address(answer, "a.test", 4))
    });
    house.passes(just_before(Micros::from_secs(300)));
    assert_eq!(house.ask(1, "A.TEST", RecordKind::Ipv4), Some(found(4)));
    assert!(house.is_quiet());
    house.passes(Micros(1));
    assert_eq!(house.ask(2, "a.test", RecordKind::Ipv4), None);
}

#[test]
fn each_kind_of_records_is_known_by_itself() {
    let mut house = House::new(&[FIRST]);
    learn(&mut house, "a.test", |asked| {
        reply(asked, Rcode::NOERROR, |answer| address(answer, "a.test", 4))
    });
    assert_eq!(KINDS.map(|kind| house.ask(1, "a.test", kind).is_some()), [true, false]);
}

#[test]
fn an_alias_is_true_no_longer_than_it_says() {
    let mut house = House::new(&[FIRST]);
    learn(&mut house, "a.test", |asked| {
        reply(asked, Rcode::NOERROR, |answer| {
            alias(answer, "a.test", "b.test", 10);
            address(answer, "b.test", 4);
        })
    });
    assert_eq!(house.ask(1, "a.test", RecordKind::Ipv4), Some(found(4)));
    house.passes(Micros::from_secs(10));
    assert_eq!(house.ask(1, "a.test", RecordKind::Ipv4), None);
}

#[test]
fn that_there_is_nothing_is_known_for_as_long_as_the_zone_says() {
    for (code, exists) in [(Rcode::NXDOMAIN, false), (Rcode::NOERROR, true)] {
        for (ttl, minimum, span) in [(60, 900, 60), (900, 60, 60), (90_000, 90_000, 3_600)] {
            let mut house = House::new(&[FIRST]);
            learn(&mut house, "a.example.test", |asked| nothing(asked, code, ttl, minimum));
            house.passes(just_before(Micros::from_secs(span)));
            let known = Answer { records: Vec::new(), exists, is_authenticated: false };
            assert_eq!(house.ask(1, "a.example.test", RecordKind::Ipv4), Some(Ok(known)));
            house.passes(Micros(1));
            assert_eq!(house.ask(1, "a.example.test", RecordKind::Ipv4), None);
        }
    }
}

#[test]
fn what_has_no_time_is_not_remembered_and_nothing_is_for_more_than_a_day() {
    let mut house = House::new(&[FIRST]);
    // Without a zone's start nobody says for how long.
    learn(&mut house, "a.test", |asked| reply(asked, Rcode::NXDOMAIN, |_| {}));
    learn(&mut house, "a.test", |asked| {
        reply(asked, Rcode::NOERROR, |answer| {
            answer
                .push((labels("a.test"), Ttl::from_secs(10_000_000), A::from_octets(192, 0, 2, 4)))
                .unwrap();
        })
    });
    house.passes(just_before(Micros::from_secs(86_400)));
    assert_eq!(house.ask(1, "a.test", RecordKind::Ipv4), Some(found(4)));
    house.passes(Micros(1));
    assert_eq!(house.ask(1, "a.test", RecordKind::Ipv4), None);
}

#[test]
fn refusals_are_not_remembered() {
    let mut house = House::new(&[FIRST]);
    house.ask(1, "a.test", RecordKind::Ipv4);
    for _ in 0..3 {
        let asked = house.heard();
        house.replies(&asked, &reply(&asked.bytes, Rcode::SERVFAIL, |_| {}));
    }
    assert_eq!(house.told(), [(1, Err(Unanswered::Refused(Rcode::SERVFAIL)))]);
    assert_eq!(house.ask(1, "a.test", RecordKind::Ipv4), None);
}

#[test]
fn what_is_known_takes_no_more_than_its_bytes_and_what_was_learned_first_goes_first() {
    let mut cache = crate::cache::Cache::new(LIMITS.cache_bytes);
    let Ok(answer) = found(1) else { unreachable!() };
    let name = |number: u32| question(&alloc::format!("{number}.test"), RecordKind::Ipv4);
    let now = Instant::START;
    for number in 0..5_000 {
        cache.remember(&name(number), &answer, 60, now);
        // Learned again and again, it stays.
        cache.remember(&name(0), &answer, 60, now);
        assert!(cache.bytes() <= LIMITS.cache_bytes);
    }
    let known: Vec<u32> =
        (1..5_000).filter(|number| cache.find(&name(*number), now).is_some()).collect();
    assert!(known.len() > 200, "{} are known", known.len());
    assert_eq!(known, (5_000 - known.len() as u32..5_000).collect::<Vec<_>>());
    assert!(cache.find(&name(0), now).is_some());
    let large =
        Answer { records: Vec::from([Record::Text([b'x'; 2_000].into())]), ..answer.clone() };
    cache.remember(&name(9), &large, 60, now);
    assert!(cache.find(&name(9), now).is_none(), "nobody's answer pushes out all others");
    let bytes = cache.bytes();
    cache.remember(&name(8), &answer, 0, now);
    assert_eq!(cache.bytes(), bytes, "what is true for no time takes no room");
}

#[test]
fn what_is_known_says_how_much_it_takes() {
    let question =
        |name| Question { name: Name::parse(name).expect("a name"), kind: RecordKind::Text };
    let answer = |bytes| Answer {
        records: Vec::from([Record::Text(alloc::vec![b'x'; bytes].into())]),
        exists: true,
        is_authenticated: false,
    };
    let mut knowledge = Knowledge::default();
    assert_eq!(knowledge.bytes(), 0);
    knowledge.learn(question("a.test"), Err(Unanswered::Silence));
    let little = knowledge.bytes();
    knowledge.learn(question("b.test"), Ok(answer(5_000)));
    assert!(
        little > 0 && knowledge.bytes() >= little + 5_000 && knowledge.bytes() < little + 6_000
    );
}
