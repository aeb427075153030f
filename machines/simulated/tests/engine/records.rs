//! Data in many small pieces over TLS. Each record needs more buffer space than its payload, and
//! all data must arrive whole.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::sync::Arc;

use http::Site;
use machine::Micros;

use super::room::tls_stream::{BOTH, TlsStream, client_of};
use super::room::{Room, usual_sizes};

/// Opens a TLS connection to Ada's maildrop from a new host. The client's receive buffer has this
/// size.
fn logged_in(
    room: &mut Room,
    client: &Arc<rustls::ClientConfig>,
    buffer_bytes: usize,
) -> TlsStream {
    let host = room.add_host();
    room.hosts[host].buffer_bytes = buffer_bytes;
    let mut tls_stream = room.connect_tls_from(host, 995, client);
    assert!(room.line_tls(&mut tls_stream).starts_with("+OK"));
    for command in ["USER ada@barepost.test", "PASS lovelace"] {
        let response = room.pop3_tls(&mut tls_stream, command);
        assert!(response.starts_with("+OK"), "{command}: {response}");
    }
    tls_stream
}

/// The lines after a response, up to the line with one dot.
fn lines(room: &mut Room, tls_stream: &mut TlsStream) -> String {
    room.until("the last line arrives", |room| {
        room.exchange(tls_stream);
        assert!(
            !room.has_hung_up(&mut tls_stream.talk),
            "the server hangs up after {} bytes",
            tls_stream.heard.len()
        );
        tls_stream.heard.ends_with(b"\r\n.\r\n")
    });
    String::from_utf8(std::mem::take(&mut tls_stream.heard)).expect("the bytes are UTF-8")
}

#[test]
fn a_message_of_only_dots_arrives_whole_over_tls() {
    for version in BOTH {
        let (mut room, trust) = Room::with_tls(1, Site::default(), usual_sizes());
        let client = Arc::new(client_of(&trust, &[], &[version]));
        let message = ".\r\n".repeat(30_000);
        assert!(room.deliver("ada@barepost.test", message.as_bytes()).starts_with("250 "));
        for buffer_bytes in [1_000, 65_000] {
            let mut tls_stream = logged_in(&mut room, &client, buffer_bytes);
            room.send_tls(&mut tls_stream, b"RETR 1\r\n");
            let heard = lines(&mut room, &mut tls_stream);
            let stuffed = "..\r\n".repeat(30_000) + ".\r\n";
            assert!(heard.ends_with(&stuffed), "{} bytes", heard.len());
            assert!(room.pop3_tls(&mut tls_stream, "QUIT").starts_with("+OK"));
            room.finish_tls(tls_stream);
        }
    }
}

#[test]
fn the_lines_of_a_list_share_records() {
    const MESSAGES: usize = 30;
    let (mut room, trust) = Room::with_tls(2, Site::default(), usual_sizes());
    let client = Arc::new(client_of(&trust, &[], BOTH));
    for _ in 0..MESSAGES {
        assert!(
            room.deliver("ada@barepost.test", b"Subject: A letter\r\n\r\nIt is short.\r\n")
                .starts_with("250 ")
        );
    }
    let mut tls_stream = logged_in(&mut room, &client, 65_000);
    for command in ["LIST\r\n", "UIDL\r\n"] {
        room.pass(Micros::from_millis(100));
        room.send_tls(&mut tls_stream, command.as_bytes());
        room.pass(Micros::from_millis(100));
        room.listen(&mut tls_stream.talk);
        let heard = &tls_stream.talk.heard;
        let (mut records, mut at) = (0, 0);
        while let Some(&[high, low]) = heard.get(at + 3..at + 5) {
            (records, at) = (records + 1, at + 5 + usize::from(u16::from_be_bytes([high, low])));
        }
        assert_eq!((records, at), (1, heard.len()), "{command:?}");
        let heard = lines(&mut room, &mut tls_stream);
        assert_eq!(heard.lines().count(), MESSAGES + 2);
    }
    room.finish_tls(tls_stream);
}
