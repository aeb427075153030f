//! Password changes while other sessions of the account are open.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;
use simulated::Mood;

use super::room::{CONFIGURATION, Room, Talk};
use super::settings::{accepts_password, again, asks_for_login, change, forget_connections};
use super::webmail::{Browser, Page, serving};

/// Logins with the password `lovelace`: NUL, the name, NUL, the password, in base64.
const ADA: &str = "AUTH PLAIN AGFkYUBiYXJlcG9zdC50ZXN0AGxvdmVsYWNl";
const GRACE: &str = "AUTH PLAIN AGdyYWNlQGJhcmVwb3N0LnRlc3QAbG92ZWxhY2U=";

const OVER: &str = "421 4.7.0 Your password has changed, log in again";

/// Opens a submission session in clear text, which the configuration allows for the client's
/// address.
fn submission(room: &mut Room, login: Option<&str>) -> Talk {
    let mut talk = room.connect_from(0, 587);
    assert!(room.smtp_reply(&mut talk).starts_with("220 "));
    assert_eq!(room.smtp(&mut talk, "EHLO client.test"), "250 HELP");
    if let Some(login) = login {
        assert_eq!(room.smtp(&mut talk, login), "235 2.7.0 Authentication successful");
    }
    talk
}

fn begin_message(room: &mut Room, talk: &mut Talk) {
    for (command, code) in [
        ("MAIL FROM:<ada@barepost.test>", "250"),
        ("RCPT TO:<grace@barepost.test>", "250"),
        ("DATA", "354"),
    ] {
        assert!(room.smtp(talk, command).starts_with(code), "{command}");
    }
}

#[test]
fn a_changed_password_ends_the_sessions_of_every_core() {
    let (mut room, trust) = serving(40);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let mut ended: Vec<Talk> = (0..6).map(|_| submission(&mut room, Some(ADA))).collect();
    begin_message(&mut room, &mut ended[0]);
    room.send(&ended[0], b"Half a message,\r\n");
    let mut reader = room.log_in("ada");
    let mut others = [submission(&mut room, Some(GRACE)), submission(&mut room, None)];
    let mut other_reader = room.log_in("grace");

    let page = change(&mut ada, &mut room, ["lovelace", "analytical", "analytical"]);
    assert!(page.contains("Password changed."), "{page}");
    for talk in &mut ended {
        assert_eq!(room.smtp(talk, "MAIL FROM:<ada@barepost.test>"), OVER);
        assert_eq!(room.line_heard(talk), None, "nothing else is answered");
    }
    assert_eq!(
        room.pop3(&mut reader, "STAT"),
        "-ERR [AUTH] Your password has changed, log in again"
    );
    assert_eq!(room.line_heard(&mut reader), None);

    for talk in &mut others {
        assert_eq!(room.smtp(talk, "NOOP"), "250 2.0.0 OK");
    }
    assert_eq!(
        room.pop3(&mut other_reader, "STAT"),
        "+OK 0 0",
        "the half of a message was dropped"
    );
    assert!(
        accepts_password(&mut room, "analytical") && !accepts_password(&mut room, "lovelace"),
        "the maildrop is not locked"
    );
}

/// The text of the page that reports the result of a change.
fn outcome(page: Page, browser: &mut Browser, room: &mut Room) -> String {
    if page.status == 303 { browser.get(room, page.field("Location")).text() } else { page.text() }
}

#[test]
fn of_two_password_changes_at_once_one_wins() {
    for seed in 41..47 {
        let (mut room, trust) = serving(seed);
        let [mut one, mut other] = [(); 2].map(|()| Browser::new(&trust));
        let forms = [(&mut one, "analytical"), (&mut other, "difference")].map(|(browser, new)| {
            browser.log_in(&mut room, "ada", "lovelace");
            let token = browser.get(&mut room, "/mail/settings").token();
            (browser, token, new)
        });
        for (browser, token, new) in forms {
            let fields = [
                ("token", &*token),
                ("old", "lovelace"),
                ("new", new),
                ("again", new),
                ("do", "password"),
            ];
            browser.begin(&mut room, "/mail/settings", &fields);
        }
        let results = [&mut one, &mut other].map(|browser| {
            let page = browser.finish(&mut room);
            let is_logged_out = asks_for_login(&page);
            let text = outcome(page, browser, &mut room);
            let has_lost = is_logged_out
                || ["is being changed", "was already changed"].iter().any(|why| text.contains(why));
            let has_won = text.contains("Password changed.");
            assert!(has_won != has_lost, "{text}");
            has_won
        });
        let winner = match results {
            [true, false] => "analytical",
            [false, true] => "difference",
            both => panic!("{both:?}"),
        };
        let loser = if winner == "analytical" { "difference" } else { "analytical" };
        assert!(
            accepts_password(&mut room, winner)
                && !accepts_password(&mut room, loser)
                && !accepts_password(&mut room, "lovelace")
        );
    }
}

#[test]
fn change_by_the_old_password_never_undoes_the_operators() {
    let (before, rest) = CONFIGURATION.split_once("password_hash").expect("Ada has a hash");
    let (_, after) = rest.split_once('\n').expect("the line ends");
    let configured = format!("{before}password = \"configured anew\"\n{after}");
    for (number, delay) in [0, 10, 100, 1000].into_iter().enumerate() {
        let seed = 50 + 2 * number as u64;
        let (mut room, trust) = serving(seed);
        let mut ada = Browser::new(&trust);
        ada.log_in(&mut room, "ada", "lovelace");
        let mut room = again(room, seed + 1, &trust, &configured);
        // The disk stores neither change before the other is asked for.
        room.machine.disk.mood = Mood::Waits;
        room.machine.computing = Micros::from_millis(delay);
        forget_connections(&mut [&mut ada]);
        let token = ada.get(&mut room, "/mail/settings").token();
        let new = "analytical";
        let fields = [
            ("token", &*token),
            ("old", "lovelace"),
            ("new", new),
            ("again", new),
            ("do", "password"),
        ];
        ada.begin(&mut room, "/mail/settings", &fields);
        room.pass(Micros::from_secs(20));
        assert!(room.machine.disk.waiting() > 0, "{delay}");
        room.machine.disk.mood = Mood::Works;
        room.machine.computing = Micros(0);
        room.pass(Micros::from_secs(1));
        let page = ada.finish(&mut room);
        assert!(!outcome(page, &mut ada, &mut room).contains("Password changed."), "{delay}");
        assert!(room.console_says("the password of ada@barepost.test was set"), "{delay}");
        assert!(accepts_password(&mut room, "configured anew"), "{delay}");
        assert!(!accepts_password(&mut room, new), "{delay}");
    }
}
