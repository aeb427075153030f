//! Tests of decoding the clock chip's registers in each of its number formats.

use super::*;

fn decode(fields: [u8; 6], status_b: u8) -> Option<u64> {
    Registers { fields, status_b }.decode().map(UnixTime::seconds)
}

#[test]
fn bcd_and_binary_clock_give_the_same_time() {
    let expected = Some(1_709_210_096);
    assert_eq!(decode([0x56, 0x34, 0x12, 0x29, 0x02, 0x24], HOURS_24), expected);
    assert_eq!(decode([56, 34, 12, 29, 2, 24], HOURS_24 | BINARY), expected);
    assert_eq!(decode([0x56, 0x34, 0x92, 0x29, 0x02, 0x24], 0), expected);
    assert_eq!(decode([56, 34, 12 | AFTERNOON, 29, 2, 24], BINARY), expected);
}

#[test]
fn twelve_am_is_midnight() {
    assert_eq!(decode([0, 0, 0x12, 1, 1, 0x00], 0), Some(946_684_800));
    assert_eq!(decode([0, 0, 0, 1, 1, 0], HOURS_24), Some(946_684_800));
}

#[test]
fn missing_clock_chip_gives_no_time() {
    assert_eq!(decode([0xFF; 6], 0xFF), None);
    assert_eq!(decode([0; 6], 0), None);
}

#[test]
fn every_day_of_the_century_follows_the_previous_one() {
    let mut expected = 10_957;
    for year in 2000..2100 {
        for month in 1..=12 {
            let is_leap = year % 4 == 0;
            let days = [31, 28 + u64::from(is_leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
                [month as usize - 1];
            for day in 1..=days {
                assert_eq!(days_since_1970(year, month, day), expected);
                expected += 1;
            }
        }
    }
}
