//! A test world for one session: a small site, a connection with limited buffer space, and a parser
//! of its output.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use machine::{Micros, Piece};

use crate::{
    Actions, Announced, BodyAdmission, ExchangeSummary, HandlerRequest, HttpWaitsFor, HttpsPolicy,
    Method, Outlet, Reply, ResponseCache, Session, Site, SiteFile, Status, pack,
};

pub(super) const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
pub(super) const HELLO: &[u8] = b"Hello, world, this is a file.\n";

pub(super) fn file(content_type: &str, plain: &[u8]) -> SiteFile {
    SiteFile {
        content_type: content_type.to_string(),
        modified: MODIFIED.to_string(),
        plain: plain.to_vec(),
        gzip: None,
        brotli: None,
    }
}

pub(super) fn files() -> BTreeMap<String, SiteFile> {
    let style = SiteFile {
        gzip: Some(b"gzipped".to_vec()),
        brotli: Some(b"brotli!".to_vec()),
        ..file("text/css", b"body { color: black }")
    };
    let zipped = SiteFile {
        gzip: Some(b"only gzipped".to_vec()),
        ..file("text/plain", b"plain, or gzipped")
    };
    [
        ("/index.html", file("text/html; charset=utf-8", b"<h1>Index</h1>")),
        ("/hello.txt", file("text/plain; charset=utf-8", HELLO)),
        ("/style.css", style),
        ("/zipped.txt", zipped),
        ("/empty", file("application/octet-stream", b"")),
        ("/folder/index.html", file("text/html; charset=utf-8", b"<h1>Folder</h1>")),
        ("/with space/\u{fc}.txt", file("text/plain; charset=utf-8", b"umlaut")),
        ("/404.html", file("text/html; charset=utf-8", b"<h1>Nothing here</h1>")),
    ]
    .map(|(path, file)| (path.to_string(), file))
    .into()
}

/// A site that lives as long as the test.
pub(super) fn site(files: &BTreeMap<String, SiteFile>) -> Site {
    Site::new(Box::leak(pack(files).unwrap().into_boxed_slice())).unwrap()
}

pub(super) struct World {
    site: Site,
    pub(super) response_cache: ResponseCache,
    pub(super) https_policy: HttpsPolicy,
    /// The bytes that the session has sent, until the test takes them.
    pub(super) output: Vec<u8>,
    /// The number of bytes that were queued without a copy.
    pub(super) uncopied: usize,
    /// The number of queue operations.
    pub(super) queued: usize,
    pub(super) room: usize,
    pub(super) date: [u8; 29],
    /// The shared pieces that were queued and are still in use. `None`: the connection does not
    /// share.
    pub(super) shared: Option<Vec<Piece>>,
    /// If set, the space for bytes that are not copied, which is smaller than `room`.
    pub(super) static_room: Option<usize>,
    pub(super) deadline: Option<Micros>,
    pub(super) closed: bool,
    pub(super) log: Vec<(String, String, u16, u64)>,
    /// The requests that the handler got, and their bodies.
    pub(super) asked: Vec<ReceivedRequest>,
    /// The text of the reply to each request and body, if the handler knows it at once.
    pub(super) known_reply: Option<String>,
    pub(super) bodies: Vec<Vec<u8>>,
    /// The number of bytes that the session may make the server keep.
    pub(super) kept_max: usize,
    /// The memory of admitted bodies that was not released yet, in bytes.
    pub(super) admitted: usize,
    /// The pieces that have arrived, each with the number of its body. `ended`: the numbers of
    /// complete bodies.
    pub(super) pieces: Vec<(u64, Vec<u8>)>,
    pub(super) ended: Vec<u64>,
    /// The numbers of open replies for which the handler was asked for more.
    pub(super) wanted: Vec<u64>,
    /// The numbers of open replies that have ended, and of bodies that were given up.
    pub(super) left: Vec<u64>,
}

impl World {
    pub(super) fn new(site: Site, response_cache: ResponseCache) -> World {
        World {
            site,
            response_cache,
            https_policy: HttpsPolicy::Optional,
            output: Vec::new(),
            uncopied: 0,
            queued: 0,
            room: 1 << 20,
            date: *b"Tue, 03 Nov 2026 21:04:05 GMT",
            shared: None,
            static_room: None,
            deadline: None,
            closed: false,
            log: Vec::new(),
            asked: Vec::new(),
            known_reply: None,
            bodies: Vec::new(),
            kept_max: usize::MAX,
            admitted: 0,
            pieces: Vec::new(),
            ended: Vec::new(),
            wanted: Vec::new(),
            left: Vec::new(),
        }
    }
}

impl Outlet for World {
    fn send_room(&self) -> usize {
        self.room
    }

    fn send(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.room, "a response begins only if there is space for its head");
        assert!(!self.closed);
        self.queued += 1;
        self.room -= bytes.len();
        self.output.extend_from_slice(bytes);
    }

    fn send_static(&mut self, bytes: &'static [u8]) -> usize {
        assert!(!self.closed);
        self.queued += 1;
        let count = bytes.len().min(self.room).min(self.static_room.unwrap_or(usize::MAX));
        self.static_room = self.static_room.map(|room| room - count);
        self.room -= count;
        self.uncopied += count;
        self.output.extend_from_slice(&bytes[..count]);
        count
    }

    fn send_before(&mut self, head: &[u8], bytes: &'static [u8]) -> usize {
        self.send(head);
        let count = self.send_static(bytes);
        self.queued -= 1;
        count
    }

    fn shares(&self) -> bool {
        self.shared.is_some()
    }

    fn send_shared(&mut self, piece: Piece) -> bool {
        assert!(!self.closed);
        let fits = piece.len() <= self.room;
        if let Some(shared) = self.shared.as_mut().filter(|_| fits) {
            self.queued += 1;
            self.room -= piece.len();
            self.output.extend_from_slice(piece.bytes());
            shared.push(piece);
        }
        fits
    }
}

impl Actions for World {
    fn site(&self) -> &Site {
        &self.site
    }

    fn response_cache(&mut self) -> &mut ResponseCache {
        &mut self.response_cache
    }

    fn https_policy(&self) -> HttpsPolicy {
        self.https_policy
    }

    fn name_over_tls<'a>(&'a self, host: &'a str) -> &'a str {
        if host == "web.test" { host } else { "own.test" }
    }

    fn methods(&self, path: &[u8]) -> &'static [Method] {
        match path {
            b"/app/page" => &[Method::Get, Method::Head],
            path if path.starts_with(b"/app/") => {
                &[Method::Get, Method::Head, Method::Post, Method::Put]
            }
            _ => &[],
        }
    }

    fn may_keep(&self, bytes: usize) -> bool {
        bytes <= self.kept_max
    }

    fn asked(&mut self, question: &HandlerRequest<'_>) -> Option<Reply> {
        self.asked.push(ReceivedRequest::of(question));
        self.known_reply.as_ref().map(|text| Reply::text(Status::Ok, text.clone()))
    }

    fn body_arrived(&mut self, question: &HandlerRequest<'_>, body: Vec<u8>) -> Option<Reply> {
        assert!(!body.is_empty() || question.body == Announced::Nothing);
        self.asked.push(ReceivedRequest::of(question));
        self.bodies.push(body);
        self.known_reply.as_ref().map(|text| Reply::text(Status::Ok, text.clone()))
    }

    fn piece_arrived(&mut self, number: u64, bytes: Vec<u8>) {
        self.pieces.push((number, bytes));
    }

    fn pieces_ended(&mut self, number: u64, bytes: Vec<u8>) {
        self.pieces.push((number, bytes));
        self.ended.push(number);
    }

    fn too_large(&mut self, question: &HandlerRequest<'_>, bytes: u64) -> Reply {
        Reply::text(Status::ContentTooLarge, format!("{} takes {bytes} bytes", question.path))
    }

    fn released(&mut self, memory: usize) {
        self.admitted -= memory;
    }

    fn wanted(&mut self, number: u64) {
        self.wanted.push(number);
    }

    fn left(&mut self, number: u64) {
        self.left.push(number);
    }

    fn date(&mut self) -> [u8; 29] {
        self.date
    }

    fn answered<'a>(&mut self, exchange: impl FnOnce() -> ExchangeSummary<'a>) {
        let ExchangeSummary { method, target, status, bytes } = exchange();
        self.log.push((method.to_string(), target.to_string(), status, bytes));
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        self.deadline = after;
    }

    fn close(&mut self) {
        assert!(!self.closed, "a session is closed once");
        self.closed = true;
    }
}

/// A request that the handler got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ReceivedRequest {
    /// Method, path and query, and host.
    pub(super) line: String,
    pub(super) fields: Vec<(&'static str, String)>,
    pub(super) body: Announced,
}

impl ReceivedRequest {
    fn of(question: &HandlerRequest<'_>) -> ReceivedRequest {
        let HandlerRequest { method, path, query, host, body, .. } = *question;
        let fields = [
            ("authorization", question.authorization),
            ("cookie", question.cookie),
            ("content-type", question.content_type),
            ("origin", question.origin),
            ("sec-fetch-dest", question.sec_fetch_dest),
            ("sec-fetch-site", question.sec_fetch_site),
            ("user-agent", question.user_agent),
        ];
        let fields = fields
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?.to_string())))
            .collect();
        ReceivedRequest {
            line: std::format!("{} {path}?{query} {host}", method.name()),
            fields,
            body,
        }
    }
}

/// A parsed response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Response {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} occurs once");
        value
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// A connection: the session and its world.
pub(super) struct Talk {
    pub(super) session: Session,
    pub(super) world: World,
    kept: Vec<u8>,
}

impl Talk {
    pub(super) fn new() -> Talk {
        Talk::with(site(&files()))
    }

    pub(super) fn with(site: Site) -> Talk {
        Talk::begin(World::new(site, ResponseCache::empty()))
    }

    /// The next connection to the same server, with the same response cache.
    pub(super) fn next(self) -> Talk {
        Talk::begin(World::new(self.world.site, self.world.response_cache))
    }

    fn begin(mut world: World) -> Talk {
        Talk { session: Session::connected(&mut world), world, kept: Vec::new() }
    }

    /// Offers bytes to the session. The bytes that it does not take are kept and offered again.
    pub(super) fn arrive(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        loop {
            let taken = self.session.bytes_arrived(&self.kept, &mut self.world);
            assert!(taken <= self.kept.len());
            self.kept.drain(..taken);
            if taken == 0 || self.kept.is_empty() {
                break;
            }
        }
        if self.session.waits_for() == HttpWaitsFor::Bytes {
            assert!(self.kept.len() < crate::HEAD_BYTES_MAX, "at most a head is left");
        }
    }

    /// The handler admits a body.
    pub(super) fn admit(&mut self, limit: usize) {
        self.admit_as(BodyAdmission::whole(limit));
    }

    pub(super) fn admit_as(&mut self, admission: BodyAdmission) {
        self.world.admitted += admission.memory;
        self.session.admitted(admission, &mut self.world);
        self.arrive(b"");
    }

    /// The handler takes a piece of a body.
    pub(super) fn take_piece(&mut self, number: u64) {
        self.session.piece_taken(number, &mut self.world);
        self.arrive(b"");
    }

    /// The handler replies.
    pub(super) fn reply(&mut self, reply: Reply) {
        self.session.replied(reply, &mut self.world);
        self.arrive(b"");
    }

    /// Sends a request and returns its only response. `head`: lines without line ends.
    pub(super) fn ask(&mut self, head: &[&str]) -> Response {
        self.arrive(request(head).as_bytes());
        let is_head = head[0].starts_with("HEAD");
        let mut responses = self.responses(|_| is_head);
        assert_eq!(responses.len(), 1, "{head:?}");
        responses.remove(0)
    }

    /// Parses all output since the last call. `is_head` tells which responses answer a HEAD
    /// request.
    pub(super) fn responses(&mut self, is_head: impl Fn(usize) -> bool) -> Vec<Response> {
        let output = std::mem::take(&mut self.world.output);
        self.world.room += output.len();
        let mut rest = output.as_slice();
        let mut responses = Vec::new();
        while !rest.is_empty() {
            let end = rest
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
                .expect("the end of a head")
                + 4;
            let head = std::str::from_utf8(&rest[..end - 4]).unwrap();
            rest = &rest[end..];
            let mut lines = head.split("\r\n");
            let status =
                lines.next().unwrap().strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap();
            let fields = lines
                .map(|line| line.split_once(": ").unwrap())
                .map(|(a, b)| (a.to_string(), b.to_string()))
                .collect();
            let mut response = Response { status, fields, body: Vec::new() };
            assert!(response.field("date").is_some());
            if !is_head(responses.len()) && !matches!(status, 204 | 304) {
                let length = response.field("content-length").expect("a length").parse().unwrap();
                response.body = rest[..length].to_vec();
                rest = &rest[length..];
            }
            responses.push(response);
        }
        responses
    }
}

pub(super) fn request(head: &[&str]) -> String {
    let mut text = head.join("\r\n");
    if !head.iter().any(|line| line.to_ascii_lowercase().starts_with("host:"))
        && !head[0].ends_with("HTTP/1.0")
    {
        text += "\r\nHost: web.test";
    }
    text + "\r\n\r\n"
}

/// The response to one request on a new connection.
pub(super) fn ask(head: &[&str]) -> Response {
    Talk::new().ask(head)
}
