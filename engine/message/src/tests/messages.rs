//! Tests of the structure of messages and the content of their parts, compared with Python's email
//! package and mail-parser.

use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use base64ct::{Base64, Encoding as _};
use proptest::prelude::*;

use super::headers::unescaped;
use crate::structure::{
    DEPTH_MAX, Disposition, Encoding, Listener, PARTS_MAX, Part, Structure, StructureReader,
    TEXT_BYTES_MAX, TextFlow,
};
use crate::{BodyDecoder, TextDecoder};

pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) message: Vec<u8>,
    python: Vec<&'static str>,
    ours: Vec<&'static str>,
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in include_str!("message_cases.txt").lines() {
        if let Some(name) = line.strip_prefix("=== ") {
            cases.push(Case { name, message: Vec::new(), python: Vec::new(), ours: Vec::new() });
        }
        let Some(case) = cases.last_mut() else { continue };
        if let Some(python) = line.strip_prefix("python: ") {
            case.python.push(python);
        } else if let Some(ours) = line.strip_prefix("ours: ") {
            case.ours.push(ours);
        } else if let Some(line) = line.strip_suffix('\\') {
            case.message.extend(unescaped(line));
        } else if !line.starts_with("=== ") {
            case.message.extend(unescaped(line));
            case.message.extend_from_slice(if case.name.ends_with(" LF") {
                b"\n"
            } else {
                b"\r\n"
            });
        }
    }
    assert!(cases.len() > 110);
    cases
}

pub(super) fn read(message: &[u8]) -> Structure {
    let mut reader = StructureReader::new();
    reader.bytes_arrived(message, &mut ());
    reader.message_ended(&mut ())
}

pub(super) fn body<'a>(message: &'a [u8], part: &Part) -> &'a [u8] {
    &message[part.body.start as usize..part.body.end as usize]
}

pub(super) fn meant(message: &[u8], part: &Part) -> Vec<u8> {
    let mut out = Vec::new();
    let mut decoder = BodyDecoder::new(part.encoding);
    decoder.bytes_arrived(body(message, part), &mut out);
    decoder.body_ended(&mut out);
    out
}

/// The CRC of zlib, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
        }
    }
    !crc
}

fn describe(message: &[u8]) -> Vec<String> {
    let structure = read(message);
    let describe = |(index, part): (usize, &Part)| {
        let mut found = format!("{} {}", part.depth, part.media_type);
        if let Some(charset) = &part.charset {
            found += &format!(" charset={}", charset.to_lowercase());
        }
        if let Some(name) = &part.file_name {
            found += &format!(" file={name}");
        }
        match part.disposition {
            Disposition::Undeclared => {}
            Disposition::Inline => found += " inline",
            Disposition::Attachment => found += " attachment",
        }
        if let Some(identifier) = &part.content_id {
            found += &format!(" id={identifier}");
        }
        if children(&structure, index).next().is_none() {
            let meant = meant(message, part);
            found += &format!(" {}:{:08x}", meant.len(), crc(&meant));
        }
        found
    };
    structure.parts.iter().enumerate().map(describe).collect()
}

#[test]
fn structure_agrees_with_python_or_is_better() {
    let mut wrong = String::new();
    for case in cases() {
        let found = describe(&case.message);
        let wanted = if case.ours.is_empty() { &case.python } else { &case.ours };
        if found != *wanted {
            wrong +=
                &format!("=== {}\n  python: {:#?}\n  found: {found:#?}\n", case.name, case.python);
        } else if case.ours == case.python {
            wrong += &format!("=== {}: python says so too\n", case.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn mail_parser_finds_the_same_parts() {
    let mut compared = 0;
    // mail-parser shows invalid encodings unchanged.
    let is_encoded_oddly = |case: &&Case| {
        ["base64", "quoted-printable", "the encoding"].iter().any(|odd| case.name.starts_with(odd))
    };
    for case in cases().iter().filter(|case| case.ours.is_empty() && !is_encoded_oddly(case)) {
        let structure = read(&case.message);
        let Some(theirs) = mail_parser::MessageParser::default().parse(&case.message) else {
            continue;
        };
        // If mail-parser finds other parts than we and Python do, the content cannot be compared.
        if theirs.parts.len() != structure.parts.len() {
            continue;
        }
        for (part, their) in structure.parts.iter().zip(&theirs.parts) {
            match &their.body {
                mail_parser::PartType::Binary(bytes) if !part.has_main_type("multipart") => {
                    assert_eq!(meant(&case.message, part), **bytes, "{}", case.name);
                    compared += 1;
                }
                mail_parser::PartType::Text(found) | mail_parser::PartType::Html(found)
                    if part.charset.is_some() =>
                {
                    let read = text(part, &[body(&case.message, part)]);
                    assert_eq!(read.trim_end(), found.trim_end(), "{}", case.name);
                    compared += 1;
                }
                _ => {}
            }
        }
    }
    assert!(compared > 30, "{compared}");
}

/// Asserts the properties of every structure.
pub(super) fn check_any(message: &[u8], structure: &Structure) {
    let length = message.len() as u64;
    let parts = &structure.parts;
    assert!((1..=PARTS_MAX + usize::from(structure.is_cut)).contains(&parts.len()));
    assert_eq!((parts[0].depth, parts[0].header.start, parts[0].body.end), (0, 0, length));
    for (index, part) in parts.iter().enumerate() {
        assert!(part.header.start <= part.header.end && part.header.end == part.body.start);
        assert!(part.body.start <= part.body.end && part.body.end <= length);
        assert!(part.depth < DEPTH_MAX && (part.depth == 0) == (index == 0));
        let texts = [&part.file_name, &part.content_id, &part.charset, &part.start];
        for text in texts.into_iter().flatten().chain([&part.media_type]) {
            assert!(
                text.len() <= TEXT_BYTES_MAX.max("text/plain".len())
                    && !text.contains(|c: char| c.is_control())
            );
        }
        let mut end = part.body.start;
        for (_, child) in children(structure, index) {
            assert!(
                child.header.start >= end && child.body.end <= part.body.end,
                "{part:?} {child:?}"
            );
            end = child.body.end;
        }
    }
}

/// A listener that receives everything.
#[derive(Clone, Default, PartialEq, Debug)]
pub(super) struct RecordedParts {
    found: Vec<u8>,
    bodies: usize,
}

impl Listener for RecordedParts {
    fn wants_field(&mut self, _: &Part, name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(b"Subject")
    }

    fn field_arrived(&mut self, field: &crate::header::Field<'_>) {
        self.found.extend_from_slice(field.value);
    }

    fn body_began(&mut self, _: &[Part]) -> bool {
        self.bodies += 1;
        true
    }

    fn body_arrived(&mut self, bytes: &[u8]) {
        self.found.extend_from_slice(bytes);
    }

    fn body_ended(&mut self) {
        self.bodies += 1_000;
    }
}

pub(super) fn read_in_pieces(message: &[u8], cuts: &[usize]) -> (Structure, RecordedParts) {
    let mut reader = StructureReader::new();
    let mut recorded = RecordedParts::default();
    let mut rest = message;
    for cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*cut).clamp(1, rest.len()));
        reader.bytes_arrived(piece, &mut recorded);
        rest = after;
    }
    let structure = reader.message_ended(&mut recorded);
    (structure, recorded)
}

#[test]
fn structure_does_not_depend_on_pieces() {
    for case in cases() {
        let whole = read_in_pieces(&case.message, &[usize::MAX]);
        assert_eq!(whole.0, read(&case.message));
        check_any(&case.message, &whole.0);
        for cuts in [&[1][..], &[2], &[3], &[7, 1], &[64]] {
            assert_eq!(read_in_pieces(&case.message, cuts), whole, "{} {cuts:?}", case.name);
        }
        assert_eq!(
            whole.1.bodies / 1_000,
            whole.1.bodies % 1_000,
            "{}: a body that begins ends",
            case.name
        );
    }
}

#[test]
fn parts_beyond_the_limits_are_not_taken_apart() {
    let many = [
        &b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"[..],
        &b"--b\r\n\r\nx\r\n".repeat(PARTS_MAX),
    ]
    .concat();
    let structure = read(&many);
    assert!(structure.is_cut && structure.parts.len() == PARTS_MAX + 1);
    check_any(&many, &structure);
    let one_less = &many[..many.len() - 10];
    assert!(!read(one_less).is_cut && read(one_less).parts.len() == PARTS_MAX);

    let mut deep = Vec::new();
    for level in 0..DEPTH_MAX + 10 {
        deep.extend(
            format!("Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n")
                .into_bytes(),
        );
    }
    let structure = read(&deep);
    assert_eq!(structure.parts.len(), DEPTH_MAX);
    check_any(&deep, &structure);
    let messages = b"Content-Type: message/rfc822\r\n\r\n".repeat(DEPTH_MAX + 10);
    assert_eq!(read(&messages).parts.len(), DEPTH_MAX);
    // The same without empty lines: the boundary of a part that is too deep does not count.
    let mut deep = Vec::new();
    for level in 0..DEPTH_MAX + 10 {
        deep.extend(
            format!("Content-Type: multipart/mixed; boundary=b{level}\r\n--b{level}\r\n")
                .into_bytes(),
        );
    }
    check_any(&deep, &read(&deep));
}

/// A message with `deep` nested multiparts, and then parts of the outermost one: short ones until
/// there are `PARTS_MAX - before` parts, then `tail`.
fn deep_and_long(deep: usize, before: usize, tail: &[u8]) -> Vec<u8> {
    let opening = |level: usize| {
        format!("Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n")
    };
    let start: String = (0..deep).map(opening).collect();
    let parts = read(start.as_bytes()).parts.len();
    let others = PARTS_MAX.saturating_sub(before + parts);
    [start.as_bytes(), &b"\r\n--b0\r\n\r\nx".repeat(others), b"\r\n", tail].concat()
}

#[test]
fn deep_messages_with_too_many_parts_are_read() {
    for deep in [1, DEPTH_MAX - 1, DEPTH_MAX, DEPTH_MAX + 1, DEPTH_MAX + 10] {
        let message = deep_and_long(deep, 0, &b"--b0\r\n\r\nx\r\n".repeat(10));
        let structure = read(&message);
        assert!(structure.is_cut && structure.parts.len() == PARTS_MAX + 1);
        check_any(&message, &structure);
    }
}

#[test]
fn a_boundary_may_end_the_header_that_reaches_the_limit() {
    for before in 0..4 {
        let tail = b"--b0\r\nContent-Type: message/rfc822\r\n".repeat(before + 2);
        let message =
            deep_and_long(1, before, &[&tail[..], b"--b0\r\n\r\nx\r\n--b0--\r\nend"].concat());
        let structure = read(&message);
        assert!(structure.is_cut && structure.parts.len() == PARTS_MAX + 1);
        if before == 1 {
            let rest = &message[structure.parts[PARTS_MAX].body.start as usize..];
            assert!(rest.starts_with(b"--b0\r\n"), "the rest begins with the boundary");
        }
        check_any(&message, &structure);
    }
}

proptest! {
    #[test]
    fn any_lines_around_the_limits_are_read(
        deep in 0..DEPTH_MAX + 4,
        before in 0..6_usize,
        lines in proptest::collection::vec(0..12_usize, 0..40),
    ) {
        let lines = lines.into_iter().map(|number| match number {
            0 => "\r\n",
            1 => "x\r\n",
            2 | 3 => "--b0\r\n",
            4 => "--b1\r\n",
            5 => "--b31\r\n",
            6 => "--b0--\r\n",
            7 => "--b1--\r\n",
            8 => "Content-Type: message/rfc822\r\n",
            9 => "Content-Type: multipart/mixed; boundary=b0\r\n",
            10 => "Content-Type: multipart/digest; boundary=b1\r\n",
            _ => "Content-Type: text/plain\r\n\r\n",
        });
        let message = deep_and_long(deep, before, lines.collect::<String>().as_bytes());
        let whole = read_in_pieces(&message, &[usize::MAX]);
        check_any(&message, &whole.0);
        prop_assert_eq!(&read_in_pieces(&message, &[7]), &whole);
    }
}

#[test]
fn hostile_megabytes_are_read_in_linear_time() {
    let opening = |level: usize| {
        format!(
            "Content-Type: multipart/mixed; boundary={}{level}\r\n\r\n--{}{level}\r\n",
            "-".repeat(150),
            "-".repeat(150)
        )
    };
    let deep: String = (0..DEPTH_MAX - 1).map(opening).collect();
    for repeated in [
        "\n",
        "-",
        "--",
        "--\n",
        "--b\n",
        "a:\n",
        " \n",
        "Content-Type: text/plain;\n",
        "Subject: =?utf-8?q?",
        "=",
        "(",
        "\"",
        &"-".repeat(150),
    ] {
        for opening in [
            "",
            "\n",
            "Content-Type: multipart/mixed; boundary=b\n\n",
            "Content-Type: x/y; a=",
            &deep,
        ] {
            let message =
                format!("{opening}{}", repeated.repeat(300_000 / repeated.len())).into_bytes();
            let (structure, _) = read_in_pieces(&message, &[32_768]);
            check_any(&message, &structure);
        }
    }
}

pub(super) fn text(part: &Part, bodies: &[&[u8]]) -> String {
    let mut decoder = TextDecoder::new(part);
    let mut out = String::new();
    bodies.iter().for_each(|body| decoder.bytes_arrived(body, &mut out));
    decoder.body_ended(&mut out);
    out
}

fn part(fields: &str) -> Part {
    read(format!("{fields}\r\n\r\n").as_bytes()).parts.remove(0)
}

#[test]
fn text_is_read_in_its_charset_or_guessed() {
    let read = |charset: &str, body: &[u8]| {
        text(&part(&format!("Content-Type: text/plain; charset={charset}")), &[body])
    };
    assert_eq!(read("utf-8", "größe €".as_bytes()), "größe €");
    assert_eq!(read("iso-8859-1", b"gr\xf6\xdfe"), "größe");
    assert_eq!(read("iso-8859-15", b"\xa4"), "€");
    assert_eq!(read("koi8-r", b"\xf0\xd2\xc9"), "При");
    assert_eq!(read("iso-2022-jp", b"\x1b$BF|K\\8l\x1b(B"), "日本語");
    assert_eq!(read("gb18030", b"\xd6\xd0"), "中");
    assert_eq!(read("cp932", b"\x93\xfa"), "日");
    assert_eq!(read("utf-8", b"\xef\xbb\xbfx"), "x");
    assert_eq!(read("utf-8", b"a\xffb"), "a\u{fffd}b");
    // The charset is unknown.
    for charset in ["us-ascii", "unknown-8bit", "x-nothing", ""] {
        assert_eq!(read(charset, "größe".as_bytes()), "größe");
        assert_eq!(read(charset, b"gr\xf6\xdfe"), "größe");
        assert_eq!(read(charset, b"gr\xf6"), "grö");
    }
    // A character that is cut between pieces is put together.
    let undeclared = part("Content-Type: text/plain");
    assert_eq!(
        text(&undeclared, &["gr\u{f6}".as_bytes().split_at(3).0, &[0xb6], b"\xe2\x82", b"\xac"]),
        "grö€"
    );
    // UTF-7 is not decoded.
    assert_eq!(read("utf-7", b"+ADw-script+AD4-"), "+ADw-script+AD4-");
}

#[test]
fn flowed_lines_are_joined() {
    let flowed =
        |body: &str| text(&part("Content-Type: text/plain; format=flowed"), &[body.as_bytes()]);
    assert_eq!(flowed("one \r\ntwo\r\nthree\r\n"), "one two\nthree\n");
    assert_eq!(
        flowed(">> quoted \r\n>> more\r\n> less \r\nnone\r\n"),
        ">> quoted more\n> less \nnone\n"
    );
    assert_eq!(flowed(" >no quote\r\n  two spaces\r\n"), ">no quote\n two spaces\n");
    assert_eq!(flowed("text \r\n-- \r\nname \r\nmore"), "text \n-- \nname more\n".trim_end());
    assert_eq!(flowed("> > not nested\r\n"), "> > not nested\n");
    assert_eq!(flowed(""), "");
    let delsp = part("Content-Type: text/plain; Format=Flowed; DelSp=Yes");
    assert_eq!(delsp.flow, TextFlow::FlowedWithoutSpace);
    assert_eq!(text(&delsp, &["日本 \r\n語\r\n".as_bytes()]), "日本語\n");
}

proptest! {
    #[test]
    fn any_bytes_are_taken_apart_however_they_are_cut(
        lines in proptest::collection::vec(
            prop_oneof![
                4 => "(--(a|b|ab|bb)(--)?|--) ?",
                2 => "Content-Type: multipart/(mixed|digest|related); boundary=\"?(a|b|ab|bb)\"?",
                1 => "Content-Type: message/rfc822",
                1 => "Content-(Type|Disposition|ID|Transfer-Encoding): [ -~]{0,20}",
                1 => "Content-Transfer-Encoding: (base64|quoted-printable)",
                3 => "",
                2 => "[a-z=?:\\t é€-]{0,12}",
                1 => " name=[a-z]{1,4}",
            ],
            0..60,
        ),
        ends in proptest::collection::vec(prop_oneof![5 => Just("\r\n"), 1 => Just("\n"), 1 => Just("\r")], 1..5),
        cuts in proptest::collection::vec(1usize..40, 1..5),
    ) {
        let message: String = lines.iter().zip(ends.iter().cycle()).map(|(line, end)| format!("{line}{end}")).collect();
        let message = message.into_bytes();
        let whole = read_in_pieces(&message, &[usize::MAX]);
        check_any(&message, &whole.0);
        prop_assert_eq!(&read_in_pieces(&message, &cuts), &whole);
        prop_assert_eq!(&read_in_pieces(&message, &[1]), &whole);
    }

    #[test]
    fn body_decoding_does_not_depend_on_pieces(
        body in proptest::collection::vec(prop_oneof![
            3 => any::<u8>(),
            5 => prop_oneof![Just(b'='), Just(b' '), Just(b'\r'), Just(b'\n'), Just(b'>'), Just(b'A'), Just(0xc3), Just(b'-')],
        ], 0..200),
        cuts in proptest::collection::vec(1usize..20, 1..5),
        encoding in prop_oneof![Just("base64"), Just("quoted-printable"), Just("8bit")],
        kind in prop_oneof![
            Just("utf-8"), Just("us-ascii"), Just("iso-2022-jp; format=flowed"), Just("utf-8; format=flowed; delsp=yes"), Just("utf-16"),
        ],
    ) {
        let part = part(&format!("Content-Type: text/plain; charset={kind}\r\nContent-Transfer-Encoding: {encoding}"));
        let mut pieces = Vec::new();
        let mut rest = &body[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        let whole = text(&part, &[&body]);
        prop_assert_eq!(text(&part, &pieces), whole.clone());
        prop_assert!(whole.len() <= body.len() * 3 + 3 + 2 * body.len());
    }

    #[test]
    fn transfer_encoded_bytes_are_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let quoted: String = bytes.chunks(20).map(|line| {
            line.iter().map(|byte| format!("={byte:02X}")).collect::<String>() + "=\r\n"
        }).collect();
        for (encoding, body) in [(Encoding::QuotedPrintable, quoted.into_bytes()), (Encoding::Identity, bytes.clone())] {
            let mut decoder = BodyDecoder::new(encoding);
            let mut out = vec![];
            decoder.bytes_arrived(&body, &mut out);
            decoder.body_ended(&mut out);
            prop_assert_eq!(&out, &bytes);
        }
    }
}

#[test]
fn html_has_the_charset_that_it_names() {
    let far = format!("{}<meta charset=koi8-r>", " ".repeat(1_100));
    let utf_8 = "<meta charset=\"utf-8\">";
    for (fields, beginning, expected) in [
        ("text/html", "<meta charset=windows-1251>", "Цена"),
        ("text/html; charset=us-ascii", "<META CHARSET = 'windows-1251' />", "Цена"),
        (
            "text/html",
            "<html><head><meta name=x><meta http-equiv=\"Content-Type\" content=\"text/html; charset=windows-1251\">",
            "Цена",
        ),
        ("text/html; charset=koi8-r", "<meta charset=windows-1251>", "жЕМЮ"),
        ("text/html", &far, "Öåíà"),
        ("text/html", utf_8, "Öåíà"),
        ("text/html", "<meta charset=utf-16>", "Öåíà"),
        ("text/html", "<meta charset=nothing>", "Öåíà"),
        ("text/html", "<p charset=windows-1251>", "Öåíà"),
        ("text/html", "<meta charset", "Öåíà"),
        ("text/plain", "<meta charset=windows-1251>", "Öåíà"),
    ] {
        let part = part(&format!("Content-Type: {fields}"));
        let body = [beginning.as_bytes(), b"\xd6\xe5\xed\xe0"].concat();
        let whole = text(&part, &[&body]);
        assert_eq!(whole, format!("{beginning}{expected}"));
        for length in [1, 7, 1_024] {
            let pieces: Vec<&[u8]> = body.chunks(length).collect();
            assert_eq!(text(&part, &pieces), whole, "in pieces of {length}");
        }
    }
    let part = part("Content-Type: text/html");
    assert_eq!(text(&part, &[utf_8.as_bytes(), "größe".as_bytes()]), format!("{utf_8}größe"));
}

#[test]
fn size_of_a_body_is_known_without_decoding_it() {
    let sized = |encoding: &str, body: &str| {
        let message = format!(
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n{body}\r\n--b--\r\n"
        );
        let part = read(message.as_bytes()).parts.remove(1);
        (part.content_bytes(), meant(message.as_bytes(), &part).len() as u64)
    };
    for body in [
        "",
        "QQ==",
        "QUI=",
        "QUJD",
        "QUJDRA",
        "QUJD\r\nRA==\r\n\r\n",
        "QUJD\nREVG",
        "QUJD \r\nQQ=\r\n=",
    ] {
        let (known, decoded) = sized("base64", body);
        assert_eq!(known, decoded, "{body:?}");
    }
    assert_eq!(sized("7bit", "words\r\nand more"), (15, 15));
    // Escapes are counted as they are written.
    assert_eq!(sized("quoted-printable", "=C3=A4"), (6, 2));
    let last = read(b"Content-Transfer-Encoding: base64\r\n\r\nQUI=\r\n").parts.remove(0);
    assert_eq!(last.content_bytes(), 2);
}

proptest! {
    #[test]
    fn size_of_usual_base64_is_exact(bytes in 0..400_usize, line in 1..30_usize, cut in 1..90_usize) {
        let mut encoded = [0; 600];
        let encoded = Base64::encode(&std::vec![7; bytes], &mut encoded).unwrap();
        let lines: Vec<&str> = encoded.as_bytes().chunks(4 * line).map(|line| str::from_utf8(line).unwrap()).collect();
        let message = format!(
            "Content-Type: multipart/mixed; boundary=--b\r\n\r\n----b\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n----b--\r\n",
            lines.join("\r\n")
        );
        let (structure, _) = read_in_pieces(message.as_bytes(), &[cut]);
        prop_assert_eq!(structure.parts[1].content_bytes(), bytes as u64);
        prop_assert_eq!(structure, read(message.as_bytes()));
    }
}

#[test]
fn file_names_have_no_folders() {
    assert_eq!(
        part("Content-Disposition: attachment; filename=../a/..\\b.txt").file_name,
        Some("b.txt".to_string())
    );
}

/// The direct parts of the part with this index, with their indices.
fn children(structure: &Structure, index: usize) -> impl Iterator<Item = (usize, &Part)> {
    let depth = structure.parts[index].depth;
    let inside = structure
        .parts
        .iter()
        .enumerate()
        .skip(index + 1)
        .take_while(move |(_, part)| part.depth > depth);
    inside.filter(move |(_, part)| part.depth == depth + 1)
}
