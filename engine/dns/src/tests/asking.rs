//! Whom it asks, when, and whom it tells.

use super::*;

const PATIENCE: Micros = Micros::from_secs(3);

#[test]
fn who_asks_is_told() {
    let mut house = House::new(&[FIRST]);
    assert_eq!(house.ask(1, "Mail.Example.test.", RecordKind::Ipv4), None);
    let asked = house.heard();
    assert_eq!(asked.to, FIRST);
    house.replies(
        &asked,
        &reply(&asked.bytes, Rcode::NOERROR, |answer| address(answer, "mail.example.test", 5)),
    );
    assert_eq!(house.told(), [(1, found(5))]);
    assert_eq!(house.ports, []);
}

#[test]
fn a_question_asks_for_recursion_and_for_authentication_and_says_what_fits() {
    let mut house = House::new(&[FIRST]);
    house.ask(1, "example.test", RecordKind::Exchanger);
    let bytes = house.heard().bytes;
    let message = Message::from_slice(&bytes).unwrap();
    let header = message.header();
    assert!(header.rd() && header.ad() && !header.qr() && !header.cd());
    assert_eq!(message.qtype(), Some(domain::base::Rtype::MX));
    assert_eq!(message.opt().unwrap().udp_payload_size(), 1232);
}

#[test]
fn the_same_question_is_asked_once_and_all_are_told() {
    let mut house = House::new(&[FIRST]);
    for asker in 1..=4 {
        assert_eq!(house.ask(asker, "a.test", RecordKind::Ipv4), None);
    }
    assert_eq!(
        house.ask(5, "a.test", RecordKind::Ipv4),
        Some(Err(Unanswered::Busy)),
        "so many may wait for one answer"
    );
    let asked = house.heard();
    house.replies(
        &asked,
        &reply(&asked.bytes, Rcode::NOERROR, |answer| address(answer, "a.test", 9)),
    );
    assert_eq!(house.told(), [1, 2, 3, 4].map(|asker| (asker, found(9))));
}

#[test]
fn a_silent_server_is_followed_by_the_next_and_he_who_answers_is_asked_first_from_then_on() {
    let mut house = House::new(&[FIRST, SECOND]);
    house.ask(1, "a.test", RecordKind::Ipv4);
    let to_first = house.heard();
    assert_eq!(to_first.to, FIRST);
    house.passes(PATIENCE);
    let asked = house.heard();
    assert_eq!(asked.to, SECOND);
    assert_eq!(house.ports, [asked.port], "the first server's port is nobody's any more");
    house.replies(
        &asked,
        &reply(&asked.bytes, Rcode::NOERROR, |answer| address(answer, "a.test", 1)),
    );
    assert_eq!(house.told(), [(1, found(1))]);
    house.ask(2, "b.test", RecordKind::Ipv4);
    assert_eq!(house.heard().to, SECOND);
}

#[test]
fn all_servers_silent_it_says_so_in_bounded_time() {
    for (servers, attempts) in [(&[FIRST][..], 3), (&[FIRST, SECOND], 4)] {
        let mut house = House::new(servers);
        house.ask(1, "a.test", RecordKind::Ipv4);
        for attempt in 0..attempts {
            assert_eq!(house.heard().to, servers[attempt % servers.len()]);
            assert_eq!(house.told(), []);
            house.passes(PATIENCE);
        }
        assert_eq!(house.told(), [(1, Err(Unanswered::Silence))]);
        assert!(house.is_quiet());
    }
}

#[test]
fn nobody_waits_longer_than_the_span_whatever_servers_do() {
    let mut house = House::new(&[FIRST, SECOND]);
    house.ask(1, "a.test", RecordKind::Ipv4);
    // Each attempt is cut short, and each stream hangs.
    while house.told.is_empty() {
        let until_deadline = house.resolver.next_deadline().since(house.now);
        if house.is_quiet() {
            house.passes(until_deadline);
            continue;
        }
        let asked = house.heard();
        let mut cut = reply(&asked.bytes, Rcode::NOERROR, |_| {});
        cut[2] |= 2;
        house.passes(just_before(until_deadline));
        house.replies(&asked, &cut);
    }
    assert_eq!(house.told(), [(1, Err(Unanswered::Silence))]);
    assert!(house.now.since(Instant::START) <= crate::QUESTION_SPAN_MAX, "at {}", house.now);
}

#[test]
fn a_server_that_refuses_is_followed_at_once_and_at_the_end_its_code_is_told() {
    let mut house = House::new(&[FIRST, SECOND]);
    house.ask(1, "a.test", RecordKind::Ipv4);
    for (server, code) in [
        (FIRST, Rcode::SERVFAIL),
        (SECOND, Rcode::REFUSED),
        (FIRST, Rcode::SERVFAIL),
        (SECOND, Rcode::REFUSED),
    ] {
        let asked = house.heard();
        assert_eq!(asked.to, server);
        house.replies(&asked, &reply(&asked.bytes, code, |_| {}));
    }
    assert_eq!(house.told(), [(1, Err(Unanswered::Refused(Rcode::REFUSED)))]);
}

#[test]
fn a_server_that_understands_nothing_need_not_repeat_the_question() {
    let mut house = House::new(&[FIRST, SECOND]);
    house.ask(1, "a.test", RecordKind::Ipv4);
    let asked = house.heard();
    let mut refusal = asked.bytes[..12].to_vec();
    // A reply, a format error, and no question, no record.
    refusal[2..].copy_from_slice(&[0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    house.replies(&asked, &refusal);
    assert_eq!(house.heard().to, SECOND);
}

#[test]
fn without_a_server_and_beyond_the_bound_it_says_so_at_once() {
    let mut house = House::new(&[]);
    assert_eq!(house.ask(1, "a.test", RecordKind::Ipv4), Some(Err(Unanswered::NoServer)));
    let mut house = House::with(Limits { questions: 2, ..LIMITS }, &[FIRST]);
    assert_eq!(house.ask(1, "a.test", RecordKind::Ipv4), None);
    assert_eq!(house.ask(2, "b.test", RecordKind::Ipv4), None);
    assert_eq!(house.ask(3, "c.test", RecordKind::Ipv4), Some(Err(Unanswered::Busy)));
}

#[test]
fn who_waits_is_asked_for_at_new_servers_and_told_when_there_are_none_any_more() {
    let mut house = House::new(&[FIRST]);
    house.ask(1, "a.test", RecordKind::Ipv4);
    let former = house.heard();
    house.resolver.set_servers([SECOND.ip()], house.now);
    house.work();
    let asked = house.heard();
    assert_eq!(asked.to, SECOND);
    house.replies(
        &former,
        &reply(&former.bytes, Rcode::NOERROR, |answer| address(answer, "a.test", 6)),
    );
    assert_eq!(house.told(), [], "the former server is not believed any more");
    house.resolver.set_servers([], house.now);
    house.work();
    assert_eq!(house.told(), [(1, Err(Unanswered::NoServer))]);
}
