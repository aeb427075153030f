//! The answer to a request: a file or a part of it in some coding, a redirection, an error, or the
//! reply of a handler.
//!
//! Implements: RFC 9112 section 3.2.2 (which host counts), RFC 6797 section 7.2 (plaintext
//! requests); RFC 9110 sections 9 (methods), 13.2.2 (order of conditions), 14.2 (ranges) and 15
//! (status codes).

use alloc::boxed::Box;
use alloc::string::String;
use core::ops::Range;

use crate::actions::{Actions, ExchangeSummary};
use crate::coding::{Accepted, Coding};
use crate::conditions::{self, ConditionResult, Selected};
use crate::handler_request::QueuedRequest;
use crate::head::{FieldName, RequestHead, Version};
use crate::ranges::{self, Parts};
use crate::reply::Reply;
use crate::response::{ALLOW, ResponseHead};
use crate::response_cache::CachedFile;
use crate::site::{Representation, Resource, Site};
use crate::target::{PathBuffer, RequestTarget, authority, split_absolute};
use crate::types::{After, HttpsPolicy, Method, Status};

use crate::outgoing::{OutgoingBody, PartsLeft};

/// The longest request target that is redirected, in bytes.
const MOVED_BYTES_MAX: usize = 1024;

/// The longest name of a host, in bytes.
const HOST_BYTES_MAX: usize = 255;

/// The file that is served for a folder.
const INDEX: &[u8] = b"index.html";
const INDEX_BELOW: &[u8] = b"/index.html";

/// An answer that is known and not sent yet.
#[derive(Debug)]
pub(crate) struct PendingResponse {
    content: ResponseContent,
    /// Whether the client wants only the head, without the body.
    head_only: bool,
    after: After,
}

/// The result of reading the head of a request.
pub(crate) enum Course {
    /// The answer is known.
    Known(PendingResponse),
    /// A handler must be asked.
    Handler(Box<QueuedRequest>),
}

impl Course {
    /// Reads a request for `path`. The handler of this path supports `methods`.
    ///
    /// Errors: the request is ambiguous.
    fn of(
        path: &[u8],
        methods: &'static [Method],
        head: &RequestHead<'_, '_>,
        after: After,
    ) -> Result<Course, Status> {
        let head_only = head.method == b"HEAD";
        let refused = |reply| Ok(Course::Known(PendingResponse::replied(reply, head_only, after)));
        let Some(method) = Method::of(head.method).filter(|method| methods.contains(method)) else {
            return refused(Reply::only_these(methods));
        };
        let Ok(path) = core::str::from_utf8(path) else {
            return refused(Reply::refusal(Status::NotFound));
        };
        Ok(Course::Handler(Box::new(QueuedRequest::read(method, path, head, after)?)))
    }
}

#[derive(Debug)]
enum ResponseContent {
    /// A whole file.
    Whole(Representation),
    /// Parts of a file.
    Parts { resource: Resource, coding: Coding, part: FileRanges },
    /// The client already has the file.
    NotModified { resource: Resource, coding: Coding },
    /// The path is a folder. The value is its URL, with a slash after the path.
    Moved(String),
    /// The page is served over TLS only. The value is its URL.
    OverTls(String),
    /// The list of supported methods.
    Options,
    /// None of the requested parts exists. The value is the length of the file in bytes.
    OutOfRange(u64),
    /// An error. The site may have a page for it.
    Error(Status, Option<Resource>),
    /// The reply of a handler.
    Reply(Box<Reply>),
}

/// The requested parts of a file.
#[derive(Debug)]
enum FileRanges {
    One(Range<u64>),
    Many(Box<Parts>),
}

impl PendingResponse {
    /// Returns the answer to a request, or the request for a handler that decides the answer.
    ///
    /// Errors: the request is malformed, and the connection must end.
    pub(crate) fn to(head: &RequestHead<'_, '_>, actions: &impl Actions) -> Result<Course, Status> {
        let site = actions.site();
        let mut room = PathBuffer::default();
        let target = match RequestTarget::parse(head.target, &mut room) {
            Err(Status::BadRequest) if head.method != b"CONNECT" => return Err(Status::BadRequest),
            target => target,
        };
        let methods =
            if let Ok(RequestTarget::Path(path)) = target { actions.methods(path) } else { &[] };
        let content = match (head.method, target) {
            _ if head
                .values(FieldName::Expect)
                .any(|value| !value.eq_ignore_ascii_case(b"100-continue")) =>
            {
                ResponseContent::error(Status::ExpectationFailed, site)
            }
            (_, Ok(RequestTarget::Path(_))) if actions.https_policy() == HttpsPolicy::Redirect => {
                over_tls(head, actions)
            }
            (_, Ok(RequestTarget::Path(path))) if !methods.is_empty() => {
                return Course::of(path, methods, head, after(head));
            }
            (b"GET" | b"HEAD", Ok(RequestTarget::Path(path))) => file(path, head, site),
            (b"GET" | b"HEAD", Ok(RequestTarget::Server)) => return Err(Status::BadRequest),
            (b"OPTIONS", Ok(_)) => ResponseContent::Options,
            (b"GET" | b"HEAD" | b"OPTIONS", Err(status)) => ResponseContent::error(status, site),
            (b"POST" | b"PUT" | b"DELETE" | b"CONNECT" | b"TRACE" | b"PATCH", _) => {
                ResponseContent::error(Status::MethodNotAllowed, site)
            }
            _ => ResponseContent::error(Status::NotImplemented, site),
        };
        Ok(Course::Known(PendingResponse {
            content,
            head_only: head.method == b"HEAD",
            after: after(head),
        }))
    }

    /// The answer to bytes that are not a valid request. `head_only`: whether only the head of the
    /// answer may be sent.
    pub(crate) fn refusal(status: Status, head_only: bool, site: &Site) -> PendingResponse {
        PendingResponse {
            content: ResponseContent::error(status, site),
            head_only,
            after: After::Close,
        }
    }

    /// The reply of a handler.
    fn replied(mut reply: Reply, head_only: bool, after: After) -> PendingResponse {
        let after = reply.sent_to(after);
        PendingResponse { content: ResponseContent::Reply(Box::new(reply)), head_only, after }
    }

    /// The answer that sends `reply` to the request `asked`. Also reports the answer to `actions`,
    /// for the access log.
    pub(crate) fn from_reply(
        asked: &QueuedRequest,
        reply: Reply,
        actions: &mut impl Actions,
    ) -> PendingResponse {
        let answer = PendingResponse::replied(reply, asked.method() == Method::Head, asked.after());
        let (status, bytes) = (answer.status().code(), answer.body_bytes());
        actions.answered(|| ExchangeSummary {
            method: asked.method().name(),
            target: asked.target(),
            status,
            bytes,
        });
        answer
    }

    /// The size of the handler's body that the answer holds until it is sent, in bytes.
    pub(crate) fn own_bytes(&self) -> usize {
        if let ResponseContent::Reply(reply) = &self.content { reply.body_bytes() } else { 0 }
    }

    /// The memory of the answer without [`PendingResponse::own_bytes`], in bytes.
    pub(crate) fn kept_bytes(&self) -> usize {
        let content = match &self.content {
            ResponseContent::Reply(reply) => reply.kept_bytes(),
            ResponseContent::Moved(target) | ResponseContent::OverTls(target) => target.capacity(),
            ResponseContent::Parts { part: FileRanges::Many(_), .. } => size_of::<Parts>(),
            _ => 0,
        };
        size_of::<PendingResponse>() + content
    }

    /// The number that the handler has given the reply, if the answer is an open reply: the handler
    /// continues its body after the head is sent.
    pub(crate) fn number(&self) -> Option<u64> {
        if let ResponseContent::Reply(reply) = &self.content { reply.number() } else { None }
    }

    /// Whether HTTP/1.1 must frame the body in chunks.
    pub(crate) fn is_in_chunks(&self) -> bool {
        matches!(&self.content, ResponseContent::Reply(reply) if reply.is_in_chunks())
    }

    /// Adds bytes from the handler to the open reply `number`. The reply was not begun yet.
    pub(crate) fn say(&mut self, number: u64, bytes: &[u8]) {
        if let ResponseContent::Reply(reply) = &mut self.content {
            reply.say(number, bytes);
        }
    }

    /// The whole file in the form for the cache, if the answer is a whole file.
    pub(crate) fn page(&self) -> Option<CachedFile> {
        match self.content {
            ResponseContent::Whole(representation) => {
                Some(CachedFile { representation, head_only: self.head_only, after: self.after })
            }
            _ => None,
        }
    }

    /// Makes the connection end after this answer.
    pub(crate) fn ends_connection(&mut self) {
        self.after = After::Close;
    }

    pub(crate) fn after(&self) -> After {
        self.after
    }

    pub(crate) fn status(&self) -> Status {
        match &self.content {
            ResponseContent::Whole(_) => Status::Ok,
            ResponseContent::Parts { .. } => Status::PartialContent,
            ResponseContent::NotModified { .. } => Status::NotModified,
            ResponseContent::Moved(_) => Status::MovedPermanently,
            ResponseContent::OverTls(_) => Status::PermanentRedirect,
            ResponseContent::Options => Status::NoContent,
            ResponseContent::OutOfRange(_) => Status::RangeNotSatisfiable,
            ResponseContent::Error(status, _) => *status,
            ResponseContent::Reply(reply) => reply.status(),
        }
    }

    /// Length of the response body in bytes.
    pub(crate) fn body_bytes(&self) -> u64 {
        match &self.content {
            _ if self.head_only => 0,
            ResponseContent::Whole(representation) => representation.bytes.len() as u64,
            ResponseContent::Parts { resource, coding, part } => part.length(resource, *coding),
            ResponseContent::Error(status, page) => error_length(*status, page.as_ref()),
            ResponseContent::Reply(reply) => reply.body_bytes() as u64,
            ResponseContent::NotModified { .. }
            | ResponseContent::Moved(_)
            | ResponseContent::OverTls(_)
            | ResponseContent::Options
            | ResponseContent::OutOfRange(_) => 0,
        }
    }

    /// Writes the head of the response without its last, empty line. Returns the body.
    pub(crate) fn begin(
        &mut self,
        head: &mut ResponseHead,
        actions: &mut impl Actions,
    ) -> OutgoingBody {
        head.begin(self.status(), self.after, &actions.date(), actions.https_policy());
        let head_only = self.head_only;
        match &mut self.content {
            ResponseContent::Whole(representation) => {
                head.bytes(representation.head);
                return if head_only {
                    OutgoingBody::Nothing
                } else {
                    OutgoingBody::Bytes(representation.bytes)
                };
            }
            ResponseContent::Parts { resource, coding, part } => {
                let outgoing = part.begin(head, resource, *coding);
                return if head_only { OutgoingBody::Nothing } else { outgoing };
            }
            ResponseContent::Error(status, page) => {
                return begin_error(head, *status, page.as_ref(), head_only);
            }
            ResponseContent::Reply(reply) => {
                let outgoing = reply.begin(head);
                return if head_only { OutgoingBody::Nothing } else { outgoing };
            }
            ResponseContent::NotModified { resource, coding } => {
                head.validators(*coding, resource.digits(), resource.modified(), resource.varies())
            }
            ResponseContent::Moved(location) | ResponseContent::OverTls(location) => {
                head.field("Location", location).number_field("Content-Length", 0)
            }
            ResponseContent::Options => head.text(ALLOW),
            ResponseContent::OutOfRange(length) => head
                .formatted_field("Content-Range", format_args!("bytes */{length}"))
                .number_field("Content-Length", 0),
        };
        OutgoingBody::Nothing
    }
}

impl From<CachedFile> for PendingResponse {
    fn from(page: CachedFile) -> PendingResponse {
        PendingResponse {
            content: ResponseContent::Whole(page.representation),
            head_only: page.head_only,
            after: page.after,
        }
    }
}

impl ResponseContent {
    /// An error. The site's page for a status has the name of its code, such as `404.html`.
    fn error(status: Status, site: &Site) -> ResponseContent {
        let text = status.text();
        let code = text.split(' ').next().unwrap_or_default();
        ResponseContent::Error(status, site.find(&alloc::format!("/{code}.html")))
    }
}

impl FileRanges {
    fn of(parts: Parts) -> FileRanges {
        match parts.as_slice() {
            [only] => FileRanges::One(only.clone()),
            _ => FileRanges::Many(Box::new(parts)),
        }
    }

    /// Writes the header fields that describe the parts, and returns the body.
    fn begin(&self, head: &mut ResponseHead, resource: &Resource, coding: Coding) -> OutgoingBody {
        let Some(Representation { bytes, .. }) = resource.representation(coding) else {
            return OutgoingBody::Nothing;
        };
        match self {
            FileRanges::One(range) => {
                let last = range.end.saturating_sub(1);
                let value = format_args!("bytes {}-{last}/{}", range.start, bytes.len());
                head.file(coding, resource.digits(), resource.modified(), resource.varies())
                    .formatted_field("Content-Range", value)
                    .field("Content-Type", resource.content_type())
                    .number_field("Content-Length", self.length(resource, coding));
                OutgoingBody::Bytes(outgoing_part(bytes, range))
            }
            FileRanges::Many(parts) => {
                let boundary = PartsLeft::boundary(resource);
                let value = format_args!("multipart/byteranges; boundary={boundary}");
                head.file(coding, resource.digits(), resource.modified(), resource.varies())
                    .formatted_field("Content-Type", value)
                    .number_field("Content-Length", self.length(resource, coding));
                OutgoingBody::Parts(Box::new(PartsLeft::new(*resource, bytes, parts)))
            }
        }
    }

    /// Length of the response body in bytes.
    fn length(&self, resource: &Resource, coding: Coding) -> u64 {
        let whole = resource
            .representation(coding)
            .map_or(0, |representation| representation.bytes.len() as u64);
        match self {
            FileRanges::One(range) => range.end - range.start,
            FileRanges::Many(parts) => PartsLeft::length(resource, whole, parts),
        }
    }
}

/// Writes the head of an error and returns the body: the page of the site, or the status as text.
fn begin_error(
    head: &mut ResponseHead,
    status: Status,
    page: Option<&Resource>,
    head_only: bool,
) -> OutgoingBody {
    if status == Status::MethodNotAllowed {
        head.text(ALLOW);
    }
    head.number_field("Content-Length", error_length(status, page));
    let (bytes, content_type) =
        match page.and_then(|page| Some((page, page.representation(Coding::Identity)?))) {
            Some((page, found)) => (found.bytes, page.content_type()),
            None => (status.line().as_bytes(), "text/plain; charset=utf-8"),
        };
    head.field("Content-Type", content_type);
    if head_only || bytes.is_empty() { OutgoingBody::Nothing } else { OutgoingBody::Bytes(bytes) }
}

fn error_length(status: Status, page: Option<&Resource>) -> u64 {
    match page.and_then(|page| page.representation(Coding::Identity)) {
        Some(page) => page.bytes.len() as u64,
        None => status.line().len() as u64,
    }
}

fn outgoing_part(bytes: &'static [u8], range: &Range<u64>) -> &'static [u8] {
    bytes.get(range.start as usize..range.end as usize).unwrap_or_default()
}

/// The file at `path`, or the reason why it is not sent.
fn file(path: &[u8], head: &RequestHead<'_, '_>, site: &Site) -> ResponseContent {
    let found =
        if path.ends_with(b"/") { site.find_in(path, INDEX) } else { site.find_in(path, b"") };
    match found {
        Some(resource) => form(resource, head),
        None if is_folder(path, site) && head.target.len() <= MOVED_BYTES_MAX => {
            ResponseContent::Moved(moved(head.target))
        }
        None => ResponseContent::error(Status::NotFound, site),
    }
}

fn is_folder(path: &[u8], site: &Site) -> bool {
    site.find_in(path, INDEX_BELOW).is_some()
}

/// The request target with a slash after its path. The query is kept.
fn moved(target: &[u8]) -> String {
    let target = core::str::from_utf8(target).unwrap_or_default();
    let (path, query) = target.split_at(target.find('?').unwrap_or(target.len()));
    // A target with two slashes at the start would name another host.
    let path = path.strip_prefix('/').map_or(path, |rest| rest.trim_start_matches('/'));
    if path.contains("://") {
        alloc::format!("{path}/{query}")
    } else {
        alloc::format!("/{path}/{query}")
    }
}

/// A redirection to the same page over TLS. The host name stays if it is one of our names. The URL
/// has no port, so the client uses the default.
fn over_tls(head: &RequestHead<'_, '_>, actions: &impl Actions) -> ResponseContent {
    let target = core::str::from_utf8(head.target).unwrap_or_default();
    let (authority, path) =
        (authority(head), split_absolute(target).map_or(target, |(_, path)| path));
    let host =
        authority.split(':').next().filter(|host| host.len() <= HOST_BYTES_MAX).unwrap_or_default();
    if path.len() > MOVED_BYTES_MAX {
        return ResponseContent::error(Status::UriTooLong, actions.site());
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    ResponseContent::OverTls(alloc::format!("https://{}{slash}{path}", actions.name_over_tls(host)))
}

/// Decides which coding of a file is sent, and which parts of it.
fn form(resource: Resource, head: &RequestHead<'_, '_>) -> ResponseContent {
    let accepted = Accepted::from_fields(head.values(FieldName::AcceptEncoding));
    let coding = accepted.best(|coding| resource.representation(coding).is_some());
    let own = Selected { resource: &resource, coding };
    match conditions::evaluate(head, own) {
        ConditionResult::NotModified => return ResponseContent::NotModified { resource, coding },
        ConditionResult::Failed => return ResponseContent::Error(Status::PreconditionFailed, None),
        ConditionResult::Proceed => {}
    }
    let Some(representation) = resource.representation(coding) else {
        return ResponseContent::Error(Status::NotFound, None);
    };
    match head.only(FieldName::Range) {
        // Ranges are defined only for GET (RFC 9110 section 14.2).
        Ok(Some(range)) if head.method == b"GET" && conditions::allows_range(head, own) => {
            let length = representation.bytes.len() as u64;
            match ranges::parse(range, length) {
                ranges::RequestedRanges::Nothing => ResponseContent::OutOfRange(length),
                ranges::RequestedRanges::Whole => ResponseContent::Whole(representation),
                ranges::RequestedRanges::Parts(parts) => {
                    ResponseContent::Parts { resource, coding, part: FileRanges::of(parts) }
                }
            }
        }
        _ => ResponseContent::Whole(representation),
    }
}

/// Whether the connection stays open (RFC 9112 section 9.3).
fn after(head: &RequestHead<'_, '_>) -> After {
    match head.version {
        _ if head.lists(FieldName::Connection, "close") => After::Close,
        Version::Http11 => After::Open,
        Version::Http10 if head.lists(FieldName::Connection, "keep-alive") => After::OpenAsAsked,
        Version::Http10 => After::Close,
    }
}
