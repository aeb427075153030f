//! Frame heads and settings.

use std::vec::Vec;

use proptest::prelude::*;

use crate::{ErrorCode, FrameHead, FrameType, Setting, settings};

proptest! {
    #[test]
    fn a_frame_head_survives_parse_and_emit(bytes in any::<[u8; 9]>()) {
        let head = FrameHead::parse(&bytes).unwrap();
        let mut expected = bytes;
        // The reserved bit is written as zero.
        expected[5] &= 0x7f;
        prop_assert_eq!(head.bytes(), expected);
        prop_assert_eq!(FrameHead::parse(&head.bytes()), Some(head));
    }
}

#[test]
fn an_incomplete_frame_head_is_not_parsed() {
    let bytes = [0, 0x40, 1, 1, 5, 0x80, 0, 0, 3];
    let head = FrameHead { length: 0x4001, kind: FrameType::Headers, flags: 5, stream: 3 };
    assert_eq!(FrameHead::parse(&bytes), Some(head));
    assert_eq!(FrameHead::parse(&bytes[..8]), None);
    assert!(head.has(1) && head.has(4) && head.has(5) && !head.has(8) && !head.has(9));
}

#[test]
fn invalid_settings_are_rejected() {
    let read = |payload: &[u8]| -> Result<Vec<Setting>, ErrorCode> { settings(payload)?.collect() };
    let own = [
        Setting::ConcurrentStreamsMax(100),
        Setting::InitialWindow(i32::MAX as u32),
        Setting::FrameBytesMax(16_384),
        Setting::ListBytesMax(8192),
    ];
    let payload: Vec<u8> = own.iter().filter_map(|setting| setting.bytes()).flatten().collect();
    assert_eq!(read(&payload), Ok(own.to_vec()));
    assert_eq!(
        read(&[0, 1, 0, 0, 0, 0, 0, 99, 1, 2, 3, 4]),
        Ok(Vec::from([Setting::Other, Setting::Other]))
    );
    assert_eq!(Setting::Other.bytes(), None);
    assert_eq!(read(&[]), Ok(Vec::new()));
    assert_eq!(read(&payload[1..]), Err(ErrorCode::FrameSizeError));
    assert_eq!(read(&[0, 2, 0, 0, 0, 2]), Err(ErrorCode::ProtocolError), "push is 0 or 1");
    assert_eq!(read(&[0, 4, 0x80, 0, 0, 0]), Err(ErrorCode::FlowControlError));
    assert_eq!(read(&[0, 5, 0, 0, 0x3f, 0xff]), Err(ErrorCode::ProtocolError));
    assert_eq!(read(&[0, 5, 1, 0, 0, 0]), Err(ErrorCode::ProtocolError));
    assert_eq!(
        read(&[0, 5, 0, 0xff, 0xff, 0xff]),
        Ok(Vec::from([Setting::FrameBytesMax(0xff_ffff)]))
    );
}
