//! Heads of responses.
//!
//! Implements: RFC 9112 section 4, RFC 9110 sections 8, 10.2 and 15.

use core::fmt::{self, Write};

use heapless::Vec;

use crate::coding::Coding;
use crate::date::DATE_BYTES;
use crate::types::{After, HttpsPolicy, Status};

/// The longest head of a response, in bytes.
pub const RESPONSE_HEAD_BYTES_MAX: usize = 2048;

/// The response to a client for which no session is available. After this response the connection
/// is closed.
pub const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 10\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The methods in an `Allow` field of the site (RFC 9110 section 10.2.1).
pub(crate) const ALLOW: &str = "Allow: GET, HEAD, OPTIONS\r\n";

/// The field that makes a client use only TLS for a year (RFC 6797 section 6.1). It does not
/// include subdomains, since they may belong to other servers.
const OVER_TLS_ALONE: &str = "Strict-Transport-Security: max-age=31536000\r\n";

/// The head of a response while it is written.
#[derive(Default)]
pub(crate) struct ResponseHead(Vec<u8, RESPONSE_HEAD_BYTES_MAX>);

impl ResponseHead {
    /// Writes the status line and the fields of every response.
    pub(crate) fn begin(
        &mut self,
        status: Status,
        after: After,
        date: &[u8; DATE_BYTES],
        https_policy: HttpsPolicy,
    ) -> &mut ResponseHead {
        self.text("HTTP/1.1 ").text(status.text()).text("\r\nDate: ").bytes(date).text("\r\n");
        if https_policy == HttpsPolicy::Enforced {
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
        debug_assert!(fitted.is_ok(), "the head of a response fits into its buffer");
        self
    }

    pub(crate) fn field(&mut self, name: &str, value: &str) -> &mut ResponseHead {
        self.text(name).text(": ").text(value).text("\r\n")
    }

    pub(crate) fn number_field(&mut self, name: &str, number: u64) -> &mut ResponseHead {
        self.text(name).text(": ").decimal(number).text("\r\n")
    }

    /// Writes a field with a value that needs formatting. Only rare fields use this slower
    /// function.
    pub(crate) fn formatted_field(
        &mut self,
        name: &str,
        value: fmt::Arguments<'_>,
    ) -> &mut ResponseHead {
        self.text(name).text(": ");
        let fitted = self.0.write_fmt(value);
        debug_assert!(fitted.is_ok(), "the head of a response fits into its buffer");
        self.text("\r\n")
    }

    /// Writes the fields of a file that is sent in whole or in part.
    pub(crate) fn file(
        &mut self,
        coding: Coding,
        digits: &str,
        modified: &str,
        varies: bool,
    ) -> &mut ResponseHead {
        if coding != Coding::Identity {
            self.field("Content-Encoding", coding.name());
        }
        self.validators(coding, digits, modified, varies).field("Accept-Ranges", "bytes")
    }

    /// Writes the fields that identify a representation of a resource. `digits`: the digits of its
    /// entity tag.
    pub(crate) fn validators(
        &mut self,
        coding: Coding,
        digits: &str,
        modified: &str,
        varies: bool,
    ) -> &mut ResponseHead {
        self.text("ETag: \"")
            .text(digits)
            .text(coding.tag_suffix())
            .text("\"\r\n")
            .field("Last-Modified", modified);
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

    /// Ends the head and returns it.
    pub(crate) fn end(&mut self) -> &[u8] {
        self.text("\r\n");
        &self.0
    }
}
