//! Properties that hold for all bytes, for all segmentations, and for any buffer space.

use std::vec::Vec;

use http2::{FrameType, PREFACE};
use proptest::prelude::*;

use super::client::{Client, END_HEADERS, END_STREAM, block, fields, frame, get, settings, window};
use crate::HttpWaitsFor;

/// The output for `bytes` if they arrive in pieces of `lengths` bytes, and `room` bytes of buffer
/// space are available at a time. Also returns whether the connection was closed, and the length of
/// the log.
fn output_of(bytes: &[u8], lengths: &[usize], room: usize) -> (Vec<u8>, bool, usize) {
    let mut client = Client::silent();
    let mut rest = bytes;
    let (mut all, mut waits) = (Vec::new(), 0);
    for length in lengths.iter().copied().chain([usize::MAX]) {
        let (piece, after) = rest.split_at(length.min(rest.len()));
        client.world.room = room;
        client.arrive(piece);
        rest = after;
        all.append(&mut client.world.output);
        while client.session.waits_for() == HttpWaitsFor::SendRoom {
            waits += 1;
            assert!(waits < 5_000, "any buffer space makes progress");
            client.world.room = room;
            client.arrive(b"");
            all.append(&mut client.world.output);
        }
    }
    (all, client.world.closed, client.world.log.len())
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    let number = prop::sample::select(std::vec![1u32, 3, 5, 7, 9, 11]);
    let path =
        prop::sample::select(std::vec!["/", "/hello.txt", "/nothing", "/empty", "/style.css"]);
    let sizes = prop::sample::select(std::vec![0u32, 1, 10, 3000, 65_535]);
    prop_oneof![
        6 => (number.clone(), path).prop_map(|(number, path)| get(number, path)),
        2 => number.clone().prop_map(|number| frame(FrameType::Headers, END_HEADERS, number, &block(&fields("POST", "/")))),
        2 => (number.clone(), any::<bool>()).prop_map(|(number, is_last)| {
            frame(FrameType::Data, if is_last { END_STREAM } else { 0 }, number, &[b'x'; 300])
        }),
        1 => number.clone().prop_map(|number| frame(FrameType::ResetStream, 0, number, &[0; 4])),
        2 => (number, sizes.clone()).prop_map(|(number, size)| window(number, size.max(1))),
        1 => sizes.prop_map(|size| settings(&[(4, size)])),
        1 => Just(frame(FrameType::Ping, 0, 0, &[0; 8])),
        1 => Just(frame(FrameType::Unknown(50), 0, 0, &[0; 600])),
        1 => prop::collection::vec(any::<u8>(), 0..30),
    ]
}

proptest! {
    #[test]
    fn segmentation_of_http2_bytes_changes_nothing(
        pieces in prop::collection::vec(piece(), 0..14), lengths in prop::collection::vec(0usize..60, 0..40),
    ) {
        let bytes = [PREFACE.as_slice(), &settings(&[]), &pieces.concat()].concat();
        // Only the log is compared. If windows are shut, the order of sending may depend on the
        // segmentation.
        let (whole, cut) = (output_of(&bytes, &[], 1 << 20), output_of(&bytes, &lengths, 1 << 20));
        prop_assert_eq!((whole.1, whole.2), (cut.1, cut.2));
    }

    #[test]
    fn any_buffer_space_completes_all_responses(
        pieces in prop::collection::vec(piece(), 0..14), lengths in prop::collection::vec(0usize..60, 0..20), room in 3500usize..9000,
    ) {
        let bytes = [PREFACE.as_slice(), &settings(&[]), &pieces.concat()].concat();
        let (_, closed, answered) = output_of(&bytes, &lengths, room);
        let (_, closed_too, answered_too) = output_of(&bytes, &lengths, 1 << 20);
        prop_assert_eq!((closed, answered), (closed_too, answered_too));
    }

    #[test]
    fn no_bytes_break_an_http2_connection(
        bytes in prop::collection::vec(any::<u8>(), 0..300), lengths in prop::collection::vec(0usize..40, 0..12),
    ) {
        output_of(&[PREFACE.as_slice(), &settings(&[]), &bytes].concat(), &lengths, 5000);
        output_of(&bytes, &lengths, 5000);
    }
}
