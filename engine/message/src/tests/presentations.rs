//! Tests of the presentation of messages: no part is lost, and each has the role that its sender
//! and its readers expect.

use std::format;
use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;

use super::messages::{body, cases, read, text};
use crate::presentation::{
    Content, OTHER_TEXT_BYTES_MAX, Preference, Presentation, Role, ShownAs, has_attachment,
    shown_as,
};
use crate::structure::{DEPTH_MAX, PARTS_MAX, Part, Structure};
use crate::{is_blank, text_of_html};

/// The content of each part, as a page with enough space for all of it determines it.
fn content(message: &[u8], structure: &Structure, index: usize) -> Content {
    let part = &structure.parts[index];
    let text = text(part, &[body(message, part)]);
    let is_blank = match shown_as(&structure.parts[..=index]).expect("only texts are read") {
        ShownAs::Html => is_blank(&text),
        ShownAs::Text => text.trim().is_empty(),
    };
    if is_blank { Content::Blank } else { Content::Visible }
}

fn presentation(message: &[u8], preference: Preference) -> (Structure, Presentation) {
    let structure = read(message);
    let presentation =
        Presentation::of(&structure.parts, preference, |part| content(message, &structure, part));
    (structure, presentation)
}

/// The roles of the parts: `T` and `H` for shown texts and HTML, `A` for attachments, `n` for
/// alternatives that were not chosen, `e` for parts of an attached message. A part that is listed
/// although it is no attachment has a `+`.
fn roles(message: &str, preference: Preference) -> String {
    let message = message.replace('\n', "\r\n").into_bytes();
    let (_, presentation) = presentation(&message, preference);
    let role = |leaf: &crate::presentation::Leaf| {
        let role = match leaf.role {
            Role::Shown(ShownAs::Text) => "T",
            Role::Shown(ShownAs::Html) => "H",
            Role::Drawn => "D",
            Role::Attachment => "A",
            Role::NotChosen => "n",
            Role::Enclosed => "e",
        };
        let is_extra = leaf.is_listed && leaf.role != Role::Attachment;
        format!("{role}{}", if is_extra { "+" } else { "" })
    };
    presentation.leaves().iter().map(role).collect::<Vec<String>>().join(" ")
}

/// A multipart with these parts. A text without an empty line is only the type of a part, which
/// gets a body.
fn multipart(kind: &str, boundary: &str, parts: &[&str]) -> String {
    let part = |part: &&str| match part.contains("\n\n") {
        true => format!("--{boundary}\n{part}\n"),
        false => format!("--{boundary}\nContent-Type: {part}\n\nwords\n"),
    };
    let parts: String = parts.iter().map(part).collect();
    format!("Content-Type: multipart/{kind}; boundary={boundary}\n\n{parts}--{boundary}--\n")
}

const PLAIN: &str = "text/plain";
const HTML: &str = "text/html";
const IMAGE: &str = "image/png\nContent-ID: <a@b>";

#[test]
fn each_part_of_a_message_has_its_role() {
    let mixed = |parts: &[&str]| multipart("mixed", "m", parts);
    let alternative = |parts: &[&str]| multipart("alternative", "a", parts);
    let related = |parts: &[&str]| multipart("related", "r", parts);
    let empty_html = "Content-Type: text/html\n\n \n";
    let blank_html = "Content-Type: text/html\n\n<head><title>x</title></head><body></body>\n";
    let pictured_html = "Content-Type: text/html\n\n<img src=x>\n";
    let attached = "Content-Type: message/rfc822\n\nSubject: x\n\nwords\n";
    let inner = mixed(&[PLAIN, "application/pdf", "text/csv; name=a.csv"]);
    for (name, message, expected) in [
        ("a text", "\nwords\n".into(), "T"),
        ("a message without words", "Subject: x\n\n".into(), "T"),
        ("only HTML", "Content-Type: text/html\n\n<p>words".into(), "H"),
        ("only a file", "Content-Type: application/pdf\n\nx".into(), "A"),
        ("alternatives", alternative(&[PLAIN, HTML]), "n H"),
        ("HTML first", alternative(&[HTML, PLAIN]), "n T"),
        ("empty HTML", alternative(&[PLAIN, empty_html]), "T n"),
        ("HTML without words", alternative(&[PLAIN, blank_html]), "T n"),
        ("HTML with only a picture", alternative(&[PLAIN, pictured_html]), "n H"),
        ("only blank alternatives", alternative(&[empty_html, empty_html]), "n H"),
        ("HTML for watches", alternative(&[PLAIN, "text/watch-html"]), "T n"),
        ("HTML for watches alone", alternative(&["text/watch-html"]), "T"),
        ("an invitation", alternative(&[PLAIN, HTML, "text/calendar; method=REQUEST"]), "n H A"),
        ("a file among alternatives", alternative(&[PLAIN, "application/pdf"]), "T A"),
        ("HTML with a picture", related(&[HTML, IMAGE]), "H A"),
        ("HTML with a picture, and text", alternative(&[PLAIN, &related(&[HTML, IMAGE])]), "n H A"),
        ("text last", alternative(&[&related(&[HTML, IMAGE]), PLAIN]), "n A T"),
        (
            "Apple's form",
            alternative(&[PLAIN, &mixed(&[HTML, "application/pdf", HTML])]),
            "n H A H",
        ),
        ("a style sheet", related(&[HTML, "text/css\nContent-ID: <c@b>"]), "H A"),
        ("an added text", related(&[HTML, PLAIN]), "H T"),
        ("two HTML parts", mixed(&[HTML, "application/pdf", HTML]), "H A H"),
        ("text, then HTML", mixed(&[PLAIN, HTML]), "T H"),
        ("HTML, then text", mixed(&[HTML, PLAIN]), "H T"),
        ("a picture without HTML", mixed(&[PLAIN, IMAGE]), "T A"),
        ("other texts", mixed(&[PLAIN, "text/csv", "text/x-log", "text/markdown"]), "T T T T"),
        ("enriched text", "Content-Type: text/enriched\n\nwords".into(), "T"),
        ("a calendar", mixed(&[PLAIN, "text/calendar"]), "T A"),
        ("only a calendar", "Content-Type: text/calendar\n\nwords".into(), "A"),
        ("a card", mixed(&[PLAIN, "text/vcard"]), "T A"),
        ("a named text", mixed(&[PLAIN, "text/plain; name=a.txt"]), "T A"),
        ("a named body", mixed(&["text/html; name=a.htm", "image/bmp"]), "H+ A"),
        (
            "named alternatives",
            alternative(&["text/plain; name=a.txt", "text/html; name=a.htm"]),
            "n H+",
        ),
        ("an attached text", mixed(&["text/plain\nContent-Disposition: attachment"]), "A"),
        ("a text after a file", mixed(&["application/pdf", "text/plain; name=a.txt"]), "A T+"),
        (
            "a report",
            multipart("report", "r", &[PLAIN, "message/delivery-status", "text/rfc822-headers"]),
            "T T T",
        ),
        ("a read receipt", mixed(&[PLAIN, "message/disposition-notification"]), "T T"),
        ("an attached message", mixed(&[PLAIN, attached]), "T A e"),
        (
            "an attached message with files",
            mixed(&[
                PLAIN,
                &format!(
                    "Content-Type: message/rfc822\n\n{}",
                    inner.replace("=m", "=i").replace("--m", "--i")
                ),
            ]),
            "T A e e+ e+",
        ),
        ("a digest", multipart("digest", "d", &["Subject: x\n\nwords", attached]), "A e A e"),
        (
            "a message within a message",
            format!("Content-Type: message/rfc822\n\n{attached}"),
            "A e+ e",
        ),
        (
            "an encoded message",
            mixed(&[PLAIN, "message/rfc822\nContent-Transfer-Encoding: base64"]),
            "T A",
        ),
        (
            "a signature",
            multipart("signed", "s", &[PLAIN, "application/pgp-signature; name=a.asc"]),
            "T A",
        ),
        ("no boundary", "Content-Type: multipart/mixed\n\n--b\n\nwords\n".into(), "T+"),
        (
            "an empty boundary",
            "Content-Type: multipart/mixed; boundary=\"\"\n\n--\n\nx".into(),
            "T+",
        ),
        ("no parts", "Content-Type: multipart/mixed; boundary=b\n\nwords\n".into(), "T+"),
        ("nothing", "Content-Type: multipart/mixed; boundary=b\n\n".into(), "T"),
        ("a preamble", mixed(&[PLAIN]).replacen("\n--m", "\npreamble\n--m", 1), "T"),
    ] {
        assert_eq!(roles(&message, Preference::Html), expected, "{name}");
    }
}

#[test]
fn plain_text_can_be_preferred() {
    let alternative = |parts: &[&str]| multipart("alternative", "a", parts);
    let with_file = multipart("mixed", "m", &[HTML, "application/pdf"]);
    let empty = "Content-Type: text/plain\n\n \n";
    for (name, message, expected) in [
        ("alternatives", alternative(&[PLAIN, HTML]), "T n"),
        ("no words in the text", alternative(&[empty, HTML]), "n H"),
        ("only HTML", alternative(&[HTML]), "H"),
        ("a file beside the HTML", alternative(&[PLAIN, &with_file]), "T n A"),
        ("another text", alternative(&["text/enriched", HTML]), "n H"),
    ] {
        assert_eq!(roles(&message, Preference::Text), expected, "{name}");
    }
}

#[test]
fn large_texts_of_other_types_are_attachments() {
    let role = |media_type: &str, length: u64| {
        let words = "x".repeat(length as usize);
        roles(&format!("Content-Type: {media_type}\n\n{words}"), Preference::Html)
    };
    assert_eq!(role("text/csv", OTHER_TEXT_BYTES_MAX), "T");
    assert_eq!(role("text/csv", OTHER_TEXT_BYTES_MAX + 1), "A");
    assert_eq!(role("text/plain", OTHER_TEXT_BYTES_MAX + 1), "T");
    let message = "Content-Type: text/plain\r\n\r\nx".as_bytes();
    let parts = read(message).parts;
    let presentation = Presentation::of(&parts, Preference::Html, |_| Content::TooLarge);
    assert_eq!(presentation.listed().collect::<Vec<usize>>(), [0]);
}

#[test]
fn only_an_image_that_is_drawn_is_not_listed() {
    let message = multipart("related", "r", &[HTML, IMAGE, "image/gif"]);
    let (_, mut presentation) = presentation(message.as_bytes(), Preference::Html);
    assert_eq!(presentation.listed().collect::<Vec<usize>>(), [2, 3]);
    presentation.image_is_drawn(2);
    // No effect: part 1 is the HTML itself, which cannot be drawn, and there is no part 9.
    presentation.image_is_drawn(1);
    presentation.image_is_drawn(9);
    assert_eq!(presentation.listed().collect::<Vec<usize>>(), [3]);
    assert_eq!(presentation.shown().collect::<Vec<_>>(), [(1, ShownAs::Html)]);
}

#[test]
fn a_list_names_messages_with_attachments() {
    let is = |message: &str| has_attachment(&read(message.as_bytes()).parts);
    let mixed = |parts: &[&str]| multipart("mixed", "m", parts);
    assert!(!is("\nwords") && !is("Content-Type: text/html\n\nwords"));
    assert!(is("Content-Type: application/pdf\n\nx"));
    assert!(is(&mixed(&[PLAIN, "text/calendar"])) && is(&mixed(&[PLAIN, "text/plain; name=a"])));
    assert!(!is(&mixed(&[PLAIN, "text/csv"])));
    assert!(is(&mixed(&[PLAIN, IMAGE])) && is(&mixed(&[HTML, "image/png"])));
    assert!(!is(&mixed(&[HTML, IMAGE])));
    assert!(is(&mixed(&[HTML, &format!("{IMAGE}\nContent-Disposition: attachment")])));
    assert!(!is(&mixed(&[PLAIN, "application/pgp-signature; name=signature.asc"])));
}

/// Asserts that no content of a message is lost.
fn check_any(message: &[u8], preference: Preference) {
    let (structure, presentation) = presentation(message, preference);
    let parts = &structure.parts;
    let leaves = presentation.leaves();
    assert!(leaves.windows(2).all(|pair| pair[0].part < pair[1].part));
    let role = |index: usize| leaves.iter().find(|leaf| leaf.part == index);
    let within = |part: &Part, container: usize| part.ancestors(parts).any(|at| at == container);
    for (index, part) in parts.iter().enumerate() {
        let has_parts = parts.get(index + 1).is_some_and(|next| next.depth > part.depth);
        let Some(leaf) = role(index) else {
            assert!(has_parts, "a part without parts has a role: {part:?}");
            continue;
        };
        assert!(!has_parts || part.holds_message());
        match leaf.role {
            Role::Shown(_) => assert_eq!(
                shown_as(&parts[..=index]).map(Role::Shown),
                Some(leaf.role),
                "the part was announced as one that may be shown"
            ),
            Role::Attachment => assert!(leaf.is_listed),
            Role::Drawn => panic!("no image was drawn"),
            Role::Enclosed => assert!(parts.iter().enumerate().any(|(at, container)| {
                container.holds_message()
                    && within(part, at)
                    && role(at).is_some_and(|leaf| leaf.role == Role::Attachment)
            })),
            // Another alternative is shown, and it says something if this one does.
            Role::NotChosen => {
                let is_blank = content(message, &structure, index) == Content::Blank;
                let is_instead = |other: usize| {
                    let other_part = &parts[other];
                    let common = part.ancestors(parts).any(|at| {
                        parts[at].media_type == "multipart/alternative" && within(other_part, at)
                    });
                    common && (is_blank || content(message, &structure, other) == Content::Visible)
                };
                assert!(presentation.shown().any(|(other, _)| is_instead(other)), "{part:?}");
            }
        }
    }
}

#[test]
fn no_part_of_a_known_message_is_lost() {
    for case in cases() {
        check_any(&case.message, Preference::Html);
        check_any(&case.message, Preference::Text);
    }
}

#[test]
fn messages_at_the_limits_are_shown_or_listed() {
    let mut deep = String::new();
    for level in 0..DEPTH_MAX + 2 {
        deep += &format!("Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n");
    }
    check_any(deep.as_bytes(), Preference::Html);
    assert_eq!(roles(&deep, Preference::Html), "T+");
    let many = multipart("mixed", "b", &[PLAIN; PARTS_MAX + 3]);
    check_any(many.as_bytes(), Preference::Html);
    let roles = roles(&many, Preference::Html);
    assert!(roles.starts_with("T T") && roles.ends_with("T A"), "{roles}");
}

/// A part of a random message.
fn any_part(depth: u32) -> BoxedStrategy<String> {
    let types = [
        "text/plain",
        "text/html",
        "text/html; name=a.htm",
        "text/plain; name=a.txt",
        "text/calendar",
        "text/x-log",
        "text/css\nContent-ID: <c@b>",
        "image/png",
        "image/png\nContent-ID: <a@b>",
        "application/pdf",
        "message/delivery-status",
        "message/rfc822\nContent-Transfer-Encoding: base64",
        "multipart/mixed",
        "text/plain\nContent-Disposition: attachment",
    ];
    let words = ["", "words", "<p></p>", "<p>words</p>"];
    let leaf = (0..types.len(), 0..words.len())
        .prop_map(move |(at, word)| format!("Content-Type: {}\n\n{}\n", types[at], words[word]));
    let kinds = ["mixed", "alternative", "related", "signed", "digest", "report"];
    leaf.prop_recursive(depth, 40, 5, move |inner| {
        let parts = proptest::collection::vec(inner.clone(), 0..5);
        let multipart =
            (0..kinds.len(), parts, any::<u32>()).prop_map(move |(kind, parts, number)| {
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                multipart(kinds[kind], &format!("b{number}"), &parts)
            });
        let message = inner.prop_map(|part| format!("Content-Type: message/rfc822\n\n{part}"));
        prop_oneof![4 => multipart, 1 => message]
    })
    .boxed()
}

proptest! {
    #[test]
    fn no_part_of_a_random_message_is_lost(message in any_part(6)) {
        check_any(message.as_bytes(), Preference::Html);
        check_any(message.as_bytes(), Preference::Text);
    }

    #[test]
    fn no_part_of_random_lines_is_lost(message in "[-b\n:a]{0,60}") {
        let message = format!("Content-Type: multipart/alternative; boundary=b\n\n--b\n{message}");
        check_any(message.as_bytes(), Preference::Html);
    }
}

#[test]
fn text_of_html_has_the_lines_of_the_page() {
    for (html, text) in [
        ("<p>One <b>bold</b>\nword</p><p>Two</p>", "One bold word\n\nTwo"),
        ("<div>a</div><div>b</div><div><br></div><div>c</div>", "a\nb\n\nc"),
        ("a<br>b<br><br><br>c", "a\nb\n\nc"),
        ("<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>", "1 2\n3"),
        ("<ul><li>x</li><li>y</li></ul>z", "x\ny\n\nz"),
        ("said:<blockquote>a<blockquote>b</blockquote></blockquote>c", "said:\n\n> a\n\n>> b\n\nc"),
        ("<pre>if x:\n  y\n</pre>", "if x:\n  y"),
        ("<style>p{}</style><script>x</script>&lt;a&gt; &amp; b", "<a> & b"),
        ("<title>no</title>  <p> </p> ", ""),
    ] {
        assert_eq!(text_of_html(html), text, "{html}");
    }
    for html in ["x<br>".repeat(1_000), "<blockquote>x".repeat(1_000), "&nbsp;x".repeat(1_000)] {
        let text = text_of_html(&html);
        assert!(text.len() <= 4 * html.len() && text.matches('x').count() == 1_000);
    }
}

#[test]
fn html_without_visible_content_is_blank() {
    let padded = format!("<style>{}</style>", "p{}".repeat(1_000));
    for html in [
        "",
        " \n&nbsp;",
        "<html><head><title>x</title></head><body></body></html>",
        "<!-- x -->",
        "<p>\u{200b}&zwnj;</p>",
        &padded,
    ] {
        assert!(is_blank(html), "{html}");
    }
    for html in [
        "<noscript>x</noscript>",
        "<!-->x",
        "<!--->x",
        "x",
        "<p>&#1080;</p>",
        "<img src=\"cid:a\">",
        "<hr/>",
        "a<style></style>",
        &format!("{padded}x"),
    ] {
        assert!(!is_blank(html), "{html}");
    }
}
