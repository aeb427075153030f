//! Tests of the search for remote content.

use proptest::prelude::*;

use crate::remote_content::is_in;

#[test]
fn remote_content_is_found() {
    for html in [
        "<img src=\"https://spy.test/x\">",
        "<IMG alt='a > b' SRC = http://spy.test/x>",
        "<img alt=\"<\" src=//spy.test/x>",
        "<img src='/\n/spy.test/x'>",
        "<img src=\"\\\\spy.test\\x\">",
        "<img src=\"https:spy.test/x\">",
        "<img src=\"&#104;ttps&#58;spy.test/x\">",
        "<img srcset='a.png 1x, https://spy.test/x 2x'>",
        "<td background=\"http://spy.test/x\">",
        "<iframe srcdoc=\"<p>x</p><img src=https://spy.test/x>\"></iframe>",
        "<p style=\"background: url(https://spy.test/x)\">",
        "<a style=\"background: url(//spy.test/x)\" href=\"\">x</a>",
        "<style>@import 'https://spy.test/x';</style>",
        "<style>p { background: url(\\68ttp:x) }",
        "<svg><image xlink:href=\"https://spy.test/x\"/></svg>",
        "<p>1 < 2</p><img src=https://spy.test/x",
    ] {
        assert!(is_in(html), "{html}");
    }
}

#[test]
fn html_without_remote_content_is_recognised() {
    for html in [
        "",
        "<p>See https://example.org/x.</p>",
        "<a class=x href=\"https://example.org/x\">x</a><area href='//example.org'>",
        "<!DOCTYPE html PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \"http://www.w3.org/TR/html4/strict.dtd\">",
        "<html xmlns=\"http://www.w3.org/1999/xhtml\" xmlns:o=\"urn:schemas-microsoft-com:office:office\">",
        "<img src=\"cid:one@example.org\"><img src=\"data:image/png;base64,//8=\">",
        "<img src=\"picture.png\" alt=\"https://example.org\">",
        "<link rel=stylesheet href=https://spy.test/x><IFRAME src='https://spy.test/x'></IFRAME>",
        "<style>p { color: red } a:hover { color: blue }</style><p style='margin: 0 auto'>https://example.org",
    ] {
        assert!(!is_in(html), "{html}");
    }
}

proptest! {
    #[test]
    fn remote_content_is_found_in_front_of_any_html(html in "([<>=\"' /a-z]|<img |src=|//|style|</|:){0,60}") {
        let with = alloc::format!("<img src=\"https://spy.test\">{html}");
        prop_assert!(is_in(&with));
    }
}
