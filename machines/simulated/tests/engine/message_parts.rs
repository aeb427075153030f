//! Tests that the webmail shows or lists every part of a message: on its page, on paper, in a reply
//! and in a forwarded message.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use super::room::Room;
use super::webmail::{Browser, between, serving};

/// A small file in base64. Its first bytes are those of a PNG.
const FILE: &str = "iVBORw0KGgoAAAAN";

/// The beginning of a frame, up to the address of its document.
const FRAME: &str = "<iframe class=\"sheet-of-mail\" src=\"";

/// A multipart with these parts.
fn multipart(kind: &str, boundary: &str, parts: &[&str]) -> String {
    let parts: String = parts.iter().map(|part| format!("--{boundary}\r\n{part}\r\n")).collect();
    format!("Content-Type: multipart/{kind}; boundary={boundary}\r\n\r\n{parts}--{boundary}--\r\n")
}

fn part(media_type: &str, words: &str) -> String {
    format!("Content-Type: {media_type}\r\n\r\n{words}")
}

fn image(fields: &str) -> String {
    format!("Content-Type: {fields}\r\nContent-Transfer-Encoding: base64\r\n\r\n{FILE}")
}

/// Delivers a message and returns its UID.
fn deliver(room: &mut Room, uid: &mut u32, message: &str) -> u32 {
    let message = format!("From: x@example.org\r\nSubject: Parts\r\n{message}\r\n");
    assert!(room.deliver("ada@barepost.test", message.as_bytes()).starts_with("250"));
    *uid += 1;
    *uid
}

/// The values between `before` and a quote.
fn all<'a>(page: &'a str, before: &str) -> Vec<&'a str> {
    page.split(before).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// The texts of a message's page: the page itself, and its frames.
fn texts(room: &mut Room, ada: &mut Browser, page: &str) -> Vec<String> {
    let mut texts = Vec::from([page.to_string()]);
    for address in all(page, FRAME) {
        texts.push(ada.get(room, address).text());
    }
    texts
}

/// The names of the attachments that a page lists.
fn listed(page: &str) -> Vec<&str> {
    let items = page.split("<li><a href=\"/mail/part/").skip(1);
    items.filter_map(|item| between(item, "<span dir=\"auto\">", "<")).collect()
}

#[test]
fn every_part_of_a_message_is_shown_or_listed() {
    let (mut room, trust) = serving(81);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let mut uid = 0;
    let [plain, other] = ["first words", "other words"].map(|words| part("text/plain", words));
    let [html, more] =
        ["first page", "more pages"].map(|words| part("text/html", &format!("<p>{words}</p>")));
    let mixed = |parts: &[&str]| multipart("mixed", "m", parts);
    let status = part(
        "message/delivery-status",
        "Reporting-MTA: dns; mx.test\r\n\r\nFinal-Recipient: rfc822; bob@far.test\r\nStatus: 5.1.10",
    );
    let header = part("text/rfc822-headers", "Subject: the failed message");
    let unseen = image("image/png\r\nContent-ID: <unseen@x>");
    let cases: [(&str, String, &[&str], &[&str]); 15] = [
        (
            "two HTML parts",
            mixed(&[&html, &image("application/pdf"), &more]),
            &["first page", "more pages"],
            &["application.pdf"],
        ),
        ("a footer", mixed(&[&html, &other]), &["first page", "other words"], &[]),
        ("an introduction", mixed(&[&plain, &more]), &["first words", "more pages"], &[]),
        (
            "a picture without reference",
            mixed(&[&plain, &unseen]),
            &["first words"],
            &["image.png"],
        ),
        (
            "a picture beside HTML",
            multipart("related", "r", &[&html, &unseen]),
            &["first page"],
            &["image.png"],
        ),
        (
            "empty HTML",
            multipart("alternative", "a", &[&plain, &part("text/html", " ")]),
            &["first words"],
            &[],
        ),
        (
            "an invitation",
            multipart("alternative", "a", &[&plain, &part("text/calendar", "BEGIN:VCALENDAR")]),
            &["first words"],
            &["invite.ics"],
        ),
        ("only a calendar", part("text/calendar", "BEGIN:VCALENDAR"), &[], &["invite.ics"]),
        (
            "other texts",
            mixed(&[&plain, &part("text/x-patch", "+a line"), &part("text/markdown", "# A title")]),
            &["first words", "+a line", "# A title"],
            &[],
        ),
        ("enriched text", part("text/enriched", "<bold>rich</bold>"), &["&lt;bold&gt;rich"], &[]),
        (
            "a report",
            multipart("report", "r", &[&plain, &status, &header]),
            &["Status: 5.1.10", "the failed message"],
            &[],
        ),
        (
            "a named body",
            mixed(&[
                &part(
                    "text/html; name=order.htm\r\nContent-Disposition: inline",
                    "<p>order 4711</p>",
                ),
                &unseen,
            ]),
            &["order 4711"],
            &["order.htm", "image.png"],
        ),
        (
            "no boundary",
            "Content-Type: multipart/mixed\r\n\r\n--b\r\n\r\nstill readable".into(),
            &["still readable", "damaged"],
            &["multipart.mixed"],
        ),
        (
            "an empty boundary",
            "Content-Type: multipart/mixed; boundary=\"\"\r\n\r\n--\r\n\r\nstill readable".into(),
            &["still readable", "damaged"],
            &["multipart.mixed"],
        ),
        (
            "no parts",
            "Content-Type: multipart/mixed; boundary=b\r\n\r\nonly a preamble".into(),
            &["only a preamble", "damaged"],
            &["multipart.mixed"],
        ),
    ];
    for (name, message, words, files) in cases {
        let uid = deliver(&mut room, &mut uid, &message);
        let page = ada.get(&mut room, &format!("/mail/box/1/{uid}")).text();
        let texts = texts(&mut room, &mut ada, &page);
        for word in words {
            assert!(texts.iter().any(|text| text.contains(word)), "{name}: {word}: {texts:?}");
        }
        assert_eq!(listed(&page), files, "{name}");
        for address in all(&page, "<li><a href=\"") {
            assert_eq!(ada.get(&mut room, address).status, 200, "{name}: {address}");
        }
        // A printed message has the same words and files.
        let paper = ada.get(&mut room, &format!("/mail/print/1.{uid}")).text();
        assert_eq!(all(&paper, FRAME), all(&page, FRAME), "{name}");
        assert_eq!(paper.matches("<li dir=\"auto\">").count(), files.len(), "{name}: {paper}");
        for word in words.iter().filter(|word| page.contains(**word)) {
            assert!(paper.contains(word), "{name}: {word}: {paper}");
        }
        // A reply quotes all words, and a forwarded message also has the files.
        let reply = ada.get(&mut room, &format!("/mail/compose?reply=1.{uid}")).text();
        let forward = ada.get(&mut room, &format!("/mail/compose?forward=1.{uid}")).text();
        for word in words.iter().filter(|word| !word.contains("damaged")) {
            let word = word.replace("&lt;", "&#60;").replace("&gt;", "&#62;");
            assert!(reply.contains(&word) && forward.contains(&word), "{name}: {word}: {reply}");
        }
        let carried = all(&forward, "name=\"carry\" value=\"");
        for file in files {
            assert!(carried.iter().any(|carried| carried.ends_with(file)), "{name}: {carried:?}");
        }
    }
}

#[test]
fn drawn_images_are_not_attachments_but_are_forwarded() {
    let (mut room, trust) = serving(82);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let html =
        "<p>Look</p><img src=\"cid:one@x\"><img src=\"cid:my%20photo\"><img src=\"cid:raw\">";
    let message = multipart(
        "related",
        "r",
        &[
            &part("text/html", html),
            &image("image/jpg; name=one.jpg\r\nContent-ID: <one@x>"),
            &image("image/x-png\r\nContent-ID: <my photo>"),
            &image("image/heic; name=raw.heic\r\nContent-ID: <raw>"),
            &image("image/png; name=other.png\r\nContent-ID: <other>"),
            &image("image/png; name=other.png"),
        ],
    );
    let uid = deliver(&mut room, &mut 0, &message);
    let page = ada.get(&mut room, &format!("/mail/box/1/{uid}")).text();
    assert_eq!(listed(&page), ["raw.heic", "other.png", "other (2).png"]);
    assert_eq!(page.matches("<span class=\"size\">12 bytes</span>").count(), 3, "{page}");
    let document = ada.get(&mut room, &format!("/mail/html/1.{uid}/1")).text();
    assert!(document.contains(&format!("data:image/jpeg;base64,{FILE}")), "{document}");
    assert!(document.contains(&format!("data:image/png;base64,{FILE}")), "{document}");
    let forward = ada.get(&mut room, &format!("/mail/compose?forward=1.{uid}")).text();
    let carried = all(&forward, "name=\"carry\" value=\"");
    assert_eq!(carried.len(), 6, "{carried:?}");
    assert!(forward.contains("\nLook"), "{forward}");
}

#[test]
fn large_html_beyond_the_space_of_a_page_is_listed() {
    let (mut room, trust) = serving(83);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let pages: Vec<String> = (0..4)
        .map(|number| {
            part("text/html", &format!("<p>page {number}</p>{}", "<b>x</b>\r\n".repeat(9_500)))
        })
        .collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let uid = deliver(&mut room, &mut 0, &multipart("mixed", "m", &pages));
    let page = ada.get(&mut room, &format!("/mail/box/1/{uid}")).text();
    assert_eq!(page.matches("<iframe").count() + listed(&page).len(), 4);
    assert!(page.contains("text (4).html"), "{page}");
}

#[test]
fn each_html_part_is_a_document_in_a_sandbox() {
    let (mut room, trust) = serving(88);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let html = part("text/html", "<p>Look</p><img src=https://spy.test/a>");
    let message = multipart("mixed", "m", &[&html, &part("text/plain", "hi"), &html]);
    let uid = deliver(&mut room, &mut 0, &message);
    let page = ada.get(&mut room, &format!("/mail/box/1/{uid}"));
    let text = page.text();
    let shown = all(&text, FRAME);
    assert_eq!(shown, ["/mail/html/1.1/1", "/mail/html/1.1/3"]);
    let whole = shown.iter().map(|address| address.replace("html", "whole"));
    let documents: Vec<String> =
        shown.iter().map(|address| address.to_string()).chain(whole).collect();
    let loading = [
        "style-src 'unsafe-inline'; img-src data:",
        "style-src 'unsafe-inline' https:; font-src https: data:; img-src https: http: data:",
    ];
    for (is_loaded, sources) in loading.into_iter().enumerate() {
        if is_loaded == 1 {
            let token = page.token();
            let form =
                [("token", &*token), ("key", "1.1"), ("here", "/mail/box/1"), ("do", "once")];
            assert_eq!(ada.post(&mut room, "/mail/show", &form).status, 200);
        }
        let policy = format!(
            "sandbox allow-same-origin allow-popups allow-popups-to-escape-sandbox; \
             default-src 'none'; {sources}; \
             form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
        );
        for address in &documents {
            let document = ada.get(&mut room, address);
            assert_eq!(document.field("Content-Security-Policy"), policy, "{address}");
            assert_eq!(document.field("X-Content-Type-Options"), "nosniff", "{address}");
            assert!(document.text().contains("<base target=\"_blank\">"), "{address}");
        }
    }
    let file = ada.get(&mut room, "/mail/part/1.1/1");
    assert!(file.field("Content-Disposition").starts_with("attachment"), "a file is not shown");
}

#[test]
fn a_page_has_few_frames_and_lists_the_other_html() {
    let (mut room, trust) = serving(85);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let pages: Vec<String> =
        (0..40).map(|number| part("text/html", &format!("<p>page {number}</p>"))).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let uid = deliver(&mut room, &mut 0, &multipart("mixed", "m", &pages));
    let page = ada.get(&mut room, &format!("/mail/box/1/{uid}")).text();
    assert_eq!((page.matches("<iframe").count(), listed(&page).len()), (16, 24));
}

#[test]
fn a_text_that_a_forward_cannot_quote_is_its_file() {
    let (mut room, trust) = serving(87);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let mut uid = 0;
    for (lines, files) in [(10, 0), (9_000, 1)] {
        let text = part("text/plain", &"A line of thirty-two characters.\r\n".repeat(lines));
        let uid = deliver(&mut room, &mut uid, &text);
        let forward = ada.get(&mut room, &format!("/mail/compose?forward=1.{uid}")).text();
        let carried = all(&forward, "name=\"carry\" value=\"");
        assert_eq!(carried.len(), files, "{lines} lines: {carried:?}");
    }
}

#[test]
fn an_image_of_a_blank_page_is_listed() {
    let (mut room, trust) = serving(86);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let html = part("text/html", "<body background=\"cid:a\"></body>");
    let picture = image("image/png; name=a.png\r\nContent-ID: <a>");
    let inner = multipart("related", "r", &[&html, &picture]);
    let message = multipart("mixed", "m", &[&part("text/plain", "hi"), &inner]);
    let uid = deliver(&mut room, &mut 0, &message);
    let page = ada.get(&mut room, &format!("/mail/box/1/{uid}")).text();
    assert_eq!(listed(&page), ["a.png"], "{page}");
}

#[test]
fn headers_are_shown_as_their_senders_mean_them() {
    let (mut room, trust) = serving(84);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let koi8 = b"From: \xe1\xc4\xc1 <x@example.org>\r\nSubject: \xeb\xd5\xd0\xc9\r\nContent-Type: text/plain; charset=koi8-r\r\n\r\n\xf0\xd2\xc9\r\n";
    let gateway = "From: Ada <x@example.org>\r\nthis line is of a gateway\r\nSubject: Купи\r\nContent-Type: text/html charset=utf-8\r\n\r\n<p>При</p>\r\n";
    let marked = "\u{feff}From: Ада <x@example.org>\r\nSubject: Купи\r\n\r\nПри\r\n";
    for (uid, message) in [&koi8[..], gateway.as_bytes(), marked.as_bytes()].into_iter().enumerate()
    {
        assert!(room.deliver("ada@barepost.test", message).starts_with("250"));
        let page = ada.get(&mut room, &format!("/mail/box/1/{}", uid + 1)).text();
        assert!(page.contains("Купи</h1>"), "{uid}: {page}");
        let texts = texts(&mut room, &mut ada, &page);
        assert!(texts.iter().any(|text| text.contains("При")), "{uid}: {texts:?}");
        assert!(ada.get(&mut room, "/mail/box/1").text().contains("Купи"));
    }
}
