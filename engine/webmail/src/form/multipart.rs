//! `multipart/form-data`: where parts begin and end, and what their heads say.
//!
//! Where a part ends is never guessed: a line that begins as a delimiter is one, so that it must go on as one; the last delimiter has to be there,
//! whoever hangs up before it has said nothing; and of what heads may say twice or in two ways nothing is taken.
//!
//! Answers to: RFC 2046 section 5.1.1; RFC 7578 sections 4.1 to 4.8; the HTML Standard section 4.10.21.8 (how browsers write names).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use memchr::memmem::{Finder, find};

use super::parameters::{is_token, values};
use super::{FIELDS_MAX, Field, File, FormError, Value};

/// The longest head of a part, in bytes.
const HEAD_BYTES_MAX: usize = 8192;

/// The longest boundary (RFC 2046 section 5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;

/// Reads all parts of a body.
pub(super) fn fields<'a>(boundary: &str, body: &'a [u8]) -> Result<Vec<Field<'a>>, FormError> {
    if !is_boundary(boundary) {
        return Err(FormError::Malformed);
    }
    let delimiter = format!("\r\n--{boundary}");
    let parts = Parts { finder: Finder::new(delimiter.as_bytes()) };
    let mut fields = Vec::new();
    // What RFC 2046 lets stand before the first delimiter no browser sends, and where it ends not all see alike.
    let mut rest = parts.line_begins(body).ok_or(FormError::Malformed)?;
    while let Some(tail) = parts.begun(rest)? {
        let (part, tail) = parts.split(tail)?;
        if fields.len() == FIELDS_MAX {
            return Err(FormError::TooManyFields);
        }
        fields.push(field(part).ok_or(FormError::Malformed)?);
        rest = tail;
    }
    Ok(fields)
}

/// RFC 2046 section 5.1.1.
fn is_boundary(text: &str) -> bool {
    let is_of_boundary = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte);
    (1..=BOUNDARY_BYTES_MAX).contains(&text.len()) && !text.ends_with(' ') && text.bytes().all(is_of_boundary)
}

struct Parts<'a> {
    /// Finds a delimiter, with the end of the line before it.
    finder: Finder<'a>,
}

impl Parts<'_> {
    /// What follows a delimiter that `bytes` begin with.
    fn line_begins<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        bytes.strip_prefix(self.finder.needle().strip_prefix(b"\r\n")?)
    }

    /// What stands before the next delimiter, and what follows it.
    fn split<'b>(&self, bytes: &'b [u8]) -> Result<(&'b [u8], &'b [u8]), FormError> {
        let split = self.finder.find(bytes).and_then(|at| {
            let (before, tail) = bytes.split_at_checked(at)?;
            Some((before, tail.strip_prefix(self.finder.needle())?))
        });
        split.ok_or(FormError::Malformed)
    }

    /// What follows the line of a delimiter, or nothing if it is the last one. What stands behind that is passed over.
    fn begun<'b>(&self, rest: &'b [u8]) -> Result<Option<&'b [u8]>, FormError> {
        let (is_last, rest) = rest.strip_prefix(b"--").map_or((false, rest), |rest| (true, rest));
        let padding = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let rest = rest.get(padding..).unwrap_or_default();
        match rest.strip_prefix(b"\r\n") {
            None if is_last && rest.is_empty() => Ok(None),
            Some(_) if is_last => Ok(None),
            // Two delimiters in a row share the end of a line: a part that has not even an empty head.
            Some(part) if self.line_begins(part).is_none() => Ok(Some(part)),
            _ => Err(FormError::Malformed),
        }
    }
}

/// A part: its head, an empty line, its body.
fn field(part: &[u8]) -> Option<Field<'_>> {
    let near = part.get(..HEAD_BYTES_MAX).unwrap_or(part);
    let end = find(near, b"\r\n\r\n")?;
    let bytes = part.get(end + 4..)?;
    let Head { name, file_name, media_type } = head(part.get(..end)?)?;
    let value = match file_name {
        None => Value::Text(String::from_utf8_lossy(bytes)),
        // What browsers send of a field for files in which none was chosen.
        Some(name) if name.is_empty() && bytes.is_empty() => Value::NoFile,
        Some(name) => Value::File(File { name: without_folders(&name).into(), media_type, bytes }),
    };
    Some(Field { name: name.into(), value })
}

/// What the head of a part says.
struct Head {
    name: String,
    file_name: Option<String>,
    media_type: String,
}

/// What is read of a head.
const HEAD_NAMES: [&str; 3] = ["content-disposition", "content-type", "content-transfer-encoding"];

fn head(bytes: &[u8]) -> Option<Head> {
    let text = String::from_utf8_lossy(bytes);
    let mut said = [None; 3];
    for line in text.split("\r\n") {
        let (name, value) = line.split_once(':').filter(|(name, _)| is_token(name))?;
        let value = value.trim_matches([' ', '\t']);
        let at = HEAD_NAMES.iter().position(|known| name.eq_ignore_ascii_case(known));
        if let Some(place) = at.and_then(|at| said.get_mut(at))
            && (value.contains(char::is_control) || place.replace(value).is_some())
        {
            return None;
        }
    }
    let [disposition, media_type, encoding] = said;
    // Bodies are not encoded (RFC 7578 section 4.7).
    let is_plain = |name: &str| ["7bit", "8bit", "binary"].iter().any(|plain| name.eq_ignore_ascii_case(plain));
    if !encoding.is_none_or(is_plain) {
        return None;
    }
    let (kind, said) = disposition?.split_at_checked("form-data".len())?;
    let [name, file_name] =
        values(said, ["name", "filename"]).ok().filter(|_| kind.eq_ignore_ascii_case("form-data"))?;
    Some(Head {
        name: unescaped(name?),
        file_name: file_name.map(unescaped),
        media_type: media_type.unwrap_or_default().into(),
    })
}

/// Browsers write these three so, and nothing else.
fn unescaped(text: &str) -> String {
    text.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n")
}

/// Some browsers say in which folder a file was (RFC 7578 section 4.2).
fn without_folders(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or_default()
}
