//! A policy of a domain's (`sts`) is fetched from its web server: one request, one response, on a connection of its own.
//!
//! What there is to say is in [`Fetch::output`]; what comes of it is [`Fetch::outcome`], once it is known. It is asked in HTTP/1.0, so that a body ends where its length says, or with the connection.
//!
//! Invariants:
//! - Only a whole response of status 200 that is plain text counts; nobody is sent elsewhere (RFC 8461 section 3.3).
//! - What is kept is bounded: [`HEAD_BYTES_MAX`], [`FIELDS_MAX`], and what a policy may have.
//!
//! Answers to: RFC 8461 section 3.3; RFC 9112 sections 4 and 6.3.

use alloc::format;
use alloc::vec::Vec;

use dns::Name;
use httparse::{EMPTY_HEADER, Header, Response, Status};

use crate::sts::{Policy, TEXT_BYTES_MAX};

/// The longest head of a response that is read.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The most fields that it may have.
const FIELDS_MAX: usize = 64;

/// One fetch of a policy.
#[derive(Debug)]
pub struct Fetch {
    output: Vec<u8>,
    heard: Vec<u8>,
    outcome: Option<Option<Policy>>,
}

/// What the head of a response says.
struct Head {
    bytes: usize,
    length: Option<usize>,
}

impl Fetch {
    /// From the web server of this name.
    pub fn from(server: &Name) -> Fetch {
        let server = server.as_str();
        let request = format!("GET /.well-known/mta-sts.txt HTTP/1.0\r\nHost: {server}\r\nAccept: text/plain\r\n\r\n");
        Fetch { output: request.into_bytes(), heard: Vec::new(), outcome: None }
    }

    /// What is to be sent.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// So many bytes of the output were sent.
    pub fn sent(&mut self, count: usize) {
        self.output.drain(..count.min(self.output.len()));
    }

    /// The server has said this.
    pub fn arrived(&mut self, bytes: &[u8]) {
        if self.outcome.is_some() {
            return;
        }
        self.heard.extend_from_slice(bytes);
        match head(&self.heard) {
            None if self.heard.len() > HEAD_BYTES_MAX => self.failed(),
            None => {}
            Some(Err(())) => self.failed(),
            Some(Ok(head)) => {
                let body = self.heard.get(head.bytes..).unwrap_or_default();
                match head.length {
                    Some(length) if length > TEXT_BYTES_MAX => self.failed(),
                    Some(length) if body.len() >= length => {
                        self.outcome = Some(Policy::read(body.get(..length).unwrap_or_default()));
                    }
                    _ if body.len() > TEXT_BYTES_MAX => self.failed(),
                    _ => {}
                }
            }
        }
    }

    /// The server has said all, and that it has.
    pub fn ended(&mut self) {
        if self.outcome.is_none() {
            let body = match head(&self.heard) {
                Some(Ok(Head { bytes, length: None })) => self.heard.get(bytes..),
                _ => None,
            };
            self.outcome = Some(body.and_then(Policy::read));
        }
    }

    /// Nothing comes of it.
    pub fn failed(&mut self) {
        self.outcome = self.outcome.take().or(Some(None));
    }

    /// What came of it: a policy, or none. `None`: it is not over.
    pub fn outcome(&self) -> Option<Option<&Policy>> {
        self.outcome.as_ref().map(Option::as_ref)
    }
}

/// The head, once it is whole. Errors: there is nothing behind it for us.
fn head(heard: &[u8]) -> Option<Result<Head, ()>> {
    let mut fields = [EMPTY_HEADER; FIELDS_MAX];
    let mut response = Response::new(&mut fields);
    match response.parse(heard) {
        Ok(Status::Complete(bytes)) => Some(read(&response, bytes).ok_or(())),
        Ok(Status::Partial) => None,
        Err(_) => Some(Err(())),
    }
}

/// What the head says that is the first `bytes` of a response. `None`: no policy is behind it.
fn read(response: &Response<'_, '_>, bytes: usize) -> Option<Head> {
    let field = |name: &str| response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
    let text = |field: &Header<'_>| core::str::from_utf8(field.value).ok().map(|text| text.trim().to_ascii_lowercase());
    let kind = text(field("Content-Type")?)?;
    let is_plain = kind.split(';').next().map(str::trim) == Some("text/plain") && field("Transfer-Encoding").is_none();
    let length = match field("Content-Length") {
        Some(field) => Some(text(field)?.parse().ok()?),
        None => None,
    };
    (response.code == Some(200) && is_plain).then_some(Head { bytes, length })
}
