//! Every connection is found in every state, whichever queue its segments arrive in.

use std::vec::Vec;

use chance::Dice;
use machine::Micros;
use smoltcp::wire::TcpControl;

use super::super::messages::{PEER_CARD, Tcp};
use super::super::world::{limits, our_address};
use super::world::{CoreEvent, MultiCoreWorld, Peer};
use crate::Counter;
use crate::{Addressing, Ipv6Addressing, Limits};

/// Machines, each as its number of cores and its number of queues. Some have a queue for each core,
/// some have one queue for all cores, and one has a number in between.
pub(super) const MACHINES: [(u8, u8); 7] = [(2, 2), (2, 1), (4, 4), (4, 1), (4, 3), (8, 8), (8, 1)];

const NOTHING: &[Vec<u8>] = &[];

/// Runs a whole connection. Its frames arrive in the queues that `queue` returns. The peer sends
/// `syns` SYNs before it accepts an answer. It accepts the answer to the `taken`-th SYN.
fn converse(
    world: &mut MultiCoreWorld,
    peer: &mut Peer,
    syns: usize,
    taken: usize,
    mut queue: impl FnMut() -> usize,
) {
    let mut answers = Vec::new();
    for _ in 0..syns {
        answers.extend(world.hears(queue(), &peer.syn()));
        world.now = world.now + Micros::from_millis(10);
    }
    peer.takes(&answers[taken % answers.len()]);
    let ack = peer.says(TcpControl::None, b"");
    assert_eq!(world.hears(queue(), &ack), NOTHING);
    let events = world.takes_events();
    let [(core, CoreEvent::Accepted(connection))] = events[..] else { panic!("{events:?}") };

    let question = peer.says(TcpControl::Psh, b"NOOP\r\n");
    world.comes(queue(), &question);
    world.settles();
    assert_eq!(world.takes_events(), [(core, CoreEvent::Data(connection, b"NOOP\r\n".to_vec()))]);
    assert_eq!(world.nets[core].send(world.now, connection, b"250\r\n"), 5);
    let sent = world.says();
    let [answer] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(peer.hears(answer).payload, b"250\r\n");

    world.nets[core].close(connection);
    let sent = world.says();
    let [fin] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(peer.hears(fin).control, TcpControl::Fin);
    let fin = peer.says(TcpControl::Fin, b"");
    let last = world.hears(queue(), &fin);
    assert_eq!(last.len(), 1);
    assert_eq!(Tcp::read(&last[0]).1.acknowledgment, Some(peer.next));
    assert_eq!(
        world.takes_events(),
        [(core, CoreEvent::Other), (core, CoreEvent::Closed(connection))]
    );
    // The peer repeats its FIN, because the last acknowledgment was lost.
    assert_eq!(world.hears(queue(), &fin), last);
    assert_eq!(world.takes_events(), []);
    assert_eq!(world.sum(|counters| counters.of(Counter::ResetsOut)), 0);
}

#[test]
fn a_connection_is_found_from_any_queue_in_every_state() {
    for (cores, queues) in MACHINES {
        let mut world = MultiCoreWorld::new(cores, queues);
        let mut dice = Dice::new(u64::from(cores) << 8 | u64::from(queues));
        for round in 0..60 {
            let mut peer = Peer::at_port(4_000 + round);
            converse(&mut world, &mut peer, 1, 0, || dice.index(queues.into()));
            world.waits(Micros::from_secs(130));
            world.remembers_nothing();
        }
        assert_eq!(
            world.sum(|counters| counters.of(Counter::Strays)) > 0,
            queues > 1,
            "{cores} cores, {queues} queues"
        );
        assert_eq!(world.sum(|counters| counters.of(Counter::Steered)) > 0, queues < cores);
        assert_eq!(world.sum(|counters| counters.of(Counter::DroppedBetweenCores)), 0);
    }
}

#[test]
fn a_syn_repeated_on_another_queue_makes_one_connection() {
    for (cores, queues) in MACHINES {
        let mut world = MultiCoreWorld::new(cores, queues);
        let mut dice = Dice::new(u64::from(cores) << 8 | u64::from(queues));
        for round in 0..60 {
            let mut peer = Peer::at_port(4_000 + round);
            let (syns, taken) = (2 + dice.index(2), dice.index(3));
            converse(&mut world, &mut peer, syns, taken, || dice.index(queues.into()));
            assert_eq!(world.sum(|counters| counters.of(Counter::Accepted)), u64::from(round) + 1);
            world.waits(Micros::from_secs(130));
            world.remembers_nothing();
        }
    }
}

#[test]
fn a_new_connection_opens_beside_time_wait_on_another_core() {
    for (cores, queues) in MACHINES {
        let mut world = MultiCoreWorld::new(cores, queues);
        let mut dice = Dice::new(u64::from(cores) << 8 | u64::from(queues));
        let mut peer = Peer::at_port(4_000);
        for _ in 0..30 {
            converse(&mut world, &mut peer, 1, 0, || dice.index(queues.into()));
            peer = Peer { next: peer.next.wrapping_add(100_000), ..peer };
            world.waits(Micros::from_millis(500));
            world.takes_events();
        }
        world.waits(Micros::from_secs(130));
        world.remembers_nothing();
    }
}

#[test]
fn a_restarted_peer_is_served_from_any_queue() {
    for (cores, queues) in MACHINES.into_iter().filter(|(_, queues)| *queues > 1) {
        for queue in 0..usize::from(queues) {
            let mut world = MultiCoreWorld::new(cores, queues);
            let mut forgotten = Peer::at_port(4_000);
            let (old, lost) = forgotten.connects(&mut world, 0);
            // The peer has restarted and does not know the old connection. Our number in the new
            // connection is near that of the old one.
            let mut peer = Peer { next: 70_000_000, ..Peer::at_port(4_000) };
            let (new, connection) = peer.connects(&mut world, 1);
            assert_ne!(old, new, "{cores} cores, {queues} queues");
            for turn in 0..3 {
                let question = peer.says(TcpControl::Psh, b"NOOP\r\n");
                world.comes((queue + turn) % usize::from(queues), &question);
                world.settles();
                let expected = [(new, CoreEvent::Data(connection, b"NOOP\r\n".to_vec()))];
                assert_eq!(world.takes_events(), expected, "{cores} cores, queue {queue}");
            }
            world.says();
            // A segment outside every window is answered by one core only.
            let of_neither = Peer { next: 1_900_000_000, expects: 1_900_000_000, ..peer.clone() };
            let answers =
                world.hears(queue, &of_neither.segment(TcpControl::Psh, b"x").frame(PEER_CARD));
            assert_eq!(answers.len(), 1, "{cores} cores, queue {queue}");
            let reset = peer.says(TcpControl::Rst, b"");
            assert_eq!(world.hears(queue, &reset), NOTHING);
            assert_eq!(
                world.takes_events(),
                [(new, CoreEvent::Closed(connection))],
                "{cores} cores, queue {queue}"
            );
            let reset = forgotten.says(TcpControl::Rst, b"");
            assert_eq!(world.hears(queue, &reset), NOTHING);
            assert_eq!(world.takes_events(), [(old, CoreEvent::Closed(lost))]);
            world.remembers_nothing();
        }
    }
}

#[test]
fn a_reset_from_any_queue_closes_the_connection() {
    for (cores, queues) in MACHINES {
        for queue in 0..usize::from(queues) {
            let mut world = MultiCoreWorld::new(cores, queues);
            let mut peer = Peer::at_port(4_000);
            let (core, connection) = peer.connects(&mut world, 0);
            // An old SYN has left a handshake on another core.
            let mut earlier = Peer::at_port(4_000);
            earlier.next = peer.next - 1;
            world.hears(queue, &earlier.syn());
            world.takes_events();
            let reset = peer.says(TcpControl::Rst, b"");
            assert_eq!(world.hears(queue, &reset), NOTHING);
            assert_eq!(
                world.takes_events(),
                [(core, CoreEvent::Closed(connection))],
                "{cores} cores, queue {queue}"
            );
            world.remembers_nothing();
        }
    }
}

#[test]
fn a_stray_is_reset_once_and_a_stray_reset_never() {
    for (cores, queues) in MACHINES {
        let mut world = MultiCoreWorld::new(cores, queues);
        let before = world.sum(|counters| counters.of(Counter::FramesIn));
        for queue in 0..usize::from(queues) {
            for port in 0..8 {
                let peer = Peer { expects: 555, ..Peer::at_port(4_000 + port) };
                for (control, payload) in [
                    (TcpControl::None, &b"hello?"[..]),
                    (TcpControl::Fin, b""),
                    (TcpControl::Syn, b""),
                ] {
                    let sent = world.hears(queue, &peer.segment(control, payload).frame(PEER_CARD));
                    let [reset] = &sent[..] else {
                        panic!("{cores} cores, queue {queue}, {control:?}: {sent:?}")
                    };
                    let reset = Tcp::read(reset).1;
                    assert_eq!((reset.control, reset.sequence), (TcpControl::Rst, 555));
                }
                assert_eq!(
                    world.hears(queue, &peer.segment(TcpControl::Rst, b"").frame(PEER_CARD)),
                    NOTHING
                );
                world.now = world.now + Micros::from_secs(1);
            }
        }
        let strays = u64::from(queues) * 8 * 4;
        assert_eq!(world.sum(|counters| counters.of(Counter::Strays)), strays);
        assert_eq!(
            world.sum(|counters| counters.of(Counter::SegmentsIn)),
            strays,
            "a segment that goes round the cores is counted once"
        );
        assert_eq!(world.sum(|counters| counters.of(Counter::FramesIn)) - before, strays);
    }
}

#[test]
fn late_segments_are_answered_by_the_time_wait_core() {
    for (cores, queues) in MACHINES {
        for queue in 0..usize::from(queues) {
            let mut world = MultiCoreWorld::new(cores, queues);
            let mut peer = Peer::at_port(4_000);
            converse(&mut world, &mut peer, 1, 0, || 0);
            let acknowledgment = peer.segment(TcpControl::None, b"").frame(PEER_CARD);
            assert_eq!(
                world.hears(queue, &acknowledgment),
                NOTHING,
                "{cores} cores, queue {queue}"
            );
            let old = Tcp { sequence: 1_001, ..peer.segment(TcpControl::None, b"NOOP\r\n") }
                .frame(PEER_CARD);
            let sent = world.hears(queue, &old);
            let [answer] = &sent[..] else { panic!("{sent:?}") };
            let answer = Tcp::read(answer).1;
            assert_eq!(
                (answer.control, answer.acknowledgment),
                (TcpControl::None, Some(peer.next))
            );
        }
    }
}

#[test]
fn a_cookie_from_any_queue_makes_one_connection() {
    for (cores, queues) in MACHINES {
        let few = Limits { half_open: 0, ..limits() };
        let mut world = MultiCoreWorld::with(
            cores,
            queues,
            Addressing::Static(our_address()),
            Ipv6Addressing::None,
            few,
        );
        world.settles();
        world.says();
        world.takes_events();
        let mut dice = Dice::new(u64::from(cores));
        for port in 0..12 {
            let mut peer = Peer::at_port(4_000 + port);
            let queue = dice.index(queues.into());
            // Every core has issued cookies.
            (0..usize::from(queues))
                .for_each(|queue| drop(world.hears(queue, &Peer::at_port(9_000 + port).syn())));
            let sent = world.hears(queue, &peer.syn());
            peer.takes(&sent[0]);
            let ack = peer.says(TcpControl::None, b"");
            // The acknowledgment arrives twice.
            world.comes(dice.index(queues.into()), &ack);
            world.comes(dice.index(queues.into()), &ack);
            world.settles();
            world.says();
            let events = world.takes_events();
            assert!(
                matches!(events[..], [(_, CoreEvent::Accepted(_))]),
                "{cores} cores: {events:?}"
            );
        }
        assert_eq!(world.sum(|counters| counters.of(Counter::ResetsOut)), 0);
    }
}

#[test]
fn a_segment_in_fragments_finds_its_connection() {
    for (cores, queues) in MACHINES {
        let mut world = MultiCoreWorld::new(cores, queues);
        for port in 0..8 {
            let mut peer = Peer::at_port(4_000 + port);
            let (core, connection) =
                peer.connects(&mut world, usize::from(port) % usize::from(queues));
            let whole = peer.says(TcpControl::Psh, &[b'f'; 100]);
            for (number, (from, to)) in
                [(34usize, 82usize), (82, whole.len())].into_iter().enumerate()
            {
                let mut part = [&whole[..34], &whole[from..to]].concat();
                let ip_bytes = (part.len() - 14) as u16;
                let field = ((from - 34) / 8) as u16 | if to < whole.len() { 0x2000 } else { 0 };
                part[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
                part[20..22].copy_from_slice(&field.to_be_bytes());
                part[24..26].fill(0);
                let sum = crate::checksum::Sum::of(&part[14..34]).field();
                part[24..26].copy_from_slice(&sum);
                world.comes((usize::from(port) + number) % usize::from(queues), &part);
            }
            world.settles();
            let events = world.takes_events();
            assert_eq!(
                events,
                [(core, CoreEvent::Data(connection, [b'f'; 100].to_vec()))],
                "{cores} cores"
            );
        }
    }
}
