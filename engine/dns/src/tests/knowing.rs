//! Tests of the cache: which answers it holds, and for how long.

use super::*;

const KINDS: [RecordKind; 2] = [RecordKind::Ipv4, RecordKind::Text];

/// Asks a question, and lets the server send the reply that `make` builds.
fn learn(harness: &mut ResolverHarness, name: &str, make: impl FnOnce(&[u8]) -> Vec<u8>) {
    assert_eq!(harness.ask(0, name, RecordKind::Ipv4), None, "the answer is not cached yet");
    let query = harness.sent_query();
    harness.replies(&query, &make(&query.bytes));
    assert_eq!(harness.results().len(), 1);
}

#[test]
fn answer_is_cached_until_its_ttl_ends() {
    let mut harness = ResolverHarness::new(&[FIRST]);
    learn(&mut harness, "a.test", |query| {
        reply(query, Rcode::NOERROR, |answer| address(answer, "a.test", 4))
    });
    harness.time_passes(just_before(Micros::from_secs(300)));
    assert_eq!(harness.ask(1, "A.TEST", RecordKind::Ipv4), Some(found(4)));
    assert!(harness.is_quiet());
    harness.time_passes(Micros(1));
    assert_eq!(harness.ask(2, "a.test", RecordKind::Ipv4), None);
}

#[test]
fn record_kinds_are_cached_separately() {
    let mut harness = ResolverHarness::new(&[FIRST]);
    learn(&mut harness, "a.test", |query| {
        reply(query, Rcode::NOERROR, |answer| address(answer, "a.test", 4))
    });
    assert_eq!(KINDS.map(|kind| harness.ask(1, "a.test", kind).is_some()), [true, false]);
}

#[test]
fn ttl_of_an_alias_limits_the_answer() {
    let mut harness = ResolverHarness::new(&[FIRST]);
    learn(&mut harness, "a.test", |query| {
        reply(query, Rcode::NOERROR, |answer| {
            alias(answer, "a.test", "b.test", 10);
            address(answer, "b.test", 4);
        })
    });
    assert_eq!(harness.ask(1, "a.test", RecordKind::Ipv4), Some(found(4)));
    harness.time_passes(Micros::from_secs(10));
    assert_eq!(harness.ask(1, "a.test", RecordKind::Ipv4), None);
}

#[test]
fn negative_answer_is_cached_as_the_zone_says() {
    for (code, exists) in [(Rcode::NXDOMAIN, false), (Rcode::NOERROR, true)] {
        for (ttl, minimum, span) in [(60, 900, 60), (900, 60, 60), (90_000, 90_000, 3_600)] {
            let mut harness = ResolverHarness::new(&[FIRST]);
            learn(&mut harness, "a.example.test", |query| nothing(query, code, ttl, minimum));
            harness.time_passes(just_before(Micros::from_secs(span)));
            let known = Answer { records: Vec::new(), exists, is_authenticated: false };
            assert_eq!(harness.ask(1, "a.example.test", RecordKind::Ipv4), Some(Ok(known)));
            harness.time_passes(Micros(1));
            assert_eq!(harness.ask(1, "a.example.test", RecordKind::Ipv4), None);
        }
    }
}

#[test]
fn cache_time_is_between_zero_and_a_day() {
    let mut harness = ResolverHarness::new(&[FIRST]);
    // Without an SOA record, the answer has no lifetime.
    learn(&mut harness, "a.test", |query| reply(query, Rcode::NXDOMAIN, |_| {}));
    learn(&mut harness, "a.test", |query| {
        reply(query, Rcode::NOERROR, |answer| {
            answer
                .push((labels("a.test"), Ttl::from_secs(10_000_000), A::from_octets(192, 0, 2, 4)))
                .unwrap();
        })
    });
    harness.time_passes(just_before(Micros::from_secs(86_400)));
    assert_eq!(harness.ask(1, "a.test", RecordKind::Ipv4), Some(found(4)));
    harness.time_passes(Micros(1));
    assert_eq!(harness.ask(1, "a.test", RecordKind::Ipv4), None);
}

#[test]
fn refusals_are_not_cached() {
    let mut harness = ResolverHarness::new(&[FIRST]);
    harness.ask(1, "a.test", RecordKind::Ipv4);
    for _ in 0..3 {
        let query = harness.sent_query();
        harness.replies(&query, &reply(&query.bytes, Rcode::SERVFAIL, |_| {}));
    }
    assert_eq!(harness.results(), [(1, Err(Unanswered::Refused(Rcode::SERVFAIL)))]);
    assert_eq!(harness.ask(1, "a.test", RecordKind::Ipv4), None);
}

#[test]
fn cache_is_bounded_and_evicts_the_oldest() {
    let mut cache = crate::cache::AnswerCache::new(LIMITS.cache_bytes);
    let Ok(answer) = found(1) else { unreachable!() };
    let name = |number: u32| question(&alloc::format!("{number}.test"), RecordKind::Ipv4);
    let now = Instant::START;
    for number in 0..5_000 {
        cache.remember(&name(number), &answer, 60, now);
        // An answer that is often refreshed stays.
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
    assert!(cache.find(&name(9), now).is_none(), "an answer that is too large is not cached");
    let bytes = cache.bytes();
    cache.remember(&name(8), &answer, 0, now);
    assert_eq!(cache.bytes(), bytes, "an answer without a lifetime is not cached");
}

#[test]
fn knowledge_reports_its_size() {
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
