//! A disk is formatted only if it was never used.

use super::disk::{Cut, TestDisk};
use super::rig::{MIB, Rig, body, refused};
use crate::layout::{Geometry, PAGE_BYTES, PAGE_SECTORS, SegmentIndex, SegmentStarts, pages_of};
use crate::outcome::OpenRefusal;
use alloc::collections::BTreeSet;
use machine::SECTOR_BYTES;

const ZERO: [u8; SECTOR_BYTES] = [0; SECTOR_BYTES];

/// A disk with durable mail.
fn used() -> TestDisk {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    let bob = rig.create("bob@example.org");
    for number in 0..40 {
        rig.deliver(&[ada, bob], &body(number, 3000)).unwrap();
    }
    rig.disk.cut(Cut::Prefix(usize::MAX));
    rig.disk
}

fn erase(disk: &mut TestDisk, pages: core::ops::Range<u64>) {
    for sector in pages.start * PAGE_SECTORS..pages.end * PAGE_SECTORS {
        disk.poke(sector, ZERO);
    }
}

fn last_pages(disk: &TestDisk) -> core::ops::Range<u64> {
    let pages = u64::from(pages_of(disk.disk().sectors));
    pages - 8..pages
}

#[test]
fn a_used_disk_without_superblocks_is_refused() {
    let mut disk = used();
    for page in Rig::on(disk.clone()).store.parts().segments.geometry().slots() {
        erase(&mut disk, u64::from(page.0)..u64::from(page.0) + 1);
    }
    assert_eq!(refused(&disk), OpenRefusal::SuperblocksLost);
    erase(&mut disk, 0..24);
    let last = last_pages(&disk);
    erase(&mut disk, last);
    assert_eq!(refused(&disk), OpenRefusal::SuperblocksLost);
}

#[test]
fn a_single_used_segment_is_found_anywhere_on_the_disk() {
    let disk = used();
    let geometry = Rig::on(disk.clone()).store.parts().segments.geometry();
    let pages: BTreeSet<u64> =
        disk.used_sectors().iter().map(|sector| sector / PAGE_SECTORS).collect();
    let mut found = 0;
    for segment in 0..geometry.segments() {
        let first = u64::from(geometry.first_page(SegmentIndex(segment)).0);
        let end = first + u64::from(geometry.segment_pages);
        if pages.range(first..end).next().is_none() {
            continue;
        }
        let mut left = disk.clone();
        erase(&mut left, 0..first);
        erase(&mut left, end..u64::from(geometry.pages));
        assert_eq!(refused(&left), OpenRefusal::SuperblocksLost, "only segment {segment} is left");
        found += 1;
    }
    assert!(found > 2, "the disk uses some segments");
}

#[test]
fn grown_disk_without_superblocks_is_refused() {
    let mut disk = used();
    let last = last_pages(&disk);
    disk.resize(300 * MIB);
    erase(&mut disk, 0..24);
    erase(&mut disk, last);
    assert_eq!(refused(&disk), OpenRefusal::SuperblocksLost);
}

#[test]
fn a_disk_with_other_data_in_a_segment_is_refused() {
    let mut disk = TestDisk::new(4 * MIB, 1);
    disk.poke((24 + 16 * 7) * PAGE_SECTORS + 5, [1; SECTOR_BYTES]);
    assert_eq!(refused(&disk), OpenRefusal::NotOurs);
    let mut disk = TestDisk::new(4 * MIB, 1);
    disk.unreadable.insert((24 + 16 * 7) * PAGE_SECTORS);
    assert_eq!(refused(&disk), OpenRefusal::Unreadable);
    let mut disk = used();
    for page in [0, 8, last_pages(&disk).start, last_pages(&disk).start + 4] {
        disk.unreadable.insert(page * PAGE_SECTORS);
    }
    assert_eq!(refused(&disk), OpenRefusal::Unreadable);
}

#[test]
fn blank_check_covers_segments_of_every_earlier_size() {
    for pages in [256, 4096, 100_000, 131_072, 262_144, 1_000_000, 9_000_000] {
        let starts: BTreeSet<u32> = SegmentStarts::of_disk(pages).map(|page| page.0).collect();
        for earlier in
            [256, 300, 65_536, 131_071, 131_072, 200_000, 524_287, 600_000, 8_388_608, 9_000_000]
        {
            let Some(geometry) =
                Geometry::for_disk(u64::from(earlier) * PAGE_SECTORS).filter(|_| earlier <= pages)
            else {
                continue;
            };
            for segment in 0..geometry.segments() {
                let first = geometry.first_page(SegmentIndex(segment));
                assert!(
                    starts.contains(&first.0),
                    "{first:?} of a store of {earlier} pages on a disk of {pages}"
                );
            }
        }
    }
}

#[test]
fn reads_before_formatting_are_bounded() {
    let looked_at =
        |gib: u64| SegmentStarts::of_disk(pages_of((gib << 30) / SECTOR_BYTES as u64)).count();
    assert!(looked_at(1) < 12_300, "{}", looked_at(1));
    assert!(looked_at(64) < 37_000, "{}", looked_at(64));
    assert!(looked_at(1024) < 160_000, "{}", looked_at(1024));
    let mut rig = Rig::new(64 * MIB);
    assert!(rig.serving() && rig.store.is_new());
    assert!(rig.disk.sectors_read * SECTOR_BYTES as u64 <= (1024 + 32) * PAGE_BYTES as u64);
    assert!(rig.disk.requests_most <= 8);
    rig = rig.cut(Cut::Prefix(usize::MAX));
    assert!(rig.serving() && !rig.store.is_new(), "the disk is new only once");
}

#[test]
fn interrupted_formatting_leaves_a_blank_disk_or_a_store() {
    for writes in 0..4 {
        let mut rig = Rig::opening(TestDisk::new(MIB, 1));
        while rig.disk.writes < writes {
            rig.turn(1);
        }
        let rig = rig.cut(Cut::Dice);
        assert!(rig.serving(), "after {writes} writes: {:?}", rig.store.state());
    }
}
