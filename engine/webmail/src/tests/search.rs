//! Tests of search queries.

use alloc::format;
use alloc::string::{String, ToString};
use machine::UnixTime;
use proptest::prelude::*;

use crate::{Candidate, Query, TERM_CHARS_MAX, TERMS_MAX};

/// 2026-11-22T09:41:00Z.
const SENT: UnixTime = UnixTime::from_seconds(1_795_340_460);

const MESSAGE: Candidate<'_> = Candidate {
    from: "Grace Hopper <grace@example.org>",
    to: "Ada <ada@barepost.test>, Straße <s@example.org>",
    subject: "The compiler\r\n\tis done",
    snippet: "It compiles itself now, ΟΔΥΣΣΕΥΣ. 東京都に行く — which took",
    text: Some(
        "It compiles itself now, ΟΔΥΣΣΕΥΣ. 東京都に行く — which took us until  four\nin the morning.",
    ),
    mailbox: "Old bills",
    date: SENT,
    is_unread: true,
    is_starred: false,
    has_attachment: true,
};

#[test]
fn unknown_operators_are_named() {
    for (typed, expected) in [
        ("from:grace \"cc:x\" 12:30 Re: https://host.test/ a@b", &[][..]),
        ("cc:board -filename:pdf is:read", &["cc:board", "filename:pdf", "is:read"]),
        ("before:25/11/2026 a OR b", &["before:25/11/2026", "OR"]),
        ("label:\"two words\" - :", &["label:"]),
    ] {
        assert_eq!(Query::not_understood(typed), expected, "{typed}");
    }
}

fn finds(typed: &str) -> bool {
    Query::parse(typed).matches(&MESSAGE)
}

#[test]
fn queries_match_exactly_the_messages_they_describe() {
    for typed in [
        "",
        "  ",
        "compiler",
        "COMPILER done",
        "pile",
        "from:grace",
        "From:GRACE@EXAMPLE.ORG",
        "from:\"grace hopper\"",
        "to:ada",
        "subject:compiler",
        "\"the compiler is done\"",
        "\"  the   compiler\tis\"",
        "subject:\"compiler is\"",
        "has:attachment",
        "HAS:Attachment",
        "is:unread",
        "-is:starred",
        "in:\"old bills\"",
        "-in:inbox",
        "after:2026-11-22",
        "before:2026-11-23",
        "after:2026/11/1 before:2027/1/1",
        "-before:2026-11-22",
        "-spam",
        "-from:ada",
        "-\"done is\"",
        "\"until four in the\"",
        "four in",
        "grace ada compiler",
        "東京",
        "οδυσσευς",
        "to:STRASSE",
        "to:straße",
        "to:\"STRAẞE <s\"",
        "\"the compiler",
        "\u{a0}compiler\u{2003}",
        "\"\"",
        "<grace@",
    ] {
        assert!(finds(typed), "{typed:?}");
    }
    for typed in [
        "decompiler",
        "from:ada",
        "to:grace",
        "subject:hopper",
        "subject:\"done is\"",
        "\"compilerdone\"",
        "-compiler",
        "-has:attachment",
        "is:starred",
        "-is:unread",
        "in:bills",
        "in:\"old bills 2\"",
        "in:inbox",
        "-in:\"OLD BILLS\"",
        "after:2026-11-23",
        "before:2026-11-22",
        "-after:2026-11-22",
        "compiler spam",
        "-\"compiler is\"",
        "東都",
        "from:\"hopper grace\"",
        "-from:grace",
        "fourin",
    ] {
        assert!(!finds(typed), "{typed:?}");
    }
    assert!(
        Query::parse("in:\"old bills\"").matches(&Candidate { mailbox: " Old\tBills ", ..MESSAGE })
    );
    assert!(!Query::parse("morning").matches(&Candidate { text: None, ..MESSAGE }));
    assert!(
        Query::parse("").is_empty()
            && Query::parse("\"\" -\"").is_empty()
            && !Query::parse("-").is_empty()
    );
}

#[test]
fn input_that_is_no_other_term_is_a_text() {
    let subject = |subject: &'static str| Candidate { subject, ..MESSAGE };
    for (typed, text) in [
        ("label:x", "label:x"),
        ("https://a.example", "see https://a.example/"),
        ("is:red", "is:red"),
        ("has:\"a b\"", "a b has:"),
        ("before:today", "before:today"),
        ("after:2026-13-01", "after:2026-13-01"),
        ("before:2026-02-29", "before:2026-02-29"),
        ("before:1969-12-31", "before:1969-12-31"),
        ("after:2026-11", "after:2026-11"),
        ("after:26-11-22", "after:26-11-22"),
        ("after:2026-11-22-1", "after:2026-11-22-1"),
        ("after:2026-11-+1", "after:2026-11-+1"),
        ("before:2026-11/22", "before:2026-11/22"),
        ("from:", "from:"),
        ("from: x", "x from:"),
        (":", ":"),
        ("a -", "a -"),
        ("- a", "a -"),
        ("\"-x\"", "-x"),
        ("\"is:starred\"", "is:starred"),
        ("a-b", "a-b"),
        ("a\"b c\"d", "b c a d"),
        ("from:\"", "from:"),
    ] {
        assert!(Query::parse(typed).matches(&subject(text)), "{typed} in {text}");
        assert!(!Query::parse(typed).matches(&subject("")), "{typed}");
    }
}

#[test]
fn query_is_written_as_a_user_could_type_it() {
    for (typed, written) in [
        ("  from:Grace   is:UNREAD ", "from:Grace is:unread"),
        ("FROM:\"Grace  Hopper\"", "from:\"Grace Hopper\""),
        ("from:\"x\" \"y\"", "from:x y"),
        ("after:2026/1/5", "after:2026-01-05"),
        ("-\"has:attachment\" -has:attachment", "-\"has:attachment\" -has:attachment"),
        ("\"-x\" -y --z - ", "\"-x\" -y -\"-z\" -"),
        ("a\"b", "a b"),
        ("from: x", "from: x"),
        ("from:\"\"", "from:"),
        ("label:x \"a b\"", "label:x \"a b\""),
        ("\"\"", ""),
        ("in:a:b subject:-x", "in:a:b subject:-x"),
    ] {
        assert_eq!(Query::parse(typed).to_string(), written, "{typed}");
    }
}

#[test]
fn query_has_a_limit_of_terms_and_characters() {
    let many: String = (0..TERMS_MAX * 2).map(|number| format!("w{number} ")).collect();
    let kept: String = (0..TERMS_MAX).map(|number| format!("w{number} ")).collect();
    assert_eq!(Query::parse(&many).to_string(), kept.trim_end());
    let long = format!("from:{}", "ü".repeat(TERM_CHARS_MAX * 2));
    assert_eq!(Query::parse(&long).to_string(), format!("from:{}", "ü".repeat(TERM_CHARS_MAX)));
    let cut = format!("\"{} b\"", "a".repeat(TERM_CHARS_MAX - 1));
    assert_eq!(Query::parse(&cut).to_string(), "a".repeat(TERM_CHARS_MAX - 1));
}

/// Each day from 1970 to 2100 is counted.
#[test]
fn day_begins_at_its_calendar_date() {
    let mut days = 0;
    for year in 1970..=2100_u32 {
        let is_leap = year % 4 == 0 && year != 2100;
        for (month, length) in
            (1..).zip([31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
        {
            for day in 1..=length {
                let begins = UnixTime::from_seconds(days * 86_400);
                let query = Query::parse(&format!("after:{year}-{month}-{day}"));
                assert!(query.matches(&Candidate { date: begins, ..MESSAGE }), "{query}");
                let before = Candidate { date: UnixTime(begins.0.saturating_sub(1)), ..MESSAGE };
                assert!(days == 0 || !query.matches(&before), "{query}");
                days += 1;
            }
        }
    }
    assert_eq!(Query::parse("before:9999-12-31").to_string(), "before:9999-12-31");
}

const PIECES: [&str; 24] = [
    "from:",
    "to:",
    "subject:",
    "in:",
    "is:unread",
    "is:starred",
    "has:attachment",
    "before:",
    "after:",
    "2026-11-22",
    "2026/1/2",
    "\"",
    "\"",
    "-",
    " ",
    " ",
    "a",
    "b",
    "ß",
    "İ",
    "\u{a0}",
    "\n",
    ":",
    "x:",
];

fn typed() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..20)
        .prop_map(|pieces| pieces.concat());
    prop_oneof![pieces, ".{0,60}"]
}

/// A slow implementation of the search for a text without a field.
fn is_found(words: &str, text: &str) -> bool {
    let fold = |text: &str| {
        let spaced = text.split_whitespace().collect::<alloc::vec::Vec<_>>().join(" ");
        spaced.to_lowercase().to_uppercase().to_lowercase().replace('ς', "σ")
    };
    fold(text).contains(&fold(words))
}

/// Words to find, and a text, which often ends with the words. The alphabet is small, so that the
/// words often repeat themselves, or have characters with special case folding.
fn words_and_text() -> impl Strategy<Value = (String, String)> {
    prop_oneof![
        ("[ab]{4,24}", any::<prop::sample::Index>())
            .prop_map(|(text, at)| (text[at.index(text.len())..].into(), text)),
        ("[abAsſßς\u{3a3} ]{0,6}", "[abAsSſß\u{3c3}\u{3a3}\n\t ]{0,30}"),
    ]
}

proptest! {
    #[test]
    fn query_survives_writing_and_parsing(typed in typed()) {
        let query = Query::parse(&typed);
        let again = Query::parse(&query.to_string());
        prop_assert_eq!(&again, &query);
        prop_assert_eq!(again.to_string(), query.to_string());
        let _ = query.matches(&MESSAGE);
    }

    #[test]
    fn phrase_is_found_at_any_position((words, text) in words_and_text()) {
        let candidate = Candidate { from: "", to: "", snippet: "", text: None, subject: &text, ..MESSAGE };
        prop_assert_eq!(Query::parse(&format!("\"{words}\"")).matches(&candidate), is_found(&words, &text));
        let middle = text.trim();
        let itself = Query::parse(&format!("\"{middle}\""));
        prop_assert!(itself.matches(&candidate), "{}", itself);
    }
}
