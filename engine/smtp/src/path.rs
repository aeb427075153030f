//! Paths: the addresses of senders and recipients.
//!
//! Invariants:
//! - A parsed path keeps the limits of RFC 5321 section 4.5.3.1: 64 bytes for the local part, 255
//!   for the domain, 256 for the path.
//! - No path contains a control character, so it can be written into a header field unchanged.
//! - A source route is skipped and never followed (section 3.3 and appendix C).
//!
//! The parser is more lenient than the grammar in one respect: dots may be anywhere in an unquoted
//! local part. Large providers have assigned such addresses, and their mail must be accepted.
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
    /// A mailbox.
    Mailbox(SmtpMailbox<'a>),
}

impl<'a> ReversePath<'a> {
    /// Reads the path at the start of `text`, including its angle brackets, and returns the text
    /// after it.
    pub fn read(text: &'a str) -> Result<(ReversePath<'a>, &'a str), PathError> {
        if let Some(rest) = text.strip_prefix("<>") {
            return Ok((ReversePath::Null, rest));
        }
        let (mailbox, rest) = mailbox(text)?;
        Ok((ReversePath::Mailbox(mailbox), rest))
    }

    /// The path without its angle brackets; empty for the null path.
    pub fn text(&self) -> &'a str {
        match self {
            ReversePath::Null => "",
            ReversePath::Mailbox(mailbox) => mailbox.text,
        }
    }
}

/// The address of a recipient.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardPath<'a> {
    /// `<Postmaster>` in upper or lower case, without a domain: the postmaster of this server (RFC
    /// 5321 section 4.5.1).
    Postmaster,
    /// A mailbox, local or remote.
    Mailbox(SmtpMailbox<'a>),
}

impl<'a> ForwardPath<'a> {
    /// Reads the path at the start of `text`, including its angle brackets, and returns the text
    /// after it.
    pub fn read(text: &'a str) -> Result<(ForwardPath<'a>, &'a str), PathError> {
        const POSTMASTER: &str = "<postmaster>";
        match text.split_at_checked(POSTMASTER.len()) {
            Some((path, rest)) if path.eq_ignore_ascii_case(POSTMASTER) => {
                Ok((ForwardPath::Postmaster, rest))
            }
            _ => mailbox(text).map(|(mailbox, rest)| (ForwardPath::Mailbox(mailbox), rest)),
        }
    }

    /// Whether the path is the postmaster of any domain. A postmaster must be reachable by every
    /// client (RFC 5321 section 4.5.1).
    pub fn is_postmaster(&self) -> bool {
        match self {
            ForwardPath::Postmaster => true,
            ForwardPath::Mailbox(mailbox) => {
                let mut plain = [0; LOCAL_PART_BYTES_MAX];
                mailbox.plain_local_part(&mut plain).eq_ignore_ascii_case("postmaster")
            }
        }
    }

    /// The path without its angle brackets.
    pub fn text(&self) -> &'a str {
        match self {
            ForwardPath::Postmaster => "postmaster",
            ForwardPath::Mailbox(mailbox) => mailbox.text,
        }
    }
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

/// Whether `text` may follow EHLO or HELO. The name may break the grammar of domains. Clients send
/// machine names that are not domains, and RFC 5321 section 4.1.4 forbids a server to refuse mail
/// because of a name. A name that cannot be written into a `Received:` field is refused.
pub(crate) fn is_greeting_name(text: &str) -> bool {
    (1..=DOMAIN_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| {
            byte.is_ascii_graphic()
                && !matches!(byte, b'(' | b')' | b'<' | b'>' | b'@' | b',' | b';' | b'"' | b'\\')
        })
}

/// The mailbox in the angle brackets at the start of `path`, and the text after them.
fn mailbox(path: &str) -> Result<(SmtpMailbox<'_>, &str), PathError> {
    let text = without_source_route(path.strip_prefix('<').ok_or(PathError::Malformed)?)?;
    let (local_part, after) = split_local_part(text).ok_or(PathError::Malformed)?;
    let after = after.strip_prefix('@').ok_or(PathError::Malformed)?;
    let (domain_text, rest) = split_at_byte(after, b'>').ok_or(PathError::Malformed)?;
    let domain = domain(domain_text)?;
    if local_part.len() > LOCAL_PART_BYTES_MAX || path.len() - rest.len() > PATH_BYTES_MAX {
        return Err(PathError::TooLong);
    }
    let length = local_part.len() + 1 + domain_text.len();
    let text = text.get(..length).ok_or(PathError::Malformed)?;
    Ok((SmtpMailbox { text, local_part, domain }, rest))
}

/// Skips a source route: `@one.example,@two.example:ada@three.example` becomes `ada@three.example`.
fn without_source_route(path: &str) -> Result<&str, PathError> {
    if !path.starts_with('@') {
        return Ok(path);
    }
    let (route, mailbox) = split_at_byte(path, b':').ok_or(PathError::Malformed)?;
    for hop in route.split(',') {
        domain(hop.strip_prefix('@').ok_or(PathError::Malformed)?)?;
    }
    Ok(mailbox)
}

/// The local part at the start of `text`, and the text after it.
fn split_local_part(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let length = match bytes.first() {
        Some(b'"') => quoted_length(bytes)?,
        _ => bytes.iter().take_while(|&&byte| is_in_class(byte, ATOM)).count(),
    };
    text.split_at_checked(length).filter(|_| length > 0)
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

fn domain(text: &str) -> Result<Domain<'_>, PathError> {
    if let Some(literal) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address_literal(literal).map(Domain::Literal).ok_or(PathError::Malformed);
    }
    if text.len() > DOMAIN_BYTES_MAX {
        return Err(PathError::TooLong);
    }
    if are_labels(text.as_bytes()) { Ok(Domain::Name(text)) } else { Err(PathError::Malformed) }
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

/// Whether `text` is one or more labels with dots between them.
fn are_labels(text: &[u8]) -> bool {
    let mut label_bytes = 0;
    for &byte in text {
        if is_in_class(byte, LABEL) {
            label_bytes += 1;
        } else if byte == b'.' && (1..=LABEL_BYTES_MAX).contains(&label_bytes) {
            label_bytes = 0;
        } else {
            return false;
        }
    }
    (1..=LABEL_BYTES_MAX).contains(&label_bytes)
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
