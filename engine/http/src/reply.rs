//! Replies: what a program says to a question, with fields and a body of its own.
//!
//! Invariants:
//! - Nothing in a value ends a line: what is no field's value by RFC 9110 section 5.5 is left out, with its field.
//! - The head of a reply fits into [`crate::RESPONSE_HEAD_BYTES_MAX`], as all heads do: fields that do not are left out.
//!
//! Answers to: RFC 9110 sections 5.5, 8.6 and 15.5.6; RFC 9112 sections 6.1 and 7.1 (chunks).

use alloc::string::String;
use alloc::vec::Vec;

use crate::head::is_value;
use crate::open_reply::{Open, Pace};
use crate::outgoing::{Outgoing, UNSAID_BYTES_MAX};
use crate::response::ResponseHead;
use crate::types::{After, Method, Status};

/// Bytes that a reply's own fields may take, with their names and the ends of their lines.
pub const REPLY_FIELDS_BYTES_MAX: usize = 1536;

/// A field that a reply may have; each may be said several times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "they are the protocol's words")]
pub enum Field {
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

impl Field {
    fn name(self) -> &'static str {
        match self {
            Field::Allow => "Allow",
            Field::CacheControl => "Cache-Control",
            Field::ClearSiteData => "Clear-Site-Data",
            Field::ContentDisposition => "Content-Disposition",
            Field::ContentSecurityPolicy => "Content-Security-Policy",
            Field::CrossOriginOpenerPolicy => "Cross-Origin-Opener-Policy",
            Field::CrossOriginResourcePolicy => "Cross-Origin-Resource-Policy",
            Field::Location => "Location",
            Field::ReferrerPolicy => "Referrer-Policy",
            Field::SetCookie => "Set-Cookie",
            Field::WwwAuthenticate => "WWW-Authenticate",
            Field::XContentTypeOptions => "X-Content-Type-Options",
            Field::XDnsPrefetchControl => "X-DNS-Prefetch-Control",
        }
    }
}

/// What a program says to a question.
#[derive(Debug)]
pub struct Reply {
    status: Status,
    /// Lines with their ends.
    fields: String,
    content_type: &'static str,
    body: Vec<u8>,
    open: Option<Open>,
    /// Whether only chunks can tell where the body ends, and the client knows them.
    in_chunks: bool,
}

impl Reply {
    /// `status`: one whose answers have a body. To HEAD the body is not sent, but its length is told.
    pub fn new(status: Status, content_type: &'static str, body: Vec<u8>) -> Reply {
        Reply { status, fields: String::new(), content_type, body, open: None, in_chunks: false }
    }

    /// One that stays open: `body` is what is said first. The program goes on with [`crate::Session::fed`], when it likes or is asked, until it ends it by
    /// [`crate::Session::fed_up`], or is told by [`crate::Actions::left`] that nobody listens any more.
    pub fn open(content_type: &'static str, body: Vec<u8>, open: Open) -> Reply {
        Reply { open: Some(open), ..Reply::new(Status::Ok, content_type, body) }
    }

    /// What the program names it by, if it stays open.
    pub fn number(&self) -> Option<u64> {
        self.open.map(|open| open.number)
    }

    /// What becomes of the connection after it, if it goes on as the request says when its end shows otherwise.
    pub(crate) fn sent_to(&mut self, after: After) -> After {
        match self.open.map(|open| open.pace) {
            None | Some(Pace::Client { length: Some(_) }) => after,
            // Chunks are of HTTP/1.1, of which connections stay open unless somebody says otherwise.
            Some(Pace::Client { length: None }) if after == After::Open => {
                self.in_chunks = true;
                after
            }
            // Of any other that stays open only the connection's end says where it ends.
            Some(_) => After::Close,
        }
    }

    /// Whether its body is to be framed in chunks, in HTTP/1.1.
    pub(crate) fn is_in_chunks(&self) -> bool {
        self.in_chunks
    }

    /// A text, for nobody to keep.
    pub fn text(status: Status, text: String) -> Reply {
        Reply::new(status, "text/plain; charset=utf-8", text.into_bytes())
            .with(Field::CacheControl, "no-store")
    }

    /// The status in words, and nothing else.
    pub fn refusal(status: Status) -> Reply {
        Reply::text(status, status.line().into())
    }

    /// It may be asked in these ways alone.
    pub(crate) fn only_these(methods: &[Method]) -> Reply {
        let names: Vec<&str> = methods.iter().map(|method| method.name()).collect();
        Reply::refusal(Status::MethodNotAllowed).with(Field::Allow, &names.join(", "))
    }

    /// The same with one more field. A value that is none is left out, and so is what does not fit into [`REPLY_FIELDS_BYTES_MAX`] with those before it.
    #[must_use]
    pub fn with(mut self, field: Field, value: &str) -> Reply {
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

    /// Bytes of memory that it takes, but for its body.
    pub fn kept_bytes(&self) -> usize {
        size_of::<Reply>() + self.fields.capacity()
    }

    /// Writes the head but for what every head says, and gives the body away.
    pub(crate) fn begin(&mut self, head: &mut ResponseHead) -> Outgoing {
        head.text(&self.fields).field("Content-Type", self.content_type);
        let body = core::mem::take(&mut self.body);
        if let Some(open) = self.open {
            match open.pace {
                Pace::Client { length: Some(length) } => {
                    head.number_field("Content-Length", length)
                }
                _ if self.in_chunks => head.field("Transfer-Encoding", "chunked"),
                _ => head,
            };
            return Outgoing::open(open, body);
        }
        head.number_field("Content-Length", body.len() as u64);
        Outgoing::own(body)
    }

    /// More of what is said first, if it stays open and was not begun.
    pub(crate) fn say(&mut self, number: u64, bytes: &[u8]) {
        // Who sets the pace himself is asked for nothing before the reply has begun.
        if self.number() == Some(number) && self.body.len() + bytes.len() <= UNSAID_BYTES_MAX {
            self.body.extend_from_slice(bytes);
        }
    }
}
