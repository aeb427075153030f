//! Open replies at the pace of the client, over HTTP/1.1 and HTTP/2.

use std::string::String;
use std::vec::Vec;

use http2::{FrameType, flags};

use super::h2::client::{Client, frame, get};
use super::world::{Talk, World, request};
use crate::{HttpWaitsFor, OpenReply, Reply, ReplyEnd, ReplyPace};

const PIECE: &[u8] = &[b'x'; 40_000];

fn reply(length: Option<u64>) -> Reply {
    let open = OpenReply { number: 7, pace: ReplyPace::Client { length } };
    Reply::open("application/octet-stream", b"first\n".to_vec(), open)
}

fn take_output(world: &mut World) -> Vec<u8> {
    let output = core::mem::take(&mut world.output);
    world.room += output.len();
    output
}

/// A connection with a reply to the request `head`, and the output until the handler is asked for
/// more.
fn begun(head: &[&str], length: Option<u64>) -> (Talk, String) {
    let mut talk = Talk::new();
    talk.arrive(request(head).as_bytes());
    talk.reply(reply(length));
    assert_eq!(
        (talk.session.waits_for(), talk.world.deadline),
        (HttpWaitsFor::Us, None),
        "the client waits for the handler"
    );
    assert_eq!(core::mem::take(&mut talk.world.wanted), [7]);
    let output = String::from_utf8(take_output(&mut talk.world)).expect("text");
    (talk, output)
}

#[test]
fn a_slow_client_has_one_piece_of_a_reply_held_for_it() {
    let (mut talk, head) = begun(&["GET /app/file HTTP/1.1"], None);
    assert!(
        head.contains("\r\nTransfer-Encoding: chunked\r\n") && !head.contains("Content-Length"),
        "{head}"
    );
    assert!(
        !head.contains("Connection: close") && head.ends_with("\r\n\r\n6\r\nfirst\n\r\n"),
        "{head}"
    );
    talk.world.room = 1000;
    talk.session.continue_reply(7, PIECE);
    talk.arrive(b"");
    let mut body = Vec::new();
    while talk.world.wanted.is_empty() {
        assert_eq!(talk.session.waits_for(), HttpWaitsFor::SendRoom);
        assert!((40_000..40_020).contains(&talk.session.held_bytes()));
        body.extend(take_output(&mut talk.world));
        talk.arrive(b"");
    }
    body.extend(take_output(&mut talk.world));
    assert_eq!(
        (talk.session.held_bytes(), core::mem::take(&mut talk.world.wanted)),
        (0, Vec::from([7]))
    );
    assert_eq!(body, [b"9c40\r\n", PIECE, b"\r\n"].concat());
    // The client may already send its next request. It is answered when this reply is over.
    talk.arrive(request(&["GET /hello.txt HTTP/1.1"]).as_bytes());
    assert!(talk.world.output.is_empty());
    talk.world.room = 1 << 20;
    talk.session.end_reply(7, ReplyEnd::Whole, &mut talk.world);
    talk.arrive(b"");
    let rest = String::from_utf8(take_output(&mut talk.world)).expect("text");
    assert!(
        rest.starts_with("0\r\n\r\nHTTP/1.1 200 OK\r\n") && rest.contains("Hello, world"),
        "{rest}"
    );
    assert!(!talk.world.closed && talk.world.left == [7] && talk.world.wanted.is_empty());
}

#[test]
fn without_chunks_the_end_of_the_connection_ends_the_reply() {
    for head in [
        &["GET /app/file HTTP/1.0"][..],
        &["GET /app/file HTTP/1.0", "Connection: keep-alive"],
        &["GET /app/file HTTP/1.1", "Connection: close"],
    ] {
        let (mut talk, output) = begun(head, None);
        assert!(
            !output.contains("Transfer-Encoding") && output.contains("\r\nConnection: close\r\n"),
            "{output}"
        );
        assert!(output.ends_with("\r\n\r\nfirst\n"), "{output}");
        talk.session.continue_reply(7, b"second\n");
        talk.arrive(b"");
        assert!(talk.world.output == b"second\n" && !talk.world.closed);
        talk.session.end_reply(7, ReplyEnd::Whole, &mut talk.world);
        talk.arrive(b"");
        assert!(talk.world.output == b"second\n" && talk.world.closed && talk.world.left == [7]);
    }
}

#[test]
fn a_reply_shorter_than_announced_ends_the_connection() {
    let (mut talk, head) = begun(&["GET /app/file HTTP/1.1"], Some(13));
    assert!(
        head.contains("\r\nContent-Length: 13\r\n") && !head.contains("Transfer-Encoding"),
        "{head}"
    );
    talk.session.continue_reply(7, b"second\nand more than announced");
    talk.session.end_reply(7, ReplyEnd::Whole, &mut talk.world);
    talk.arrive(b"");
    assert_eq!(take_output(&mut talk.world), b"second\n");
    assert!(!talk.world.closed && talk.world.left == [7]);
    assert_eq!(talk.ask(&["GET /hello.txt HTTP/1.1"]).status, 200);

    let (mut talk, _) = begun(&["GET /app/file HTTP/1.1"], Some(13));
    talk.session.continue_reply(7, b"second");
    talk.session.end_reply(7, ReplyEnd::Whole, &mut talk.world);
    talk.arrive(&request(&["GET /hello.txt HTTP/1.1"]).into_bytes());
    assert_eq!(take_output(&mut talk.world), b"second");
    assert!(
        talk.world.closed && talk.world.left == [7],
        "the client would read the next response as the rest of the body"
    );
}

#[test]
fn a_client_can_detect_a_cut_reply() {
    let (mut talk, _) = begun(&["GET /app/file HTTP/1.1"], None);
    talk.session.continue_reply(7, b"second");
    talk.session.end_reply(7, ReplyEnd::Cut, &mut talk.world);
    talk.arrive(b"");
    assert_eq!(take_output(&mut talk.world), b"6\r\nsecond\r\n", "the last chunk is missing");
    assert!(talk.world.closed && talk.world.left == [7]);

    let mut client = begun_in_two();
    client.session.end_reply(7, ReplyEnd::Cut, &mut client.world);
    client.arrive(b"");
    let last = client.frames().pop().expect("a frame");
    assert!(last.kind == FrameType::ResetStream && last.payload == 2u32.to_be_bytes());
    assert!(!client.world.closed && client.world.left == [7]);
}

#[test]
fn the_end_of_a_client_paced_reply_is_reported_once() {
    let (mut talk, _) = begun(&["GET /app/file HTTP/1.1"], None);
    talk.session.peer_closed(&mut talk.world);
    assert!(talk.world.closed && talk.world.left == [7]);

    let (mut talk, _) = begun(&["GET /app/file HTTP/1.1"], None);
    talk.world.room = 0;
    talk.session.continue_reply(7, PIECE);
    talk.arrive(b"");
    assert!(talk.world.deadline.is_some());
    talk.session.deadline_expired(&mut talk.world);
    assert!(talk.world.closed && talk.world.left == [7]);

    let mut talk = Talk::new();
    talk.arrive(request(&["HEAD /app/file HTTP/1.1"]).as_bytes());
    talk.reply(reply(None));
    assert!(talk.world.left == [7] && talk.world.wanted.is_empty());

    let mut client = begun_in_two();
    client.arrive(&frame(FrameType::ResetStream, 0, 1, &8u32.to_be_bytes()));
    assert_eq!(client.world.left, [7]);
}

#[test]
fn a_stopping_server_completes_client_paced_replies() {
    let (mut talk, _) = begun(&["GET /app/file HTTP/1.1"], None);
    talk.session.stopping(&mut talk.world);
    talk.arrive(b"");
    assert!(!talk.world.closed);
    talk.session.continue_reply(7, b"second");
    talk.session.end_reply(7, ReplyEnd::Whole, &mut talk.world);
    talk.arrive(b"");
    assert_eq!(take_output(&mut talk.world), b"6\r\nsecond\r\n0\r\n\r\n");
    assert!(talk.world.closed && talk.world.left == [7]);

    let mut client = begun_in_two();
    client.session.stopping(&mut client.world);
    client.session.continue_reply(7, b"second");
    client.session.end_reply(7, ReplyEnd::Whole, &mut client.world);
    client.arrive(b"");
    let frames = client.frames();
    assert!(frames.iter().any(|frame| frame.payload == b"second") && client.world.closed);
}

fn begun_in_two() -> Client {
    let mut client = Client::new();
    client.arrive(&get(1, "/app/file"));
    client.reply(reply(None));
    assert_eq!(client.frames().last().expect("a body").payload, b"first\n");
    assert_eq!(core::mem::take(&mut client.world.wanted), [7]);
    assert_eq!(client.world.deadline, None, "the client waits for the handler");
    client
}

#[test]
fn http2_asks_for_the_next_piece_when_one_is_sent() {
    let mut client = begun_in_two();
    let mut body = 0;
    for _ in 0..4 {
        client.session.continue_reply(7, PIECE);
        client.arrive(b"");
        while client.world.wanted.is_empty() {
            body += client.frames().iter().map(|frame| frame.payload.len()).sum::<usize>();
            assert!(client.session.held_bytes() == PIECE.len(), "the piece waits for a window");
            assert!(client.world.deadline.is_some());
            client.arrive(&frame(FrameType::WindowUpdate, 0, 1, &30_000u32.to_be_bytes()));
            client.arrive(&frame(FrameType::WindowUpdate, 0, 0, &30_000u32.to_be_bytes()));
        }
        body += client.frames().iter().map(|frame| frame.payload.len()).sum::<usize>();
        assert_eq!(
            (core::mem::take(&mut client.world.wanted), client.session.held_bytes()),
            (Vec::from([7]), 0)
        );
    }
    assert_eq!(body, 4 * PIECE.len());
    // Other requests are answered while the reply is open.
    assert_eq!(client.ask(3, "GET", "/hello.txt", &[]).status(), "200");
    client.session.end_reply(7, ReplyEnd::Whole, &mut client.world);
    client.arrive(b"");
    assert!(
        client
            .frames()
            .iter()
            .any(|frame| frame.stream == 1 && frame.flags & flags::END_STREAM != 0)
    );
    assert_eq!(client.world.left, [7]);
}
