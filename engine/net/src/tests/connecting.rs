//! Outgoing connections: the neighbour is resolved, the port is unique, and every outcome of an
//! attempt is reported.

use core::net::{Ipv4Addr, SocketAddr};
use std::vec::Vec;

use machine::Micros;
use smoltcp::wire::{ArpOperation, TcpControl};

use super::messages::*;
use super::world::{World, WorldEvent};
use crate::Counter;
use crate::Unsent;
use crate::tcp::CloseReason;

const SERVICE: u16 = 25;

fn at(address: Ipv4Addr) -> SocketAddr {
    (address, SERVICE).into()
}

/// The peer answers an ARP request for its address.
fn neighbour_answers(world: &mut World) {
    let answer = arp(ArpOperation::Reply, (PEER, PEER_CARD), (US, super::machine_in_memory::CARD));
    assert_eq!(world.hears(&answer), []);
}

fn answer_to(syn: &Tcp, control: TcpControl) -> Tcp {
    Tcp {
        from: syn.to,
        to: syn.from,
        control,
        sequence: 5_000,
        acknowledgment: Some(syn.sequence.wrapping_add(1)),
        window: 8_000,
        mss: (control == TcpControl::Syn).then_some(1460),
        payload: Vec::new(),
    }
}

#[test]
fn a_connection_is_opened_once_the_neighbour_is_found() {
    let mut world = World::new();
    let connection = world.net.connect(world.now, at(PEER)).unwrap();
    let (to, operation, _, target) = read_arp(&world.says_one());
    assert_eq!((to, operation, target.0), (EVERYBODY, ArpOperation::Request, PEER));
    neighbour_answers(&mut world);
    let (card, syn) = Tcp::read(&world.says_one());
    assert_eq!((card, syn.control, syn.to), (PEER_CARD, TcpControl::Syn, (PEER, SERVICE)));
    assert!(syn.from.1 >= 49_152 && syn.mss == Some(1460));
    assert_eq!(
        world.hears(&answer_to(&syn, TcpControl::Syn).frame(PEER_CARD)),
        [WorldEvent::Connected(connection)]
    );
    let acknowledgment = world.says_tcp();
    assert_eq!(
        (acknowledgment.control, acknowledgment.acknowledgment),
        (TcpControl::None, Some(5_001))
    );
    assert_eq!(world.net.send(world.now, connection, b"EHLO"), 4);
    assert_eq!(world.says_tcp().payload, b"EHLO");
    assert_eq!(world.net.counters().of(Counter::Connects), 1);
}

#[test]
fn data_on_a_syn_ack_is_reported_after_the_connection() {
    let mut world = World::new();
    let connection = world.net.connect(world.now, at(PEER)).unwrap();
    world.says_one();
    neighbour_answers(&mut world);
    let syn = world.says_tcp();
    let answer = Tcp { payload: b"220 hello\r\n".to_vec(), ..answer_to(&syn, TcpControl::Syn) };
    assert_eq!(
        world.hears(&answer.frame(PEER_CARD)),
        [
            WorldEvent::Connected(connection),
            WorldEvent::Data(connection, b"220 hello\r\n".to_vec())
        ]
    );
    assert_eq!(world.says_tcp().acknowledgment, Some(5_001 + 11));
}

#[test]
fn syn_waits_for_a_late_neighbour_and_later_syns_do_not() {
    let mut world = World::new();
    world.net.connect(world.now, at(PEER)).unwrap();
    world.says();
    world.now = world.now + Micros::from_millis(700);
    neighbour_answers(&mut world);
    let first = world.says_tcp();
    assert_eq!(world.next_deadline(), []);
    let sent = world.says();
    let (card, second) = Tcp::read(sent.iter().find(|frame| frame[12..14] == [8, 0]).unwrap());
    assert_eq!(
        (card, second.sequence, second.control),
        (PEER_CARD, first.sequence, TcpControl::Syn)
    );
}

#[test]
fn refused_and_timed_out_connects_report_different_reasons() {
    let mut world = World::new();
    let refused = world.net.connect(world.now, at(PEER)).unwrap();
    world.says();
    neighbour_answers(&mut world);
    let syn = world.says_tcp();
    assert_eq!(
        world.hears(&answer_to(&syn, TcpControl::Rst).frame(PEER_CARD)),
        [WorldEvent::Closed(refused, CloseReason::Refused)]
    );
    world.says_nothing();
    let silent = world.net.connect(world.now, at(PEER)).unwrap();
    assert_eq!(
        world.waits(Micros::from_secs(300)),
        [WorldEvent::Closed(silent, CloseReason::TimedOut)]
    );
    assert_eq!((world.net.connection_count(), world.net.flow_count()), (0, 0));
}

#[test]
fn connects_use_distinct_ports_and_a_full_table_is_reported() {
    let mut world = World::new();
    let room = super::world::limits().connections;
    for _ in 0..room {
        world.net.connect(world.now, at(PEER)).unwrap();
    }
    assert_eq!(world.net.connect(world.now, at(PEER)), Err(Unsent::Full));
    assert_eq!(world.net.flow_count(), room);
    neighbour_answers(&mut world);
    let mut ports: Vec<u16> = world
        .says()
        .iter()
        .filter(|frame| frame[12..14] == [8, 0])
        .map(|frame| Tcp::read(frame).1.from.1)
        .collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), room);
}

#[test]
fn a_port_is_reused_only_after_all_others() {
    let mut world = World::new();
    let mut ports = Vec::new();
    for _ in 0..16_384 {
        let connection = world.net.connect(world.now, at(PEER)).unwrap();
        if ports.is_empty() {
            world.says();
            neighbour_answers(&mut world);
        }
        ports.push(world.says_tcp().from.1);
        world.net.close(connection);
        world.says();
        world.now = world.now + Micros(u64::from(ports.len() % 3 == 0));
    }
    let first = ports.first().copied();
    world.net.connect(world.now, at(PEER)).unwrap();
    assert_eq!(Some(world.says_tcp().from.1), first);
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 16_384);
}

#[test]
fn connect_to_an_unreachable_address_fails_at_once() {
    let mut world = World::new();
    assert_eq!(world.net.connect(world.now, at(US)), Err(Unsent::NoRoute));
    assert_eq!(world.net.connect(world.now, at(Ipv4Addr::BROADCAST)), Err(Unsent::NoRoute));
    assert_eq!(
        world.net.connect(world.now, "[2001:db8::1]:25".parse().unwrap()),
        Err(Unsent::NoRoute)
    );
    assert_eq!(world.net.flow_count(), 0);
}

#[test]
fn connect_aborted_before_the_answer_leaves_no_state() {
    let mut world = World::new();
    let connection = world.net.connect(world.now, at(PEER)).unwrap();
    world.says();
    world.net.close(connection);
    world.says();
    assert_eq!((world.net.connection_count(), world.net.flow_count()), (0, 0));
}
