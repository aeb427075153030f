//! Tests of the filter for elements. An HTML parser finds the elements in the filter's output.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use proptest::prelude::*;

use crate::inert::{HELD_BYTES_MAX, Inert, NAMES};
use crate::tests::{parsed, selector};

/// The output for a document that arrives in pieces of `characters` characters.
fn inert(html: &str, characters: usize) -> String {
    let (mut document, mut out) = (Inert::default(), String::new());
    let all: Vec<char> = html.chars().collect();
    for piece in all.chunks(characters) {
        document.text_arrived(&piece.iter().collect::<String>(), &mut out);
    }
    document.text_ended(&mut out);
    out
}

/// The output, after a check that it does not depend on the pieces.
fn cut(html: &str) -> String {
    let whole = inert(html, usize::MAX);
    for characters in [1, 2, 3, 5, HELD_BYTES_MAX] {
        assert_eq!(inert(html, characters), whole, "in pieces of {characters}");
    }
    whole
}

/// The number of elements in [`NAMES`] that an HTML parser creates, in any namespace.
fn living(html: &str) -> usize {
    let page = parsed(html);
    page.select(&selector("*")).filter(|element| NAMES.contains(&element.value().name())).count()
}

#[test]
fn elements_that_contact_hosts_become_comments() {
    for (html, expected) in [
        ("<link rel=preconnect href=//spy.test>", "<!link rel=preconnect href=//spy.test>"),
        ("<LiNk\nrel=dns-prefetch>", "<!LiNk\nrel=dns-prefetch>"),
        ("<meta/><base\t><iframe>x</iframe >", "<!meta/><!base\t><!iframe>x<!/iframe >"),
        ("<object><embed><applet></object>", "<!object><!embed><!applet><!/object>"),
        ("<frameset><frame></frameset>", "<!frameset><!frame><!/frameset>"),
        ("<portal><fencedframe></fencedframe", "<!portal><!fencedframe><!/fencedframe"),
        ("<<link><p title='<link>'><!-- <link> -->", "<<!link><p title='<!link>'><!-- <!link> -->"),
        ("<style><link></style><link", "<style><!link></style><!link"),
        ("<link\u{0} rel=x>", "<!link\u{0} rel=x>"),
    ] {
        assert_eq!(cut(html), expected, "{html}");
    }
}

#[test]
fn other_elements_stay_as_they_are() {
    for html in [
        "",
        "<",
        "a < b <= c </ d <",
        "<links><linked-list><metadata><basefont><embedded><framesets><fencedframes></fencedframes>",
        "<l><li><lin><o:link><-link><_link>< link></ link></-link><\u{0}link><li\u{0}nk>",
        "<p class=link>link meta iframe</p><!DOCTYPE html><!link><?link>é<é>",
        "<a href='https://spy.test'>x</a><img src='https://spy.test'><svg><image/></svg>",
    ] {
        assert_eq!(cut(html), html);
    }
}

#[test]
fn no_parser_state_creates_a_filtered_element() {
    let holders = [
        "",
        "<head>",
        "<body>",
        "<!--",
        "<style>",
        "</style>",
        "<textarea>",
        "<title>",
        "<noscript>",
        "<template>",
        "<xmp>",
        "<plaintext>",
        "<svg>",
        "<svg><foreignObject>",
        "<math>",
        "<math><annotation-xml encoding='text/html'>",
        "<table>",
        "<select>",
        "<script>",
        "<script><!--",
        "<script><!--<script>",
        "<p title=\"",
        "<p title='",
        "<p title=",
        "<p ",
        "<![CDATA[",
        "<svg><![CDATA[",
        "<!x",
        "<?x",
        "</x",
        "<noframes>",
        "<noembed>",
        "<iframe>",
        "<frameset>",
        "<object>",
    ];
    let mut before = 0;
    for holder in holders {
        for name in NAMES {
            for behind in [" x=y>", "/>", ">", "\n>", "\u{c}>", "\t/x>", "\r\n>"] {
                for html in [
                    format!("{holder}<{name}{behind}"),
                    format!(
                        "{holder}\">'> --></style></textarea></title><{}{behind}",
                        name.to_uppercase()
                    ),
                ] {
                    before += living(&html);
                    assert_eq!(living(&cut(&html)), 0, "{html}");
                }
            }
        }
    }
    assert!(before > 1_000, "the unfiltered input has such elements: {before}");
}

proptest! {
    #[test]
    fn filtered_html_never_has_such_an_element(
        html in "(<|</|<!|<!--|-->|>|/|\"|'|=| |\u{0}|\n|-|link|META|ba|se|i|frame|set|object|embed|svg|style|title|script|table|math|template|CDATA\\[|\\]\\]|x){0,40}",
    ) {
        prop_assert_eq!(living(&cut(&html)), 0, "{}", html);
    }
}
