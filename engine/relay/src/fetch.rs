//! The fetch of a domain's policy (`sts`) from its web server: one request and one response
//! (`response`), on a separate connection.
//!
//! The bytes to send are in [`Speaker::output`]; the result is [`Fetch::outcome`], once it is
//! known.
//!
//! Invariant: only a response of the type `text/plain` counts, and redirects are not followed.
//!
//! Implements: RFC 8461 section 3.3.

use alloc::format;
use alloc::vec::Vec;

use dns::Name;

use crate::outcome::Lost;
use crate::response::Response;
use crate::speaker::Speaker;
use crate::sts::{StsPolicy, TEXT_BYTES_MAX};
use crate::tally::Shortfall;

/// One fetch of a policy.
#[derive(Debug)]
pub struct Fetch {
    output: Vec<u8>,
    response: Response,
    outcome: Option<Result<StsPolicy, Shortfall>>,
}

impl Fetch {
    /// A fetch from the web server of this name.
    pub fn from(server: &Name) -> Fetch {
        let server = server.as_str();
        let request = format!(
            "GET /.well-known/mta-sts.txt HTTP/1.0\r\nHost: {server}\r\nAccept: text/plain\r\n\r\n"
        );
        Fetch {
            output: request.into_bytes(),
            response: Response::of("text/plain", TEXT_BYTES_MAX),
            outcome: None,
        }
    }

    /// The result: a policy, or why there is none. `None`: the fetch is not over.
    pub fn outcome(&self) -> Option<Result<&StsPolicy, Shortfall>> {
        self.outcome.as_ref().map(|outcome| outcome.as_ref().map_err(|why| *why))
    }

    fn failed(&mut self, why: Shortfall) {
        self.outcome.get_or_insert(Err(why));
    }

    /// Sets the result if the response is complete.
    fn read_response(&mut self) {
        if self.outcome.is_none() {
            let read = |text| StsPolicy::read(text).ok_or(Shortfall::PolicyInvalid);
            self.outcome = self
                .response
                .body()
                .map(|text| text.ok_or(Shortfall::PolicyNotFetched).and_then(read));
        }
    }
}

impl Speaker for Fetch {
    fn output(&self) -> &[u8] {
        &self.output
    }

    fn sent(&mut self, count: usize) {
        self.output.drain(..count.min(self.output.len()));
    }

    fn arrived(&mut self, bytes: &[u8]) {
        self.response.arrived(bytes);
        self.read_response();
    }

    fn lost(&mut self, lost: Lost) {
        match lost {
            Lost::Closed => {
                self.response.ended();
                self.read_response();
            }
            Lost::Unvouched => self.failed(Shortfall::PolicyUnvouched),
            _ => self.failed(Shortfall::PolicyNotFetched),
        }
    }
}
