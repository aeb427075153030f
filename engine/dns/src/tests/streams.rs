//! Tests of answers that do not fit into a datagram.

use super::*;

/// A failure of a stream.
type StreamFailure = fn(&mut ResolverHarness, StreamId);

/// A resolver after a truncated answer, and the stream that it opens.
fn cut_short() -> (ResolverHarness, StreamId) {
    let mut harness = ResolverHarness::new(&[FIRST, SECOND]);
    harness.ask(1, "big.test", RecordKind::Ipv4);
    let query = harness.sent_query();
    let mut cut = reply(&query.bytes, Rcode::NOERROR, |answer| address(answer, "big.test", 1));
    cut[2] |= 2;
    harness.replies(&query, &cut);
    assert_eq!(harness.results(), [], "a truncated answer is not reported");
    let [(stream, to)] = harness.streams[..] else { panic!("{:?}", harness.streams) };
    assert_eq!(to, FIRST);
    (harness, stream)
}

fn with_length(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes(), message].concat()
}

#[test]
fn truncated_answer_is_read_from_a_stream() {
    let whole = with_length(&reply(&written(&mut cut_short()), Rcode::NOERROR, many));
    for piece in [1, 2, 7, whole.len()] {
        let (mut harness, stream) = cut_short();
        harness.stream_opens(stream);
        for bytes in whole.chunks(piece) {
            assert_eq!(harness.results(), []);
            harness.stream_brings(stream, bytes);
        }
        let results = harness.results();
        assert!(
            matches!(&results[..], [(1, Ok(answer))] if answer.records.len() == 100),
            "{results:?}"
        );
        assert_eq!(harness.streams, [], "the stream is hung up");
    }
}

fn written((harness, stream): &mut (ResolverHarness, StreamId)) -> Vec<u8> {
    let written = harness.stream_opens(*stream);
    let (length, message) = written.split_at(2);
    assert_eq!(usize::from(u16::from_be_bytes([length[0], length[1]])), message.len());
    message.to_vec()
}

fn many(answer: &mut AnswerBuilder<Vec<u8>>) {
    (0..100).for_each(|last| address(answer, "big.test", last));
}

#[test]
fn letter_case_of_answers_does_not_matter_on_a_stream() {
    let mut open = cut_short();
    let mut answer =
        reply(&written(&mut open), Rcode::NOERROR, |answer| address(answer, "big.test", 9));
    answer[13..16].make_ascii_uppercase();
    let (mut harness, stream) = open;
    harness.stream_brings(stream, &with_length(&answer));
    assert_eq!(harness.results(), [(1, found(9))]);
}

#[test]
fn next_server_follows_a_failed_stream() {
    let ends: StreamFailure = |harness, stream| harness.stream_ends(stream);
    let hangs: StreamFailure = |harness, _| harness.time_passes(Micros::from_secs(6));
    let brings_nonsense: StreamFailure =
        |harness, stream| harness.stream_brings(stream, &with_length(b"220 mail.test ESMTP"));
    let brings_nothing: StreamFailure = |harness, stream| harness.stream_brings(stream, &[0, 0]);
    for fail in [ends, hangs, brings_nonsense, brings_nothing] {
        let (mut harness, stream) = cut_short();
        harness.stream_opens(stream);
        fail(&mut harness, stream);
        assert_eq!(harness.streams, []);
        assert_eq!(harness.sent_query().to, SECOND);
        harness.stream_brings(stream, b"late");
        harness.stream_ends(stream);
        assert!(harness.is_quiet(), "bytes of an earlier stream are ignored");
    }
}
