//! Tests of phishing warnings.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use message::header::HeaderMailbox;
use proptest::prelude::*;

use crate::phishing::{WARNINGS_MAX, of_html, of_sender, of_text};

fn sender(name: &str, address: &str) -> Vec<String> {
    of_sender(&HeaderMailbox { name: name.into(), address: address.into() })
}

#[test]
fn link_with_text_of_another_host_gets_a_warning() {
    for (html, words) in [
        ("<a href=\"https://evil.test/x\">bank.example</a>", "bank.example leads to evil.test"),
        (
            "<A class=x HREF='http://evil.test:8080'>  https://Bank.example/login </A>",
            "bank.example leads to evil.test",
        ),
        (
            "<a href=//evil.test/bank.example>www.bank.example</a>",
            "www.bank.example leads to evil.test",
        ),
        (
            "<a href=\"https://evil.test\">Log in at <b>www.bank</b>.example now</a>",
            "www.bank.example leads to evil.test",
        ),
        (
            "<a href=\"https://bank.example@evil.test/\">Log in</a>",
            "bank.example leads to evil.test",
        ),
        (
            "<a href=\"https:\\\\evil.test\\bank.example\">bank.example</a>",
            "bank.example leads to evil.test",
        ),
        (
            "<a href=\"https:/&#47;evil&period;test\">bank.example</a>",
            "bank.example leads to evil.test",
        ),
        ("<a href=\"ht\ntps://evil.test\">bank.example</a>", "bank.example leads to evil.test"),
        (
            "<a href=\"https://notbank.example\">bank.example</a>",
            "bank.example leads to notbank.example",
        ),
    ] {
        assert_eq!(of_html(html), [format!("A link that says {words}.")], "{html}");
    }
}

#[test]
fn honest_link_gets_no_warning() {
    for html in [
        "<a href=\"https://bank.example/login\">bank.example</a>",
        "<a href=\"https://www.bank.example/\">Bank.Example</a>",
        "<a href=\"https://login.bank.example/\">https://bank.example</a>",
        "<a href=\"https://ada@bank.example/\">Log in</a>",
        "<a href=\"https://elsewhere.test/notes\">notes.pdf</a>",
        "<a href=\"https://elsewhere.test/\">Write to ada@bank.example, or to us.We answer</a>",
        "<a href=\"mailto:ada@bank.example\">elsewhere.test</a>",
        "<a href=\"https://münchen.example\">here</a> <a href=\"https://xn--mnchen-3ya.example\">here</a>",
        "<a href=\"https://例え.example\">テスト</a> <a href=\"https://xn--e1afmkfd.xn--p1ai\">пример.рф</a>",
        "<abbr href=\"https://evil.test\">bank.example</abbr> <a name=x>bank.example</a> <a",
    ] {
        let html = html.replace(
            "<a href=\"https://xn--e1afmkfd.xn--p1ai\">пример.рф</a>",
            "<a href=\"https://пример.рф\">пример.рф</a>",
        );
        assert_eq!(of_html(&html), [""; 0], "{html}");
    }
}

#[test]
fn homograph_host_gets_a_warning() {
    // The second name is `paypal` in Cyrillic letters. The third is `apple` in Cyrillic letters, in
    // the form that browsers send.
    for (host, words) in [
        ("pаypal.example", "which mixes Latin and Cyrillic letters"),
        ("раураӏ.example", "which looks like paypal but is a different name"),
        ("xn--80ak6aa92e.example", "which looks like apple but is a different name"),
        ("xn--pypal-4ve.example", "which mixes Latin and Cyrillic letters"),
        ("gοοgle.example", "which mixes Latin and Greek letters"),
    ] {
        let expected = [format!("A link leads to {host}, {words}.")];
        assert_eq!(of_html(&format!("<a href=\"https://{host}/\">Log in</a>")), expected);
        assert_eq!(
            sender("Bank", &format!("x@{host}")),
            [format!("The sender’s address is at {host}, {words}.")]
        );
    }
    let text = "See https://xn--pypal-4ve.example/a, and https://bank.example.";
    assert_eq!(
        of_text(text),
        ["A link leads to xn--pypal-4ve.example, which mixes Latin and Cyrillic letters."]
    );
}

#[test]
fn mixed_scripts_are_judged_as_in_uts_39() {
    for label in [
        "münchen",
        "straße",
        "пример",
        "παράδειγμα",
        "日本語テストひらがな",
        "kanji漢字かなカナー",
        "한국漢字abc",
        "注音ㄅㄆabc",
        "ไทย",
        "ישראל",
        "مثال",
        "उदाहरण",
        "მაგალითი",
        "example-2",
        "2020-год",
    ] {
        assert_eq!(sender("", &format!("x@{label}.example")), [""; 0], "{label}");
    }
    for (label, scripts) in [
        ("pаypal", "Latin and Cyrillic"),
        ("gοοgle", "Latin and Greek"),
        ("оpеn", "Cyrillic and Latin"),
        ("օpen", "Armenian and Latin"),
        ("ไทยthai", "Thai and Latin"),
        ("한국テスト", "Hangul and Katakana"),
        ("ㄅかな", "Bopomofo and Hiragana"),
        ("משעαβ", "Hebrew and Greek"),
        ("हिதமி", "Devanagari and Tamil"),
        ("ᏢᎪpal", "Cherokee and Latin"),
    ] {
        let words =
            format!("The sender’s address is at {label}.example, which mixes {scripts} letters.");
        assert_eq!(
            sender("", &format!("x@{}.example", label)),
            [words.replace(label, &label.to_lowercase())],
            "{label}"
        );
    }
    // These labels have characters that several scripts share, but no script includes all of them.
    for label in ["payـpal", "ーـ", "рayー"] {
        let [words] = &sender("", &format!("x@{label}.example"))[..] else { panic!("{label}") };
        assert!(words.contains(" which mixes "), "{words}");
    }
}

#[test]
fn sender_name_with_another_address_gets_a_warning() {
    let warning =
        "The sender’s name shows service@bank.example, but the message is from x@evil.test.";
    for name in
        ["service@bank.example", "Bank <Service@Bank.example>", "\"service@bank.example\" (Bank)"]
    {
        let words = sender(name, "x@evil.test");
        assert_eq!(words.len(), 1, "{name}");
        assert!(words[0].eq_ignore_ascii_case(warning), "{words:?}");
    }
    for (name, address) in [
        ("Ada", "ada@bank.example"),
        ("Ada@bank.example", "ada@Bank.example"),
        ("@ada", "x@y.example"),
        ("", ""),
    ] {
        assert_eq!(sender(name, address), [""; 0], "{name}");
    }
}

proptest! {
    #[test]
    fn warnings_are_few_and_have_only_characters_of_names(
        links in proptest::collection::vec(("[a-zа-я.@:%<&]{1,6}", "[a-z\u{202e}<>\"]{1,4}"), 0..40),
        html in "(<a href=\"?|https://|xn--|</a>|[a-zа-я.@:/&;#%\"'<> \u{202e}\u{1}-]){0,60}",
    ) {
        let written: Vec<String> = links
            .iter()
            .map(|(host, text)| format!("<a href=\"https://{host}.test\">{text}@{host}.example</a> https://{host}.test"))
            .collect();
        let written = written.concat();
        let name = links.first().map_or(html.clone(), |(host, text)| format!("{text}@{host}.example"));
        for warnings in [of_html(&html), of_html(&written), of_text(&written), sender(&name, "x@own.example"), sender(&html, &html)] {
            prop_assert!(warnings.len() <= WARNINGS_MAX);
            let is_known = |character: char| character.is_alphanumeric() || " .,-_+@’".contains(character);
            prop_assert!(warnings.iter().all(|warning| warning.chars().all(is_known)), "{warnings:?}");
        }
    }
}
