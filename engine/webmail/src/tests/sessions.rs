//! Tests of persisted sessions, of preferences, and of the descriptions of browsers.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use machine::UnixTime;
use proptest::prelude::*;
use store::{NOTE_BYTES_MAX, NoteChange};

use crate::form::Form;
use crate::persisted_session::PersistedSession;
use crate::{Density, HoldTime, Preferences, Theme, program};
use mail::PasswordMark;

fn value(change: NoteChange) -> Vec<u8> {
    match change {
        NoteChange::Put(_, value) | NoteChange::Replace(_, value) => value.into(),
        NoteChange::Remove(_) => Vec::new(),
    }
}

proptest! {
    #[test]
    fn persisted_session_survives_encoding_and_is_small(since in any::<u32>(), seen in any::<u32>(), from in any::<core::net::IpAddr>(), program in "\\PC{0,80}", hash in "\\PC{0,100}") {
        let [since, seen] = [since, seen].map(|seconds| UnixTime::from_seconds(seconds.into()));
        let kept = PersistedSession { since, seen, password: PasswordMark::of(&hash), from: from.to_canonical(), program };
        let bytes = kept.to_bytes();
        let back = PersistedSession::of(&bytes).expect("a session");
        prop_assert!(bytes.len() <= 112 && kept.program.starts_with(&back.program));
        prop_assert_eq!(PersistedSession { program: String::new(), ..back }, PersistedSession { program: String::new(), ..kept });
    }

    #[test]
    fn any_session_note_is_parsed_without_a_panic(note in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Some(kept) = PersistedSession::of(&note) {
            prop_assert_eq!(PersistedSession::of(&kept.to_bytes()), Some(kept));
        }
    }

    #[test]
    fn preferences_survive_encoding_and_fit_a_note(name in "\\PC{0,60}", signature in "[\\PC\n]{0,400}") {
        let said = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("name", &*name), ("signature", &*signature), ("hold", "30"), ("theme", "dark"), ("density", "compact")])
            .finish();
        let preferences = |note: &[u8]| Preferences::of(&Form::of("application/x-www-form-urlencoded", note).expect("a form"));
        let first = preferences(said.as_bytes());
        prop_assert_eq!((first.hold, first.theme, first.density), (HoldTime::Long, Theme::Dark, Density::Compact));
        if let Ok(change) = first.note_change() {
            let note = value(change);
            prop_assert!(note.len() <= NOTE_BYTES_MAX);
            prop_assert_eq!(preferences(&note), first);
        }
    }
}

#[test]
fn a_changed_password_changes_the_password_mark() {
    let hashes = [
        "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$Oi7AsNkSF11/Jvy4J3BMjA",
        "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$Oi7AsNkSF11/Jvy4J3BMjB",
    ];
    assert_ne!(PasswordMark::of(hashes[0]), PasswordMark::of(hashes[1]));
}

#[test]
fn user_agents_are_described_by_their_usual_names() {
    for (said, name) in [
        (
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/115.0.0.0 Safari/537.36",
            "Chrome 115 on Linux",
        ),
        (
            "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
            "Firefox 128 on Linux",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Mobile/15E148 Safari/604.1",
            "Safari 17 on iPhone",
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36 Edg/120.0.0.0",
            "Edge 120 on Windows",
        ),
        ("curl/7.88.1", "curl/7.88.1"),
        ("", "Unknown browser"),
        ("Firefox/", "Firefox/"),
    ] {
        assert_eq!(program::in_words(said), name);
    }
    assert_eq!(program::in_words(&"ä".repeat(100)).len(), 40);
    assert_eq!(program::in_words("a\u{7}b").to_string(), "ab");
}
