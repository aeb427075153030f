//! Data in many small pieces over TLS: each record needs more space than its payload, and all data
//! arrives whole.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::sync::Arc;

use http::Site;
use machine::Micros;

use super::room::shielded::{BOTH, Shielded, client_of};
use super::room::{Room, usual_sizes};

/// A machine, and a TLS connection to Ada's maildrop. The client's receive buffer has this size.
fn logged_in(room: &mut Room, client: &Arc<rustls::ClientConfig>, buffer_bytes: usize) -> Shielded {
    let host = room.add_host();
    room.hosts[host].buffer_bytes = buffer_bytes;
    let mut shielded = room.connect_shielded_from(host, 995, client);
    assert!(room.line_shielded(&mut shielded).starts_with("+OK"));
    for command in ["USER ada@barepost.test", "PASS lovelace"] {
        let response = room.pop3_shielded(&mut shielded, command);
        assert!(response.starts_with("+OK"), "{command}: {response}");
    }
    shielded
}

/// The lines after a response, up to the line with one dot.
fn lines(room: &mut Room, shielded: &mut Shielded) -> String {
    room.until("the last line arrives", |room| {
        room.exchange(shielded);
        assert!(
            !room.has_hung_up(&mut shielded.talk),
            "the server hangs up after {} bytes",
            shielded.heard.len()
        );
        shielded.heard.ends_with(b"\r\n.\r\n")
    });
    String::from_utf8(std::mem::take(&mut shielded.heard)).expect("it is text")
}

#[test]
fn a_message_of_only_dots_arrives_whole_over_tls() {
    for version in BOTH {
        let (mut room, trust) = Room::shielded(1, Site::default(), usual_sizes());
        let client = Arc::new(client_of(&trust, &[], &[version]));
        let letter = ".\r\n".repeat(30_000);
        assert!(room.deliver("ada@barepost.test", letter.as_bytes()).starts_with("250 "));
        for buffer_bytes in [1_000, 65_000] {
            let mut shielded = logged_in(&mut room, &client, buffer_bytes);
            room.say_shielded(&mut shielded, b"RETR 1\r\n");
            let heard = lines(&mut room, &mut shielded);
            let stuffed = "..\r\n".repeat(30_000) + ".\r\n";
            assert!(heard.ends_with(&stuffed), "{} bytes", heard.len());
            assert!(room.pop3_shielded(&mut shielded, "QUIT").starts_with("+OK"));
            room.part_shielded(shielded);
        }
    }
}

#[test]
fn the_lines_of_a_list_share_records() {
    const LETTERS: usize = 30;
    let (mut room, trust) = Room::shielded(2, Site::default(), usual_sizes());
    let client = Arc::new(client_of(&trust, &[], BOTH));
    for _ in 0..LETTERS {
        assert!(
            room.deliver("ada@barepost.test", b"Subject: A letter\r\n\r\nIt is short.\r\n")
                .starts_with("250 ")
        );
    }
    let mut shielded = logged_in(&mut room, &client, 65_000);
    for command in ["LIST\r\n", "UIDL\r\n"] {
        room.pass(Micros::from_millis(100));
        room.say_shielded(&mut shielded, command.as_bytes());
        room.pass(Micros::from_millis(100));
        room.listen(&mut shielded.talk);
        let heard = &shielded.talk.heard;
        let (mut records, mut at) = (0, 0);
        while let Some(&[high, low]) = heard.get(at + 3..at + 5) {
            (records, at) = (records + 1, at + 5 + usize::from(u16::from_be_bytes([high, low])));
        }
        assert_eq!((records, at), (1, heard.len()), "{command:?}");
        let heard = lines(&mut room, &mut shielded);
        assert_eq!(heard.lines().count(), LETTERS + 2);
    }
    room.part_shielded(shielded);
}
