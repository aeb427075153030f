//! Downloads from the webmail: the server sends them while it reads them, with the connection and
//! the mail on any cores.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use base64ct::{Base64, Encoding};

use super::room::Room;
use super::room::tls_stream::TlsStream;
use super::webmail::{Browser, chunk, head, serving};

/// The bytes of one attachment. In base64 the attachment is a third longer.
const FILE_BYTES: usize = 700_000;

/// The beginning of the text that the webmail adds to the end of an HTML document. Its style
/// follows.
const LINKS_OPEN_OUTSIDE: &str = "<base target=\"_blank\">";

/// The most bytes of a core's memory that a download may hold.
const HELD_BYTES_MAX: usize = 64 * 1024;

fn file() -> Vec<u8> {
    (0..FILE_BYTES).map(|at| ((at * at) >> 7) as u8).collect()
}

/// A message with the file [`file`] as an attachment.
fn message() -> Vec<u8> {
    let encoded = Base64::encode_string(&file());
    let lines: Vec<&str> = encoded
        .as_bytes()
        .chunks(76)
        .map(|line| core::str::from_utf8(line).expect("text"))
        .collect();
    format!(
        "From: x@example.org\r\nSubject: Large\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee.\r\n--b\r\nContent-Type: image/png\r\nContent-Disposition: attachment; filename=\"large.png\"\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n--b--\r\n",
        lines.join("\r\n")
    )
    .into_bytes()
}

/// Sends a request on a new connection of the browser, and reads only the head of the response.
pub(super) fn begin(
    room: &mut Room,
    browser: &Browser,
    path: &str,
) -> (TlsStream, super::webmail::Page) {
    let mut tls_stream = room.connect_tls(443, &browser.settings);
    let cookie = browser.cookie.as_ref().expect("a ticket");
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: mail.barepost.test\r\nCookie: {cookie}\r\n\r\n");
    room.send_tls(&mut tls_stream, request.as_bytes());
    let head = head(room, &mut tls_stream);
    (tls_stream, head)
}

fn logged_in(seed: u64) -> (Room, Browser) {
    let (mut room, trust) = serving(seed);
    assert!(room.deliver("ada@barepost.test", &message()).starts_with("250"));
    let mut browser = Browser::new(&trust);
    browser.log_in(&mut room, "ada", "lovelace");
    (room, browser)
}

#[test]
fn large_downloads_arrive_whole_in_pieces() {
    for seed in 0..2 {
        let (mut room, mut browser) = logged_in(seed);
        let whole = browser.get(&mut room, "/mail/download/1.1");
        assert!(whole.body.ends_with(&message()), "{} bytes", whole.body.len());
        assert_eq!(whole.field("Content-Length"), whole.body.len().to_string());
        let part = browser.get(&mut room, "/mail/part/1.1/2");
        assert!(part.body == file() && part.field("Transfer-Encoding") == "chunked");
        assert!(
            part.field("Content-Disposition").starts_with("attachment; filename=\"large.png\"")
        );
        assert_eq!(
            browser.get(&mut room, "/mail/box/1").status,
            200,
            "the connection can still be used"
        );
        browser.hang_up(&mut room);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn an_unread_download_holds_one_piece() {
    for seed in 0..2 {
        let (mut room, mut browser) = logged_in(seed);
        browser.hang_up(&mut room);
        let (tls_stream, head) = begin(&mut room, &browser, "/mail/part/1.1/2");
        assert_eq!(head.status, 200);
        room.pass(machine::Micros::from_secs(5));
        let in_use = room.engines.in_use();
        assert!(
            in_use.webmail_requests == 1 && (1..HELD_BYTES_MAX).contains(&in_use.bodies),
            "{in_use:?}"
        );
        room.abort(&tls_stream.talk);
        room.until_nothing_is_in_use();

        let (mut tls_stream, _) = begin(&mut room, &browser, "/mail/part/1.1/2");
        let mut taken = Vec::new();
        for _ in 0..5 {
            taken.extend(chunk(&mut room, &mut tls_stream));
        }
        assert!(file().starts_with(&taken));
        room.close_tls(tls_stream);
        room.until_nothing_is_in_use();

        // The server closes a connection if its client neither sends nor reads for a minute.
        let (tls_stream, _) = begin(&mut room, &browser, "/mail/part/1.1/2");
        room.pass(machine::Micros::from_secs(70));
        assert_eq!(room.engines.in_use().webmail_requests, 0);
        room.abort(&tls_stream.talk);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn a_download_is_cut_off_when_its_session_ends() {
    let (mut room, mut browser) = logged_in(3);
    let (mut tls_stream, _) = begin(&mut room, &browser, "/mail/part/1.1/2");
    let token = browser.get(&mut room, "/mail/box/1").token();
    browser.send(&mut room, "/mail/logout", &[("token", &token)]);
    room.until_tls(&mut tls_stream, "the download has ended", |tls_stream| tls_stream.is_closed);
    assert!(
        !tls_stream.heard.ends_with(b"0\r\n\r\n") && tls_stream.heard.len() < FILE_BYTES,
        "{}",
        tls_stream.heard.len()
    );
    room.close_tls(tls_stream);
    browser.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

#[test]
fn downloads_per_account_are_limited_and_pages_still_answered() {
    let (mut room, mut browser) = logged_in(4);
    let mut begun: Vec<TlsStream> =
        (0..8).map(|_| begin(&mut room, &browser, "/mail/download/1.1").0).collect();
    let (one_more, head) = begin(&mut room, &browser, "/mail/download/1.1");
    assert_eq!(head.status, 503);
    room.close_tls(one_more);
    assert!(browser.get(&mut room, "/mail/box/1").text().contains("Large"));
    room.abort(&begun.pop().expect("a download has begun").talk);
    let (again, head) = begin(&mut room, &browser, "/mail/download/1.1");
    assert_eq!(head.status, 200);
    for tls_stream in begun.into_iter().chain([again]) {
        room.close_tls(tls_stream);
    }
    browser.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

/// An HTML message that exceeds a core's memory for bodies. The message shows an image at its
/// beginning, middle and end. Also returns the expected document.
fn long_html() -> (Vec<u8>, String) {
    let picture = Base64::encode_string(&file()[..200_000]);
    let text = "It computes, and computes again, until it has computed it <i>all</i>.<br>\r\n"
        .repeat(60_000);
    let html = format!(
        "<img src=\"cid:engine@x\">{text}<img src='cid:engine@x'>{text}<img src=cid:engine@x >"
    );
    let message = format!(
        "From: x@example.org\r\nSubject: Long\r\nContent-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html; charset=iso-8859-1\r\n\r\n{html}\r\n\
         --b\r\nContent-Type: image/png\r\nContent-ID: <engine@x>\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n--b--\r\n",
        picture
            .as_bytes()
            .chunks(76)
            .map(|line| core::str::from_utf8(line).expect("text"))
            .collect::<Vec<_>>()
            .join("\r\n")
    );
    (
        message.into_bytes(),
        html.replace("cid:engine@x", &format!("data:image/png;base64,{picture}")),
    )
}

/// An HTML document without the text that the webmail has added to its end.
pub(super) fn without_style(document: &str) -> &str {
    let (html, end) = document.split_once(LINKS_OPEN_OUTSIDE).expect("links open outside");
    assert!(end.starts_with("<style>:where(") && end.ends_with("</style>"), "{end}");
    html
}

#[test]
fn html_of_any_length_is_sent_in_pieces_with_inline_images() {
    for seed in [5, 6] {
        let (mut room, trust) = serving(seed);
        let (message, document) = long_html();
        assert!(room.deliver("ada@barepost.test", &message).starts_with("250"));
        let mut browser = Browser::new(&trust);
        browser.log_in(&mut room, "ada", "lovelace");
        assert!(
            browser.get(&mut room, "/mail/box/1/1").text().contains("href=\"/mail/whole/1.1/1\"")
        );
        let whole = browser.get(&mut room, "/mail/whole/1.1/1");
        assert!(
            without_style(&whole.text()) == document,
            "{} of {} bytes",
            whole.body.len(),
            document.len()
        );
        assert!(
            whole.field("Content-Security-Policy").starts_with("sandbox ")
                && !whole.field("Content-Security-Policy").contains("https:")
        );
        let framed = browser.get(&mut room, "/mail/html/1.1/1");
        let (picture, behind) = document.split_once("\">").expect("a picture");
        let (shown_picture, shown) = framed
            .text()
            .split_once("\">")
            .map(|(one, other)| (one.to_string(), other.to_string()))
            .expect("the page has the picture too");
        let shown = without_style(&shown);
        assert!(
            shown_picture == picture
                && behind.starts_with(shown)
                && (100 * 1024..102 * 1024).contains(&shown.len()),
            "{}",
            shown.len()
        );
        unread_download_holds_one_piece(&mut room, &browser, "/mail/whole/1.1/1");
        browser.hang_up(&mut room);
        room.until_nothing_is_in_use();
    }
}

/// Checks that the server holds only one piece of a download for a client that does not read, and
/// none once the client has disconnected.
fn unread_download_holds_one_piece(room: &mut Room, browser: &Browser, path: &str) {
    let (tls_stream, head) = begin(room, browser, path);
    assert_eq!((head.status, head.field("Content-Type")), (200, "text/html; charset=utf-8"));
    room.pass(machine::Micros::from_secs(5));
    let in_use = room.engines.in_use();
    assert!(
        in_use.webmail_requests == 1 && (1..HELD_BYTES_MAX).contains(&in_use.bodies),
        "{in_use:?}"
    );
    room.abort(&tls_stream.talk);
}
