//! Tests of composed messages. We and mail-parser read them back.

use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use machine::UnixTime;
use mail_parser::MimeHeaders as _;
use proptest::prelude::*;

use super::messages::{body, meant, read, text};
use crate::compose::{AttachedFile, Composer, Files, NewMessage, REFERENCES_MAX, Unwritable};
use crate::header::{Address, Header, HeaderMailbox};
use crate::structure::Disposition;

fn mailbox(name: &str, address: &str) -> HeaderMailbox {
    HeaderMailbox { name: name.to_string(), address: address.to_string() }
}

fn draft<'a>(from: &'a HeaderMailbox, to: &'a [HeaderMailbox], text: &'a str) -> NewMessage<'a> {
    NewMessage {
        from,
        to,
        cc: &[],
        bcc: &[],
        subject: "Hello",
        date: UnixTime::from_seconds(880_127_706),
        message_id: "1@example.org",
        in_reply_to: None,
        references: &[],
        text,
        html: None,
        secret: 0x1234_5678_9abc_def0,
        files: Files::None,
    }
}

/// The written message. `cut`: the length of the pieces in which files arrive.
fn written(draft: &NewMessage<'_>, files: &[(AttachedFile<'_>, &[u8])], cut: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut composer = Composer::begin(draft, &mut out).unwrap();
    for (file, bytes) in files {
        composer.file_began(file, &mut out);
        bytes.chunks(cut).for_each(|piece| composer.bytes_arrived(piece, &mut out));
        composer.file_ended(&mut out);
    }
    composer.message_ended(&mut out);
    check_lines(&out);
    out
}

/// Asserts that lines end in CRLF and are short, and that all text except addresses is ASCII.
fn check_lines(message: &[u8]) {
    let message = str::from_utf8(message).unwrap();
    assert!(
        message.ends_with("\r\n") && !message.replace("\r\n", "").contains(['\r', '\n']),
        "{message:?}"
    );
    let header = message.split("\r\n\r\n").next().unwrap();
    for line in message.split("\r\n") {
        assert!(line.len() <= 998, "{line}");
        assert!(line.is_ascii() || line.contains('@'), "{line}");
    }
    for line in header.split("\r\n") {
        assert!(
            line.len() <= 78 || !line.trim_start().contains(' ') || line.contains('@'),
            "{line}"
        );
        assert!(!line.trim().is_empty());
    }
}

#[test]
fn message_is_written_as_the_rfcs_say() {
    let from = mailbox("Ada", "ada@example.org");
    let to = [
        mailbox("", "bob@example.net"),
        mailbox("Doe, \"J.\"", "j@example.org"),
        mailbox("Jörg", "joerg@example.org"),
    ];
    let draft = NewMessage {
        subject: "Grüße",
        in_reply_to: Some(b"0@example.net"),
        references: &[b"a@example.net", b"0@example.net"],
        ..draft(&from, &to, "Hello,\n\n> you said\nFrom here on. ")
    };
    let message = String::from_utf8(written(&draft, &[], 1)).unwrap();
    assert_eq!(
        message,
        "Date: Fri, 21 Nov 1997 15:55:06 +0000\r\nFrom: Ada <ada@example.org>\r\n\
         To: bob@example.net, \"Doe, \\\"J.\\\"\" <j@example.org>,\r\n =?utf-8?B?SsO2cmc=?= <joerg@example.org>\r\n\
         Subject: =?utf-8?B?R3LDvMOfZQ==?=\r\nMessage-ID: <1@example.org>\r\nIn-Reply-To: <0@example.net>\r\n\
         References: <a@example.net> <0@example.net>\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8; format=flowed\r\nContent-Transfer-Encoding: 7bit\r\n\r\n\
         Hello,\r\n\r\n> you said\r\n From here on.\r\n"
    );
}

#[test]
fn files_and_html_are_written() {
    let from = mailbox("Ada", "ada@example.org");
    let to = [mailbox("", "bob@example.net")];
    let draft =
        NewMessage { html: Some("<p>Grüße"), files: Files::Some, ..draft(&from, &to, "Grüße") };
    let files = [
        (
            AttachedFile {
                name: "naïve plan with a name that is much longer than a line has room for, and then some more of it.txt",
                media_type: "text/plain",
            },
            &b"one"[..],
        ),
        (AttachedFile { name: "a \"b\".eml", media_type: "message/rfc822" }, &[7; 1_000][..]),
        (AttachedFile { name: "../x\r\nX: y", media_type: "no type\r\nX: y" }, b""),
    ];
    let message = written(&draft, &files, 10);
    let structure = read(&message);
    let types: Vec<(usize, &str)> =
        structure.parts.iter().map(|part| (part.depth, &*part.media_type)).collect();
    let unknown = "application/octet-stream";
    let expected = [
        (0, "multipart/mixed"),
        (1, "multipart/alternative"),
        (2, "text/plain"),
        (2, "text/html"),
        (1, "text/plain"),
        (1, unknown),
        (1, unknown),
    ];
    assert_eq!(types, expected);
    assert_eq!(text(&structure.parts[2], &[body(&message, &structure.parts[2])]), "Grüße\n");
    assert_eq!(text(&structure.parts[3], &[body(&message, &structure.parts[3])]), "<p>Grüße\r\n");
    for ((file, bytes), part) in files.iter().zip(&structure.parts[4..]) {
        assert_eq!(meant(&message, part), *bytes);
        assert_eq!(part.disposition, Disposition::Attachment);
        assert_eq!(
            part.file_name.as_deref().unwrap(),
            file.name.rsplit('/').next().unwrap().replace("\r\n", "  ")
        );
    }
    let theirs = mail_parser::MessageParser::default().parse(&message).unwrap();
    assert_eq!(theirs.attachment_count(), 3);
    assert_eq!(theirs.attachment(0).unwrap().attachment_name(), Some(files[0].0.name));
    assert_eq!(theirs.attachment(1).unwrap().contents(), files[1].1);
    // Files in one piece give the same message.
    assert_eq!(written(&draft, &files, usize::MAX), message);
}

#[test]
fn text_that_could_contain_a_boundary_is_encoded() {
    let from = mailbox("", "ada@example.org");
    let draft = draft(&from, &[], "--=_m0000\n--=_a");
    let message = String::from_utf8(written(
        &NewMessage { html: Some("=_"), files: Files::Some, ..draft },
        &[],
        1,
    ))
    .unwrap();
    assert!(message.contains("--=3D_m0000") && !message.contains("7bit"), "{message}");
}

#[test]
fn invalid_address_or_identifier_is_not_written() {
    let from = mailbox("Ada", "ada@example.org");
    let refused = |draft: &NewMessage<'_>| {
        let mut out = Vec::new();
        let refused = Composer::begin(draft, &mut out).err();
        assert!(refused.is_none() || out.is_empty());
        refused
    };
    for address in [
        "",
        "ada",
        "@example.org",
        "ada@",
        "a b@example.org",
        "a@b>",
        "a@b, c@d",
        "a@b\r\nX: y",
        "a..b@c",
        "\"a\"b\"@c",
        "\"a\\\"@c",
        "a@[1.2.3.4",
        "a\u{85}b@c",
    ] {
        let to = [mailbox("x", address)];
        assert_eq!(refused(&draft(&from, &to, "")), Some(Unwritable::Address), "{address}");
    }
    for address in [
        "a@b",
        "a.b+c@d.e",
        "\"a b\\\"\"@c",
        "a@[192.0.2.1]",
        "почта@пример.рф",
        "a@[IPv6:2001:db8::1]",
    ] {
        let to = [mailbox("x", address)];
        assert_eq!(refused(&draft(&from, &to, "")), None, "{address}");
        let message = written(&draft(&from, &to, ""), &[], 1);
        assert_eq!(
            Header::new(&message).field("To").unwrap().addresses(),
            [Address::Mailbox(to[0].clone())]
        );
    }
    assert_eq!(
        refused(&NewMessage { message_id: "a> <b", ..draft(&from, &[], "") }),
        Some(Unwritable::Identifier)
    );
    // Invalid identifiers of other messages are left out.
    let others = NewMessage {
        in_reply_to: Some(b"a\r\nX: y"),
        references: &[b"", b"a b", b"good@one"],
        ..draft(&from, &[], "")
    };
    let message = written(&others, &[], 1);
    let header = Header::new(&message);
    assert!(header.field("In-Reply-To").is_none() && header.field("X").is_none());
    assert!(header.field("References").unwrap().identifiers().eq([b"good@one"]));
}

#[test]
fn words_of_any_length_are_folded() {
    for length in 1..200 {
        for name in ["a".repeat(length), "\"".repeat(length), "b ".repeat(length)] {
            let from = mailbox(&name, "ada@example.org");
            let message = written(&NewMessage { subject: &name, ..draft(&from, &[], "") }, &[], 1);
            let header = Header::new(&message);
            assert_eq!(header.field("Subject").unwrap().text(), name.trim());
            let expected = Address::Mailbox(mailbox(name.trim(), "ada@example.org"));
            assert_eq!(header.field("From").unwrap().addresses(), [expected]);
        }
    }
    let from = mailbox("=?utf-8?q?a?=", "ada@example.org");
    let message = written(&NewMessage { subject: &from.name, ..draft(&from, &[], "") }, &[], 1);
    let header = Header::new(&message);
    assert_eq!(header.field("Subject").unwrap().text(), from.name);
    assert_eq!(header.field("From").unwrap().addresses(), [Address::Mailbox(from.clone())]);
}

#[test]
fn first_and_latest_references_are_written() {
    let from = mailbox("", "ada@example.org");
    let known: Vec<Vec<u8>> =
        (0..50).map(|number| format!("{number}@example.org").into_bytes()).collect();
    let known: Vec<&[u8]> = known.iter().map(Vec::as_slice).collect();
    let message = written(&NewMessage { references: &known, ..draft(&from, &[], "") }, &[], 1);
    let kept: Vec<&[u8]> =
        Header::new(&message).field("References").unwrap().identifiers().collect();
    assert_eq!(kept, [&known[..1], &known[50 - (REFERENCES_MAX - 1)..]].concat());
}

/// The text that is read back: spaces at the ends of lines are lost, and quotes have one form.
fn as_read(text: &str) -> String {
    let line = |line: &str| {
        let unquoted = line.trim_start_matches('>');
        let depth = line.len() - unquoted.len();
        let content =
            if depth > 0 { unquoted.strip_prefix(' ').unwrap_or(unquoted) } else { unquoted };
        let content = if content == "-- " { content } else { content.trim_end_matches(' ') };
        let marks = if depth > 0 { ">".repeat(depth) + " " } else { String::new() };
        format!("{marks}{content}\n")
    };
    text.lines().map(line).collect()
}

proptest! {
    #[test]
    fn text_is_read_as_it_was_written(
        lines in proptest::collection::vec(prop_oneof![
            "(> ?|>> ?|)([a-zé€-]{1,9} {0,2}){0,40}", "[ -~]{0,200}", Just("-- ".to_string()), Just("From x".to_string()), "[ >-]{0,90}", "a{900,1100}", "[😀é]{0,200}",
        ], 0..8),
    ) {
        let found = lines.join("\n");
        let from = mailbox("", "a@b");
        let message = written(&draft(&from, &[], &found), &[], 1);
        let part = &read(&message).parts[0];
        let read_back = text(part, &[body(&message, part)]);
        prop_assert_eq!(read_back, as_read(&found));
        let encoded = body(&message, part);
        prop_assert!(encoded.split(|byte| *byte == b'\n').all(|line| line.len() <= 77 || part.encoding == crate::structure::Encoding::Identity));
    }

    #[test]
    fn names_and_subjects_are_read_as_they_were_written(
        name in ".{0,100}", subject in prop_oneof![".{0,200}", "([a-z]{1,30} ?){0,30}", "(=\\?|[a-zé ]|Re: ){0,40}"], many in 1usize..30,
    ) {
        let from = mailbox(&name, "ada@example.org");
        let to = vec![from.clone(); many];
        let message = written(&NewMessage { subject: &subject, ..draft(&from, &to, "") }, &[], 1);
        let as_line = |text: &str| text.replace(|c: char| c.is_control(), " ").trim().to_string();
        let header = Header::new(&message);
        prop_assert_eq!(header.field("Subject").unwrap().text(), as_line(&subject));
        let expected = vec![Address::Mailbox(mailbox(&as_line(&name), "ada@example.org")); many];
        prop_assert_eq!(header.field("To").unwrap().addresses(), expected);
        prop_assert_eq!(header.fields().count(), 8);
    }

    #[test]
    fn file_is_read_as_it_was_written(name in ".{0,80}", bytes in proptest::collection::vec(any::<u8>(), 0..500), cut in 1usize..200) {
        let from = mailbox("", "ada@example.org");
        let file = AttachedFile { name: &name, media_type: "application/pdf" };
        let message = written(&NewMessage { files: Files::Some, ..draft(&from, &[], "x") }, &[(file, &bytes)], cut);
        let structure = read(&message);
        prop_assert_eq!(structure.parts.len(), 3);
        prop_assert_eq!(meant(&message, &structure.parts[2]), bytes);
        let as_name = name.replace(|c: char| c.is_control(), " ");
        let as_name = as_name.trim().rsplit(['/', '\\']).next().unwrap().trim();
        let mut expected = as_name.to_string();
        expected.truncate(expected.floor_char_boundary(255));
        prop_assert_eq!(structure.parts[2].file_name.clone().unwrap_or_default(), expected);
    }
}
