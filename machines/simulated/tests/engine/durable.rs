//! The webmail confirms an action only when it is on the disk. With a disk that works, every action
//! is confirmed. With a disk that does not answer, none may be.

#![allow(clippy::expect_used, reason = "a test may fail")]

use machine::Micros;
use simulated::Mood;

use super::webmail::{Browser, message, serving};

/// The actions, in order: the path and the form.
const ACTIONS: [(&str, &[(&str, &str)]); 11] = [
    ("/mail/act", &[("star", "1.1")]),
    ("/mail/act", &[("do", "read"), ("key", "1.2")]),
    ("/mail/act", &[("do", "archive"), ("key", "1.2")]),
    ("/mail/act", &[("do", "trash"), ("key", "1.1")]),
    ("/mail/act", &[("do", "erase"), ("key", "6.1")]),
    ("/mail/show", &[("do", "always"), ("sender", "mary@example.org")]),
    ("/mail/boxes", &[("do", "make"), ("name", "Bills")]),
    ("/mail/compose", &[("do", "save"), ("to", "grace@barepost.test"), ("text", "Later.")]),
    ("/mail/settings", &[("do", "save"), ("hold", "10"), ("name", "Ada")]),
    (
        "/mail/settings",
        &[("do", "password"), ("old", "lovelace"), ("new", "analytical"), ("again", "analytical")],
    ),
    ("/mail/logout", &[]),
];

#[test]
fn an_action_is_confirmed_only_when_it_is_durable() {
    for (seed, mood) in [(30, Mood::Works), (31, Mood::Works), (30, Mood::Waits), (31, Mood::Waits)]
    {
        let (mut room, trust) = serving(seed);
        for subject in ["Engine", "Loom"] {
            assert!(
                room.deliver("ada@barepost.test", &message(subject, "It works."))
                    .starts_with("250")
            );
        }
        let mut ada = Browser::new(&trust);
        ada.log_in(&mut room, "ada", "lovelace");
        let token = ada.get(&mut room, "/mail/box/1").token();
        for (path, fields) in ACTIONS {
            room.machine.disk.mood = mood;
            ada.begin(
                &mut room,
                path,
                &[&[("token", token.as_str()), ("here", "/mail/box/1")], fields].concat(),
            );
            room.pass(Micros::from_millis(300));
            let connection = ada.connection.as_mut().expect("the request was sent on a connection");
            room.exchange(connection);
            let is_answered = !connection.heard.is_empty();
            assert_eq!(
                is_answered,
                mood == Mood::Works,
                "{path} {fields:?}, on a disk that {mood:?}"
            );
            room.machine.disk.mood = Mood::Works;
            let page = ada.answered(&mut room);
            assert_eq!(page.status, 303, "{path} {fields:?}: {}", page.text());
        }
        assert!(ada.cookie.is_none());
    }
}
