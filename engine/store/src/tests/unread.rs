//! Records that this program cannot read: of a later format, or damaged before they were hashed.

use super::disk::Cut;
use super::rig::{MIB, Rig, body, refused};
use crate::finding::Damage;
use crate::layout::PAGE_SECTORS;
use crate::outcome::OpenRefusal;
use crate::types::AccountId;
use alloc::vec::Vec;
use machine::SECTOR_BYTES;

/// Kinds that no format has yet. Those in `UNKNOWN` are refused, those in `SKIPPABLE` are skipped.
const UNKNOWN: [u8; 3] = [0, 60, 127];
const SKIPPABLE: [u8; 2] = [128, 255];
/// The kind of a record with one number of eight bytes.
const SHARD: u8 = 9;

fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, body.len() as u8, 0], body].concat()
}

/// A store with two messages, and with `record` before the second message.
fn with_record(record: &[u8]) -> (Rig, AccountId) {
    let mut rig = Rig::new(MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 300)).unwrap();
    rig.store.parts_mut().journals.gather(ada.shard()).extend_from_slice(record);
    rig.deliver(&[ada], &body(2, 300)).unwrap();
    (rig, ada)
}

/// The number of unreadable records of this kind that were found.
fn found(rig: &Rig, kind: u8) -> usize {
    rig.store.findings().iter().filter(|found| found.damage == Damage::Record(kind)).count()
}

/// Makes a checkpoint of the account's shard durable.
fn checkpoint(rig: &mut Rig, account: AccountId) {
    rig.store.parts_mut().journals.needs_mending(account.shard());
    (3..6).for_each(|number| rig.deliver(&[account], &body(number, 10)).unwrap());
}

#[test]
fn unknown_record_kind_refuses_the_disk_before_a_write() {
    for kind in UNKNOWN {
        let (mut rig, _) = with_record(&record(kind, b"what a later program keeps"));
        rig.disk.cut(Cut::Prefix(usize::MAX));
        let mut disk = rig.disk;
        let OpenRefusal::UnknownRecord { kind: named, sector } = refused(&disk) else {
            panic!("kind {kind}")
        };
        let page: Vec<u8> =
            (sector..sector + PAGE_SECTORS).flat_map(|sector| disk.peek(sector)).collect();
        assert_eq!(
            (named, &page[16..20]),
            (kind, &b"JRNL"[..]),
            "the place is not a journal block"
        );
        // Damage that opening would repair stays.
        disk.poke(0, [0; SECTOR_BYTES]);
        assert!(matches!(refused(&disk), OpenRefusal::UnknownRecord { .. }));
    }
}

#[test]
fn unknown_record_in_an_incomplete_group_is_ignored() {
    let mut rig = Rig::new(MIB);
    let ada = rig.create("ada@example.org");
    // The group has two blocks, and the second block is lost.
    for _ in 0..2 {
        let large = [&[60, 0xb8, 0x0b][..], &[7; 3000]].concat();
        rig.store.parts_mut().journals.gather(ada.shard()).extend_from_slice(&large);
    }
    let (_, continuation) = rig.continuation();
    let before = rig.disk.writes;
    rig.store.set_password(ada, &super::rig::password("new", ""), continuation).unwrap();
    rig.store.turn_ended();
    rig.exchange();
    while rig.disk.writes == before {
        rig.turn(1);
    }
    let rig = rig.cut(Cut::Prefix(1));
    assert!(rig.serving(), "{:?}", rig.store.state());
}

#[test]
fn skippable_record_is_skipped() {
    for kind in SKIPPABLE {
        let (rig, ada) = with_record(&record(kind, b"derived"));
        let mut rig = rig.cut(Cut::Prefix(usize::MAX));
        assert!(rig.serving() && rig.store.findings().is_empty());
        assert_eq!(rig.list(ada).len(), 2);
        checkpoint(&mut rig, ada);
        assert!(rig.cut(Cut::Prefix(usize::MAX)).fsck().is_clean());
    }
}

#[test]
fn malformed_record_is_kept_and_reported() {
    let malformed = record(SHARD, b"short");
    let (rig, ada) = with_record(&[&malformed[..], &malformed].concat());
    let mut rig = rig.cut(Cut::Prefix(usize::MAX));
    let mut messages = 2;
    for _ in 0..3 {
        assert!(rig.serving(), "{:?}", rig.store.state());
        assert_eq!(rig.list(ada).len(), messages);
        assert!(found(&rig, SHARD) >= 1 && !rig.fsck().is_clean());
        let kept: Vec<Vec<u8>> =
            rig.store.parts().indexes.of(ada.shard()).kept().map(<[u8]>::to_vec).collect();
        assert_eq!(kept, core::slice::from_ref(&malformed), "once");
        checkpoint(&mut rig, ada);
        messages += 3;
        rig = rig.cut(Cut::Prefix(usize::MAX));
    }
    assert_eq!(found(&rig, SHARD), 1, "the checkpoint does not have the record once");
}

/// A store with `count` malformed records of 203 bytes each, all different.
fn with_malformed(count: u8) -> (Rig, AccountId) {
    let mut rig = Rig::new(MIB);
    let ada = rig.create("ada@example.org");
    for number in 0..count {
        // The first eight bytes are no valid number: it is above the largest possible one.
        let malformed = record(SHARD, &[&[255; 8][..], &[number; 192]].concat());
        rig.store.parts_mut().journals.gather(ada.shard()).extend_from_slice(&malformed);
    }
    rig.deliver(&[ada], &body(1, 300)).unwrap();
    (rig, ada)
}

#[test]
fn kept_malformed_records_are_in_the_next_checkpoint() {
    let (rig, ada) = with_malformed(40);
    let before = rig.store.parts().indexes.of(ada.shard()).resident_bytes();
    let mut rig = rig.cut(Cut::Prefix(usize::MAX));
    for _ in 0..3 {
        let index = rig.store.parts().indexes.of(ada.shard());
        assert_eq!(index.kept().count(), 40);
        assert!(index.resident_bytes() >= before + 40 * 203);
        checkpoint(&mut rig, ada);
        rig = rig.cut(Cut::Prefix(usize::MAX));
    }
}

#[test]
fn too_many_malformed_records_refuse_the_disk() {
    let (mut rig, _) = with_malformed(60);
    rig.disk.cut(Cut::Prefix(usize::MAX));
    assert!(matches!(refused(&rig.disk), OpenRefusal::UnknownRecord { kind: SHARD, .. }));
}
