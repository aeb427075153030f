//! The server around an HTTP session: a site, a connection that can run out of buffer space, a
//! record of everything, and the session's obligations.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use http::{
    Actions, DATE_BYTES, ExchangeSummary, HandlerRequest, HttpsPolicy, Method, Outlet,
    PIECE_BYTES_MAX, RESPONSE_HEAD_BYTES_MAX, Reply, ReplyField, ResponseCache, Site, SiteFile,
    Status, pack,
};
use machine::Micros;

/// One exchange in the log: method, target, status, bytes of the response's body.
pub(crate) type Answered = (String, String, u16, u64);

pub(crate) struct World {
    pub(crate) sent: Vec<u8>,
    pub(crate) log: Vec<Answered>,
    pub(crate) send_room: usize,
    pub(crate) https_policy: HttpsPolicy,
    pub(crate) deadline: Option<Micros>,
    pub(crate) closed: bool,
    /// The bytes of each file, in each of its codings.
    pub(crate) contents: Vec<&'static [u8]>,
    /// The state of the request that the program has not answered yet.
    pub(crate) stage: Option<Stage>,
    /// The number of requests and bodies that the program has got.
    requests: u32,
    /// Bytes that the program has admitted and the session has not released.
    pub(crate) admitted: usize,
    /// Whether the program has a piece of a body that it has not taken yet.
    pub(crate) has_piece: bool,
    has_program: bool,
    /// The most bytes that the server keeps for the session.
    kept_max: usize,
    site: Site,
    response_cache: ResponseCache,
}

/// The progress of a request to the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The head has arrived, with this method.
    Requested(Method),
    /// The body has arrived.
    BodyArrived,
}

/// The size up to which the program admits a body.
pub(crate) const BODY_BYTES_MAX: usize = 64;

/// The most bytes that the server keeps for a session.
pub(crate) const KEPT_BYTES_MAX: usize = 64 * 1024;

/// The program replies at once to one in this many requests and bodies.
const AT_ONCE_DIVISOR: u32 = 3;

/// The body of every reply of the program.
pub(crate) const REPLY: &[u8] = b"what a program says";

/// The reply of the program.
pub(crate) fn program_reply() -> Reply {
    Reply::new(Status::Ok, "text/plain", REPLY.to_vec()).with(ReplyField::SetCookie, "a=b")
}

fn files() -> BTreeMap<String, SiteFile> {
    let file = |content_type: &str, plain: &[u8]| SiteFile {
        content_type: content_type.into(),
        modified: "Sun, 06 Nov 1994 08:49:37 GMT".into(),
        plain: plain.to_vec(),
        gzip: None,
        brotli: None,
    };
    let coded = SiteFile {
        gzip: Some(b"by gzip".to_vec()),
        brotli: Some(b"brotli".to_vec()),
        ..file("text/css", b"as it is")
    };
    // Larger than the buffer space for a head, so that the session sends it in parts.
    let large: String = (0..1_000).map(|number| format!("{number},")).collect();
    let files = [
        ("/index.html", file("text/html; charset=utf-8", b"<h1>Index</h1>")),
        (
            "/a.txt",
            file(
                "text/plain",
                b"0123456789abcdefghijklmnopqrstuvwxyz\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            ),
        ),
        ("/a.css", coded),
        ("/large", file("text/plain", large.as_bytes())),
        ("/b/index.html", file("text/html", b"b")),
        ("/empty", file("application/octet-stream", b"")),
        ("/404.html", file("text/html", b"nothing")),
    ];
    files.map(|(path, file)| (path.to_string(), file)).into()
}

static SITE: OnceLock<(Site, Vec<&'static [u8]>)> = OnceLock::new();

fn packed() -> (Site, Vec<&'static [u8]>) {
    let packed = pack(&files()).expect("the files are right");
    let site = Site::new(packed.leak()).expect("the packed files are a site");
    let files = files().into_values();
    let contents = files.flat_map(|file| [Some(file.plain), file.gzip, file.brotli]).flatten();
    (site, contents.map(|content| &*content.leak()).collect())
}

impl World {
    /// A server with a small site and a program.
    pub(crate) fn small() -> World {
        let (site, contents) = SITE.get_or_init(packed);
        let contents = contents.iter().copied().chain([REPLY]).collect();
        World { has_program: true, ..World::new(*site, contents) }
    }

    /// A server with `site`. Its files have these `contents`.
    pub(crate) fn new(site: Site, contents: Vec<&'static [u8]>) -> World {
        World {
            sent: Vec::new(),
            log: Vec::new(),
            send_room: RESPONSE_HEAD_BYTES_MAX,
            https_policy: HttpsPolicy::Optional,
            deadline: None,
            closed: false,
            contents,
            stage: None,
            requests: 0,
            admitted: 0,
            has_piece: false,
            has_program: false,
            kept_max: KEPT_BYTES_MAX,
            site,
            response_cache: ResponseCache::empty(),
        }
    }

    /// The program gets a request or its body. It replies to some of them at once.
    fn request_arrived(&mut self, stage: Stage) -> Option<Reply> {
        assert!(!self.closed && self.stage.is_none(), "one request at a time");
        self.requests += 1;
        if self.requests.is_multiple_of(AT_ONCE_DIVISOR) {
            return Some(program_reply());
        }
        self.stage = Some(stage);
        None
    }

    fn queue(&mut self, bytes: &[u8]) {
        assert!(!self.closed, "a response after the end");
        assert!(bytes.len() <= self.send_room, "the output fits into the buffer space");
        self.sent.extend_from_slice(bytes);
        self.send_room -= bytes.len();
    }
}

impl Outlet for World {
    fn send_room(&self) -> usize {
        self.send_room
    }

    fn send(&mut self, bytes: &[u8]) {
        self.queue(bytes);
    }

    fn send_static(&mut self, bytes: &'static [u8]) -> usize {
        let count = bytes.len().min(self.send_room);
        self.queue(&bytes[..count]);
        count
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
        if host == "a" { host } else { "own.test" }
    }

    fn methods(&self, path: &[u8]) -> &'static [Method] {
        match path {
            b"/p/page" if self.has_program => &[Method::Get, Method::Head],
            b"/p/form" if self.has_program => {
                &[Method::Get, Method::Head, Method::Post, Method::Put]
            }
            _ => &[],
        }
    }

    fn may_keep(&self, bytes: usize) -> bool {
        bytes <= self.kept_max
    }

    fn asked(&mut self, request: &HandlerRequest<'_>) -> Option<Reply> {
        self.request_arrived(Stage::Requested(request.method))
    }

    fn body_arrived(&mut self, _: &HandlerRequest<'_>, body: Vec<u8>) -> Option<Reply> {
        assert!(body.len() <= BODY_BYTES_MAX, "a body is larger than admitted");
        self.request_arrived(Stage::BodyArrived)
    }

    fn piece_arrived(&mut self, _: u64, bytes: Vec<u8>) {
        assert!(bytes.len() <= PIECE_BYTES_MAX && !self.has_piece, "one piece at a time");
        self.has_piece = true;
    }

    fn pieces_ended(&mut self, _: u64, bytes: Vec<u8>) {
        assert!(bytes.len() <= PIECE_BYTES_MAX && !self.has_piece, "one piece at a time");
        assert!(!self.closed && self.stage.is_none(), "one request at a time");
        self.stage = Some(Stage::BodyArrived);
    }

    fn too_large(&mut self, _: &HandlerRequest<'_>, _: u64) -> Reply {
        Reply::refusal(Status::ContentTooLarge)
    }

    fn released(&mut self, memory: usize) {
        self.admitted = self.admitted.checked_sub(memory).expect("released bytes were admitted");
    }

    fn wanted(&mut self, _: u64) {
        panic!("no reply of this program stays open");
    }

    fn left(&mut self, _: u64) {
        // No reply of this program stays open. So the client has left while its body arrived.
        self.has_piece = false;
    }

    fn date(&mut self) -> [u8; DATE_BYTES] {
        *b"Tue, 03 Nov 2026 21:04:05 GMT"
    }

    fn answered<'a>(&mut self, exchange: impl FnOnce() -> ExchangeSummary<'a>) {
        let ExchangeSummary { method, target, status, bytes } = exchange();
        self.log.push((method.into(), target.into(), status, bytes));
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        assert!(!self.closed, "a deadline after the end");
        self.deadline = after;
    }

    fn close(&mut self) {
        assert!(!self.closed, "a connection is closed once");
        self.closed = true;
        self.deadline = None;
    }
}
