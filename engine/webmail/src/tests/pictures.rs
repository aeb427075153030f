//! Pictures that come along with HTML.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use message::structure::{Listener, Part, Reader};

use crate::clerk::pictures::{PICTURES_BYTES_MAX, Pictures};

/// Takes all pictures that it is told of.
#[derive(Default)]
struct All(Pictures);

impl Listener for All {
    fn body_began(&mut self, parts: &[Part]) -> bool {
        parts.last().is_some_and(|part| self.0.began(part))
    }

    fn body_arrived(&mut self, bytes: &[u8]) {
        self.0.arrived(bytes);
    }

    fn body_ended(&mut self) {
        self.0.ended();
    }
}

fn message(parts: &[(&str, &str, &str)]) -> Vec<u8> {
    let parts = parts.iter().map(|(id, media_type, body)| {
        format!("--b\r\nContent-Type: {media_type}\r\nContent-ID: <{id}>\r\nContent-Transfer-Encoding: base64\r\n\r\n{body}\r\n")
    });
    let parts: Vec<String> = parts.collect();
    format!("Content-Type: multipart/related; boundary=b\r\n\r\n{}--b--\r\n", parts.concat()).into_bytes()
}

fn pictures(message: &[u8]) -> Pictures {
    let mut all = All::default();
    let mut reader = Reader::new();
    for piece in message.chunks(7) {
        reader.bytes_arrived(piece, &mut all);
    }
    reader.message_ended(&mut all);
    all.0
}

fn within(html: &str) -> String {
    let message = message(&[
        ("one@x", "image/png", "AQID"),
        ("a%b&c", "image/jpeg", "BAUG"),
        ("page", "text/html", "PHA+"),
        ("drawing", "image/svg+xml", "PHN2Zz4="),
    ]);
    pictures(&message).within(html.to_string(), 10_000)
}

#[test]
fn a_picture_that_came_along_is_written_into_the_document_that_shows_it() {
    for (html, expected) in [
        ("<img src=\"cid:one@x\">", "<img src=\"data:image/png;base64,AQID\">"),
        ("<img src='CID:one%40x'>", "<img src='data:image/png;base64,AQID'>"),
        ("<img src=cid:one@x alt=x>", "<img src=data:image/png;base64,AQID alt=x>"),
        ("<p style='background: url( cid:one@x )'>", "<p style='background: url( data:image/png;base64,AQID )'>"),
        ("<td background=\"cid:a%25b&amp;c\">", "<td background=\"data:image/jpeg;base64,BAUG\">"),
    ] {
        assert_eq!(within(html), expected);
    }
}

#[test]
fn what_is_no_picture_that_came_along_stays_as_it_was() {
    for html in [
        "<img src=\"cid:two@x\">",
        "<img src=\"cid:page\">",
        "<img src=\"cid:drawing\">",
        "<p>The acid:one@x, 12:30, cid:",
        "<img src=\"cid:one@x",
        "cid:one@x ",
        "<img src=\"https://a.test/?cid:one@x\">",
        "",
    ] {
        assert_eq!(within(html), html);
    }
}

#[test]
fn a_document_with_pictures_is_bounded_however_often_it_shows_them_and_however_large_they_are() {
    let body = "QUJD".repeat(1000);
    let known = pictures(&message(&[("a", "image/png", &body)]));
    let html = "<img src=\"cid:a\">".repeat(50);
    let shown = known.within(html.clone(), 20_000);
    assert!(shown.len() <= 20_000 && shown.matches("data:").count() >= 4, "{}", shown.len());
    assert_eq!(shown.matches("data:").count() + shown.matches("cid:a").count(), 50);

    let large = "QUJD".repeat(PICTURES_BYTES_MAX / 6);
    let known =
        pictures(&message(&[("a", "image/png", &large), ("b", "image/png", &large), ("c", "image/png", &large)]));
    let missing = |id: &str| known.within(format!("<img src=\"cid:{id}\">"), 100 << 20).contains("cid:");
    assert_eq!(["a", "b", "c"].map(missing), [false, false, true]);
}
