//! Reads the check results in a set of a chain (RFC 8617 §4.1.1, RFC 8601 §2.2): whether DMARC
//! passed at the forwarder.

use alloc::vec::Vec;

/// Whether a field says that DMARC passed. Comments and quoted strings are ignored.
pub(crate) fn says_dmarc_passed(value: &[u8]) -> bool {
    let plain = plain(value);
    plain.split(|byte| *byte == b';').any(|result| {
        let mut words = result.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
        let method =
            words.next().unwrap_or_default().split(|byte| *byte == b'/').next().unwrap_or_default();
        let found = words
            .next()
            .unwrap_or_default()
            .split(u8::is_ascii_whitespace)
            .next()
            .unwrap_or_default();
        method.trim_ascii().eq_ignore_ascii_case(b"dmarc") && found.eq_ignore_ascii_case(b"pass")
    })
}

/// A value with a space in place of each comment, and without quoted strings.
fn plain(value: &[u8]) -> Vec<u8> {
    let (mut plain, mut depth, mut is_quoted, mut is_escaped) = (Vec::new(), 0_usize, false, false);
    for byte in value {
        match byte {
            _ if core::mem::take(&mut is_escaped) => {}
            b'\\' => is_escaped = is_quoted || depth > 0,
            b'"' if depth == 0 => is_quoted = !is_quoted,
            b'(' if !is_quoted => depth += 1,
            b')' if !is_quoted && depth > 0 => {
                depth -= 1;
                plain.push(b' ');
            }
            _ if is_quoted || depth > 0 => {}
            byte => plain.push(*byte),
        }
    }
    plain
}
