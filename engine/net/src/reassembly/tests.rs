//! The fragments that a sender may send, and those that are refused.

use super::{
    DATAGRAM_BYTES_MAX, DATAGRAMS_MAX, DatagramKey, FragmentHeader, FragmentResult, LIFETIME,
    Reassembly,
};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use machine::Instant;
use proptest::prelude::*;

fn part(identification: u32, offset: usize, more_fragments: bool) -> FragmentHeader {
    let (source, destination) =
        (Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 0, 0, 2).into());
    let key = DatagramKey { source, destination, identification, protocol: 17 };
    FragmentHeader {
        key,
        offset: offset as u16,
        more_fragments,
        begins_with: if offset == 0 { 17 } else { 99 },
    }
}

fn arrive(
    reassembly: &mut Reassembly,
    id: u32,
    offset: usize,
    more: bool,
    payload: &[u8],
) -> FragmentResult {
    reassembly.fragment_arrived(Instant::START, &part(id, offset, more), payload)
}

fn taken(reassembly: &mut Reassembly, progress: FragmentResult) -> Vec<u8> {
    let FragmentResult::Whole(index) = progress else { panic!("not whole: {progress:?}") };
    let whole = reassembly.take(index).unwrap();
    assert_eq!(whole.begins_with, 17, "the first fragment names the protocol");
    let bytes = whole.buffer[..whole.length].to_vec();
    reassembly.put_back(whole.buffer);
    bytes
}

#[test]
fn fragments_in_any_order_make_the_datagram() {
    let mut reassembly = Reassembly::new();
    assert_eq!(arrive(&mut reassembly, 1, 16, false, b"end"), FragmentResult::Waiting);
    assert_eq!(arrive(&mut reassembly, 1, 0, true, b"01234567"), FragmentResult::Waiting);
    let progress = arrive(&mut reassembly, 1, 8, true, b"89abcdef");
    assert_eq!(taken(&mut reassembly, progress), b"0123456789abcdefend");
    assert_eq!(reassembly.next_deadline(), None);
}

#[test]
fn a_repeated_fragment_is_ignored() {
    let mut reassembly = Reassembly::new();
    assert_eq!(arrive(&mut reassembly, 1, 0, true, b"01234567"), FragmentResult::Waiting);
    assert_eq!(arrive(&mut reassembly, 1, 0, true, b"01234567"), FragmentResult::Waiting);
    let progress = arrive(&mut reassembly, 1, 8, false, b"8");
    assert_eq!(taken(&mut reassembly, progress), b"012345678");
}

#[test]
fn an_overlap_ends_the_datagram_for_good() {
    let mut reassembly = Reassembly::new();
    assert_eq!(arrive(&mut reassembly, 1, 0, true, b"0123456789abcdef"), FragmentResult::Waiting);
    assert_eq!(arrive(&mut reassembly, 1, 8, true, b"XXXXXXXX"), FragmentResult::Failed);
    assert_eq!(arrive(&mut reassembly, 1, 16, false, b"end"), FragmentResult::Waiting);
    assert_eq!(arrive(&mut reassembly, 1, 0, true, b"0123456789abcdef"), FragmentResult::Waiting);
}

#[test]
fn contradictory_ends_fail_the_datagram() {
    let mut reassembly = Reassembly::new();
    assert_eq!(arrive(&mut reassembly, 1, 16, false, b"end"), FragmentResult::Waiting);
    assert_eq!(arrive(&mut reassembly, 1, 24, false, b"end"), FragmentResult::Failed);
    assert_eq!(arrive(&mut reassembly, 2, 16, true, b"01234567"), FragmentResult::Waiting);
    assert_eq!(arrive(&mut reassembly, 2, 8, false, b"end"), FragmentResult::Failed);
}

#[test]
fn too_long_and_impossible_fragments_are_refused() {
    let mut reassembly = Reassembly::new();
    assert_eq!(
        arrive(&mut reassembly, 1, DATAGRAM_BYTES_MAX - 8, false, b"012345678"),
        FragmentResult::Failed
    );
    assert_eq!(arrive(&mut reassembly, 1, 65_528, false, b"01234567"), FragmentResult::Failed);
    assert_eq!(arrive(&mut reassembly, 1, 0, true, b"odd"), FragmentResult::Failed);
    assert_eq!(arrive(&mut reassembly, 1, 8, false, b""), FragmentResult::Failed);
    assert_eq!(reassembly.next_deadline(), None, "refused fragments start no datagram");
}

#[test]
fn the_oldest_datagram_is_evicted_and_late_ones_expire() {
    let mut reassembly = Reassembly::new();
    for id in 0..=DATAGRAMS_MAX as u32 {
        let now = Instant(u64::from(id));
        assert_eq!(
            reassembly.fragment_arrived(now, &part(id, 0, true), b"01234567"),
            FragmentResult::Waiting
        );
    }
    assert_eq!(reassembly.expire(Instant::START), 1, "the first datagram was evicted");
    assert_eq!(reassembly.next_deadline(), Some(Instant(1) + LIFETIME));
    assert_eq!(reassembly.expire(Instant(1_000) + LIFETIME), DATAGRAMS_MAX as u64);
    assert_eq!(reassembly.next_deadline(), None);
    assert_eq!(
        arrive(&mut reassembly, 1, 8, false, b"late"),
        FragmentResult::Waiting,
        "the first fragment has expired"
    );
}

proptest! {
    #[test]
    fn fragments_of_any_size_and_order_are_reassembled(
        length in 9usize..4000,
        cuts in proptest::collection::vec(1usize..500, 0..12),
        order in any::<u64>(),
    ) {
        let whole: Vec<u8> = (0..length).map(|at| (at * 7 % 251) as u8).collect();
        let mut edges: Vec<usize> = cuts.iter().map(|cut| cut * 8).filter(|&edge| edge < length).collect();
        edges.extend([0, length]);
        edges.sort_unstable();
        edges.dedup();
        let mut parts: Vec<_> = edges.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let rotation = order as usize % parts.len();
        parts.rotate_left(rotation);
        if order & 1 << 40 != 0 {
            parts.reverse();
        }
        let mut reassembly = Reassembly::new();
        for (number, (start, end)) in parts.iter().copied().enumerate() {
            let progress = arrive(&mut reassembly, 1, start, end < length, &whole[start..end]);
            if number + 1 == parts.len() {
                prop_assert_eq!(taken(&mut reassembly, progress), whole.clone());
            } else {
                prop_assert_eq!(progress, FragmentResult::Waiting);
            }
        }
    }

    #[test]
    fn arbitrary_fragments_do_no_harm(
        fragments in proptest::collection::vec((any::<u32>(), 0u16..8192, any::<bool>(), 0usize..2000), 0..200)
    ) {
        let mut reassembly = Reassembly::new();
        let bytes = [0; 2000];
        for (id, offset, more, length) in fragments {
            let progress = arrive(&mut reassembly, id % 12, usize::from(offset) * 8, more, &bytes[..length]);
            if let FragmentResult::Whole(index) = progress {
                let whole = reassembly.take(index).unwrap();
                reassembly.put_back(whole.buffer);
            }
        }
    }
}
