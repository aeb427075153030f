//! Tests of events that do not come from the client: deadlines, the stop of the server, the end of
//! the connection.

use machine::Micros;

use super::world::{Conversation, World};
use crate::{Maildrop, Pop3WaitsFor};

const STOPPING: &str = "-ERR [SYS/TEMP] Server is shutting down, try again later\r\n";

/// One conversation for each point at which a session waits for bytes or for the host.
fn everywhere() -> impl Iterator<Item = Conversation> {
    ["", "USER ada\r\n", "LOGIN", "LIST", "RETR", "TOP", "DELE", "LONG"].into_iter().map(|place| {
        let mut talk = match place {
            "" | "USER ada\r\n" | "LOGIN" => Conversation::new(),
            _ => Conversation::logged_in(),
        };
        match place {
            "LOGIN" => {
                talk.login_answer = None;
                talk.says("USER ada\r\nPASS x\r\n");
            }
            "LIST" => {
                talk.world.send_room = 256;
                talk.send_room_step = 0;
                talk.says("UIDL\r\n");
                talk.world.send_room = 256;
            }
            "RETR" => {
                talk.read_step = 0;
                talk.says("RETR 1\r\n");
            }
            "TOP" => {
                talk.world.send_room = 256;
                talk.send_room_step = 0;
                talk.says("DELE 1\r\nTOP 2 1\r\n");
                talk.world.send_room = 256;
            }
            "DELE" => talk.says("DELE 1\r\nRET"),
            "LONG" => talk.says("x".repeat(1_000)),
            other => talk.says(other),
        }
        talk.replies();
        talk
    })
}

#[test]
fn autologout_sends_no_reply_and_deletes_nothing() {
    for mut talk in everywhere() {
        assert_eq!(talk.world.deadline, Some(Micros::from_secs(600)));
        talk.session.deadline_expired(&mut talk.world);
        assert_eq!(talk.replies(), "");
        assert!(
            talk.world.closed && !talk.world.log.iter().any(|entry| entry.starts_with("delete"))
        );
        talk.session.deadline_expired(&mut talk.world);
        talk.session.stopping(&mut talk.world);
        talk.session.resumed(&mut talk.world);
        talk.session.deleted(Ok(()), &mut talk.world);
        talk.session
            .login_answered(Ok((Maildrop { messages: 0, bytes: 0 }, None)), &mut talk.world);
    }
}

#[test]
fn lost_connection_leaves_the_maildrop_and_deletes_nothing() {
    for mut talk in everywhere() {
        let logging_in = talk.session.waits_for() == Pop3WaitsFor::Login;
        talk.session.peer_closed(&mut talk.world);
        assert_eq!(talk.replies(), "");
        assert_eq!(talk.world.log.contains(&"abandon".into()), logging_in);
        assert!(talk.world.closed && !talk.world.maildrop_open && talk.world.reading.is_none());
        assert!(!talk.world.log.iter().any(|entry| entry.starts_with("delete")));
        assert_eq!(talk.session.waits_for(), Pop3WaitsFor::Nothing);
        talk.session.peer_closed(&mut talk.world);
    }
}

#[test]
fn stop_is_announced_after_the_command_in_progress() {
    for mut talk in everywhere() {
        talk.session.stopping(&mut talk.world);
        talk.send_room_step = usize::MAX;
        talk.login_answer = Some(Ok(()));
        talk.read_step = 3;
        talk.says("");
        assert!(talk.replies().ends_with(STOPPING));
        assert!(
            talk.world.closed && !talk.world.log.iter().any(|entry| entry.starts_with("delete"))
        );
    }
}

#[test]
fn changed_password_ends_a_logged_in_session() {
    for mut talk in everywhere() {
        let is_logged_in = talk.world.maildrop_open;
        talk.session.password_changed(&mut talk.world);
        assert_eq!(talk.world.closed, is_logged_in);
        assert!(
            !talk.world.maildrop_open
                && !talk.world.log.iter().any(|entry| entry.starts_with("delete"))
        );
        let replies = talk.replies();
        assert!(
            ["", "-ERR [AUTH] Your password has changed, log in again\r\n"].contains(&&*replies),
            "{replies}"
        );
        talk.session.password_changed(&mut talk.world);
        assert_eq!(talk.replies(), "");
    }
    let mut talk = Conversation::logged_in();
    talk.deletion_answer = None;
    talk.says("DELE 1\r\nQUIT\r\n");
    talk.replies();
    talk.session.password_changed(&mut talk.world);
    talk.session.deleted(Ok(()), &mut talk.world);
    assert_eq!(talk.replies(), "+OK Bye\r\n", "the deletion of QUIT is completed");
}

#[test]
fn deletions_of_quit_go_on_without_the_client() {
    for lost in [false, true] {
        let mut talk = Conversation::logged_in();
        talk.deletion_answer = None;
        talk.says("DELE 1\r\nQUIT\r\n");
        talk.replies();
        if lost {
            talk.session.peer_closed(&mut talk.world);
        }
        talk.session.stopping(&mut talk.world);
        assert!(talk.world.maildrop_open && !talk.world.closed);
        talk.session.deleted(Ok(()), &mut talk.world);
        assert_eq!(talk.replies(), if lost { "" } else { "+OK Bye\r\n" });
        assert!(!talk.world.maildrop_open && talk.world.closed);
    }
}

#[test]
fn only_a_complete_command_renews_the_deadline() {
    let mut talk = Conversation::logged_in();
    talk.world.deadline = Some(Micros(1));
    talk.says("NOO");
    assert_eq!(talk.world.deadline, Some(Micros(1)));
    talk.says("P\r\n");
    assert_eq!(talk.world.deadline, Some(Micros::from_secs(600)));
    talk.says("x".repeat(1_000));
    talk.world.deadline = Some(Micros(1));
    talk.says("x".repeat(1_000));
    assert_eq!(talk.world.deadline, Some(Micros(1)));
}

#[test]
fn slow_reader_renews_the_deadline() {
    let mut talk = Conversation::logged_in_to(World::with(&[&[b'x'; 5_000]]));
    talk.world.send_room = 300;
    talk.send_room_step = 0;
    talk.says("RETR 1\r\n");
    talk.world.deadline = Some(Micros(1));
    talk.says("");
    assert_eq!(talk.world.deadline, Some(Micros(1)));
    talk.world.send_room = 300;
    assert!(talk.session.message_bytes_arrived(&[b'x'; 1_000], &mut talk.world) > 0);
    assert_eq!(talk.world.deadline, Some(Micros::from_secs(600)));
}
