//! Messages that are rewritten with short lines and in ASCII read as before.

use mail_parser::{MessageParser, MimeHeaders as _, PartType};

use std::string::ToString as _;
use std::vec;

use super::*;
use crate::reencode::{FIELD_BYTES_MAX, LINE_BYTES_MAX};

/// Rewrites a message that arrives in pieces of this size. Returns it and whether it is ASCII.
fn rewritten(form: RequiredForm, message: &[u8], piece: usize) -> (Vec<u8>, bool) {
    let (mut encoder, mut out) = (Reencoder::new(form), Vec::new());
    message.chunks(piece).for_each(|piece| encoder.bytes_arrived(piece, &mut out));
    let is_ascii = encoder.ended(&mut out);
    assert_eq!(is_ascii, out.is_ascii());
    (out, is_ascii)
}

fn short(form: RequiredForm, message: &[u8]) -> Vec<u8> {
    let (whole, is_ascii) = rewritten(form, message, usize::MAX);
    for piece in [1, 2, 7, 1000] {
        assert_eq!(rewritten(form, message, piece), (whole.clone(), is_ascii), "{piece}");
    }
    whole
}

fn has_long_lines(message: &[u8]) -> bool {
    [1, 3, usize::MAX].map(|piece| {
        let mut lines = LongLines::default();
        message.chunks(piece).for_each(|piece| lines.bytes_arrived(piece));
        lines.is_any()
    }) == [true; 3]
}

/// The decoded leaf parts, with their types.
fn leaves(message: &[u8]) -> Vec<(String, Vec<u8>)> {
    let read = MessageParser::default().parse(message).unwrap();
    read.parts
        .iter()
        .filter(|part| !matches!(part.body, PartType::Multipart(_) | PartType::Message(_)))
        .map(|part| {
            let kind = part.content_type();
            let kind = kind.map_or("none".into(), |kind| {
                format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or_default())
            });
            (kind, part.contents().to_vec())
        })
        .collect()
}

const HEADER: &str = "From: ada@us.test\r\nSubject: Away\r\n";

#[test]
fn long_lines_of_a_text_become_quoted_printable() {
    let line = "x=y ".repeat(1250);
    let text = format!("{HEADER}\r\nDear Bob,\r\n{line}\r\n.\r\n-- \r\nAda \r\n");
    assert!(has_long_lines(text.as_bytes()));
    let short = short(RequiredForm::ShortLines, text.as_bytes());
    assert!(!has_long_lines(&short));
    let start = format!(
        "{HEADER}MIME-Version: 1.0\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nDear Bob,\r\nx=3Dy x"
    );
    assert!(short.starts_with(start.as_bytes()), "{}", String::from_utf8_lossy(&short));
    assert!(short.ends_with(b"\r\n.\r\n--=20\r\nAda=20\r\n"));
    assert_eq!(leaves(&short)[0].1, leaves(text.as_bytes())[0].1);
    for length in [LINE_BYTES_MAX, LINE_BYTES_MAX + 1] {
        for end in ["\r\n", "\r\nmore\r\n", ""] {
            let text = format!("{HEADER}\r\n{}{end}", "x".repeat(length));
            let is_cut_line = end.is_empty() && length == LINE_BYTES_MAX + 1;
            assert!(is_cut_line || has_long_lines(text.as_bytes()) == (length > LINE_BYTES_MAX));
        }
    }
}

#[test]
fn each_part_gets_its_own_encoding() {
    let long = "Gr\u{fc}\u{df}e ".repeat(200);
    let binary = "\u{0}x\r\n--b9\r\n".repeat(40);
    let message = format!(
        "{HEADER}MIME-Version: 1.0\r\nContent-Type: multipart/mixed;\r\n boundary=\"b1\"\r\nContent-Transfer-Encoding: 8bit\r\n\r\npreamble\r\n\
         --b1\r\nContent-Type: multipart/alternative; boundary=b2\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\
         --b2\r\nContent-Transfer-Encoding: 8bit\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{long}\r\n\r\n\
         --b2\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>{long}\r\n--b2--\r\n\r\n\
         --b1\r\nContent-Type: application/json\r\nContent-Transfer-Encoding: binary\r\n\r\n{binary}\r\n\
         --b1\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n\
         --b1\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: 8bit\r\n\r\nSubject: inner\r\n\r\nsch\u{f6}n\r\n\
         --b1\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\na=3Db\r\n\
         --b1--\r\nepilogue\r\n",
        "QUJD".repeat(500)
    );
    let whole = short(RequiredForm::SevenBit, message.as_bytes());
    assert!(whole.is_ascii() && !has_long_lines(&whole));
    for (found, expected) in leaves(&whole).into_iter().zip(leaves(message.as_bytes())) {
        let text =
            |(kind, text): (String, Vec<u8>)| (kind, String::from_utf8_lossy(&text).into_owned());
        assert_eq!(text(found), text(expected));
    }
    let text = String::from_utf8(whole).unwrap();
    let count = |encoding: &str| {
        text.matches(&format!("Content-Transfer-Encoding: {encoding}\r\n")).count()
    };
    assert_eq!(
        ["7bit", "8bit", "binary", "quoted-printable", "base64"].map(count),
        [3, 0, 0, 4, 2],
        "{text}"
    );
    for kept in ["\r\n\r\npreamble\r\n--b1\r\n", "--b1--\r\nepilogue\r\n", "\r\na=3Db\r\n--b1--"] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    // If only lines are shortened, a part that contains parts keeps its transfer encoding `8bit`.
    let text = String::from_utf8(short(RequiredForm::ShortLines, message.as_bytes())).unwrap();
    assert_eq!(text.matches("Content-Transfer-Encoding: 8bit\r\n").count(), 3);
}

#[test]
fn signed_and_encrypted_parts_are_unchanged() {
    for kind in ["signed; micalg=pgp-sha256", "encrypted"] {
        let signed = format!(
            "Content-Type: multipart/{kind}; boundary=b2\r\n\r\n\
             --b2\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: 8bit\r\n\r\n{} \u{fc}\r\n--b2\r\n\
             Content-Type: application/pgp-signature\r\n\r\nxyz\r\n--b2--\r\n",
            "long ".repeat(300)
        );
        let whole = format!("{HEADER}{signed}");
        for form in [RequiredForm::ShortLines, RequiredForm::SevenBit] {
            assert_eq!(short(form, whole.as_bytes()), whole.as_bytes());
        }
        // The footer of a mailing list, beside the signed or encrypted part, is rewritten.
        let list = format!(
            "{HEADER}Content-Type: multipart/mixed; boundary=b1\r\n\r\n--b1\r\n{signed}\r\n--b1\r\n\r\nf\u{fc}r alle\r\n--b1--\r\n"
        );
        let (written, is_ascii) = rewritten(RequiredForm::SevenBit, list.as_bytes(), usize::MAX);
        let written = String::from_utf8(written).unwrap();
        assert!(written.contains(&signed) && !is_ascii, "{written}");
        assert!(written.contains("quoted-printable\r\n\r\nf=C3=BCr alle\r\n--b1--"), "{written}");
    }
}

#[test]
fn long_header_lines_are_folded_where_they_have_white_space() {
    let words = "word ".repeat(700);
    let token = "t".repeat(1500);
    let message = format!(
        "Subject: {words}end\r\nX-Token: {token}\r\nX-Both: a {token} b\r\n\tc\r\n\r\nHello.\r\n"
    );
    let written = String::from_utf8(short(RequiredForm::ShortLines, message.as_bytes())).unwrap();
    let (header, body) = written.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, "Hello.\r\n");
    let unfolded = header.replace("\r\n ", " ").replace("\r\n\t", "\t");
    let before = message.split_once("\r\n\r\n").unwrap().0.replace("\r\n\t", "\t");
    assert!(unfolded.starts_with(&before), "{header}");
    // A fold in the white space at the beginning of a line would make an empty line.
    let spaces = format!("X-Space:\r\n{}x\r\n", " ".repeat(LINE_BYTES_MAX + 1));
    let written = short(RequiredForm::ShortLines, format!("{spaces}\r\n").as_bytes());
    assert!(written.starts_with(spaces.as_bytes()));
    let long = header.lines().filter(|line| line.len() > LINE_BYTES_MAX);
    assert!(long.clone().all(|line| line.contains(&token)) && long.count() == 2, "{header}");
    assert!(header.lines().all(|line| !line.trim().is_empty()));
}

#[test]
fn malformed_structure_is_not_rewritten() {
    for message in [
        "",
        "Subject: x",
        "Subject: x\r\n",
        "Content-Transfer-Encoding: 8bit\r\n",
        "Content-Type: multipart/mixed\r\n\r\n--\r\n\r\nx\r\n",
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n--b\r\nContent-Type: text/html\r\n--b--\r\n",
        "Content-Type: multipart/mixed; boundary=b\r\nContent-Transfer-Encoding: base64\r\n\r\n--b\r\n\r\n",
        "Content-Type: text/plain\r\nContent-Transfer-Encoding: uuencode\r\n\r\nx\u{fc}\r\n",
    ] {
        assert_eq!(
            short(RequiredForm::ShortLines, message.as_bytes()),
            message.as_bytes(),
            "{message}"
        );
    }
    let deep = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n".repeat(100);
    assert!(short(RequiredForm::SevenBit, deep.as_bytes()).starts_with(deep.as_bytes()));
}

#[test]
fn envelope_line_in_a_header_does_not_end_it() {
    for envelope in ["From ada@us.test Mon Jan  5 2026\r\n", ">From ada@us.test Mon\r\n"] {
        let start = format!(
            "{HEADER}Content-Type: message/rfc822\r\n\r\n{envelope}Subject: inner\r\n\
             Content-Type: application/x\r\n"
        );
        let written = short(RequiredForm::ShortLines, format!("{start}\r\nabc").as_bytes());
        let end = "MIME-Version: 1.0\r\nContent-Transfer-Encoding: base64\r\n\r\nYWJj\r\n";
        assert_eq!(String::from_utf8(written).unwrap(), format!("{start}{end}"));
    }
}

#[test]
fn part_with_fields_that_are_too_long_is_unchanged() {
    let long = " ".repeat(FIELD_BYTES_MAX);
    for fields in [
        format!("Content-Type: multipart/mixed; boundary=b;{long}x=y\r\n"),
        format!("Content-Type: multipart/mixed;\r\n\t{long}boundary=b\r\n"),
        format!("Content-Transfer-Encoding:{long}base64\r\n"),
        format!("Content-Transfer-Encoding:\r\n base64\r\n\t{long}(x)\r\n (y)\r\n"),
    ] {
        let message = format!("{fields}Subject: Away\r\n\r\n--b\r\n\r\nx\u{fc}\r\n--b--\r\n");
        let written = String::from_utf8(short(RequiredForm::SevenBit, message.as_bytes())).unwrap();
        let unfolded = |text: &str| text.replace("\r\n ", " ").replace("\r\n\t", "\t");
        assert_eq!(unfolded(&written), unfolded(&message));
        assert!(written.ends_with(message.split_once("\r\nSubject").unwrap().1));
    }
}

proptest! {
    #[test]
    fn rewriting_does_not_depend_on_pieces(
        lines in proptest::collection::vec(
            prop_oneof![
                Just("Content-Type: multipart/mixed; boundary=b\r\n\r\n".to_string()),
                Just("Content-Type: message/rfc822\r\n\r\n".to_string()),
                Just("Content-Type: application/x\r\nContent-Transfer-Encoding: 8bit\r\n\r\n".to_string()),
                Just("Content-Transfer-Encoding: base64\r\n\r\n".to_string()),
                Just("--b\r\n".to_string()), Just("--b--\r\n".to_string()), Just("\r\n".to_string()),
                "[ -~]{0,80}\r\n", "[a-z =\u{fc}\t]{900,1100}\r\n", "[x \r]{4000,4200}\r\n", "[\r ]{0,3}",
            ], 0..16),
        piece in 1usize..5000,
    ) {
        let message = lines.concat();
        let whole = rewritten(RequiredForm::SevenBit, message.as_bytes(), usize::MAX);
        prop_assert_eq!(rewritten(RequiredForm::SevenBit, message.as_bytes(), piece), whole);
    }

    #[test]
    fn rewritten_text_reads_as_before(text in "[ -~\u{a0}-\u{ff}\t]{0,300}(\r\n[ -~\u{fc}\t-]{0,1500}){0,4}") {
        for kind in ["text/plain; charset=utf-8", "application/octet-stream"] {
            let message = format!("{HEADER}Content-Type: {kind}\r\n\r\n{text}\r\n");
            let (written, is_ascii) = rewritten(RequiredForm::SevenBit, message.as_bytes(), usize::MAX);
            prop_assert!(is_ascii && !has_long_lines(&written));
            prop_assert_eq!(leaves(&written), leaves(message.as_bytes()));
        }
        for end in ["\r\n", "", " ", "\r"] {
            let message = format!(
                "{HEADER}Content-Type: multipart/mixed; boundary=b1\r\n\r\n\
                 --b1\r\nContent-Type: application/x\r\n\r\n{text}\r\n--b1--{end}"
            );
            let (written, is_ascii) = rewritten(RequiredForm::SevenBit, message.as_bytes(), usize::MAX);
            let last = format!("\r\n--b1--{end}");
            prop_assert!(is_ascii && written.ends_with(last.as_bytes()));
            prop_assert_eq!(leaves(&written), leaves(message.as_bytes()));
        }
    }
}
