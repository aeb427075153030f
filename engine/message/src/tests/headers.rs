//! Tests of header fields, compared with Python's email package, mail-parser, and our own reading
//! of the RFCs.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use proptest::prelude::*;

use crate::header::{
    ADDRESSES_MAX, Address, Field, Header, HeaderMailbox, PARAMETERS_MAX, in_body_charset,
    people_in_body_charset,
};

/// The bytes of a case, in which `\xNN`, `\r`, `\n` and `\t` stand for bytes.
pub(super) fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digits = [*high, *low];
                bytes.push(u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap());
                rest = after;
            }
            (b'\\', [escaped @ (b'r' | b'n' | b't'), after @ ..]) => {
                bytes.push(if *escaped == b'r' {
                    b'\r'
                } else if *escaped == b'n' {
                    b'\n'
                } else {
                    b'\t'
                });
                rest = after;
            }
            _ => bytes.push(byte),
        }
    }
    bytes
}

fn field(value: &[u8]) -> Field<'_> {
    Field { name: b"Field", value }
}

fn mailbox(mailbox: &HeaderMailbox) -> String {
    format!("[{}|{}]", mailbox.name, mailbox.address)
}

fn addresses(value: &[u8]) -> String {
    let entries = field(value).addresses();
    let entries = entries.iter().map(|entry| match entry {
        Address::Mailbox(one) => mailbox(one),
        Address::Group { name, mailboxes } if mailboxes.is_empty() => format!("{{{name}:}}"),
        Address::Group { name, mailboxes } => {
            format!("{{{name}: {}}}", mailboxes.iter().map(mailbox).collect::<String>())
        }
    });
    entries.collect::<Vec<_>>().join(" ")
}

fn read(line: &str) -> String {
    let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
    match kind {
        "text" => field(&unescaped(rest)).text(),
        "addresses" => addresses(&unescaped(rest)),
        "date" => field(&unescaped(rest)).date().map_or("none".to_string(), |date| {
            format!("{} {}", date.time.seconds(), date.zone_minutes)
        }),
        "parameter" => {
            let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            field(&unescaped(rest)).parameters().text(name).unwrap_or("none".to_string())
        }
        other => panic!("{other}"),
    }
}

#[test]
fn header_fields_agree_with_python_or_are_better() {
    let mut cases: Vec<(&str, &str, Option<&str>)> = Vec::new();
    for line in include_str!("header_cases.txt").lines() {
        if let Some(python) = line.strip_prefix("python:") {
            cases.last_mut().unwrap().1 = python.trim();
        } else if let Some(ours) = line.strip_prefix("ours:") {
            cases.last_mut().unwrap().2 = Some(ours.trim());
        } else if !line.is_empty() && !line.starts_with('#') {
            cases.push((line, "", None));
        }
    }
    assert!(cases.len() > 150, "{}", cases.len());
    let mut wrong = String::new();
    for (line, python, ours) in cases {
        let found = read(line);
        if found != ours.unwrap_or(python) {
            wrong +=
                &format!("{line}\n   python: {python}\n   wanted: {ours:?}\n   found:   {found}\n");
        } else if ours == Some(python) {
            wrong += &format!("{line}\n   python says so too\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn header_ends_where_the_body_begins() {
    let header = Header::new(b"From me Tue Nov  3\r\nA: 1\r\nb :2\r\n\t3\nA:\r\n\r\nC: 4\r\n");
    let fields: Vec<(&[u8], &[u8])> =
        header.fields().map(|field| (field.name, field.value)).collect();
    assert_eq!(fields, [(&b"A"[..], &b" 1"[..]), (b"b", b"2\r\n\t3"), (b"A", b"")]);
    assert_eq!(header.field("a").unwrap().text(), "1");
    assert_eq!(header.field("B").unwrap().text(), "2\t3".replace('\t', " "));
    assert_eq!(header.field("C"), None);
    // A line that is neither a field nor empty begins the body.
    assert_eq!(Header::new(b"A: 1\r\nhello\r\nB: 2\r\n").fields().count(), 1);
    // A single such line before a usual field belongs to the header.
    assert_eq!(Header::new(b"A: 1\r\nhello\r\nSubject: 2\r\n").fields().count(), 2);
    for body in ["hello\r\nhello\r\n", "hello\r\n hello\r\n", "--hello\r\n"] {
        let header = ["A: 1\r\n", body, "Subject: 2\r\n"].concat();
        assert_eq!(Header::new(header.as_bytes()).fields().count(), 1, "{body}");
    }
    assert_eq!(Header::new(b"hello\r\nSubject: 2\r\n").fields().count(), 0);
    assert_eq!(Header::new(b"").fields().count(), 0);
    assert_eq!(Header::new(b"A: 1").field("a").unwrap().value, b" 1");
}

#[test]
fn identifiers_are_found_between_other_words() {
    let identifiers = |value: &str| -> Vec<String> {
        let value = unescaped(value);
        let found: Vec<String> = field(&value)
            .identifiers()
            .map(|found| String::from_utf8(found.to_vec()).unwrap())
            .collect();
        found
    };
    assert_eq!(identifiers("<1234@local.machine.example>"), ["1234@local.machine.example"]);
    assert_eq!(identifiers("<a@b> <c@d>\\r\\n <e@f>"), ["a@b", "c@d", "e@f"]);
    assert_eq!(identifiers("<a@b><c@d>,<e@f>"), ["a@b", "c@d", "e@f"]);
    assert_eq!(identifiers("Your message of Tue (was <lost> <a@b>"), ["lost", "a@b"]);
    assert_eq!(identifiers("< a@b >"), ["a@b"]);
    assert_eq!(identifiers("a@b, c@d word"), ["a@b", "c@d"]);
    assert_eq!(identifiers("<<a@b>> <> <c d> <e@f"), ["a@b"]);
    assert_eq!(identifiers(""), [""; 0]);
}

#[test]
fn addresses_and_parameters_of_a_field_are_limited() {
    let many = b"a@b,".repeat(ADDRESSES_MAX + 5);
    assert_eq!(field(&many).addresses().len(), ADDRESSES_MAX);
    let groups = b"a:b@c;".repeat(ADDRESSES_MAX);
    assert_eq!(field(&groups).addresses().len(), ADDRESSES_MAX / 2);
    let mut value = String::from("x/y");
    for number in 0..PARAMETERS_MAX + 1 {
        value += &format!("; p{number}=v");
    }
    let parameters = field(value.as_bytes()).parameters();
    assert!(parameters.text(&format!("p{}", PARAMETERS_MAX - 1)).is_some());
    assert!(parameters.text(&format!("p{PARAMETERS_MAX}")).is_none());
}

/// Asserts that the unambiguous addresses are those that are shown.
fn check_unambiguous(field: &Field<'_>) {
    let mailboxes = field.addresses().into_iter().flat_map(|entry| match entry {
        Address::Mailbox(mailbox) => std::vec![mailbox],
        Address::Group { mailboxes, .. } => mailboxes,
    });
    let shown: Vec<String> =
        mailboxes.map(|mailbox| mailbox.address).filter(|address| !address.is_empty()).collect();
    if let Some(read) = field.unambiguous_addresses() {
        assert_eq!(read, shown, "{:?}", String::from_utf8_lossy(field.value));
    }
}

#[test]
fn ambiguous_address_list_is_not_read() {
    for (value, expected) in [
        ("ada@a.test", Some(&["ada@a.test"][..])),
        (" Ada Lovelace <ada@a.test>", Some(&["ada@a.test"])),
        ("\"Lovelace, Ada (a@b)\" <ada@a.test>", Some(&["ada@a.test"])),
        ("Ada <ada@a.test> (of a@b), bob@b.test", Some(&["ada@a.test", "bob@b.test"])),
        ("J. Doe [x] <ada@a.test>", Some(&["ada@a.test"])),
        ("ada@a.test <Ada@A.test>", Some(&["Ada@A.test"])),
        ("Lovelace, Ada <ada@a.test>", Some(&["ada@a.test"])),
        ("=?utf-8?Q?Ada,_of_(A)?= <ada@a.test>", Some(&["ada@a.test"])),
        ("Board: ada@a.test, Bob <bob@b.test>;", Some(&["ada@a.test", "bob@b.test"])),
        ("<@x.test,@y.test:ada@a.test>", None),
        ("<@x.test:ada@a.test>", Some(&["ada@a.test"])),
        ("\"a b\"@a.test", Some(&["\"a b\"@a.test"])),
        ("ada.\"b\".c@a.test", Some(&["ada.b.c@a.test"])),
        ("ada @ a.test", Some(&["ada@a.test"])),
        ("ada@[192.0.2.1]", Some(&["ada@[192.0.2.1]"])),
        ("", Some(&[])),
        ("ada", Some(&[])),
        ("undisclosed:;", Some(&[])),
        // One mailbox has two addresses.
        ("<ada@a.test> <bob@b.test>", None),
        ("bob@b.test <ada@a.test>", None),
        ("<ada@a.test> bob@b.test", None),
        ("ada@a.test bob@b.test", None),
        ("<<ada@a.test>>", None),
        ("ada@a.test@b.test", None),
        ("=?utf-8?Q?bob@b.test?= <ada@a.test>", None),
        // Words that are never closed.
        ("\"Bob\\\" <ada@a.test>", None),
        ("Ada <ada@a.test", None),
        ("(Ada ada@a.test", None),
        ("Ada [x <ada@a.test>", None),
        ("Board: ada@a.test", None),
        // Characters that close nothing.
        ("ada@a.test>", None),
        ("ada@a.test;", None),
        ("Board: Board: ada@a.test;", None),
        ("ada@a.test:;", None),
        // Some readers find no address.
        ("Ada ada@a.test", None),
        ("<ada>", None),
        ("<>", None),
        ("<a da@a.test>", None),
        ("a\"da\"@a.test", None),
        ("\"a\"da@a.test", None),
        ("<a\"da\"@a.test>", None),
        ("ad.a\"b\".c@a.test", None),
        ("<ada@a.te st>", None),
        ("<=?utf-8?Q?bob=40b.test?=>", None),
        ("=?utf-8?Q?bob?=@a.test", None),
        ("a@b.test, <ada@a.test", None),
    ] {
        let read = field(value.as_bytes()).unambiguous_addresses();
        let expected =
            expected.map(|all| all.iter().map(|one| one.to_string()).collect::<Vec<_>>());
        assert_eq!(read, expected, "{value}");
        check_unambiguous(&field(value.as_bytes()));
    }
}

/// Checks all lists of up to five words and special characters.
#[test]
fn unambiguous_addresses_are_those_that_are_shown() {
    const WORDS: [&str; 13] =
        ["a", "\"b\"", "c.", ".d", "@", "<", ">", ",", ":", ";", "(e)", "[f]", " "];
    let mut lists = std::vec![String::new()];
    let mut read = 0;
    for _ in 0..5 {
        lists = lists.iter().flat_map(|list| WORDS.map(|word| [list, word].concat())).collect();
        for list in &lists {
            let field = field(list.as_bytes());
            check_unambiguous(&field);
            read += usize::from(field.unambiguous_addresses().is_some_and(|all| !all.is_empty()));
        }
    }
    assert!(read > 500, "only {read} lists have an address");
}

/// Asserts the properties that every field has, whatever it is read as.
fn check_any(value: &[u8]) {
    let field = field(value);
    let is_line = |text: &str| !text.contains(|c: char| c.is_control());
    let text = field.text();
    assert!(is_line(&text), "{text:?}");
    assert!(text.len() <= value.len() * 3 + 3);
    check_unambiguous(&field);
    for entry in field.addresses() {
        let (name, mailboxes) = match entry {
            Address::Mailbox(mailbox) => (String::new(), std::vec![mailbox]),
            Address::Group { name, mailboxes } => (name, mailboxes),
        };
        assert!(is_line(&name));
        assert!(
            mailboxes.iter().all(|mailbox| is_line(&mailbox.name) && is_line(&mailbox.address))
        );
    }
    let _ = field.date();
    assert!(
        field
            .identifiers()
            .all(|identifier| value.len() >= identifier.len() && !identifier.is_empty())
    );
    let parameters = field.parameters();
    assert!(is_line(parameters.value()));
    for name in ["charset", "name", "filename", "boundary"] {
        assert!(parameters.text(name).is_none_or(|text| is_line(&text)));
    }
}

#[test]
fn unclosed_words_take_linear_time() {
    // A reader that looks for the end again for each beginning would need hours for these values.
    for begun in [
        "=?",
        "=?utf-8?q?",
        "=?utf-8?q?a=?=",
        "(",
        "\"",
        "\"\\",
        "[",
        "=?a?q?b,",
        "<",
        "<a@",
        "a.",
        "a. @",
        "x=\"",
        ";a*0=",
        ";a*0*=b'",
    ] {
        check_any(&begun.repeat(200_000 / begun.len()).into_bytes());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_as_any_kind_of_field(value in proptest::collection::vec(any::<u8>(), 0..300)) {
        check_any(&value);
    }

    #[test]
    fn any_words_are_read_as_any_kind_of_field(
        words in proptest::collection::vec(
            prop_oneof![
                "[ \\r\\n\\t]", "[a-z]{1,3}", "[<>@,:;().\"\\\\\\[\\]=?*'%_]", "=\\?utf-8\\?[qb]\\?[a-zA-Z=0-9]{0,6}\\?=",
                "[+:-]?[0-9]{1,4}", "(Jan|Tue|PM|GMT|charset|name\\*0\\*|filename\\*=)", "[é€😀]",
            ],
            0..30,
        ),
    ) {
        check_any(words.concat().as_bytes());
    }

    #[test]
    fn date_that_we_write_is_read_back(seconds in 0u64..253_402_300_800) {
        let written = crate::date_time(machine::UnixTime::from_seconds(seconds));
        let read = field(&written).date().unwrap();
        prop_assert_eq!((read.time.seconds(), read.zone_minutes), (seconds, 0));
    }

    #[test]
    fn quoted_name_is_unescaped(name in "[ -~]{0,20}") {
        prop_assume!(!name.contains("=?"));
        let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
        let expected = [Address::Mailbox(HeaderMailbox { name: name.trim().to_string(), address: "a@b".to_string() })];
        prop_assert_eq!(field(format!("\"{quoted}\" <a@b>").as_bytes()).addresses(), expected);
    }

    #[test]
    fn mail_parser_reads_the_same_words_and_addresses(
        names in proptest::collection::vec("[a-z]{1,8}( [A-Z][a-z]{0,5})?", 1..5),
        text in "[a-zA-Z0-9éü€ ]{1,20}",
    ) {
        let list: Vec<String> = names.iter().map(|name| format!("{name} <{}@example.org>", name.replace(' ', "."))).collect();
        let word: String = text.bytes().map(|byte| format!("={byte:02X}")).collect();
        let message = format!("To: {}\r\nSubject: =?utf-8?Q?{word}?=\r\n\r\n", list.join(", "));
        let theirs = mail_parser::MessageParser::default().parse(message.as_bytes()).unwrap();
        let header = Header::new(message.as_bytes());
        prop_assert_eq!(header.field("Subject").unwrap().text(), theirs.subject().unwrap_or_default().trim());
        let expected: Vec<Address> = theirs.to().unwrap().iter().map(|addr| Address::Mailbox(HeaderMailbox {
            name: addr.name().unwrap_or_default().to_string(),
            address: addr.address().unwrap_or_default().to_string(),
        })).collect();
        prop_assert_eq!(header.field("to").unwrap().addresses(), expected);
    }
}

#[test]
fn a_charset_never_changes_the_addresses_of_a_field() {
    // The second byte of a character in Shift_JIS is a backslash before the quotation mark.
    let forged = b" \"Big Boss\x81\\\" <ceo@bank.example>, \" <a@evil.example>";
    assert_eq!(*people_in_body_charset(forged, Some("shift_jis")), forged[..]);
    assert_ne!(*in_body_charset(forged, Some("shift_jis")), forged[..]);
    let honest = b" \xe1\xc4\xc1 <ada@example.org>";
    let read = " \u{410}\u{434}\u{430} <ada@example.org>";
    assert_eq!(*people_in_body_charset(honest, Some("koi8-r")), *read.as_bytes());
}
