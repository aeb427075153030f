//! Disks with right hashes and impossible contents. No computation with the numbers on such a disk
//! overflows.

use super::disk::{Cut, TestDisk};
use super::rig::{MIB, Rig, body};
use crate::block::{self, BlockHeader};
use crate::bytes::COUNT_MAX;
use crate::chunk::HEADER_BYTES;
use crate::hash::HashKey;
use crate::layout::{Geometry, PAGE_BYTES, PAGE_SECTORS, Page, SegmentIndex, ShardId};
use crate::outcome::Refusal;
use crate::record::{put_removed, put_shard, records};
use crate::superblock::{Root, SlotContent, Superblock};
use crate::types::AccountId;
use alloc::vec::Vec;
use machine::SECTOR_BYTES;

#[test]
fn chunk_with_a_wrong_length_is_damaged() {
    let mut rig = Rig::new(MIB);
    let account = rig.create("ada@example.org");
    rig.deliver(&[account], &body(1, 300)).unwrap();
    rig.disk.cut(Cut::Prefix(usize::MAX));
    let key = rig.store.parts().superblock.key.clone();
    let read = |sector: u64, disk: &TestDisk| -> Vec<u8> {
        (sector..sector + PAGE_SECTORS).flat_map(|sector| disk.peek(sector)).collect()
    };
    let pages = rig.disk.used_sectors().into_iter().filter(|sector| sector % PAGE_SECTORS == 0);
    let found = pages.map(|sector| (sector, read(sector, &rig.disk)));
    let (sector, mut chunk) = found.into_iter().find(|(_, page)| &page[16..20] == b"BODY").unwrap();
    let message = rig.list(account)[0];
    for length in [0_u32, 299, 300, 301] {
        chunk[52..56].copy_from_slice(&length.to_le_bytes());
        let octets = key.hash([&chunk[HEADER_BYTES..HEADER_BYTES + length as usize]]);
        chunk[96..112].copy_from_slice(&octets.0);
        key.seal(&mut chunk, 112);
        for (number, bytes) in chunk.chunks(SECTOR_BYTES).enumerate() {
            rig.disk.poke(sector + number as u64, bytes.try_into().unwrap());
        }
        let expected = if length == 300 { Ok(body(1, 300)) } else { Err(Refusal::Damaged) };
        assert_eq!(rig.read(account, &message), expected, "{length}");
    }
}

fn superblock(sequence: u64, root_sequence: u64) -> Superblock {
    let mut roots = [None; crate::SHARDS];
    roots[3] = Some(Root {
        segment: SegmentIndex(1),
        place: 0,
        started: true,
        sequence: root_sequence,
        previous: u64::MAX,
    });
    let geometry = Geometry { pages: 256, segment_pages: 16 };
    Superblock {
        format: crate::superblock::Format::Four,
        sequence,
        id: [1; 16],
        key: HashKey::new([2; 16]),
        geometry,
        roots,
    }
}

#[test]
fn superblock_with_an_impossible_count_is_rejected() {
    let is_valid = |superblock: &Superblock| {
        matches!(Superblock::parse(&superblock.emit(Page(8), 7), Page(8)), SlotContent::Valid(_))
    };
    assert!(is_valid(&superblock(COUNT_MAX, COUNT_MAX)));
    assert!(!is_valid(&superblock(COUNT_MAX + 1, 1)));
    assert!(!is_valid(&superblock(u64::MAX, 1)));
    assert!(!is_valid(&superblock(1, u64::MAX)));
}

#[test]
fn journal_block_with_an_impossible_sequence_is_rejected() {
    let (key, shard) = (HashKey::new([2; 16]), ShardId(3));
    for (sequence, is_valid) in [(COUNT_MAX, true), (u64::MAX, false)] {
        let header = BlockHeader {
            shard,
            sequence,
            group_first: sequence,
            group_blocks: 1,
            previous: u64::MAX,
        };
        let mut pair = alloc::vec![0; 2 * PAGE_BYTES];
        block::emit_records(&mut pair, &key, Page(24), header, &[]);
        assert_eq!(block::parse(&pair[..PAGE_BYTES], &key, Page(24), shard).is_some(), is_valid);
    }
}

#[test]
fn record_with_an_impossible_count_is_skipped() {
    let account = AccountId(3);
    let written = |count: u64| {
        let mut bytes = Vec::new();
        put_shard(&mut bytes, count);
        put_removed(&mut bytes, account, 1, count, &[(1, 1)]);
        bytes
    };
    assert_eq!(records(&written(COUNT_MAX)).count(), 2);
    assert_eq!(records(&written(u64::MAX)).count(), 0);
}
