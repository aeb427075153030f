//! Open replies at the pace of the handler, over HTTP/1.1 and HTTP/2.

use std::vec::Vec;

use http2::{FrameType, flags};
use machine::Micros;

use super::h2::client::{Client, frame, get};
use super::world::{Talk, World, request};
use crate::{HttpWaitsFor, OpenReply, Reply, ReplyEnd, ReplyPace};

const SILENCE: Micros = Micros::from_secs(25);
const LONG: &[u8] = &[b'x'; 5000];

fn reply(number: u64) -> Reply {
    let open =
        OpenReply { number, pace: ReplyPace::Handler { silence: SILENCE, sign_of_life: b":\n\n" } };
    Reply::open("text/event-stream", b"first\n".to_vec(), open)
}

fn take_output(world: &mut World) -> Vec<u8> {
    let output = core::mem::take(&mut world.output);
    world.room += output.len();
    output
}

fn listening() -> Talk {
    let mut talk = Talk::new();
    talk.arrive(request(&["GET /app/news HTTP/1.1"]).as_bytes());
    talk.reply(reply(7));
    let output = std::string::String::from_utf8(take_output(&mut talk.world)).expect("text");
    assert!(
        output.contains("\r\nConnection: close\r\n") && !output.contains("Content-Length"),
        "{output}"
    );
    assert!(output.ends_with("\r\n\r\nfirst\n"), "{output}");
    talk
}

fn listening_in_two() -> Client {
    let mut client = Client::new();
    client.arrive(&get(1, "/app/news"));
    client.reply(reply(7));
    let frames = client.frames();
    assert!(
        frames.iter().all(|frame| frame.flags & flags::END_STREAM == 0),
        "the stream stays open"
    );
    assert_eq!(frames.last().expect("a body").payload, b"first\n");
    client
}

#[test]
fn an_open_reply_lasts_until_its_handler_ends_it() {
    let mut talk = listening();
    assert_eq!((talk.session.waits_for(), talk.session.held_bytes()), (HttpWaitsFor::Bytes, 0));
    talk.session.continue_reply(8, b"another's\n");
    talk.session.continue_reply(7, b"second\n");
    assert_eq!(talk.session.held_bytes(), 7);
    talk.arrive(b"bytes that are dropped");
    assert_eq!(
        (take_output(&mut talk.world), talk.session.held_bytes()),
        (b"second\n".to_vec(), 0)
    );
    talk.session.end_reply(7, ReplyEnd::Whole, &mut talk.world);
    talk.arrive(b"");
    assert!(talk.world.closed && talk.world.left == [7]);

    let mut client = listening_in_two();
    client.session.continue_reply(8, b"another's\n");
    client.session.continue_reply(7, b"second\n");
    assert_eq!(client.session.held_bytes(), 7);
    client.arrive(b"");
    assert_eq!(client.frames().last().expect("more").payload, b"second\n");
    assert_eq!(client.session.held_bytes(), 0);
    // Other requests are answered while the reply is open.
    assert_eq!(client.ask(3, "GET", "/hello.txt", &[]).status(), "200");
    client.session.end_reply(7, ReplyEnd::Whole, &mut client.world);
    client.arrive(b"");
    let last = client.frames();
    assert!(last.iter().any(|frame| frame.stream == 1 && frame.flags & flags::END_STREAM != 0));
    assert_eq!(client.world.left, [7]);
}

#[test]
fn a_silent_open_reply_sends_signs_of_life() {
    let mut talk = listening();
    for _ in 0..3 {
        assert_eq!(talk.world.deadline, Some(SILENCE));
        talk.session.deadline_expired(&mut talk.world);
        talk.arrive(b"");
        assert_eq!(take_output(&mut talk.world), b":\n\n");
    }
    assert!(!talk.world.closed);

    let mut client = listening_in_two();
    for _ in 0..3 {
        assert_eq!(client.world.deadline, Some(SILENCE));
        client.session.deadline_expired(&mut client.world);
        client.arrive(b"");
        assert_eq!(client.frames().last().expect("a sign").payload, b":\n\n");
    }
    // A handler that sets the pace may send any number of short frames.
    for _ in 0..5000 {
        client.session.continue_reply(7, b"x");
        client.arrive(b"");
        client.frames();
    }
    assert!(!client.world.closed && client.world.left.is_empty());
}

#[test]
fn the_end_of_an_open_reply_is_reported_to_its_handler_once() {
    let mut talk = listening();
    talk.session.peer_closed(&mut talk.world);
    assert!(talk.world.closed && talk.world.left == [7]);

    let mut talk = listening();
    talk.world.room = 0;
    talk.session.continue_reply(7, b"second\n");
    talk.arrive(b"");
    assert_eq!(talk.session.waits_for(), HttpWaitsFor::SendRoom);
    talk.session.deadline_expired(&mut talk.world);
    assert!(talk.world.closed && talk.world.left == [7]);

    let mut talk = listening();
    talk.session.continue_reply(7, LONG);
    talk.arrive(b"");
    assert!(
        talk.world.closed && talk.world.left == [7],
        "the reply exceeds the limit of unsent bytes"
    );

    let mut talk = listening();
    talk.session.stopping(&mut talk.world);
    talk.arrive(b"");
    assert!(talk.world.closed && talk.world.left == [7]);

    let mut talk = Talk::new();
    talk.arrive(request(&["HEAD /app/news HTTP/1.1"]).as_bytes());
    talk.reply(reply(7));
    assert_eq!(talk.world.left, [7]);

    let mut client = listening_in_two();
    client.arrive(&frame(FrameType::ResetStream, 0, 1, &8u32.to_be_bytes()));
    assert_eq!(client.world.left, [7]);
    assert!(!client.world.closed);

    let mut client = Client::new();
    client.arrive(&get(1, "/app/news"));
    client.arrive(&frame(FrameType::ResetStream, 0, 1, &8u32.to_be_bytes()));
    client.reply(reply(7));
    assert_eq!(client.world.left, [7], "the client reset the stream before the reply");

    let mut client = listening_in_two();
    client.session.stopping(&mut client.world);
    client.arrive(b"");
    assert_eq!(client.world.left, [7]);
    assert!(client.world.closed);
}
