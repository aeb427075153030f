//! Replies: the responses of handlers, which choose the header fields and the body.
//!
//! Invariants:
//! - No field value contains a line end. A field with a value that RFC 9110 section 5.5 does not
//!   allow is left out.
//! - The head of a reply fits into [`crate::RESPONSE_HEAD_BYTES_MAX`], as all heads do. Fields that
//!   do not fit are left out.
//!
//! Implements: RFC 9110 sections 5.5, 8.6 and 15.5.6; RFC 9112 sections 6.1 and 7.1 (chunks).

use alloc::string::String;
use alloc::vec::Vec;

use crate::head::is_value;
use crate::open_reply::{OpenReply, ReplyPace};
use crate::outgoing::{OutgoingBody, UNTAKEN_BYTES_MAX};
use crate::response::ResponseHead;
use crate::types::{After, Method, Status};

/// The most bytes of all fields of a reply together, with their names and line ends.
pub const REPLY_FIELDS_BYTES_MAX: usize = 1536;

/// A header field that a reply may have. Each field may occur several times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "they are the protocol's words")]
pub enum ReplyField {
    Allow,
    CacheControl,
    ClearSiteData,
    ContentDisposition,
    ContentSecurityPolicy,
    CrossOriginOpenerPolicy,
    CrossOriginResourcePolicy,
    Location,
    ReferrerPolicy,
    SetCookie,
    WwwAuthenticate,
    XContentTypeOptions,
    XDnsPrefetchControl,
}

impl ReplyField {
    fn name(self) -> &'static str {
        match self {
            ReplyField::Allow => "Allow",
            ReplyField::CacheControl => "Cache-Control",
            ReplyField::ClearSiteData => "Clear-Site-Data",
            ReplyField::ContentDisposition => "Content-Disposition",
            ReplyField::ContentSecurityPolicy => "Content-Security-Policy",
            ReplyField::CrossOriginOpenerPolicy => "Cross-Origin-Opener-Policy",
            ReplyField::CrossOriginResourcePolicy => "Cross-Origin-Resource-Policy",
            ReplyField::Location => "Location",
            ReplyField::ReferrerPolicy => "Referrer-Policy",
            ReplyField::SetCookie => "Set-Cookie",
            ReplyField::WwwAuthenticate => "WWW-Authenticate",
            ReplyField::XContentTypeOptions => "X-Content-Type-Options",
            ReplyField::XDnsPrefetchControl => "X-DNS-Prefetch-Control",
        }
    }
}

/// The response of a handler to a request.
#[derive(Debug)]
pub struct Reply {
    status: Status,
    /// Header lines with their line ends.
    fields: String,
    content_type: &'static str,
    body: Vec<u8>,
    open: Option<OpenReply>,
    /// Whether the body is framed in chunks, since no length is known and the client supports
    /// chunks.
    in_chunks: bool,
}

impl Reply {
    /// A reply. `status` must allow a body. The response to a HEAD request leaves the body out, but
    /// has its length.
    pub fn new(status: Status, content_type: &'static str, body: Vec<u8>) -> Reply {
        Reply { status, fields: String::new(), content_type, body, open: None, in_chunks: false }
    }

    /// A reply that stays open. `body` is sent first. The handler continues the reply with
    /// [`crate::Session::continue_reply`]. With [`ReplyPace::Handler`] it does so at any time, with
    /// [`ReplyPace::Client`] only after [`crate::Actions::wanted`]. The handler ends the reply with
    /// [`crate::Session::end_reply`]. [`crate::Actions::left`] reports that the reply has ended.
    pub fn open(content_type: &'static str, body: Vec<u8>, open: OpenReply) -> Reply {
        Reply { open: Some(open), ..Reply::new(Status::Ok, content_type, body) }
    }

    /// The handler's number for the reply, if the reply stays open.
    pub fn number(&self) -> Option<u64> {
        self.open.map(|open| open.number)
    }

    /// Decides what happens to the connection after the reply, and whether the body is framed in
    /// chunks. The connection is closed if only its end can mark the end of the reply. Otherwise
    /// the result is `after`, which the request asks for.
    pub(crate) fn sent_to(&mut self, after: After) -> After {
        match self.open.map(|open| open.pace) {
            None | Some(ReplyPace::Client { length: Some(_) }) => after,
            // Only a request of HTTP/1.1 gives `After::Open`. So the client supports chunks.
            Some(ReplyPace::Client { length: None }) if after == After::Open => {
                self.in_chunks = true;
                after
            }
            // Only the end of the connection marks the end of any other open reply.
            Some(_) => After::Close,
        }
    }

    /// Whether HTTP/1.1 must frame the body in chunks.
    pub(crate) fn is_in_chunks(&self) -> bool {
        self.in_chunks
    }

    /// A text reply that no cache may store.
    pub fn text(status: Status, text: String) -> Reply {
        Reply::new(status, "text/plain; charset=utf-8", text.into_bytes())
            .with(ReplyField::CacheControl, "no-store")
    }

    /// A reply with the code and reason phrase of `status` as text.
    pub fn refusal(status: Status) -> Reply {
        Reply::text(status, status.line().into())
    }

    /// A 405 reply that lists the supported methods.
    pub(crate) fn only_these(methods: &[Method]) -> Reply {
        let names: Vec<&str> = methods.iter().map(|method| method.name()).collect();
        Reply::refusal(Status::MethodNotAllowed).with(ReplyField::Allow, &names.join(", "))
    }

    /// Adds a header field. It is left out if its value is malformed, or if all fields together
    /// would exceed [`REPLY_FIELDS_BYTES_MAX`].
    #[must_use]
    pub fn with(mut self, field: ReplyField, value: &str) -> Reply {
        let value = value.trim_matches([' ', '\t']);
        let line = [field.name(), ": ", value, "\r\n"];
        let bytes: usize = line.iter().map(|part| part.len()).sum();
        if is_value(value.as_bytes()) && self.fields.len() + bytes <= REPLY_FIELDS_BYTES_MAX {
            self.fields.extend(line);
        }
        self
    }

    pub(crate) fn status(&self) -> Status {
        self.status
    }

    /// The length of the body in bytes.
    pub fn body_bytes(&self) -> usize {
        self.body.len()
    }

    /// The memory of the reply without its body, in bytes.
    pub fn kept_bytes(&self) -> usize {
        size_of::<Reply>() + self.fields.capacity()
    }

    /// Writes the part of the head that belongs to this reply, and moves the body out.
    pub(crate) fn begin(&mut self, head: &mut ResponseHead) -> OutgoingBody {
        head.text(&self.fields).field("Content-Type", self.content_type);
        let body = core::mem::take(&mut self.body);
        if let Some(open) = self.open {
            match open.pace {
                ReplyPace::Client { length: Some(length) } => {
                    head.number_field("Content-Length", length)
                }
                _ if self.in_chunks => head.field("Transfer-Encoding", "chunked"),
                _ => head,
            };
            return OutgoingBody::open(open, body);
        }
        head.number_field("Content-Length", body.len() as u64);
        OutgoingBody::own(body)
    }

    /// Appends `bytes` to the body of the open reply `number`, of which nothing is sent yet.
    pub(crate) fn say(&mut self, number: u64, bytes: &[u8]) {
        // Only a handler that sets the pace adds bytes before the reply has begun. Any other
        // handler waits for `Actions::wanted`, which is called only after that.
        if self.number() == Some(number) && self.body.len() + bytes.len() <= UNTAKEN_BYTES_MAX {
            self.body.extend_from_slice(bytes);
        }
    }
}
