//! A web server's response to one request on a separate connection. Only the body is used, if it
//! has the wanted media type.
//!
//! The request uses HTTP/1.0, so the body ends after its announced length, or at the end of the
//! connection.
//!
//! Invariants:
//! - Only a complete response of status 200 with the wanted media type counts. Redirects are not
//!   followed.
//! - Memory is bounded: [`HEAD_BYTES_MAX`], [`FIELDS_MAX`], and the limit for the body.
//!
//! Implements: RFC 9112 sections 4 and 6.3.

use alloc::vec::Vec;
use core::ops::Range;

use httparse::{EMPTY_HEADER, Header, Status};

/// The longest head of a response that is read.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The most fields of a head.
const FIELDS_MAX: usize = 64;

/// A response that is being received.
#[derive(Debug)]
pub(crate) struct Response {
    /// The wanted media type.
    kind: &'static str,
    body_bytes_max: usize,
    received: Vec<u8>,
    /// The range of the body in `received`, if there is a body. `None`: the response is not
    /// complete.
    body: Option<Option<Range<usize>>>,
}

/// The facts from the head of a response.
struct HeadFacts {
    bytes: usize,
    length: Option<usize>,
}

impl Response {
    /// `kind`: the wanted media type, in lower case. A body longer than `body_bytes_max` is not
    /// used.
    pub(crate) fn of(kind: &'static str, body_bytes_max: usize) -> Response {
        Response { kind, body_bytes_max, received: Vec::new(), body: None }
    }

    /// Takes bytes of the server.
    pub(crate) fn arrived(&mut self, bytes: &[u8]) {
        if self.body.is_some() {
            return;
        }
        self.received.extend_from_slice(bytes);
        match self.head() {
            None if self.received.len() > HEAD_BYTES_MAX => self.failed(),
            None => {}
            Some(Err(())) => self.failed(),
            Some(Ok(head)) => {
                let arrived = self.received.len().saturating_sub(head.bytes);
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

    /// Ends the response: the server has closed the connection properly.
    pub(crate) fn ended(&mut self) {
        if self.body.is_none() {
            self.body = Some(match self.head() {
                Some(Ok(HeadFacts { bytes, length: None })) => Some(bytes..self.received.len()),
                _ => None,
            });
        }
    }

    /// Marks a response as failed, unless it is complete.
    pub(crate) fn failed(&mut self) {
        self.body = self.body.take().or(Some(None));
    }

    /// The body. `None`: the response is not complete. `Some(None)`: it has no usable body.
    pub(crate) fn body(&self) -> Option<Option<&[u8]>> {
        self.body.as_ref().map(|body| body.clone().and_then(|body| self.received.get(body)))
    }

    /// The head, once it is complete. Errors: no usable body follows it.
    fn head(&self) -> Option<Result<HeadFacts, ()>> {
        let mut fields = [EMPTY_HEADER; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut fields);
        match response.parse(&self.received) {
            Ok(Status::Complete(bytes)) if bytes <= HEAD_BYTES_MAX => {
                Some(read(&response, self.kind, bytes).ok_or(()))
            }
            Ok(Status::Complete(_)) => Some(Err(())),
            Ok(Status::Partial) => None,
            Err(_) => Some(Err(())),
        }
    }
}

/// The facts from the head, which is the first `bytes` of a response. `None`: no body of the wanted
/// media type follows.
fn read(response: &httparse::Response<'_, '_>, kind: &str, bytes: usize) -> Option<HeadFacts> {
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
    (response.code == Some(200) && is_plain).then_some(HeadFacts { bytes, length })
}
