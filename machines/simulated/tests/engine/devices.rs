//! Tests of devices and scripts that send mail in forms of their own: names in EHLO, paths, logins
//! and line ends. They also test the addresses of the administrator.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use simulated::MemoryDisk;

use super::room::{CONFIGURATION, DISK_BYTES, Room, Talk, usual_sizes};

const ADA: &str = "ada@barepost.test";
/// NUL, `ada@barepost.test `, NUL, the password, in base64.
const ADA_WITH_A_SPACE: &str = "AUTH PLAIN AGFkYUBiYXJlcG9zdC50ZXN0IABsb3ZlbGFjZQ== ";

/// Connects to a port, and greets the server with these bytes.
fn greeted(room: &mut Room, port: u16, name: &[u8]) -> Talk {
    let mut talk = room.connect(port);
    assert!(room.smtp_reply(&mut talk).starts_with("220 "));
    room.send(&talk, &[b"EHLO ", name, b"\r\n"].concat());
    assert!(room.smtp_reply(&mut talk).starts_with("250 "));
    talk
}

/// Sends a message with these paths, and returns the reply to its end.
fn send(room: &mut Room, talk: &mut Talk, sender: &str, recipient: &str) -> String {
    assert_eq!(room.smtp(talk, &format!("MAIL FROM:{sender}")), "250 2.1.0 Sender OK", "{sender}");
    let reply = room.smtp(talk, &format!("RCPT TO:{recipient}"));
    assert_eq!(reply, "250 2.1.5 Recipient OK", "{recipient}");
    assert!(room.smtp(talk, "DATA").starts_with("354 "));
    room.smtp(talk, "Subject: Scan\r\n\r\nPage 1\r\n.")
}

/// The room after a restart with another configuration.
fn restarted(room: Room, seed: u64, configuration: &str) -> Room {
    let mut room = Room::configured(seed, room.machine.disk, usual_sizes(), configuration);
    room.until("the engine serves", |room| room.console_says("serving"));
    room
}

/// The configuration without its users.
fn without_users() -> String {
    let (head, users) = CONFIGURATION.split_once("[[user]]").expect("there are users");
    let (_, access) = users.split_once("[access]").expect("a section follows");
    format!("{head}[access]{access}")
}

#[test]
fn devices_deliver_with_names_and_paths_of_their_own() {
    let mut room = Room::new(1);
    for (number, (name, kept, sender, recipient, path)) in [
        (
            &b"M\xfcller (PC)"[..],
            "M?ller??PC?",
            "bob@far.test",
            "ada@barepost.test",
            "bob@far.test",
        ),
        (b"my pc", "my?pc", "\t<bob@far.test.>", "<ada@barepost.test.>", "bob@far.test"),
        (b"x;y", "x?y", "\"Bob\" <bob@far.test>", "\"Ada\"<ada@barepost.test>", "bob@far.test"),
        (b"a", "a", "<'bob@far.test'>SIZE=9", "<'ada@barepost.test'>", "bob@far.test"),
        (b"a", "a", "<scanner>", "<ada>", "scanner@barepost.test"),
        (b"a", "a", "scanner SIZE=9", "<<Ada@barepost.test>>", "scanner@barepost.test"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut talk = greeted(&mut room, 25, name);
        assert!(send(&mut room, &mut talk, sender, recipient).starts_with("250 "), "{sender}");
        room.part(talk);
        let mut reader = room.log_in("ada");
        let message = room.retrieve_any(&mut reader, number + 1);
        let message = String::from_utf8(message).expect("the bytes are UTF-8");
        let trace = format!("Return-Path: <{path}>\r\nReceived: from {kept} ([10.0.0.1])\r\n");
        assert!(message.starts_with(&trace), "{message}");
        room.part(reader);
    }
}

#[test]
fn no_spelling_of_a_path_escapes_a_check() {
    let caught = CONFIGURATION.replace(
        "address = \"grace@barepost.test\"",
        "address = \"grace@barepost.test\"\ncatch_all = [\"barepost.test\"]",
    );
    let disk = MemoryDisk::blank(DISK_BYTES);
    let mut room = Room::configured(2, disk, usual_sizes(), &caught);
    room.until("the engine serves", |room| room.console_says("serving"));
    let mut talk = greeted(&mut room, 25, b"a");
    assert!(room.smtp(&mut talk, "MAIL FROM:<>").starts_with("250 "));
    for recipient in [
        "bob@far.test",
        "<bob@far.test.>",
        "\"ada@barepost.test\" <bob@far.test>",
        "<ada@barepost.test <bob@far.test>>",
        "<<bob@far.test>>",
        "<'bob@far.test'>",
    ] {
        let reply = room.smtp(&mut talk, &format!("RCPT TO:{recipient}"));
        assert!(
            reply.starts_with("550 5.7.1") || reply.starts_with("501 "),
            "{recipient}: {reply}"
        );
    }
    for forged in ["SRS0=aaaa=bb=far.test=bob", "srs0=aaaa=bb=far.test=bob@barepost.test."] {
        let reply = room.smtp(&mut talk, &format!("RCPT TO:<{forged}>"));
        assert!(reply.starts_with("550 5.1.1"), "{forged}: {reply}");
    }
    room.part(talk);

    let mut talk = greeted(&mut room, 587, b"a");
    assert!(room.smtp(&mut talk, ADA_WITH_A_SPACE).starts_with("235 "));
    for sender in
        ["<grace>", "grace@barepost.test", "<'grace@barepost.test'>", "\"ada\" <grace>", "<x>"]
    {
        let reply = room.smtp(&mut talk, &format!("MAIL FROM:{sender}"));
        assert!(reply.starts_with("553 5.7.1"), "{sender}: {reply}");
    }
    for sender in ["<ada>", "ada@barepost.test", "\"grace\" <countess>"] {
        assert!(send(&mut room, &mut talk, sender, "\"Grace\" <grace>").starts_with("250 "));
    }
    room.part(talk);
}

#[test]
fn a_login_works_with_spaces_behind_its_words() {
    let mut room = Room::new(3);
    for login in [
        &[ADA_WITH_A_SPACE][..],
        &["AUTH PLAIN ", "AGFkYQBsb3ZlbGFjZQ== "],
        // The phone sends `ada `, with a space, and the password.
        &["AUTH LOGIN ", "YWRhIA== ", "bG92ZWxhY2U= "],
        &["AUTH LOGIN YWRhIA== ", "bG92ZWxhY2U="],
    ] {
        let mut talk = greeted(&mut room, 587, b"a");
        let last = login.iter().map(|line| room.smtp(&mut talk, line)).last();
        assert_eq!(last.as_deref(), Some("235 2.7.0 Authentication successful"), "{login:?}");
        room.part(talk);
    }
    let mut talk = room.connect(110);
    room.line(&mut talk);
    assert!(room.pop3(&mut talk, ADA_WITH_A_SPACE).starts_with("+OK"));
    room.part(talk);
    // A space is part of a password.
    let mut talk = greeted(&mut room, 587, b"a");
    assert!(room.smtp(&mut talk, "AUTH PLAIN AGFkYQBsb3ZlbGFjZSA=").starts_with("535 "));
}

#[test]
fn bare_lf_in_a_chunk_is_stored_as_crlf() {
    let mut room = Room::new(4);
    let mut talk = greeted(&mut room, 25, b"client.test");
    room.smtp(&mut talk, "MAIL FROM:<sender@elsewhere.test>");
    room.smtp(&mut talk, "RCPT TO:<ada@barepost.test>");
    room.send(&talk, b"BDAT 20\r\nSubject: x\n\nline\r\n.\r");
    assert_eq!(room.smtp_reply(&mut talk), "250 2.0.0 Chunk received");
    room.send(&talk, b"BDAT 8 LAST\r\n\nend\n\n.\n");
    assert!(room.smtp_reply(&mut talk).starts_with("250 2.0.0 Stored"));
    room.part(talk);
    let mut reader = room.log_in("ada");
    let message = room.retrieve(&mut reader, 1);
    assert_eq!(message, b"Subject: x\r\n\r\nline\r\n.\r\nend\r\n\r\n.\r\n");
}

#[test]
fn abuse_reaches_the_administrator_as_postmaster_does() {
    let two = CONFIGURATION
        .replace("domains = [\"barepost.test\"]", "domains = [\"barepost.test\", \"two.test\"]")
        .replace("\"postmaster@barepost.test\", ", "")
        + "[[user]]\naddress = \"abuse@two.test\"\npassword = \"a plain one\"\n";
    let disk = MemoryDisk::blank(DISK_BYTES);
    let mut room = Room::configured(5, disk, usual_sizes(), &two);
    room.until("the engine serves", |room| room.console_says("serving"));
    let role = ["postmaster@two.test", "Abuse@barepost.test", "abuse+x@[10.0.0.2]", "abuse"];
    for recipient in role {
        assert!(room.deliver(recipient, b"Subject: x\r\n\r\n").starts_with("250 "), "{recipient}");
    }
    assert!(room.deliver("abuse@two.test", b"Subject: own\r\n\r\n").starts_with("250 "));
    let mut reader = room.log_in(ADA);
    assert!(room.pop3(&mut reader, "STAT").starts_with("+OK 4 "));
}

#[test]
fn mail_to_the_administrator_is_kept_until_there_is_one() {
    const KEPT: &str = "is kept in kept-for-postmaster@barepost.test";
    let disk = MemoryDisk::blank(DISK_BYTES);
    let mut room = Room::configured(6, disk, usual_sizes(), &without_users());
    room.until("the engine serves", |room| room.console_says("serving"));
    assert!(room.console_says(KEPT));
    for recipient in ["postmaster", "abuse@barepost.test"] {
        let message = format!("Subject: to {recipient}\r\n\r\n");
        assert!(room.deliver(recipient, message.as_bytes()).starts_with("250 "), "{recipient}");
    }
    let mut talk = greeted(&mut room, 25, b"a");
    room.smtp(&mut talk, "MAIL FROM:<>");
    for recipient in ["kept-for-postmaster@barepost.test", "ada@barepost.test"] {
        let reply = room.smtp(&mut talk, &format!("RCPT TO:<{recipient}>"));
        assert!(reply.starts_with("550 5.1.1"), "{recipient}: {reply}");
    }
    room.part(talk);
    let mut talk = room.connect(110);
    room.line(&mut talk);
    room.pop3(&mut talk, "USER kept-for-postmaster@barepost.test");
    assert!(room.pop3(&mut talk, "PASS ").starts_with("-ERR"));
    room.part(talk);

    // Another first domain changes nothing about the mail of this account.
    let reordered = without_users().replace("domains = [", "domains = [\"first.test\", ");
    let mut room = restarted(room, 10, &reordered);
    assert!(room.console_says(KEPT));
    assert!(room.console_says("is kept in kept-for-postmaster@first.test"));
    assert!(!room.console_says("is not in the configuration"));
    let mut talk = greeted(&mut room, 25, b"a");
    room.smtp(&mut talk, "MAIL FROM:<>");
    let reply = room.smtp(&mut talk, "RCPT TO:<kept-for-postmaster@barepost.test>");
    assert!(reply.starts_with("550 5.1.1"), "{reply}");
    room.part(talk);

    // The new administrator gets new mail, and is told where the earlier mail is.
    let mut room = restarted(room, 7, CONFIGURATION);
    assert!(room.console_says(KEPT));
    assert!(room.deliver("abuse@barepost.test", b"Subject: new\r\n\r\n").starts_with("250 "));
    let mut reader = room.log_in(ADA);
    assert!(room.pop3(&mut reader, "STAT").starts_with("+OK 1 "));
    room.part(reader);

    let hash = CONFIGURATION.lines().find(|line| line.starts_with("password_hash"));
    let with_reader = format!(
        "{CONFIGURATION}[[user]]\naddress = \"kept-for-postmaster@barepost.test\"\n{}\n",
        hash.expect("a user has a hash")
    );
    let mut room = restarted(room, 8, &with_reader);
    assert!(!room.console_says(KEPT));
    let mut reader = room.log_in("kept-for-postmaster");
    assert!(room.pop3(&mut reader, "STAT").starts_with("+OK 2 "));
    assert_eq!(room.retrieve(&mut reader, 2), b"Subject: to abuse@barepost.test\r\n\r\n");
}
