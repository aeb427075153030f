//! Entries in records of format 4.

use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

fn emitted(record: &QueuedRecord) -> Vec<u8> {
    let mut out = Vec::new();
    record.emit(&mut out);
    out
}

fn valid() -> QueuedRecord {
    let entry = OutboxEntry {
        results: Results::Explicit { count: 3, done: 0b011, reported: 0b001 },
        is_damage_reported: true,
        ..OutboxEntry::submitted(200, 3)
    };
    QueuedRecord { account: AccountId(3), uid: Uid(7), modseq: 9, entry }
}

#[test]
fn an_entry_lies_on_the_disk_as_the_format_says() {
    let bytes = emitted(&valid());
    assert_eq!(bytes[20..], [1, 1, 2, 1, 3, 1, 200, 0, 3]);
    assert_eq!(QueuedRecord::parse(Reader::new(&bytes)), Some(valid()));
}

/// `forward` says how many recipients such an entry has: results of more than a count allows are no
/// fault of the program.
#[test]
fn a_record_that_counts_the_recipients_of_a_forward_is_malformed() {
    let (mut bytes, parsed) = (emitted(&valid()), |bytes: &[u8]| QueuedRecord::parse(Reader::new(bytes)));
    assert!(parsed(&bytes).is_some());
    bytes[20] = FORWARDED;
    assert_eq!(parsed(&bytes), None);
    *bytes.last_mut().unwrap() = 0;
    assert!(parsed(&bytes).is_some());
}

proptest! {
    /// Whatever bytes a record has: it is refused, or it is exactly what was read of it.
    #[test]
    fn what_is_read_of_any_bytes_is_all_of_them(mut bytes in prop::collection::vec(any::<u8>(), 24..31), near in any::<bool>(), at in 20_usize..29, byte in any::<u8>()) {
        if near {
            bytes = emitted(&valid());
            bytes[at] = byte;
        }
        if let Some(record) = QueuedRecord::parse(Reader::new(&bytes)) {
            prop_assert_eq!(emitted(&record), bytes.clone());
            if let Results::Explicit { count, done, reported } = record.entry.results {
                prop_assert!(reported & !done == 0 && done & !recipients(count) == 0);
            }
        }
        if let Some(record) = ProgressRecord::parse(Reader::new(&bytes)) {
            let mut again = Vec::new();
            record.emit(&mut again);
            prop_assert_eq!(again, bytes);
            let mut entry = valid().entry;
            record.apply(&mut entry);
            let Results::Explicit { count, done, reported } = entry.results else { panic!("another layout") };
            prop_assert!(reported & !done == 0 && done & !recipients(count) == 0);
            prop_assert!(done & 0b011 == 0b011 && reported & 1 == 1, "a bit was cleared");
        }
    }
}
