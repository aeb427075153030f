//! Tests of encoding and decoding the crash sector.

use super::*;

#[test]
fn crash_report_is_read_back_unchanged() {
    let sector = encode(
        Instant(1_500_000),
        Some(UnixTime::from_seconds(1_700_000_000)),
        format_args!("{} is broken", "it"),
    );
    assert_eq!(
        decode(&sector),
        Some("after 1.500000 s, at 1700000000 s since 1970\nit is broken\n")
    );
}

#[test]
fn long_crash_message_is_cut_at_a_character() {
    let sector = encode(Instant(0), None, format_args!("{}", "\u{e9}".repeat(400)));
    let text = decode(&sector).unwrap();
    assert!(text.ends_with('\u{e9}') && text.len() + HEADING.len() >= SECTOR_BYTES - 1);
}

#[test]
fn other_sectors_contain_no_crash_report() {
    assert_eq!(decode(&[0; SECTOR_BYTES]), None);
    assert_eq!(decode(&[0xFF; SECTOR_BYTES]), None);
    assert_eq!(decode(b"barepost crash 2\n"), None);
    assert_eq!(decode(b""), None);
}
