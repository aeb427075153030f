//! Parsing of replies.

use super::*;
use crate::reply::ReplyReader;
use crate::{Enhanced, Reply};

fn read(text: &str) -> Reply {
    let mut bytes = text.as_bytes();
    let reply = ReplyReader::default().arrived(&mut bytes).unwrap().unwrap().reply;
    assert!(bytes.is_empty());
    reply
}

#[test]
fn reply_has_code_enhanced_code_and_text() {
    let enhanced = Some(Enhanced { class: 5, subject: 1, detail: 1 });
    let expected = Reply { code: 550, enhanced, text: "no such user here".to_string() };
    assert_eq!(read("550-5.1.1 no such\r\n550 5.1.1 user here\r\n"), expected);
    assert_eq!(expected.to_string(), "550 5.1.1 no such user here");
    assert_eq!(read("250\n"), Reply { code: 250, enhanced: None, text: String::new() });
    assert_eq!(read("250\n").to_string(), "250");
}

#[test]
fn enhanced_code_must_match_the_reply_class() {
    for text in
        ["550 4.1.1 x", "550 5.1 x", "550 5.1.1111 x", "550 5.1.1.1 x", "550 5..1 x", "550 5.1.a x"]
    {
        let reply = read(&std::format!("{text}\r\n"));
        assert_eq!(reply.enhanced, None, "{text}");
        assert_eq!(reply.to_string(), text);
    }
    assert_eq!(read("550-5.1.1 x\r\n550 5.7.1 y\r\n").text, "x 5.7.1 y");
    assert_eq!(read("550 5.1.1\r\n").to_string(), "550 5.1.1");
}

#[test]
fn reply_text_is_short_and_printable() {
    let reply = read(&std::format!("550-\x1b[31m\u{e9}\r\n550 {}\r\n", "y".repeat(4000)));
    assert!(reply.text.starts_with("?[31m\u{e9} yyy"), "{reply}");
    assert_eq!(reply.text.len(), 512);
    let lines = std::format!("550-{}\r\n", "x".repeat(100)).repeat(127);
    assert_eq!(read(&std::format!("{lines}550 x\r\n")).text.len(), 512);
}

#[test]
fn reply_text_is_utf8_or_guessed() {
    let words = "\u{43d}\u{435}\u{442} \u{442}\u{430}\u{43a}\u{43e}\u{433}\u{43e}";
    assert_eq!(read(&std::format!("550 5.1.1 {words}\r\n")).text, words);
    let mut bytes = &b"550 5.1.1 gr\xfc\xdfe \x80 caf\xe9\r\n"[..];
    let reply = ReplyReader::default().arrived(&mut bytes).unwrap().unwrap().reply;
    assert_eq!(reply.text, "gr\u{fc}\u{df}e \u{20ac} caf\u{e9}");
    // The limits of a line and of a text cut no character.
    for before in 0..4 {
        let long = "x".repeat(before) + &"\u{1f600}".repeat(300);
        let reply = read(&std::format!("550 5.1.1 {long}\r\n"));
        assert!(long.starts_with(&reply.text) && reply.text.len() > 490, "{reply}");
    }
}

#[test]
fn extensions_are_case_insensitive_after_the_first_line() {
    let hello = "250-pipelining\r\n250-Size 7 x\r\n250-8bitmime\r\n250-auth=plain\r\n250-AUTH  Login\r\n250 sTARTTLS\r\n";
    let mut bytes = hello.as_bytes();
    let extensions = ReplyReader::default().arrived(&mut bytes).unwrap().unwrap().extensions;
    assert!(!extensions.pipelining, "the first line is a name");
    assert!(extensions.eight_bit && extensions.starttls && extensions.plain && extensions.login);
    assert_eq!(extensions.size, Some(7));
    assert!(!extensions.utf8 && !extensions.dsn);
}
