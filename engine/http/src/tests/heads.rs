//! Heads of requests. Our parser is compared with `httparse`, a widely used parser.

use crate::head::{FieldBuffer, FieldName, RequestHead, Start, Version, start};
use crate::types::Status;
use proptest::prelude::*;
use std::vec::Vec;

/// The parts of a head that are compared: method, target, version, length, and the fields with a
/// [`FieldName`].
type Read<'a> = (&'a [u8], &'a [u8], Version, usize, Vec<(FieldName, &'a [u8])>);

const NAMES: [(&str, FieldName); 14] = [
    ("Accept-Encoding", FieldName::AcceptEncoding),
    ("Authorization", FieldName::Authorization),
    ("Connection", FieldName::Connection),
    ("Content-Length", FieldName::ContentLength),
    ("Cookie", FieldName::Cookie),
    ("Expect", FieldName::Expect),
    ("Host", FieldName::Host),
    ("If-Match", FieldName::IfMatch),
    ("If-Modified-Since", FieldName::IfModifiedSince),
    ("If-None-Match", FieldName::IfNoneMatch),
    ("If-Range", FieldName::IfRange),
    ("If-Unmodified-Since", FieldName::IfUnmodifiedSince),
    ("Range", FieldName::Range),
    ("Transfer-Encoding", FieldName::TransferEncoding),
];

fn ours(bytes: &[u8]) -> Result<Read<'_>, Status> {
    let mut room = FieldBuffer::new();
    let head = RequestHead::read(bytes, &mut room)?;
    let fields =
        NAMES.iter().flat_map(|(_, name)| head.values(*name).map(|value| (*name, value))).collect();
    Ok((head.method, head.target, head.version, head.length, fields))
}

/// Parses with `httparse`, which gets only whole heads with correct line ends.
fn theirs(bytes: &[u8]) -> Result<Read<'_>, Status> {
    if start(bytes, 0) != Start::Whole {
        return Err(Status::BadRequest);
    }
    let mut room = [httparse::EMPTY_HEADER; 100];
    let mut request = httparse::Request::new(&mut room);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Err(httparse::Error::TooManyHeaders) => return Err(Status::HeaderFieldsTooLarge),
        _ => return Err(Status::BadRequest),
    };
    let (method, target) = (request.method.unwrap().as_bytes(), request.path.unwrap().as_bytes());
    let version = if request.version == Some(0) { Version::Http10 } else { Version::Http11 };
    let of = |name: &'static str| {
        request.headers.iter().filter(move |field| field.name.eq_ignore_ascii_case(name))
    };
    let hosts: Vec<&[u8]> = of("host").map(|field| field.value).collect();
    let is_right = match hosts.as_slice() {
        [] => version == Version::Http10,
        [host] => is_host(core::str::from_utf8(host).unwrap_or("?")),
        _ => false,
    };
    if !is_right || !target.is_ascii() {
        return Err(Status::BadRequest);
    }
    let fields = NAMES
        .iter()
        .flat_map(|(known, name)| of(known).map(|field| (*name, field.value)))
        .collect();
    Ok((method, target, version, length, fields))
}

/// Whether `host` may be the value of `Host`. The generated heads have no address in brackets and
/// no valid escape.
fn is_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte);
    let is_name = !name.is_empty() && name.bytes().all(is_of_name);
    host.is_empty() || (is_name && port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(std::vec![
        "GET / HTTP/1.1\r\n",
        "GET /a?b=%20 HTTP/1.1\r\n",
        "PROPFIND * HTTP/1.0\r\n",
        "GET http://a/ HTTP/1.1\r\n",
        "Host: a\r\n",
        "HOST:\t 10.0.0.2:80 \t\r\n",
        "host:\r\n",
        "Host: a:80:80\r\n",
        "Host: x:abc\r\n",
        "GET /a b HTTP/1.1\r\n",
        "Connection: close\r\n",
        "cookie: a=b\r\n",
        "Authorization: Basic YTpi\r\n",
        "X: y\r\n",
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0)\r\n",
        "If-None-Match: \"a\"\r\n",
        "If-Range: \"a\"\r\n",
        "if-match: *\r\n",
        "Accept-encoding: gzip, br\r\n",
        "Range: bytes=0-\r\n",
        "Transfer-Encoding: chunked\r\n",
        "If-Modified-Since: x\r\n",
        "If-Unmodified-Since: x\r\n",
        "Content-Length: 5\r\n",
        "Expect: 100-continue\r\n",
        "\r\n",
        "\r\n\r\n",
        "\r",
        "\n",
        " ",
        "\t",
        ":",
        ": ",
        "GET",
        "/",
        "HTTP/1.1",
        "HTTP/1.2",
        "HTTP/2.0",
        "A b: c\r\n",
        " folded\r\n",
        "A : b\r\n",
        "\u{7f}",
        "\0",
        "\u{fc}",
    ])
    .prop_map(|text| text.as_bytes().to_vec());
    prop_oneof![8 => known, 1 => prop::collection::vec(any::<u8>(), 0..20)]
}

/// Heads that are correct except for random pieces in them.
fn head() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(piece(), 0..12), any::<bool>(), any::<bool>()).prop_map(
        |(pieces, begins, ends)| {
            let begin: &[u8] = if begins { b"GET / HTTP/1.1\r\nHost: a\r\n" } else { b"" };
            let end: &[u8] = if ends { b"\r\n" } else { b"" };
            [begin, &pieces.concat(), end].concat()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn heads_are_read_as_httparse_reads_them(bytes in head()) {
        match (ours(&bytes), theirs(&bytes)) {
            (Ok(ours), theirs) => prop_assert_eq!(Ok(ours), theirs),
            (Err(_), theirs) => prop_assert!(theirs.is_err(), "{theirs:?}"),
        }
    }
}

#[test]
fn each_byte_of_a_head_is_checked_against_the_grammar() {
    let head = b"GET /abc HTTP/1.1\r\nHost: a\r\nName: a value of more than a block\r\nIf-Range: x\r\n\r\n";
    assert!(ours(head).is_ok());
    for place in 0..head.len() {
        for byte in 0..=u8::MAX {
            let mut bytes = head.to_vec();
            bytes[place] = byte;
            assert_eq!(ours(&bytes).ok(), theirs(&bytes).ok(), "{byte:#x} at {place}");
        }
    }
}

#[test]
fn a_request_may_have_100_fields_and_not_101() {
    let text = |fields: usize| {
        [b"GET / HTTP/1.0\r\n".as_slice(), &b"A: b\r\n".repeat(fields), b"\r\n"].concat()
    };
    assert!(ours(&text(100)).is_ok());
    assert_eq!(ours(&text(101)), Err(Status::HeaderFieldsTooLarge));
    assert_eq!(theirs(&text(101)), Err(Status::HeaderFieldsTooLarge));
}
