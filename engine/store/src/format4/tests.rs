//! Outbox entries in records of format 4.

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
fn format_4_entry_has_the_specified_bytes() {
    let bytes = emitted(&valid());
    assert_eq!(bytes[20..], [1, 1, 2, 1, 3, 1, 200, 0, 3]);
    assert_eq!(QueuedRecord::parse(FieldReader::new(&bytes)), Some(valid()));
}

/// The number of recipients of such an entry follows from `forward`, which may change. With a
/// count, a result beyond it would look like a bug of ours.
#[test]
fn forward_record_with_a_recipient_count_is_malformed() {
    let (mut bytes, parsed) =
        (emitted(&valid()), |bytes: &[u8]| QueuedRecord::parse(FieldReader::new(bytes)));
    assert!(parsed(&bytes).is_some());
    bytes[20] = FORWARDED;
    assert_eq!(parsed(&bytes), None);
    *bytes.last_mut().unwrap() = 0;
    assert!(parsed(&bytes).is_some());
}

proptest! {
    /// Any bytes of a record are either refused, or written again exactly as they were read.
    #[test]
    fn queued_record_is_refused_or_emitted_unchanged(mut bytes in prop::collection::vec(any::<u8>(), 24..31), near in any::<bool>(), at in 20_usize..29, byte in any::<u8>()) {
        if near {
            bytes = emitted(&valid());
            bytes[at] = byte;
        }
        if let Some(record) = QueuedRecord::parse(FieldReader::new(&bytes)) {
            prop_assert_eq!(emitted(&record), bytes.clone());
            if let Results::Explicit { count, done, reported } = record.entry.results {
                prop_assert!(reported & !done == 0 && done & !recipients(count) == 0);
            }
        }
    }

    /// Any bytes of a change are either refused, or written again exactly as they were read. A
    /// change never clears a result of an entry, and adds no recipient.
    #[test]
    fn progress_record_only_adds_possible_results(
        fields in (0..5_u8, 0..5_u8, 0..3_u8, any::<u8>(), any::<u8>()),
        is_sound in any::<bool>(),
        length in 24..27_usize,
    ) {
        let (state, notices, layout, done, reported) = fields;
        let mut bytes = emitted(&valid());
        bytes.truncate(20);
        bytes.extend([state, notices, layout, done, if is_sound { reported & done } else { reported }, 0]);
        bytes.truncate(length);
        let record = ProgressRecord::parse(FieldReader::new(&bytes));
        let has_results = match layout {
            0 => bytes.get(24) == Some(&0),
            1 => bytes.get(24).is_some_and(|reported| reported & !done == 0),
            _ => false,
        };
        prop_assert_eq!(record.is_some(), has_results && length == 25 && state < 4 && notices < 4);
        if let Some(record) = record {
            let mut again = Vec::new();
            record.emit(&mut again);
            prop_assert_eq!(again, bytes);
            let mut entry = valid().entry;
            record.apply(&mut entry);
            let Results::Explicit { count, done, reported } = entry.results else { panic!("another layout") };
            prop_assert!(reported & !done == 0 && done & !recipients(count) == 0);
            prop_assert!(done & 0b011 == 0b011 && reported & 1 == 1, "a bit was cleared");
            let mut packed = OutboxEntry { results: Results::Packed(0b0101), ..valid().entry };
            record.apply(&mut packed);
            let Results::Packed(known) = packed.results else { panic!("another layout") };
            prop_assert_eq!(known, 0b0101 | if layout == 0 { record_done(&record) } else { 0 });
        }
    }
}

/// The results that a change in layout 0 adds.
fn record_done(record: &ProgressRecord) -> u8 {
    let Results::Packed(done) = record.results else { panic!("another layout") };
    done
}
