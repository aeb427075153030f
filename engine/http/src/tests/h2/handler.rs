//! Requests for a handler over HTTP/2: their order, and the admission of bodies.

use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use http2::{ErrorCode, FrameType, PREFACE};
use machine::Micros;
use proptest::prelude::*;

use super::client::{
    Client, END_HEADERS, END_STREAM, ask, block, fields, frame, get, settings, window,
};
use crate::h2::{UNSENT_BYTES_MAX, WAITING_BYTES_MAX};
use crate::tests::world::{HELLO, ReceivedRequest};
use crate::{Announced, HttpWaitsFor, Reply, Status};

/// The longest body that the handler admits.
const LIMIT: usize = 32 * 1024;

fn post(stream: u32, more: &[(&str, &str)]) -> Vec<u8> {
    let fields: Vec<_> =
        fields("POST", "/app/form").into_iter().chain(more.iter().copied()).collect();
    frame(FrameType::Headers, END_HEADERS, stream, &block(&fields))
}

fn data(stream: u32, flags: u8, bytes: &[u8]) -> Vec<u8> {
    let parts = bytes.chunks(16_000).map(|part| frame(FrameType::Data, 0, stream, part));
    parts.chain([frame(FrameType::Data, flags, stream, b"")]).collect::<Vec<_>>().concat()
}

fn reset(stream: u32) -> Vec<u8> {
    frame(FrameType::ResetStream, 0, stream, &8_u32.to_be_bytes())
}

fn text(text: &str) -> Reply {
    Reply::text(Status::Ok, text.to_string())
}

fn lines(client: &Client) -> Vec<&str> {
    client.world.asked.iter().map(|received| received.line.as_str()).collect()
}

#[test]
fn an_http2_body_stays_unread_until_it_is_admitted() {
    let mut client = Client::new();
    client.arrive(
        &[
            post(1, &[("content-length", "11")]),
            get(3, "/hello.txt"),
            data(1, END_STREAM, b"certificate"),
            get(5, "/hello.txt"),
        ]
        .concat(),
    );
    assert_eq!(client.world.asked[0].body, Announced::Bytes(11));
    assert_eq!(client.session.waits_for(), HttpWaitsFor::Us);
    let answers = client.answers();
    assert_eq!((answers.len(), &answers[&3].body[..]), (1, HELLO));
    let left = client.kept.len();
    client.arrive(b"");
    assert_eq!(
        (client.kept.len(), client.world.bodies.len()),
        (left, 0),
        "the body stays in the caller's buffer"
    );
    client.admit(11);
    assert_eq!((client.world.bodies.concat(), client.world.admitted), (b"certificate".to_vec(), 0));
    assert_eq!(client.answers()[&5].body, HELLO);
    client.arrive(&get(7, "/hello.txt"));
    assert_eq!(client.answers()[&7].body, HELLO, "frames are read while the handler works");
    client.reply(text("taken\n"));
    let answer = client.answers().remove(&1).unwrap();
    assert_eq!((answer.status(), answer.is_over, answer.reset), ("200", true, None));
    assert_eq!(answer.body, b"taken\n");
    assert_eq!(client.session.waits_for(), HttpWaitsFor::Bytes);
    client.assert_lives();
}

#[test]
fn trailers_of_an_undecided_body_stay_unread() {
    let mut client = Client::new();
    client.arrive(
        &[
            post(1, &[]),
            frame(FrameType::Headers, END_STREAM | END_HEADERS, 1, &block(&[("x-sum", "1")])),
        ]
        .concat(),
    );
    assert!(client.frames().is_empty() && !client.kept.is_empty());
    client.admit(LIMIT);
    assert_eq!(client.world.bodies, [b""]);
    client.reply(text("none"));
    assert_eq!(client.answers()[&1].body, b"none");
    client.assert_lives();
}

#[test]
fn a_handler_gets_the_requests_of_streams_one_by_one() {
    let mut client = Client::new();
    client.arrive(
        &(0..100).flat_map(|nth| get(2 * nth + 1, &format!("/app/{nth}"))).collect::<Vec<_>>(),
    );
    for nth in 0..100 {
        assert_eq!(client.world.asked.len(), nth + 1);
        assert_eq!(lines(&client)[nth], format!("GET /app/{nth}? web.test"));
        client.reply(text(&format!("{nth}")));
        let answers = client.answers();
        assert_eq!(
            (answers.len(), answers[&(2 * nth as u32 + 1)].body.clone()),
            (1, format!("{nth}").into_bytes())
        );
    }
    client.assert_lives();
}

#[test]
fn other_requests_are_handled_while_a_body_arrives() {
    let mut client = Client::new();
    client.arrive(&post(1, &[]));
    client.admit(LIMIT);
    client.arrive(&[data(1, 0, b"fir"), get(3, "/app/page")].concat());
    client.arrive(&[post(5, &[]), data(1, END_STREAM, b"st")].concat());
    assert_eq!(lines(&client), ["POST /app/form? web.test", "GET /app/page? web.test"]);
    assert!(
        client.world.bodies.is_empty(),
        "a body waits while another request is with the handler"
    );
    client.reply(text("page"));
    assert_eq!(client.answers()[&3].body, b"page");
    assert_eq!(client.world.bodies, [b"first"]);
    client.reply(text("first"));
    assert_eq!(client.answers()[&1].body, b"first");
    client.admit(LIMIT);
    client.arrive(&data(5, END_STREAM, b"second"));
    client.reply(text("second"));
    assert_eq!(client.answers()[&5].body, b"second");
    assert_eq!((client.world.bodies.len(), client.world.admitted), (2, 0));
    client.assert_lives();
}

#[test]
fn concurrent_bodies_do_not_block_each_other() {
    let mut client = Client::new();
    client.arrive(
        &[post(1, &[]), post(3, &[]), data(3, 0, b"se"), data(1, END_STREAM, b"first")].concat(),
    );
    client.admit(LIMIT);
    assert_eq!(client.world.asked.len(), 2, "the next request is passed on while a body arrives");
    client.admit(LIMIT);
    client.arrive(&data(3, END_STREAM, b"cond"));
    assert_eq!(client.world.bodies, [b"first"]);
    client.reply(text("1"));
    client.reply(text("2"));
    assert_eq!(client.world.bodies, [b"first".to_vec(), b"second".to_vec()]);
    assert_eq!(
        client.answers().values().map(|answer| answer.body.clone()).collect::<Vec<_>>(),
        [b"1", b"2"]
    );
}

#[test]
fn a_refused_http2_body_gets_its_status_on_its_stream() {
    for (refused, expected) in [
        (Status::Unauthorized, "401"),
        (Status::Forbidden, "403"),
        (Status::TooManyRequests, "429"),
    ] {
        let mut client = Client::new();
        client.arrive(&post(1, &[]));
        client.reply(Reply::refusal(refused));
        let answer = client.answers().remove(&1).unwrap();
        assert_eq!((answer.status(), answer.reset), (expected, Some(ErrorCode::NoError as u32)));
        client.arrive(&data(1, END_STREAM, b"certificate"));
        assert!(client.world.bodies.is_empty());
        client.assert_lives();
    }
}

#[test]
fn an_http2_body_of_a_wrong_length_is_rejected() {
    let mut client = Client::new();
    let most = vec![b'x'; LIMIT];
    client.arrive(&post(1, &[]));
    client.admit(LIMIT);
    client.arrive(&data(1, END_STREAM, &most));
    assert_eq!(client.world.bodies, [&most[..]]);
    client.reply(Reply::refusal(Status::UnprocessableContent));
    assert_eq!(client.answers()[&1].status(), "422");
    client.arrive(&post(3, &[]));
    client.admit(LIMIT);
    client.arrive(&data(3, END_STREAM, &[&most[..], b"x"].concat()));
    let words = format!("/app/form takes {LIMIT} bytes");
    let refused = &client.answers()[&3];
    assert_eq!((refused.status(), &*refused.body), ("413", words.as_bytes()));
    client.arrive(&post(5, &[("content-length", "40000")]));
    client.admit(LIMIT);
    let refused = &client.answers()[&5];
    assert_eq!((refused.status(), &*refused.body), ("413", words.as_bytes()));
    client.arrive(&post(7, &[("content-length", "12")]));
    client.admit(LIMIT);
    client.arrive(&data(7, END_STREAM, b"certificate"));
    assert_eq!(client.answers()[&7].reset, Some(ErrorCode::ProtocolError as u32));
    assert_eq!((client.world.bodies.len(), client.world.admitted), (1, 0));
    client.assert_lives();
}

#[test]
fn windows_open_again_while_a_large_body_arrives() {
    const LARGE: usize = 1 << 20;
    let large: Vec<u8> = (0..LARGE).map(|at| (at / 7) as u8).collect();
    for length in [Some(LARGE.to_string()), None] {
        let mut client = Client::new();
        let more: Vec<_> =
            length.iter().map(|length| ("content-length", length.as_str())).collect();
        client.arrive(&post(1, &more));
        client.admit(LARGE);
        let (mut own, mut all, mut times) = (65_535, 65_535, 0);
        for part in large.chunks(10_000) {
            // Padding also counts in the windows.
            let padded = [&[200][..], part, &[0; 200]].concat();
            assert!(own >= padded.len() as i64 && all >= padded.len() as i64, "{own} {all}");
            (own, all) = (own - padded.len() as i64, all - padded.len() as i64);
            client.arrive(&frame(FrameType::Data, 0x8, 1, &padded));
            times += usize::from(client.world.deadline.take() == Some(Micros::from_secs(30)));
            for frame in client.frames() {
                assert_eq!(frame.kind, FrameType::WindowUpdate);
                let increment = i64::from(u32::from_be_bytes(frame.payload.try_into().unwrap()));
                *(if frame.stream == 1 { &mut own } else { &mut all }) += increment;
            }
        }
        client.arrive(&data(1, END_STREAM, b""));
        assert!((25..=35).contains(&times), "progress restarts the deadline: {times}");
        assert!(client.world.bodies[0] == large && client.world.bodies[0].capacity() <= LARGE);
        client.reply(text("all"));
        assert_eq!(client.answers()[&1].body, b"all");
    }
}

#[test]
fn a_reply_to_a_reset_stream_is_dropped() {
    let mut client = Client::new();
    client.arrive(&post(1, &[]));
    client.arrive(&[get(3, "/app/page"), reset(1)].concat());
    assert_eq!(client.world.asked.len(), 1, "the handler still has the first request");
    client.admit(LIMIT);
    assert_eq!((client.world.admitted, lines(&client)[1]), (0, "GET /app/page? web.test"));
    client.arrive(&[get(5, "/app/page"), reset(3)].concat());
    client.reply(text("the reset stream's"));
    assert!(client.answers().is_empty());
    client.reply(text("5"));
    assert_eq!(client.answers()[&5].body, b"5");
    // The client resets streams while a body arrives, and while a body waits for its turn.
    client.arrive(&post(7, &[]));
    client.admit(LIMIT);
    client.arrive(&[data(7, 0, b"x"), reset(7)].concat());
    assert_eq!(client.world.admitted, 0);
    client.arrive(&post(9, &[]));
    client.admit(LIMIT);
    client.arrive(&get(11, "/app/page"));
    client.arrive(&data(9, END_STREAM, b"x"));
    assert_eq!(client.world.admitted, LIMIT);
    client.arrive(&reset(9));
    client.reply(text("11"));
    assert_eq!(
        (client.answers().len(), client.world.admitted, client.world.bodies.len()),
        (1, 0, 0)
    );
    // The client resets a stream while its body is with the handler.
    client.arrive(&post(13, &[]));
    client.admit(LIMIT);
    client.arrive(&data(13, END_STREAM, b"handed over"));
    client.arrive(&reset(13));
    assert_eq!(client.world.bodies, [b"handed over"]);
    client.arrive(&post(15, &[]));
    client.reply(text("the reset stream's"));
    client.admit(LIMIT);
    client.arrive(&data(15, 0, b"x"));
    assert!(client.answers().is_empty());
    client.session.peer_closed(&mut client.world);
    assert_eq!(client.world.admitted, 0);
    client.session.replied(text("the reset stream's"), &mut client.world);
    assert!(client.frames().is_empty());
}

#[test]
fn an_http2_request_reaches_its_handler_as_over_http1() {
    let mut client = Client::new();
    let more = [("cookie", "a=1"), ("user-agent", "test/1"), ("cookie", "b=2"), ("origin", "null")];
    let all: Vec<_> = fields("GET", "/app/./x%20y?z").into_iter().chain(more).collect();
    client.arrive(&frame(FrameType::Headers, END_STREAM | END_HEADERS, 1, &block(&all)));
    let passed = [("cookie", "a=1; b=2"), ("origin", "null"), ("user-agent", "test/1")];
    let fields = passed.map(|(name, value)| (name, value.to_string())).to_vec();
    let line = "GET /app/x y?z web.test".to_string();
    assert_eq!(client.world.asked, [ReceivedRequest { line, fields, body: Announced::Nothing }]);
    client.reply(text(""));
    client.answers();
    let answer = client.ask(3, "POST", "/app/page", &[]);
    assert_eq!((answer.status(), answer.field("allow")), ("405", Some("GET, HEAD")));
    let twice = client.ask(5, "GET", "/app/page", &[("origin", "a"), ("origin", "a")]);
    assert_eq!((twice.status(), client.world.asked.len()), ("400", 1));
}

#[test]
fn waiting_requests_have_a_memory_limit() {
    let mut client = Client::new();
    let long = "x".repeat(3000);
    let question = |stream| {
        let all: Vec<_> =
            fields("GET", "/app/page").into_iter().chain([("cookie", long.as_str())]).collect();
        frame(FrameType::Headers, END_STREAM | END_HEADERS, stream, &block(&all))
    };
    client.arrive(&(0..100).flat_map(|nth| question(2 * nth + 1)).collect::<Vec<_>>());
    let refused = client.answers();
    let waiting = 100 - refused.len();
    assert!((15..=WAITING_BYTES_MAX / 3000).contains(&waiting), "{waiting}");
    assert!(refused.values().all(|answer| answer.status() == "503"));
    for _ in 0..waiting {
        client.reply(text("x"));
    }
    assert_eq!((client.answers().len(), client.world.asked.len()), (waiting, waiting));
    client.assert_lives();
}

#[test]
fn no_request_is_passed_on_while_too_much_is_unsent() {
    let mut client = Client::with(&[(4, 0)]);
    client.arrive(&[get(1, "/app/1"), get(3, "/app/2"), get(5, "/app/3")].concat());
    let half = || Reply::new(Status::Ok, "a/b", vec![b'x'; UNSENT_BYTES_MAX / 2 + 1]);
    client.reply(half());
    assert_eq!(client.world.asked.len(), 2, "half of the limit may be unsent");
    client.reply(half());
    assert_eq!(client.world.asked.len(), 2);
    client.frames();
    client.arrive(
        &[post(7, &[]), data(7, END_STREAM, b"the window update comes after this body")].concat(),
    );
    assert_eq!(client.answers()[&7].reset, Some(ErrorCode::RefusedStream as u32));
    assert!(!client.world.closed && client.kept.is_empty());
    client.arrive(&[window(0, 1 << 24), window(1, 1 << 24)].concat());
    while client.session.waits_for() == HttpWaitsFor::SendRoom {
        client.world.room += 1 << 20;
        client.arrive(b"");
    }
    assert_eq!(client.world.asked.len(), 3, "the third request has its turn");
}

#[test]
fn a_client_that_waits_for_a_handler_has_no_deadline() {
    let mut client = Client::new();
    client.world.deadline = Some(Micros(1));
    client.arrive(&get(1, "/app/page"));
    assert_eq!(client.world.deadline, None);
    client.arrive(&frame(FrameType::Ping, 0, 0, &[0; 8]));
    assert_eq!(client.world.deadline, None);
    client.reply(text(""));
    assert_eq!(client.world.deadline, Some(Micros::from_secs(60)));
    client.arrive(&post(3, &[]));
    client.admit(LIMIT);
    assert_eq!(client.world.deadline.take(), Some(Micros::from_secs(30)));
    for _ in 0..20 {
        client.arrive(&frame(FrameType::Data, 0, 3, b"x"));
    }
    assert_eq!(client.world.deadline, None, "slow bytes do not extend the deadline");
    client.frames();
    client.session.deadline_expired(&mut client.world);
    client.assert_ended(ErrorCode::NoError, "the body does not arrive");
    assert_eq!(client.world.admitted, 0);
}

#[test]
fn a_stopping_server_answers_open_http2_requests() {
    let mut client = Client::new();
    client.arrive(&[get(1, "/app/1"), get(3, "/app/2")].concat());
    client.session.stopping(&mut client.world);
    client.frames();
    client.reply(text("1"));
    assert!(!client.world.closed);
    assert_eq!(client.answers()[&1].body, b"1");
    client.reply(text("2"));
    assert!(client.world.closed);
    let frames = client.frames();
    assert_eq!(frames.iter().find(|frame| frame.kind == FrameType::Data).unwrap().payload, b"2");
}

#[test]
fn rapid_resets_of_handler_requests_end_the_connection() {
    let mut client = Client::new();
    let mut times = 0;
    while !client.world.closed {
        client.arrive(&[ask(2 * times + 1, "GET", "/app/page"), reset(2 * times + 1)].concat());
        client.world.room = 1 << 20;
        times += 1;
        assert!(times < 1000);
    }
    assert!(client.world.asked.len() <= 1, "the handler has one request at a time");
}

/// A request for a file of the site, for a page of a handler, or with a form. `parts`: the number
/// of DATA frames of the form. `is_announced`: the request announces the form's length.
#[derive(Clone, Copy, Debug)]
enum TestRequest {
    File,
    Page,
    Form { parts: usize, is_announced: bool },
}

/// Sends all `requests`. `picks` decides the order of the DATA frames, and the bytes arrive in
/// pieces of `lengths` bytes. The handler admits bodies and replies as soon as it may. Returns the
/// responses by stream, and the bodies.
fn all_replies(
    requests: &[TestRequest],
    picks: &[usize],
    lengths: &[usize],
    room: usize,
) -> (BTreeMap<u32, Vec<u8>>, Vec<Vec<u8>>) {
    let mut bytes = [PREFACE.as_slice(), &settings(&[])].concat();
    let mut open: Vec<(u32, usize)> = Vec::new();
    let mut picks = picks.iter().copied();
    let some_data = |open: &mut Vec<(u32, usize)>, bytes: &mut Vec<u8>, pick: usize| {
        let place = pick % open.len();
        let (stream, left) = open[place];
        open[place].1 -= 1;
        let flags = if left == 1 { END_STREAM } else { 0 };
        bytes.extend(frame(FrameType::Data, flags, stream, &[stream as u8; 300]));
        open.retain(|(_, left)| *left > 0);
    };
    for (nth, request) in requests.iter().enumerate() {
        let stream = 2 * nth as u32 + 1;
        bytes.extend(match *request {
            TestRequest::File => get(stream, "/hello.txt"),
            TestRequest::Page => get(stream, "/app/page"),
            TestRequest::Form { parts, is_announced } => {
                open.push((stream, parts));
                let length = (300 * parts).to_string();
                let more = [("content-length", length.as_str())];
                post(stream, if is_announced { &more } else { &[] })
            }
        });
        if let Some(pick) = picks.next().filter(|_| !open.is_empty()) {
            some_data(&mut open, &mut bytes, pick);
        }
    }
    while !open.is_empty() {
        some_data(&mut open, &mut bytes, picks.next().unwrap_or(0));
    }
    let mut client = Client::silent();
    let (mut rest, mut answered, mut bodies, mut output) = (bytes.as_slice(), 0, 0, Vec::new());
    for length in lengths.iter().copied().chain([usize::MAX]) {
        let (piece, after) = rest.split_at(length.min(rest.len()));
        client.world.room = room;
        client.arrive(piece);
        rest = after;
        for _ in 0..500 {
            output.append(&mut client.world.output);
            client.world.room = room;
            client.arrive(b"");
            if client.world.asked.len() == answered {
                continue;
            }
            answered += 1;
            let is_form = client.world.asked[answered - 1].line.starts_with("POST");
            // A form is passed to the handler again with its body.
            let has_body = core::mem::replace(&mut bodies, client.world.bodies.len())
                < client.world.bodies.len();
            if is_form && !has_body { client.admit(2000) } else { client.reply(text("replied")) }
        }
    }
    assert!(!client.world.closed && client.kept.is_empty() && client.world.admitted == 0);
    client.world.output = output;
    let answers = client.answers();
    assert!(answers.values().all(|answer| answer.is_over && answer.reset.is_none()));
    let mut bodies = client.world.bodies;
    bodies.sort();
    (answers.into_iter().map(|(stream, answer)| (stream, answer.body)).collect(), bodies)
}

fn request() -> impl Strategy<Value = TestRequest> {
    prop_oneof![
        Just(TestRequest::File),
        Just(TestRequest::Page),
        (1usize..6, any::<bool>())
            .prop_map(|(parts, is_announced)| TestRequest::Form { parts, is_announced }),
    ]
}

proptest! {
    #[test]
    fn interleaved_requests_and_bodies_get_their_own_replies(
        requests in prop::collection::vec(request(), 1..8), picks in prop::collection::vec(0usize..8, 0..40),
        lengths in prop::collection::vec(0usize..400, 0..12), room in 3500usize..20_000,
    ) {
        let (answers, bodies) = all_replies(&requests, &picks, &lengths, room);
        let mut expected_bodies: Vec<Vec<u8>> = Vec::new();
        for (nth, request) in requests.iter().enumerate() {
            let stream = 2 * nth as u32 + 1;
            let expected: &[u8] = if let TestRequest::File = request { HELLO } else { b"replied" };
            let answer: Option<String> = answers.get(&stream).map(|body| String::from_utf8_lossy(body).into_owned());
            prop_assert_eq!(answer.as_deref().map(str::as_bytes), Some(expected), "{}: {:?}", stream, request);
            if let TestRequest::Form { parts, .. } = request {
                expected_bodies.push(vec![stream as u8; 300 * parts]);
            }
        }
        expected_bodies.sort();
        prop_assert_eq!(bodies, expected_bodies);
    }
}

#[test]
fn http2_replies_that_are_known_at_once_are_sent_at_once() {
    let mut client = Client::new();
    client.world.known_reply = Some("at once".to_string());
    client.arrive(
        &[
            get(1, "/app/x"),
            post(3, &[("content-length", "11")]),
            data(3, END_STREAM, b"certificate"),
            get(5, "/app/y"),
        ]
        .concat(),
    );
    let answers = client.answers();
    assert_eq!(answers.keys().copied().collect::<Vec<_>>(), [1, 3, 5]);
    assert!(answers.values().all(|answer| answer.body == b"at once"), "{answers:?}");
    assert_eq!(client.session.waits_for(), HttpWaitsFor::Bytes);
}
