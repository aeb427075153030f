//! Tests of the webmail, as a browser without JavaScript uses it: over TLS, with connections on any
//! cores.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::sync::Arc;

use http::Site;
use rustls::ClientConfig;

use super::room::tls_stream::{TlsStream, Trust, client};
use super::room::{Room, usual_sizes};

const NAME: &str = "mail.barepost.test";

/// A browser, which has one connection at a time, and its session cookie.
pub(super) struct Browser {
    pub(super) settings: Arc<ClientConfig>,
    pub(super) connection: Option<TlsStream>,
    pub(super) cookie: Option<String>,
}

/// A response, with the fields of its head.
pub(super) struct Page {
    pub(super) status: u16,
    fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Page {
    pub(super) fn field(&self, name: &str) -> &str {
        self.fields.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("a page is UTF-8")
    }

    /// The token of the page's forms.
    pub(super) fn token(&self) -> String {
        between(&self.text(), "name=\"token\" value=\"", "\"")
            .expect("the page has forms")
            .to_string()
    }
}

pub(super) fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let start = text.find(before)? + before.len();
    let rest = &text[start..];
    Some(&rest[..rest.find(after)?])
}

impl Browser {
    pub(super) fn new(trust: &Trust) -> Browser {
        Browser { settings: Arc::new(client(trust, &["http/1.1"])), connection: None, cookie: None }
    }

    pub(super) fn get(&mut self, room: &mut Room, path: &str) -> Page {
        self.ask(room, "GET", path, "", b"")
    }

    /// Submits a form, and follows the redirect.
    pub(super) fn post(&mut self, room: &mut Room, path: &str, fields: &[(&str, &str)]) -> Page {
        let page = self.send(room, path, fields);
        assert_eq!(page.status, 303, "{}", page.text());
        let to = page.field("Location").to_string();
        self.get(room, &to)
    }

    pub(super) fn send(&mut self, room: &mut Room, path: &str, fields: &[(&str, &str)]) -> Page {
        self.ask(room, "POST", path, FORM, written(fields).as_bytes())
    }

    /// Submits a form, and does not wait for the response.
    pub(super) fn begin(&mut self, room: &mut Room, path: &str, fields: &[(&str, &str)]) {
        let tls_stream = self.say(room, "POST", path, FORM, written(fields).as_bytes());
        self.connection = Some(tls_stream);
    }

    /// Receives the response to [`Browser::begin`].
    pub(super) fn finish(&mut self, room: &mut Room) -> Page {
        let mut tls_stream = self.connection.take().expect("a request was sent");
        let page = answer(room, &mut tls_stream);
        self.connection = Some(tls_stream);
        page
    }

    fn say(
        &mut self,
        room: &mut Room,
        method: &str,
        path: &str,
        more: &str,
        body: &[u8],
    ) -> TlsStream {
        let cookie =
            self.cookie.as_ref().map_or_else(String::new, |cookie| format!("Cookie: {cookie}\r\n"));
        let length = if method == "POST" {
            format!("Content-Length: {}\r\n", body.len())
        } else {
            String::new()
        };
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {NAME}\r\n{cookie}{more}{length}\r\n");
        let mut tls_stream =
            self.connection.take().unwrap_or_else(|| room.connect_tls(443, &self.settings));
        room.send_tls(&mut tls_stream, &[head.as_bytes(), body].concat());
        tls_stream
    }

    pub(super) fn ask(
        &mut self,
        room: &mut Room,
        method: &str,
        path: &str,
        more: &str,
        body: &[u8],
    ) -> Page {
        let tls_stream = self.say(room, method, path, more, body);
        self.connection = Some(tls_stream);
        self.answered(room)
    }

    /// Receives the response to the last request, and stores its cookie.
    pub(super) fn answered(&mut self, room: &mut Room) -> Page {
        let mut tls_stream = self.connection.take().expect("a request was sent");
        let page = answer(room, &mut tls_stream);
        for (name, value) in &page.fields {
            if name == "Set-Cookie" {
                let value = value.split(';').next().unwrap_or_default();
                self.cookie = Some(value.to_string()).filter(|value| !value.ends_with('='));
            }
        }
        self.connection = Some(tls_stream);
        page
    }

    /// Closes the connection. The next one may be on another core.
    pub(super) fn hang_up(&mut self, room: &mut Room) {
        if let Some(tls_stream) = self.connection.take() {
            room.close_tls(tls_stream);
        }
    }

    /// Changes the setting for how many seconds a send can be undone.
    pub(super) fn hold(&mut self, room: &mut Room, seconds: &str) {
        let token = self.get(room, "/mail/settings").token();
        let saved = self.post(
            room,
            "/mail/settings",
            &[("token", &token), ("hold", seconds), ("do", "save")],
        );
        assert!(
            saved.text().contains(&format!("value=\"{seconds}\" selected")),
            "{}",
            saved.text()
        );
    }

    pub(super) fn log_in(&mut self, room: &mut Room, name: &str, password: &str) -> Page {
        self.post(
            room,
            "/mail/login",
            &[("name", name), ("password", password), ("next", "/mail/")],
        )
    }
}

/// The header fields that a browser sends with a form of our page.
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\nOrigin: https://mail.barepost.test\r\nSec-Fetch-Site: same-origin\r\n";

fn written(fields: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    pairs.join("&")
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

pub(super) fn answer(room: &mut Room, tls_stream: &mut TlsStream) -> Page {
    let mut page = head(room, tls_stream);
    if page.field("Transfer-Encoding") == "chunked" {
        while let bytes = chunk(room, tls_stream)
            && !bytes.is_empty()
        {
            page.body.extend(bytes);
        }
        return page;
    }
    let length = page.field("Content-Length").parse().expect("a length");
    room.until_tls(tls_stream, "the body is there", |tls_stream| tls_stream.heard.len() >= length);
    page.body = tls_stream.heard.drain(..length).collect();
    page
}

/// The next chunk of a body. The last one is empty.
pub(super) fn chunk(room: &mut Room, tls_stream: &mut TlsStream) -> Vec<u8> {
    let length = usize::from_str_radix(&room.line_tls(tls_stream), 16).expect("a length");
    room.until_tls(tls_stream, "the chunk is there", |tls_stream| {
        tls_stream.heard.len() >= length + 2
    });
    let mut bytes: Vec<u8> = tls_stream.heard.drain(..length + 2).collect();
    assert_eq!(bytes.split_off(length), b"\r\n");
    bytes
}

/// The head of a response.
pub(super) fn head(room: &mut Room, tls_stream: &mut TlsStream) -> Page {
    let status = room.line_tls(tls_stream);
    let status = status.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    let mut fields = Vec::new();
    while let Some((name, value)) = room.line_tls(tls_stream).split_once(": ") {
        fields.push((name.to_string(), value.to_string()));
    }
    Page { status, fields, body: Vec::new() }
}

pub(super) fn serving(seed: u64) -> (Room, Trust) {
    Room::with_tls(seed, Site::default(), usual_sizes())
}

pub(super) fn message(subject: &str, text: &str) -> Vec<u8> {
    format!(
        "From: Charles Babbage <charles@example.org>\r\nTo: ada@barepost.test\r\nSubject: {subject}\r\nMessage-ID: <{subject}@example.org>\r\n\r\n{text}\r\n"
    )
    .into_bytes()
}

#[test]
fn a_logged_in_user_reads_and_files_mail() {
    let (mut room, trust) = serving(1);
    for (subject, text) in [("Engine", "It computes."), ("Loom", "It weaves.")] {
        assert!(room.deliver("ada@barepost.test", &message(subject, text)).starts_with("250"));
    }
    let mut browser = Browser::new(&trust);
    let page = browser.get(&mut room, "/mail/box/1");
    assert_eq!((page.status, page.field("Location")), (303, "/mail/login?next=%2Fmail%2Fbox%2F1"));

    let home = browser.log_in(&mut room, "ada@barepost.test", "lovelace");
    assert_eq!(home.field("Location"), "/mail/box/1");
    let list = browser.get(&mut room, "/mail/box/1");
    let text = list.text();
    assert!(
        text.contains("Charles Babbage")
            && text.contains("It computes.")
            && text.contains("It weaves."),
        "{text}"
    );
    assert!(text.find("Loom") < text.find("Engine"), "the newest message is first");
    assert!(text.contains("1–2 of 2"));

    let read = browser.get(&mut room, "/mail/box/1/1");
    let text = read.text();
    assert!(
        text.contains("<h1 class=\"subject\" dir=\"auto\">Engine</h1>")
            && text.contains("<p>It computes.</p>"),
        "{text}"
    );
    browser.hang_up(&mut room);

    let token = read.token();
    let after = browser.post(
        &mut room,
        "/mail/act",
        &[("token", &token), ("here", "/mail/box/1"), ("key", "1.1"), ("do", "archive")],
    );
    let text = after.text();
    assert!(text.contains("Message moved to Archive.") && !text.contains("Engine"), "{text}");
    let undo =
        between(&text, "name=\"what\" value=\"", "\"").expect("the page has an undo").to_string();
    assert!(browser.get(&mut room, "/mail/box/4").text().contains("Engine"));
    let back = browser.post(&mut room, "/mail/undo", &[("token", &token), ("what", &undo)]);
    assert!(back.text().contains("Engine"), "{}", back.text());
    browser.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

#[test]
fn only_a_live_session_cookie_gives_access() {
    let (mut room, trust) = serving(2);
    let mut browser = Browser::new(&trust);
    let page = browser.send(
        &mut room,
        "/mail/login",
        &[("name", "ada@barepost.test"), ("password", "guess"), ("next", "/mail/")],
    );
    assert_eq!(page.status, 403);
    assert!(page.text().contains("Wrong email address or password.") && browser.cookie.is_none());

    let home = browser.log_in(&mut room, "ada", "lovelace");
    assert_eq!(home.status, 303);
    let cookie = browser.cookie.clone().expect("a ticket");
    let list = browser.get(&mut room, "/mail/box/1");
    let token = list.token();
    let out = browser.send(&mut room, "/mail/logout", &[("token", &token)]);
    assert_eq!((out.status, out.field("Location")), (303, "/mail/login"));
    for ticket in [cookie.clone(), cookie[..cookie.len() - 2].to_string(), format!("{cookie}A")] {
        browser.cookie = Some(ticket);
        let page = browser.get(&mut room, "/mail/box/1");
        assert_eq!(page.status, 303);
        assert!(page.field("Location").starts_with("/mail/login"));
        assert_eq!(browser.get(&mut room, "/mail/login").status, 200, "the login page exists");
    }
}

#[test]
fn changes_need_the_token_of_the_session() {
    let (mut room, trust) = serving(3);
    assert!(
        room.deliver("ada@barepost.test", &message("Engine", "It computes.")).starts_with("250")
    );
    let mut browser = Browser::new(&trust);
    browser.log_in(&mut room, "ada", "lovelace");
    let token = browser.get(&mut room, "/mail/box/1").token();
    let mut other = Browser::new(&trust);
    other.log_in(&mut room, "ada", "lovelace");
    let others = other.get(&mut room, "/mail/box/1").token();
    assert_ne!(token, others);
    for wrong in ["", "x", &others] {
        let page = browser.send(
            &mut room,
            "/mail/act",
            &[("token", wrong), ("key", "1.1"), ("do", "trash")],
        );
        assert_eq!(page.status, 403, "{wrong}");
    }
    let form = format!("token={token}&key=1.1&do=trash");
    for foreign in [
        "Origin: https://evil.test\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
    ] {
        let more = format!("Content-Type: application/x-www-form-urlencoded\r\n{foreign}");
        assert_eq!(
            browser.ask(&mut room, "POST", "/mail/act", &more, form.as_bytes()).status,
            403,
            "{foreign}"
        );
    }
    assert!(browser.get(&mut room, "/mail/box/1").text().contains("Engine"));
}

#[test]
fn html_is_sandboxed_and_remote_content_blocked() {
    let (mut room, trust) = serving(4);
    let message = b"From: x@example.org\r\nSubject: Offer\r\nContent-Type: text/html\r\n\r\n<link rel=preconnect href=//spy.test><script>alert(1)</script><img src=\"https://spy.test/x\">\r\n";
    assert!(room.deliver("ada@barepost.test", message).starts_with("250"));
    let mut browser = Browser::new(&trust);
    browser.log_in(&mut room, "ada", "lovelace");
    let page = browser.get(&mut room, "/mail/box/1/1");
    let text = page.text();
    assert!(!text.contains("alert(1)") && text.contains("src=\"/mail/html/1.1/0\""), "{text}");
    assert!(
        page.field("Content-Security-Policy").starts_with("default-src 'none'; style-src 'self'")
    );
    let document = browser.get(&mut room, "/mail/html/1.1/0");
    let policy = document.field("Content-Security-Policy");
    assert!(
        policy
            .starts_with("sandbox allow-same-origin allow-popups allow-popups-to-escape-sandbox; ")
            && policy.contains("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
            && policy.ends_with("form-action 'none'; base-uri 'none'; frame-ancestors 'self'"),
        "{policy}"
    );
    assert!(document.text().contains("<style>:where(img:not([src^=\"data:\""), "blocked images");
    assert!(
        document.text().contains("<!link rel=preconnect") && document.text().contains("alert(1)")
    );
    assert_eq!(
        [&page, &document].map(|reply| reply.field("X-DNS-Prefetch-Control")),
        ["off", "off"]
    );
    assert_eq!(
        [&page, &document].map(|reply| reply.field("Cross-Origin-Resource-Policy")),
        ["same-origin"; 2]
    );
    assert_eq!(
        [&page, &document].map(|reply| reply.field("Cross-Origin-Opener-Policy")),
        ["same-origin", ""]
    );
    let token = page.token();
    let shown = browser.post(
        &mut room,
        "/mail/show",
        &[("token", &token), ("key", "1.1"), ("here", "/mail/box/1/1"), ("do", "once")],
    );
    assert!(!shown.text().contains("Remote images are blocked"));
    let document = browser.get(&mut room, "/mail/html/1.1/0");
    assert!(document.field("Content-Security-Policy").contains("img-src https:"));
    assert!(!document.text().contains("<style>:where(img:not([src^="), "no image is blocked");
    assert!(document.text().contains("<!link rel=preconnect"));
    let whole = browser.get(&mut room, "/mail/whole/1.1/0");
    assert!(
        whole.text().starts_with("<!link rel=preconnect")
            && whole.field("X-DNS-Prefetch-Control") == "off"
    );
}

#[test]
fn a_page_is_not_sent_as_an_image_or_a_style() {
    let (mut room, trust) = serving(4);
    let message = b"From: x@example.org\r\nSubject: Offer\r\n\r\nIt computes.\r\n";
    assert!(room.deliver("ada@barepost.test", message).starts_with("250"));
    let mut browser = Browser::new(&trust);
    browser.log_in(&mut room, "ada", "lovelace");
    let mut ask = |room: &mut _, path, wanted: &str| {
        let more = format!("Sec-Fetch-Dest: {wanted}\r\n");
        browser.ask(room, "GET", path, &more, b"").status
    };
    for wanted in ["image", "style", "font", "script", "object", "video", ""] {
        for path in ["/mail/box/1/1", "/mail/box/1", "/mail/download/1.1"] {
            assert_eq!(ask(&mut room, path, wanted), 404, "{path} as {wanted}");
        }
    }
    for wanted in ["document", "iframe", "empty"] {
        assert_eq!(ask(&mut room, "/mail/box/1", wanted), 200, "{wanted}");
    }
    let style = webmail::Asset::Style.to_string();
    assert_eq!(ask(&mut room, &style, "style"), 200, "a part of every page");
    assert!(browser.get(&mut room, "/mail/box/1").text().contains("row unread"));
}

#[test]
fn a_message_goes_to_its_local_recipients_and_to_sent() {
    let (mut room, trust) = serving(5);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    ada.hold(&mut room, "0");
    let token = ada.get(&mut room, "/mail/compose").token();
    let refused = ada.send(
        &mut room,
        "/mail/compose",
        &[
            ("token", &token),
            ("to", "Grace <grace@barepost.test>, bob@barepost.test"),
            ("subject", "News"),
            ("text", "All is well.\n"),
            ("do", "send"),
        ],
    );
    let text = refused.text();
    assert!(
        text.contains("There is no account “bob@barepost.test”.")
            && text.contains("All is well.")
            && text.contains("Message not sent"),
        "{text}"
    );

    let sent = ada.post(
        &mut room,
        "/mail/compose",
        &[
            ("token", &token),
            ("to", "Grace <grace@barepost.test>"),
            ("bcc", "countess@barepost.test"),
            ("subject", "Näws"),
            ("text", "All is well.\n"),
            ("do", "send"),
        ],
    );
    assert!(
        sent.text().contains("Message sent.") && sent.text().contains("Näws"),
        "{}",
        sent.text()
    );
    assert!(ada.get(&mut room, "/mail/box/3").text().contains("Näws"));
    let mut grace = Browser::new(&trust);
    grace.log_in(&mut room, "grace@barepost.test", "lovelace");
    grace.hold(&mut room, "0");
    let list = grace.get(&mut room, "/mail/box/1");
    assert!(list.text().contains("Näws"), "{}", list.text());
    let source = grace.get(&mut room, "/mail/source/1.1").text();
    assert!(!source.contains("countess") && source.contains("From: ada@barepost.test"), "{source}");

    let reply = grace.get(&mut room, "/mail/compose?reply=1.1").text();
    assert!(
        reply.contains("value=\"ada@barepost.test\"")
            && reply.contains("value=\"Re: Näws\"")
            && reply.contains("&#62; All is well."),
        "{reply}"
    );
    let token = between(&reply, "name=\"token\" value=\"", "\"").expect("a form").to_string();
    grace.post(
        &mut room,
        "/mail/compose",
        &[
            ("token", &token),
            ("to", "ada@barepost.test"),
            ("subject", "Re: Näws"),
            ("text", "Good."),
            ("answers", "1.1"),
            ("do", "send"),
        ],
    );
    let answer = ada.get(&mut room, "/mail/source/1.2").text();
    assert!(
        answer.contains("In-Reply-To: &#60;") && answer.contains("References: &#60;"),
        "{answer}"
    );
}

#[test]
fn a_draft_is_saved_continued_and_replaced() {
    let (mut room, trust) = serving(6);
    let mut browser = Browser::new(&trust);
    browser.log_in(&mut room, "ada", "lovelace");
    let token = browser.get(&mut room, "/mail/compose").token();
    let kept = browser.post(
        &mut room,
        "/mail/compose",
        &[
            ("token", &token),
            ("to", "grace@barepost.test"),
            ("bcc", "ada@barepost.test"),
            ("text", "First."),
            ("do", "save"),
        ],
    );
    let text = kept.text();
    assert!(
        text.contains("Draft saved.")
            && text.contains("First.")
            && text.contains("value=\"ada@barepost.test\""),
        "{text}"
    );
    let draft =
        between(&text, "name=\"draft\" value=\"", "\"").expect("the page has a draft").to_string();
    let kept = browser.post(
        &mut room,
        "/mail/compose",
        &[("token", &token), ("draft", &draft), ("text", "Second."), ("do", "save")],
    );
    assert!(kept.text().contains("Second."));
    let list = browser.get(&mut room, "/mail/box/2").text();
    assert!(list.contains("1–1 of 1") && list.contains("/mail/compose?draft="), "{list}");
}

#[test]
fn a_large_mailbox_is_paged() {
    let (mut room, trust) = serving(7);
    for number in 0..120 {
        assert!(
            room.deliver("ada@barepost.test", &message(&format!("Number-{number}."), "x"))
                .starts_with("250")
        );
    }
    let mut browser = Browser::new(&trust);
    browser.log_in(&mut room, "ada", "lovelace");
    let mut path = "/mail/box/1".to_string();
    let mut seen = Vec::new();
    loop {
        let page = browser.get(&mut room, &path).text();
        seen.extend((0..120).rev().filter(|number| page.contains(&format!("Number-{number}."))));
        match between(&page, "rel=\"next\"", ">").and(between(
            &page,
            "<a href=\"/mail/box/1?before=",
            "\"",
        )) {
            Some(place) => path = format!("/mail/box/1?before={place}"),
            None => break,
        }
    }
    assert_eq!(seen, (0..120).rev().collect::<Vec<_>>());
    assert!(path.ends_with(".21"), "{path}");
    let last = browser.get(&mut room, &path).text();
    let place = between(&last, "<a href=\"/mail/box/1?after=", "\" rel=\"prev\"").expect("a link");
    let newer = browser.get(&mut room, &format!("/mail/box/1?after={place}")).text();
    assert!(
        newer.contains("51–100 of 120")
            && newer.contains("Number-69.")
            && newer.contains("Number-20."),
        "{newer}"
    );
}

#[test]
fn webmail_over_clear_text_only_redirects() {
    let (mut room, _) = serving(8);
    let mut talk = room.connect(80);
    room.send(&talk, b"GET /mail/box/1?before=7 HTTP/1.1\r\nHost: mail.barepost.test\r\n\r\n");
    assert!(room.line(&mut talk).starts_with("HTTP/1.1 303 "));
    let mut fields = Vec::new();
    loop {
        let line = room.line(&mut talk);
        if line.is_empty() {
            break;
        }
        fields.push(line);
    }
    assert!(
        fields
            .iter()
            .any(|line| line == "Location: https://mail.barepost.test/mail/box/1?before=7"),
        "{fields:?}"
    );
}

#[test]
fn a_composed_message_survives_the_end_of_the_session() {
    let (mut room, trust) = serving(9);
    let mut browser = Browser::new(&trust);
    browser.log_in(&mut room, "ada", "lovelace");
    let token = browser.get(&mut room, "/mail/compose").token();
    let ticket = browser.cookie.clone();
    browser.send(&mut room, "/mail/logout", &[("token", &token)]);
    let fields = [
        ("token", token.as_str()),
        ("to", "grace@barepost.test"),
        ("subject", "Thoughts & ideas"),
        ("text", "Line 1\n\"Line\" 2 ä"),
        ("do", "send"),
    ];
    // In the first case the browser still sends the cookie. In the second it has lost the cookie at
    // a logout in another window.
    let mut text = String::new();
    for shown in [ticket, None] {
        browser.cookie = shown;
        let page = browser.send(&mut room, "/mail/compose", &fields);
        assert_eq!(page.status, 403);
        text = page.text();
        assert!(text.contains("Your message is kept"), "{text}");
    }
    let kept = |page: &str| {
        between(page, "name=\"kept\" value=\"", "\"")
            .expect("the form has the kept message")
            .replace("&#38;", "&")
    };
    let wrong = [("name", "ada"), ("password", "guess"), ("kept", &kept(&text))];
    let wrong = browser.send(&mut room, "/mail/login", &wrong).text();
    let right = [("name", "ada"), ("password", "lovelace"), ("kept", &kept(&wrong))];
    let back = browser.send(&mut room, "/mail/login", &right);
    let text = back.text();
    assert!(
        text.contains("value=\"Thoughts &#38; ideas\"")
            && text.contains("Line 1\n&#34;Line&#34; 2 ä"),
        "{text}"
    );
    let token = back.token();
    let fields =
        [("token", token.as_str()), ("to", "grace@barepost.test"), ("text", "x"), ("do", "send")];
    assert!(browser.post(&mut room, "/mail/compose", &fields).text().contains("Sending…"));
}

#[test]
fn a_search_finds_messages_and_continues_where_it_stopped() {
    let (mut room, trust) = serving(10);
    assert!(room.deliver("ada@barepost.test", &message("Loom", "It weaves.")).starts_with("250"));
    for number in 0..60 {
        assert!(
            room.deliver("ada@barepost.test", &message(&format!("Number-{number}."), "x"))
                .starts_with("250")
        );
    }
    let mut browser = Browser::new(&trust);
    browser.log_in(&mut room, "ada", "lovelace");
    let found = browser.get(&mut room, "/mail/search?q=from%3Ababbage+WEAVES").text();
    assert!(
        found.contains("1 result<")
            && found.contains("name=\"key\" value=\"1.1\"")
            && found.contains("value=\"from:babbage WEAVES\""),
        "{found}"
    );
    let mut path = "/mail/search?q=subject%3Anumber".to_string();
    let mut seen = Vec::new();
    for page in 0.. {
        let text = browser.get(&mut room, &path).text();
        seen.extend((0..60).rev().filter(|number| text.contains(&format!("Number-{number}."))));
        let Some(older) = between(&text, "<a href=\"/mail/search?q=", "\"") else { break };
        assert!(text.contains("Older messages may match") && page < 3, "{text}");
        path = format!("/mail/search?q={}", older.replace("&#38;", "&"));
    }
    assert_eq!(seen, (0..60).rev().collect::<Vec<_>>());

    let token = browser.get(&mut room, "/mail/box/1").token();
    let here = "/mail/search?q=loom";
    let thrown = browser.post(
        &mut room,
        "/mail/act",
        &[("token", &token), ("here", here), ("key", "1.1"), ("do", "trash")],
    );
    assert!(
        thrown.text().contains("Message moved to Trash.") && thrown.text().contains("0 results")
    );
    assert!(browser.get(&mut room, "/mail/search?q=loom&in=6").text().contains("1 result<"));
}

#[test]
fn unread_responses_hold_bounded_memory() {
    let (mut room, trust) = serving(11);
    assert!(
        room.deliver("ada@barepost.test", &message("Large", &"x\r\n".repeat(70_000)))
            .starts_with("250")
    );
    let mut browser = Browser::new(&trust);
    browser.log_in(&mut room, "ada", "lovelace");
    let cookie = browser.cookie.clone().expect("a ticket");
    browser.hang_up(&mut room);
    let settings = Arc::new(client(&trust, &["http/1.1"]));
    let head = format!("GET /mail/source/1.1 HTTP/1.1\r\nHost: {NAME}\r\nCookie: {cookie}\r\n\r\n");
    let mut deaf = Vec::new();
    let busy = loop {
        assert!(deaf.len() < 60, "unread responses are not limited");
        let mut tls_stream = room.connect_tls(443, &settings);
        room.send_tls(&mut tls_stream, head.as_bytes());
        // The test reads only the beginning of the response.
        let status = room.line_tls(&mut tls_stream);
        if status.contains("503") {
            break tls_stream;
        }
        deaf.push(tls_stream);
    };
    assert!(deaf.len() > 1);
    room.close_tls(busy);
    deaf.iter().for_each(|tls_stream| room.abort(&tls_stream.talk));
    room.until_nothing_is_in_use();
    assert_eq!(browser.get(&mut room, "/mail/source/1.1").status, 200);
}

#[test]
fn own_mailboxes_are_created_renamed_and_removed() {
    let (mut room, trust) = serving(12);
    assert!(
        room.deliver("ada@barepost.test", &message("Engine", "It computes.")).starts_with("250")
    );
    let mut browser = Browser::new(&trust);
    browser.log_in(&mut room, "ada", "lovelace");
    let token = browser.get(&mut room, "/mail/boxes").token();
    let made = browser.post(
        &mut room,
        "/mail/boxes",
        &[("token", &token), ("do", "make"), ("name", "  Engines\tand looms ")],
    );
    assert!(made.text().contains("Folder “Engines and looms” created."), "{}", made.text());
    for taken in ["Engines and looms", "inbox", ""] {
        let page = browser.send(
            &mut room,
            "/mail/boxes",
            &[("token", &token), ("do", "make"), ("name", taken)],
        );
        assert!(page.status == 200 && page.text().contains("role=\"alert\""), "{taken}");
    }
    let moved = [
        ("token", token.as_str()),
        ("here", "/mail/box/16"),
        ("key", "1.1"),
        ("do", "move"),
        ("to", "16"),
    ];
    let moved = browser.post(&mut room, "/mail/act", &moved).text();
    assert!(
        moved.contains("Message moved to Engines and looms.") && moved.contains("It computes."),
        "{moved}"
    );
    browser.post(
        &mut room,
        "/mail/boxes",
        &[("token", &token), ("do", "rename"), ("box", "16"), ("name", "Maschinen")],
    );
    assert!(browser.get(&mut room, "/mail/box/16").text().contains("<h1>Maschinen</h1>"));
    let removed = browser.post(
        &mut room,
        "/mail/boxes",
        &[("token", &token), ("do", "remove"), ("box", "16")],
    );
    assert!(removed.text().contains("Folder deleted.") && !removed.text().contains("Maschinen"));
    assert!(browser.get(&mut room, "/mail/box/6").text().contains("It computes."));
    let kept = browser.send(
        &mut room,
        "/mail/boxes",
        &[("token", &token), ("do", "remove"), ("box", "6")],
    );
    assert!(kept.text().contains("cannot be renamed or deleted"));
}

#[test]
fn a_message_has_print_source_and_download_views() {
    let (mut room, trust) = serving(13);
    let message = b"From: x@example.org\r\nSubject: Files\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee <this>.\r\n--b\r\nContent-Type: text/html\r\nContent-Disposition: attachment; filename=\"a \xc3\xa4.html\"\r\nContent-Transfer-Encoding: base64\r\n\r\nPHA+\r\n--b--\r\n";
    assert!(room.deliver("ada@barepost.test", message).starts_with("250"));
    let mut browser = Browser::new(&trust);
    browser.log_in(&mut room, "ada", "lovelace");
    let read = browser.get(&mut room, "/mail/box/1/1").text();
    assert!(
        read.contains("href=\"/mail/part/1.1/2\"") && read.contains("See &lt;this&gt;."),
        "{read}"
    );
    let file = browser.get(&mut room, "/mail/part/1.1/2");
    assert_eq!(
        (file.body.as_slice(), file.field("Content-Type")),
        (&b"<p>"[..], "application/octet-stream")
    );
    assert_eq!(
        file.field("Content-Disposition"),
        "attachment; filename=\"a _.html\"; filename*=UTF-8''a%20%C3%A4.html"
    );
    assert_eq!(file.field("X-Content-Type-Options"), "nosniff");
    let whole = browser.get(&mut room, "/mail/download/1.1");
    assert!(whole.body.ends_with(message), "{}", whole.text());
    let source = browser.get(&mut room, "/mail/source/1.1").text();
    assert!(source.contains("See &#60;this&#62;.") && source.contains("PHA+"), "{source}");
    for page in ["/mail/print/1.1", "/mail/print/1.1/all"] {
        let paper = browser.get(&mut room, page).text();
        assert!(
            paper.contains("See &lt;this&gt;.") && paper.contains("class=\"paper\""),
            "{paper}"
        );
        assert!(paper.contains("<li dir=\"auto\">a \u{e4}.html</li>") && !paper.contains("<form"));
    }
    for nowhere in ["/mail/part/1.1/3", "/mail/html/1.1/1", "/mail/box/1/2", "/mail/source/9.9"] {
        assert_eq!(browser.get(&mut room, nowhere).status, 404, "{nowhere}");
    }
}

#[test]
fn an_attached_message_is_downloaded_as_its_own_file() {
    let (mut room, trust) = serving(16);
    let mut browser = Browser::new(&trust);
    browser.log_in(&mut room, "ada", "lovelace");
    let mut lengths = Vec::from([70_000, 500, 1, 0]);
    let mut uid = 0;
    while let Some(length) = lengths.pop() {
        uid += 1;
        let inner = format!(
            "Subject: Inner\r\nContent-Type: multipart/mixed; boundary=i\r\n\r\n--i\r\n\r\n{}\r\n--i--",
            "a".repeat(length)
        );
        let message = format!(
            "From: x@example.org\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee below.\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n{inner}\r\n--b--\r\n"
        );
        assert!(room.deliver("ada@barepost.test", message.as_bytes()).starts_with("250"));
        let read = browser.get(&mut room, &format!("/mail/box/1/{uid}")).text();
        let address = format!("/mail/part/1.{uid}/2");
        assert!(
            read.contains(&format!("href=\"{address}\"")) && read.contains("message.eml"),
            "{read}"
        );
        let file = browser.get(&mut room, &address);
        assert!(
            file.field("Content-Disposition").starts_with("attachment; filename=\"message.eml\""),
            "{length}"
        );
        assert!(file.text() == inner, "{length}: {} bytes of {}", file.body.len(), inner.len());
        if length == 0 {
            // The store reads one chunk of 32 KiB, with its header, at a time. These lengths put
            // the end of the inner message before, at and after the end of the first chunk.
            let whole = browser.get(&mut room, &format!("/mail/download/1.{uid}")).body.len();
            let first_read = 32 * 1024 - 512 - (whole - "\r\n--b--\r\n".len());
            lengths.extend(first_read - 4..first_read + 12);
        }
    }
}
