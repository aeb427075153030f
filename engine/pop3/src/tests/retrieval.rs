//! Tests of RETR and TOP, against simple implementations that work on whole messages.

use std::string::{String, ToString};
use std::vec::Vec;

use proptest::prelude::*;

use super::world::{Conversation, World};
use crate::{Pop3WaitsFor, REPLY_BYTES_MAX, ReadError};

/// Parses a multi-line response as Python's `poplib` does: reads lines up to the line of one dot,
/// and removes the first of two leading dots.
fn received(response: &str) -> Vec<String> {
    let (first, rest) = response.split_once("\r\n").unwrap();
    assert!(first.starts_with("+OK"), "{first}");
    let mut lines = Vec::new();
    let mut left = rest;
    loop {
        let (line, after) = left.split_once("\r\n").unwrap();
        left = after;
        if line == "." {
            assert_eq!(left, "");
            return lines;
        }
        lines.push(
            line.strip_prefix('.').filter(|rest| rest.starts_with('.')).unwrap_or(line).to_string(),
        );
    }
}

fn conversation_on(message: &[u8]) -> Conversation {
    Conversation::logged_in_to(World::with(&[message]))
}

#[test]
fn messages_are_sent_with_size_and_dot_stuffing() {
    Conversation::logged_in().exchange(&[
        ("RETR 1\r\n", "+OK 19 octets\r\nSubject: one\r\n\r\n1\r\n.\r\n"),
        ("RETR 2\r\n", "+OK 24 octets\r\nSubject: two\r\n\r\n..\r\n...2\r\n.\r\n"),
        ("RETR 3\r\n", "+OK 0 octets\r\n.\r\n"),
        ("TOP 2 1\r\n", "+OK\r\nSubject: two\r\n\r\n..\r\n.\r\n"),
        ("TOP 3 1\r\n", "+OK\r\n.\r\n"),
    ]);
}

#[test]
fn unterminated_last_line_gets_a_line_end() {
    conversation_on(b"a").exchange(&[("RETR 1\r\n", "+OK 1 octets\r\na\r\n.\r\n")]);
    conversation_on(b".").exchange(&[("RETR 1\r\n", "+OK 1 octets\r\n..\r\n.\r\n")]);
    conversation_on(b"a\r\n.b").exchange(&[("TOP 1 9\r\n", "+OK\r\na\r\n..b\r\n.\r\n")]);
}

#[test]
fn top_ends_after_the_requested_body_lines() {
    let mut talk = conversation_on(b"a: b\r\n c\r\n\r\n1\r\n\r\n3");
    talk.exchange(&[
        ("TOP 1 0\r\n", "+OK\r\na: b\r\n c\r\n\r\n.\r\n"),
        ("TOP 1 1\r\n", "+OK\r\na: b\r\n c\r\n\r\n1\r\n.\r\n"),
        ("TOP 1 2\r\n", "+OK\r\na: b\r\n c\r\n\r\n1\r\n\r\n.\r\n"),
        ("TOP 1 3\r\n", "+OK\r\na: b\r\n c\r\n\r\n1\r\n\r\n3\r\n.\r\n"),
        ("TOP 1 99999999999\r\n", "+OK\r\na: b\r\n c\r\n\r\n1\r\n\r\n3\r\n.\r\n"),
    ]);
    assert_eq!(talk.world.log.iter().filter(|entry| *entry == "stop").count(), 3);
    conversation_on(b"\r\nbody\r\n").exchange(&[("TOP 1 0\r\n", "+OK\r\n\r\n.\r\n")]);
}

#[test]
fn only_exact_verbs_are_accepted() {
    let mut talk = conversation_on(b"a: b\r\n\r\nc\r\n");
    for line in ["TOP\0 1 0", "TO\0\0 1 0", "TOPP 1 0", "RETR\0 1", "\0TOP 1 0", ""] {
        talk.says(std::format!("{line}\r\n"));
        let replies = talk.replies();
        assert!(replies.starts_with("-ERR") && replies.lines().count() == 1, "{line:?}: {replies}");
    }
    talk.says("top 1 0\r\n");
    assert!(talk.replies().contains("+OK"));
}

#[test]
fn unreadable_message_is_an_error_and_the_session_goes_on() {
    for (error, reply) in [
        (ReadError::TryLater, "-ERR [SYS/TEMP] Message cannot be read now, try again later\r\n"),
        (ReadError::Damaged, "-ERR [SYS/PERM] Message is damaged and cannot be read\r\n"),
    ] {
        let mut talk = Conversation::logged_in();
        talk.read_error = Some((0, error));
        talk.exchange(&[("RETR 1\r\nNOOP\r\n", &(reply.to_string() + "+OK\r\n"))]);
    }
}

#[test]
fn read_failure_within_a_message_closes_the_connection() {
    let mut talk = Conversation::logged_in();
    talk.read_step = 1;
    talk.read_error = Some((16, ReadError::Damaged));
    talk.says("DELE 3\r\nRETR 1\r\nQUIT\r\n");
    assert!(talk.replies().ends_with("+OK 19 octets\r\nSubject: one\r\n\r\n"));
    assert!(talk.world.closed && talk.world.log.len() == 1, "nothing is deleted");
}

#[test]
fn commands_wait_for_the_end_of_a_message() {
    let mut talk = Conversation::logged_in();
    talk.read_step = 0;
    talk.says("RETR 1\r\nNOOP\r\n");
    assert_eq!(
        (talk.kept.as_slice(), talk.session.waits_for()),
        (&b"NOOP\r\n"[..], Pop3WaitsFor::Message)
    );
    assert_eq!(talk.replies(), "");
    talk.read_step = 5;
    talk.exchange(&[("", "+OK 19 octets\r\nSubject: one\r\n\r\n1\r\n.\r\n+OK\r\n")]);
}

#[test]
fn unexpected_message_bytes_are_dropped() {
    let mut talk = Conversation::logged_in();
    assert_eq!(talk.session.message_bytes_arrived(b"late", &mut talk.world), 4);
    talk.session.message_ended(Ok(()), &mut talk.world);
    assert_eq!(talk.replies(), "");
}

#[test]
fn large_message_is_sent_through_a_small_window() {
    let message = b"..line of a message that is sent\r\n.\r\n".repeat(30_000);
    let mut talk = conversation_on(&message);
    talk.world.send_room = 300;
    talk.send_room_step = 997;
    talk.read_step = 4_096;
    talk.says("RETR 1\r\n");
    let lines = received(&talk.replies());
    assert!(
        lines.iter().map(|line| line.clone() + "\r\n").collect::<String>().into_bytes() == message
    );
}

#[test]
fn end_of_a_message_always_has_buffer_space() {
    for length in 200..300 {
        let message = "x".repeat(length);
        let mut talk = conversation_on(message.as_bytes());
        talk.world.send_room = REPLY_BYTES_MAX;
        talk.send_room_step = REPLY_BYTES_MAX;
        talk.exchange(&[(
            "RETR 1\r\n",
            &std::format!("+OK {length} octets\r\n{message}\r\n.\r\n"),
        )]);
    }
}

fn message() -> impl Strategy<Value = String> {
    let lines = proptest::collection::vec("[.a]{0,4}", 0..150)
        .prop_map(|lines| lines.iter().map(|line| line.to_string() + "\r\n").collect::<String>());
    (lines, "[.a]{0,3}").prop_map(|(lines, rest)| lines + &rest)
}

fn lines_of(message: &str) -> Vec<String> {
    let mut lines: Vec<String> = message.split("\r\n").map(str::to_string).collect();
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Applies the dot-stuffing of RFC 1939 line by line.
fn stuffed(lines: &[String]) -> String {
    let dotted =
        |line: &String| if line.starts_with('.') { ".".to_string() + line } else { line.clone() };
    lines.iter().map(|line| dotted(line) + "\r\n").collect::<String>() + ".\r\n"
}

proptest! {
    #[test]
    fn every_message_is_sent_as_stored(
        message in message(),
        read_step in 1usize..20,
        room in 1usize..40,
    ) {
        let mut talk = conversation_on(message.as_bytes());
        talk.world.send_room = 0;
        talk.send_room_step = room;
        talk.read_step = read_step;
        talk.says("RETR 1\r\n");
        let response = talk.replies();
        let expected = std::format!("+OK {} octets\r\n{}", message.len(), stuffed(&lines_of(&message)));
        prop_assert_eq!(&response, &expected);
        prop_assert_eq!(received(&response), lines_of(&message));
    }

    #[test]
    fn top_sends_the_header_and_the_requested_lines(
        message in message(),
        body_lines in 0usize..120,
        read_step in 1usize..20,
        room in 1usize..40,
    ) {
        let mut talk = conversation_on(message.as_bytes());
        talk.world.send_room = 0;
        talk.send_room_step = room;
        talk.read_step = read_step;
        talk.says(std::format!("TOP 1 {body_lines}\r\nNOOP\r\n"));
        let mut lines = lines_of(&message);
        let complete_lines = message.matches("\r\n").count();
        if let Some(empty) = lines.iter().position(String::is_empty).filter(|empty| *empty < complete_lines) {
            lines.truncate(empty + 1 + body_lines);
        }
        prop_assert_eq!(talk.replies(), "+OK\r\n".to_string() + &stuffed(&lines) + "+OK\r\n");
    }
}
