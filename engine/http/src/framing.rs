//! The length of a request body.
//!
//! The length decides where the next request begins. So this file rejects all framing that two
//! servers could read in different ways.
//!
//! Implements: RFC 9112 sections 6.1, 6.2, 6.3, 7 and 9.3.

use crate::chunked::Chunked;
use crate::head::{FieldName, RequestHead, Version, list};
use crate::types::Status;

/// The part of a request body that has not arrived yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyFraming {
    /// A number of bytes. Zero means that the request has no body, or that all of it has arrived.
    Length(u64),
    /// Chunks, with the progress through them.
    Chunked(Chunked),
}

impl BodyFraming {
    pub(crate) const NONE: BodyFraming = BodyFraming::Length(0);

    /// The body that a head announces.
    ///
    /// Errors: the end of the body cannot be known.
    pub(crate) fn of(head: &RequestHead<'_, '_>) -> Result<BodyFraming, Status> {
        let length = head.only(FieldName::ContentLength)?;
        match (head.only(FieldName::TransferEncoding)?, length) {
            (None, None) => Ok(BodyFraming::NONE),
            (None, Some(length)) => {
                decimal(length).map(BodyFraming::Length).ok_or(Status::BadRequest)
            }
            (Some(_), Some(_)) => Err(Status::BadRequest),
            // HTTP/1.0 has no transfer codings. An old proxy may have forwarded the field without
            // understanding it, so the end of the body is unknown.
            (Some(_), None) if head.version == Version::Http10 => Err(Status::BadRequest),
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"chunked") => {
                Ok(BodyFraming::Chunked(Chunked::new()))
            }
            (Some(coding), None) => Err(unknown_coding(coding)),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        match self {
            BodyFraming::Length(left) => *left == 0,
            BodyFraming::Chunked(chunks) => chunks.is_over(),
        }
    }

    /// Skips the part of `bytes` that belongs to the body, and returns how many bytes it has.
    ///
    /// Errors: the bytes do not match the announced framing.
    pub(crate) fn pass_over(&mut self, bytes: &[u8]) -> Result<usize, Status> {
        self.read(bytes, |_| {})
    }

    /// Reads the part of `bytes` that belongs to the body, and passes the body's content to `keep`.
    /// Returns the number of bytes read.
    ///
    /// Errors: the bytes do not match the announced framing.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        mut keep: impl FnMut(&[u8]),
    ) -> Result<usize, Status> {
        match self {
            BodyFraming::Length(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                keep(bytes.get(..count).unwrap_or_default());
                *left -= count as u64;
                Ok(count)
            }
            BodyFraming::Chunked(chunks) => chunks.read(bytes, keep),
        }
    }
}

/// The status for an unsupported list of codings. If `chunked` is the last coding and occurs once,
/// the list is valid, and its other codings are not implemented: 501. Otherwise the list does not
/// say where the body ends: 400.
fn unknown_coding(coding: &[u8]) -> Status {
    let is_chunked = |item: &[u8]| item.eq_ignore_ascii_case(b"chunked");
    let last = list(coding).last().is_some_and(is_chunked);
    let before = list(coding).filter(|item| !is_chunked(item)).count();
    if last && before > 0 && list(coding).count() == before + 1 {
        Status::NotImplemented
    } else {
        Status::BadRequest
    }
}

/// Parses `1*DIGIT`, strictly: without a sign, a space or a list.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}
