//! A client that fetches pages over HTTP/1.1 or HTTP/2. It compares each response with the site
//! byte by byte, including ranges and conditional requests.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use chance::Dice;

use super::approach::Approach;
use super::context::{ClientProgress, StepContext};
use super::http2_client::{Http2Client, Response};
use super::line::{ClientLine, field, http_request};
use super::reader::ReadScope;
use super::site::{CODINGS, MODIFIED, pages};

/// A date before [`MODIFIED`] and a date after it.
const BEFORE: &str = "Sat, 05 Nov 1994 08:49:37 GMT";
const AFTER: &str = "Mon, 07 Nov 1994 08:49:37 GMT";

/// The kind of a request for a page. The path and the content coding are separate.
#[derive(Clone, Debug)]
enum RequestKind {
    /// The whole page.
    Whole,
    /// Only the head of the response, with `HEAD`.
    Head,
    /// A range of the page, if the precondition holds.
    Range(Range<usize>, Precondition),
    /// The last bytes of the page.
    LastBytes(usize),
    /// Two ranges of the page.
    TwoRanges(Range<usize>, Range<usize>),
    /// A range after the end of the page.
    AfterEnd,
    /// The whole page, unless the client already has this version.
    Conditional(Precondition),
    /// A `POST`, which would change the page. The server refuses it.
    Post,
}

/// The condition of a conditional request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Precondition {
    None,
    /// The entity tag of the page, or no condition if the client does not know the tag.
    Tag,
    OtherTag,
    Before,
    After,
}

/// A request and its expected response.
#[derive(Clone, Debug)]
struct PendingRequest {
    /// The HTTP/2 stream of the request. Zero in HTTP/1.1.
    stream: u32,
    /// The index of the page; `None` for a page that does not exist.
    page: Option<usize>,
    coding: usize,
    kind: RequestKind,
    status: u16,
}

pub(super) struct Browser {
    /// The client's HTTP/2 state, if it uses HTTP/2.
    http2: Option<Http2Client>,
    /// The page, content coding and kind of each request that the client has not sent yet.
    unsent: VecDeque<(Option<usize>, usize, RequestKind)>,
    /// The requests without a response, oldest first.
    pending: VecDeque<PendingRequest>,
    /// The most requests that may be outstanding at a time.
    at_once: usize,
    /// Entity tags by page and content coding.
    tags: BTreeMap<(usize, usize), String>,
    /// Whether the last request asks the server to close the connection (HTTP/1.1).
    closes_at_end: bool,
}

impl Browser {
    pub(super) fn new(approach: Approach, scope: ReadScope, dice: &mut Dice) -> Browser {
        let mut unsent = VecDeque::new();
        match scope {
            ReadScope::All => {
                let forms = |page| {
                    (0..CODINGS.len()).map(move |coding| (Some(page), coding, RequestKind::Whole))
                };
                unsent.extend((0..pages().len()).flat_map(forms));
            }
            ReadScope::Some => unsent.extend((0..=dice.below(8)).map(|_| draw(dice))),
        }
        let at_once = if dice.one_in(2) { 1 } else { 4 };
        let http2 = approach.is_http_2().then(Http2Client::new);
        let closes_at_end = dice.one_in(3);
        Browser {
            http2,
            unsent,
            pending: VecDeque::new(),
            at_once,
            tags: BTreeMap::new(),
            closes_at_end,
        }
    }

    /// Whether the client has received all its responses.
    pub(super) fn is_done(&self) -> bool {
        self.unsent.is_empty() && self.pending.is_empty()
    }

    pub(super) fn step(
        &mut self,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) -> ClientProgress {
        while self.pending.len() < self.at_once {
            let Some((page, coding, kind)) = self.unsent.pop_front() else { break };
            self.ask(line, page, coding, kind);
        }
        if let Some(http2) = &mut self.http2 {
            line.send_data(&std::mem::take(&mut http2.to_say));
        }
        line.step(context.host, context.story.now, context.dice);
        while let Some((request, head, body)) = self.response(line) {
            let status: u16 =
                head.get(9..12).and_then(|code| code.parse().ok()).expect("a status line");
            context.story.trace(|| format!("  a browser hears {status} and {} bytes", body.len()));
            // The server is full, or the request took too long. The server answers no later request
            // either.
            if matches!(status, 503 | 408) {
                return ClientProgress::Done;
            }
            let request = request.unwrap_or_else(|| panic!("a response without a request: {head}"));
            self.check_response(&request, status, &head, &body);
            context.story.counts.pages += 1;
        }
        let is_over = self.http2.as_ref().is_some_and(|http2| http2.is_over);
        if is_over || self.is_done() { ClientProgress::Done } else { ClientProgress::Continues }
    }

    /// The request, head and body of the next complete response. `None` as request: no request
    /// matches.
    fn response(
        &mut self,
        line: &mut ClientLine,
    ) -> Option<(Option<PendingRequest>, String, Vec<u8>)> {
        let Some(http2) = &mut self.http2 else {
            let is_to_head = self
                .pending
                .front()
                .is_some_and(|request| matches!(request.kind, RequestKind::Head));
            let (head, body) = line.http_response(is_to_head)?;
            return Some((self.pending.pop_front(), head, body));
        };
        let (stream, Response { head, body, .. }) = http2.response(line.input())?;
        let place = self.pending.iter().position(|request| request.stream == stream);
        Some((place.and_then(|place| self.pending.remove(place)), head, body))
    }

    fn ask(
        &mut self,
        line: &mut ClientLine,
        page: Option<usize>,
        coding: usize,
        kind: RequestKind,
    ) {
        let path = page.map_or("/nothing", |page| pages()[page].path);
        let method = match kind {
            RequestKind::Head => "HEAD",
            RequestKind::Post => "POST",
            _ => "GET",
        };
        let mut fields = match coding {
            0 => String::new(),
            _ => format!("Accept-Encoding: {}\r\n", CODINGS[coding]),
        };
        let (coding, length) = page.map_or((0, 0), |page| {
            let (coding, bytes) = pages()[page].form(coding);
            (coding, bytes.len())
        });
        let tag = page.and_then(|page| self.tags.get(&(page, coding)).cloned());
        let (words, status) = kind.head_fields(length, tag.as_deref());
        fields += &words;
        let body: &[u8] = if matches!(kind, RequestKind::Post) { b"five!" } else { b"" };
        let stream = match &mut self.http2 {
            Some(http2) => http2.ask(method, path, &fields, body),
            None => {
                let is_last = self.unsent.is_empty() && self.closes_at_end;
                line.send_request(&http_request(method, path, fields, body, is_last));
                0
            }
        };
        let status = if page.is_some() || status == 405 { status } else { 404 };
        self.pending.push_back(PendingRequest { stream, page, coding, kind, status });
    }

    fn check_response(&mut self, request: &PendingRequest, status: u16, head: &str, body: &[u8]) {
        assert_eq!(status, request.status, "{request:?} was answered by {head}");
        let Some(number) = request.page.filter(|_| matches!(status, 200 | 206 | 304 | 416)) else {
            return;
        };
        let (coding, bytes) = pages()[number].form(request.coding);
        if status == 416 {
            assert_eq!(
                field(head, "Content-Range"),
                Some(&*format!("bytes */{}", bytes.len())),
                "{request:?}: {head}"
            );
            return;
        }
        let tag = field(head, "ETag")
            .unwrap_or_else(|| panic!("{request:?} has no tag: {head}"))
            .to_string();
        let known = self.tags.entry((number, coding)).or_insert_with(|| tag.clone());
        assert_eq!(*known, tag, "{request:?} has got another tag");
        assert!(
            self.tags.iter().all(|(form, other)| *form == (number, coding)
                || *other != tag
                || form.0 != number)
        );
        if status == 304 {
            return assert!(body.is_empty(), "{request:?} has a body");
        }
        let coding_field = field(head, "Content-Encoding").unwrap_or(CODINGS[0]);
        assert_eq!(coding_field, CODINGS[coding], "{request:?}: {head}");
        let declared_length = field(head, "Content-Length").and_then(|length| length.parse().ok());
        match (&request.kind, status) {
            (RequestKind::Head, _) => {
                assert_eq!(declared_length, Some(bytes.len()), "{request:?}: {head}")
            }
            (RequestKind::TwoRanges(first, second), 206) => {
                for part in [first, second] {
                    let is_there =
                        body.windows(part.len()).any(|window| window == &bytes[part.clone()]);
                    assert!(is_there, "{request:?}: {part:?} is not in the body");
                }
            }
            (RequestKind::Range(part, _), 206) => check_range(part.clone(), bytes, head, body),
            (RequestKind::LastBytes(count), 206) => {
                check_range(bytes.len() - count..bytes.len(), bytes, head, body)
            }
            _ => assert!(
                status == 200 && body == bytes,
                "{request:?} got other bytes than the site has: {head}"
            ),
        }
    }
}

fn check_range(part: Range<usize>, bytes: &[u8], head: &str, body: &[u8]) {
    let content_range = format!("bytes {}-{}/{}", part.start, part.end - 1, bytes.len());
    assert_eq!(field(head, "Content-Range"), Some(&*content_range), "{head}");
    assert!(body == &bytes[part.clone()], "{part:?} has other bytes than the site: {head}");
}

impl RequestKind {
    /// The header fields of the request and the expected status. `length` is the length of the
    /// page. `tag` is its entity tag, if the client knows it.
    fn head_fields(&self, length: usize, tag: Option<&str>) -> (String, u16) {
        let range = |part: &Range<usize>| format!("{}-{}", part.start, part.end - 1);
        match self {
            RequestKind::Whole | RequestKind::Head => (String::new(), 200),
            RequestKind::Post => (String::new(), 405),
            RequestKind::AfterEnd => (format!("Range: bytes={length}-\r\n"), 416),
            RequestKind::LastBytes(count) => (format!("Range: bytes=-{count}\r\n"), 206),
            RequestKind::TwoRanges(first, second) => {
                (format!("Range: bytes={}, {}\r\n", range(first), range(second)), 206)
            }
            RequestKind::Range(part, condition) => {
                let (value, status) = match (condition, tag) {
                    (Precondition::None, _) | (Precondition::Tag, None) => (None, 206),
                    (Precondition::Tag, Some(tag)) => (Some(tag), 206),
                    (Precondition::After | Precondition::Before, _) => (Some(BEFORE), 200),
                    (Precondition::OtherTag, _) => (Some("\"other\""), 200),
                };
                let condition =
                    value.map_or(String::new(), |value| format!("If-Range: {value}\r\n"));
                (format!("Range: bytes={}\r\n{condition}", range(part)), status)
            }
            RequestKind::Conditional(condition) => {
                let tag = tag.unwrap_or("*");
                match condition {
                    Precondition::None | Precondition::Tag => {
                        (format!("If-None-Match: \"x\", {tag}\r\n"), 304)
                    }
                    Precondition::OtherTag => ("If-None-Match: \"other\"\r\n".to_string(), 200),
                    Precondition::Before => (format!("If-Modified-Since: {BEFORE}\r\n"), 200),
                    Precondition::After if length.is_multiple_of(2) => {
                        (format!("If-Modified-Since: {AFTER}\r\n"), 304)
                    }
                    Precondition::After => (format!("If-Modified-Since: {MODIFIED}\r\n"), 304),
                }
            }
        }
    }
}

/// Draws a page, a content coding and a kind of request that fit together.
fn draw(dice: &mut Dice) -> (Option<usize>, usize, RequestKind) {
    let page = dice.below(pages().len() as u64 + 1) as usize;
    let coding = dice.below(CODINGS.len() as u64) as usize;
    let Some(found) = pages().get(page) else { return (None, coding, RequestKind::Whole) };
    let length = found.form(coding).1.len();
    let condition = [
        Precondition::None,
        Precondition::Tag,
        Precondition::OtherTag,
        Precondition::Before,
        Precondition::After,
    ][dice.below(5) as usize];
    let kind = match dice.below(8) {
        0 => RequestKind::Head,
        1 => RequestKind::Post,
        2 => RequestKind::Conditional(condition),
        // An empty page has no ranges.
        3 if length > 0 => RequestKind::Range(some_part(length, dice), condition),
        4 if length > 0 => RequestKind::LastBytes(1 + dice.below(length as u64) as usize),
        5 if length > 100 => {
            RequestKind::TwoRanges(some_part(length / 2, dice), length / 2 + 10..length)
        }
        6 if length > 0 => RequestKind::AfterEnd,
        _ => RequestKind::Whole,
    };
    (Some(page), coding, kind)
}

fn some_part(length: usize, dice: &mut Dice) -> Range<usize> {
    let start = dice.below(length as u64) as usize;
    start..start + 1 + dice.below((length - start) as u64) as usize
}
