//! Heads of responses, and bodies of those that no file stands for.
//!
//! Answers to: RFC 9112 section 4, RFC 9110 sections 8, 10.2 and 15.

use core::fmt::{self, Write};

use heapless::Vec;

use crate::actions::{Actions, Secrecy};
use crate::coding::Coding;

/// The longest head of a response, in bytes, with the body of one that says what was wrong.
pub const RESPONSE_HEAD_BYTES_MAX: usize = 2048;

/// What to tell a client for whom there is no session, before the connection is closed.
pub const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 10\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// What an answer comes to (RFC 9110 section 15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "they are the protocol's words")]
pub enum Status {
    Ok,
    NoContent,
    PartialContent,
    MovedPermanently,
    SeeOther,
    NotModified,
    PermanentRedirect,
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    PreconditionFailed,
    ContentTooLarge,
    UriTooLong,
    RangeNotSatisfiable,
    ExpectationFailed,
    UnprocessableContent,
    TooManyRequests,
    HeaderFieldsTooLarge,
    NotImplemented,
    ServiceUnavailable,
    VersionNotSupported,
    InsufficientStorage,
}

impl Status {
    /// Its three digits.
    pub fn code(self) -> u16 {
        match self {
            Status::Ok => 200,
            Status::NoContent => 204,
            Status::PartialContent => 206,
            Status::MovedPermanently => 301,
            Status::SeeOther => 303,
            Status::NotModified => 304,
            Status::PermanentRedirect => 308,
            Status::BadRequest => 400,
            Status::Unauthorized => 401,
            Status::Forbidden => 403,
            Status::NotFound => 404,
            Status::MethodNotAllowed => 405,
            Status::RequestTimeout => 408,
            Status::PreconditionFailed => 412,
            Status::ContentTooLarge => 413,
            Status::UriTooLong => 414,
            Status::RangeNotSatisfiable => 416,
            Status::ExpectationFailed => 417,
            Status::UnprocessableContent => 422,
            Status::TooManyRequests => 429,
            Status::HeaderFieldsTooLarge => 431,
            Status::NotImplemented => 501,
            Status::ServiceUnavailable => 503,
            Status::VersionNotSupported => 505,
            Status::InsufficientStorage => 507,
        }
    }

    /// Code and reason, as in a status line.
    pub(crate) fn text(self) -> &'static str {
        self.line().trim_ascii_end()
    }

    /// The same as a line of text.
    pub(crate) fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK\n",
            Status::NoContent => "204 No Content\n",
            Status::PartialContent => "206 Partial Content\n",
            Status::MovedPermanently => "301 Moved Permanently\n",
            Status::SeeOther => "303 See Other\n",
            Status::NotModified => "304 Not Modified\n",
            Status::PermanentRedirect => "308 Permanent Redirect\n",
            Status::BadRequest => "400 Bad Request\n",
            Status::Unauthorized => "401 Unauthorized\n",
            Status::Forbidden => "403 Forbidden\n",
            Status::NotFound => "404 Not Found\n",
            Status::MethodNotAllowed => "405 Method Not Allowed\n",
            Status::RequestTimeout => "408 Request Timeout\n",
            Status::PreconditionFailed => "412 Precondition Failed\n",
            Status::ContentTooLarge => "413 Content Too Large\n",
            Status::UriTooLong => "414 URI Too Long\n",
            Status::RangeNotSatisfiable => "416 Range Not Satisfiable\n",
            Status::ExpectationFailed => "417 Expectation Failed\n",
            Status::UnprocessableContent => "422 Unprocessable Content\n",
            Status::TooManyRequests => "429 Too Many Requests\n",
            Status::HeaderFieldsTooLarge => "431 Request Header Fields Too Large\n",
            Status::NotImplemented => "501 Not Implemented\n",
            Status::ServiceUnavailable => "503 Service Unavailable\n",
            Status::VersionNotSupported => "505 HTTP Version Not Supported\n",
            Status::InsufficientStorage => "507 Insufficient Storage\n",
        }
    }
}

/// The fields of every method's list (RFC 9110 section 10.2.1).
pub(crate) const ALLOW: &str = "Allow: GET, HEAD, OPTIONS\r\n";

/// Whoever reads this comes over TLS alone for a year (RFC 6797 section 6.1). Nothing is said of hosts below ours, which may be somebody else's.
const OVER_TLS_ALONE: &str = "Strict-Transport-Security: max-age=31536000\r\n";

/// What becomes of the connection after a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    /// It stays open, which goes without saying.
    Open,
    /// It stays open, and a client of HTTP/1.0 is told so.
    OpenAsAsked,
    /// It is closed.
    Close,
}

/// The head of a response while it is put together.
#[derive(Default)]
pub(crate) struct ResponseHead(Vec<u8, RESPONSE_HEAD_BYTES_MAX>);

impl ResponseHead {
    /// The status line, and what every head says.
    pub(crate) fn begin(&mut self, status: Status, after: After, actions: &mut impl Actions) -> &mut ResponseHead {
        self.text("HTTP/1.1 ").text(status.text()).text("\r\nDate: ").bytes(&actions.date()).text("\r\n");
        if actions.secrecy() == Secrecy::Here {
            self.text(OVER_TLS_ALONE);
        }
        match after {
            After::Open => self,
            After::OpenAsAsked => self.text("Connection: keep-alive\r\n"),
            After::Close => self.text("Connection: close\r\n"),
        }
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut ResponseHead {
        self.bytes(text.as_bytes())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut ResponseHead {
        let fitted = self.0.extend_from_slice(bytes);
        debug_assert!(fitted.is_ok(), "no head is longer");
        self
    }

    pub(crate) fn field(&mut self, name: &str, value: &str) -> &mut ResponseHead {
        self.text(name).text(": ").text(value).text("\r\n")
    }

    pub(crate) fn number_field(&mut self, name: &str, number: u64) -> &mut ResponseHead {
        self.text(name).text(": ").decimal(number).text("\r\n")
    }

    /// A field whose value takes formatting: for what is rare.
    pub(crate) fn formatted_field(&mut self, name: &str, value: fmt::Arguments<'_>) -> &mut ResponseHead {
        self.text(name).text(": ");
        let fitted = self.0.write_fmt(value);
        debug_assert!(fitted.is_ok(), "no head is longer");
        self.text("\r\n")
    }

    /// What is said of a file that is sent, or a part of it.
    pub(crate) fn file(&mut self, coding: Coding, digits: &str, modified: &str, varies: bool) -> &mut ResponseHead {
        if coding != Coding::Identity {
            self.field("Content-Encoding", coding.name());
        }
        self.validators(coding, digits, modified, varies).field("Accept-Ranges", "bytes")
    }

    /// What tells one representation of a resource from others, and how long it stays the same. `digits`: of its entity tag.
    pub(crate) fn validators(
        &mut self,
        coding: Coding,
        digits: &str,
        modified: &str,
        varies: bool,
    ) -> &mut ResponseHead {
        self.text("ETag: \"").text(digits).text(coding.tag_suffix()).text("\"\r\n").field("Last-Modified", modified);
        if varies { self.field("Vary", "Accept-Encoding") } else { self }
    }

    fn decimal(&mut self, number: u64) -> &mut ResponseHead {
        let mut digits = [0; 20];
        let mut left = number;
        let mut count = 0;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
            count += 1;
            if left == 0 {
                break;
            }
        }
        let start = digits.len() - count;
        self.bytes(digits.get(start..).unwrap_or_default())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Ends the head, and returns it.
    pub(crate) fn end(&mut self) -> &[u8] {
        self.text("\r\n");
        &self.0
    }
}
