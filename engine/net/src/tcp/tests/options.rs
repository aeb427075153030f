//! Parsing and writing of options.

use alloc::vec::Vec;
use proptest::prelude::*;
use smoltcp::wire::TcpOption;

use crate::tcp::{
    OPTIONS_BYTES_MAX, Options, SACK_BLOCKS_MAX, SackBlock, SequenceNumber, Timestamps,
};

#[test]
fn emitted_options_parse_to_the_same_values() {
    for mss in [None, Some(0), Some(536), Some(u16::MAX)] {
        for window_scale in [None, Some(0), Some(3), Some(14)] {
            for timestamps in [None, Some(Timestamps { value: u32::MAX, echo: 0x0102_0304 })] {
                let sack_permitted = mss.is_some();
                let options =
                    Options { mss, window_scale, timestamps, sack_permitted, ..Options::default() };
                let mut bytes = [0xff; OPTIONS_BYTES_MAX];
                options.emit(&mut bytes);
                assert!(options.len().is_multiple_of(4) && options.len() <= OPTIONS_BYTES_MAX);
                assert_eq!(Options::parse(&bytes[..options.len()]), options);
            }
        }
    }
}

#[test]
fn the_options_of_common_systems_are_understood() {
    let linux = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 1, 2, 3, 0, 0, 0, 0, 1, 3, 3, 7];
    assert_eq!(
        Options::parse(&linux),
        Options {
            mss: Some(1460),
            window_scale: Some(7),
            timestamps: Some(Timestamps { value: 0x10203, echo: 0 }),
            sack_permitted: true,
            ..Options::default()
        }
    );
    let windows = [2, 4, 5, 0xb4, 1, 3, 3, 8, 1, 1, 4, 2];
    assert_eq!(
        Options::parse(&windows),
        Options {
            mss: Some(1460),
            window_scale: Some(8),
            sack_permitted: true,
            ..Options::default()
        }
    );
}

#[test]
fn a_shift_beyond_fourteen_is_fourteen() {
    assert_eq!(Options::parse(&[3, 3, 200, 0]).window_scale, Some(14));
}

#[test]
fn a_malformed_option_ends_only_the_list() {
    for length in 0..=255u8 {
        let bytes = [2, 4, 1, 0, 253, length, 3, 3, 3, 4];
        assert_eq!(Options::parse(&bytes).mss, Some(256));
    }
    assert_eq!(Options::parse(&[0, 2, 4, 1, 0]), Options::default());
    assert_eq!(Options::parse(&[2]), Options::default());
    assert_eq!(Options::parse(&[2, 4, 1]), Options::default());
    assert_eq!(Options::parse(&[]), Options::default());
}

#[test]
fn sack_blocks_fill_a_header_beside_timestamps() {
    for count in 0..=SACK_BLOCKS_MAX {
        for timestamps in [None, Some(Timestamps { value: 1, echo: 2 })] {
            let mut options = Options { timestamps, ..Options::default() };
            for number in 0..count as u32 {
                let start = SequenceNumber(u32::MAX - 5) + 10 * number;
                options.sack.push(SackBlock { start, end: start + 7 });
            }
            let mut bytes = [0xff; OPTIONS_BYTES_MAX];
            options.emit(&mut bytes);
            assert!(options.len().is_multiple_of(4) && options.len() <= OPTIONS_BYTES_MAX);
            let parsed = Options::parse(&bytes[..options.len()]);
            let fit = if timestamps.is_some() { 3 } else { 4 };
            assert_eq!(parsed.sack.as_slice(), &options.sack.as_slice()[..count.min(fit)]);
            assert_eq!(Options { sack: options.sack, ..parsed }, options);
        }
    }
}

#[test]
fn sack_blocks_of_wrong_length_end_the_list() {
    let whole = [5, 10, 0, 0, 0, 1, 0, 0, 0, 9, 3, 3, 3, 4];
    let options = Options::parse(&whole);
    assert_eq!((options.sack.as_slice().len(), options.window_scale), (1, Some(3)));
    for length in (0..10).chain(11..=255) {
        let mut broken = whole;
        broken[1] = length;
        let options = Options::parse(&broken);
        assert!(options.sack.is_empty() && options.window_scale.is_none(), "{length}");
    }
}

/// Parses a list with smoltcp, which supports fewer SACK blocks.
fn theirs(mut bytes: &[u8]) -> Options {
    let mut options = Options::default();
    while let Ok((rest, option)) = TcpOption::parse(bytes) {
        match option {
            TcpOption::EndOfList => break,
            TcpOption::MaxSegmentSize(mss) => options.mss = Some(mss),
            TcpOption::WindowScale(shift) => options.window_scale = Some(shift.min(14)),
            TcpOption::TimeStamp { tsval, tsecr } => {
                options.timestamps = Some(Timestamps { value: tsval, echo: tsecr });
            }
            TcpOption::SackPermitted => options.sack_permitted = true,
            _ => {}
        }
        bytes = rest;
    }
    options
}

/// A valid or invalid element of an option list.
fn option() -> impl Strategy<Value = Vec<u8>> {
    let right = prop::sample::select(alloc::vec![
        &[1][..],
        &[2, 4, 5, 0xb4],
        &[3, 3, 7],
        &[4, 2],
        &[8, 10, 1, 2, 3, 4, 5, 6, 7, 8],
        &[30, 4, 9, 9],
        &[0],
    ]);
    prop_oneof![6 => right.prop_map(<[u8]>::to_vec), 1 => prop::collection::vec(0u8..12, 1..4)]
}

proptest! {
    #[test]
    fn a_list_of_options_parses_as_with_smoltcp(list in prop::collection::vec(option(), 0..8)) {
        let list = list.concat();
        let (ours, theirs) = (Options::parse(&list), theirs(&list));
        prop_assert_eq!(Options { sack: theirs.sack, ..ours }, theirs);
    }
}
