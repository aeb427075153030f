//! The memory that an HTTP/1.1 client makes the server keep. The session reports it, and the
//! client's share limits it.

use std::string::{String, ToString};
use std::vec::Vec;

use allocation_counter::measure;

use super::world::{Talk, request};
use crate::{Reply, ReplyField, Status};

fn question(cookie_bytes: usize) -> String {
    let cookie: String = "Cookie: ".chars().chain(std::iter::repeat_n('c', cookie_bytes)).collect();
    request(&["GET /app/page HTTP/1.1", &cookie])
}

/// Checks that the session reports at least the memory that it holds, and at most twice that memory
/// and 1 KiB.
fn assert_memory_is_reported(talk: Talk, what: &str) {
    let reported = talk.session.kept_bytes() + talk.session.held_bytes();
    let Talk { session, .. } = talk;
    let held = measure(|| drop(session)).bytes_current.unsigned_abs() as usize;
    assert!(
        held <= reported && reported <= 2 * held + 1024,
        "{what}: {held} bytes are held, {reported} are reported"
    );
}

#[test]
fn http1_sessions_report_all_memory_that_they_hold() {
    assert_memory_is_reported(Talk::new(), "nothing");
    let mut talk = Talk::new();
    talk.arrive(question(7000).as_bytes());
    assert_memory_is_reported(talk, "a request for a handler");
    let mut talk = Talk::new();
    talk.arrive(question(10).as_bytes());
    talk.world.room = 0;
    let cookie = "c".repeat(700);
    talk.reply(
        Reply::new(Status::Ok, "a/b", std::vec![b'x'; 9000]).with(ReplyField::SetCookie, &cookie),
    );
    assert_memory_is_reported(talk, "a reply");
    let mut talk = Talk::new();
    talk.arrive(request(&["POST /app/form HTTP/1.1", "Content-Length: 10"]).as_bytes());
    talk.admit(10);
    assert_memory_is_reported(talk, "an admitted request");
    let mut talk = Talk::new();
    talk.arrive(request(&["POST /hello.txt HTTP/1.1", "Content-Length: 10"]).as_bytes());
    assert_memory_is_reported(talk, "an answer that waits for a body");
}

#[test]
fn an_http1_request_above_the_memory_share_is_answered_503() {
    let mut talk = Talk::new();
    talk.world.kept_max = 6000;
    talk.arrive(question(5000).as_bytes());
    let refused: Vec<_> =
        talk.responses(|_| false).iter().map(|response| response.status).collect();
    assert_eq!((refused, talk.world.asked.len()), ([503].to_vec(), 0));
    talk.arrive(question(500).as_bytes());
    assert!((1..=6000).contains(&talk.session.kept_bytes()));
    talk.reply(Reply::text(Status::Ok, "x".to_string()));
    assert_eq!(talk.responses(|_| false)[0].status, 200);
    assert_eq!(talk.session.kept_bytes(), 0);
    talk.session.overdrawn(&mut talk.world);
    assert!(talk.world.closed);
}

#[test]
fn an_overdrawn_http1_request_is_answered_503() {
    let form = request(&["POST /app/form HTTP/1.1", "Content-Length: 10"]);
    let mut asked = Talk::new();
    asked.arrive(question(10).as_bytes());
    let mut admitted = Talk::new();
    admitted.arrive(form.as_bytes());
    admitted.admit(10);
    let mut unread = Talk::new();
    unread.arrive(request(&["POST /hello.txt HTTP/1.1", "Content-Length: 10"]).as_bytes());
    for mut talk in [asked, admitted, unread] {
        talk.session.overdrawn(&mut talk.world);
        let answers: Vec<_> =
            talk.responses(|_| false).iter().map(|response| response.status).collect();
        assert_eq!((answers, talk.world.closed), ([503].to_vec(), true));
        assert_eq!(talk.session.kept_bytes(), 0);
    }
}
