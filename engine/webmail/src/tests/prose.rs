//! Tests of plain text as HTML.

use alloc::format;
use alloc::string::{String, ToString};

use crate::{Escaped, Prose};

fn prose(text: &str) -> String {
    Prose(text).to_string()
}

/// The values of `href` attributes, joined by spaces.
fn links(text: &str) -> String {
    prose(text)
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect::<alloc::vec::Vec<_>>()
        .join(" ")
}

#[test]
fn plain_text_is_escaped() {
    assert_eq!(
        prose("a < b & \"c\" 'd' > e"),
        "<p>a &lt; b &amp; &quot;c&quot; &#39;d&#39; &gt; e</p>"
    );
}

#[test]
fn lines_stay_lines() {
    assert_eq!(prose("one\n\n  two\r\nthree\n\n\n"), "<p>one\n\n  two\nthree</p>");
}

#[test]
fn only_http_addresses_become_links() {
    assert_eq!(
        links("see https://a.example/x?y=1&z=2#f, or http://b.example."),
        "https://a.example/x?y=1&amp;z=2#f http://b.example"
    );
    assert_eq!(
        links("(https://a.example/wiki/A_(b)) [https://b.example]"),
        "https://a.example/wiki/A_(b) https://b.example"
    );
    for text in [
        "javascript:alert(1)",
        "data:text/html,x",
        "xhttps://a.example",
        "https://",
        "http:/a",
        "ftp://a.example",
        "HTTP",
    ] {
        assert_eq!(links(text), "", "{text}");
    }
}

#[test]
fn address_ends_at_a_character_not_allowed_in_addresses() {
    assert_eq!(links("https://a.example/\"onmouseover=\"alert(1)"), "https://a.example/");
    assert_eq!(links("https://a.example/<script>"), "https://a.example/");
    assert_eq!(links("https://a.example/ä"), "https://a.example/");
}

#[test]
fn quotes_are_marked_and_long_ones_folded() {
    assert_eq!(
        prose("yes\n> no?\nwell"),
        "<p>yes</p><blockquote dir=\"auto\">&gt; no?</blockquote><p>well</p>"
    );
    assert_eq!(prose("a > b\nc"), "<p>a &gt; b\nc</p>");
    let long = prose("> 1\n> 2\n> 3\n> 4\n");
    assert!(
        long.starts_with("<details><summary>Quoted text</summary><blockquote dir=\"auto\">"),
        "{long}"
    );
    assert!(long.ends_with("&gt; 4</blockquote></details>"), "{long}");
}

#[test]
fn empty_lines_around_quotes_are_dropped() {
    assert_eq!(
        prose("> no?\r\n\r\n \r\n  well\n\nyes"),
        "<blockquote dir=\"auto\">&gt; no?</blockquote><p>  well\n\nyes</p>"
    );
    assert_eq!(
        prose("one\n\n> two\n\n> three"),
        "<p>one</p><blockquote dir=\"auto\">&gt; two</blockquote><blockquote dir=\"auto\">&gt; three</blockquote>"
    );
    assert_eq!(
        prose("> two\n \n> three\n \n"),
        "<blockquote dir=\"auto\">&gt; two</blockquote><blockquote dir=\"auto\">&gt; three</blockquote>"
    );
}

#[test]
fn empty_text_yields_no_html() {
    assert_eq!(prose(""), "");
    assert_eq!(prose("\n\n"), "");
}

#[test]
fn special_characters_are_escaped_at_any_position() {
    for (character, written) in
        [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&#39;")]
    {
        for place in 0..50 {
            let (before, after) =
                ("é".repeat(place / 2) + &"x".repeat(place), "y".repeat(50 - place));
            let text = format!("{before}{character}{after}{character}");
            assert_eq!(Escaped(&text).to_string(), format!("{before}{written}{after}{written}"));
        }
    }
}
