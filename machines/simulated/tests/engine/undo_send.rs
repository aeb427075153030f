//! Held messages until they leave. A message is undone or delivered, never both, and each recipient
//! gets it once. This holds at any power cut, with the accounts on any cores.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;
use simulated::Cable;
use simulated::room::messages_on;

use super::draft_files::kept;
use super::room::tls_stream::Trust;
use super::room::{CONFIGURATION, Room};
use super::settings::{again, forget_connections};
use super::webmail::{Browser, between, serving};

/// The number of copies of one message, by place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Copies {
    at_grace: usize,
    at_ada: usize,
    in_sent: usize,
    in_drafts: usize,
}

pub(super) const DELIVERED: Copies = Copies { at_grace: 1, at_ada: 1, in_sent: 1, in_drafts: 0 };
pub(super) const NOT_SENT: Copies = Copies { at_grace: 0, at_ada: 0, in_sent: 0, in_drafts: 1 };

/// Two logged-in users.
pub(super) struct People {
    pub(super) ada: Browser,
    pub(super) grace: Browser,
    /// The token of the first user's forms.
    pub(super) token: String,
}

impl People {
    pub(super) fn logged_in(room: &mut Room, trust: &Trust) -> People {
        let [mut ada, mut grace] = [(); 2].map(|()| Browser::new(trust));
        ada.log_in(room, "ada", "lovelace");
        grace.log_in(room, "grace", "lovelace");
        let token = ada.get(room, "/mail/compose").token();
        People { ada, grace, token }
    }

    /// Sends a message to both users. Returns the key that undoes the send.
    fn send(&mut self, room: &mut Room, draft: &str, text: &str) -> String {
        self.send_with(room, draft, text, &[], &[])
    }

    /// Like [`People::send`], with files. `carried`: the draft's files that stay attached.
    pub(super) fn send_with(
        &mut self,
        room: &mut Room,
        draft: &str,
        text: &str,
        carried: &[&str],
        files: &[(&str, &[u8])],
    ) -> String {
        let mut form = vec![
            ("token", self.token.as_str()),
            ("draft", draft),
            ("to", "Grace <grace@barepost.test>, countess@barepost.test"),
            ("bcc", "ada@barepost.test"),
            ("subject", "Held"),
            ("text", text),
            ("do", "send"),
        ];
        form.extend(carried.iter().map(|file| ("carry", *file)));
        let page = kept(room, &mut self.ada, &form, files);
        assert!(page.contains("Sending…") && page.contains("data-seconds=\"10\""), "{page}");
        between(&page, "name=\"what\" value=\"", "\"").expect("the page has an undo").to_string()
    }

    pub(super) fn undo(&mut self, room: &mut Room, what: &str) -> String {
        self.ada.post(room, "/mail/undo", &[("token", &self.token), ("what", what)]).text()
    }

    pub(super) fn copies(&mut self, room: &mut Room) -> Copies {
        let count = |browser: &mut Browser, room: &mut Room, mailbox| {
            let list = browser.get(room, &format!("/mail/box/{mailbox}"));
            assert_eq!(list.status, 200);
            // The copies of one message are one conversation, and so one row. So the number of
            // messages in the mailbox is read instead.
            let text = list.text();
            assert_eq!(
                text.contains("<span class=\"subject\">Held</span>"),
                text.contains("class=\"rows\"")
            );
            let extent = between(&text, "<div class=\"pages\">", "</span>")
                .expect("a list says how long it is");
            extent.rsplit_once(" of ").map_or(0, |(_, all)| all.parse().expect("a number"))
        };
        Copies {
            at_grace: count(&mut self.grace, room, 1),
            at_ada: count(&mut self.ada, room, 1),
            in_sent: count(&mut self.ada, room, 3),
            in_drafts: count(&mut self.ada, room, 2),
        }
    }

    /// Closes both connections, and lets time pass.
    pub(super) fn wait(&mut self, room: &mut Room, seconds: u64) {
        self.ada.hang_up(room);
        self.grace.hang_up(room);
        room.pass(Micros::from_secs(seconds));
    }

    pub(super) fn after_power_cut(&mut self, room: Room, seed: u64, trust: &Trust) -> Room {
        let room = again(room, seed, trust, CONFIGURATION);
        forget_connections(&mut [&mut self.ada, &mut self.grace]);
        room
    }
}

/// A client that does not acknowledge keeps the stopping machine running until after the end of the
/// hold.
#[test]
fn no_message_begins_to_leave_while_the_machine_stops() {
    let (mut room, trust) = serving(312);
    let mut people = People::logged_in(&mut room, &trust);
    people.send(&mut room, "", "It computes.");
    let held_at = room.machine.now;
    people.wait(&mut room, 7);
    let host = room.add_host();
    let mut talk = room.connect_from(host, 25);
    room.smtp_reply(&mut talk);
    room.hosts[host].cable = Cable::Out;
    room.machine.stop = true;
    room.until("the machine has stopped", |room| room.ended.is_some());
    assert!(room.machine.now.since(held_at).as_secs() > 11);
    assert_eq!(messages_on(&room.machine.disk, "grace@barepost.test").len(), 0);
    let mut room = people.after_power_cut(room, 312, &trust);
    room.pass(Micros::from_secs(15));
    assert_eq!(people.copies(&mut room), DELIVERED);
}

/// The server marks a message as answered when the reply has left, and does not if the reply was
/// undone.
#[test]
fn a_message_is_marked_answered_when_the_reply_leaves() {
    let (mut room, trust) = serving(310);
    let mut people = People::logged_in(&mut room, &trust);
    people.grace.hold(&mut room, "0");
    let token = people.grace.get(&mut room, "/mail/compose").token();
    let question = [
        ("token", token.as_str()),
        ("to", "ada@barepost.test"),
        ("subject", "Engine"),
        ("text", "?"),
        ("do", "send"),
    ];
    assert!(
        people.grace.post(&mut room, "/mail/compose", &question).text().contains("Message sent.")
    );
    let is_marked = |people: &mut People, room: &mut Room| {
        let list = people.ada.get(room, "/mail/box/1").text();
        assert!(list.contains("<span class=\"subject\">Engine</span>"), "{list}");
        list.contains("title=\"Replied\"")
    };
    let answer = |people: &mut People, room: &mut Room| {
        let token = people.token.clone();
        let form = [
            ("token", token.as_str()),
            ("answers", "1.1"),
            ("to", "grace@barepost.test"),
            ("text", "!"),
            ("do", "send"),
        ];
        let page = people.ada.post(room, "/mail/compose", &form).text();
        between(&page, "name=\"what\" value=\"", "\"").expect("the page has an undo").to_string()
    };
    let what = answer(&mut people, &mut room);
    people.undo(&mut room, &what);
    room.pass(Micros::from_secs(15));
    assert!(!is_marked(&mut people, &mut room), "the send was undone");
    answer(&mut people, &mut room);
    assert!(!is_marked(&mut people, &mut room), "the send can be undone");
    room.pass(Micros::from_secs(15));
    assert!(is_marked(&mut people, &mut room), "the message has left");
}

/// The original is marked even if the send was undone and the draft was saved in between.
#[test]
fn a_reply_sent_again_after_an_undo_marks_the_original() {
    let (mut room, trust) = serving(311);
    let mut people = People::logged_in(&mut room, &trust);
    people.grace.hold(&mut room, "0");
    let token = people.grace.get(&mut room, "/mail/compose").token();
    let question =
        [("token", token.as_str()), ("to", "ada@barepost.test"), ("text", "?"), ("do", "send")];
    assert!(
        people.grace.post(&mut room, "/mail/compose", &question).text().contains("Message sent.")
    );
    let asked = people.ada.get(&mut room, "/mail/download/1.1").text();
    let identifier =
        between(&asked, "Message-ID: ", "\r\n").expect("the message has a Message-ID").to_string();
    let written =
        |people: &mut People, room: &mut Room, [draft, answers]: [&str; 2], deed: &str| {
            let token = people.token.clone();
            let form = [
                ("token", token.as_str()),
                ("draft", draft),
                ("answers", answers),
                ("to", "grace@barepost.test"),
                ("text", "!"),
                ("do", deed),
            ];
            people.ada.post(room, "/mail/compose", &form).text()
        };
    let page = written(&mut people, &mut room, ["", "1.1"], "send");
    let what =
        between(&page, "name=\"what\" value=\"", "\"").expect("the page has an undo").to_string();
    let page = people.undo(&mut room, &what);
    let hidden = |page: &str| {
        ["draft", "answers"].map(|name| {
            between(page, &format!("name=\"{name}\" value=\""), "\"").unwrap().to_string()
        })
    };
    let [draft, answers] = hidden(&page);
    assert_eq!((draft.as_str(), answers.as_str()), ("2.1", "1.1"));
    let page = written(&mut people, &mut room, [&draft, &answers], "save");
    let [draft, answers] = hidden(&page);
    assert_eq!((draft.as_str(), answers.as_str()), ("2.2", "1.1"));
    written(&mut people, &mut room, [&draft, &answers], "send");
    assert!(
        !people.ada.get(&mut room, "/mail/box/1").text().contains("title=\"Replied\""),
        "the send can be undone"
    );
    room.pass(Micros::from_secs(15));
    assert!(
        people.ada.get(&mut room, "/mail/box/1").text().contains("title=\"Replied\""),
        "the message has left"
    );
    let sent = people.ada.get(&mut room, "/mail/download/3.1").text();
    assert!(sent.contains(&format!("In-Reply-To: {identifier}\r\n")), "{sent}");
}

/// No other account has any part of a held message until it leaves. Then every recipient has all of
/// it.
#[test]
fn a_sent_message_is_held_for_ten_seconds() {
    let (mut room, trust) = serving(300);
    let mut people = People::logged_in(&mut room, &trust);
    let long = "It computes, and computes again.\n".repeat(3000);
    let undo = people.send(&mut room, "", &long);
    assert_eq!(people.copies(&mut room), NOT_SENT);
    assert!(people.ada.get(&mut room, "/mail/box/2").text().contains("Sending…"));
    room.pass(Micros::from_secs(9));
    assert_eq!(people.copies(&mut room), NOT_SENT);
    room.pass(Micros::from_secs(3));
    assert_eq!(people.copies(&mut room), DELIVERED);
    let source = people.grace.get(&mut room, "/mail/source/1.1").text();
    assert!(
        source.contains("To: Grace ") && !source.contains("Bcc") && source.contains("From: ada@"),
        "{source}"
    );
    assert!(people.grace.get(&mut room, "/mail/download/1.1").body.len() > 90_000);
    assert!(
        people.ada.get(&mut room, "/mail/source/3.1").text().contains("Bcc: ada@barepost.test")
    );
    let late = people.undo(&mut room, &undo);
    assert!(late.contains("Too late to undo"), "{late}");
    assert_eq!(people.copies(&mut room), DELIVERED);
    people.wait(&mut room, 200);
    assert_eq!(people.copies(&mut room), DELIVERED);
    people.ada.hang_up(&mut room);
    people.grace.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

#[test]
fn an_undone_send_is_a_draft_again_and_does_not_leave() {
    let (mut room, trust) = serving(301);
    let mut people = People::logged_in(&mut room, &trust);
    let undo = people.send(&mut room, "", "All is well.");
    let held = people.ada.get(&mut room, "/mail/compose?draft=2.1");
    assert_eq!(held.status, 303);
    let drafts = held.field("Location").to_string();
    assert!(drafts.starts_with("/mail/box/2?"), "{drafts}");
    assert!(
        people.ada.get(&mut room, &drafts).text().contains(&undo),
        "the list of drafts has the undo"
    );
    let back = people.undo(&mut room, &undo);
    for words in [
        "Sending undone. The message is back in Drafts.",
        "value=\"&#34;Grace&#34; &#60;grace@barepost.test&#62;, countess@barepost.test\"",
        "name=\"bcc\" value=\"ada@barepost.test\"",
        "value=\"Held\"",
        "All is well.",
        "name=\"draft\" value=\"2.1\"",
    ] {
        assert!(back.contains(words), "{words}: {back}");
    }
    assert!(
        people.undo(&mut room, &undo).contains("Sending undone."),
        "a second undo has no effect"
    );
    people.wait(&mut room, 100);
    assert_eq!(people.copies(&mut room), NOT_SENT);
    let mut room = people.after_power_cut(room, 302, &trust);
    people.wait(&mut room, 100);
    assert_eq!(people.copies(&mut room), NOT_SENT);
    people.send(&mut room, "2.1", "All is better.");
    assert_eq!(people.copies(&mut room), NOT_SENT, "the draft has become the held message");
    room.pass(Micros::from_secs(12));
    assert_eq!(people.copies(&mut room), DELIVERED);
    assert!(people.grace.get(&mut room, "/mail/box/1/1").text().contains("All is better."));
}

/// Other actions on drafts do not change a held message.
#[test]
fn only_an_undo_changes_a_held_message() {
    let (mut room, trust) = serving(303);
    let mut people = People::logged_in(&mut room, &trust);
    people.send(&mut room, "", "All is well.");
    for what in ["trash", "archive", "erase", "unread"] {
        let form = [
            ("token", people.token.as_str()),
            ("here", "/mail/box/2"),
            ("key", "2.1"),
            ("do", what),
        ];
        people.ada.post(&mut room, "/mail/act", &form);
    }
    let form = [("token", people.token.as_str()), ("here", "/mail/box/2"), ("star", "2.1")];
    people.ada.post(&mut room, "/mail/act", &form);
    let form = [("token", people.token.as_str()), ("draft", "2.1"), ("do", "discard")];
    people.ada.post(&mut room, "/mail/compose", &form);
    assert_eq!(people.copies(&mut room), NOT_SENT);
    room.pass(Micros::from_secs(12));
    assert_eq!(people.copies(&mut room), DELIVERED);
}

/// The store cannot remove the draft, and the page says so.
#[test]
fn a_draft_that_is_not_discarded_is_reported() {
    let (mut room, trust) = serving(308);
    let mut people = People::logged_in(&mut room, &trust);
    let draft = [("token", people.token.as_str()), ("text", "Words."), ("do", "save")];
    people.ada.post(&mut room, "/mail/compose", &draft);
    room.machine.disk.mood = simulated::Mood::FailsWrites;
    let form = [("token", people.token.as_str()), ("draft", "2.1"), ("do", "discard")];
    for _ in 0..2 {
        let page = people.ada.send(&mut room, "/mail/compose", &form).text();
        assert!(page.contains("disk has failed"), "{page}");
    }
    people.ada.hang_up(&mut room);
    room.machine.disk.mood = simulated::Mood::Works;
    room.pass(Micros::from_secs(120));
    assert!(people.ada.get(&mut room, "/mail/box/2").text().contains("class=\"rows\""));
    let page = people.ada.post(&mut room, "/mail/compose", &form).text();
    assert!(page.contains("discarded"), "{page}");
}

/// The server refuses an unknown recipient before it holds the message. For a user without a hold,
/// the message leaves at once.
#[test]
fn unknown_recipients_are_refused_before_the_hold() {
    let (mut room, trust) = serving(304);
    let mut people = People::logged_in(&mut room, &trust);
    for (address, why) in [
        ("bob@barepost.test", "There is no account “bob@barepost.test”."),
        ("bob@[203.0.113.9]", "“bob@[203.0.113.9]” isn’t a valid email address."),
        ("bob@far", "“bob@far” isn’t a valid email address."),
    ] {
        let message =
            [("token", people.token.as_str()), ("to", address), ("text", "x"), ("do", "send")];
        let refused = people.ada.send(&mut room, "/mail/compose", &message).text();
        assert!(refused.contains(why), "{refused}");
    }
    let name = "x".repeat(40_000);
    let long = [
        ("token", people.token.as_str()),
        ("to", "grace@barepost.test"),
        ("subject", &name),
        ("text", "kept"),
        ("do", "send"),
    ];
    let refused = people.ada.send(&mut room, "/mail/compose", &long).text();
    assert!(refused.contains("are too long. Shorten them") && refused.contains("kept"));
    let chosen = [("token", people.token.as_str()), ("hold", "30"), ("do", "save")];
    let settings = people.ada.post(&mut room, "/mail/settings", &chosen).text();
    assert!(settings.contains("value=\"30\" selected"), "{settings}");
    let token = people.token.clone();
    let message = [
        ("token", token.as_str()),
        ("to", "grace+held@barepost.test, ada@barepost.test"),
        ("subject", "Held"),
        ("do", "send"),
    ];
    assert!(
        people
            .ada
            .post(&mut room, "/mail/compose", &message)
            .text()
            .contains("data-seconds=\"30\"")
    );
    room.pass(Micros::from_secs(29));
    assert_eq!(people.copies(&mut room), NOT_SENT);
    room.pass(Micros::from_secs(3));
    assert_eq!(people.copies(&mut room), DELIVERED);
    people.ada.post(
        &mut room,
        "/mail/settings",
        &[("token", &people.token), ("hold", "0"), ("do", "save")],
    );
    assert!(people.ada.post(&mut room, "/mail/compose", &message).text().contains("Message sent."));
    assert_eq!(
        people.copies(&mut room),
        Copies { at_grace: 2, at_ada: 2, in_sent: 2, in_drafts: 0 }
    );
}

/// Runs the same scenario repeatedly, with the power cut one step later each time, from the hold
/// until every recipient has the message. Each recipient gets it exactly once.
#[test]
fn a_held_message_is_delivered_once_at_any_power_cut() {
    let mut ends = Vec::new();
    for seed in [310, 311] {
        let mut steps = 0;
        loop {
            let (mut room, trust) = serving(seed);
            let mut people = People::logged_in(&mut room, &trust);
            people.send(
                &mut room,
                "",
                &"It computes.\n".repeat(if seed == 310 { 5 } else { 4000 }),
            );
            room.pass(Micros::from_secs(8));
            (0..steps).for_each(|_| room.step());
            let is_over = room.machine.now.0 > 15_000_000 && people.copies(&mut room) == DELIVERED;
            let mut room = people.after_power_cut(room, 1000 + steps, &trust);
            ends.push(people.copies(&mut room));
            // The power is cut again while the machine completes the work after the first power
            // cut.
            (0..steps % 7 * 5).for_each(|_| room.step());
            let mut room = people.after_power_cut(room, 2000 + steps, &trust);
            people.wait(&mut room, 40);
            assert_eq!(
                people.copies(&mut room),
                DELIVERED,
                "cut {steps} steps after it was held, in {seed}"
            );
            people.wait(&mut room, 100);
            assert_eq!(people.copies(&mut room), DELIVERED);
            if is_over {
                break;
            }
            steps += 1 + steps / 60;
        }
    }
    for end in [NOT_SENT, DELIVERED] {
        assert!(ends.contains(&end), "{end:?} in {ends:?}");
    }
}

/// The power fails during an undo. The message is a draft, or it leaves. If the server has
/// confirmed the undo, it is a draft.
#[test]
fn a_power_cut_during_an_undo_leaves_a_draft_or_a_delivery() {
    let mut ends = Vec::new();
    for (seed, waits) in [(320, 9_000), (321, 10_600), (321, 10_950)] {
        for steps in 0..24 {
            let (mut room, trust) = serving(seed);
            let mut people = People::logged_in(&mut room, &trust);
            let undo = people.send(&mut room, "", "All is well.");
            room.pass(Micros::from_millis(waits));
            people.ada.begin(&mut room, "/mail/undo", &[("token", &people.token), ("what", &undo)]);
            (0..steps).for_each(|_| room.step());
            let mut room = people.after_power_cut(room, 3000 + steps, &trust);
            people.wait(&mut room, 40);
            let end = people.copies(&mut room);
            assert!(end == NOT_SENT || end == DELIVERED, "{end:?} {steps} steps after {waits} ms");
            ends.push(end);
        }
    }
    assert!(ends.contains(&NOT_SENT) && ends.contains(&DELIVERED), "{ends:?}");
}

#[test]
fn a_confirmed_undo_survives_a_power_cut() {
    for steps in 0..12 {
        let (mut room, trust) = serving(330);
        let mut people = People::logged_in(&mut room, &trust);
        let undo = people.send(&mut room, "", "All is well.");
        room.pass(Micros::from_secs(9));
        assert!(people.undo(&mut room, &undo).contains("Sending undone."));
        (0..steps).for_each(|_| room.step());
        let mut room = people.after_power_cut(room, 3000 + steps, &trust);
        people.wait(&mut room, 40);
        assert_eq!(people.copies(&mut room), NOT_SENT);
    }
}
