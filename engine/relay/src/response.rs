//! What a web server answers to one request on a connection of its own: the body, if there is one of the kind that is wanted.
//!
//! It is asked in HTTP/1.0, so that a body ends where its length says, or with the connection.
//!
//! Invariants:
//! - Only a whole response of status 200 counts, of the kind that is wanted; nobody is sent elsewhere.
//! - What is kept is bounded: [`HEAD_BYTES_MAX`], [`FIELDS_MAX`], and what a body may have.
//!
//! Answers to: RFC 9112 sections 4 and 6.3.

use alloc::vec::Vec;
use core::ops::Range;

use httparse::{EMPTY_HEADER, Header, Status};

/// The longest head of a response that is read.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The most fields that it may have.
const FIELDS_MAX: usize = 64;

/// A response on its way.
#[derive(Debug)]
pub(crate) struct Response {
    /// The kind of body that is wanted.
    kind: &'static str,
    body_bytes_max: usize,
    heard: Vec<u8>,
    /// Where the body lies in that, if there is one; none: it is not over.
    body: Option<Option<Range<usize>>>,
}

/// What the head of a response says.
struct Head {
    bytes: usize,
    length: Option<usize>,
}

impl Response {
    /// `kind`: a type of media in lower case. A longer body is none.
    pub(crate) fn of(kind: &'static str, body_bytes_max: usize) -> Response {
        Response { kind, body_bytes_max, heard: Vec::new(), body: None }
    }

    /// The server has said this.
    pub(crate) fn arrived(&mut self, bytes: &[u8]) {
        if self.body.is_some() {
            return;
        }
        self.heard.extend_from_slice(bytes);
        match self.head() {
            None if self.heard.len() > HEAD_BYTES_MAX => self.failed(),
            None => {}
            Some(Err(())) => self.failed(),
            Some(Ok(head)) => {
                let arrived = self.heard.len().saturating_sub(head.bytes);
                match head.length {
                    Some(length) if length > self.body_bytes_max => self.failed(),
                    Some(length) if arrived >= length => {
                        self.body = Some(Some(head.bytes..head.bytes + length))
                    }
                    _ if arrived > self.body_bytes_max => self.failed(),
                    _ => {}
                }
            }
        }
    }

    /// The server has said all, and that it has.
    pub(crate) fn ended(&mut self) {
        if self.body.is_none() {
            self.body = Some(match self.head() {
                Some(Ok(Head { bytes, length: None })) => Some(bytes..self.heard.len()),
                _ => None,
            });
        }
    }

    /// Nothing comes of it.
    pub(crate) fn failed(&mut self) {
        self.body = self.body.take().or(Some(None));
    }

    /// The body, or that there is none. `None`: it is not over.
    pub(crate) fn body(&self) -> Option<Option<&[u8]>> {
        self.body.as_ref().map(|body| body.clone().and_then(|body| self.heard.get(body)))
    }

    /// The head, once it is whole. Errors: there is nothing behind it for us.
    fn head(&self) -> Option<Result<Head, ()>> {
        let mut fields = [EMPTY_HEADER; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut fields);
        match response.parse(&self.heard) {
            Ok(Status::Complete(bytes)) if bytes <= HEAD_BYTES_MAX => {
                Some(read(&response, self.kind, bytes).ok_or(()))
            }
            Ok(Status::Complete(_)) => Some(Err(())),
            Ok(Status::Partial) => None,
            Err(_) => Some(Err(())),
        }
    }
}

/// What the head says that is the first `bytes` of a response. `None`: no body of that kind is behind it.
fn read(response: &httparse::Response<'_, '_>, kind: &str, bytes: usize) -> Option<Head> {
    let field =
        |name: &str| response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
    let text = |field: &Header<'_>| {
        core::str::from_utf8(field.value).ok().map(|text| text.trim().to_ascii_lowercase())
    };
    let theirs = text(field("Content-Type")?)?;
    let is_plain = theirs.split(';').next().map(str::trim) == Some(kind)
        && field("Transfer-Encoding").is_none();
    let length = match field("Content-Length") {
        Some(field) => Some(text(field)?.parse().ok()?),
        None => None,
    };
    (response.code == Some(200) && is_plain).then_some(Head { bytes, length })
}
