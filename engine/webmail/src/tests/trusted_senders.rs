//! Tests of trusted senders.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use store::{NOTE_BYTES_MAX, NoteChange};

use crate::jobs::TrustChange;
use crate::jobs::trusted_senders::VerifiedAuthor;

/// The note after the change.
fn after(note: &[u8], trust: TrustChange) -> Vec<u8> {
    match trust.change(note) {
        Some(NoteChange::Put(_, value)) => value.into_vec(),
        Some(_) => Vec::new(),
        None => note.to_vec(),
    }
}

fn begin(note: &[u8], address: &str) -> Vec<u8> {
    after(note, TrustChange::Begin(address.into()))
}

#[test]
fn trusted_senders_are_added_and_removed() {
    let note = begin(&begin(b"", "a@x.test"), "b@x.test");
    assert_eq!(note, b"a@x.test\nb@x.test");
    assert_eq!(begin(&note, "A@X.test"), b"b@x.test\nA@X.test", "each address is in the note once");
    assert_eq!(after(&note, TrustChange::End("B@x.test".into())), b"a@x.test");
    assert_eq!(TrustChange::End("c@x.test".into()).change(&note), None);
    assert!(matches!(
        TrustChange::End("a@x.test".into()).change(b"a@x.test"),
        Some(NoteChange::Remove(_))
    ));
    for none in [String::new(), "x".repeat(255), "a@x.test\nb@y.test".into()] {
        assert_eq!(TrustChange::Begin(none).change(&note), None);
    }
}

#[test]
fn oldest_trusted_senders_make_room() {
    let mut note = Vec::new();
    for number in 0..500 {
        note = begin(&note, &format!("sender-{number}@example.org"));
        assert!(note.len() <= NOTE_BYTES_MAX);
    }
    let text = String::from_utf8(note).unwrap();
    assert!(
        text.ends_with("sender-499@example.org")
            && !text.contains("sender-0@")
            && text.lines().count() > 150
    );
    assert!(
        text.lines()
            .rev()
            .zip((0..500).rev())
            .all(|(line, number)| line == format!("sender-{number}@example.org"))
    );
}

/// The fields below this server's results. They include forged results, which the sender wrote.
const RECEIVED: &str = "Received: from x\r\n\tby mail.barepost.test\r\nAuthentication-Results: mail.barepost.test;\r\n\tdmarc=pass header.from=x.test\r\n\r\n";

#[test]
fn author_is_verified_by_results_of_this_server_only() {
    let results = |lines: &str| {
        format!(
            "Return-Path: <a@x.test>\r\nAuthentication-Results: mail.barepost.test;\r\n\tspf=pass smtp.mailfrom=x.test{lines}\r\n{RECEIVED}"
        )
    };
    let passed = results(";\r\n\tdkim=none;\r\n\tdmarc=pass header.from=x.test;\r\n\tarc=none");
    assert_eq!(VerifiedAuthor::of(passed.as_bytes()), VerifiedAuthor::Domain("x.test".into()));
    for failed in [
        "",
        ";\r\n\tdmarc=fail header.from=x.test",
        ";\r\n\tdmarc=none header.from=x.test",
        ";\r\n\tdmarc=pass",
        "; dmarc=pass header.from=x.test",
        "\";\"\tdmarc=pass header.from=x.test",
    ] {
        assert_eq!(
            VerifiedAuthor::of(results(failed).as_bytes()),
            VerifiedAuthor::Nobody,
            "{failed}"
        );
    }
    for written_here in ["", "DKIM-Signature: v=1; d=barepost.test\r\n"] {
        assert_eq!(VerifiedAuthor::of(written_here.as_bytes()), VerifiedAuthor::Written);
    }
    for (protocol, is_login) in [
        ("ESMTPA", true),
        ("ESMTPSA", true),
        ("UTF8SMTPA", true),
        ("UTF8SMTPSA", true),
        ("ESMTP", false),
        ("ESMTPS", false),
        ("SMTP", false),
    ] {
        let received = format!(
            "Return-Path: <a@x.test>\r\nReceived: from with.ESMTPA.test ([192.0.2.1])\r\n\tby mail.barepost.test with {protocol} id 1;\r\n\tdate\r\n{RECEIVED}"
        );
        let expected = if is_login {
            VerifiedAuthor::Submitted("<a@x.test>".into())
        } else {
            VerifiedAuthor::Nobody
        };
        assert_eq!(
            VerifiedAuthor::of(received.as_bytes()),
            expected,
            "{protocol}: no result proves the author"
        );
    }
    for (address, is_author) in
        [("a@x.test", true), ("a@X.TEST", true), ("a@y.x.test", false), ("x.test", false)]
    {
        assert_eq!(
            VerifiedAuthor::Domain("x.test".into()).is_author(address),
            is_author,
            "{address}"
        );
        assert!(
            VerifiedAuthor::Written.is_author(address)
                && !VerifiedAuthor::Nobody.is_author(address)
        );
    }
    for (path, is_author) in [
        ("<a@x.test>", true),
        ("<A@X.test>", true),
        ("<b@x.test>", false),
        ("<>", false),
        ("", false),
    ] {
        assert_eq!(
            VerifiedAuthor::Submitted(path.into()).is_author("a@x.test"),
            is_author,
            "{path}"
        );
    }
    assert!(!VerifiedAuthor::Submitted("<>".into()).is_author(""));
}
