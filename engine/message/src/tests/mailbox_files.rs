//! Tests of mailbox files: written messages can be read back.

use std::vec::Vec;

use machine::UnixTime;
use proptest::prelude::*;

use crate::MboxWriter;

/// The file with these messages. Each message arrives in pieces of `part` bytes.
fn written(messages: &[&[u8]], part: usize) -> Vec<u8> {
    let (mut writer, mut out) = (MboxWriter::default(), Vec::new());
    for message in messages {
        writer.message_began(message, UnixTime::from_seconds(1_793_740_000), &mut out);
        message.chunks(part).for_each(|part| writer.octets_arrived(part, &mut out));
        writer.message_ended(&mut out);
    }
    out
}

/// The messages in a mailbox file, read by the specification of the format alone.
fn read(file: &[u8]) -> Vec<Vec<u8>> {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for line in file.split_inclusive(|byte| *byte == b'\n') {
        let depth = line.iter().take_while(|byte| **byte == b'>').count();
        match messages.last_mut() {
            _ if line.starts_with(b"From ") => messages.push(Vec::new()),
            Some(message) => message.extend(if line[depth..].starts_with(b"From ") {
                line.get(1.min(depth)..).unwrap_or(line)
            } else {
                line
            }),
            None => panic!("the file begins with a message"),
        }
    }
    for message in &mut messages {
        assert_eq!(message.pop(), Some(b'\n'), "an empty line follows it");
    }
    messages
}

fn with_lf(message: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    for (at, byte) in message.iter().enumerate() {
        if *byte != b'\r' || message.get(at + 1) != Some(&b'\n') {
            lines.push(*byte);
        }
    }
    lines
}

#[test]
fn mailbox_file_has_from_lines_and_quotes_others() {
    let first =
        b"Return-Path: <ada@example.org>\r\nFrom: x@y.z\r\n\r\nFrom here\r\n>From there\r\nFromage\r\n From\r\n";
    let file = written(
        &[first, b"From: Eve <eve@example.org>\r\n\r\nx\r\n", b"Return-Path: <>\r\n\r\nno end"],
        3,
    );
    let text = core::str::from_utf8(&file).expect("text");
    assert_eq!(
        text,
        "From ada@example.org Tue Nov  3 21:06:40 2026\nReturn-Path: <ada@example.org>\nFrom: x@y.z\n\n>From here\n>>From there\nFromage\n From\n\n\
         From eve@example.org Tue Nov  3 21:06:40 2026\nFrom: Eve <eve@example.org>\n\nx\n\n\
         From MAILER-DAEMON Tue Nov  3 21:06:40 2026\nReturn-Path: <>\n\nno end\n\n"
    );
}

proptest! {
    #[test]
    fn mailbox_file_round_trips(
        messages in prop::collection::vec(prop::collection::vec(prop::sample::select(&[">", "From ", "Fro", "\r\n", "\n", "\r", "x"][..]), 0..40), 0..4),
        part in 1usize..20,
    ) {
        let messages: Vec<Vec<u8>> = messages.iter().map(|words| words.concat().into_bytes()).collect();
        let all: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let expected: Vec<Vec<u8>> = all.iter().map(|message| {
            let mut lines = with_lf(message);
            if !lines.is_empty() && !lines.ends_with(b"\n") {
                lines.push(b'\n');
            }
            lines
        }).collect();
        prop_assert_eq!(read(&written(&all, part)), expected);
    }
}
