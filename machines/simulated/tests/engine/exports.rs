//! The export of a mailbox as one file, while mail arrives and is deleted.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use super::downloads::begin;
use super::room::Room;
use super::room::tls_stream::TlsStream;
use super::webmail::{Browser, chunk, serving};

/// The messages of an exported file (mbox), without quoting and without their `From ` lines.
fn messages(file: &[u8]) -> Vec<Vec<u8>> {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for line in file.split_inclusive(|byte| *byte == b'\n') {
        let unquoted = &line[line.iter().take_while(|byte| **byte == b'>').count()..];
        if line.starts_with(b"From ") {
            messages.push(Vec::new());
            continue;
        }
        let message = messages.last_mut().expect("the file begins with a message");
        message.extend_from_slice(if unquoted.starts_with(b"From ") { &line[1..] } else { line });
    }
    for message in &mut messages {
        assert_eq!(message.pop(), Some(b'\n'), "an empty line follows each message");
    }
    messages
}

fn with_lf(message: &[u8]) -> Vec<u8> {
    String::from_utf8(message.to_vec()).expect("text").replace("\r\n", "\n").into_bytes()
}

fn message(number: usize, lines: usize) -> Vec<u8> {
    let text = "From the beginning\r\n>From the end\r\nnothing of that\r\n".repeat(lines);
    format!("From: x@example.org\r\nSubject: Number {number}\r\n\r\n{text}").into_bytes()
}

/// The remaining bytes of a download.
fn rest(room: &mut Room, tls_stream: &mut TlsStream) -> Vec<u8> {
    let mut file = Vec::new();
    while let bytes = chunk(room, tls_stream)
        && !bytes.is_empty()
    {
        file.extend(bytes);
    }
    file
}

#[test]
fn an_export_contains_every_message_as_stored() {
    for seed in 0..2 {
        let (mut room, trust) = serving(seed);
        // Some messages fit into one piece together, and some have several chunks in the store.
        let originals: Vec<Vec<u8>> =
            (0..40).map(|number| message(number, number % 7 * (number % 5) * 60)).collect();
        for original in &originals {
            assert!(room.deliver("ada@barepost.test", original).starts_with("250"));
        }
        let mut browser = Browser::new(&trust);
        browser.log_in(&mut room, "ada", "lovelace");
        assert!(
            browser
                .get(&mut room, "/mail/boxes")
                .text()
                .contains("href=\"/mail/export/1\" download")
        );
        let file = browser.get(&mut room, "/mail/export/1");
        assert_eq!((file.field("Content-Type"), file.status), ("application/mbox", 200));
        assert!(
            file.field("Content-Disposition").starts_with("attachment; filename=\"Inbox.mbox\"")
        );
        let stored: Vec<Vec<u8>> = (1..=originals.len())
            .map(|uid| with_lf(&browser.get(&mut room, &format!("/mail/download/1.{uid}")).body))
            .collect();
        assert!(messages(&file.body) == stored);
        assert!(file.body.starts_with(b"From ") && stored[7].ends_with(&with_lf(&originals[7])));
        let empty = browser.get(&mut room, "/mail/export/5");
        assert_eq!((empty.status, empty.body.len(), empty.field("Content-Length")), (200, 0, "0"));
        assert_eq!(browser.get(&mut room, "/mail/export/99").status, 404);
        browser.hang_up(&mut room);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn changes_during_an_export_damage_no_message() {
    for seed in 0..2 {
        let (mut room, trust) = serving(seed);
        let originals: Vec<Vec<u8>> = (0..6).map(|number| message(number, 8000)).collect();
        for original in &originals {
            assert!(room.deliver("ada@barepost.test", original).starts_with("250"));
        }
        let mut browser = Browser::new(&trust);
        browser.log_in(&mut room, "ada", "lovelace");
        let token = browser.get(&mut room, "/mail/box/1").token();
        let (mut tls_stream, head) = begin(&mut room, &browser, "/mail/export/1");
        assert_eq!(head.status, 200);
        let mut file = chunk(&mut room, &mut tls_stream);
        // The browser moves two messages away: the first, of which a part was already sent, and the
        // fifth, of which nothing was sent. Then another message arrives.
        for (key, what) in [("1.1", "trash"), ("1.5", "archive")] {
            browser.post(
                &mut room,
                "/mail/act",
                &[("token", &token), ("here", "/mail/box/1"), ("key", key), ("do", what)],
            );
        }
        assert!(room.deliver("ada@barepost.test", &message(99, 1)).starts_with("250"));
        file.extend(rest(&mut room, &mut tls_stream));
        let found = messages(&file);
        let mut expected: Vec<&[u8]> = originals.iter().map(Vec::as_slice).collect();
        expected.remove(4);
        assert_eq!(found.len(), expected.len());
        assert!(found[0].ends_with(
            b"\n[The rest of this message was moved or deleted while this file was being created.]\n"
        ));
        for (message, expected) in found.iter().zip(&expected).skip(1) {
            assert!(message.ends_with(&with_lf(expected)));
        }
        room.close_tls(tls_stream);
        browser.hang_up(&mut room);
        room.until_nothing_is_in_use();
    }
}
