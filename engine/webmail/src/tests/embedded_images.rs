//! Tests of embedded images.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use message::structure::StructureReader;

use crate::jobs::embedded_images::{IMAGES_BYTES_MAX, ImageEmbedder, drawn_in};

fn message(parts: &[(&str, &str, &str)]) -> Vec<u8> {
    let parts = parts.iter().map(|(id, media_type, body)| {
        format!("--b\r\nContent-Type: {media_type}\r\nContent-ID: <{id}>\r\nContent-Transfer-Encoding: base64\r\n\r\n{body}\r\n")
    });
    let parts: Vec<String> = parts.collect();
    format!("Content-Type: multipart/related; boundary=b\r\n\r\n{}--b--\r\n", parts.concat())
        .into_bytes()
}

/// The output for a document that arrives in pieces of `characters` characters, with the images of
/// `message`.
fn illustrated(message: &[u8], html: &str, characters: usize) -> String {
    let mut reader = StructureReader::new();
    reader.bytes_arrived(message, &mut ());
    let mut document = ImageEmbedder::of(&reader.message_ended(&mut ()).parts);
    let mut out = Vec::new();
    let mut write = |document: &mut ImageEmbedder| {
        while let Some(place) = document.write(&mut out) {
            let octets = &message[place.start as usize..place.end as usize];
            octets.chunks(characters).for_each(|piece| document.image_arrived(piece, &mut out));
            document.image_ended(&mut out);
        }
    };
    let all: Vec<char> = html.chars().collect();
    for piece in all.chunks(characters) {
        document.text_arrived(&piece.iter().collect::<String>());
        write(&mut document);
    }
    document.text_ended();
    write(&mut document);
    String::from_utf8(out).expect("valid UTF-8")
}

fn within(html: &str) -> String {
    let message = message(&[
        ("one@x", "image/png", "AQID"),
        ("a%b&c", "image/jpeg", "BAUG"),
        ("page", "text/html", "PHA+"),
        ("drawing", "image/svg+xml", "PHN2Zz4="),
        ("empty", "image/png", ""),
        ("my logo@x", "image/x-png", "AQID"),
        ("photo", "image/pjpeg", "BAUG"),
        (" padded%40x ", "image/jpg", "BAUG"),
    ]);
    let whole = illustrated(&message, html, usize::MAX);
    for characters in [1, 2, 7] {
        assert_eq!(illustrated(&message, html, characters), whole, "in pieces of {characters}");
    }
    whole
}

#[test]
fn embedded_image_is_written_into_the_document() {
    let unended = format!("<p title=cid:{}=cid:one@x>", "y".repeat(800));
    for (html, expected) in [
        ("<img src=\"cid:one@x\">", "<img src=\"data:image/png;base64,AQID\">"),
        ("<img src='CID:one%40x'>", "<img src='data:image/png;base64,AQID'>"),
        ("<img src=cid:one@x alt=x>", "<img src=data:image/png;base64,AQID alt=x>"),
        // The first reference has no end, so the second one counts.
        (&unended, &unended.replace("cid:one@x", "data:image/png;base64,AQID")),
        (
            "<p style='background: url( cid:one@x )'>",
            "<p style='background: url( data:image/png;base64,AQID )'>",
        ),
        ("<td background=\"cid:a%25b&amp;c\">", "<td background=\"data:image/jpeg;base64,BAUG\">"),
        ("<img src=\"cid:my logo@x\">", "<img src=\"data:image/png;base64,AQID\">"),
        ("<img src='cid:my%20logo@x'>", "<img src='data:image/png;base64,AQID'>"),
        ("<img src=cid:photo>", "<img src=data:image/jpeg;base64,BAUG>"),
        ("<img src=\"cid:padded@x\">", "<img src=\"data:image/jpeg;base64,BAUG\">"),
        ("<img src=\"cid:padded%2540x\">", "<img src=\"data:image/jpeg;base64,BAUG\">"),
    ] {
        assert_eq!(within(html), expected);
    }
}

#[test]
fn other_references_stay_as_they_are() {
    for html in [
        "<img src=\"cid:two@x\">",
        "<img src=\"cid:page\">",
        "<img src=\"cid:drawing\">",
        "<p>The acid:one@x, 12:30, cid:",
        "<img src=\"cid:one@x",
        "cid:one@x ",
        "<img src=\"cid:empty\">",
        "<img src=\"https://a.test/?cid:one@x\">",
        "",
        &format!("<img src=\"cid:{}\">", "one@x".repeat(200)),
        &"<p title='cid:ä'>".repeat(300),
    ] {
        assert_eq!(within(html), html);
    }
}

#[test]
fn images_are_drawn_if_the_html_refers_to_them() {
    let large = "QUJD".repeat(IMAGES_BYTES_MAX / 5);
    let message = message(&[
        ("one@x", "image/png", "AQID"),
        ("two@x", "image/heic", "AQID"),
        ("three@x", "image/jpg", "AQID"),
        ("large@x", "image/png", &large),
    ]);
    let mut reader = StructureReader::new();
    reader.bytes_arrived(&message, &mut ());
    let parts = reader.message_ended(&mut ()).parts;
    let references = "<img src=cid:three@x><img src=\"cid:one@x\"><img src=\"cid:two@x\">";
    for (html, drawn) in [
        (references, &[3, 1][..]),
        ("<p>one@x</p>", &[]),
        ("<p>see cid:one@x</p>", &[]),
        ("<img alt=\"cid:one@x\">", &[]),
        ("<td background='cid:one@x'>", &[1]),
        ("<div style=\"background: URL( 'cid:one@x' )\">", &[1]),
        ("<a href=\"cid:one@x\">one</a>", &[]),
        ("<a href=\" cid:one@x\">one</a>", &[]),
        ("<a HREF = cid:one@x>one</a><img src='cid:one@x'>", &[1]),
        ("<svg><image xlink:href=\"cid:one@x\"/></svg>", &[1]),
        ("<!-- <img src=\"cid:one@x\"> --><img src=\"cid:three@x\">", &[3]),
        ("<!-- x --><img src=\"cid:one@x\">", &[1]),
        ("<!-- <img src=\"cid:one@x\"> <img src=\"cid:three@x\"> -->", &[]),
        ("<img src=\"cid:large@x\"><img src=\"cid:large@x\">", &[]),
    ] {
        assert_eq!(drawn_in(html, &parts), drawn, "{html}");
    }
    let small = illustrated(&message, references, 7);
    assert_eq!(small.matches("data:").count(), 2, "the document has the images that are drawn");
}

/// An image with the longest identifier, at each position in a long document.
#[test]
fn embedded_image_is_found_at_any_piece_boundary() {
    let id = "o".repeat(255);
    let message = message(&[(&id, "image/png", "AQID")]);
    for before in 0..1_000 {
        let [html, expected] =
            [format!("cid:{}", "%6F".repeat(255)), "data:image/png;base64,AQID".into()].map(
                |address| {
                    format!("{}<img src=\"{address}\">{}", "ä".repeat(before), "x".repeat(1_000))
                },
            );
        assert_eq!(illustrated(&message, &html, 1_000), expected, "after {before} characters");
    }
}

#[test]
fn images_in_a_document_have_a_total_limit() {
    let large = "QUJD".repeat(IMAGES_BYTES_MAX / 12);
    let message = message(&[
        ("a", "image/png", &large),
        ("b", "image/png", &large),
        ("c", "image/png", "AQID"),
    ]);
    let shown = |html: &str| illustrated(&message, html, 100_000);
    let twice =
        shown("<img src=\"cid:a\"><img src=\"cid:b\"><img src=\"cid:a\"><img src=\"cid:c\">");
    assert_eq!(
        (twice.matches("data:").count(), twice.matches("cid:a").count()),
        (3, 1),
        "the small image still fits"
    );
    let often = shown(&"<img src=\"cid:c\">".repeat(50_000));
    assert!(often.matches("data:").count() == 50_000 && often.len() < 2 * IMAGES_BYTES_MAX);
    assert!(shown(&"<img src=\"cid:a\">".repeat(50)).len() <= IMAGES_BYTES_MAX + 50 * 64);
}
