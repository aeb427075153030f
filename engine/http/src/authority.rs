//! The authority of a URI as HTTP uses it: a host, and perhaps a port (RFC 9110 sections 4.2 and
//! 7.2, RFC 3986 sections 3.2.2 and 3.2.3). User information is not allowed.

/// Whether `text` is `uri-host [ ":" port ]` with a host that is not empty.
pub(crate) fn is_authority(text: &[u8]) -> bool {
    let (is_host, port) = match text.strip_prefix(b"[") {
        Some(literal) => {
            let (address, port) = split_before(literal, b']');
            (is_address(address), port.strip_prefix(b"]"))
        }
        None => {
            let (name, port) = split_before(text, b':');
            (is_registered_name(name), Some(port))
        }
    };
    is_host && port.is_some_and(is_port_part)
}

/// The bytes before the first `end`, and the rest.
fn split_before(text: &[u8], end: u8) -> (&[u8], &[u8]) {
    text.split_at(memchr::memchr(end, text).unwrap_or(text.len()))
}

/// Whether `text` is empty, or a colon and digits. The digits may be absent.
fn is_port_part(text: &[u8]) -> bool {
    match text {
        [] => true,
        [b':', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Whether `text` may be in brackets: an IPv6 address, or an address of a later version.
fn is_address(text: &[u8]) -> bool {
    match text {
        [b'v' | b'V', rest @ ..] => {
            let (version, address) = split_before(rest, b'.');
            let is_later = |byte: &u8| *byte == b':' || is_plain(*byte);
            !version.is_empty()
                && version.iter().all(u8::is_ascii_hexdigit)
                && address.len() > 1
                && address.iter().all(is_later)
        }
        _ => {
            core::str::from_utf8(text).is_ok_and(|text| text.parse::<core::net::Ipv6Addr>().is_ok())
        }
    }
}

/// Whether `text` is a name or an IPv4 address, and not empty. Each percent sign begins an escape.
fn is_registered_name(text: &[u8]) -> bool {
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        rest = match (first, behind) {
            (b'%', [high, low, behind @ ..])
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                behind
            }
            (byte, behind) if is_plain(*byte) => behind,
            _ => return false,
        };
    }
    !text.is_empty()
}

/// `unreserved` and `sub-delims`.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
        )
}
