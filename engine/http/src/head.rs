//! The head of a request: its request line and its fields, up to the empty line.
//!
//! The grammar is `httparse`'s. What that lets pass for the sake of old clients is refused here: a line that does not end
//! in CRLF is read in two ways by two servers.
//!
//! Answers to: RFC 9112 sections 2.2, 3 and 5; RFC 9110 sections 5.5, 5.6.1 and 7.2.

use core::mem::MaybeUninit;

use crate::response::Status;

/// The longest head of a request, in bytes, with its empty line.
pub const HEAD_BYTES_MAX: usize = 8192;

/// The most fields of a request.
const FIELDS_MAX: usize = 100;

/// The empty line that ends a head, with the end of the line before.
const END: &[u8] = b"\r\n\r\n";

/// What the bytes of a connection begin with, where a request may begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Start {
    /// A whole head of so many bytes.
    Whole(usize),
    /// A head whose end is not among so many bytes.
    Partial(usize),
    /// An empty line, which some clients send after a body: to be passed over.
    EmptyLine,
    /// Nothing that a request could begin with, or a line that does not end in CRLF.
    Bad(Status),
}

/// Finds the end of the head, and looks how its lines end. Its first `searched` bytes were looked at before.
pub(crate) fn start(bytes: &[u8], searched: usize) -> Start {
    match bytes {
        [b'\r', b'\n', ..] => return Start::EmptyLine,
        [b'\r'] | [] => return Start::Partial(0),
        // Whoever speaks another protocol, TLS for one, is told so at once.
        [first, ..] if !first.is_ascii_uppercase() && !first.is_ascii_lowercase() => {
            return Start::Bad(Status::BadRequest);
        }
        _ => {}
    }
    let within_limit = bytes.get(..HEAD_BYTES_MAX).unwrap_or(bytes);
    for line_end in memchr::memchr_iter(b'\n', within_limit.get(searched..).unwrap_or_default()) {
        match within_limit.get(..=searched + line_end) {
            Some(head) if head.ends_with(END) => return Start::Whole(head.len()),
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

/// Which version of HTTP/1 a client speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    Http10,
    /// HTTP/1.1, or a later minor version, which promises to be understood as such.
    Http11,
}

/// Storage for the fields of one head.
pub(crate) type Room<'a> = [MaybeUninit<httparse::Header<'a>>; FIELDS_MAX];

/// Room for the fields of one head.
pub(crate) const fn room<'a>() -> Room<'a> {
    [const { MaybeUninit::uninit() }; FIELDS_MAX]
}

/// A request's head.
pub(crate) struct Head<'a, 'r> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) version: Version,
    fields: &'r [httparse::Header<'a>],
}

impl<'a, 'r> Head<'a, 'r> {
    /// Parses a whole head, as [`start`] has found it.
    ///
    /// Errors: the status that says what is wrong; where the request ends is not known then.
    pub(crate) fn parse(bytes: &'a [u8], room: &'r mut Room<'a>) -> Result<Head<'a, 'r>, Status> {
        let mut request = httparse::Request::new(&mut []);
        match request.parse_with_uninit_headers(bytes, room) {
            Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
            Ok(_) => return Err(Status::BadRequest),
            Err(httparse::Error::TooManyHeaders) => return Err(Status::HeaderFieldsTooLarge),
            Err(httparse::Error::Version) => return Err(refused_version(bytes)),
            Err(_) => return Err(Status::BadRequest),
        }
        let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
            return Err(Status::BadRequest);
        };
        let version = if minor == 0 { Version::Http10 } else { Version::Http11 };
        if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Status::BadRequest);
        }
        let head = Head { method, target, version, fields: request.headers };
        head.check_host()?;
        Ok(head)
    }

    /// The values of all fields called `name`, in order.
    pub(crate) fn values<'s>(&'s self, name: &'static str) -> impl Iterator<Item = &'a [u8]> + 's {
        self.fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }

    /// The value of the field called `name`, which there may be only one of.
    ///
    /// Errors: there are several.
    pub(crate) fn only(&self, name: &'static str) -> Result<Option<&'a [u8]>, Status> {
        let mut values = self.values(name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(Status::BadRequest),
        }
    }

    /// Whether a list field called `name` has the item `item`, which is a token.
    pub(crate) fn lists(&self, name: &'static str, item: &str) -> bool {
        self.values(name).flat_map(list).any(|found| found.eq_ignore_ascii_case(item.as_bytes()))
    }

    /// RFC 9112 section 3.2: one `Host`, in HTTP/1.1 always, and one that can be a host's name.
    fn check_host(&self) -> Result<(), Status> {
        match self.only("host")? {
            None if self.version == Version::Http11 => Err(Status::BadRequest),
            Some(host) if !host.iter().all(|&byte| is_of_authority(byte)) => Err(Status::BadRequest),
            _ => Ok(()),
        }
    }
}

/// The version is not one of HTTP/1: it may be HTTP all the same.
fn refused_version(bytes: &[u8]) -> Status {
    let line = bytes.split(|&byte| byte == b'\r').next().unwrap_or_default();
    match line.rsplit(|&byte| byte == b' ').next() {
        Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor])
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Status::VersionNotSupported
        }
        _ => Status::BadRequest,
    }
}

/// What may stand in `uri-host [ ":" port ]` (RFC 3986 section 3.2), user information left out.
#[inline]
pub(crate) fn is_of_authority(byte: u8) -> bool {
    matches!(byte,
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'%' | b'&'..=b',' | b':' | b';' | b'=' | b'[' | b']')
}

/// The items of a list field's value (RFC 9110 section 5.6.1), those that are empty left out. Commas in quoted strings
/// end no item.
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
