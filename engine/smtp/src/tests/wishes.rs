//! Tests of the reports that the sender wants: which parameters are accepted, refused and kept.

use std::format;
use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;

use super::world::Conversation;
use crate::{ENVELOPE_ID_BYTES_MAX, EnvelopeId, Extensions, Notify, ORIGINAL_BYTES_MAX, Original};

const SENDER_OK: &str = "250 2.1.0 Sender OK\r\n";
const RECIPIENT_OK: &str = "250 2.1.5 Recipient OK\r\n";
const SYNTAX: &str = "501 5.5.4 Invalid parameter value\r\n";

/// Sends `command`, which must get `reply`. Returns the log lines about the wanted reports.
#[track_caller]
fn noted(command: &str, reply: &str) -> Vec<String> {
    let mut talk = Conversation::greeted();
    if command.starts_with("RCPT") {
        talk.exchange(&[("MAIL FROM:<a@b>\r\n", SENDER_OK)]);
    }
    talk.world.log.clear();
    talk.exchange(&[(&format!("{command}\r\n"), reply)]);
    talk.world.log.split_off(talk.world.log.len().min(1))
}

#[test]
fn dsn_is_supported_even_if_not_announced() {
    let mut talk = Conversation::new();
    talk.says("EHLO client.test\r\n");
    assert!(talk.replies().contains("\r\n250-DSN\r\n"));
    talk.world.settings.extensions = Extensions::ALL.without(Extensions::DSN);
    talk.says("EHLO client.test\r\n");
    assert!(!talk.replies().contains("DSN"));
    talk.exchange(&[
        ("MAIL FROM:<a@b> RET=FULL\r\n", SENDER_OK),
        ("RCPT TO:<a@b> NOTIFY=NEVER\r\n", RECIPIENT_OK),
    ]);
}

#[test]
fn ret_and_envid_are_read_once_each() {
    for (parameters, expected) in [
        ("RET=FULL", "returned Some(Full) as None"),
        ("ret=hdrs envid=QQ314159", "returned Some(Header) as Some(\"QQ314159\")"),
        ("ENVID=a+20b+2B+3D!,~", "returned None as Some(\"a+20b+2B+3D!,~\")"),
        ("ENVID=a,", "returned None as Some(\"a+2C\")"),
        (
            &format!("ENVID={}", "x".repeat(ENVELOPE_ID_BYTES_MAX)),
            &format!("returned None as Some({:?})", "x".repeat(100)),
        ),
    ] {
        assert_eq!(
            noted(&format!("MAIL FROM:<a@b> {parameters}"), SENDER_OK),
            [expected],
            "{parameters}"
        );
    }
    for parameters in [
        "RET",
        "RET=",
        "RET=ALL",
        "RET=FULL RET=FULL",
        "ENVID",
        "ENVID=",
        "ENVID=a ENVID=a",
        "ENVID=a=b",
        "ENVID=+",
        "ENVID=a+2",
        "ENVID=+2b",
        "ENVID=+zz",
        "ENVID=+0A",
        "ENVID=+7F",
        "ENVID=+E4",
        "ENVID=\u{e4}",
        "ENVID=a\tb",
        &format!("ENVID={}", "x".repeat(ENVELOPE_ID_BYTES_MAX + 1)),
    ] {
        assert!(noted(&format!("MAIL FROM:<a@b> {parameters}"), SYNTAX).is_empty(), "{parameters}");
    }
}

#[test]
fn dsn_notify_is_read_once() {
    let log_line = |success, failure, delay| {
        format!("told Some({:?}) of None", Notify { success, failure, delay })
    };
    for (parameter, expected) in [
        ("NEVER", log_line(false, false, false)),
        ("never", log_line(false, false, false)),
        ("SUCCESS", log_line(true, false, false)),
        ("failure,Delay", log_line(false, true, true)),
        ("DELAY,SUCCESS,FAILURE", log_line(true, true, true)),
    ] {
        assert_eq!(
            noted(&format!("RCPT TO:<b@c> NOTIFY={parameter}"), RECIPIENT_OK),
            [expected],
            "{parameter}"
        );
    }
    for parameter in [
        "",
        "=",
        "=NEVER,FAILURE",
        "=SUCCESS,",
        "=,DELAY",
        "=SUCCESS;DELAY",
        "=ALWAYS",
        "=NEVER NOTIFY=NEVER",
    ] {
        assert!(
            noted(&format!("RCPT TO:<b@c> NOTIFY{parameter}"), SYNTAX).is_empty(),
            "{parameter}"
        );
    }
}

#[test]
fn orcpt_is_read_once_and_kept_as_ascii() {
    let longest = format!("rfc822;{}", "x".repeat(ORIGINAL_BYTES_MAX - 7));
    for (original, ascii) in [
        ("rfc822;bob@old.test", "rfc822;bob@old.test"),
        ("RFC822;a+20b+2Bc@old.test", "RFC822;a+20b+2Bc@old.test"),
        ("x400;/CN=", ""),
        ("utf-8;b\\x{F8}b@old.test", "utf-8;b\\x{F8}b@old.test"),
        ("utf-8;b\u{f8}b@old.test", "utf-8;b\\x{F8}b@old.test"),
        ("rfc822;a,", "rfc822;a+2C"),
        (longest.as_str(), longest.as_str()),
        (&format!("{longest}x"), ""),
        (&format!("utf-8;{}", "\u{f8}".repeat(83)), ""),
        ("rfc822;b\u{f8}b@old.test", ""),
        ("utf-8;b\u{85}b@old.test", ""),
        ("rfc822;", ""),
        ("rfc822", ""),
        (";bob@old.test", ""),
        ("rfc_822;b", ""),
        ("rfc822;+0D+0A", ""),
        ("rfc822;+2", ""),
        ("rfc822;a ORCPT=rfc822;a", ""),
    ] {
        let command = format!("RCPT TO:<b@c> ORCPT={original}");
        match ascii {
            "" => assert!(noted(&command, SYNTAX).is_empty(), "{original}"),
            _ => assert_eq!(
                noted(&command, RECIPIENT_OK),
                [format!("told None of Some({ascii:?})")],
                "{original}"
            ),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    /// An accepted value can be written into a header field and into a list, and can be read again
    /// unchanged.
    #[test]
    fn dsn_values_are_bounded_ascii_and_round_trip(text in "(rfc822|utf-8|x);([!-~]|\\+[0-9A-F]{2}|[\u{80}-\u{fff}]){0,300}|[!-~]{0,120}") {
        let taken = [EnvelopeId::read(&text).map(EnvelopeId::ascii), Original::read(&text).map(Original::ascii)];
        for ascii in taken.into_iter().flatten() {
            prop_assert!(ascii.bytes().all(|byte| byte.is_ascii_graphic()) && !ascii.ends_with(','), "{ascii:?}");
            prop_assert!(ascii.len() <= ORIGINAL_BYTES_MAX);
            let again = Original::read(&ascii).map(Original::ascii);
            prop_assert!(EnvelopeId::read(&text).is_some() || again.as_deref() == Some(&ascii), "{ascii:?}");
        }
    }
}
