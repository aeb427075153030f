//! Headers and extension headers, byte by byte.

use core::net::Ipv6Addr;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::extensions::{Fragment, HEADERS_MAX, OPTIONS_MAX, Problem, Walked, walk};
use super::{Ipv6Header, common_bits, header, is_possible, shares_prefix, solicited_node};

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

#[test]
fn a_header_of_ours_is_read_as_it_was_written() {
    let (source, destination) = (address("2001:db8::1"), address("fe80::2"));
    let mut packet = header(source, destination, 58, 255, 4).to_vec();
    packet.extend([1, 2, 3, 4, 5]);
    let read = Ipv6Header::parse(&packet).unwrap();
    let is_marked = false;
    assert_eq!(
        read,
        Ipv6Header {
            source,
            destination,
            is_marked,
            next_header: 58,
            hop_limit: 255,
            payload_bytes: 4
        }
    );
    assert_eq!(read.cut(&packet).unwrap().len(), 44, "bytes after the payload are padding");
    assert_eq!(read.cut(&packet[..43]), None);
    packet[0] = 0x45;
    assert_eq!(Ipv6Header::parse(&packet), None);
    assert_eq!(Ipv6Header::parse(&packet[..39]), None);
}

#[test]
fn loopback_and_mapped_addresses_are_impossible() {
    for impossible in ["::1", "::ffff:10.0.0.7", "::ffff:0:0"] {
        assert!(!is_possible(address(impossible)), "{impossible}");
    }
    for possible in
        ["::", "fe80::1", "2001:db8::ffff:1", "::2", "ff02::1", "1::ffff:0:1", "::fffe:10.0.0.7"]
    {
        assert!(is_possible(address(possible)), "{possible}");
    }
}

#[test]
fn prefixes_are_compared_bit_by_bit() {
    let (one, other) = (address("2001:db8:0:1::1"), address("2001:db8:0:3::1"));
    assert_eq!(common_bits(one, other), 62);
    assert!(shares_prefix(one, other, 62) && !shares_prefix(one, other, 63));
    assert!(shares_prefix(one, one, 128) && shares_prefix(one, address("fe80::1"), 0));
    assert_eq!(solicited_node(address("2001:db8::aabb:ccdd")), address("ff02::1:ffbb:ccdd"));
}

/// An extension header with exactly these options.
fn with_options(next: u8, options: &[u8]) -> Vec<u8> {
    assert_eq!((options.len() + 2) % 8, 0);
    let mut bytes = vec![next, ((options.len() + 2) / 8 - 1) as u8];
    bytes.extend(options);
    bytes
}

fn walk_from(first: u8, bytes: &[u8]) -> Walked {
    let mut packet = vec![0; 40];
    packet.extend(bytes);
    walk(&packet, first, 6, 40)
}

#[test]
fn known_options_and_finished_routes_are_skipped() {
    let mut bytes = with_options(60, &[5, 2, 0, 0, 1, 0]);
    bytes.extend(with_options(43, &[0, 0, 0, 0, 0, 0]));
    bytes.extend([44, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([6, 0, 0, 0, 0, 0, 0, 9]);
    assert_eq!(
        walk_from(0, &bytes),
        Walked::Payload { protocol: 6, at: 72, named_at: 64 },
        "a fragment header on a whole packet is skipped"
    );
    assert_eq!(walk_from(17, &[]), Walked::Payload { protocol: 17, at: 40, named_at: 6 });
    assert_eq!(walk_from(59, &[0; 8]), Walked::Dropped);
}

#[test]
fn a_fragment_is_returned_with_its_offset() {
    let Walked::Fragment(fragment) = walk_from(44, &[17, 0, 0x05, 0xa9, 1, 2, 3, 4, 0xff]) else {
        panic!()
    };
    let expected = Fragment {
        header_at: 40,
        at: 48,
        next_header: 17,
        offset: 1448,
        more: true,
        identification: 0x0102_0304,
    };
    assert_eq!(fragment, expected);
    assert!(matches!(
        walk_from(44, &[17, 0, 0x05, 0xa8, 1, 2, 3, 4]),
        Walked::Fragment(Fragment { more: false, .. })
    ));
}

#[test]
fn an_unknown_option_is_treated_as_its_type_says() {
    let option = |kind| walk_from(60, &with_options(6, &[1, 0, kind, 2, 0, 0]));
    assert_eq!(option(0x1e), Walked::Payload { protocol: 6, at: 48, named_at: 40 });
    assert_eq!(option(0x5e), Walked::Dropped);
    let problem = Problem { code: 2, pointer: 44, concerns_groups: true };
    assert_eq!(option(0x9e), Walked::Refused(problem));
    assert_eq!(option(0xde), Walked::Refused(Problem { concerns_groups: false, ..problem }));
}

#[test]
fn misplaced_headers_are_refused_with_their_offset() {
    // Hop-by-hop options are allowed only before all other headers.
    let mut bytes = with_options(0, &[0; 6]);
    bytes.extend(with_options(6, &[0; 6]));
    assert_eq!(walk_from(60, &bytes), Walked::Refused(Problem::new(1, 40)));
    // The routing header has segments left.
    assert_eq!(walk_from(43, &[6, 0, 0, 1, 0, 0, 0, 0]), Walked::Refused(Problem::new(0, 42)));
}

#[test]
fn a_walk_over_extension_headers_is_bounded() {
    let header = with_options(60, &[0; 6]);
    assert_eq!(walk_from(60, &header.repeat(HEADERS_MAX)), Walked::Dropped);
    let mut last = header.repeat(HEADERS_MAX - 1);
    last.extend(with_options(6, &[0; 6]));
    assert!(matches!(walk_from(60, &last), Walked::Payload { protocol: 6, .. }));

    let many = with_options(6, &[0; OPTIONS_MAX + 6]);
    assert_eq!(walk_from(60, &many), Walked::Dropped);
}

#[test]
fn every_truncated_extension_header_is_noticed() {
    let mut bytes = with_options(60, &[5, 2, 0, 0, 1, 0]);
    bytes.extend(with_options(6, &[0x1e, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    for length in 0..bytes.len() {
        assert_eq!(walk_from(0, &bytes[..length]), Walked::Truncated, "{length}");
    }
    assert!(matches!(walk_from(0, &bytes), Walked::Payload { .. }));
    // The option is longer than its header.
    assert_eq!(walk_from(60, &with_options(6, &[0x1e, 5, 0, 0, 0, 0])), Walked::Truncated);
}

proptest! {
    #[test]
    fn arbitrary_extension_headers_never_break_a_walk(first: u8, bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        match walk_from(first, &bytes) {
            Walked::Payload { at, named_at, .. } => prop_assert!(at <= 40 + bytes.len() && named_at < 40 + bytes.len()),
            Walked::Fragment(fragment) => prop_assert!(fragment.at <= 40 + bytes.len()),
            Walked::Refused(problem) => prop_assert!((problem.pointer as usize) < 40 + bytes.len()),
            Walked::Dropped | Walked::Truncated => {}
        }
    }
}
