//! Answers that do not fit into a datagram.

use super::*;

/// How a stream goes wrong.
type Way = fn(&mut House, StreamId);

/// A house whose question was answered by what did not fit; the stream that it wants.
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
fn what_is_cut_short_is_asked_for_by_a_stream_and_read_however_it_comes() {
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
fn a_server_may_spell_the_name_as_it_likes_in_a_stream() {
    let mut open = cut_short();
    let mut answer =
        reply(&written(&mut open), Rcode::NOERROR, |answer| address(answer, "big.test", 9));
    answer[13..16].make_ascii_uppercase();
    let (mut house, stream) = open;
    house.stream_brings(stream, &with_length(&answer));
    assert_eq!(house.told(), [(1, found(9))]);
}

#[test]
fn a_stream_that_ends_or_hangs_or_brings_something_else_is_followed_by_the_next_server() {
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
        assert!(house.is_quiet(), "what a former stream says is nobody's");
    }
}
