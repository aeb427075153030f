//! How long a request's body is.
//!
//! This decides where the next request begins, so everything here that two servers could read in two ways is refused.
//!
//! Answers to: RFC 9112 sections 6.1, 6.2, 6.3, 7 and 9.3.

use crate::chunked::Chunked;
use crate::head::{Head, Name, Version, list};
use crate::types::Status;

/// What of a request's body is yet to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    /// So many bytes; none at all is zero.
    Length(u64),
    /// Chunks.
    Chunked(Chunked),
}

impl Body {
    pub(crate) const NONE: Body = Body::Length(0);

    /// The body that a head announces.
    ///
    /// Errors: nobody can know where it ends.
    pub(crate) fn of(head: &Head<'_, '_>) -> Result<Body, Status> {
        let length = head.only(Name::ContentLength)?;
        match (head.only(Name::TransferEncoding)?, length) {
            (None, None) => Ok(Body::NONE),
            (None, Some(length)) => decimal(length).map(Body::Length).ok_or(Status::BadRequest),
            (Some(_), Some(_)) => Err(Status::BadRequest),
            // HTTP/1.0 has no transfer codings: something between the client and us does not understand what it passes on.
            (Some(_), None) if head.version == Version::Http10 => Err(Status::BadRequest),
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"chunked") => {
                Ok(Body::Chunked(Chunked::new()))
            }
            (Some(coding), None) => Err(unknown_coding(coding)),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        match self {
            Body::Length(left) => *left == 0,
            Body::Chunked(chunks) => chunks.is_over(),
        }
    }

    /// Passes over what of `bytes` belongs to the body and returns how many bytes that were.
    ///
    /// Errors: it is no body as it was announced.
    pub(crate) fn pass_over(&mut self, bytes: &[u8]) -> Result<usize, Status> {
        self.read(bytes, |_| {})
    }

    /// The same, and gives to `keep` what is said in it.
    ///
    /// Errors: it is no body as it was announced.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        mut keep: impl FnMut(&[u8]),
    ) -> Result<usize, Status> {
        match self {
            Body::Length(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                keep(bytes.get(..count).unwrap_or_default());
                *left -= count as u64;
                Ok(count)
            }
            Body::Chunked(chunks) => chunks.read(bytes, keep),
        }
    }
}

/// Before `chunked` a coding may be applied that we do not know. Without `chunked` at its end, and nowhere else, the list
/// says nothing about where the body ends.
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

/// `1*DIGIT`, and nothing else: no sign, no space, no list.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}
