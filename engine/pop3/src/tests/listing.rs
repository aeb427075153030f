//! Tests of lists, with maildrops of many sizes and little buffer space.

use std::string::String;
use std::vec::Vec;

use super::world::{Conversation, World};
use crate::{Pop3WaitsFor, REPLY_BYTES_MAX};

fn big(messages: usize) -> World {
    let messages: Vec<&[u8]> = (0..messages).map(|index| &b"0123456789"[..index % 11]).collect();
    World::with(&messages)
}

fn expected(messages: usize, kind: &str) -> String {
    let mut list = String::from("+OK List follows\r\n");
    for number in 1..=messages {
        list += &match kind {
            "LIST" => std::format!("{number} {}\r\n", (number - 1) % 11),
            _ => std::format!("{number} 00005eed{:08x}\r\n", number + 9),
        };
    }
    list + ".\r\n"
}

#[test]
fn lists_of_an_empty_maildrop_are_empty() {
    let mut talk = Conversation::logged_in_to(World::with(&[]));
    talk.exchange(&[
        ("STAT\r\n", "+OK 0 0\r\n"),
        ("LIST\r\n", "+OK List follows\r\n.\r\n"),
        ("UIDL\r\n", "+OK List follows\r\n.\r\n"),
        ("LIST 1\r\n", "-ERR No such message\r\n"),
    ]);
}

#[test]
fn list_does_not_depend_on_the_buffer_space() {
    for kind in ["LIST", "UIDL"] {
        for step in [1, 50, REPLY_BYTES_MAX, 1_000] {
            let mut talk = Conversation::logged_in_to(big(300));
            talk.world.send_room = 0;
            talk.send_room_step = step;
            talk.says(std::format!("{kind}\r\nNOOP\r\n"));
            assert_eq!(talk.replies(), expected(300, kind) + "+OK\r\n");
        }
    }
}

#[test]
fn list_of_200_000_messages_is_cut_into_turns() {
    let mut talk = Conversation::logged_in_to(big(200_000));
    let mut turns = 0;
    let taken = talk.session.bytes_arrived(b"UIDL\r\nSTAT\r\n", &mut talk.world);
    assert_eq!(taken, 6);
    while talk.session.waits_for() == Pop3WaitsFor::Turn {
        talk.session.resumed(&mut talk.world);
        turns += 1;
    }
    assert!((50..200).contains(&turns), "{turns}");
    assert!(talk.replies() == expected(200_000, "UIDL"));
}

#[test]
fn marked_messages_count_as_visited() {
    let mut talk = Conversation::logged_in_to(big(10_000));
    for number in 1..=10_000 {
        talk.says(std::format!("DELE {number}\r\n"));
    }
    talk.replies();
    assert_eq!(talk.session.bytes_arrived(b"LIST\r\n", &mut talk.world), 6);
    assert_eq!(talk.session.waits_for(), Pop3WaitsFor::Turn);
    talk.exchange(&[("", "+OK List follows\r\n.\r\n"), ("STAT\r\n", "+OK 0 0\r\n")]);
}

#[test]
fn pipelined_commands_share_the_visits_of_a_turn() {
    for command in ["LIST\r\n", "UIDL\r\n", "DELE 1\r\nRSET\r\n"] {
        let mut talk = Conversation::logged_in_to(big(1_000));
        (2..=1_000).for_each(|number| talk.says(std::format!("DELE {number}\r\n")));
        let commands = command.repeat(50);
        let mut rest = commands.as_bytes();
        let mut turns = 0;
        while !rest.is_empty() {
            let taken = talk.session.bytes_arrived(rest, &mut talk.world);
            assert!(taken <= 6 * command.len(), "{taken} bytes of {command} in one turn");
            rest = &rest[taken..];
            talk.session.resumed(&mut talk.world);
            turns += 1;
        }
        assert!(turns >= 10, "{turns}");
    }
}

#[test]
fn commands_wait_for_the_end_of_a_list() {
    let mut talk = Conversation::logged_in_to(big(100));
    talk.world.send_room = REPLY_BYTES_MAX;
    talk.send_room_step = 0;
    talk.says("LIST\r\nSTAT\r\n");
    assert_eq!(
        (talk.kept.as_slice(), talk.session.waits_for()),
        (&b"STAT\r\n"[..], Pop3WaitsFor::SendRoom)
    );
    let so_far = talk.replies();
    assert!(expected(100, "LIST").starts_with(&so_far));
}
