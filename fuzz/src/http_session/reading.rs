//! A simple and strict reader of responses (RFC 9112 section 6.3). It must find one response for
//! each exchange in the server's log.

use super::world::{Answered, World};

/// One response's head.
struct Head {
    status: u16,
    fields: Vec<(String, String)>,
}

impl Head {
    fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} occurs once");
        value
    }
}

/// Checks that the server has sent one response for each exchange in its log.
pub(crate) fn check(world: &World) {
    let mut rest = world.sent.as_slice();
    let mut ends = false;
    for (number, exchange) in world.log.iter().enumerate() {
        let is_taken_back = world.log.get(number + 1).is_some_and(|(method, ..)| method.is_empty());
        if is_taken_back && !exchange.0.is_empty() && starts_with_refusal(rest) {
            // The body of this request was malformed, so the only response is the refusal.
            continue;
        }
        assert!(!ends, "a response after one that ends the connection");
        let Some(head) = head(&mut rest) else {
            // The response follows when the whole body of the request has arrived.
            let is_last = number + 1 == world.log.len();
            assert!(
                (world.closed || is_last) && rest.is_empty(),
                "a response is whole: {:?}",
                String::from_utf8_lossy(rest)
            );
            return;
        };
        ends = head.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if body(&mut rest, &head, exchange, &world.contents).is_none() {
            assert!(world.closed, "a body is complete unless the connection was closed");
            return;
        }
    }
    assert!(rest.is_empty(), "no request for the response {:?}", String::from_utf8_lossy(rest));
    assert!(!ends || world.closed, "after `Connection: close` the server closes");
}

/// Whether the next response refuses an unreadable request.
fn starts_with_refusal(rest: &[u8]) -> bool {
    [b"HTTP/1.1 400 ", b"HTTP/1.1 408 ", b"HTTP/1.1 431 "]
        .iter()
        .any(|status| rest.starts_with(*status))
}

fn head(rest: &mut &[u8]) -> Option<Head> {
    let end = rest.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&rest[..end]).expect("a head is text");
    *rest = &rest[end + 4..];
    let mut lines = text.split("\r\n");
    let status_line = lines.next().unwrap_or_default();
    let status = status_line.strip_prefix("HTTP/1.1 ").and_then(|line| line.split(' ').next());
    let status = status.and_then(|digits| digits.parse().ok()).expect("a status line has a status");
    let fields = lines.map(|line| {
        assert!(!line.contains(['\r', '\n']) && !line.starts_with(' '), "a field is one line");
        let (name, value) = line.split_once(": ").expect("a field has a name and a value");
        (name.to_string(), value.to_string())
    });
    Some(Head { status, fields: fields.collect() })
}

/// Reads a body. Checks that it has the declared length and is a body of the site.
fn body(
    rest: &mut &[u8],
    head: &Head,
    (method, target, status, bytes): &Answered,
    contents: &[&[u8]],
) -> Option<()> {
    assert_eq!(head.status, *status, "{method} {target} is answered as the log says");
    assert!(head.field("date").is_some() && head.field("transfer-encoding").is_none());
    let length: Option<usize> =
        head.field("content-length").map(|digits| digits.parse().expect("a length is a number"));
    let has_none = method == "HEAD" || matches!(head.status, 204 | 304);
    let length = if has_none { 0 } else { length.expect("a response has a content-length") };
    assert_eq!(*bytes, length as u64, "the log has the length of the body");
    let body = rest.get(..length)?;
    *rest = &rest[length..];
    let whole = |content: &[u8]| content == body;
    let part = |content: &[u8]| {
        !body.is_empty() && content.windows(body.len()).any(|window| window == body)
    };
    let mut contents = contents.iter();
    match head.status {
        200 => assert!(
            has_none || method == "OPTIONS" || contents.any(|content| whole(content)),
            "a whole file"
        ),
        206 if has_none
            || head.field("content-type").is_some_and(|kind| kind.starts_with("multipart/")) => {}
        206 => assert!(contents.any(|content| part(content)), "a part of a file"),
        _ => {}
    }
    Some(())
}
