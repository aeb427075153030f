//! The check after all actions: the server serves, and has the messages that it has acknowledged.

use super::action::Port;
use super::room::Room;

/// Checks that correct clients are served, and find the acknowledged messages.
pub(super) fn check(room: &mut Room) {
    room.converse(
        Port::Smtp,
        &[
            ("", "220 "),
            ("EHLO a.test\r\n", "250 "),
            ("MAIL FROM:<a@a.test>\r\n", "250 "),
            ("RCPT TO:<ada@barepost.test>\r\n", "250 "),
            ("DATA\r\n", "354 "),
            ("the last message\r\n.\r\n", "250 "),
            ("QUIT\r\n", "221 "),
        ],
    );
    let page = room.converse(Port::Http, &[("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\r\n\r\nindex")]);
    assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
    let messages: usize = ["ada", "grace"].map(|name| messages_of(room, name)).iter().sum();
    let at_least = (room.acknowledged + 1).saturating_sub(room.deleted_at_most);
    assert!(messages >= at_least, "{messages} messages are left where {at_least} must be");
}

/// The number of messages in a mailbox, by STAT.
fn messages_of(room: &mut Room, name: &str) -> usize {
    let user = format!("USER {name}@barepost.test\r\n");
    let received = room.converse(
        Port::Pop3,
        &[
            ("", "+OK "),
            (&user, "+OK"),
            ("PASS lovelace\r\n", "+OK"),
            ("STAT\r\n", "+OK "),
            ("QUIT\r\n", "+OK"),
        ],
    );
    let status = received.lines().filter(|line| line.starts_with("+OK ")).find_map(|line| {
        let mut words = line.split(' ').skip(1).map(str::parse::<usize>);
        match (words.next(), words.next(), words.next()) {
            (Some(Ok(count)), Some(Ok(_)), None) => Some(count),
            _ => None,
        }
    });
    status.expect("STAT returns the number of messages")
}
