//! Tests of the order of servers, of deadlines, and of the results that askers get.

use super::*;

const PATIENCE: Micros = Micros::from_secs(3);

#[test]
fn asker_is_told_the_answer() {
    let mut harness = ResolverHarness::new(&[FIRST]);
    assert_eq!(harness.ask(1, "Mail.Example.test.", RecordKind::Ipv4), None);
    let query = harness.sent_query();
    assert_eq!(query.to, FIRST);
    harness.replies(
        &query,
        &reply(&query.bytes, Rcode::NOERROR, |answer| address(answer, "mail.example.test", 5)),
    );
    assert_eq!(harness.results(), [(1, found(5))]);
    assert_eq!(harness.ports, []);
}

#[test]
fn question_sets_rd_ad_and_the_datagram_size() {
    let mut harness = ResolverHarness::new(&[FIRST]);
    harness.ask(1, "example.test", RecordKind::Exchanger);
    let bytes = harness.sent_query().bytes;
    let message = Message::from_slice(&bytes).unwrap();
    let header = message.header();
    assert!(header.rd() && header.ad() && !header.qr() && !header.cd());
    assert_eq!(message.qtype(), Some(domain::base::Rtype::MX));
    assert_eq!(message.opt().unwrap().udp_payload_size(), 1232);
}

#[test]
fn same_question_is_asked_once_and_all_are_told() {
    let mut harness = ResolverHarness::new(&[FIRST]);
    for asker in 1..=4 {
        assert_eq!(harness.ask(asker, "a.test", RecordKind::Ipv4), None);
    }
    assert_eq!(
        harness.ask(5, "a.test", RecordKind::Ipv4),
        Some(Err(Unanswered::Busy)),
        "one question has all its askers"
    );
    let query = harness.sent_query();
    harness.replies(
        &query,
        &reply(&query.bytes, Rcode::NOERROR, |answer| address(answer, "a.test", 9)),
    );
    assert_eq!(harness.results(), [1, 2, 3, 4].map(|asker| (asker, found(9))));
}

#[test]
fn next_server_follows_silence_and_becomes_preferred() {
    let mut harness = ResolverHarness::new(&[FIRST, SECOND]);
    harness.ask(1, "a.test", RecordKind::Ipv4);
    let to_first = harness.sent_query();
    assert_eq!(to_first.to, FIRST);
    harness.time_passes(PATIENCE);
    let query = harness.sent_query();
    assert_eq!(query.to, SECOND);
    assert_eq!(harness.ports, [query.port], "the first server's port is released");
    harness.replies(
        &query,
        &reply(&query.bytes, Rcode::NOERROR, |answer| address(answer, "a.test", 1)),
    );
    assert_eq!(harness.results(), [(1, found(1))]);
    harness.ask(2, "b.test", RecordKind::Ipv4);
    assert_eq!(harness.sent_query().to, SECOND);
}

#[test]
fn silence_of_all_servers_is_reported_in_bounded_time() {
    for (servers, attempts) in [(&[FIRST][..], 3), (&[FIRST, SECOND], 4)] {
        let mut harness = ResolverHarness::new(servers);
        harness.ask(1, "a.test", RecordKind::Ipv4);
        for attempt in 0..attempts {
            assert_eq!(harness.sent_query().to, servers[attempt % servers.len()]);
            assert_eq!(harness.results(), []);
            harness.time_passes(PATIENCE);
        }
        assert_eq!(harness.results(), [(1, Err(Unanswered::Silence))]);
        assert!(harness.is_quiet());
    }
}

#[test]
fn waiting_is_bounded_whatever_servers_do() {
    let mut harness = ResolverHarness::new(&[FIRST, SECOND]);
    harness.ask(1, "a.test", RecordKind::Ipv4);
    // Each datagram gets a truncated answer, and each stream hangs.
    while harness.results.is_empty() {
        let until_deadline = harness.resolver.next_deadline().since(harness.now);
        if harness.is_quiet() {
            harness.time_passes(until_deadline);
            continue;
        }
        let query = harness.sent_query();
        let mut cut = reply(&query.bytes, Rcode::NOERROR, |_| {});
        cut[2] |= 2;
        harness.time_passes(just_before(until_deadline));
        harness.replies(&query, &cut);
    }
    assert_eq!(harness.results(), [(1, Err(Unanswered::Silence))]);
    assert!(harness.now.since(Instant::START) <= crate::QUESTION_SPAN_MAX, "at {}", harness.now);
}

#[test]
fn next_server_follows_a_refusal_at_once() {
    let mut harness = ResolverHarness::new(&[FIRST, SECOND]);
    harness.ask(1, "a.test", RecordKind::Ipv4);
    for (server, code) in [
        (FIRST, Rcode::SERVFAIL),
        (SECOND, Rcode::REFUSED),
        (FIRST, Rcode::SERVFAIL),
        (SECOND, Rcode::REFUSED),
    ] {
        let query = harness.sent_query();
        assert_eq!(query.to, server);
        harness.replies(&query, &reply(&query.bytes, code, |_| {}));
    }
    assert_eq!(harness.results(), [(1, Err(Unanswered::Refused(Rcode::REFUSED)))]);
}

#[test]
fn format_error_need_not_repeat_the_question() {
    let mut harness = ResolverHarness::new(&[FIRST, SECOND]);
    harness.ask(1, "a.test", RecordKind::Ipv4);
    let query = harness.sent_query();
    let mut refusal = query.bytes[..12].to_vec();
    // The flags of a reply with a format error, and counts of zero: no question and no record.
    refusal[2..].copy_from_slice(&[0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    harness.replies(&query, &refusal);
    assert_eq!(harness.sent_query().to, SECOND);
}

#[test]
fn question_without_server_or_place_fails_at_once() {
    let mut harness = ResolverHarness::new(&[]);
    assert_eq!(harness.ask(1, "a.test", RecordKind::Ipv4), Some(Err(Unanswered::NoServer)));
    let mut harness = ResolverHarness::with(Limits { questions: 2, ..LIMITS }, &[FIRST]);
    assert_eq!(harness.ask(1, "a.test", RecordKind::Ipv4), None);
    assert_eq!(harness.ask(2, "b.test", RecordKind::Ipv4), None);
    assert_eq!(harness.ask(3, "c.test", RecordKind::Ipv4), Some(Err(Unanswered::Busy)));
}

#[test]
fn waiting_questions_move_to_new_servers() {
    let mut harness = ResolverHarness::new(&[FIRST]);
    harness.ask(1, "a.test", RecordKind::Ipv4);
    let former = harness.sent_query();
    harness.resolver.set_servers([SECOND.ip()], harness.now);
    harness.work();
    let query = harness.sent_query();
    assert_eq!(query.to, SECOND);
    harness.replies(
        &former,
        &reply(&former.bytes, Rcode::NOERROR, |answer| address(answer, "a.test", 6)),
    );
    assert_eq!(harness.results(), [], "an answer of the former server is ignored");
    harness.resolver.set_servers([], harness.now);
    harness.work();
    assert_eq!(harness.results(), [(1, Err(Unanswered::NoServer))]);
}
