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
        "<p>yes</p><blockquote dir=\"auto\">no?</blockquote><p>well</p>"
    );
    assert_eq!(prose("a > b\nc"), "<p>a &gt; b\nc</p>");
    let long = prose("> 1\n> 2\n> 3\n> 4\n");
    assert!(
        long.starts_with("<details><summary>Quoted text</summary><blockquote dir=\"auto\">"),
        "{long}"
    );
    assert!(long.ends_with("3\n4</blockquote></details>"), "{long}");
}

#[test]
fn a_quote_within_a_quote_has_its_own_mark() {
    let quote = "<blockquote dir=\"auto\">";
    assert_eq!(
        Prose("> one\n>> two\n> > three\n>four\n>").unfolded().to_string(),
        format!("{quote}one{quote}two\nthree</blockquote>four\n</blockquote>")
    );
    let deep = prose(&">".repeat(20));
    assert_eq!(
        deep,
        format!("{}{}{}", quote.repeat(8), "&gt;".repeat(12), "</blockquote>".repeat(8))
    );
}

#[test]
fn the_introduction_of_a_long_quote_is_folded_with_it() {
    let quote = "> 1\n> 2\n> 3\n> 4\n";
    for introduction in
        ["You wrote:", "On Monday, Ada\nLovelace <ada@x.test> wrote:", "On 3 May, Ada:"]
    {
        let (own, folded) = prose(&format!("Yes.\n\n{introduction}\n\n{quote}"))
            .split_once("<details><summary>Quoted text</summary>")
            .map(|(own, folded)| (own.to_string(), folded.to_string()))
            .expect("a folded quote");
        let introduction = Escaped(introduction).to_string();
        assert_eq!(own, "<p>Yes.</p>", "{introduction}");
        assert!(folded.starts_with(&format!("<p>{introduction}</p><blockquote")), "{folded}");
    }
    assert!(prose(&format!("These are:\n{quote}")).starts_with("<p>These are:</p><details>"));
    assert!(prose("You wrote:\n> 1").starts_with("<p>You wrote:</p><blockquote"));
    let paragraph = format!("{}you wrote:\n{quote}", "I cancel the order, since ".repeat(12));
    assert!(prose(&paragraph).starts_with("<p>I cancel"), "a paragraph is no introduction");
    assert!(prose(&format!("You wrote:\n{quote}")).starts_with("<details>"));
}

#[test]
fn signatures_and_patches_are_set_apart() {
    assert_eq!(
        prose("Yes.\r\n\r\n-- \r\nAda\r\n"),
        "<p>Yes.</p><p class=\"signature\">-- \nAda</p>"
    );
    let patch = "---\n a.c | 1 -\n\ndiff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n-<x>";
    assert_eq!(
        prose(&format!("Fix it.\n\n{patch}\n-- \n2.39")),
        format!("<p>Fix it.</p><pre>{}</pre><p class=\"signature\">-- \n2.39</p>", Escaped(patch))
    );
    assert_eq!(prose("--- a/a.c\n+x"), "<pre>--- a/a.c\n+x</pre>");
    for text in ["a -- b", "--", "---\nb", "x diff --git a b", "a\n--- b"] {
        assert_eq!(prose(text), format!("<p>{text}</p>"));
    }
}

#[test]
fn empty_lines_around_quotes_are_dropped() {
    assert_eq!(
        prose("> no?\r\n\r\n \r\n  well\n\nyes"),
        "<blockquote dir=\"auto\">no?</blockquote><p>  well\n\nyes</p>"
    );
    assert_eq!(
        prose("one\n\n> two\n\n> three"),
        "<p>one</p><blockquote dir=\"auto\">two</blockquote><blockquote dir=\"auto\">three</blockquote>"
    );
    assert_eq!(
        prose("> two\n \n> three\n \n"),
        "<blockquote dir=\"auto\">two</blockquote><blockquote dir=\"auto\">three</blockquote>"
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
