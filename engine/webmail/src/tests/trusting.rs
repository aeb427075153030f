//! Senders whose letters load what they want.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use store::{NOTE_BYTES_MAX, NoteChange};

use crate::Trust;

/// The note as it is then.
fn after(note: &[u8], trust: Trust) -> Vec<u8> {
    match trust.change(note) {
        Some(NoteChange::Put(_, value)) => value.into_vec(),
        Some(_) => Vec::new(),
        None => note.to_vec(),
    }
}

fn begin(note: &[u8], address: &str) -> Vec<u8> {
    after(note, Trust::Begin(address.into()))
}

#[test]
fn senders_are_trusted_one_by_one_and_not_any_more() {
    let note = begin(&begin(b"", "a@x.test"), "b@x.test");
    assert_eq!(note, b"a@x.test\nb@x.test");
    assert_eq!(begin(&note, "A@X.test"), b"b@x.test\nA@X.test", "each once");
    assert_eq!(after(&note, Trust::End("B@x.test".into())), b"a@x.test");
    assert_eq!(Trust::End("c@x.test".into()).change(&note), None);
    assert!(matches!(Trust::End("a@x.test".into()).change(b"a@x.test"), Some(NoteChange::Remove(_))));
    for none in [String::new(), "x".repeat(255), "a@x.test\nb@y.test".into()] {
        assert_eq!(Trust::Begin(none).change(&note), None);
    }
}

#[test]
fn who_was_trusted_longest_makes_room() {
    let mut note = Vec::new();
    for number in 0..500 {
        note = begin(&note, &format!("sender-{number}@example.org"));
        assert!(note.len() <= NOTE_BYTES_MAX);
    }
    let text = String::from_utf8(note).unwrap();
    assert!(text.ends_with("sender-499@example.org") && !text.contains("sender-0@") && text.lines().count() > 150);
    assert!(
        text.lines().rev().zip((0..500).rev()).all(|(line, number)| line == format!("sender-{number}@example.org"))
    );
}
