//! Parses the target of a request into the path of a file.
//!
//! Implements: RFC 9112 section 3.2, RFC 3986 sections 3.3, 5.2.4 and 6.2.2.

use heapless::Vec;

use crate::authority::is_authority;
use crate::head::{FieldName, RequestHead};
use crate::types::Status;

/// The longest path, decoded, in bytes.
const PATH_BYTES_MAX: usize = 1024;

/// The target of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestTarget<'a> {
    /// The server itself: `*`.
    Server,
    /// A decoded path, which begins with `/` and has no segments `.` and `..`.
    Path(&'a [u8]),
}

/// Buffer for a path that must be decoded before it can be used.
#[derive(Default)]
pub(crate) struct PathBuffer(Vec<u8, PATH_BYTES_MAX>);

impl<'a> RequestTarget<'a> {
    /// Reads a target of visible ASCII.
    ///
    /// Errors: `target` is malformed, or its path leaves the site.
    pub(crate) fn parse(
        target: &'a [u8],
        room: &'a mut PathBuffer,
    ) -> Result<RequestTarget<'a>, Status> {
        if is_decoded_path(target) {
            return Ok(RequestTarget::Path(target));
        }
        if target == b"*" {
            return Ok(RequestTarget::Server);
        }
        let target = core::str::from_utf8(target).map_err(|_| Status::BadRequest)?;
        // Clients never send a fragment. A request with one is malformed.
        if target.contains('#') {
            return Err(Status::BadRequest);
        }
        let path = match target.strip_prefix('/') {
            Some(_) => target,
            None => path_of_absolute(target).ok_or(Status::BadRequest)?,
        };
        let path = path.split('?').next().unwrap_or_default();
        Ok(RequestTarget::Path(room.decode(path)?))
    }
}

/// Whether `target` is already a decoded path: it has no query, no fragment, no escapes and no dot
/// segments.
fn is_decoded_path(target: &[u8]) -> bool {
    let mut before = 0;
    target.starts_with(b"/")
        && target.len() <= PATH_BYTES_MAX
        && target.iter().all(|&byte| {
            let is_plain = !matches!(byte, b'%' | b'?' | b'#') && (before, byte) != (b'/', b'.');
            before = byte;
            is_plain
        })
}

/// The path of an absolute target. A server must accept such a target, although clients send it
/// only to proxies.
fn path_of_absolute(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    (is_http && is_authority(authority.as_bytes())).then_some(if path.starts_with('/') {
        path
    } else {
        "/"
    })
}

impl PathBuffer {
    fn decode(&mut self, raw: &str) -> Result<&[u8], Status> {
        for segment in raw.split('/').skip(1) {
            self.leave_dots()?;
            self.enter(segment)?;
        }
        if self.leave_dots()? {
            self.push(b'/')?;
        }
        Ok(&self.0)
    }

    /// Decodes one segment, and appends a slash and the segment.
    fn enter(&mut self, raw: &str) -> Result<(), Status> {
        self.push(b'/')?;
        let mut bytes = raw.bytes();
        while let Some(byte) = bytes.next() {
            match if byte == b'%' { escaped(&mut bytes).ok_or(Status::BadRequest)? } else { byte } {
                0 => return Err(Status::BadRequest),
                // An encoded slash is not a separator, and no file name contains a slash.
                b'/' => return Err(Status::NotFound),
                byte => self.push(byte)?,
            }
        }
        Ok(())
    }

    /// Resolves the last segment if it is one or two dots. Returns whether it was.
    fn leave_dots(&mut self) -> Result<bool, Status> {
        let Some(last) = self.0.iter().rposition(|&byte| byte == b'/') else { return Ok(false) };
        let (parents, segment) = self.0.split_at_checked(last).ok_or(Status::BadRequest)?;
        let left = match segment {
            b"/." => last,
            b"/.." => parents.iter().rposition(|&byte| byte == b'/').ok_or(Status::BadRequest)?,
            _ => return Ok(false),
        };
        self.0.truncate(left);
        Ok(true)
    }

    fn push(&mut self, byte: u8) -> Result<(), Status> {
        self.0.push(byte).map_err(|_| Status::NotFound)
    }
}

/// The byte of an escape: the value of the next two hexadecimal digits.
fn escaped(digits: &mut impl Iterator<Item = u8>) -> Option<u8> {
    let mut digit = || char::from(digits.next()?).to_digit(16);
    u8::try_from(digit()? * 16 + digit()?).ok()
}

/// The host that the client asks for, with its port if the client gave one.
pub(crate) fn authority<'a>(head: &RequestHead<'a, '_>) -> &'a str {
    let host = head.only(FieldName::Host).ok().flatten().unwrap_or_default();
    let [host, target] =
        [host, head.target].map(|bytes| core::str::from_utf8(bytes).unwrap_or_default());
    split_absolute(target).map_or(host, |(authority, _)| authority)
}

/// Splits an absolute target into its authority, and the path and query after it.
pub(crate) fn split_absolute(target: &str) -> Option<(&str, &str)> {
    let (_, rest) = target.split_once("://").filter(|_| !target.starts_with('/'))?;
    Some(rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len())))
}
