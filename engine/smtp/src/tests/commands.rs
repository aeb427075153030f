//! Tests of every command, in and out of order.

use std::string::ToString;

use super::world::{Conversation, World};
use crate::{Extensions, Haste, LINE_BYTES_MAX, MessageRefusal, SenderRefusal};

#[test]
fn message_is_accepted_and_acknowledged() {
    let mut talk = Conversation::greeted();
    talk.exchange(&[
        ("MAIL FROM:<ada@example.org> SIZE=20 BODY=8BITMIME\r\n", "250 2.1.0 Sender OK\r\n"),
        ("RCPT TO:<bob@mail.test>\r\n", "250 2.1.5 Recipient OK\r\n"),
        ("RCPT TO:<Postmaster>\r\n", "250 2.1.5 Recipient OK\r\n"),
        ("DATA\r\n", "354 End data with <CR><LF>.<CR><LF>\r\n"),
        ("Subject: x\r\n\r\nHello\r\n.\r\n", "250 2.0.0 Stored as 4D2\r\n"),
        ("QUIT\r\n", "221 2.0.0 Bye\r\n"),
    ]);
    assert_eq!(talk.world.messages, [b"Subject: x\r\n\r\nHello\r\n"]);
    assert_eq!(
        talk.world.log,
        [
            "from <ada@example.org> Some(20) EightBitMime Ascii",
            "to <bob@mail.test>",
            "to <Postmaster>",
            "message from client.test by Esmtp for 2",
            "over",
        ]
    );
    assert!(talk.world.closed);
}

#[test]
fn ehlo_announces_the_extensions() {
    let mut talk = Conversation::new();
    talk.exchange(&[(
        "EHLO client.test\r\n",
        "250-mail.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-ENHANCEDSTATUSCODES\r\n\
         250-CHUNKING\r\n250-DSN\r\n250-SIZE 1000\r\n250-LIMITS RCPTMAX=3\r\n250 HELP\r\n",
    )]);
}

#[test]
fn each_extension_can_be_left_out_of_ehlo() {
    let mut world = World::new();
    world.settings.extensions = Extensions::ALL
        .without(Extensions::CHUNKING)
        .without(Extensions::LIMITS)
        .without(Extensions::DSN);
    let mut talk = Conversation::with(world);
    talk.exchange(&[(
        "EHLO client.test\r\n",
        "250-mail.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-ENHANCEDSTATUSCODES\r\n\
         250-SIZE 1000\r\n250 HELP\r\n",
    )]);
    let mut world = World::new();
    world.settings.extensions = Extensions::ALL.without(Extensions::ALL);
    Conversation::with(world)
        .exchange(&[("EHLO client.test\r\n", "250-mail.test\r\n250 HELP\r\n")]);
}

#[test]
fn helo_and_ehlo_name_the_protocol() {
    for (greeting, mail, expected) in [
        ("HELO [192.0.2.1]", "MAIL FROM:<>", "message from [192.0.2.1] by Smtp for 1"),
        ("EHLO under_score", "MAIL FROM:<>", "message from under_score by Esmtp for 1"),
        ("ehlo [IPv6:::1]", "mail from:<> smtputf8", "message from [IPv6:::1] by Utf8Smtp for 1"),
        ("HELO a", "MAIL FROM:<> SMTPUTF8", "message from a by Smtp for 1"),
    ] {
        let mut talk = Conversation::new();
        talk.says(std::format!("{greeting}\r\n{mail}\r\nRCPT TO:<b@c>\r\nDATA\r\n.\r\n"));
        assert!(talk.replies().ends_with("250 2.0.0 Stored as 4D2\r\n"));
        assert_eq!(talk.world.log[2], expected);
        assert_eq!(talk.world.messages, [b""]);
    }
}

#[test]
fn ehlo_names_of_any_length_are_passed_on_unchanged() {
    for length in [1, 61, 62, 63, 64, 254, 255] {
        let name = "n".repeat(length);
        let mut talk = Conversation::new();
        talk.says(std::format!("EHLO {name}\r\nMAIL FROM:<>\r\nRCPT TO:<b@c>\r\nDATA\r\n"));
        assert_eq!(talk.world.log[2], std::format!("message from {name} by Esmtp for 1"));
    }
}

#[test]
fn ehlo_name_is_kept_without_harmful_characters() {
    let long = [&b"\xfc".repeat(60)[..], b"x"].concat();
    for (name, kept) in [
        (&b"two words"[..], "two?words"),
        (b"a(b)", "a?b?"),
        (b"m\xc3\xbcller", "m??ller"),
        (b"m\xfcller", "m?ller"),
        (b"a\0\x07\t;b", "a????b"),
        (b"<x>@,\"\\", "?x?????"),
        (b"[192.0.2.1]", "[192.0.2.1]"),
        (&long, &("?".repeat(60) + "x")),
    ] {
        for verb in ["EHLO", "helo"] {
            let mut talk = Conversation::new();
            talk.says([verb.as_bytes(), b" ", name, b" \r\n"].concat());
            assert!(talk.replies().starts_with("250"), "{kept}");
            talk.says("MAIL FROM:<>\r\nRCPT TO:<b@c>\r\nDATA\r\n");
            assert!(talk.world.log[2].starts_with(&std::format!("message from {kept} by ")));
        }
    }
}

#[test]
fn path_errors_tell_sender_and_recipient_apart() {
    let long = std::format!("<{}@b>", "l".repeat(65));
    let mut talk = Conversation::greeted();
    talk.exchange(&[
        ("MAIL FROM:\r\n", "501 5.1.7 Invalid sender address, must be <local-part@domain>\r\n"),
        ("MAIL FROM:<a@>\r\n", "501 5.1.7 Invalid sender address, must be <local-part@domain>\r\n"),
        (&std::format!("MAIL FROM:{long}\r\n"), "501 5.1.7 Sender address is too long\r\n"),
        ("MAIL FROM:a@b\r\n", "250 2.1.0 Sender OK\r\n"),
        ("RCPT TO:<>\r\n", "501 5.1.3 Invalid recipient address, must be <local-part@domain>\r\n"),
        (
            "RCPT TO: NOTIFY=NEVER\r\n",
            "501 5.1.3 Invalid recipient address, must be <local-part@domain>\r\n",
        ),
        (&std::format!("RCPT TO:{long}\r\n"), "501 5.1.3 Recipient address is too long\r\n"),
        ("RCPT TO:\t c@d NOTIFY=NEVER\r\n", "250 2.1.5 Recipient OK\r\n"),
    ]);
    assert_eq!(talk.world.log[0], "from <a@b> None SevenBit Ascii");
    assert_eq!(talk.world.log[1], "to <c@d>");
}

#[test]
fn ehlo_needs_a_name_of_limited_length() {
    const REFUSED: &str = "501 5.5.4 Send your host name or an address literal\r\n";
    let long = "EHLO ".to_string() + &"n".repeat(256) + "\r\n";
    let mut talk = Conversation::new();
    talk.exchange(&[
        ("EHLO\r\n", REFUSED),
        ("HELO \r\n", REFUSED),
        (&long, REFUSED),
        ("EHLOx\r\n", "500 5.5.1 Unknown command\r\n"),
        ("MAIL FROM:<a@b>\r\n", "503 5.5.1 Send EHLO or HELO first\r\n"),
        ("HELO ok\r\n", "250 mail.test\r\n"),
        ("MAIL FROM:<a@b>\r\n", "250 2.1.0 Sender OK\r\n"),
    ]);
}

#[test]
fn commands_out_of_order_are_refused() {
    let mut talk = Conversation::greeted();
    talk.exchange(&[
        ("RCPT TO:<a@b>\r\n", "503 5.5.1 Send MAIL first\r\n"),
        ("DATA\r\n", "503 5.5.1 Send MAIL first\r\n"),
        ("MAIL FROM:<a@b>\r\n", "250 2.1.0 Sender OK\r\n"),
        ("MAIL FROM:<c@d>\r\n", "503 5.5.1 MAIL already sent, send RSET to start again\r\n"),
        ("DATA\r\n", "554 5.5.1 No valid recipients\r\n"),
        ("RCPT TO:<a@b>\r\n", "250 2.1.5 Recipient OK\r\n"),
        ("DATA now\r\n", "501 5.5.4 Invalid arguments\r\n"),
        ("DATA\r\n", "354 End data with <CR><LF>.<CR><LF>\r\n"),
        (".\r\n", "250 2.0.0 Stored as 4D2\r\n"),
        ("DATA\r\n", "503 5.5.1 Send MAIL first\r\n"),
        ("RCPT TO:<a@b>\r\n", "503 5.5.1 Send MAIL first\r\n"),
    ]);
    assert_eq!(talk.world.log[0], "from <a@b> None SevenBit Ascii");
}

#[test]
fn rset_and_ehlo_end_the_transaction() {
    for command in ["RSET\r\n", "EHLO again\r\n", "HELO again\r\n"] {
        let mut talk = Conversation::addressed();
        talk.says(command);
        assert!(talk.replies().starts_with("250"));
        assert!(talk.world.is_settled());
        talk.exchange(&[
            ("RCPT TO:<a@b>\r\n", "503 5.5.1 Send MAIL first\r\n"),
            ("MAIL FROM:<a@b>\r\n", "250 2.1.0 Sender OK\r\n"),
        ]);
    }
}

#[test]
fn noop_help_and_vrfy_are_answered_anywhere() {
    let verify =
        "252 2.5.0 Cannot verify the user, but will accept the message and try to deliver it\r\n";
    let help = "214 2.0.0 See RFC 5321, or write to postmaster for help\r\n";
    for mut talk in [Conversation::new(), Conversation::greeted(), Conversation::addressed()] {
        talk.exchange(&[
            ("NOOP\r\n", "250 2.0.0 OK\r\n"),
            ("noop whatever\r\n", "250 2.0.0 OK\r\n"),
            ("VRFY ada\r\n", verify),
            ("VRFY\r\n", "501 5.5.4 Invalid arguments\r\n"),
            ("HELP\r\n", help),
            ("HELP MAIL\r\n", help),
            ("EXPN list\r\n", "502 5.5.1 Command not implemented\r\n"),
            ("STARTTLS\r\n", "502 5.5.1 Command not implemented\r\n"),
            ("AUTH PLAIN AGEAYg==\r\n", "502 5.5.1 Command not implemented\r\n"),
            ("\r\n", "500 5.5.1 Unknown command\r\n"),
            ("M\u{e4}IL\r\n", "500 5.5.1 Unknown command\r\n"),
            ("RSET now\r\n", "501 5.5.4 Invalid arguments\r\n"),
            ("QUIT now\r\n", "501 5.5.4 Invalid arguments\r\n"),
            ("RSET \t \r\n", "250 2.0.0 OK\r\n"),
            ("QUIT\r\n", "221 2.0.0 Bye\r\n"),
        ]);
        assert!(talk.world.closed && talk.world.is_settled());
    }
}

#[test]
fn unknown_mail_parameters_are_refused() {
    const SYNTAX: &str = "501 5.5.4 Invalid parameter value\r\n";
    let mut talk = Conversation::greeted();
    talk.world.settings.faults_max = 100;
    for (parameters, reply) in [
        (" SIZE=1000", "250 2.1.0 Sender OK\r\n"),
        (" size=0  body=7bit", "250 2.1.0 Sender OK\r\n"),
        (" SMTPUTF8", "250 2.1.0 Sender OK\r\n"),
        (" SIZE=1001", "552 5.3.4 Message size exceeds the limit\r\n"),
        (" SIZE=99999999999999999999", "552 5.3.4 Message size exceeds the limit\r\n"),
        (" SIZE=100000000000000000000", SYNTAX),
        (" SIZE=", SYNTAX),
        (" SIZE", SYNTAX),
        (" SIZE=+1", SYNTAX),
        (" SIZE=1 SIZE=1", SYNTAX),
        (" BODY=BINARYMIME", SYNTAX),
        (" BODY", SYNTAX),
        (" BODY=7BIT BODY=7BIT", SYNTAX),
        (" SMTPUTF8=1", SYNTAX),
        (" SMTPUTF8 SMTPUTF8", SYNTAX),
        (" X", "555 5.5.4 Unsupported parameter\r\n"),
        ("SIZE=1", "250 2.1.0 Sender OK\r\n"),
        ("x", "555 5.5.4 Unsupported parameter\r\n"),
        ("<c@d>", "555 5.5.4 Unsupported parameter\r\n"),
    ] {
        let command = std::format!("MAIL FROM:<a@b>{parameters}\r\n");
        talk.exchange(&[(&command, reply), ("RSET\r\n", "250 2.0.0 OK\r\n")]);
    }
    talk.exchange(&[
        ("MAIL FROM:<a@b>\r\n", "250 2.1.0 Sender OK\r\n"),
        ("RCPT TO:<a@b> X\r\n", "555 5.5.4 Unsupported parameter\r\n"),
        ("RCPT TO:<a@b> \r\n", "250 2.1.5 Recipient OK\r\n"),
    ]);
}

#[test]
fn recipients_are_refused_separately_with_a_reason() {
    let mut talk = Conversation::greeted();
    talk.world.reason = "listed\r\n: \u{e4}ask there".to_string();
    talk.exchange(&[
        ("MAIL FROM:<a@b>\r\n", "250 2.1.0 Sender OK\r\n"),
        ("RCPT TO:<nobody@mail.test>\r\n", "550 5.1.1 No such user here\r\n"),
        ("RCPT TO:<elsewhere@mail.test>\r\n", "550 5.7.1 Relaying denied\r\n"),
        ("RCPT TO:<abridged@mail.test>\r\n", "554 5.1.2 Domain name is not fully qualified\r\n"),
        ("RCPT TO:<full@mail.test>\r\n", "452 4.2.2 Mailbox is full, try again later\r\n"),
        ("RCPT TO:<small@mail.test>\r\n", "552 5.2.2 Message is larger than the mailbox quota\r\n"),
        (
            "RCPT TO:<asleep@mail.test>\r\n",
            "450 4.2.1 Mailbox temporarily unavailable, try again later\r\n",
        ),
        ("RCPT TO:<toomany@mail.test>\r\n", "452 4.5.3 Too many recipients\r\n"),
        (
            "RCPT TO:<often@mail.test>\r\n",
            "450 4.7.1 Too many recipients from your IP address, try again later\r\n",
        ),
        ("RCPT TO:<new@mail.test>\r\n", "450 4.7.1 Greylisted, try again in a few minutes\r\n"),
        (
            "RCPT TO:<unchecked@mail.test>\r\n",
            "451 4.7.0 Cannot check your IP address now, try again later\r\n",
        ),
        ("RCPT TO:<unwanted@mail.test>\r\n", "554 5.7.1 listed: ask there\r\n"),
        ("DATA\r\n", "554 5.5.1 No valid recipients\r\n"),
        ("RCPT TO:<1@mail.test>\r\n", "250 2.1.5 Recipient OK\r\n"),
        ("RCPT TO:<2@mail.test>\r\n", "250 2.1.5 Recipient OK\r\n"),
        ("RCPT TO:<3@mail.test>\r\n", "250 2.1.5 Recipient OK\r\n"),
        ("RCPT TO:<4@mail.test>\r\n", "452 4.5.3 Too many recipients\r\n"),
        ("DATA\r\n", "354 End data with <CR><LF>.<CR><LF>\r\n"),
        ("x\r\n.\r\n", "250 2.0.0 Stored as 4D2\r\n"),
    ]);
    assert!(talk.world.log.contains(&"message from client.test by Esmtp for 3".to_string()));
}

#[test]
fn guessing_recipients_ends_the_session() {
    let mut talk = Conversation::addressed();
    let reply = "421 4.7.0 Too many unknown recipients from your IP address, try again later\r\n";
    talk.exchange(&[("RCPT TO:<guessed@mail.test>\r\n", reply)]);
    assert!(talk.world.closed && talk.world.is_settled());
}

#[test]
fn long_reason_is_cut_to_one_line() {
    let mut talk = Conversation::addressed();
    talk.world.reason = "x".repeat(2_000);
    let reply = std::format!("554 5.7.1 {}\r\n", "x".repeat(500));
    talk.exchange(&[("RCPT TO:<unwanted@mail.test>\r\n", reply.as_str())]);
}

#[test]
fn non_ascii_addresses_need_smtputf8() {
    const REFUSED: &str = "553 5.6.7 Non-ASCII address requires SMTPUTF8\r\n";
    let mut talk = Conversation::greeted();
    talk.exchange(&[
        ("MAIL FROM:<m\u{fc}ller@example.org>\r\n", REFUSED),
        ("MAIL FROM:<a@m\u{fc}ller.example> BODY=8BITMIME\r\n", REFUSED),
        ("MAIL FROM:<a@b>\r\n", "250 2.1.0 Sender OK\r\n"),
        ("RCPT TO:<m\u{fc}ller@mail.test>\r\n", REFUSED),
        ("RSET\r\n", "250 2.0.0 OK\r\n"),
        ("MAIL FROM:<m\u{fc}ller@example.org> SMTPUTF8\r\n", "250 2.1.0 Sender OK\r\n"),
        (
            "RCPT TO:<\"\u{65e5}\u{672c}\"@\u{65e5}\u{672c}.example>\r\n",
            "250 2.1.5 Recipient OK\r\n",
        ),
    ]);
    talk.says(b"MAIL FROM:<m\xfcller@example.org> SMTPUTF8\r\n");
    assert_eq!(talk.replies(), "500 5.5.2 Line is not valid UTF-8\r\n");
}

#[test]
fn sender_is_refused_without_disk_space() {
    for (refusal, reply) in [
        (SenderRefusal::StorageFull, "452 4.3.1 Insufficient system storage, try again later\r\n"),
        (
            SenderRefusal::IndexFull,
            "452 4.3.1 The server has reached its maximum number of messages, try again later\r\n",
        ),
        (SenderRefusal::TooBig, "552 5.3.4 Message size exceeds the limit\r\n"),
        (SenderRefusal::Busy, "451 4.3.2 Server is busy, try again later\r\n"),
        (SenderRefusal::DiskFailed, "451 4.3.0 The server's disk has failed, try again later\r\n"),
    ] {
        let mut talk = Conversation::greeted();
        talk.world.sender_refusal = Some(refusal);
        talk.exchange(&[
            ("MAIL FROM:<a@b>\r\n", reply),
            ("RCPT TO:<a@b>\r\n", "503 5.5.1 Send MAIL first\r\n"),
        ]);
        talk.world.sender_refusal = None;
        talk.exchange(&[("MAIL FROM:<a@b>\r\n", "250 2.1.0 Sender OK\r\n")]);
    }
}

#[test]
fn message_that_cannot_begin_ends_its_transaction() {
    let mut talk = Conversation::addressed();
    talk.world.begin_refusal = Some(MessageRefusal::StorageFull);
    talk.exchange(&[
        ("DATA\r\n", "452 4.3.1 Insufficient system storage, try again later\r\n"),
        ("DATA\r\n", "503 5.5.1 Send MAIL first\r\n"),
    ]);
    assert!(talk.world.is_settled());
}

#[test]
fn command_line_length_is_limited() {
    let mut talk = Conversation::new();
    let longest = "NOOP ".to_string() + &"x".repeat(LINE_BYTES_MAX - 7) + "\r\n";
    assert_eq!(longest.len(), LINE_BYTES_MAX);
    talk.exchange(&[(&longest, "250 2.0.0 OK\r\n")]);
    let endless = "NOOP ".to_string() + &"x".repeat(10_000);
    talk.exchange(&[
        (&endless, ""),
        (&endless, ""),
        ("\r", ""),
        ("\nNOOP\r\n", "500 5.5.2 Line too long\r\n250 2.0.0 OK\r\n"),
    ]);
    assert!(talk.kept.is_empty());
}

#[test]
fn too_many_faults_end_the_session() {
    let mut talk = Conversation::new();
    for _ in 0..20 {
        talk.exchange(&[("XYZZY\r\n", "500 5.5.1 Unknown command\r\n")]);
    }
    talk.exchange(&[("XYZZY\r\nNOOP\r\n", "421 4.7.0 Too many errors\r\n"), ("NOOP\r\n", "")]);
    assert!(talk.world.closed && talk.kept.is_empty());
}

#[test]
fn commands_without_a_message_are_limited() {
    const TOO_MANY: &str = "421 4.7.0 Too many commands without a message\r\n";
    for command in
        ["NOOP\r\n", "RSET\r\n", "VRFY ada\r\n", "HELP\r\n", "EHLO a\r\n", "HELO a\r\n", "DATA\r\n"]
    {
        let mut talk = Conversation::new();
        (talk.world.settings.idle_commands_max, talk.world.settings.faults_max) = (5, 100);
        for _ in 0..5 {
            talk.says(command);
            assert!(!talk.replies().contains("421"), "{command}");
        }
        talk.exchange(&[(command, TOO_MANY), (command, "")]);
        assert!(talk.world.closed && talk.kept.is_empty());
    }
}

#[test]
fn accepted_message_resets_the_command_limit() {
    let mut talk = Conversation::greeted();
    talk.world.settings.idle_commands_max = 4;
    for _ in 0..5 {
        talk.says("MAIL FROM:<>\r\nRCPT TO:<b@c>\r\nDATA\r\n.\r\n");
        assert!(talk.replies().ends_with("250 2.0.0 Stored as 4D2\r\n"));
        talk.exchange(&[("NOOP\r\nRSET\r\n", "250 2.0.0 OK\r\n250 2.0.0 OK\r\n")]);
    }
}

#[test]
fn accepted_message_resets_the_fault_count() {
    let mut talk = Conversation::greeted();
    for _ in 0..5 {
        for _ in 0..20 {
            talk.exchange(&[("XYZZY\r\n", "500 5.5.1 Unknown command\r\n")]);
        }
        talk.says("MAIL FROM:<>\r\nRCPT TO:<b@c>\r\nDATA\r\n.\r\n");
        assert!(talk.replies().ends_with("250 2.0.0 Stored as 4D2\r\n"));
    }
}

#[test]
fn refused_recipients_of_a_session_are_limited() {
    let mut talk = Conversation::greeted();
    for _ in 0..50 {
        talk.says("MAIL FROM:<>\r\nRCPT TO:<nobody@c>\r\nRCPT TO:<nobody@c>\r\nRSET\r\n");
    }
    assert!(!talk.world.closed);
    talk.replies();
    talk.exchange(&[
        ("MAIL FROM:<>\r\n", "250 2.1.0 Sender OK\r\n"),
        ("RCPT TO:<nobody@c>\r\n", "421 4.7.0 Too many errors\r\n"),
    ]);
    assert!(talk.world.closed && talk.world.is_settled());
}

#[test]
fn http_requests_end_the_session() {
    for request in ["GET / HTTP/1.1\r\n", "POST /mail HTTP/1.1\r\n", "CONNECT a:25 HTTP/1.1\r\n"] {
        let mut talk = Conversation::new();
        let hidden = request.to_string() + "Host: a\r\n\r\nEHLO a\r\nMAIL FROM:<a@b>\r\n";
        talk.exchange(&[(&hidden, "521 5.5.1 This is an SMTP server\r\n")]);
        assert!(talk.world.closed && talk.world.log.is_empty());
    }
}

#[test]
fn early_talker_is_refused_if_configured() {
    const TOO_SOON: &str =
        "554 5.5.0 Improper pipelining: wait for the server's reply before you send more\r\n";
    let hasty = |haste, before: &str, words: &str| {
        let mut talk = Conversation::new();
        talk.world.settings.haste = haste;
        talk.says(before);
        talk.replies();
        talk.says(words);
        (talk.replies(), talk.world.closed)
    };
    let (ehlo, mail) = ("EHLO a\r\n", "EHLO a\r\nMAIL FROM:<a@b>\r\n");
    for (before, words) in [
        ("", mail),
        ("", "HELO a\r\nQ"),
        ("", "NOOP\r\nEHLO a\r\n"),
        ("HELO a\r\n", "MAIL FROM:<a@b>\r\nRCPT TO:<bob@mail.test>\r\n"),
        (ehlo, "MAIL FROM:<a@b>\r\nRCPT TO:<bob@mail.test>\r\nDATA\r\nSubject: x\r\n\r\n.\r\n"),
    ] {
        let (replies, closed) = hasty(Haste::Refused, before, words);
        assert!(replies.ends_with(TOO_SOON) && closed, "{words:?}: {replies}");
        let (replies, closed) = hasty(Haste::Tolerated, before, words);
        assert!(!replies.contains(TOO_SOON) && !closed, "{words:?}: {replies}");
    }
    let pipelined = "RSET\r\nMAIL FROM:<a@b>\r\nRCPT TO:<bob@mail.test>\r\n";
    for end in [
        "DATA\r\n",
        "BDAT 4\r\nabc\r\nBDAT 0 LAST\r\nMAIL FROM:<a@b>\r\n",
        "QUIT\r\n",
        "EHLO b\r\n",
    ] {
        let (replies, _) = hasty(Haste::Refused, ehlo, &(pipelined.to_string() + end));
        assert!(!replies.contains(TOO_SOON), "{end:?}: {replies}");
    }
}
