//! Bodies that a handler takes in pieces. The handler holds one piece at a time, and the unread
//! rest takes bounded memory.

use std::format;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use http2::FrameType;

use super::h2::client::{Client, END_HEADERS, END_STREAM, block, fields, frame, get};
use super::world::{HELLO, Talk, World, request};
use crate::upload::PIECE_BYTES;
use crate::{BodyAdmission, HttpWaitsFor, PIECE_BYTES_MAX, Reply, Status};

/// The number of the body, its maximum length, and the memory that is reserved for it.
const ADMISSION: BodyAdmission =
    BodyAdmission { bytes: 1 << 20, memory: 4 * PIECE_BYTES, number: Some(7) };

/// The number of bytes that a client may send on a stream without a window update.
const WINDOW: usize = 65_535;

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 % 251) as u8).collect()
}

fn in_chunks(body: &[u8]) -> Vec<u8> {
    let chunks = body
        .chunks(1000)
        .flat_map(|chunk| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    chunks.chain(*b"0\r\n\r\n").collect()
}

fn together(world: &World) -> Vec<u8> {
    world
        .pieces
        .iter()
        .flat_map(|(number, piece)| {
            assert_eq!(*number, 7);
            piece.clone()
        })
        .collect()
}

fn yes() -> Reply {
    Reply::text(Status::Ok, "yes".to_string())
}

#[test]
fn a_body_in_pieces_is_passed_on_one_piece_at_a_time() {
    let whole = body(3 * PIECE_BYTES + 100);
    let ways = [
        (format!("Content-Length: {}", whole.len()), whole.clone()),
        ("Transfer-Encoding: chunked".into(), in_chunks(&whole)),
    ];
    for (way, sent) in ways {
        let mut talk = Talk::new();
        talk.arrive(request(&["POST /app/form HTTP/1.1", &way]).as_bytes());
        talk.admit_as(ADMISSION);
        talk.arrive(&sent);
        talk.arrive(request(&["GET /hello.txt HTTP/1.1"]).as_bytes());
        let mut pieces = 0;
        while talk.world.ended.is_empty() {
            pieces += 1;
            assert_eq!(
                (talk.world.pieces.len(), talk.session.waits_for()),
                (pieces, HttpWaitsFor::Us),
                "{way}"
            );
            assert!(talk.world.deadline.is_none(), "the client waits for the handler");
            talk.arrive(b"");
            assert_eq!(talk.world.pieces.len(), pieces, "the handler holds one piece at a time");
            talk.take_piece(8);
            assert_eq!(talk.world.pieces.len(), pieces, "the number belongs to another body");
            talk.take_piece(7);
        }
        assert!(
            talk.world.pieces.iter().all(|(_, piece)| piece.len() <= PIECE_BYTES_MAX)
                && pieces >= 3
        );
        assert!(together(&talk.world) == whole && talk.world.admitted == 0, "{way}");
        talk.reply(yes());
        let responses = talk.responses(|_| false);
        assert_eq!((responses[0].text(), responses[1].body.as_slice()), ("yes", HELLO), "{way}");
        assert!(talk.world.left.is_empty());
    }
}

#[test]
fn an_incomplete_body_in_pieces_is_given_up() {
    let head = request(&["POST /app/form HTTP/1.1", "Content-Length: 100000"]);
    let begun = |sent: usize| {
        let mut talk = Talk::new();
        talk.arrive(head.as_bytes());
        talk.admit_as(ADMISSION);
        talk.arrive(&body(sent));
        talk
    };
    for sent in [0, 10, PIECE_BYTES + 10] {
        let mut talk = begun(sent);
        talk.session.peer_closed(&mut talk.world);
        assert_eq!(
            (talk.world.left.as_slice(), talk.world.admitted, talk.world.ended.len()),
            (&[7][..], 0, 0)
        );
        let mut talk = begun(sent);
        if sent > PIECE_BYTES {
            talk.take_piece(7);
        }
        talk.session.deadline_expired(&mut talk.world);
        assert_eq!((talk.world.left.as_slice(), talk.world.admitted), (&[7][..], 0));
        assert_eq!(talk.responses(|_| false)[0].status, 408);
    }
    // A chunked body has no announced length.
    let mut talk = Talk::new();
    talk.arrive(request(&["POST /app/form HTTP/1.1", "Transfer-Encoding: chunked"]).as_bytes());
    talk.admit_as(BodyAdmission { bytes: 50_000, ..ADMISSION });
    talk.arrive(&in_chunks(&body(60_000)));
    talk.take_piece(7);
    assert_eq!(
        (talk.world.left.as_slice(), talk.world.admitted, talk.world.ended.len()),
        (&[7][..], 0, 0)
    );
    let refused = &talk.responses(|_| false)[0];
    assert_eq!((refused.status, refused.text()), (413, "/app/form takes 50000 bytes"));
}

fn post(stream: u32, length: Option<usize>) -> Vec<u8> {
    let length = length.map(|length| length.to_string());
    let more = length.iter().map(|length| ("content-length", length.as_str()));
    let fields: Vec<_> = fields("POST", "/app/form").into_iter().chain(more).collect();
    frame(FrameType::Headers, END_HEADERS, stream, &block(&fields))
}

/// The number of bytes in window updates for `stream` since the last call.
fn opened(client: &mut Client, stream: u32) -> usize {
    let updates = client
        .frames()
        .into_iter()
        .filter(|frame| frame.kind == FrameType::WindowUpdate && frame.stream == stream);
    updates.map(|frame| u32::from_be_bytes(*frame.payload.first_chunk().unwrap()) as usize).sum()
}

#[test]
fn a_stream_window_opens_only_for_pieces_that_were_taken() {
    for padding in [0, 1, 100] {
        let whole = body(10 * PIECE_BYTES + 100);
        let mut client = Client::new();
        client.arrive(&post(1, Some(whole.len())));
        client.admit_as(ADMISSION);
        let (mut window, mut rest, mut taken) = (WINDOW, whole.as_slice(), 0);
        let overhead = if padding > 0 { padding + 1 } else { 0 };
        while !rest.is_empty() {
            let count = rest.len().min(window.saturating_sub(overhead)).min(10_000);
            if count == 0 {
                let given = client.world.pieces.len();
                assert!(
                    given > taken,
                    "the window is shut only if the handler has a piece to take"
                );
                assert_eq!(client.session.waits_for(), HttpWaitsFor::Bytes);
                client.arrive(&get(3 + 2 * taken as u32, "/hello.txt"));
                assert_eq!(client.answers()[&(3 + 2 * taken as u32)].body, HELLO);
                taken += 1;
                client.take_piece(7);
            } else {
                let (part, behind) = rest.split_at(count);
                let mut payload = part.to_vec();
                if padding > 0 {
                    payload.insert(0, padding as u8);
                    payload.extend(vec![0; padding]);
                }
                client.arrive(&frame(
                    FrameType::Data,
                    if padding > 0 { 8 } else { 0 },
                    1,
                    &payload,
                ));
                (rest, window) = (behind, window - count - overhead);
            }
            window += opened(&mut client, 1);
            assert!(window <= WINDOW);
        }
        assert!(client.world.pieces.iter().all(|(_, piece)| piece.len() <= PIECE_BYTES_MAX));
        client.arrive(&frame(FrameType::Data, END_STREAM, 1, b""));
        while client.world.ended.is_empty() {
            client.take_piece(7);
        }
        assert!(together(&client.world) == whole && client.world.admitted == 0);
        client.reply(yes());
        assert_eq!(client.answers()[&1].body, b"yes");
        assert!(client.world.left.is_empty());
        client.assert_lives();
    }
}

#[test]
fn a_body_beyond_its_stream_window_is_answered_413() {
    let mut client = Client::new();
    client.arrive(&post(1, None));
    client.admit_as(ADMISSION);
    for count in 0..20 {
        client.arrive(&frame(FrameType::Data, 0, 1, &body(10_000)));
        if count == 5 {
            assert!(opened(&mut client, 1) < WINDOW);
        }
    }
    assert_eq!(
        (client.world.left.as_slice(), client.world.admitted, client.world.pieces.len()),
        (&[7][..], 0, 1)
    );
    assert_eq!(client.answers()[&1].status(), "413");
}

#[test]
fn a_reset_gives_up_only_the_body_of_its_own_stream() {
    let mut client = Client::new();
    client.arrive(&post(1, None));
    client.admit_as(ADMISSION);
    client.arrive(&[post(3, Some(5)), frame(FrameType::Data, 0, 1, &body(10))].concat());
    client.admit_as(BodyAdmission { number: Some(8), ..ADMISSION });
    client.arrive(&frame(FrameType::ResetStream, 0, 1, &8_u32.to_be_bytes()));
    assert_eq!(client.world.left, [7]);
    client.arrive(&frame(FrameType::Data, END_STREAM, 3, b"other"));
    assert_eq!(
        (client.world.pieces.as_slice(), client.world.ended.as_slice()),
        (&[(8, b"other".to_vec())][..], &[8][..])
    );
    client.reply(yes());
    assert_eq!((client.answers()[&3].body.as_slice(), client.world.admitted), (&b"yes"[..], 0));
    client.assert_lives();
}
