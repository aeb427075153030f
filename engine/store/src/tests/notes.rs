//! Notes of accounts: bounded, complete, and as durable as all other data.

use super::disk::Cut;
use super::rig::{MIB, Rig};
use crate::outcome::{Outcome, Refusal};
use crate::types::AccountId;
use crate::{NOTE_BYTES_MAX, NOTE_KEY_MAX, NOTES_BYTES_MAX, NOTES_MAX, NoteChange};
use alloc::format;
use alloc::vec::Vec;

fn put(key: &str, length: usize) -> NoteChange {
    NoteChange::Put(key.as_bytes().into(), alloc::vec![b'v'; length].into())
}

impl Rig {
    pub(super) fn note(
        &mut self,
        account: AccountId,
        changes: Vec<NoteChange>,
    ) -> Result<(), Refusal> {
        let (number, continuation) = self.continuation();
        self.at(account).change_notes(account, changes, continuation)?;
        match self.outcome(number) {
            Outcome::Changed => Ok(()),
            Outcome::Refused(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }

    fn lengths(&mut self, account: AccountId) -> Vec<(Vec<u8>, usize)> {
        let known = self.at(account).account(account).unwrap();
        known.notes().map(|(key, value)| (key.to_vec(), value.len())).collect()
    }
}

#[test]
fn note_changes_are_atomic() {
    let mut rig = Rig::new(16 * MIB);
    let (ada, eve) = (rig.create("ada@example.org"), rig.create("eve@example.org"));
    rig.note(ada, alloc::vec![put("a", 3), put("b", 5)]).unwrap();
    rig.note(eve, alloc::vec![put("a", 7)]).unwrap();
    let remove = |key: &str| NoteChange::Remove(key.as_bytes().into());
    let replace =
        |key: &str| NoteChange::Replace(key.as_bytes().into(), b"twelve bytes"[..].into());
    rig.note(ada, alloc::vec![remove("a"), replace("a"), replace("b")]).unwrap();
    assert_eq!(rig.note(ada, alloc::vec![replace("c"), remove("a")]), Err(Refusal::NoSuchNote));
    let mut rig = rig.cut(Cut::Prefix(0));
    assert_eq!(rig.lengths(ada), [(b"b".to_vec(), 12)]);
    assert_eq!(rig.lengths(eve), [(b"a".to_vec(), 7)]);
    assert_eq!(rig.store.account(ada).unwrap().note(b"b"), Some(&b"twelve bytes"[..]));
    assert!(rig.fsck().is_clean() && rig.fsck().accounts.iter().all(|account| account.notes == 1));
}

#[test]
fn notes_of_an_account_are_bounded() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    for number in 0..NOTES_MAX {
        rig.note(ada, alloc::vec![put(&format!("{number:02}"), 1)]).unwrap();
    }
    assert_eq!(rig.note(ada, alloc::vec![put("one too many", 1)]), Err(Refusal::TooMany));
    rig.note(
        ada,
        alloc::vec![put("00", 2), NoteChange::Remove(b"01"[..].into()), put("one more", 1)],
    )
    .unwrap();
    let most = NOTES_BYTES_MAX
        - (rig.lengths(ada).iter().map(|(key, length)| key.len() + length).sum::<usize>());
    rig.note(
        ada,
        alloc::vec![
            put("02", NOTE_BYTES_MAX),
            put("03", NOTE_BYTES_MAX),
            put("04", most - 2 * NOTE_BYTES_MAX + 3)
        ],
    )
    .unwrap();
    assert_eq!(rig.note(ada, alloc::vec![put("05", 2)]), Err(Refusal::TooMany));
    for wrong in [
        put("", 1),
        put("x", 0),
        put("x", NOTE_BYTES_MAX + 1),
        put(&"x".repeat(NOTE_KEY_MAX + 1), 1),
    ] {
        assert_eq!(rig.note(ada, alloc::vec![wrong]), Err(Refusal::TooLarge));
    }
    assert_eq!(rig.note(ada, alloc::vec![put("x", 1); NOTES_MAX + 1]), Err(Refusal::TooLarge));
    let unknown = AccountId::from_bits(ada.to_bits() ^ 64);
    assert_eq!(rig.note(unknown, alloc::vec![put("x", 1)]), Err(Refusal::NoSuchAccount));
}

/// A removed note stays removed, even if a replacement was requested before the client could know
/// of the removal.
#[test]
fn replacing_a_removed_note_does_not_restore_it() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    rig.note(ada, alloc::vec![put("session", 10)]).unwrap();
    let (first, continuation) = rig.continuation();
    rig.store
        .change_notes(ada, alloc::vec![NoteChange::Remove(b"session"[..].into())], continuation)
        .unwrap();
    let (second, continuation) = rig.continuation();
    let seen = NoteChange::Replace(b"session"[..].into(), b"seen"[..].into());
    rig.store.change_notes(ada, alloc::vec![seen], continuation).unwrap();
    assert!(matches!(rig.outcome(first), Outcome::Changed));
    assert!(matches!(rig.outcome(second), Outcome::Refused(Refusal::NoSuchNote)));
    assert_eq!(rig.lengths(ada), []);
}

/// Checkpoints preserve notes. A journal that repeats the same note stays short.
#[test]
fn checkpoint_preserves_notes() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    rig.note(ada, alloc::vec![put("kept", 3000)]).unwrap();
    let root =
        |rig: &Rig| rig.store.parts().superblock.roots[ada.shard().index()].unwrap().sequence;
    let before = root(&rig);
    for number in 1..1200 {
        rig.note(ada, alloc::vec![put("changed", 1 + number)]).unwrap();
    }
    assert!(root(&rig) > before, "no checkpoint was made");
    let mut rig = rig.cut(Cut::Prefix(0));
    assert_eq!(rig.lengths(ada), [(b"changed".to_vec(), 1200), (b"kept".to_vec(), 3000)]);
}
