//! Replies: the response of a handler, with fields and a body of its own.
//!
//! Invariants:
//! - No value ends a line. A value that is no field value by RFC 9110 section 5.5 is left out,
//!   together with its field.
//! - The head of a reply fits into [`crate::RESPONSE_HEAD_BYTES_MAX`], as all heads do. Fields that
//!   do not fit are left out.
//!
//! Implements: RFC 9110 sections 5.5, 8.6 and 15.5.6; RFC 9112 sections 6.1 and 7.1 (chunks).

use alloc::string::String;
use alloc::vec::Vec;

use crate::head::is_value;
use crate::open_reply::{OpenReply, ReplyPace};
use crate::outgoing::{OutgoingBody, UNSAID_BYTES_MAX};
use crate::response::ResponseHead;
use crate::types::{After, Method, Status};

/// Bytes that the fields of a reply may take, with their names and line ends.
pub const REPLY_FIELDS_BYTES_MAX: usize = 1536;

/// A field that a reply may have. Each may occur several times.
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
    /// Whether only chunks can mark the end of the body, and the client understands them.
    in_chunks: bool,
}

impl Reply {
    /// `status`: one that allows a body. A response to HEAD has no body, but tells its length.
    pub fn new(status: Status, content_type: &'static str, body: Vec<u8>) -> Reply {
        Reply { status, fields: String::new(), content_type, body, open: None, in_chunks: false }
    }

    /// A reply that stays open. `body` is sent first. The handler continues with
    /// [`crate::Session::continue_reply`], when it likes or when it is asked. It ends the reply
    /// with [`crate::Session::end_reply`], or [`crate::Actions::left`] tells it that the client is
    /// gone.
    pub fn open(content_type: &'static str, body: Vec<u8>, open: OpenReply) -> Reply {
        Reply { open: Some(open), ..Reply::new(Status::Ok, content_type, body) }
    }

    /// The handler's number for it, if it stays open.
    pub fn number(&self) -> Option<u64> {
        self.open.map(|open| open.number)
    }

    /// What happens to the connection after the reply. It is `after`, as the request says, if the
    /// end of the reply can be marked otherwise.
    pub(crate) fn sent_to(&mut self, after: After) -> After {
        match self.open.map(|open| open.pace) {
            None | Some(ReplyPace::Client { length: Some(_) }) => after,
            // Chunks exist in HTTP/1.1, where connections stay open by default.
            Some(ReplyPace::Client { length: None }) if after == After::Open => {
                self.in_chunks = true;
                after
            }
            // Only the end of the connection marks the end of any other open reply.
            Some(_) => After::Close,
        }
    }

    /// Whether its body must be framed in chunks, in HTTP/1.1.
    pub(crate) fn is_in_chunks(&self) -> bool {
        self.in_chunks
    }

    /// A text that no cache may store.
    pub fn text(status: Status, text: String) -> Reply {
        Reply::new(status, "text/plain; charset=utf-8", text.into_bytes())
            .with(ReplyField::CacheControl, "no-store")
    }

    /// A reply with its status line as text.
    pub fn refusal(status: Status) -> Reply {
        Reply::text(status, status.line().into())
    }

    /// A refusal that lists the supported methods.
    pub(crate) fn only_these(methods: &[Method]) -> Reply {
        let names: Vec<&str> = methods.iter().map(|method| method.name()).collect();
        Reply::refusal(Status::MethodNotAllowed).with(ReplyField::Allow, &names.join(", "))
    }

    /// Adds a field. A malformed value is left out, and so is a field that does not fit into
    /// [`REPLY_FIELDS_BYTES_MAX`] with the fields before it.
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

    /// Bytes of its body.
    pub fn body_bytes(&self) -> usize {
        self.body.len()
    }

    /// Bytes of memory that it takes, without its body.
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

    /// Appends to the first part of an open reply that has not begun.
    pub(crate) fn say(&mut self, number: u64, bytes: &[u8]) {
        // If the client sets the pace, the handler is asked for nothing before the reply has begun.
        if self.number() == Some(number) && self.body.len() + bytes.len() <= UNSAID_BYTES_MAX {
            self.body.extend_from_slice(bytes);
        }
    }
}
