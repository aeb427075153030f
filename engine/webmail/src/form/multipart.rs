//! A push parser of `multipart/form-data`: the parts and their heads.
//!
//! The parser never guesses where a part ends. A line that begins like a delimiter must be a valid
//! delimiter. A form without the last delimiter is incomplete and rejected. A head with a duplicate
//! or ambiguous field is rejected too.
//!
//! Invariants:
//! - The result does not depend on how the body is cut into pieces.
//! - Between two calls at most one head is buffered.
//!
//! Implements: RFC 2046 section 5.1.1; RFC 7578 sections 4.1 to 4.8; the HTML Standard section
//! 4.10.21.8 (how browsers write names).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use memchr::memmem::{Finder, find};

use super::parameters::{is_token, values};
use super::{FormError, UploadedFile};

/// The longest head of a part, in bytes.
const HEAD_BYTES_MAX: usize = 8192;

/// The longest boundary (RFC 2046 section 5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;

/// The end of a head: the line end of its last line, and an empty line.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// An event of the parser.
pub(super) enum PartEvent<'a> {
    /// A text field with this name begins.
    Text(String),
    /// A file begins.
    File(UploadedFile),
    /// The next bytes of the current part.
    Bytes(&'a [u8]),
    /// The part has ended.
    End,
}

/// The push parser of a form's body.
#[derive(Debug)]
pub(super) struct PartParser {
    /// Finds a delimiter together with the line end before it.
    finder: Finder<'static>,
    expect: Expect,
    /// Received bytes that could not be parsed yet.
    rest: Vec<u8>,
}

/// The next part of the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expect {
    /// The first delimiter.
    Begin,
    /// The rest of a delimiter's line.
    Line,
    /// The head of a part.
    PartHead,
    /// The body of a part. The line end of the empty line before it is not consumed yet, and a
    /// delimiter may not overlap it.
    Body,
    /// The rest of the body.
    MoreBody,
    /// Bytes after the last delimiter, which are ignored.
    End,
}

impl PartParser {
    /// A parser for parts with this boundary. Errors: the boundary is invalid.
    pub(super) fn new(boundary: &str) -> Result<PartParser, FormError> {
        if !is_boundary(boundary) {
            return Err(FormError::Malformed);
        }
        let finder = Finder::new(format!("\r\n--{boundary}").as_bytes()).into_owned();
        Ok(PartParser { finder, expect: Expect::Begin, rest: Vec::new() })
    }

    /// Parses the next bytes of the form, and passes the events to `say`.
    ///
    /// Errors: the form is ambiguous or invalid, or `say` returns an error.
    pub(super) fn bytes_arrived(
        &mut self,
        bytes: &[u8],
        say: &mut impl FnMut(PartEvent<'_>) -> Result<(), FormError>,
    ) -> Result<(), FormError> {
        let mut whole = core::mem::take(&mut self.rest);
        whole.extend_from_slice(bytes);
        let mut rest = whole.as_slice();
        while let Some(tail) = self.step(rest, say)? {
            rest = tail;
        }
        if self.expect != Expect::End {
            self.rest = rest.to_vec();
        }
        Ok(())
    }

    /// Checks that the form is complete, since its body has ended.
    ///
    /// Errors: the form is incomplete.
    pub(super) fn ended(&self) -> Result<(), FormError> {
        let is_last_line =
            || self.rest.strip_prefix(b"--").is_some_and(|padding| padding.iter().all(is_padding));
        match self.expect {
            Expect::End => Ok(()),
            Expect::Line if is_last_line() => Ok(()),
            _ => Err(FormError::Malformed),
        }
    }

    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        self.rest.capacity()
    }

    /// Parses the beginning of `rest`. Returns the remainder, or `None` if more bytes are needed.
    fn step<'b>(
        &mut self,
        rest: &'b [u8],
        say: &mut impl FnMut(PartEvent<'_>) -> Result<(), FormError>,
    ) -> Result<Option<&'b [u8]>, FormError> {
        match self.expect {
            Expect::Begin => self.form_begins(rest),
            Expect::Line => self.line_goes_on(rest),
            Expect::PartHead => self.head_comes(rest, say),
            Expect::Body => self.body_comes(rest, 2, say),
            Expect::MoreBody => self.body_comes(rest, 0, say),
            Expect::End => Ok(None),
        }
    }

    /// Parses the first delimiter, which must be at the start of the form. RFC 2046 permits a
    /// preamble, but browsers send none, and parsers disagree about its end.
    fn form_begins<'b>(&mut self, rest: &'b [u8]) -> Result<Option<&'b [u8]>, FormError> {
        let line = line(&self.finder);
        if rest.len() < line.len() && line.starts_with(rest) {
            return Ok(None);
        }
        self.expect = Expect::Line;
        rest.strip_prefix(line).map(Some).ok_or(FormError::Malformed)
    }

    /// Parses the rest of a delimiter's line. Bytes after the last delimiter are ignored.
    fn line_goes_on<'b>(&mut self, rest: &'b [u8]) -> Result<Option<&'b [u8]>, FormError> {
        let (is_last, behind) =
            rest.strip_prefix(b"--").map_or((false, rest), |behind| (true, behind));
        let padding = behind.iter().take_while(|byte| is_padding(byte)).count();
        let end = behind.get(padding..).unwrap_or_default();
        match end.strip_prefix(b"\r\n") {
            Some(_) if is_last => {
                self.expect = Expect::End;
                Ok(None)
            }
            Some(part) => {
                self.expect = Expect::PartHead;
                Ok(Some(part))
            }
            None if rest == b"-" || b"\r\n".starts_with(end) && padding <= HEAD_BYTES_MAX => {
                Ok(None)
            }
            None => Err(FormError::Malformed),
        }
    }

    fn head_comes<'b>(
        &mut self,
        rest: &'b [u8],
        say: &mut impl FnMut(PartEvent<'_>) -> Result<(), FormError>,
    ) -> Result<Option<&'b [u8]>, FormError> {
        let near = rest.get(..HEAD_BYTES_MAX).unwrap_or(rest);
        let Some(end) = find(near, HEAD_END) else {
            return if near.len() < HEAD_BYTES_MAX { Ok(None) } else { Err(FormError::Malformed) };
        };
        let bytes = near.get(..end).unwrap_or_default();
        // Two delimiters in a row share a line end, so the part between them has no head.
        if bytes.starts_with(line(&self.finder)) || self.finder.find(bytes).is_some() {
            return Err(FormError::Malformed);
        }
        let PartHead { name, file_name, media_type } = head(bytes).ok_or(FormError::Malformed)?;
        say(match file_name {
            None => PartEvent::Text(name),
            Some(path) => PartEvent::File(UploadedFile {
                field: name,
                name: without_folders(&path).into(),
                media_type,
            }),
        })?;
        self.expect = Expect::Body;
        Ok(rest.get(end + 2..))
    }

    /// Parses bytes of a body. `before`: the number of bytes at the start that do not belong to the
    /// body.
    fn body_comes<'b>(
        &mut self,
        rest: &'b [u8],
        before: usize,
        say: &mut impl FnMut(PartEvent<'_>) -> Result<(), FormError>,
    ) -> Result<Option<&'b [u8]>, FormError> {
        let length = self.finder.needle().len();
        match self.finder.find(rest) {
            Some(at) if at < before => Err(FormError::Malformed),
            Some(at) => {
                say(PartEvent::Bytes(rest.get(before..at).unwrap_or_default()))?;
                say(PartEvent::End)?;
                self.expect = Expect::Line;
                Ok(rest.get(at + length..))
            }
            // The end of `rest` may be the beginning of a delimiter.
            None if rest.len() < before + length => Ok(None),
            None => {
                let at = rest.len() + 1 - length;
                say(PartEvent::Bytes(rest.get(before..at).unwrap_or_default()))?;
                self.expect = Expect::MoreBody;
                Ok(rest.get(at..))
            }
        }
    }
}

/// A delimiter without the line end before it.
fn line<'f>(finder: &'f Finder<'_>) -> &'f [u8] {
    finder.needle().strip_prefix(b"\r\n").unwrap_or_default()
}

fn is_padding(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether RFC 2046 section 5.1.1 allows this boundary.
fn is_boundary(text: &str) -> bool {
    let is_of_boundary =
        |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte);
    (1..=BOUNDARY_BYTES_MAX).contains(&text.len())
        && !text.ends_with(' ')
        && text.bytes().all(is_of_boundary)
}

/// The fields of a part's head.
struct PartHead {
    name: String,
    file_name: Option<String>,
    media_type: String,
}

/// The names of the fields that are parsed.
const HEAD_NAMES: [&str; 3] = ["content-disposition", "content-type", "content-transfer-encoding"];

fn head(bytes: &[u8]) -> Option<PartHead> {
    let text = String::from_utf8_lossy(bytes);
    let mut found = [None; 3];
    for line in text.split("\r\n") {
        let (name, value) = line.split_once(':').filter(|(name, _)| is_token(name))?;
        let value = value.trim_matches([' ', '\t']);
        let at = HEAD_NAMES.iter().position(|known| name.eq_ignore_ascii_case(known));
        if let Some(place) = at.and_then(|at| found.get_mut(at))
            && (value.contains(char::is_control) || place.replace(value).is_some())
        {
            return None;
        }
    }
    let [disposition, media_type, encoding] = found;
    // Bodies have no transfer encoding (RFC 7578 section 4.7).
    let is_plain = |name: &str| {
        ["7bit", "8bit", "binary"].iter().any(|plain| name.eq_ignore_ascii_case(plain))
    };
    if !encoding.is_none_or(is_plain) {
        return None;
    }
    let (kind, parameters) = disposition?.split_at_checked("form-data".len())?;
    let [name, file_name] = values(parameters, ["name", "filename"])
        .ok()
        .filter(|_| kind.eq_ignore_ascii_case("form-data"))?;
    Some(PartHead {
        name: unescaped(name?),
        file_name: file_name.map(unescaped),
        media_type: media_type.unwrap_or_default().into(),
    })
}

/// Decodes a name. Browsers escape exactly these three characters.
fn unescaped(text: &str) -> String {
    text.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n")
}

/// Removes the folders from a file name, since some browsers send a path (RFC 7578 section 4.2).
fn without_folders(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or_default()
}
