//! Messages with large files, which the server writes into the store as they arrive. They are
//! stored whole or not at all, with the connection and the mail on any cores.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use http::Site;
use machine::Micros;
use simulated::MemoryDisk;
use webmail::{MESSAGE_MEMORY_BYTES_MAX, MESSAGE_TEXT_BYTES_MAX};

use super::room::tls_stream::{TlsStream, Trust};
use super::room::{CONFIGURATION, Room, usual_sizes};
use super::settings::{again, forget_connections};
use super::webmail::{Browser, Page, answer, between, serving};

/// Many times the memory that one upload may use.
const LARGE: usize = 3_000_000;

fn large() -> Vec<u8> {
    (0..LARGE).map(|at| ((at * at) >> 9) as u8).collect()
}

fn field(name: &str, value: &str) -> Vec<u8> {
    format!("--=b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        .into_bytes()
}

fn file(name: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!(
        "--=b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"{name}\"\r\nContent-Type: image/png\r\n\r\n"
    );
    [head.as_bytes(), bytes, b"\r\n"].concat()
}

/// A form as the browser sends it from our page: the text fields are before the files, and the
/// button is after them.
fn form(token: &str, words: &[(&str, &str)], files: &[(&str, &[u8])], button: &str) -> Vec<u8> {
    let words = [("token", token)]
        .into_iter()
        .chain(words.iter().copied())
        .flat_map(|(name, value)| field(name, value));
    let files = files.iter().flat_map(|(name, bytes)| file(name, bytes));
    words.chain(files).chain(field("do", button)).chain(*b"--=b--\r\n").collect()
}

const WORDS: [(&str, &str); 3] =
    [("to", "grace@barepost.test"), ("subject", "Large"), ("text", "See the file.")];

/// A user with a browser.
struct Writer {
    room: Room,
    trust: Trust,
    browser: Browser,
    token: String,
}

impl Writer {
    fn new(seed: u64) -> Writer {
        let (room, trust) = serving(seed);
        Writer::in_room(room, trust)
    }

    fn in_room(mut room: Room, trust: Trust) -> Writer {
        let mut browser = Browser::new(&trust);
        browser.log_in(&mut room, "ada", "lovelace");
        browser.hold(&mut room, "0");
        let token = browser.get(&mut room, "/mail/compose").token();
        Writer { room, trust, browser, token }
    }

    fn head(&self, length: &str) -> String {
        let cookie = self
            .browser
            .cookie
            .as_ref()
            .map_or_else(String::new, |cookie| format!("Cookie: {cookie}\r\n"));
        format!(
            "POST /mail/compose HTTP/1.1\r\nHost: mail.barepost.test\r\n{cookie}Origin: https://mail.barepost.test\r\nContent-Type: multipart/form-data; boundary=\"=b\"\r\n{length}\r\n\r\n"
        )
    }

    /// Opens a new connection, and sends `text`.
    fn begin(&mut self, text: &[u8]) -> TlsStream {
        let mut tls_stream = self.room.connect_tls(443, &self.browser.settings);
        self.room.complete_handshake(&mut tls_stream);
        self.go_on(&mut tls_stream, text);
        tls_stream
    }

    /// Sends `text`. Checks that the memory for bodies stays within its limit.
    fn go_on(&mut self, tls_stream: &mut TlsStream, text: &[u8]) {
        for part in text.chunks(50_000) {
            self.room.send_tls(tls_stream, part);
            let in_use = self.room.engines.in_use();
            assert!(in_use.bodies <= MESSAGE_MEMORY_BYTES_MAX, "{in_use:?}");
        }
    }

    /// Sends a complete form on a new connection, and returns the response.
    fn send(&mut self, body: &[u8]) -> Page {
        let head = self.head(&format!("Content-Length: {}", body.len()));
        let mut tls_stream = self.begin(&[head.as_bytes(), body].concat());
        let page = answer(&mut self.room, &mut tls_stream);
        self.room.close_tls(tls_stream);
        page
    }

    fn get(&mut self, path: &str) -> String {
        self.browser.get(&mut self.room, path).text()
    }

    /// Follows the redirect of a response.
    fn follow(&mut self, page: &Page) -> String {
        assert_eq!(page.status, 303, "{}", page.text());
        self.get(page.field("Location"))
    }

    fn drafts(&mut self) -> usize {
        self.get("/mail/box/2").matches("<span class=\"subject\">").count()
    }

    fn nothing_is_in_use(&mut self) {
        self.browser.hang_up(&mut self.room);
        self.room.until_nothing_is_in_use();
    }
}

/// The files of a message on the page that shows it, the longest last.
fn files(room: &mut Room, browser: &mut Browser, place: &str) -> Vec<Vec<u8>> {
    let read = browser.get(room, &format!("/mail/box/{}", place.replace('.', "/"))).text();
    let link = format!("href=\"/mail/part/{place}/");
    let mut parts: Vec<&str> = read
        .match_indices(&link)
        .map(|(at, _)| read[at + link.len()..].split('"').next().expect("an end"))
        .collect();
    parts.sort_unstable();
    parts.dedup();
    let mut files: Vec<Vec<u8>> = parts
        .iter()
        .map(|part| browser.get(room, &format!("/mail/part/{place}/{part}")).body)
        .collect();
    files.sort_by_key(Vec::len);
    files
}

#[test]
fn a_large_file_is_saved_with_a_draft_and_sent_whole() {
    for seed in 0..2 {
        let mut ada = Writer::new(seed);
        let whole = large();
        let kept = ada.send(&form(&ada.token, &WORDS, &[("large.png", &whole)], "save"));
        let page = ada.follow(&kept);
        let carried = between(&page, "name=\"carry\" value=\"", "\"")
            .expect("the draft has a file")
            .to_string();
        let draft = between(&page, "name=\"draft\" value=\"", "\"")
            .expect("the page has a draft")
            .to_string();
        assert!(carried.ends_with(" large.png") && page.contains("See the file."), "{page}");
        assert_eq!(ada.drafts(), 1);
        let again = [&WORDS[..], &[("draft", draft.as_str()), ("carry", &carried)]].concat();
        let sent = ada.send(&form(&ada.token, &again, &[("small.png", b"small")], "send"));
        let page = ada.follow(&sent);
        assert!(page.contains("Message sent."), "{page}");
        assert_eq!(ada.drafts(), 0);
        let mut grace = Browser::new(&ada.trust);
        grace.log_in(&mut ada.room, "grace", "lovelace");
        assert!(files(&mut ada.room, &mut grace, "1.1") == [b"small".to_vec(), whole]);
        grace.hang_up(&mut ada.room);
        ada.nothing_is_in_use();
    }
}

#[test]
fn fields_after_files_and_chunked_forms_are_accepted() {
    for seed in 2..4 {
        let mut ada = Writer::new(seed);
        let whole = large();
        let words: Vec<u8> = WORDS.iter().flat_map(|(name, value)| field(name, value)).collect();
        let token = field("token", &ada.token);
        let body =
            [file("large.png", &whole), words, token, field("do", "send"), b"--=b--".to_vec()]
                .concat();
        let mut tls_stream = ada.begin(ada.head("Transfer-Encoding: chunked").as_bytes());
        for chunk in body.chunks(70_000) {
            let framed = [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat();
            ada.go_on(&mut tls_stream, &framed);
        }
        ada.go_on(&mut tls_stream, b"0\r\n\r\n");
        let sent = answer(&mut ada.room, &mut tls_stream);
        assert!(ada.follow(&sent).contains("Message sent."));
        ada.room.close_tls(tls_stream);
        let mut grace = Browser::new(&ada.trust);
        grace.log_in(&mut ada.room, "grace", "lovelace");
        let read = grace.get(&mut ada.room, "/mail/box/1/1").text();
        assert!(read.contains("See the file.") && read.contains("Large"), "{read}");
        assert!(files(&mut ada.room, &mut grace, "1.1") == [whole]);
        assert_eq!(ada.drafts(), 0);
        grace.hang_up(&mut ada.room);
        ada.nothing_is_in_use();
    }
}

#[test]
fn an_invalid_form_stores_nothing() {
    let mut ada = Writer::new(4);
    let whole = large();
    let wrong = [file("large.png", &whole), form("x", &WORDS, &[], "save")].concat();
    let page = ada.send(&wrong);
    assert!(
        page.status == 403
            && page.text().contains("This form does not belong to your current session.")
    );
    let mut broken = form(&ada.token, &WORDS, &[("large.png", &whole)], "save");
    broken.truncate(broken.len() - 20);
    assert_eq!(ada.send(&broken).status, 400);
    let long = "x".repeat(MESSAGE_TEXT_BYTES_MAX);
    let page = ada.send(&form(&ada.token, &[("text", &long)], &[("large.png", &whole)], "save"));
    assert!(
        page.status == 413
            && page.text().contains("The text of a message can have at most 327 KB."),
        "{}",
        page.text()
    );
    assert_eq!(ada.drafts(), 0);
    ada.nothing_is_in_use();
}

#[test]
fn an_interrupted_upload_keeps_the_previous_draft() {
    for seed in 5..7 {
        let mut ada = Writer::new(seed);
        let kept = ada.send(&form(&ada.token, &[("text", "First.")], &[("a.png", b"a")], "save"));
        let page = ada.follow(&kept);
        let draft = between(&page, "name=\"draft\" value=\"", "\"")
            .expect("the page has a draft")
            .to_string();
        let body = form(
            &ada.token,
            &[("text", "Second."), ("draft", &draft)],
            &[("large.png", &large())],
            "save",
        );
        let head = ada.head(&format!("Content-Length: {}", body.len()));
        for cut in [0, 10, 300, 40_000, 200_000, 1_000_000, body.len() - 10, body.len() - 1] {
            let tls_stream = ada.begin(&[head.as_bytes(), &body[..cut]].concat());
            (0..cut % 7).for_each(|_| ada.room.step());
            ada.room.abort(&tls_stream.talk);
            ada.nothing_is_in_use();
            assert_eq!(ada.drafts(), 1, "cut at {cut}");
            assert!(
                ada.get(&format!("/mail/compose?draft={draft}")).contains("First."),
                "cut at {cut}"
            );
        }
        // The server waits half a minute for a client that stops sending.
        let tls_stream = ada.begin(&[head.as_bytes(), &body[..500_000]].concat());
        ada.browser.hang_up(&mut ada.room);
        ada.room.pass(Micros::from_secs(40));
        assert_eq!(
            (ada.room.engines.in_use().webmail_requests, ada.room.engines.in_use().deliveries),
            (0, 0)
        );
        ada.room.abort(&tls_stream.talk);
        assert_eq!(ada.drafts(), 1);
        ada.nothing_is_in_use();
    }
}

#[test]
fn a_declared_oversize_upload_is_refused_before_it_arrives() {
    let mut ada = Writer::new(7);
    let mut tls_stream = ada.begin(ada.head("Content-Length: 60000000").as_bytes());
    let page = answer(&mut ada.room, &mut tls_stream);
    assert_eq!(page.status, 413);
    assert!(page.text().contains("with attachments it can have at most 38 MB"), "{}", page.text());
    ada.room.close_tls(tls_stream);
    ada.nothing_is_in_use();
}

#[test]
fn an_undeclared_oversize_upload_is_refused_too() {
    let mut ada = Writer::new(7);
    let head = ada.head("Transfer-Encoding: chunked").replace("/mail/compose", "/mail/settings");
    let mut tls_stream = ada.begin(head.as_bytes());
    let chunk = [b"9c40\r\n", &vec![b'x'; 40_000][..], b"\r\n"].concat();
    (0..8).for_each(|_| ada.go_on(&mut tls_stream, &chunk));
    let page = answer(&mut ada.room, &mut tls_stream);
    assert_eq!(page.status, 413);
    assert!(page.text().contains("it can have at most 262 KB"), "{}", page.text());
    ada.room.close_tls(tls_stream);
    ada.nothing_is_in_use();
}

#[test]
fn the_rest_of_a_refused_upload_is_discarded() {
    let mut ada = Writer::new(7);
    ada.browser.hang_up(&mut ada.room);
    let mut tls_stream = ada.begin(ada.head("Content-Length: 60000000").as_bytes());
    assert_eq!(answer(&mut ada.room, &mut tls_stream).status, 413);
    // The parts have other boundaries than the records.
    for part in large()[..200_000].chunks(16_000) {
        ada.go_on(&mut tls_stream, part);
        assert_eq!(ada.room.engines.in_use().receive_queues, 0);
    }
    ada.room.close_tls(tls_stream);
    ada.nothing_is_in_use();
}

/// Checks that the response on this connection is a login page that keeps the text of the message.
fn assert_returns_text(ada: &mut Writer, mut tls_stream: TlsStream) {
    let page = answer(&mut ada.room, &mut tls_stream);
    assert_eq!(page.status, 403);
    let text = page.text();
    assert!(text.contains("Your attachments were not kept: attach them again"), "{text}");
    let kept = between(&text, "name=\"kept\" value=\"", "\"")
        .expect("the form keeps the message")
        .replace("&#38;", "&");
    assert!(kept.contains("See+the+file."), "{kept}");
    ada.room.close_tls(tls_stream);
}

#[test]
fn a_logout_during_an_upload_returns_the_text() {
    for seed in 8..10 {
        let mut ada = Writer::new(seed);
        let body = form(&ada.token, &WORDS, &[("large.png", &large())], "send");
        let head = ada.head(&format!("Content-Length: {}", body.len()));
        let mut tls_stream = ada.begin(&[head.as_bytes(), &body[..1_000_000]].concat());
        let token = ada.token.clone();
        ada.browser.send(&mut ada.room, "/mail/logout", &[("token", &token)]);
        ada.go_on(&mut tls_stream, &body[1_000_000..]);
        assert_returns_text(&mut ada, tls_stream);
        // The response is the same if the session had ended before the upload began.
        let late = ada.begin(&[head.as_bytes(), &body].concat());
        assert_returns_text(&mut ada, late);
        ada.browser.log_in(&mut ada.room, "ada", "lovelace");
        assert_eq!(ada.drafts(), 0);
        ada.nothing_is_in_use();
    }
}

#[test]
fn a_full_disk_keeps_the_previous_draft_and_returns_the_text() {
    let trust = Trust::new("mail.barepost.test");
    let certificates = vec![trust.certificate.clone()];
    let disk = MemoryDisk::blank(4 << 20);
    let mut room =
        Room::certified(10, disk, usual_sizes(), CONFIGURATION, Site::default(), certificates);
    room.until("the engine serves", |room| room.console_says("serving"));
    let mut ada = Writer::in_room(room, trust);
    let kept = ada.send(&form(&ada.token, &[("text", "First.")], &[("a.png", b"a")], "save"));
    let page = ada.follow(&kept);
    let draft =
        between(&page, "name=\"draft\" value=\"", "\"").expect("the page has a draft").to_string();
    let words = [("text", "Second."), ("draft", draft.as_str())];
    let page =
        ada.send(&form(&ada.token, &words, &[("large.png", &[large(), large()].concat())], "save"));
    let text = page.text();
    assert_eq!(page.status, 200);
    for words in ["The server’s disk is full", "Attach your files again.", "Second."] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(ada.drafts(), 1);
    assert!(ada.get(&format!("/mail/compose?draft={draft}")).contains("First."));
    ada.nothing_is_in_use();
}

/// The power fails while a file arrives, or while the server handles the request. Afterwards the
/// previous draft exists, or the new one with its file, or the message is sent.
#[test]
fn an_upload_is_atomic_at_any_power_cut() {
    let mut seen = [0; 3];
    for cut in 0..14 {
        let mut ada = Writer::new(20 + cut);
        let whole = large()[..400_000].to_vec();
        let kept = ada.send(&form(&ada.token, &[("text", "First.")], &[("a.png", b"a")], "save"));
        let page = ada.follow(&kept);
        let draft = between(&page, "name=\"draft\" value=\"", "\"")
            .expect("the page has a draft")
            .to_string();
        let words = [&WORDS[..], &[("draft", draft.as_str())]].concat();
        let body = form(&ada.token, &words, &[("large.png", &whole)], "send");
        let head = ada.head(&format!("Content-Length: {}", body.len()));
        let end = if cut == 0 { body.len() / 2 } else { body.len() };
        ada.begin(&[head.as_bytes(), &body[..end]].concat());
        (0..cut * cut).for_each(|_| ada.room.step());
        let Writer { room, trust, browser, .. } = ada;
        let room = again(room, 100 + cut, &trust, CONFIGURATION);
        let mut ada = Writer {
            room,
            browser: Browser { connection: None, ..browser },
            trust,
            token: String::new(),
        };
        forget_connections(&mut [&mut ada.browser]);
        let drafts = ada.get("/mail/box/2");
        let mut grace = Browser::new(&ada.trust);
        grace.log_in(&mut ada.room, "grace", "lovelace");
        let is_sent = grace.get(&mut ada.room, "/mail/box/1").text().contains("Large");
        let has_new = drafts.contains("See the file.");
        assert!(is_sent || has_new || drafts.contains("First."), "cut {cut}: {drafts}");
        if is_sent {
            assert!(
                files(&mut ada.room, &mut grace, "1.1") == std::slice::from_ref(&whole),
                "cut {cut}"
            );
        }
        if has_new {
            let place =
                between(&drafts, "href=\"/mail/compose?draft=", "\"").expect("a draft").to_string();
            let page = ada.get(&format!("/mail/compose?draft={place}"));
            assert!(page.contains("large.png") || page.contains("a.png"), "cut {cut}: {page}");
        }
        let outcome = if is_sent { 2 } else { usize::from(has_new) };
        seen[outcome] += 1;
        grace.hang_up(&mut ada.room);
        ada.nothing_is_in_use();
    }
    assert!(seen[0] > 0 && seen[2] > 0, "{seen:?}");
}

#[test]
fn uploads_per_account_are_limited_and_pages_still_answered() {
    let mut ada = Writer::new(40);
    let body = form(&ada.token, &WORDS, &[("large.png", &large())], "save");
    let head = ada.head("Content-Length: 20000");
    let mut begun: Vec<TlsStream> =
        (0..4).map(|_| ada.begin(&[head.as_bytes(), &body[..10_000]].concat())).collect();
    let mut one_more = ada.begin(&[head.as_bytes(), &body[..20_000]].concat());
    assert_eq!(answer(&mut ada.room, &mut one_more).status, 503);
    ada.room.close_tls(one_more);
    assert_eq!(ada.drafts(), 0);
    ada.room.abort(&begun.pop().expect("an upload has begun").talk);
    ada.room.pass(Micros::from_secs(1));
    let small = ada.send(&form(&ada.token, &WORDS, &[], "save"));
    assert_eq!(small.status, 303);
    for tls_stream in begun {
        ada.room.abort(&tls_stream.talk);
    }
    ada.nothing_is_in_use();
}
