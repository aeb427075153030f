//! Tests of summaries.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use machine::UnixTime;
use proptest::prelude::*;

use super::headers::unescaped;
use super::messages::cases;
use crate::header::Field;
use crate::summary::oracle;
use crate::{SUMMARY_BYTES, Summary, summarize};

fn of(message: &str) -> Summary {
    check_both_ways(message.replace('\n', "\r\n").as_bytes())
}

/// The summary, compared with the summary of the oracle.
fn check_both_ways(message: &[u8]) -> Summary {
    let mut bytes = [0xee; SUMMARY_BYTES];
    let (length, conversation) = summarize(message, &mut bytes);
    let summary = Summary::read(&bytes[..length]).expect("a written summary can be read");
    assert_eq!(summary, oracle::of(message), "{}", message.escape_ascii());
    assert_eq!((summary.conversation, &summary), (conversation, &Summary::of(message)));
    check(&summary);
    summary
}

/// Asserts the properties of every summary.
fn check(summary: &Summary) {
    let mut bytes = [0xee; SUMMARY_BYTES];
    let length = summary.write(&mut bytes);
    assert_eq!(
        Summary::read(&bytes[..length]).as_ref(),
        Some(summary),
        "a written summary is read unchanged"
    );
    assert!(Summary::read(&bytes[..length - 1]).is_none());
    if length < SUMMARY_BYTES {
        assert!(Summary::read(&bytes[..length + 1]).is_none());
    }
    for text in [
        &summary.sender_name,
        &summary.sender_address,
        &summary.recipients,
        &summary.subject,
        &summary.snippet,
    ] {
        assert!(
            !text.contains(
                |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{200b}')
            ),
            "{text:?}"
        );
    }
}

#[test]
fn summary_has_sender_subject_recipients_and_date() {
    let summary = of(
        "From: =?utf-8?q?J=C3=B6rg?= <joerg@example.org>, other@example.org\nTo: Ada <ada@example.org>, bob@example.net\n\
         Cc: nobody@example.org\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nDate: Fri, 21 Nov 1997 09:55:06 -0600\nMessage-ID: <1@example.org>\n\n\
         Hello   Ada,\n\n> you wrote this\nand I read it.\n",
    );
    assert_eq!((&*summary.sender_name, &*summary.sender_address), ("Jörg", "joerg@example.org"));
    assert_eq!((&*summary.recipients, &*summary.subject), ("Ada, bob@example.net", "Grüße"));
    assert_eq!(summary.sent, Some(UnixTime::from_seconds(880_127_706)));
    assert_eq!(summary.snippet, "Hello Ada, and I read it.");
    assert!(!summary.has_attachment && summary.in_reply_to == 0 && summary.message_id != 0);
    assert_eq!(of(""), Summary::default());
    assert_eq!(of("Cc: team: a@b, C <c@d>;\n\n").recipients, "a@b, C");
    // A name is not shown in reverse order.
    assert_eq!(of("From: \u{202e}moc.knab@eciffo <a@b>\n\n").sender_name, "moc.knab@eciffo");
}

#[test]
fn fields_in_the_charset_of_the_body_are_read() {
    let of = |bytes: &[u8]| Summary::of(bytes);
    let subject = b"Subject: \xeb\xd5\xd0\xc9\r\nFrom: \xe1\xc4\xc1 <ada@b.test>\r\n";
    let plain = b"Content-Type: text/plain; charset=koi8-r\r\n\r\nx";
    let multipart = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: application/pdf\r\n\r\n--b\r\nContent-Type: text/html; charset=koi8-r\r\n\r\nx";
    for body in [&plain[..], multipart] {
        let summary = of(&[&subject[..], body].concat());
        assert_eq!((&*summary.subject, &*summary.sender_name), ("Купи", "Ада"));
        assert_eq!(summary.sender_address, "ada@b.test");
    }
    assert_eq!(of(&[&subject[..], b"\r\nx"].concat()).subject, "ëÕÐÉ");
    assert_eq!(of(&["Subject: größe\r\n".as_bytes(), plain].concat()).subject, "größe");
    // A line of a gateway does not end the header.
    let summary = of(b"X-A: b\r\nof a gateway\r\nSubject: x\r\n\r\ny");
    assert_eq!((&*summary.subject, &*summary.snippet), ("x", "y"));
    assert_eq!(of("\u{feff}Subject: x\r\n\r\ny".as_bytes()).subject, "x");
    let below = "Received: a\r\n\u{feff}From: ada@b.test\r\nSubject: x\r\n\r\ny";
    let summary = of(below.as_bytes());
    assert_eq!((&*summary.sender_address, &*summary.subject), ("ada@b.test", "x"));
}

#[test]
fn snippet_is_the_first_text_with_content() {
    let parts = |first: &str, second: &str| {
        of(&format!("Content-Type: multipart/alternative; boundary=b\n\n--b\n{first}\n--b\n{second}\n--b--\n")).snippet
    };
    assert_eq!(parts("\nplain", "Content-Type: text/html\n\n<p>page"), "plain");
    assert_eq!(parts("\n  \n", "Content-Type: text/html\n\n<p>page"), "page");
    assert_eq!(parts("Content-Disposition: attachment\n\nfile", "\ntext"), "text");
    assert_eq!(parts("Content-Type: message/rfc822\n\nSubject: x\n\ntheirs", "\nours"), "ours");
    assert_eq!(parts("Content-Type: text/calendar\n\nBEGIN:VCALENDAR", "\ntext"), "text");
    assert_eq!(parts("\n", "Content-Type: multipart/mixed; boundary=c\n\npreamble"), "");
    let page =
        |page: &str| of(&format!("Content-Type: text/html; charset=utf-8\n\n{page}")).snippet;
    assert_eq!(
        page("<html><head><title>no</title><style>p{a>b}</style></head><body>one<p>two<br>three"),
        "one two three"
    );
    assert_eq!(page("<script>if (a<b) { \"</p>\" }</SCRIPT >x<!-- > no -- no -->y"), "xy");
    assert_eq!(
        page("<b>bo</b>ld &amp; &lt;x&gt; &#8364;&#x20AC; &nbsp;&unknown; &"),
        "bold & <x> €€ &unknown;"
    );
    assert_eq!(page("<a title='a>b' href=\"x>y\">link</a> 1 < 2"), "link 1 < 2");
    assert_eq!(page("a\u{200b}&zwnj;\u{34f}b"), "ab");
    assert_eq!(page("<div"), "");
    assert_eq!(page("<!doctype html><?xml x?>t"), "t");
    assert_eq!(
        of("Content-Transfer-Encoding: base64\nContent-Type: text/plain; charset=utf-8\n\nR3LDvMOfZQ==\n").snippet,
        "Grüße"
    );
}

#[test]
fn conversation_has_the_hash_of_its_first_message_id() {
    let first = of("Message-ID: <1@a>\n\n");
    let second = of("Message-ID: <2@a>\nIn-Reply-To: <1@a>\nReferences: <1@a>\n\n");
    let third = of("Message-ID: <3@a>\nIn-Reply-To: <2@a>\nReferences: <1@a>\n <2@a>\n\n");
    let thread = first.conversation & !0xffff;
    assert_eq!((thread, first.in_reply_to), (first.message_id & !0xffff, 0));
    assert_eq!((second.conversation, second.in_reply_to), (thread, first.message_id));
    assert_eq!((third.conversation, third.in_reply_to), (thread, second.message_id));
    assert_eq!(of("In-Reply-To: <1@a>\n\n").conversation, thread);
    assert_eq!(of("Subject: x\n\n").conversation, 0);
}

#[test]
fn messages_with_one_identifier_are_told_apart() {
    let scan = |rest: &str| of(&format!("Message-ID: <scan@printer>\n{rest}\n\n")).conversation;
    let date = "Date: Fri, 21 Nov 1997 09:55:06 -0600";
    let first = scan(&format!("{date}\nSubject: Scan"));
    assert_eq!(scan(&format!("Subject: [office] Scan\n{date}")), first);
    for other in [format!("{date}\nSubject: Scan 2"), String::from("Subject: Scan")] {
        assert_ne!(scan(&other), first);
        assert_eq!(scan(&other) >> 16, first >> 16);
    }
}

#[test]
fn summary_with_invisible_characters_is_rejected() {
    let read = |subject: String| {
        let mut bytes = [0; SUMMARY_BYTES];
        let length = Summary { subject, ..Summary::default() }.write(&mut bytes);
        Summary::read(&bytes[..length])
    };
    for character in (' '..='~').chain(['ä', '€', '\u{2027}']) {
        assert_eq!(
            read(format!("Notes{character}")).map(|summary| summary.subject),
            Some(format!("Notes{character}"))
        );
    }
    for character in ('\0'..=' ')
        .rev()
        .skip(1)
        .chain(['\u{7f}', '\u{85}', '\u{ad}', '\u{200b}', '\u{202e}', '\u{feff}'])
    {
        assert_eq!(read(format!("No{character}tes")), None, "{character:?}");
    }
}

#[test]
fn summary_reports_attachments() {
    let message = |part: &str| {
        of(&format!(
            "Content-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n--b\n{part}\n\nx\n--b--\n"
        ))
    };
    assert!(message("Content-Type: application/pdf").has_attachment);
    assert!(message("Content-Disposition: attachment; filename=a.txt").has_attachment);
    assert!(!message("Content-Type: text/html").has_attachment);
}

#[test]
fn longest_summary_texts_are_cut_and_fit() {
    for long in ["word ", "é", "€", "😀"] {
        let long = long.repeat(400);
        let summary = of(&format!(
            "From: \"{long}\" <{0}@{0}>\nTo: \"{long}\" <a@b>\nSubject: {long}\nDate: 1 Jan 2026 00:00:00 +0000\n\n{long}",
            long.replace(' ', "")
        ));
        for text in [
            &summary.sender_name,
            &summary.sender_address,
            &summary.recipients,
            &summary.subject,
            &summary.snippet,
        ] {
            assert!(text.ends_with('…') && text.len() > 40, "{text}");
        }
        let short = of(&format!("From: a@b\n\n{long}"));
        assert!(
            short.snippet.len() > 190 && short.snippet.chars().count() >= 48,
            "{}",
            short.snippet
        );
    }
}

#[test]
fn summary_fields_agree_with_the_oracle() {
    let mut fields = 0;
    for line in include_str!("header_cases.txt").lines() {
        let Some((_, value)) = line.split_once(" ").filter(|_| !line.starts_with("#")) else {
            continue;
        };
        let value = unescaped(value);
        for name in ["From", "To", "Subject", "Date", "Message-ID", "References", "Content-Type"] {
            check_both_ways(&[name.as_bytes(), b": ", &value, b"\r\n\r\ntext"].concat());
            fields += 1;
        }
    }
    assert!(fields > 1_000);
    for value in VALUES {
        for name in [
            "From",
            "To",
            "Subject",
            "Date",
            "References",
            "Content-Type",
            "Content-Transfer-Encoding",
        ] {
            check_both_ways(&[name.as_bytes(), b":", value.as_bytes(), b"\r\n\r\ntext"].concat());
        }
    }
}

#[test]
fn continuation_of_a_mailbox_line_is_no_field() {
    let summary = of("Subject: one\nFrom somebody Mon Jan  1 00:00:00 2026\n two\nTo: a@b\n\ntext");
    assert_eq!((&*summary.subject, &*summary.recipients), ("one", "a@b"));
}

#[test]
fn unusual_plain_text_is_read_as_declared() {
    let text = |fields: &str, text: &str| of(&format!("{fields}\n\n{text}")).snippet;
    assert_eq!(text("Content-Type: text/plain; format=flowed", "one \ntwo\n >three\n"), "one two");
    assert_eq!(text("Content-Type: text/plain", "one\n >three\n"), "one >three");
    assert_eq!(text("Content-Type: text/plain; charset=utf-8", "\u{feff}>one\ntwo"), "two");
    assert_eq!(text("Content-Type: text/plain; charset=utf-16le", "a\0b\0"), "ab");
    assert_eq!(
        text("Content-Type: text/plain; charset=iso-2022-jp", "\x1b$BF|K\\8l\x1b(B"),
        "日本語"
    );
    assert_eq!(text("Content-Transfer-Encoding: quoted-printable", "=3Dx"), "=x");
    assert_eq!(text("Content-Disposition: attachment", "x"), "");
    assert_eq!(
        text("X: y", "one  two\t\tthree \n\n  four\x01five\u{ad}six"),
        "one two three four fivesix"
    );
    let latin =
        [&b"Content-Type: text/plain; charset=iso-8859-1\r\n\r\nplain\r\nGr"[..], b"\xfc\xdfe"]
            .concat();
    assert_eq!(check_both_ways(&latin).snippet, "plain Grüße");
}

#[test]
fn empty_fields_are_tried_a_few_times() {
    let fields = |count: usize| {
        of(&format!("{}From: a@b\nSubject: x\n\n", "From: ,\nSubject: \n".repeat(count)))
    };
    assert_eq!((&*fields(3).sender_address, &*fields(3).subject), ("a@b", "x"));
    assert_eq!((&*fields(4).sender_address, &*fields(4).subject), ("", ""));
    // A list of empty mailboxes does not hide a following one, and only the beginning of an endless
    // list is read.
    let list = |count: usize| {
        Summary::of(format!("To: {}(x) Ada <a@b>\r\n\r\n", "\u{200b},".repeat(count)).as_bytes())
    };
    assert!(
        list(30).recipients.ends_with("Ada") && !list(40).recipients.contains("Ada"),
        "{:?}",
        list(30).recipients
    );
    let long = |count: usize| {
        Summary::of(format!("Subject: {}x\r\n\r\n", "=?utf-8?q??=".repeat(count)).as_bytes())
    };
    assert!(long(150).subject == "x" && !long(300).subject.contains('x'));
}

#[test]
fn every_message_has_a_summary_wherever_it_is_cut() {
    for case in cases() {
        for length in (0..case.message.len()).step_by(7).chain([case.message.len()]) {
            check_both_ways(&case.message[..length]);
        }
    }
}

/// Pieces of fields and bodies, with special cases for their readers.
const PIECES: [&[u8]; 60] = [
    b"Ada",
    b"Lovelace",
    b"x",
    b" ",
    b" ",
    b"  ",
    b"\t",
    b"\r\n ",
    b"\n\t",
    b"\r\n",
    b"\r\n",
    b"\r",
    b"<a@b.c>",
    b"<ada@example.org>",
    b"ada@example.org",
    b"@",
    b",",
    b",",
    b", ",
    b":",
    b";",
    b"<",
    b">",
    b"\"",
    b"\"Ada L.\"",
    b"\\",
    b"(",
    b")",
    b"[",
    b"]",
    b"?",
    b"=",
    b"=?",
    b"=?utf-8?q?=C3=BC?=",
    b"=?utf-8?q??=",
    b"?=",
    b"\x01",
    b"\x7f",
    b"\xc3\xbc",
    b"\xfc",
    b"\xef\xbb\xbf",
    b"\xe2\x80\x8b",
    b"\xc2\xad",
    b".",
    b"..",
    b"-- ",
    b">",
    b" >",
    b"21",
    b"Nov",
    b"2026",
    b"10:55:06",
    b"+0100",
    b"(CET)",
    b"Sat,",
    b"text/plain",
    b"charset=",
    b"utf-8",
    b"format=flowed",
    b"word word word word word word word word word ",
];

/// Names of fields, and invalid names.
const NAMES: [&str; 20] = [
    "From",
    "from",
    "To",
    "Cc",
    "Subject",
    "SUBJECT ",
    "Date",
    "Message-ID",
    "In-Reply-To",
    "References",
    "Content-Type",
    "Content-Disposition",
    "Content-Transfer-Encoding",
    "Content-ID",
    "Received",
    "X",
    "",
    "From x",
    ">From y",
    "\u{e9}",
];

/// Valid values of fields.
const VALUES: [&str; 30] = [
    " Ada  Lovelace <a@b>",
    " Ada\r\n\tLovelace <a@b>",
    "\"Ada  \" <a@b>",
    " A  Subject",
    " Ada Lovelace <ada@example.org>",
    " \"Lovelace, Ada\" <ada@example.org>, bob@example.net",
    " ada@example.org",
    " undisclosed-recipients:;",
    " Ada <a@b>,\r\n\tBob <c@d>",
    " Sat, 21 Nov 2026 10:55:06 +0100",
    " 1 Jan 2026 00:00 -0000 (UTC)",
    " Thu, 01 Jan 1970 00:00:00 +0100",
    " <1@a>",
    " <1@a> <2@b>",
    " 1@a",
    " text/plain; charset=UTF-8; format=flowed",
    " text/plain; charset=\"iso-8859-1\"",
    " text/plain; charset=utf-16",
    " text/plain; format=flowed; delsp=yes",
    " text/html",
    " multipart/mixed; boundary=b",
    " message/rfc822",
    " text/plain; name=a.txt",
    " 7bit",
    " 8bit",
    " quoted-printable",
    " base64",
    " inline",
    " attachment; filename=x",
    " Re: How it goes?",
];

fn pieces(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let piece = any::<prop::sample::Index>().prop_map(|index| *index.get(&PIECES));
    proptest::collection::vec(piece, 0..most).prop_map(|pieces| pieces.concat())
}

fn field() -> impl Strategy<Value = Vec<u8>> {
    let value =
        any::<prop::sample::Index>().prop_map(|index| index.get(&VALUES).as_bytes().to_vec());
    let name = any::<prop::sample::Index>().prop_map(|index| *index.get(&NAMES));
    let end =
        prop_oneof![8 => Just("\r\n"), 1 => Just("\n"), 1 => Just("\r\n \r\n"), 1 => Just("")];
    (
        name,
        prop_oneof![
            pieces(12),
            value.clone(),
            (value, pieces(4)).prop_map(|both| [both.0, both.1].concat())
        ],
        end,
    )
        .prop_map(|(name, value, end)| [name.as_bytes(), b":", &value, end.as_bytes()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn summary_agrees_with_the_oracle(
        fields in proptest::collection::vec(field(), 0..9), body in pieces(30), part in proptest::collection::vec(field(), 0..3)
    ) {
        let part = [&b"\r\n--b\r\n"[..], &part.concat(), b"\r\n\r\n", &body, b"\r\n--b--"].concat();
        check_both_ways(&[&fields.concat()[..], b"\r\n", &body].concat());
        check_both_ways(&[&fields.concat()[..], b"\r\n", &part].concat());
    }

    #[test]
    fn fast_date_reader_agrees_with_the_general_one(
        date in "(Sat, |Sun,|Mar, |)[0-3]?[0-9] (Nov|mar|Feb|Xyz)(ch|) [0-9]{2,4} [0-2][0-9]:[0-6][0-9](:[0-6][0-9]|)( [+-][0-9]{4}| GMT|)( \\(CES?T\\)| \\((:|\\)|12)\\)| : 12|)"
    ) {
        prop_assert_eq!(Field { name: b"Date", value: date.as_bytes() }.date(), crate::header::date_by_words(date.as_bytes()));
    }
}

proptest! {
    #[test]
    fn any_bytes_have_a_summary(bytes in proptest::collection::vec(any::<u8>(), 0..300), page in "[<>/a-c!& ;#x0-9\"'-]{0,60}") {
        check_both_ways(&bytes);
        check_both_ways(format!("Content-Type: text/html\r\n\r\n{page}").as_bytes());
        let _ = Summary::read(&bytes);
    }

    #[test]
    fn summary_bytes_round_trip(mut bytes in proptest::collection::vec(any::<u8>(), 39..80), lengths in any::<[u8; 5]>()) {
        bytes[0] = 1;
        bytes[1] &= 3;
        let mut rest = bytes.len() - 39;
        for (place, length) in bytes[34..39].iter_mut().zip(lengths) {
            *place = length.min(rest as u8);
            rest -= usize::from(*place);
        }
        if let Some(summary) = Summary::read(&bytes) {
            let mut out = [0; SUMMARY_BYTES];
            let length = summary.write(&mut out);
            prop_assert_eq!(&out[..length], &bytes[..]);
        }
    }

    #[test]
    fn html_words_are_kept(words in proptest::collection::vec("[a-zäß€]{1,8}", 0..12), tags in proptest::collection::vec("(p|br|div|/p|td class=\"x>y\")", 1..5)) {
        let page: Vec<String> = words.iter().zip(tags.iter().cycle()).map(|(word, tag)| format!("<{tag}>{word}")).collect();
        let summary = of(&format!("Content-Type: text/html; charset=utf-8\n\n{}", page.concat()));
        prop_assert_eq!(summary.snippet, words.join(" ").to_string());
    }
}
