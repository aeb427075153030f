//! Paths: the addresses of senders and recipients.
//!
//! Invariants:
//! - A parsed path keeps the limits of RFC 5321 section 4.5.3.1: 64 bytes for the local part, 255
//!   for the domain, 256 for the path.
//! - No path contains a control character, so it can be written into a header field unchanged.
//! - A source route is skipped and never followed (section 3.3 and appendix C).
//!
//! The parser is more lenient than the grammar, since many devices and scripts cannot be changed:
//!
//! - Dots may be anywhere in an unquoted local part. Large providers have assigned such addresses.
//! - The angle brackets may be missing or doubled, and spaces may stand inside them. A path without
//!   them ends at a space.
//! - A display name may stand before an opening bracket. Before the outer bracket it must be
//!   quoted; before the inner one of two it need not be.
//! - A dot after the domain, and apostrophes around the mailbox, are left out.
//! - The domain may be missing.
//!
//! The grammar has none of these texts, so a path within the grammar keeps its meaning. A text has
//! one mailbox, which all later checks see, or it is refused. Postfix takes the same texts by
//! default (`strict_rfc821_envelopes = no`), except apostrophes, and a display name that a space
//! separates from a single pair of brackets.
//!
//! Implements: RFC 5321 sections 4.1.2 and 4.1.3; RFC 6531 section 3.3 (non-ASCII).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest local part, in bytes.
pub const LOCAL_PART_BYTES_MAX: usize = 64;

/// The longest path, with its angle brackets, in bytes.
pub const PATH_BYTES_MAX: usize = 256;

const DOMAIN_BYTES_MAX: usize = 255;
const LABEL_BYTES_MAX: usize = 63;

/// The address to which failures are reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReversePath<'a> {
    /// `<>`: no sender. Failure reports have this path, so that a report never causes another
    /// report.
    Null,
    /// A path that names a sender.
    Named(SmtpPath<'a>),
}

impl<'a> ReversePath<'a> {
    /// Reads the path at the start of `text`, including its angle brackets, and returns the text
    /// after it.
    pub fn read(text: &'a str) -> Result<(ReversePath<'a>, &'a str), PathError> {
        if let Some(rest) = text.strip_prefix("<>") {
            return Ok((ReversePath::Null, rest));
        }
        SmtpPath::read(text).map(|(path, rest)| (ReversePath::Named(path), rest))
    }

    /// The path without its angle brackets; empty for the null path.
    pub fn text(&self) -> &'a str {
        match self {
            ReversePath::Null => "",
            ReversePath::Named(path) => path.text(),
        }
    }
}

/// The address of a recipient, or of a sender that is not the null path (`Path` in RFC 5321).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SmtpPath<'a> {
    /// An unquoted local part without a domain. It belongs to this server's first domain, as the
    /// name in a login does. RFC 5321 section 4.5.1 requires this for `<Postmaster>`.
    LocalPart(&'a str),
    /// A mailbox, local or remote.
    Mailbox(SmtpMailbox<'a>),
}

impl<'a> SmtpPath<'a> {
    /// Reads the path at the start of `text`, including its angle brackets, and returns the text
    /// after it.
    pub fn read(text: &'a str) -> Result<(SmtpPath<'a>, &'a str), PathError> {
        let mut inner = without_display_name(text, split_quoted);
        let mut brackets = 0;
        while brackets < BRACKETS_MAX
            && let Some(opened) = inner.strip_prefix('<')
        {
            brackets += 1;
            inner = without_display_name(without_leading_space(opened), split_word);
        }
        let (path, mut rest) = path(inner)?;
        for _ in 0..brackets {
            rest = without_leading_space(rest).strip_prefix('>').ok_or(PathError::Malformed)?;
        }
        if brackets == 0 && !may_lack_brackets(&path, rest) {
            return Err(PathError::Malformed);
        }
        // A path without brackets is limited as the same path with brackets.
        let bytes = text.len() - rest.len() + if brackets == 0 { "<>".len() } else { 0 };
        if bytes > PATH_BYTES_MAX {
            return Err(PathError::TooLong);
        }
        Ok((path, rest))
    }

    /// Whether mail for the path must be accepted from every client: it goes to the postmaster (RFC
    /// 5321 section 4.5.1) or to the address for reports of abuse (RFC 2142 section 4), of any
    /// domain.
    pub fn is_for_administrator(&self) -> bool {
        match self {
            SmtpPath::LocalPart(name) => is_administrative(name),
            SmtpPath::Mailbox(mailbox) => {
                is_administrative(mailbox.plain_local_part(&mut [0; LOCAL_PART_BYTES_MAX]))
            }
        }
    }

    /// The path without its angle brackets.
    pub fn text(&self) -> &'a str {
        match self {
            SmtpPath::LocalPart(name) => name,
            SmtpPath::Mailbox(mailbox) => mailbox.text,
        }
    }
}

/// Whether the administrator gets the mail for this local part (without quoting), because it names
/// the postmaster or is for reports of abuse.
pub fn is_administrative(local_part: &str) -> bool {
    ["postmaster", "abuse"].iter().any(|name| local_part.eq_ignore_ascii_case(name))
}

/// A mailbox: a local part and a domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SmtpMailbox<'a> {
    /// The whole mailbox as written: `local-part@domain`.
    pub text: &'a str,
    /// The local part as written, including quotation marks.
    pub local_part: &'a str,
    /// The domain.
    pub domain: Domain<'a>,
}

/// The text after the `@`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Domain<'a> {
    /// A domain name. It is case-insensitive.
    Name(&'a str),
    /// An address in brackets.
    Literal(IpAddr),
}

impl<'a> SmtpMailbox<'a> {
    /// The local part without quoting. So `"a b"` and `"a\ b"` give the same text, and `"ada"`
    /// gives `ada`. `buffer` is used only for a quoted local part.
    pub fn plain_local_part<'b>(&self, buffer: &'b mut [u8; LOCAL_PART_BYTES_MAX]) -> &'b str
    where
        'a: 'b,
    {
        let Some(quoted) =
            self.local_part.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'))
        else {
            return self.local_part;
        };
        let mut length = 0;
        let mut escaped = false;
        for byte in quoted.bytes() {
            if byte == b'\\' && !escaped {
                escaped = true;
                continue;
            }
            escaped = false;
            if let Some(target) = buffer.get_mut(length) {
                *target = byte;
                length += 1;
            }
        }
        // Only backslashes were left out of valid UTF-8, so the rest is valid UTF-8.
        buffer.get(..length).and_then(|plain| core::str::from_utf8(plain).ok()).unwrap_or_default()
    }
}

/// Why a path is not valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathError {
    /// The path breaks the grammar.
    Malformed,
    /// The path exceeds a limit.
    TooLong,
}

/// A program that was configured with an address in brackets puts further brackets around it.
const BRACKETS_MAX: usize = 2;

/// The text after a display name, if `text` begins with one: words, and then an opening bracket.
#[inline]
fn without_display_name(text: &str, split_word: fn(&str) -> Option<(&str, &str)>) -> &str {
    if text.starts_with('<') || memchr::memchr(b'<', text.as_bytes()).is_none() {
        return text;
    }
    let mut rest = text;
    while let Some((_, after)) = split_word(rest) {
        rest = without_leading_space(after);
    }
    if rest.starts_with('<') { rest } else { text }
}

/// Whether a path needs no brackets: it ends before `rest`. A parameter alone, such as `SIZE=1`, is
/// no path.
fn may_lack_brackets(path: &SmtpPath<'_>, rest: &str) -> bool {
    let is_parameter = matches!(path, SmtpPath::LocalPart(name) if name.contains('='));
    !is_parameter && (rest.is_empty() || rest.starts_with(' '))
}

/// The path at the start of `text`, which has neither brackets nor a display name, and the text
/// after the path.
fn path(text: &str) -> Result<(SmtpPath<'_>, &str), PathError> {
    let has_route = text.starts_with('@');
    let text = without_source_route(text)?;
    let (mut local_part, after) = split_word(text).ok_or(PathError::Malformed)?;
    let Some(after) = after.strip_prefix('@') else {
        return match local_part {
            _ if has_route || local_part.starts_with('"') => Err(PathError::Malformed),
            _ if local_part.len() > LOCAL_PART_BYTES_MAX => Err(PathError::TooLong),
            _ => Ok((SmtpPath::LocalPart(local_part), after)),
        };
    };
    let (domain_text, domain, mut rest) = split_domain(after)?;
    // No domain contains an apostrophe, so this one ends a quotation.
    if let Some(after) = rest.strip_prefix('\'') {
        local_part = local_part.strip_prefix('\'').ok_or(PathError::Malformed)?;
        rest = after;
    }
    let start = text.len() - after.len() - "@".len() - local_part.len();
    let end = text.len() - after.len() + domain_text.len();
    let text = text.get(start..end).ok_or(PathError::Malformed)?;
    match local_part.len() {
        0 => Err(PathError::Malformed),
        1..=LOCAL_PART_BYTES_MAX => {
            Ok((SmtpPath::Mailbox(SmtpMailbox { text, local_part, domain }), rest))
        }
        _ => Err(PathError::TooLong),
    }
}

/// Skips a source route: `@one.example,@two.example:ada@three.example` becomes `ada@three.example`.
fn without_source_route(path: &str) -> Result<&str, PathError> {
    if !path.starts_with('@') {
        return Ok(path);
    }
    let (route, mailbox) = split_at_byte(path, b':').ok_or(PathError::Malformed)?;
    for hop in route.split(',') {
        match split_domain(hop.strip_prefix('@').ok_or(PathError::Malformed)?)? {
            (_, _, "") => {}
            _ => return Err(PathError::Malformed),
        }
    }
    Ok(mailbox)
}

/// The word at the start of `text`, and the text after it. Local parts and the words of display
/// names have this form.
fn split_word(text: &str) -> Option<(&str, &str)> {
    if text.starts_with('"') {
        return split_quoted(text);
    }
    let length = text.bytes().take_while(|&byte| is_in_class(byte, ATOM)).count();
    text.split_at_checked(length).filter(|_| length > 0)
}

/// The quoted string at the start of `text`, and the text after it.
fn split_quoted(text: &str) -> Option<(&str, &str)> {
    text.starts_with('"')
        .then(|| quoted_length(text.as_bytes()))?
        .and_then(|length| text.split_at_checked(length))
}

/// The length of the quoted string at the start of `text`, including its quotation marks.
fn quoted_length(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    for (index, &byte) in text.iter().enumerate().skip(1) {
        match byte {
            0..b' ' | 0x7f => return None,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(index + 1),
            _ => {}
        }
    }
    None
}

/// The domain at the start of `text`: its text without a final dot, its parsed form, and the text
/// after the domain and its final dot.
fn split_domain(text: &str) -> Result<(&str, Domain<'_>, &str), PathError> {
    if let Some(after) = text.strip_prefix('[') {
        let (literal, rest) = split_at_byte(after, b']').ok_or(PathError::Malformed)?;
        let domain = address_literal(literal).ok_or(PathError::Malformed)?;
        return Ok((text.get(..literal.len() + 2).unwrap_or(text), Domain::Literal(domain), rest));
    }
    let (name, rest) = split_labels(text).ok_or(PathError::Malformed)?;
    if name.len() > DOMAIN_BYTES_MAX {
        return Err(PathError::TooLong);
    }
    Ok((name, Domain::Name(name), rest))
}

/// Parses an address literal (RFC 5321 section 4.1.3). The only registered tag is `IPv6`.
fn address_literal(text: &str) -> Option<IpAddr> {
    match text.split_at_checked("IPv6:".len()) {
        Some((tag, address)) if tag.eq_ignore_ascii_case("IPv6:") => {
            address.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
        }
        _ => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

/// The labels at the start of `text`, with dots between them, and the text after them and after a
/// last dot.
fn split_labels(text: &str) -> Option<(&str, &str)> {
    let mut label_bytes = 0;
    let mut length = 0;
    for byte in text.bytes() {
        if is_in_class(byte, LABEL) {
            label_bytes += 1;
        } else if byte == b'.' && (1..=LABEL_BYTES_MAX).contains(&label_bytes) {
            label_bytes = 0;
        } else {
            break;
        }
        length += 1;
    }
    let (name, rest) = text.split_at_checked(length)?;
    let name = if label_bytes == 0 { name.strip_suffix('.')? } else { name };
    (label_bytes <= LABEL_BYTES_MAX && !rest.starts_with('.')).then_some((name, rest))
}

/// White space around paths.
const SPACE: [char; 2] = [' ', '\t'];

/// The text without leading white space.
pub(crate) fn without_leading_space(text: &str) -> &str {
    text.trim_start_matches(SPACE)
}

/// The text before the first `byte`, which is ASCII, and the text after it.
pub(crate) fn split_at_byte(text: &str, byte: u8) -> Option<(&str, &str)> {
    let index = memchr::memchr(byte, text.as_bytes())?;
    Some((text.get(..index)?, text.get(index + 1..)?))
}

/// Allowed in an unquoted local part: `atext` of RFC 5322 section 3.2.3, the dot, and every byte of
/// a non-ASCII character.
const ATOM: u8 = 1 << 0;
/// Allowed in a label of a domain name. Underscores are not allowed in host names, but occur in
/// domains that have mail.
const LABEL: u8 = 1 << 1;

/// The classes of each byte.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut rest: &mut [u8] = &mut classes;
    let mut byte: u8 = 0;
    while let Some((class, others)) = rest.split_first_mut() {
        *class = match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | 0x80.. => ATOM | LABEL,
            b'!'
            | b'#'..=b'\''
            | b'*'
            | b'+'
            | b'.'
            | b'/'
            | b'='
            | b'?'
            | b'^'
            | b'`'
            | b'{'..=b'~' => ATOM,
            _ => 0,
        };
        rest = others;
        byte = byte.wrapping_add(1);
    }
    classes
}

/// Whether a byte belongs to a class: [`ATOM`] or [`LABEL`].
fn is_in_class(byte: u8, class: u8) -> bool {
    CLASSES.get(usize::from(byte)).is_some_and(|classes| classes & class != 0)
}
