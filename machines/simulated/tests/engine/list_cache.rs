//! The cache of list rows in the webmail: a row is cached until its message or conversation
//! changes.

#![allow(clippy::expect_used, reason = "a test may fail")]

use machine::{Micros, Sector};

use super::room::{DISK_BYTES, Room};
use super::webmail::{Browser, between, message, serving};

/// The rows of the inbox.
fn rows(room: &mut Room, browser: &mut Browser) -> String {
    let list = browser.get(room, "/mail/box/1").text();
    between(&list, "<ul class=\"rows\">", "</ul>").expect("a list").to_string()
}

fn deliver(room: &mut Room, to: &str, octets: &[u8]) {
    assert!(room.deliver(to, octets).starts_with("250"));
}

/// Inverts some bits of every sector. A second call inverts the same bits, so sectors that were not
/// written in between are intact again.
fn flip_all_sectors(room: &mut Room) {
    (0..DISK_BYTES / 512).for_each(|sector| room.machine.disk.spoil(Sector(sector)));
}

#[test]
fn a_repeated_list_is_served_from_the_cache() {
    let (mut room, trust) = serving(30);
    deliver(&mut room, "ada@barepost.test", &message("Engine", "It computes."));
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    deliver(&mut room, "ada@barepost.test", &message("Loom", "It weaves."));
    let first = rows(&mut room, &mut ada);
    assert!(first.contains(">Engine<") && first.contains(">Loom<"), "{first}");
    flip_all_sectors(&mut room);
    assert_eq!(rows(&mut room, &mut ada), first);

    // A row that has changed is not in the cache, so its message must be read.
    let token = ada.get(&mut room, "/mail/compose").token();
    let starred = ada.post(
        &mut room,
        "/mail/act",
        &[("token", &token), ("here", "/mail/box/1"), ("star", "1.1")],
    );
    assert!(
        starred.text().contains("This message cannot be read") && starred.text().contains(">Loom<")
    );
    // The second flip restores the messages.
    flip_all_sectors(&mut room);
    let healed = rows(&mut room, &mut ada);
    assert!(healed.contains(">Engine<") && healed.contains("aria-pressed=\"true\""), "{healed}");
}

#[test]
fn a_cached_row_shows_later_changes() {
    let (mut room, trust) = serving(31);
    deliver(&mut room, "ada@barepost.test", &message("Engine", "It computes."));
    deliver(&mut room, "grace@barepost.test", &message("Loom", "It weaves."));
    let [mut ada, mut grace] = ["ada", "grace"].map(|name| {
        let mut browser = Browser::new(&trust);
        browser.log_in(&mut room, name, "lovelace");
        browser
    });
    let token = ada.get(&mut room, "/mail/compose").token();
    let unread = rows(&mut room, &mut ada);
    assert!(
        unread.contains("class=\"row unread\"") && unread.contains("aria-pressed=\"false\""),
        "{unread}"
    );
    assert!(rows(&mut room, &mut grace).contains(">Loom<"), "each user sees their own list");

    let act = |room: &mut Room, ada: &mut Browser, what: (&str, &str)| {
        ada.post(
            room,
            "/mail/act",
            &[("token", &token), ("here", "/mail/box/1"), ("key", "1.1"), what],
        );
        rows(room, ada)
    };
    let read = act(&mut room, &mut ada, ("do", "read"));
    assert!(read.contains("class=\"row\"") && !read.contains("Unread."), "{read}");
    assert!(act(&mut room, &mut ada, ("star", "1.1")).contains("aria-pressed=\"true\""));
    assert!(act(&mut room, &mut ada, ("star", "1.1")).contains("aria-pressed=\"false\""));
    assert_eq!(act(&mut room, &mut ada, ("do", "unread")), unread);

    let more = "From: b@example.org\r\nMessage-ID: <2@example.org>\r\nReferences: <Engine@example.org>\r\n\r\nMore.\r\n";
    deliver(&mut room, "ada@barepost.test", more.as_bytes());
    assert!(rows(&mut room, &mut ada).contains("class=\"number\">2<"));
    let filed = ada.post(
        &mut room,
        "/mail/act",
        &[("token", &token), ("key", "1.2"), ("do", "trash"), ("here", "/mail/box/1")],
    );
    assert!(filed.text().contains("moved to Trash"));
    assert_eq!(rows(&mut room, &mut ada), unread, "a discarded message does not count");

    let before = between(&unread, "Z\">", "<").expect("a date");
    assert!(before.contains(':'), "{before}");
    ada.hang_up(&mut room);
    room.pass(Micros::from_secs(86_400));
    let after = rows(&mut room, &mut ada);
    let date = between(&after, "Z\">", "<").expect("a date");
    assert!(!date.contains(':'), "a list shows the day of an older message: {date}");
}

#[test]
fn hostile_header_text_is_escaped_once_on_every_view() {
    let (mut room, trust) = serving(32);
    let hostile =
        "From: \"<b>A&amp;'\" <a@example.org>\r\nSubject: <script>\"&lt;'\r\n\r\n</span>&quot;\r\n";
    deliver(&mut room, "ada@barepost.test", hostile.as_bytes());
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    for _ in 0..3 {
        let shown = rows(&mut room, &mut ada);
        for escaped in [
            "&lt;script&gt;&quot;&amp;lt;&#39;",
            "&lt;b&gt;A&amp;amp;&#39;",
            "&lt;/span&gt;&amp;quot;",
        ] {
            assert!(shown.contains(escaped), "{escaped} in {shown}");
        }
        for wrong in
            ["<script>", "<b>", "&amp;amp;lt;", "&amp;amp;amp;", "&amp;amp;quot;", "&amp;lt;script"]
        {
            assert!(!shown.contains(wrong), "{wrong} in {shown}");
        }
    }
    let found = ada.get(&mut room, "/mail/search?q=script").text();
    let found = between(&found, "<ul class=\"rows\">", "</ul>").expect("a list").to_string();
    let found = found.replace("?list=%2Fmail%2Fsearch%3Fq%3Dscript", "");
    assert_eq!(found.trim(), rows(&mut room, &mut ada).trim(), "a search shows the same row");
}
