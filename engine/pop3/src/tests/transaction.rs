//! Tests of commands on a maildrop, and of QUIT.

use std::string::ToString;

use super::world::Conversation;
use crate::{DeletionError, Pop3WaitsFor};

const NO_SUCH: &str = "-ERR No such message\r\n";
const IS_DELETED: &str = "-ERR Message is deleted\r\n";

#[test]
fn list_and_uidl_of_single_messages() {
    Conversation::logged_in().exchange(&[
        ("LIST 1\r\n", "+OK 1 19\r\n"),
        ("LIST 3\r\n", "+OK 3 0\r\n"),
        ("UIDL 2\r\n", "+OK 2 00005eed0000000b\r\n"),
        ("LIST 0\r\n", NO_SUCH),
        ("LIST 4\r\n", NO_SUCH),
        ("UIDL 99999999999999999999\r\n", NO_SUCH),
        ("LIST -1\r\n", "-ERR Invalid arguments\r\n"),
        ("LIST 1 2\r\n", "-ERR Invalid arguments\r\n"),
        ("UIDL x\r\n", "-ERR Invalid arguments\r\n"),
    ]);
}

#[test]
fn missing_and_wrong_arguments_are_refused() {
    let mut talk = Conversation::logged_in();
    for command in [
        "RETR",
        "RETR x",
        "DELE",
        "DELE 1 2",
        "TOP",
        "TOP 1",
        "TOP 1 x",
        "TOP x 1",
        "TOP 1 1 1",
        "STAT 1",
        "NOOP 1",
        "QUIT 1",
    ] {
        talk.exchange(&[(&(command.to_string() + "\r\n"), "-ERR Invalid arguments\r\n")]);
    }
    talk.exchange(&[
        ("RETR 4\r\n", NO_SUCH),
        ("DELE 0\r\n", NO_SUCH),
        ("TOP 4 1\r\n", NO_SUCH),
        ("NOOP\r\n", "+OK\r\n"),
    ]);
}

#[test]
fn marked_message_is_gone_until_rset() {
    let mut talk = Conversation::logged_in();
    talk.exchange(&[
        ("DELE 2\r\n", "+OK Marked to be deleted\r\n"),
        ("DELE 2\r\n", IS_DELETED),
        ("LIST 2\r\n", IS_DELETED),
        ("UIDL 2\r\n", IS_DELETED),
        ("RETR 2\r\n", IS_DELETED),
        ("TOP 2 0\r\n", IS_DELETED),
        ("STAT\r\n", "+OK 2 19\r\n"),
        ("LIST\r\n", "+OK List follows\r\n1 19\r\n3 0\r\n.\r\n"),
        ("UIDL\r\n", "+OK List follows\r\n1 00005eed0000000a\r\n3 00005eed0000000c\r\n.\r\n"),
        ("RSET\r\n", "+OK\r\n"),
        ("STAT\r\n", "+OK 3 43\r\n"),
        ("LIST\r\n", "+OK List follows\r\n1 19\r\n2 24\r\n3 0\r\n.\r\n"),
        ("QUIT\r\n", "+OK Bye\r\n"),
    ]);
    assert_eq!(talk.world.log.len(), 1);
}

#[test]
fn quit_replies_once_the_deletion_is_durable() {
    let mut talk = Conversation::logged_in();
    talk.deletion_answer = None;
    talk.exchange(&[
        ("DELE 1\r\nDELE 3\r\n", "+OK Marked to be deleted\r\n+OK Marked to be deleted\r\n"),
        ("QUIT\r\nNOOP\r\n", ""),
    ]);
    assert_eq!(talk.world.log[1], "delete [1, 3]");
    assert_eq!(talk.session.waits_for(), Pop3WaitsFor::Deletion);
    assert!(talk.world.maildrop_open && !talk.world.closed);
    talk.deletion_answer = Some(Ok(()));
    talk.exchange(&[("", "+OK Bye\r\n")]);
    assert!(!talk.world.maildrop_open && talk.world.closed && talk.kept.is_empty());
}

#[test]
fn failed_deletion_is_reported() {
    let mut talk = Conversation::logged_in();
    talk.deletion_answer = Some(Err(DeletionError));
    talk.says("DELE 1\r\nQUIT\r\n");
    assert!(
        talk.replies()
            .ends_with("-ERR [SYS/TEMP] Some messages were not deleted, try again later\r\n")
    );
    assert!(!talk.world.maildrop_open && talk.world.closed);
}
