//! Tests of shortened headers.

use std::collections::BTreeSet;
use std::format;
use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;
use proptest::sample::Index;

use crate::{SHORT_HEADER_BYTES_MAX, Summary, shorten_header};

/// The summary of a message that arrives in pieces: the header is shortened after each piece.
fn of_pieces(message: &[u8], cuts: &[usize]) -> Summary {
    let mut beginning = Vec::new();
    let mut from = 0;
    for to in cuts.iter().copied().chain([message.len()]) {
        beginning.extend_from_slice(&message[from..to]);
        from = to;
        match shorten_header(&beginning) {
            Some(short) => {
                assert!(short.len() <= SHORT_HEADER_BYTES_MAX, "{} bytes", short.len());
                beginning = short;
            }
            None => {
                beginning.extend_from_slice(&message[from..]);
                break;
            }
        }
    }
    Summary::of(&beginning)
}

#[test]
fn fields_after_a_long_field_are_in_the_summary() {
    let recipients = "a person with a long name <someone@example.org>,\r\n ".repeat(700);
    let message = format!(
        "To: {recipients}last@example.org\r\nX-Other: {recipients}\r\n\
         From: Bob <bob@example.org>\r\nSubject: behind\r\n a To\r\n\r\nThe text."
    );
    let pieces: Vec<usize> = (1..message.len() / 32_256 + 1).map(|piece| piece * 32_256).collect();
    let summary = of_pieces(message.as_bytes(), &pieces);
    assert_eq!((&*summary.sender_name, &*summary.subject), ("Bob", "behind a To"));
    assert!(summary.recipients.starts_with("a person with a long name, a person"));
    assert_eq!(summary.snippet, "The text.");
}

/// A header field, folded or not.
fn header_field() -> impl Strategy<Value = String> {
    let name = proptest::sample::select(std::vec![
        "From",
        "to",
        "Cc",
        "Subject",
        "Date",
        "Message-ID",
        "In-Reply-To",
        "References",
        "Content-Type",
        "Received",
        "X-Long-Name",
        "DKIM-Signature",
        "From ada",
        "of a gateway\r\nFrom",
        "of a gateway\r\nX-Other",
    ]);
    let short = proptest::sample::select(std::vec![
        "",
        " ",
        " a@b.example",
        " Bob <bob@b.example>,\r\n\tc@d",
        " =?utf-8?q?Gr=C3=BC?=\r\n =?utf-8?q?=C3=9Fe?=",
        " Fri, 21 Nov 1997 09:55:06 -0600",
        " <1@a>\r\n <2@a>",
        " text/plain;\r\n charset=utf-8",
        " x\r\n \r\n y",
    ])
    .prop_map(String::from);
    let long = (proptest::sample::select(std::vec!["a@b.example", "<1@a>", "word"]), 1..9_usize)
        .prop_map(|(word, blanks)| {
            format!(" {word},\r\n{}", " ".repeat(blanks)).repeat(120) + word
        });
    let value = prop_oneof![4 => short, 1 => long];
    (name, value).prop_map(|(name, value)| format!("{name}:{value}\r\n"))
}

proptest! {
    #[test]
    fn a_shortened_header_gives_the_same_summary(
        fields in proptest::collection::vec(header_field(), 0..12),
        cuts in proptest::collection::vec(any::<Index>(), 1..4),
    ) {
        // A field is kept if it has a value; the summary tries further fields until one is read.
        let mut seen = BTreeSet::new();
        let fields = fields.iter().filter(|field| {
            let name = field.split(':').next().unwrap_or_default().to_lowercase();
            seen.insert(if name == "cc" { String::from("to") } else { name })
        });
        let message = format!("{}\r\nThe text of the message.\r\n", fields.cloned().collect::<String>());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(message.len())).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let message = message.as_bytes();
        prop_assert_eq!(of_pieces(message, &cuts), Summary::of(message));
    }
}
