//! The head of a request: its request line and its fields, up to the empty line.
//!
//! Nearly all heads arrive whole and are correct, so a head is read in one pass. Each byte is
//! checked against the grammar once. Only the fields that some code uses are kept, by
//! [`FieldName`]. If this pass rejects a head, [`start`] examines it again, and decides whether it
//! is incomplete or malformed.
//!
//! The grammar is strict. It rejects a line that does not end in CRLF, a space before a colon, and
//! a folded line. Two servers could read these in different ways.
//!
//! Implements: RFC 9112 sections 2.2, 3 and 5; RFC 9110 sections 5.5, 5.6.1, 5.6.2 and 7.2.

use heapless::Vec;

use crate::authority::is_authority;
use crate::types::Status;

/// The longest head of a request, in bytes, including its empty line.
pub const HEAD_BYTES_MAX: usize = 8192;

/// The maximum number of fields of a request.
const FIELDS_MAX: usize = 100;

/// The last bytes of a head: the end of its last line, and an empty line.
const END: &[u8] = b"\r\n\r\n";

/// The result of looking for a request at the start of the received bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Start {
    /// The bytes begin with a whole head.
    Whole,
    /// The bytes begin with an incomplete head. The value is the number of bytes that were
    /// searched.
    Partial(usize),
    /// An empty line, which some clients send after a body. It is skipped.
    EmptyLine,
    /// The bytes cannot begin a request, a line does not end in CRLF, or the head is too long.
    Bad(Status),
}

/// Finds the end of the head, and checks that its lines end in CRLF. An earlier call has searched
/// the first `searched` bytes.
pub(crate) fn start(bytes: &[u8], searched: usize) -> Start {
    match bytes {
        [b'\r', b'\n', ..] => return Start::EmptyLine,
        [b'\r'] | [] => return Start::Partial(0),
        // A client that speaks another protocol, such as TLS, gets the error at once.
        [first, ..] if !first.is_ascii_uppercase() && !first.is_ascii_lowercase() => {
            return Start::Bad(Status::BadRequest);
        }
        _ => {}
    }
    let within_limit = bytes.get(..HEAD_BYTES_MAX).unwrap_or(bytes);
    for line_end in memchr::memchr_iter(b'\n', within_limit.get(searched..).unwrap_or_default()) {
        match within_limit.get(..=searched + line_end) {
            Some(head) if head.ends_with(END) => return Start::Whole,
            Some(lines) if lines.ends_with(b"\r\n") => {}
            _ => return Start::Bad(Status::BadRequest),
        }
    }
    match within_limit.len() {
        ..HEAD_BYTES_MAX => Start::Partial(bytes.len()),
        _ if memchr::memchr(b'\n', within_limit).is_none() => Start::Bad(Status::UriTooLong),
        _ => Start::Bad(Status::HeaderFieldsTooLarge),
    }
}

/// The version of HTTP/1 that a client uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    Http10,
    /// HTTP/1.1, or a later minor version: RFC 9110 section 2.5 lets a server read it as HTTP/1.1.
    Http11,
}

/// A field that some code uses. All other fields are only checked against the grammar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FieldName {
    AcceptEncoding,
    Authorization,
    Connection,
    ContentLength,
    ContentType,
    Cookie,
    Expect,
    Host,
    IfMatch,
    IfModifiedSince,
    IfNoneMatch,
    IfRange,
    IfUnmodifiedSince,
    Origin,
    Range,
    SecFetchDest,
    SecFetchSite,
    TransferEncoding,
    UserAgent,
}

impl FieldName {
    /// The known field called `name`, which is a token. At most three names have the same length,
    /// so few comparisons are needed.
    pub(crate) fn of(name: &[u8]) -> Option<FieldName> {
        let known: &[(&[u8], FieldName)] = match name.len() {
            4 => &[(b"host", FieldName::Host)],
            5 => &[(b"range", FieldName::Range)],
            6 => &[
                (b"expect", FieldName::Expect),
                (b"cookie", FieldName::Cookie),
                (b"origin", FieldName::Origin),
            ],
            8 => &[(b"if-match", FieldName::IfMatch), (b"if-range", FieldName::IfRange)],
            10 => &[(b"connection", FieldName::Connection), (b"user-agent", FieldName::UserAgent)],
            12 => &[(b"content-type", FieldName::ContentType)],
            13 => &[
                (b"if-none-match", FieldName::IfNoneMatch),
                (b"authorization", FieldName::Authorization),
            ],
            14 => &[
                (b"content-length", FieldName::ContentLength),
                (b"sec-fetch-dest", FieldName::SecFetchDest),
                (b"sec-fetch-site", FieldName::SecFetchSite),
            ],
            15 => &[(b"accept-encoding", FieldName::AcceptEncoding)],
            17 => &[
                (b"transfer-encoding", FieldName::TransferEncoding),
                (b"if-modified-since", FieldName::IfModifiedSince),
            ],
            19 => &[(b"if-unmodified-since", FieldName::IfUnmodifiedSince)],
            _ => &[],
        };
        // Setting the bit 0x20 maps `A` to `Z` to lower case. No other byte of a token becomes a
        // letter, and only `-` becomes `-`.
        let is = |known: &[u8]| name.iter().zip(known).all(|(byte, known)| byte | 0x20 == *known);
        known.iter().find(|(known, _)| is(known)).map(|(_, name)| *name)
    }
}

/// Buffer for those fields of one head that have a [`FieldName`].
pub(crate) type FieldBuffer<'a> = Vec<(FieldName, &'a [u8]), FIELDS_MAX>;

/// A request's head.
pub(crate) struct RequestHead<'a, 'r> {
    /// The method: a token.
    pub(crate) method: &'a [u8],
    /// The target: visible ASCII.
    pub(crate) target: &'a [u8],
    pub(crate) version: Version,
    /// The length of the head in bytes, including its empty line.
    pub(crate) length: usize,
    fields: &'r [(FieldName, &'a [u8])],
    /// The names that occur in `fields`: one bit for each name.
    names: u32,
}

impl<'a, 'r> RequestHead<'a, 'r> {
    /// Reads the head that `bytes` begin with.
    ///
    /// Errors: the status for a malformed head, after which the end of the request is unknown. For
    /// an incomplete head the status has no meaning.
    pub(crate) fn read(
        bytes: &'a [u8],
        room: &'r mut FieldBuffer<'a>,
    ) -> Result<RequestHead<'a, 'r>, Status> {
        let bytes = bytes.get(..HEAD_BYTES_MAX).unwrap_or(bytes);
        if !bytes.first().is_some_and(u8::is_ascii_alphabetic) {
            return Err(Status::BadRequest);
        }
        let mut rest = Rest(bytes);
        let method = rest.take(TOKEN);
        rest.expect(b" ")?;
        let target = rest.take(VISIBLE);
        rest.expect(b" ")?;
        let version = match rest.0.first_chunk() {
            _ if target.is_empty() => return Err(Status::BadRequest),
            Some(b"HTTP/1.1") => Version::Http11,
            Some(b"HTTP/1.0") => Version::Http10,
            _ => return Err(refused_version(rest.0)),
        };
        rest.skip(b"HTTP/1.1".len());
        rest.expect(b"\r\n")?;
        rest.fields(room)?;
        let length = bytes.len() - rest.0.len();
        let head = RequestHead { version, length, ..RequestHead::of(method, target, room) };
        head.check_host()?;
        Ok(head)
    }

    /// Whether a field called `name` is present.
    #[inline]
    pub(crate) fn has(&self, name: FieldName) -> bool {
        self.names >> name as u16 & 1 == 1
    }

    /// Whether the head has a field that may contain credentials.
    pub(crate) fn has_secret(&self) -> bool {
        self.has(FieldName::Authorization) || self.has(FieldName::Cookie)
    }

    /// Makes a head. `method` must be a token, `target` visible ASCII, and `fields` already checked
    /// against the grammar.
    #[inline]
    pub(crate) fn of(
        method: &'a [u8],
        target: &'a [u8],
        fields: &'r [(FieldName, &'a [u8])],
    ) -> RequestHead<'a, 'r> {
        let names = fields.iter().fold(0, |names, (name, _)| names | 1 << *name as u16);
        RequestHead { method, target, version: Version::Http11, length: 0, fields, names }
    }

    /// The values of all fields called `name`, in order.
    pub(crate) fn values(&self, name: FieldName) -> impl Iterator<Item = &'a [u8]> + '_ {
        let fields = if self.has(name) { self.fields } else { &[] };
        fields.iter().filter(move |field| field.0 == name).map(|field| field.1)
    }

    /// The value of the field called `name`, which may occur only once.
    ///
    /// Errors: the field occurs more than once.
    pub(crate) fn only(&self, name: FieldName) -> Result<Option<&'a [u8]>, Status> {
        let mut values = self.values(name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(Status::BadRequest),
        }
    }

    /// Whether a list field called `name` has the item `item`, which is a token.
    pub(crate) fn lists(&self, name: FieldName, item: &str) -> bool {
        self.values(name).flat_map(list).any(|found| found.eq_ignore_ascii_case(item.as_bytes()))
    }

    /// Checks `Host` (RFC 9112 section 3.2). The field must occur exactly once in HTTP/1.1, and at
    /// most once in HTTP/1.0. Its value must be a host with or without a port. It may be empty,
    /// because the target may have no authority.
    pub(crate) fn check_host(&self) -> Result<(), Status> {
        match self.only(FieldName::Host)? {
            None if self.version == Version::Http11 => Err(Status::BadRequest),
            Some(host) if !host.is_empty() && !is_authority(host) => Err(Status::BadRequest),
            _ => Ok(()),
        }
    }
}

/// The part of a head that is not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// Takes the longest run of bytes of `class` at the start.
    #[inline]
    fn take(&mut self, class: u8) -> &'a [u8] {
        let count = self.0.iter().position(|byte| !has_class(*byte, class)).unwrap_or(self.0.len());
        self.skip(count)
    }

    #[inline]
    fn skip(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at_checked(count).unwrap_or((self.0, &[]));
        self.0 = rest;
        taken
    }

    #[inline]
    fn expect(&mut self, what: &[u8]) -> Result<(), Status> {
        self.0 = self.0.strip_prefix(what).ok_or(Status::BadRequest)?;
        Ok(())
    }

    /// Reads all fields and the empty line after them.
    fn fields(&mut self, room: &mut FieldBuffer<'a>) -> Result<(), Status> {
        for _ in 0..=FIELDS_MAX {
            if self.expect(b"\r\n").is_ok() {
                return Ok(());
            }
            let name = self.take(TOKEN);
            if name.is_empty() {
                return Err(Status::BadRequest);
            }
            self.expect(b":")?;
            let value = self.value();
            self.expect(b"\r\n")?;
            if let Some(name) = FieldName::of(name)
                && room.push((name, value)).is_err()
            {
                return Err(Status::HeaderFieldsTooLarge);
            }
        }
        Err(Status::HeaderFieldsTooLarge)
    }

    /// Takes a field value, without the white space around it.
    #[inline]
    fn value(&mut self) -> &'a [u8] {
        // Most values are long, so the loop checks a whole vector of bytes at a time.
        let (blocks, _) = self.0.as_chunks::<BLOCK_BYTES>();
        let is_plain = |block: &&[u8; BLOCK_BYTES]| {
            !block.iter().fold(false, |odd, byte| odd | is_control(*byte))
        };
        let plain = blocks.iter().take_while(is_plain).count() * BLOCK_BYTES;
        let tail = self.0.get(plain..).unwrap_or_default();
        let count =
            plain + tail.iter().position(|byte| !has_class(*byte, VALUE)).unwrap_or(tail.len());
        let mut value = self.skip(count);
        while let [b' ' | b'\t', inner @ ..] | [inner @ .., b' ' | b'\t'] = value {
            value = inner;
        }
        value
    }
}

/// The number of bytes of a value that are checked together.
const BLOCK_BYTES: usize = 16;

/// Bytes that a value must not contain (RFC 9110 section 5.5).
#[inline]
const fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

/// `tchar` (RFC 9110 section 5.6.2).
const TOKEN: u8 = 1;
/// `VCHAR`.
const VISIBLE: u8 = 2;
/// Bytes that may occur in a value.
const VALUE: u8 = 4;

/// The classes of each byte, as a sum of the class bits.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut rest: &mut [u8] = &mut classes;
    let mut byte = 0;
    while let [class, above @ ..] = rest {
        *class = class_of(byte) | if is_control(byte) { 0 } else { VALUE };
        byte = byte.wrapping_add(1);
        rest = above;
    }
    classes
};

const fn class_of(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => TOKEN | VISIBLE,
        b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' => {
            TOKEN | VISIBLE
        }
        b'#' | b'^' | b'`' | b'|' => TOKEN | VISIBLE,
        b'!'..=b'~' => VISIBLE,
        _ => 0,
    }
}

#[inline]
fn has_class(byte: u8, class: u8) -> bool {
    CLASSES.get(usize::from(byte)).is_some_and(|classes| classes & class != 0)
}

/// The status for a request line that does not end in a version of HTTP/1. `rest`: the bytes after
/// the target, which may name another version of HTTP or none.
fn refused_version(rest: &[u8]) -> Status {
    match rest.split(|&byte| byte == b'\r').next() {
        Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor])
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Status::VersionNotSupported
        }
        _ => Status::BadRequest,
    }
}

/// Whether `text` is a token.
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| has_class(*byte, TOKEN))
}

/// Whether `text` is visible ASCII and not empty.
pub(crate) fn is_visible(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| has_class(*byte, VISIBLE))
}

/// Whether all bytes of `text` may occur in a value.
pub(crate) fn is_value(text: &[u8]) -> bool {
    text.iter().all(|byte| has_class(*byte, VALUE))
}

/// The items of a list field's value (RFC 9110 section 5.6.1), without empty items. A comma in a
/// quoted string does not end an item.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    let mut escaped = false;
    let is_end = move |byte: &u8| {
        let ends = *byte == b',' && !quoted;
        match *byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
        ends
    };
    value.split(is_end).map(<[u8]>::trim_ascii).filter(|item| !item.is_empty())
}
