//! The conversation from the connection until messages can be sent.

use super::*;

#[test]
fn first_message_follows_the_greeting() {
    let mut harness = ClientHarness::with_tls(TlsMode::IfOffered);
    harness.deliver(outgoing(&["bob@there.test"]));
    harness.exchange(&[
        ("220-mail.test\r\n220 ready\r\n", "EHLO us.test\r\n"),
        ("250 mail.test\r\n", "MAIL FROM:<ada@us.test>\r\n"),
    ]);
}

#[test]
fn helo_is_sent_to_a_peer_without_ehlo() {
    let mut harness = ClientHarness::with_tls(TlsMode::IfOffered);
    harness.exchange(&[
        ("220 mail.test\r\n", "EHLO us.test\r\n"),
        ("502 what?\r\n", "HELO us.test\r\n"),
        ("250-mail.test\r\n250 PIPELINING\r\n", ""),
    ]);
    assert!(harness.is_idle);
    assert_eq!(
        harness.deliver(outgoing(&["bob@there.test"])),
        "MAIL FROM:<ada@us.test>\r\n",
        "HELO offers nothing"
    );
}

#[test]
fn refusal_at_greeting_is_temporary_or_final() {
    for (theirs, expected) in [
        (
            &["554 no SMTP service here\r\n"][..],
            "1 never 5.3.0 the other server refused the connection: 554 no SMTP service here",
        ),
        (
            &["450 4.7.1 not now\r\n"],
            "1 later 4.7.1 the other server refused the connection: 450 4.7.1 not now",
        ),
        (
            &["220 x\r\n", "451 no\r\n"],
            "1 later 4.3.0 the other server refused the connection: 451 no",
        ),
        (
            &["220 x\r\n", "500 ?\r\n", "550 5.7.1 go away\r\n"],
            "1 never 5.7.1 the other server refused the connection: 550 5.7.1 go away",
        ),
        (
            &["220 x\r\n", "500 ?\r\n", "450 no\r\n"],
            "1 later 4.3.0 the other server refused the connection: 450 no",
        ),
    ] {
        let mut harness = ClientHarness::with_tls(TlsMode::IfOffered);
        harness.deliver(outgoing(&["bob@there.test"]));
        let sent: Vec<_> = theirs.iter().map(|theirs| harness.hears(theirs)).collect();
        assert_eq!(sent.last().map(String::as_str), Some("QUIT\r\n"));
        assert_eq!(harness.outcomes(), [expected]);
        assert!(harness.is_over);
        // The next message has the same outcome.
        harness.deliver(outgoing(&["bob@there.test"]));
        assert_eq!(harness.outcomes(), [expected]);
    }
}

#[test]
fn tls_is_used_if_offered_and_ehlo_is_repeated() {
    for tls in [TlsMode::IfOffered, TlsMode::Required] {
        let mut harness = ClientHarness::with_tls(tls);
        harness.exchange(&[
            ("220 mail.test\r\n", "EHLO us.test\r\n"),
            ("250-mail.test\r\n250-SIZE 1\r\n250 STARTTLS\r\n", "STARTTLS\r\n"),
            ("220 go\r\n", ""),
        ]);
        assert!(harness.wants_tls && !harness.is_idle);
        harness.client.secured();
        assert_eq!(harness.says(), "EHLO us.test\r\n");
        harness.exchange(&[("250-mail.test\r\n250 STARTTLS\r\n", "")]);
        assert!(harness.is_idle, "TLS is not begun twice");
        assert_eq!(
            harness.deliver(outgoing(&["bob@there.test"])),
            "MAIL FROM:<ada@us.test>\r\n",
            "SIZE is forgotten"
        );
    }
}

#[test]
fn extensions_from_before_tls_are_forgotten() {
    let mut harness = ClientHarness::with_tls(TlsMode::IfOffered);
    harness.deliver(outgoing(&["bob@there.test"]));
    harness.exchange(&[
        ("220 x\r\n", "EHLO us.test\r\n"),
        (ABLE, "STARTTLS\r\n"),
        ("220 go\r\n", ""),
    ]);
    harness.client.secured();
    harness.exchange(&[("", "EHLO us.test\r\n"), ("500 ?\r\n", "HELO us.test\r\n")]);
    harness.exchange(&[("250 x\r\n", "MAIL FROM:<ada@us.test>\r\n")]);
}

#[test]
fn bytes_after_the_starttls_reply_end_the_connection() {
    for theirs in [&["220 go\r\n250 SIZE 1\r\n"][..], &["220 go\r\n", "2"]] {
        let mut harness = ClientHarness::with_tls(TlsMode::IfOffered);
        harness.deliver(outgoing(&["bob@there.test"]));
        harness.exchange(&[
            ("220 x\r\n", "EHLO us.test\r\n"),
            ("250-x\r\n250 STARTTLS\r\n", "STARTTLS\r\n"),
        ]);
        theirs.iter().for_each(|theirs| assert_eq!(harness.hears(theirs), ""));
        assert!(harness.is_over);
        assert_eq!(
            harness.outcomes(),
            [
                "1 later 4.5.0 the other server broke the SMTP protocol (a reply before the command) after STARTTLS"
            ]
        );
        harness.client.secured();
        assert_eq!(harness.says(), "", "nothing more is sent");
    }
}

#[test]
fn nothing_is_sent_without_required_tls() {
    const NONE: &str = "1 later 4.7.10 the other server does not offer TLS, which is required";
    const NOT_NOW: &str = "1 later 4.7.0 the other server refused TLS: 454 4.7.0 not now";
    for (lines, expected) in [
        (&[("250 x\r\n", "QUIT\r\n")][..], NONE),
        (&[("502 ?\r\n", "HELO us.test\r\n"), ("250 x\r\n", "QUIT\r\n")], NONE),
        (
            &[("250-x\r\n250 starttls\r\n", "STARTTLS\r\n"), ("454 4.7.0 not now\r\n", "QUIT\r\n")],
            NOT_NOW,
        ),
    ] {
        let mut harness = ClientHarness::with_tls(TlsMode::Required);
        harness.deliver(outgoing(&["bob@there.test"]));
        harness.exchange(&[("220 x\r\n", "EHLO us.test\r\n")]);
        harness.exchange(lines);
        assert_eq!(harness.outcomes(), [expected]);
    }
    let mut harness = ClientHarness::with_tls(TlsMode::IfOffered);
    harness.exchange(&[
        ("220 x\r\n", "EHLO us.test\r\n"),
        ("250-x\r\n250 STARTTLS\r\n", "STARTTLS\r\n"),
        ("454 not now\r\n", ""),
    ]);
    assert!(harness.is_idle, "without required TLS, the message is sent in the clear");
}

#[test]
fn failed_handshake_is_tried_again() {
    let mut harness = ClientHarness::with_tls(TlsMode::IfOffered);
    harness.deliver(outgoing(&["bob@there.test"]));
    harness.exchange(&[
        ("220 x\r\n", "EHLO us.test\r\n"),
        ("250-x\r\n250 STARTTLS\r\n", "STARTTLS\r\n"),
        ("220 go\r\n", ""),
    ]);
    harness.lost(Lost::Tls);
    assert_eq!(
        harness.outcomes(),
        ["1 later 4.7.10 TLS with the other server failed after STARTTLS"]
    );
}

#[test]
fn login_uses_plain_or_else_login() {
    let mut harness = ClientHarness::with_login(TlsMode::Implicit);
    harness.exchange(&[
        ("220 x\r\n", "EHLO us.test\r\n"),
        ("250-x\r\n250 AUTH LOGIN PLAIN\r\n", "AUTH PLAIN AHVzZXIAcGVuY2ls\r\n"),
        ("235 2.7.0 welcome\r\n", ""),
    ]);
    assert!(harness.is_idle);
    let mut harness = ClientHarness::with_login(TlsMode::Never);
    harness.exchange(&[
        ("220 x\r\n", "EHLO us.test\r\n"),
        ("250-x\r\n250 AUTH=LOGIN\r\n", "AUTH LOGIN\r\n"),
        ("334 VXNlcm5hbWU6\r\n", "dXNlcg==\r\n"),
        ("334 UGFzc3dvcmQ6\r\n", "cGVuY2ls\r\n"),
        ("235 welcome\r\n", ""),
    ]);
    assert!(harness.is_idle);
}

/// The example of RFC 7677.
const CLAIM: &str = "AUTH SCRAM-SHA-256 biwsbj11c2VyLHI9ck9wck5HZndFYmVSV2diTkVrcU8=\r\n";
const CHALLENGE: &str = "334 cj1yT3ByTkdmd0ViZVJXZ2JORWtxTyVodllEcFdVYTJSYVRDQWZ1eEZJbGopaE5sRiRrMCxzPVcyMlphSjBTTlk3c29Fc1VFamI2Z1E9PSxpPTQwOTY=\r\n";
const PROOF: &str = "Yz1iaXdzLHI9ck9wck5HZndFYmVSV2diTkVrcU8laHZZRHBXVWEyUmFUQ0FmdXhGSWxqKWhObEYkazAscD1kSHpiWmFwV0lrNGpVaE4rVXRlOXl0YWc5empmTUhnc3FtbWl6N0FuZFZRPQ==\r\n";
const SIGNATURE: &str = "334 dj02cnJpVFJCaTIzV3BSUi93dHVwK21NaFVaVW4vZEI1bkxUSlJzamw5NUc0PQ==\r\n";
const SCRAM: &str = "250-x\r\n250 AUTH PLAIN SCRAM-SHA-256-PLUS scram-sha-256 LOGIN\r\n";

#[test]
fn scram_is_preferred_to_sending_the_password() {
    let mut harness = ClientHarness::with_login(TlsMode::Implicit);
    harness.exchange(&[
        ("220 x\r\n", "EHLO us.test\r\n"),
        (SCRAM, CLAIM),
        (CHALLENGE, PROOF),
        (SIGNATURE, "\r\n"),
        ("235 welcome\r\n", ""),
    ]);
    assert!(harness.is_idle);
}

#[test]
fn peer_without_scram_proof_gets_nothing() {
    const NOT_SMTP: &str = "1 later 4.5.0 the other server broke the SMTP protocol";
    for (lines, expected) in [
        (
            &[(CHALLENGE, PROOF), ("235 come in\r\n", "")][..],
            "(an unexpected reply 235) during the login",
        ),
        (
            &[(CHALLENGE, PROOF), ("334 dj02\r\n", "QUIT\r\n")],
            "(an invalid login signature) during the login",
        ),
        (&[("334 \r\n", "QUIT\r\n")], "(an invalid login challenge) during the login"),
        (&[("235 come in\r\n", "")], "(an unexpected reply 235) during the login"),
    ] {
        let mut harness = ClientHarness::with_login(TlsMode::Implicit);
        harness.deliver(outgoing(&["bob@there.test"]));
        harness.exchange(&[("220 x\r\n", "EHLO us.test\r\n"), (SCRAM, CLAIM)]);
        harness.exchange(lines);
        assert_eq!(harness.outcomes(), [[NOT_SMTP, expected].join(" ")]);
        assert!(harness.is_over);
    }
}

#[test]
fn refused_scram_defers_and_sends_no_password() {
    for lines in [
        &[("504 no\r\n", "QUIT\r\n")][..],
        &[(CHALLENGE, PROOF), ("504 no\r\n", "QUIT\r\n")],
        &[(CHALLENGE, PROOF), (SIGNATURE, "\r\n"), ("504 no\r\n", "QUIT\r\n")],
    ] {
        let mut harness = ClientHarness::with_login(TlsMode::Implicit);
        harness.deliver(outgoing(&["bob@there.test"]));
        harness.exchange(&[("220 x\r\n", "EHLO us.test\r\n"), (SCRAM, CLAIM)]);
        harness.exchange(lines);
        assert_eq!(
            harness.outcomes(),
            ["1 later 4.3.0 the other server refused our login: 504 no"]
        );
    }
}

/// The proof of a password takes as many turns as the peer's iteration count requires. A peer that
/// does not wait for the proof gets none.
#[test]
fn scram_proof_is_computed_in_steps() {
    let mut harness = ClientHarness::with_login(TlsMode::Implicit);
    harness.deliver(outgoing(&["bob@there.test"]));
    harness.exchange(&[("220 x\r\n", "EHLO us.test\r\n"), (SCRAM, CLAIM)]);
    harness.client.arrived(CHALLENGE.as_bytes());
    for _ in 0..15 {
        assert_eq!(harness.client.next_action(), Some(Action::Compute));
        harness.client.compute();
        assert_eq!(harness.client.output(), b"");
    }
    assert_eq!(harness.client.patience().as_secs(), 300);
    harness.client.arrived(b"250 hurry\r\n");
    assert_eq!(harness.says(), "");
    assert_eq!(
        harness.outcomes(),
        [
            "1 later 4.5.0 the other server broke the SMTP protocol (a reply before the command) during the login"
        ]
    );
}

#[test]
fn password_is_not_sent_in_the_clear() {
    for hello in ["250-x\r\n250 AUTH PLAIN\r\n", "250 x\r\n"] {
        let mut harness = ClientHarness::with_login(TlsMode::IfOffered);
        harness.deliver(outgoing(&["bob@there.test"]));
        harness.exchange(&[("220 x\r\n", "EHLO us.test\r\n"), (hello, "QUIT\r\n")]);
        assert_eq!(
            harness.outcomes(),
            ["1 later 4.7.10 the other server does not offer TLS, which is required"]
        );
    }
}

#[test]
fn refused_login_defers_the_message() {
    for (lines, expected) in [
        (
            &[("250 x\r\n", "QUIT\r\n")][..],
            "1 later 4.7.0 the other server offers no supported login method",
        ),
        (
            &[
                ("250-x\r\n250 AUTH PLAIN\r\n", "AUTH PLAIN AHVzZXIAcGVuY2ls\r\n"),
                ("535 5.7.8 no\r\n", "QUIT\r\n"),
            ],
            "1 later 4.7.8 the other server refused our login: 535 5.7.8 no",
        ),
        (
            &[("250-x\r\n250 AUTH LOGIN\r\n", "AUTH LOGIN\r\n"), ("235 come in\r\n", "")],
            "1 later 4.5.0 the other server broke the SMTP protocol (an unexpected reply 235) during the login",
        ),
    ] {
        let mut harness = ClientHarness::with_login(TlsMode::Implicit);
        harness.deliver(outgoing(&["bob@there.test"]));
        harness.exchange(&[("220 x\r\n", "EHLO us.test\r\n")]);
        harness.exchange(lines);
        assert_eq!(harness.outcomes(), [expected]);
    }
}

#[test]
fn quit_waits_for_the_message() {
    let mut harness = ClientHarness::greeted(PLAIN);
    harness.client.quit();
    assert_eq!(harness.says(), "QUIT\r\n");
    harness.exchange(&[("221 bye\r\n", "")]);
    assert!(harness.is_over);

    let mut harness = ClientHarness::greeted(PLAIN);
    harness.deliver(outgoing(&["bob@there.test"]));
    harness.client.quit();
    harness.exchange(&[
        ("250 ok\r\n", "RCPT TO:<bob@there.test>\r\n"),
        ("550 no\r\n", "RSET\r\n"),
        ("250 ok\r\n", "QUIT\r\n"),
    ]);
    assert!(!harness.is_idle && !harness.is_over);
    harness.lost(Lost::Closed);
}

#[test]
fn each_stage_has_its_timeout() {
    let mut harness = ClientHarness::with_tls(TlsMode::Never);
    let minutes = |harness: &ClientHarness| harness.client.patience().as_secs() / 60;
    harness.is_bringing = false;
    harness.deliver(outgoing(&["bob@there.test"]));
    let mut found = Vec::from([minutes(&harness)]);
    for theirs in
        ["220 x\r\n", "250-x\r\n250 8BITMIME\r\n", "250 ok\r\n", "250 ok\r\n", "354 go\r\n"]
    {
        harness.hears(theirs);
        found.push(minutes(&harness));
    }
    harness.client.body_ended();
    found.push(minutes(&harness));
    assert_eq!(found, [5, 5, 5, 5, 2, 3, 10]);
    harness.hears("250 ok\r\n");
    assert_eq!(harness.client.patience().as_secs(), 30);
}

#[test]
fn password_is_not_printed() {
    let harness = ClientHarness::with_login(TlsMode::Required);
    let printed = std::format!("{:?}", harness.client);
    assert!(printed.contains("user") && !printed.contains("pencil"), "{printed}");
}

/// If the peer requires TLS, which could not be used just now, the message is tried later.
#[test]
fn peer_that_requires_failed_tls_defers_the_message() {
    let wants = "530 5.7.0 Must issue a STARTTLS command first";
    let later = std::format!("1 later 4.7.0 the other server refused the sender: {wants}");
    let never = std::format!("1 never 5.7.0 the other server refused the sender: {wants}");
    let mail = "MAIL FROM:<ada@us.test>\r\n";
    for (tls, hello, expected) in [
        (TlsMode::IfOffered, "250-x\r\n250 STARTTLS\r\n", &later),
        (TlsMode::Never, "250-x\r\n250 STARTTLS\r\n", &later),
        (TlsMode::IfOffered, "250 x\r\n", &never),
    ] {
        let mut harness = ClientHarness::with_tls(tls);
        harness.client.deliver(outgoing(&["bob@there.test"]));
        harness.exchange(&[("220 x\r\n", "EHLO us.test\r\n")]);
        let sent = harness.hears(hello);
        if sent == "STARTTLS\r\n" {
            harness.exchange(&[("454 4.7.0 not now\r\n", mail)]);
        } else {
            assert_eq!(sent, mail);
        }
        harness.exchange(&[(&std::format!("{wants}\r\n"), "")]);
        assert_eq!(harness.outcomes(), [expected.as_str()], "{tls:?} {hello}");
    }
}
