//! Tests of invalid line ends: no server reads one message as two, and no line contains a second
//! command.

use std::format;
use std::vec::Vec;

use proptest::prelude::*;

use super::world::Conversation;

const REFUSED: &str = "554 5.6.0 Message contains a bare CR or LF; lines must end with CRLF\r\n";

/// Texts that some server takes for the end of data, although they are not.
const FALSE_ENDS: &[&str] = &[
    "\n.\n",
    "\n.\r\n",
    "\r\n.\n",
    "\r.\r",
    "\r.\r\n",
    "\r\n.\r",
    "\r\n.\r\r\n",
    "\n.\r",
    "\r.\n",
    "\r\n\r.\r\n",
    "\r\r\n.\n",
    "\r\n.\r.\r\n",
    "\r\n.\n\r\n",
];

#[test]
fn false_end_of_data_is_refused() {
    for false_end in FALSE_ENDS {
        let hidden = "MAIL FROM:<boss@mail.test>\r\nRCPT TO:<bob@mail.test>\r\nDATA\r\nforged\r\n";
        let sent = std::format!("first{false_end}{hidden}\r\n.\r\nNOOP\r\n");
        for cut in 0..=sent.len() {
            let mut talk = Conversation::addressed();
            talk.says("DATA\r\n");
            talk.replies();
            talk.says(&sent[..cut]);
            talk.says(&sent[cut..]);
            assert_eq!(
                talk.replies(),
                std::format!("{REFUSED}250 2.0.0 OK\r\n"),
                "{false_end:?} cut at {cut}"
            );
            assert!(talk.world.messages.is_empty() && talk.world.is_settled());
        }
    }
}

#[test]
fn bare_line_end_in_data_is_rejected() {
    for message in ["\n", "\r", "a\nb", "a\rb", "\r\r\n", "a\r\n\nb", "\n\r\n", ".\n", ".\rx"] {
        let mut talk = Conversation::addressed();
        talk.says(std::format!("DATA\r\n{message}\r\n.\r\n"));
        assert!(talk.replies().ends_with(REFUSED), "{message:?}");
        assert!(talk.world.messages.is_empty() && talk.world.is_settled() && !talk.world.closed);
    }
}

#[test]
fn first_of_two_faults_in_data_is_reported() {
    const TOO_BIG: &str = "552 5.3.4 Message size exceeds the limit\r\n";
    for (length, line_end, expected) in
        [(998, "\n", REFUSED), (999, "\r", REFUSED), (1_000, "\n", TOO_BIG), (1_001, "\r", TOO_BIG)]
    {
        let sent = std::format!("{}{line_end}x\r\n.\r\nNOOP\r\n", "x".repeat(length));
        for cut in 0..=sent.len() {
            let mut talk = Conversation::addressed();
            talk.says("DATA\r\n");
            talk.replies();
            talk.says(&sent[..cut]);
            talk.says(&sent[cut..]);
            assert_eq!(
                talk.replies(),
                std::format!("{expected}250 2.0.0 OK\r\n"),
                "{length} cut at {cut}"
            );
        }
    }
}

#[test]
fn nul_in_data_is_rejected() {
    const NUL: &str = "554 5.6.0 Message contains a NUL byte\r\n";
    let long = "x".repeat(100);
    for (message, expected) in [
        ("\0", NUL),
        ("a\r\n\0.\r\nMAIL FROM:<a@b>\r\n", NUL),
        ("a\r\n.\0\r\n", NUL),
        (&format!("{long}\r\n{long}\0{long}"), NUL),
        ("\0\n", NUL),
        ("\n\0", REFUSED),
        ("\r\0", REFUSED),
        (&format!("\0{}", long.repeat(11)), NUL),
        (&format!("{}\0", long.repeat(11)), "552 5.3.4 Message size exceeds the limit\r\n"),
    ] {
        let sent = format!("{message}\r\n.\r\nNOOP\r\n");
        for cut in 0..=sent.len() {
            let mut talk = Conversation::addressed();
            talk.says("DATA\r\n");
            talk.replies();
            talk.says(&sent[..cut]);
            talk.says(&sent[cut..]);
            assert_eq!(
                talk.replies(),
                format!("{expected}250 2.0.0 OK\r\n"),
                "{message:?} cut at {cut}"
            );
            assert!(talk.world.messages.is_empty() && talk.world.is_settled());
        }
    }
    let mut talk = Conversation::addressed();
    talk.says("BDAT 3\r\na\0b");
    assert_eq!(talk.replies(), NUL);
}

#[test]
fn bare_cr_in_a_chunk_is_rejected() {
    for (chunk, refused) in [
        ("a\rb", true),
        ("a\r", true),
        ("a\r\r\n", true),
        ("\n\r.\n", true),
        ("\n.\r\n", false),
        ("a\r\n.\r\n.b", false),
    ] {
        let mut talk = Conversation::addressed();
        talk.says(std::format!("BDAT {} LAST\r\n{chunk}NOOP\r\n", chunk.len()));
        let answer = if refused { REFUSED } else { "250 2.0.0 Stored as 4D2\r\n" };
        assert_eq!(talk.replies(), std::format!("{answer}250 2.0.0 OK\r\n"), "{chunk:?}");
    }
}

#[test]
fn bare_line_end_in_a_command_ends_the_session() {
    for command in [
        "NOOP\nMAIL FROM:<a@b>\r\n",
        "NOOP\rMAIL FROM:<a@b>\r\n",
        "NOOP\n",
        "\n",
        "NOOP\r\r\n",
        "MAIL FROM:<a\n@b>\r\n",
    ] {
        let mut talk = Conversation::greeted();
        talk.exchange(&[
            (command, "521 5.5.2 Command contains a bare CR or LF; lines must end with CRLF\r\n"),
            ("MAIL FROM:<a@b>\r\n", ""),
        ]);
        assert!(talk.world.closed && talk.world.log.is_empty() && talk.kept.is_empty());
    }
    let mut talk = Conversation::greeted();
    talk.says(std::format!("NOOP {}\nMAIL FROM:<a@b>\r\n", "x".repeat(5_000)));
    assert_eq!(
        talk.replies(),
        "521 5.5.2 Command contains a bare CR or LF; lines must end with CRLF\r\n"
    );
}

#[test]
fn cr_waits_for_its_lf() {
    let mut talk = Conversation::greeted();
    talk.exchange(&[("NOOP\r", ""), ("\n", "250 2.0.0 OK\r\n")]);
}

/// The position after the end of data, by RFC 5321.
fn end_of_data(sent: &[u8]) -> Option<usize> {
    if sent.starts_with(b".\r\n") {
        return Some(3);
    }
    sent.windows(5).position(|window| window == b"\r\n.\r\n").map(|start| start + 5)
}

fn has_bare_line_end(content: &[u8]) -> bool {
    content.iter().enumerate().any(|(index, &byte)| match byte {
        b'\r' => content.get(index + 1) != Some(&b'\n'),
        b'\n' => index == 0 || content[index - 1] != b'\r',
        _ => false,
    })
}

proptest! {
    #[test]
    fn data_ends_where_the_standard_says(
        text in proptest::collection::vec(proptest::sample::select(b"\r\n.a".to_vec()), 0..40),
        cuts in proptest::collection::vec(0usize..60, 0..5),
    ) {
        let mut sent = text;
        sent.extend_from_slice(b"\r\n.\r\n");
        let end = end_of_data(&sent).unwrap();
        sent.truncate(end);
        let refused = has_bare_line_end(&sent);
        sent.extend_from_slice(b"NOOP\r\n");
        let mut talk = Conversation::addressed();
        talk.says("DATA\r\n");
        talk.replies();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (sent.len() + 1)).collect();
        cuts.sort_unstable();
        let mut from = 0;
        for cut in cuts.into_iter().chain([sent.len()]) {
            talk.says(&sent[from..cut]);
            from = cut;
        }
        let answer = if refused { REFUSED } else { "250 2.0.0 Stored as 4D2\r\n" };
        prop_assert_eq!(talk.replies(), std::format!("{answer}250 2.0.0 OK\r\n"));
        prop_assert_eq!(talk.world.messages.len(), usize::from(!refused));
    }
}
