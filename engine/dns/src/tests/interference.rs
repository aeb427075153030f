//! Tests of guessed, forged and modified answers.

use super::*;

/// A modification of an answer.
type Change = fn(&mut Vec<u8>);

/// A resolver that has asked for the address of `forged.example.test`, and its query.
fn asking() -> (ResolverHarness, SentQuery) {
    let mut harness = ResolverHarness::new(&[FIRST, SECOND]);
    harness.ask(1, "forged.example.test", RecordKind::Ipv4);
    let query = harness.sent_query();
    (harness, query)
}

fn answer(query: &[u8]) -> Vec<u8> {
    reply(query, Rcode::NOERROR, |answer| address(answer, "forged.example.test", 66))
}

#[test]
fn ports_identifiers_and_letter_cases_vary() {
    let mut harness = ResolverHarness::with(Limits { questions: 200, ..LIMITS }, &[FIRST]);
    let (mut ports, mut identifiers, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..200 {
        // Each question has another name, since there are few kinds of records.
        harness.ask(number, &alloc::format!("abcdefghijklmnop.{number}.test"), RecordKind::Ipv4);
        let query = harness.sent_query();
        ports.push(query.port);
        identifiers.push([query.bytes[0], query.bytes[1]]);
        names.push(spelled(&query.bytes)[..16].to_string());
    }
    ports.sort_unstable();
    ports.dedup();
    assert!(ports.len() == 200 && ports[0] >= 1024);
    identifiers.sort_unstable();
    identifiers.dedup();
    names.sort_unstable();
    names.dedup();
    assert!(
        identifiers.len() > 195 && names.len() > 190,
        "{} identifiers, {} spellings",
        identifiers.len(),
        names.len()
    );
}

#[test]
fn answers_of_other_servers_and_ports_are_ignored() {
    let (mut harness, query) = asking();
    let forged = answer(&query.bytes);
    harness.datagram_comes(query.port, SECOND, &forged);
    harness.datagram_comes(query.port, SocketAddr::new(FIRST.ip(), 5353), &forged);
    harness.datagram_comes(query.port ^ 1, FIRST, &forged);
    assert_eq!((harness.results(), harness.streams.len()), (Vec::new(), 0));
    harness.replies(&query, &forged);
    assert_eq!(harness.results(), [(1, found(66))]);
}

#[test]
fn a_forged_answer_moves_the_question_to_tcp() {
    let right = asking().1.bytes;
    let wrong_identifier: Change = |bytes| bytes[0] ^= 1;
    let wrong_case: Change = |bytes| bytes[13] ^= 0x20;
    let wrong_name: Change = |bytes| bytes[13] ^= 1;
    let wrong_kind: Change = |bytes| bytes[34] ^= 1;
    let a_question: Change = |bytes| bytes[2] &= 0x7f;
    let cut_off: Change = |bytes| bytes.truncate(11);
    assert_eq!(spelled(&right).to_lowercase(), "forged.example.test");
    for change in [wrong_identifier, wrong_case, wrong_name, wrong_kind, a_question, cut_off] {
        let (mut harness, query) = asking();
        let mut forged = answer(&query.bytes);
        change(&mut forged);
        harness.replies(&query, &forged);
        assert_eq!(harness.ports, [], "the port is given up");
        assert_eq!(harness.streams.len(), 1);
        assert_eq!(harness.streams[0].1, FIRST);
        harness.replies(&query, &answer(&query.bytes));
        assert_eq!(
            harness.results(),
            [],
            "the next guess would have been right, but comes too late"
        );
    }
}

#[test]
fn records_of_other_names_are_ignored() {
    let (mut harness, query) = asking();
    let bytes = reply(&query.bytes, Rcode::NOERROR, |answer| {
        address(answer, "victim.test", 66);
        address(answer, "forged.example.test", 1);
        address(answer, "sub.forged.example.test", 67);
    });
    harness.replies(&query, &bytes);
    assert_eq!(harness.results(), [(1, found(1))]);
    assert_eq!(
        harness.ask(2, "victim.test", RecordKind::Ipv4),
        None,
        "an unrequested record is not cached"
    );
}
