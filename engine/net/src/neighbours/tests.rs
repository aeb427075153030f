//! The guarantees of the ARP cache.

use super::*;
use crate::held::HELD_MAX;

const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
const PEER_CARD: Ethernet = Ethernet([2, 0, 0, 0, 0, 7]);
const OTHER: Ethernet = Ethernet([2, 0, 0, 0, 0, 8]);

fn seconds(count: u64) -> Instant {
    Instant::START + Micros::from_secs(count)
}

fn cache() -> Neighbours {
    Neighbours::new(1514)
}

fn learn(
    cache: &mut Neighbours,
    at: u64,
    address: Ipv4Addr,
    hardware: Ethernet,
    how: ArpOrigin,
) -> bool {
    cache.learn(seconds(at), address, hardware, how, Some(GATEWAY))
}

#[test]
fn an_arp_request_is_repeated_each_second_up_to_three_times() {
    let mut cache = cache();
    cache.resolve(seconds(1), PEER, None);
    cache.held.hold(PEER, b"packet");
    for at in 1..=3 {
        assert_eq!(
            cache.next_request(seconds(at)),
            Some(ArpRequest { address: PEER, hardware: None })
        );
        assert_eq!(cache.next_request(seconds(at)), None);
        assert_eq!(cache.next_deadline(), Some(seconds(at + 1)));
    }
    assert_eq!(cache.next_request(seconds(4)), None);
    assert_eq!(cache.next_deadline(), None);
    assert_eq!(cache.held.dropped, 1, "the packet that waited is gone, and counted");
    assert_eq!(cache.held.take(PEER), None);
}

#[test]
fn an_arp_answer_is_kept_and_refreshed_by_asking_its_owner() {
    let mut cache = cache();
    cache.resolve(seconds(1), PEER, None);
    assert!(cache.next_request(seconds(1)).is_some());
    assert!(learn(&mut cache, 1, PEER, PEER_CARD, ArpOrigin::Other));
    assert_eq!(cache.lookup(seconds(30), PEER), Some(PEER_CARD));
    assert_eq!(cache.next_request(seconds(30)), None, "a fresh entry is not requested again");
    assert_eq!(
        cache.lookup(seconds(61), PEER),
        Some(PEER_CARD),
        "an old entry is used while it is requested"
    );
    assert_eq!(
        cache.next_request(seconds(61)),
        Some(ArpRequest { address: PEER, hardware: Some(PEER_CARD) })
    );
    assert_eq!(
        cache.next_request(seconds(62)),
        Some(ArpRequest { address: PEER, hardware: Some(PEER_CARD) })
    );
    assert_eq!(cache.next_request(seconds(63)), Some(ArpRequest { address: PEER, hardware: None }));
    assert_eq!(cache.next_request(seconds(64)), None);
    assert_eq!(cache.lookup(seconds(64), PEER), None, "without an answer the entry is removed");
}

#[test]
fn unsolicited_arp_packets_add_no_entry() {
    let mut cache = cache();
    assert!(!learn(&mut cache, 1, PEER, PEER_CARD, ArpOrigin::Other));
    assert_eq!(cache.lookup(seconds(1), PEER), None);
    assert!(learn(&mut cache, 1, PEER, PEER_CARD, ArpOrigin::RequestForUs));
    assert_eq!(cache.lookup(seconds(1), PEER), Some(PEER_CARD));
}

#[test]
fn a_fresh_neighbour_entry_does_not_flap() {
    let mut cache = cache();
    assert!(learn(&mut cache, 10, PEER, PEER_CARD, ArpOrigin::RequestForUs));
    assert!(!learn(&mut cache, 10, PEER, OTHER, ArpOrigin::Other));
    assert_eq!(cache.lookup(seconds(10), PEER), Some(PEER_CARD));
    assert!(learn(&mut cache, 11, PEER, OTHER, ArpOrigin::Other), "a card was replaced");
    assert_eq!(cache.lookup(seconds(11), PEER), Some(OTHER));
}

#[test]
fn few_packets_wait_for_a_neighbour_and_the_oldest_is_dropped() {
    let mut cache = cache();
    for number in 0..5u8 {
        cache.held.hold(PEER, &[number]);
    }
    assert_eq!(cache.held.dropped, 2);
    let waiting: Vec<_> = core::iter::from_fn(|| cache.held.take(PEER)).collect();
    assert_eq!(waiting, [[2], [3], [4]]);
}

#[test]
fn requests_evict_neither_fresh_entries_nor_the_gateway() {
    let mut cache = cache();
    assert!(learn(&mut cache, 1, GATEWAY, PEER_CARD, ArpOrigin::RequestForUs));
    for number in 0..1_000u32 {
        learn(
            &mut cache,
            2,
            Ipv4Addr::from_bits(0x0a01_0000 + number),
            OTHER,
            ArpOrigin::RequestForUs,
        );
    }
    assert_eq!(cache.lookup(seconds(2), GATEWAY), Some(PEER_CARD));
    for number in 0..1_000u32 {
        cache.resolve(seconds(100), Ipv4Addr::from_bits(0x0a02_0000 + number), Some(GATEWAY));
        assert!(cache.entries.len() <= NEIGHBOURS_MAX);
    }
    assert_eq!(cache.lookup(seconds(100), GATEWAY), Some(PEER_CARD));
}

#[test]
fn no_more_packets_wait_than_there_are_buffers() {
    let mut cache = cache();
    for number in 0..100u32 {
        cache.held.hold(Ipv4Addr::from_bits(number), &[0; 1514]);
    }
    assert_eq!(cache.held.waiting_count(), HELD_MAX);
    assert_eq!(cache.held.dropped, 100 - HELD_MAX as u64);
    cache.held.hold(Ipv4Addr::from_bits(0), &[0; 1515]);
    assert_eq!(cache.held.buffers(), HELD_MAX, "no buffer is lost");
}
