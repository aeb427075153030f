//! The rights of administrators to replace certificates, over HTTP/1.1 and HTTP/2.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::sync::Arc;

use http2::{FRAME_HEAD_BYTES, FrameHead, FrameType, PREFACE, flags};
use machine::Micros;
use rustls::ClientConfig;
use server::CERTIFICATE_PATH;
use simulated::MemoryDisk;

use super::certificates::{
    ADA, GRACE, GUESS, NAME, client, configuration, other, send_part, serving,
};
use super::room::pages::site;
use super::room::tls_stream::{TlsStream, Trust, client_of_all};
use super::room::{DISK_BYTES, Room, usual_sizes};
use crate::CORES;

/// Status, header fields and text of the next response. `has_body`: false for HEAD.
fn answer(
    room: &mut Room,
    tls_stream: &mut TlsStream,
    has_body: bool,
) -> (u16, Vec<String>, String) {
    let status = room.line_tls(tls_stream);
    let mut fields = Vec::new();
    loop {
        match room.line_tls(tls_stream) {
            line if line.is_empty() => break,
            line => fields.push(line),
        }
    }
    let length =
        fields.iter().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
    let length = if has_body { length.parse().expect("a number") } else { 0 };
    room.until_tls(tls_stream, "the text is there", |tls_stream| tls_stream.heard.len() >= length);
    let text = tls_stream.heard.drain(..length).collect();
    (
        status["HTTP/1.1 ".len()..][..3].parse().expect("a status"),
        fields,
        String::from_utf8(text).expect("the bytes are UTF-8"),
    )
}

fn asked(method: &str, path: &str, fields: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nHost: {NAME}\r\n{fields}\r\n").into_bytes()
}

#[test]
fn certificate_requests_need_a_login_over_tls() {
    let first = Trust::new(NAME);
    let mut room = serving(30, &first);
    let mut tls_stream = room.connect_tls(443, &client(&[&first]));
    room.complete_handshake(&mut tls_stream);
    let before = room.machine.now;
    for credentials in
        ["X: y", "Authorization: Bearer YWRhOmxvdmVsYWNl", "Authorization: Basic YWRh"]
    {
        for method in ["GET", "PUT"] {
            let request = asked(method, CERTIFICATE_PATH, &format!("{credentials}\r\n"));
            room.send_tls(&mut tls_stream, &request);
            let (status, fields, _) = answer(&mut room, &mut tls_stream, true);
            assert_eq!(status, 401, "{credentials}");
            let challenge = "WWW-Authenticate: Basic realm=\"Barepost\", charset=\"UTF-8\"";
            assert!(fields.iter().any(|field| field == challenge), "{fields:?}");
        }
    }
    assert_eq!(
        room.machine.now.since(before).as_secs(),
        0,
        "a refusal without a login takes no time"
    );
    let credentials = format!("Authorization: Basic {ADA}\r\n");
    room.send_tls(&mut tls_stream, &asked("GET", CERTIFICATE_PATH, &credentials.repeat(2)));
    assert_eq!(answer(&mut room, &mut tls_stream, true).0, 400);
    room.finish_tls(tls_stream);
    let https_only = format!("{}[web]\nhttps_only = true\n", configuration());
    for (more, expected) in
        [(configuration(), "403 Forbidden"), (https_only, "308 Permanent Redirect")]
    {
        let (disk, certificates) = (MemoryDisk::blank(DISK_BYTES), vec![first.certificate.clone()]);
        let mut room = Room::certified(31, disk, usual_sizes(), &more, site(1000), certificates);
        room.until("the engine serves", |room| room.console_says("serving"));
        let mut talk = room.connect(80);
        let request =
            asked("PUT", CERTIFICATE_PATH, &format!("{credentials}Content-Length: 1\r\n"));
        room.send(&talk, &[&request[..], b"x"].concat());
        assert_eq!(room.line(&mut talk), format!("HTTP/1.1 {expected}"));
        room.part(talk);
    }
}

#[test]
fn administrators_can_list_and_replace_certificates_only() {
    let first = Trust::new(NAME);
    let mut room = serving(32, &first);
    let mut tls_stream = room.connect_tls(443, &client(&[&first]));
    let credentials = format!("Authorization: Basic {ADA}\r\n");
    let mut lengths = Vec::new();
    for method in ["GET", "HEAD"] {
        room.send_tls(&mut tls_stream, &asked(method, CERTIFICATE_PATH, &credentials));
        let (status, fields, text) = answer(&mut room, &mut tls_stream, method == "GET");
        assert_eq!((status, text.starts_with(&format!("names: {NAME}\n"))), (200, method == "GET"));
        assert!(fields.iter().any(|field| field == "Cache-Control: no-store"));
        lengths.extend(fields.into_iter().filter(|field| field.starts_with("Content-Length")));
    }
    assert_eq!(lengths[0], lengths[1]);
    for method in ["POST", "DELETE", "OPTIONS"] {
        room.send_tls(&mut tls_stream, &asked(method, CERTIFICATE_PATH, &credentials));
        let (status, fields, _) = answer(&mut room, &mut tls_stream, true);
        assert_eq!(status, 405);
        assert!(fields.iter().any(|field| field == "Allow: GET, HEAD, PUT"), "{fields:?}");
    }
    room.finish_tls(tls_stream);
}

#[test]
fn non_administrators_are_refused_and_stay_connected() {
    let first = Trust::new(NAME);
    let mut room = serving(33, &first);
    for (credentials, expected) in [(GRACE, 403), (GUESS, 401)] {
        let mut tls_stream = room.connect_tls(443, &client(&[&first]));
        send_part(&mut room, &mut tls_stream, credentials, b"certificate", 11);
        let (status, fields, _) = answer(&mut room, &mut tls_stream, true);
        assert_eq!(
            (status, fields.iter().any(|field| field.starts_with("WWW-Authenticate"))),
            (expected, expected == 401)
        );
        room.send_tls(&mut tls_stream, &asked("GET", "/", ""));
        assert_eq!(answer(&mut room, &mut tls_stream, true).2, "Index");
        room.finish_tls(tls_stream);
    }
    // Each core checks four logins at a time.
    let mut guesses = Vec::new();
    for _ in 0..=4 * usize::from(CORES) {
        let mut tls_stream = room.connect_tls(443, &client(&[&first]));
        room.complete_handshake(&mut tls_stream);
        guesses.push(tls_stream);
    }
    for tls_stream in &mut guesses {
        room.send_tls(
            tls_stream,
            &asked("GET", CERTIFICATE_PATH, &format!("Authorization: Basic {GUESS}\r\n")),
        );
    }
    let statuses: Vec<u16> =
        guesses.iter_mut().map(|tls_stream| answer(&mut room, tls_stream, true).0).collect();
    assert!(
        statuses.contains(&429) && statuses.iter().all(|status| [401, 429].contains(status)),
        "{statuses:?}"
    );
    for tls_stream in guesses {
        room.close_tls(tls_stream);
    }
}

#[test]
fn certificate_uploads_use_bounded_memory_per_core() {
    let (first, second) = (Trust::new(NAME), other(8, -1..90));
    let mut room = serving(34, &first);
    let both = client(&[&first, &second]);
    // Each core accepts eight uploads at a time. These clients are slow.
    let begun = |room: &mut Room| -> Vec<TlsStream> {
        let sender = |_| {
            let mut tls_stream = room.connect_tls(443, &both);
            room.complete_handshake(&mut tls_stream);
            send_part(room, &mut tls_stream, ADA, b"-----BEGIN", 11);
            tls_stream
        };
        (0..=8 * usize::from(CORES)).map(sender).collect()
    };
    let mut senders = begun(&mut room);
    room.pass(Micros::from_secs(1));
    let mut statuses = Vec::new();
    for tls_stream in &mut senders {
        assert!(tls_stream.heard.is_empty());
        room.send_tls(tls_stream, b"-");
        let (status, _, text) = answer(&mut room, tls_stream, true);
        assert_eq!(
            text == "Too many certificate uploads at the same time. Try again in a moment.\n",
            status == 503
        );
        statuses.push(status);
    }
    assert!(statuses.contains(&503) && statuses.contains(&422), "{statuses:?}");
    for tls_stream in senders {
        room.close_tls(tls_stream);
    }
    for tls_stream in begun(&mut room) {
        room.abort(&tls_stream.talk);
    }
    room.until_nothing_is_in_use();
    for _ in 0..20 {
        let mut tls_stream = room.connect_tls(443, &both);
        send_part(&mut room, &mut tls_stream, ADA, &second.pem, second.pem.len());
        assert_eq!(answer(&mut room, &mut tls_stream, true).0, 200, "the resources are free again");
        room.close_tls(tls_stream);
    }
}

fn frame(kind: FrameType, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&FrameHead { length: payload.len() as u32, kind, flags, stream }.bytes()[..], payload].concat()
}

/// The head of a request over HTTP/2 with these credentials.
fn head(stream: u32, method: &str, credentials: &str, flags: u8) -> Vec<u8> {
    let mut block = vec![0x87, 0x02, method.len() as u8];
    block.extend(method.as_bytes());
    let basic = format!("Basic {credentials}");
    for (index, value) in
        [(&[0x01][..], NAME), (&[0x04], CERTIFICATE_PATH), (&[0x0f, 23 - 15], &basic)]
    {
        block.extend(index);
        block.push(value.len() as u8);
        block.extend(value.as_bytes());
    }
    frame(FrameType::Headers, flags | flags::END_HEADERS, stream, &block)
}

/// The responses on these streams: the first byte of the header block, and the text.
fn answers<const COUNT: usize>(
    room: &mut Room,
    tls_stream: &mut TlsStream,
    streams: [u32; COUNT],
) -> [(u8, String); COUNT] {
    let mut found = streams.map(|_| (0, String::new()));
    let mut left = COUNT;
    while left > 0 {
        room.until_tls(tls_stream, "a frame", |tls_stream| {
            let length = FrameHead::parse(&tls_stream.heard).map(|head| head.length as usize);
            length.is_some_and(|length| tls_stream.heard.len() >= FRAME_HEAD_BYTES + length)
        });
        let head = FrameHead::parse(&tls_stream.heard).expect("a frame has arrived");
        let bytes: Vec<u8> =
            tls_stream.heard.drain(..FRAME_HEAD_BYTES + head.length as usize).collect();
        let payload = &bytes[FRAME_HEAD_BYTES..];
        let Some(place) = streams.iter().position(|stream| *stream == head.stream) else {
            continue;
        };
        match head.kind {
            FrameType::Headers => found[place].0 = payload[0],
            FrameType::Data => {
                found[place].1 += std::str::from_utf8(payload).expect("the bytes are UTF-8")
            }
            _ => {}
        }
        left -= usize::from(
            matches!(head.kind, FrameType::Headers | FrameType::Data)
                && head.has(flags::END_STREAM),
        );
    }
    found
}

#[test]
fn certificates_are_listed_and_replaced_over_http_2() {
    let (first, second) = (Trust::new(NAME), other(8, -1..90));
    let mut room = serving(35, &first);
    let two: Arc<ClientConfig> = Arc::new(client_of_all(&[&first, &second], &["h2"]));
    let mut tls_stream = room.connect_tls(443, &two);
    let put = [head(3, "PUT", ADA, 0), frame(FrameType::Data, flags::END_STREAM, 3, &second.pem)]
        .concat();
    let requests = [
        PREFACE.as_slice(),
        &frame(FrameType::Settings, 0, 0, &[]),
        &head(1, "GET", ADA, flags::END_STREAM),
        &put,
        &head(5, "GET", ADA, flags::END_STREAM),
        &head(7, "GET", GRACE, flags::END_STREAM),
    ];
    room.send_tls(&mut tls_stream, &requests.concat());
    let [before, replaced, after, other] = answers(&mut room, &mut tls_stream, [1, 3, 5, 7]);
    assert_eq!([before.0, replaced.0, after.0], [0x88; 3], "200");
    assert_ne!(before.1, replaced.1);
    assert_eq!(
        (replaced.1.lines().next(), &after.1),
        (Some("names: mail.barepost.test"), &replaced.1)
    );
    assert_eq!(other.1, "403 Forbidden\n");
    room.finish_tls(tls_stream);
}
