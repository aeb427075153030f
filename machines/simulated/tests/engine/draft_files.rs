//! Files of drafts: the server saves and sends them with the draft, and the user can remove each.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use super::room::Room;
use super::webmail::{Browser, Page, between, serving};

/// The size of a file in bytes. The store needs several reads for it.
const LARGE: usize = 100_000;

/// Submits a message with files, as a browser without JavaScript does.
fn write(
    room: &mut Room,
    browser: &mut Browser,
    fields: &[(&str, &str)],
    files: &[(&str, &[u8])],
) -> Page {
    let mut body = Vec::new();
    for (name, value) in fields {
        body.extend(
            format!("--=b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
                .bytes(),
        );
    }
    for (name, bytes) in files {
        let head = format!(
            "--=b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"{name}\"\r\nContent-Type: application/pdf\r\n\r\n"
        );
        body.extend([head.as_bytes(), bytes, b"\r\n"].concat());
    }
    body.extend(b"--=b--\r\n");
    let more = "Content-Type: multipart/form-data; boundary=\"=b\"\r\nOrigin: https://mail.barepost.test\r\n";
    browser.ask(room, "POST", "/mail/compose", more, &body)
}

/// Submits a message with files, and follows the redirect. Returns the page.
pub(super) fn kept(
    room: &mut Room,
    browser: &mut Browser,
    fields: &[(&str, &str)],
    files: &[(&str, &[u8])],
) -> String {
    let page = write(room, browser, fields, files);
    assert_eq!(page.status, 303, "{}", page.text());
    browser.get(room, page.field("Location")).text()
}

/// The files that the page's form lists as attached.
pub(super) fn carried(page: &str) -> Vec<&str> {
    page.match_indices("name=\"carry\" value=\"")
        .map(|(at, before)| &page[at + before.len()..])
        .map(|rest| &rest[..rest.find('"').expect("an end")])
        .collect()
}

pub(super) fn draft(page: &str) -> &str {
    between(page, "name=\"draft\" value=\"", "\"").expect("the page has a draft")
}

pub(super) fn large() -> Vec<u8> {
    (0..LARGE).map(|at| (at * 7 % 251) as u8).collect()
}

#[test]
fn files_stay_with_a_draft_until_sent_or_removed() {
    for seed in 0..2 {
        let (mut room, trust) = serving(seed);
        let mut ada = Browser::new(&trust);
        ada.log_in(&mut room, "ada", "lovelace");
        ada.hold(&mut room, "0");
        let token = ada.get(&mut room, "/mail/compose").token();
        let token = ("token", token.as_str());
        let large = large();
        let files: [(&str, &[u8]); 2] = [("large one.pdf", &large), ("small.pdf", b"few bytes")];
        let first = kept(&mut room, &mut ada, &[token, ("text", "First."), ("do", "save")], &files);
        let [one, two] = carried(&first)[..] else { panic!("{first}") };
        assert!(one.ends_with(" large one.pdf") && two.ends_with(" small.pdf"), "{one} {two}");
        // The draft is saved again, with a new file and without one of the first two.
        let again = [
            token,
            ("draft", draft(&first)),
            ("text", "Second."),
            ("carry", one),
            ("carry", two),
            ("do", "save"),
        ];
        let second = kept(&mut room, &mut ada, &again, &[("third.pdf", b"third")]);
        assert!(second.contains("Second.") && carried(&second).len() == 3, "{second}");
        let files = carried(&second);
        let small =
            files.iter().find(|file| file.ends_with(" small.pdf")).expect("the draft has the file");
        let detach = small.split(' ').next().expect("a part and a name");
        let mut fields =
            vec![token, ("draft", draft(&second)), ("text", "Third."), ("detach", detach)];
        fields.extend(files.iter().map(|file| ("carry", *file)));
        let third = kept(&mut room, &mut ada, &fields, &[]);
        let names: Vec<&str> =
            carried(&third).iter().map(|file| file.split_once(' ').expect("a name").1).collect();
        assert!(
            names.len() == 2 && names.contains(&"large one.pdf") && names.contains(&"third.pdf"),
            "{names:?}"
        );
        assert!(ada.get(&mut room, "/mail/box/2").text().contains("1–1 of 1"));

        // The session has ended before the draft is sent. After the next login the draft still has
        // its files.
        let mut fields = vec![
            token,
            ("draft", draft(&third)),
            ("to", "grace@barepost.test"),
            ("subject", "Files"),
            ("text", "Fourth."),
            ("do", "send"),
        ];
        fields.extend(carried(&third).iter().map(|file| ("carry", *file)));
        let cookie = ada.cookie.take();
        let asked = write(&mut room, &mut ada, &fields, &[]).text();
        let waiting = between(&asked, "name=\"kept\" value=\"", "\"")
            .expect("the form keeps the message")
            .replace("&#38;", "&");
        let back = ada
            .send(
                &mut room,
                "/mail/login",
                &[("name", "ada"), ("password", "lovelace"), ("kept", &waiting)],
            )
            .text();
        assert_eq!(carried(&back), carried(&third));
        ada.cookie = cookie;

        let sent = kept(&mut room, &mut ada, &fields, &[]);
        assert!(sent.contains("Message sent."), "{sent}");
        assert!(ada.get(&mut room, "/mail/box/2").text().contains("No messages."));
        let mut grace = Browser::new(&trust);
        grace.log_in(&mut room, "grace", "lovelace");
        let read = grace.get(&mut room, "/mail/box/1/1").text();
        assert!(read.contains("Fourth.") && !read.contains("small.pdf"), "{read}");
        let mut parts: Vec<Vec<u8>> = Vec::new();
        for (at, before) in read.match_indices("href=\"/mail/part/1.1/") {
            let rest = &read[at + before.len()..];
            parts.push(
                grace
                    .get(
                        &mut room,
                        &format!("/mail/part/1.1/{}", &rest[..rest.find('"').expect("an end")]),
                    )
                    .body,
            );
        }
        parts.sort_by_key(Vec::len);
        parts.dedup();
        assert!(
            parts == [b"third".to_vec(), large],
            "{:?}",
            parts.iter().map(Vec::len).collect::<Vec<_>>()
        );
        ada.hang_up(&mut room);
        grace.hang_up(&mut room);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn a_draft_replaced_in_another_window_loses_no_text() {
    let (mut room, trust) = serving(3);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let token = ada.get(&mut room, "/mail/compose").token();
    let token = ("token", token.as_str());
    let first =
        kept(&mut room, &mut ada, &[token, ("text", "First."), ("do", "save")], &[("a.pdf", b"a")]);
    let fields = [
        token,
        ("draft", draft(&first)),
        ("text", "Second."),
        ("carry", carried(&first)[0]),
        ("do", "save"),
    ];
    kept(&mut room, &mut ada, &fields, &[]);
    let late = write(&mut room, &mut ada, &fields, &[]);
    assert_eq!(late.status, 200);
    assert!(
        late.text().contains("This message or folder no longer exists")
            && late.text().contains("Second."),
        "{}",
        late.text()
    );
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

/// A message of a conversation, with a file in base64.
const SENT_ON: &str = "From: Charles <charles@elsewhere.test>\r\nSubject: Plans\r\nMessage-ID: <2@elsewhere.test>\r\nReferences: <1@elsewhere.test>\r\nMIME-Version: 1.0\r\n\
    Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee below.\r\n--b\r\nContent-Type: application/pdf; name=plan.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n\
    ZmV3IGJ5dGVz\r\n--b--\r\n";
/// A message with only an HTML part.
const PAGE: &str = "From: Charles <charles@elsewhere.test>\r\nSubject: Page\r\nMIME-Version: 1.0\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>It <b>weaves</b>.</p>\r\n";

/// A message with an attached message, which has a part of its own.
const ENCLOSING: &str = "From: Charles <charles@elsewhere.test>\r\nSubject: Fwd\r\nMIME-Version: 1.0\r\n\
    Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee below.\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n\
    Subject: Inner\r\nContent-Type: multipart/mixed; boundary=i\r\n\r\n--i\r\n\r\nInner words\r\n--i--\r\n\r\n--b--\r\n";

#[test]
fn a_forwarded_message_is_sent_with_its_files() {
    for (seed, message, name, content, is_kept_before) in [
        (4, SENT_ON, " plan.pdf", "few bytes", false),
        (5, SENT_ON, " plan.pdf", "few bytes", true),
        (6, PAGE, " text.html", "<p>It <b>weaves</b>.</p>", false),
        (
            7,
            ENCLOSING,
            " message.eml",
            "Subject: Inner\r\nContent-Type: multipart/mixed; boundary=i\r\n\r\n--i\r\n\r\nInner words\r\n--i--",
            true,
        ),
    ] {
        let (mut room, trust) = serving(seed);
        let mut ada = Browser::new(&trust);
        assert!(room.deliver("ada@barepost.test", message.as_bytes()).starts_with("250"));
        ada.log_in(&mut room, "ada", "lovelace");
        ada.hold(&mut room, "0");
        let mut page = ada.get(&mut room, "/mail/compose?forward=1.1");
        let token = page.token();
        for what in ["save", "send"].into_iter().skip(usize::from(!is_kept_before)) {
            let text = page.text();
            let [file] = carried(&text)[..] else { panic!("{text}") };
            assert!(file.ends_with(name), "{file}");
            let to = ("to", "grace@barepost.test");
            let fields = [
                ("token", &*token),
                to,
                ("text", "Look."),
                ("draft", draft(&text)),
                ("carry", file),
                ("do", what),
            ];
            let answer = write(&mut room, &mut ada, &fields, &[]);
            assert_eq!(answer.status, 303, "{}", answer.text());
            page = ada.get(&mut room, answer.field("Location"));
        }
        assert!(page.text().contains("Message sent."), "{}", page.text());
        assert!(page.text().contains("1–1 of 1"), "the forwarded message is still in the inbox");
        assert!(ada.get(&mut room, "/mail/box/2").text().contains("No messages."));
        let mut grace = Browser::new(&trust);
        grace.log_in(&mut room, "grace", "lovelace");
        let read = grace.get(&mut room, "/mail/box/1/1").text();
        let part = between(&read, "href=\"/mail/part/1.1/", "\"").expect("a file");
        let body = grace.get(&mut room, &format!("/mail/part/1.1/{part}")).body;
        assert_eq!(String::from_utf8_lossy(&body).trim_end(), content);
        let source = grace.get(&mut room, "/mail/source/1.1").text();
        assert!(!source.contains("References:") && !source.contains("In-Reply-To:"), "{source}");
        ada.hang_up(&mut room);
        grace.hang_up(&mut room);
        room.until_nothing_is_in_use();
    }
}
