//! The distribution of connections over the cores that share a receive queue, and the limits of a
//! flood.

use std::vec;
use std::vec::Vec;

use chance::Dice;
use machine::Micros;
use smoltcp::wire::TcpControl;

use super::super::messages::PEER_CARD;
use super::super::world::{limits, our_address};
use super::world::{CoreEvent, MultiCoreWorld, Peer};
use crate::Counter;
use crate::{Addressing, ConnectionId, Ipv6Addressing, Limits};

fn large(cores: u8, queues: u8) -> MultiCoreWorld {
    let many = Limits { connections: 1_000, half_open: 1_000, time_wait: 1_000, ..limits() };
    let mut world = MultiCoreWorld::with(
        cores,
        queues,
        Addressing::Static(our_address()),
        Ipv6Addressing::None,
        many,
    );
    world.settles();
    world.says();
    world.takes_events();
    world
}

/// Asserts that the other cores have equally many connections, and that the steering core has half
/// as many. When it approaches its limit of 1,000, it has only an eighth of its free places fewer
/// than each other core.
fn assert_even(counts: &[usize]) {
    let (steers, others) = counts.split_first().unwrap();
    let (least, most) = (others.iter().min().unwrap(), others.iter().max().unwrap());
    assert!(most - least <= 2, "{counts:?}");
    let counted = steers + steers.min(&((1_000 - steers) / 8));
    assert!(counted.abs_diff(*least) <= 4, "{counts:?}");
}

#[test]
fn connections_spread_evenly_over_the_cores_of_a_queue() {
    for cores in [2, 3, 4, 8, 16] {
        let mut world = large(cores, 1);
        let mut held: Vec<Vec<(ConnectionId, Peer)>> = vec![Vec::new(); cores.into()];
        for port in 0..400 {
            let mut peer = Peer::at_port(4_000 + port);
            let (core, connection) = peer.connects(&mut world, 0);
            held[core].push((connection, peer));
        }
        assert_even(&world.connections());
        // One core closes its connections and gets the next ones.
        let ended = held[1].len();
        for (connection, _) in held[1].drain(..) {
            world.nets[1].abort(connection);
        }
        world.says();
        world.settles();
        let others: Vec<usize> = world.connections();
        for port in 0..ended as u16 {
            Peer::at_port(10_000 + port).connects(&mut world, 0);
        }
        let moved: usize = (0..usize::from(cores))
            .filter(|core| *core != 1)
            .map(|core| world.connections()[core] - others[core])
            .sum();
        assert!(
            moved <= ended / 8,
            "{moved} of {ended} went to other cores, which own the buckets of these flows"
        );
        assert_eq!(world.sum(|counters| counters.of(Counter::Strays)), 0);
    }
}

#[test]
fn cores_are_full_before_a_connection_is_refused() {
    for cores in [2, 4] {
        let mut world = large(cores, 1);
        for port in 0..u16::from(cores) * 950 {
            Peer::at_port(4_000 + port).connects(&mut world, 0);
        }
        let counts = world.connections();
        assert!(counts.iter().all(|count| *count >= 925), "{counts:?}");
    }
}

#[test]
fn delays_between_cores_are_counted_on_arrival() {
    let mut world = large(2, 1);
    let passed = |world: &MultiCoreWorld, core: usize| {
        let counters = world.nets[core].counters();
        (
            counters.of(Counter::PassedIn),
            counters.of(Counter::PassedInMicros),
            counters.of(Counter::PassedInMicrosMax),
        )
    };
    let before = passed(&world, 1);
    for delay in [70, 300, 20] {
        // SYNs are sent until one is steered to the second core, which has no queue.
        let handshakes = world.nets[1].handshake_count();
        for port in 0.. {
            world.comes(0, &Peer::at_port(4_000 + delay as u16 * 10 + port).syn());
            world.turn(0);
            world.now = world.now + Micros(delay);
            world.turn(1);
            if world.nets[1].handshake_count() > handshakes {
                break;
            }
        }
    }
    let (count, micros, most) = passed(&world, 1);
    assert_eq!((count - before.0, micros - before.1, most), (3, 70 + 300 + 20, 300));
    // Frames that a core received from its own card are not counted.
    assert_eq!(passed(&world, 0), (0, 0, 0));
}

#[test]
fn a_burst_of_syns_is_spread_before_any_answer() {
    for cores in [2, 4, 8] {
        let mut world = large(cores, 1);
        for port in 0..96 {
            world.comes(0, &Peer::at_port(4_000 + port).syn());
        }
        // Only the first core has turns.
        (0..12).for_each(|_| world.turn(0));
        world.settles();
        let handshakes: Vec<usize> = world.nets.iter().map(|net| net.handshake_count()).collect();
        assert_eq!(handshakes.iter().sum::<usize>(), 96);
        assert_even(&handshakes);
    }
}

#[test]
fn a_bucket_stays_while_connections_exist_or_may_open() {
    let mut world = large(4, 1);
    let mut dice = Dice::new(1);
    let mut open: Vec<(usize, ConnectionId, Peer)> = Vec::new();
    for round in 0..3_000u16 {
        if open.len() > 300 || (!open.is_empty() && dice.below(3) == 0) {
            let (core, connection, mut peer) = open.swap_remove(dice.index(open.len()));
            let fin = peer.says(TcpControl::Fin, b"");
            world.comes(0, &fin);
            world.nets[core].close(connection);
        } else {
            let mut peer = Peer::at_port(4_000 + round);
            // The SYN arrives twice, before the first one is answered.
            world.comes(0, &peer.syn());
            world.comes(0, &peer.syn());
            world.settles();
            let sent = world.says();
            let is_for_peer = |frame: &&Vec<u8>| {
                frame[12..14] == [8, 0] && frame[36..38] == peer.port.to_be_bytes()
            };
            let answer = sent.iter().rfind(is_for_peer).unwrap();
            peer.takes(answer);
            let ack = peer.says(TcpControl::None, b"");
            world.comes(0, &ack);
            world.settles();
            let events = world.takes_events();
            let accepted = events.iter().find_map(|(core, event)| match event {
                CoreEvent::Accepted(connection) => Some((*core, *connection)),
                _ => None,
            });
            let (core, connection) = accepted.unwrap();
            open.push((core, connection, peer));
        }
    }
    assert_eq!(
        world.sum(|counters| counters.of(Counter::Strays)),
        0,
        "each segment was steered to its core"
    );
    world.settles();
}

#[test]
fn a_flood_of_strays_is_bounded_and_spares_known_connections() {
    for (cores, queues) in [(2, 2), (4, 4), (4, 3), (8, 8)] {
        let mut world = MultiCoreWorld::new(cores, queues);
        let mut peer = Peer::at_port(4_000);
        let (core, connection) = peer.connects(&mut world, 0);
        let flood = Peer { expects: 555, ..Peer::at_port(1) };
        for number in 0..5_000u16 {
            let stray = Peer { port: 10_000 + number, ..flood.clone() };
            world.comes(1, &stray.segment(TcpControl::None, b"?").frame(PEER_CARD));
        }
        // The other cores are busy, so the flooded core drops the strays that it cannot pass on.
        (0..300).for_each(|_| world.turn(1));
        // If some cores are not busy, they pass the strays on until a busy core is reached.
        (0..300).for_each(|_| (1..usize::from(cores) - 1).for_each(|core| world.turn(core)));
        (0..100).for_each(|_| world.turn(1));
        assert!(world.lent[1] <= 128, "{} buffers are away", world.lent[1]);
        assert!(world.sum(|counters| counters.of(Counter::DroppedBetweenCores)) > 1_000);
        let question = peer.says(TcpControl::Psh, b"NOOP\r\n");
        world.comes(0, &question);
        world.settles();
        assert_eq!(
            world.takes_events(),
            [(core, CoreEvent::Data(connection, b"NOOP\r\n".to_vec()))]
        );
        assert!(world.says().len() <= 50 * usize::from(cores), "resets are limited");
    }
}

#[test]
fn a_steered_flood_holds_a_bounded_number_of_buffers() {
    for cores in [4, 8] {
        let mut world = large(cores, 1);
        for port in 0..5_000 {
            world.comes(0, &Peer::at_port(10_000 + port).syn());
        }
        (0..700).for_each(|_| world.turn(0));
        assert!(world.lent[0] <= 256, "{} buffers are away", world.lent[0]);
        assert!(world.nets[0].counters().of(Counter::DroppedBetweenCores) > 3_000);
        world.settles();
        world.waits(Micros::from_secs(130));
        world.remembers_nothing();
    }
}

#[test]
fn slow_cores_leave_buffers_for_the_others() {
    let mut world = large(8, 1);
    let mut peers: Vec<Option<(Peer, ConnectionId)>> = vec![None; 8];
    for port in 0.. {
        let mut peer = Peer::at_port(4_000 + port);
        let (core, connection) = peer.connects(&mut world, 0);
        peers[core] = Some((peer, connection));
        if peers.iter().all(Option::is_some) {
            break;
        }
    }
    // Six cores have no turn while data for their connections arrives.
    for peer in &mut peers[1..7] {
        let (peer, _) = peer.as_mut().unwrap();
        for _ in 0..300 {
            let data = peer.says(TcpControl::Psh, b"?");
            world.comes(0, &data);
        }
    }
    (0..300).for_each(|_| world.turn(0));
    assert!(world.nets[0].counters().of(Counter::DroppedBetweenCores) > 1_000);
    let (peer, connection) = peers[7].as_mut().unwrap();
    let question = peer.says(TcpControl::Psh, b"NOOP\r\n");
    world.comes(0, &question);
    world.turn(0);
    world.turn(7);
    assert_eq!(world.takes_events(), [(7, CoreEvent::Data(*connection, b"NOOP\r\n".to_vec()))]);
    world.settles();
}

#[test]
fn strays_leave_room_for_steered_frames() {
    let mut world = MultiCoreWorld::new(2, 1);
    let mut peers: Vec<(Peer, ConnectionId)> = Vec::new();
    for port in 0..16 {
        let mut peer = Peer::at_port(4_000 + port);
        let (core, connection) = peer.connects(&mut world, 0);
        if core == 1 {
            peers.push((peer, connection));
        }
    }
    assert!(peers.len() >= 7);
    // The segments belong to no connection, but to buckets of the first core. This core passes them
    // on to the other core.
    let mut strays = Vec::new();
    for port in 10_000..10_400 {
        let stray = Peer { expects: 555, ..Peer::at_port(port) }
            .segment(TcpControl::None, b"?")
            .frame(PEER_CARD);
        let before = world.nets[0].counters().of(Counter::Strays);
        world.hears(0, &stray);
        if world.nets[0].counters().of(Counter::Strays) > before {
            strays.push(stray);
        }
    }
    assert!(strays.len() > 130, "{} strays", strays.len());
    strays.iter().for_each(|stray| world.comes(0, stray));
    for (peer, _) in &mut peers {
        let question = peer.says(TcpControl::Psh, b"NOOP\r\n");
        world.comes(0, &question);
    }
    (0..200).for_each(|_| world.turn(0));
    assert!(world.nets[0].counters().of(Counter::DroppedBetweenCores) > 0);
    world.settles();
    let answered = world.takes_events();
    for (_, connection) in peers {
        assert!(answered.contains(&(1, CoreEvent::Data(connection, b"NOOP\r\n".to_vec()))));
    }
}

#[test]
fn a_core_that_reads_no_messages_gets_only_its_share() {
    let mut world = large(4, 1);
    for port in 0..90 {
        world.comes(0, &Peer::at_port(4_000 + port).syn());
        // Core 3 has no turn.
        (0..3).for_each(|core| world.turn(core));
    }
    (0..200).for_each(|round| world.turn(round % 3));
    let before: Vec<usize> = world.nets.iter().map(|net| net.handshake_count()).collect();
    assert_eq!(before[3], 0);
    assert_even(&[before[0], before[1], before[2]]);
    world.settles();
    assert_even(&world.nets.iter().map(|net| net.handshake_count()).collect::<Vec<_>>());
    world.waits(Micros::from_secs(130));
    world.remembers_nothing();
}
