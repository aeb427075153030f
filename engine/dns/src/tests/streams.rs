//! Answers that do not fit into a datagram.

use super::*;

/// A failure of a stream.
type Way = fn(&mut House, StreamId);

/// A resolver after a truncated answer, and the stream that it wants.
fn cut_short() -> (House, StreamId) {
    let mut house = House::new(&[FIRST, SECOND]);
    house.ask(1, "big.test", RecordKind::Ipv4);
    let asked = house.heard();
    let mut cut = reply(&asked.bytes, Rcode::NOERROR, |answer| address(answer, "big.test", 1));
    cut[2] |= 2;
    house.replies(&asked, &cut);
    assert_eq!(house.told(), [], "half an answer is none");
    let [(stream, to)] = house.streams[..] else { panic!("{:?}", house.streams) };
    assert_eq!(to, FIRST);
    (house, stream)
}

fn with_length(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes(), message].concat()
}

#[test]
fn truncated_answer_is_read_from_a_stream() {
    let whole = with_length(&reply(&written(&mut cut_short()), Rcode::NOERROR, many));
    for piece in [1, 2, 7, whole.len()] {
        let (mut house, stream) = cut_short();
        house.stream_opens(stream);
        for bytes in whole.chunks(piece) {
            assert_eq!(house.told(), []);
            house.stream_brings(stream, bytes);
        }
        let told = house.told();
        assert!(matches!(&told[..], [(1, Ok(answer))] if answer.records.len() == 100), "{told:?}");
        assert_eq!(house.streams, [], "it is hung up");
    }
}

fn written((house, stream): &mut (House, StreamId)) -> Vec<u8> {
    let written = house.stream_opens(*stream);
    let (length, message) = written.split_at(2);
    assert_eq!(usize::from(u16::from_be_bytes([length[0], length[1]])), message.len());
    message.to_vec()
}

fn many(answer: &mut AnswerBuilder<Vec<u8>>) {
    (0..100).for_each(|last| address(answer, "big.test", last));
}

#[test]
fn letter_case_is_free_on_a_stream() {
    let mut open = cut_short();
    let mut answer =
        reply(&written(&mut open), Rcode::NOERROR, |answer| address(answer, "big.test", 9));
    answer[13..16].make_ascii_uppercase();
    let (mut house, stream) = open;
    house.stream_brings(stream, &with_length(&answer));
    assert_eq!(house.told(), [(1, found(9))]);
}

#[test]
fn next_server_follows_a_failed_stream() {
    let ends: Way = |house, stream| house.stream_ends(stream);
    let hangs: Way = |house, _| house.passes(Micros::from_secs(6));
    let brings_nonsense: Way =
        |house, stream| house.stream_brings(stream, &with_length(b"220 mail.test ESMTP"));
    let brings_nothing: Way = |house, stream| house.stream_brings(stream, &[0, 0]);
    for way in [ends, hangs, brings_nonsense, brings_nothing] {
        let (mut house, stream) = cut_short();
        house.stream_opens(stream);
        way(&mut house, stream);
        assert_eq!(house.streams, []);
        assert_eq!(house.heard().to, SECOND);
        house.stream_brings(stream, b"late");
        house.stream_ends(stream);
        assert!(house.is_quiet(), "bytes of an earlier stream are ignored");
    }
}
