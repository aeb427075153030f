//! Tests with servers and clients that run in turn on one thread: counted work was done, every core
//! took part, and no buffer is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use machine::{
    DiskError, DiskOperation, DiskRequest, DiskToken, OutgoingFrame, SECTOR_BYTES, Sector,
    TransmitError,
};

use crate::card::queue_of;
use crate::client::Client;
use crate::dialogue::{ClientAction, Dialogue, Load, Words};
use crate::disk::MemoryDisk;
use crate::flood::pages;
use crate::measure::cores_max;
use crate::server::{self, Core};
use crate::wire::{End, ends};

/// The longest wait of a test. No test takes as long on any machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A serving server with `cores` cores, and the ends of as many clients.
fn served(cores: u8) -> (Vec<Core>, Vec<End>) {
    let (near, far) = ends(cores, cores);
    let serves = Arc::new(AtomicBool::new(false));
    let mut cores: Vec<Core> = server::cores(near, &serves)
        .unwrap()
        .into_iter()
        .map(|beginning| beginning.begin())
        .collect();
    let began = Instant::now();
    while !serves.load(Ordering::Acquire) {
        cores.iter_mut().for_each(|core| core.turn().unwrap());
        assert!(began.elapsed() < PATIENCE);
    }
    (cores, far)
}

/// Runs turns until each client has done `each` exchanges. Returns the server's cores.
fn exchange(cores: u8, load: Load, each: u64) -> Vec<Core> {
    let (mut servers, far) = served(cores);
    let words = Arc::new(Words::of(load).unwrap());
    let client =
        |(end, wire)| Client::new(Arc::clone(&words), load.connections().min(16), wire, end, cores);
    let mut clients: Vec<Client> = (cores..).zip(far).map(client).collect();
    let began = Instant::now();
    while clients.iter().any(|client| client.done() < each) {
        clients.iter_mut().for_each(|client| client.turn().unwrap());
        servers.iter_mut().for_each(|core| core.turn().unwrap());
        assert!(began.elapsed() < PATIENCE);
    }
    servers
}

#[test]
fn every_load_is_done_by_one_core() {
    for load in
        [Load::Pages, Load::PagesInNewConnections, Load::Messages, Load::MessagesInNewSessions]
    {
        exchange(1, load, 300);
    }
}

#[test]
fn every_load_is_shared_by_several_cores() {
    for load in
        [Load::Pages, Load::PagesInNewConnections, Load::Messages, Load::MessagesInNewSessions]
    {
        let servers = exchange(3, load, 300);
        assert!(servers.iter().all(|core| core.busy() > Duration::ZERO), "{load:?}");
    }
}

#[test]
fn every_load_of_tls_is_done_by_one_core_and_by_several() {
    let loads = [Load::SecurePages, Load::Handshakes, Load::ResumedHandshakes, Load::Hellos];
    for (load, cores) in loads.into_iter().flat_map(|load| [(load, 1), (load, 2)]) {
        exchange(cores, load, 40);
    }
    exchange(1, Load::SecureLargePages, 4);
}

#[test]
fn pages_and_handshakes_are_served_at_the_same_time() {
    if cores_max() > 0 {
        let (p99, handshakes_per_second) = pages(Load::Hellos.connections()).unwrap();
        assert!(p99 < Duration::MAX && handshakes_per_second > 0.0);
    }
}

#[test]
fn a_flow_stays_on_one_queue_and_flows_use_all_queues() {
    let frame = |port: u16| {
        let mut frame = [0; 54];
        frame[12] = 0x08;
        frame[23] = 6;
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        frame
    };
    let mut flows = [0; 8];
    for port in 0..8_000 {
        let queue = queue_of(&frame(port), 8);
        assert_eq!(queue, queue_of(&frame(port), 8));
        flows[usize::from(queue)] += 1;
    }
    assert!(flows.iter().all(|flows| (800..1_200).contains(flows)), "{flows:?}");
    assert_eq!(queue_of(&[0xff; 42], 8), 0);
}

#[test]
fn frames_arrive_in_order_and_buffers_return() {
    let (mut near, mut far) = ends(1, 1);
    let (one, other) = (near.first_mut().unwrap(), far.first_mut().unwrap());
    let all = one.free_buffers();
    for round in 0..1_000_u32 {
        let bytes = round.to_be_bytes();
        let frame =
            OutgoingFrame { head: &bytes, payload: &[], checksum: None, segment_bytes: None };
        one.transmit(&frame, |end| end == 1).unwrap();
        let arrived = other.receive().unwrap();
        assert_eq!(arrived.bytes(), bytes);
        other.give_back(arrived);
        one.collect_buffers();
    }
    assert_eq!(one.free_buffers(), all);
    let frame =
        OutgoingFrame { head: &[0; 70_000], payload: &[], checksum: None, segment_bytes: None };
    assert_eq!(one.transmit(&frame, |_| true), Err(TransmitError::Malformed));
}

#[test]
fn a_full_ring_takes_nothing_and_loses_no_buffer() {
    let (mut near, mut far) = ends(1, 1);
    let (one, other) = (near.first_mut().unwrap(), far.first_mut().unwrap());
    let all = one.free_buffers();
    let frame = OutgoingFrame { head: &[7; 60], payload: &[], checksum: None, segment_bytes: None };
    let mut taken = 0;
    while one.transmit(&frame, |_| true).is_ok() {
        taken += 1;
    }
    for _ in 0..10 {
        assert_eq!(one.transmit(&frame, |_| true), Err(TransmitError::Full));
    }
    assert_eq!(one.free_buffers(), all - taken);
    while let Some(frame) = other.receive() {
        other.give_back(frame);
    }
    one.collect_buffers();
    assert_eq!(one.free_buffers(), all);
}

#[test]
fn an_unexpected_answer_is_an_error() {
    let words = Words::of(Load::Pages).unwrap();
    let asked = || {
        let mut dialogue = Dialogue::new(&words, 0);
        assert!(matches!(dialogue.connected(&words), ClientAction::Say(_)));
        dialogue
    };
    let head = |status: &str, length: usize| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n")
    };
    assert!(asked().heard(head("404 Not Found", 4096).as_bytes(), &words).is_err());
    assert!(asked().heard(head("200 OK", 4095).as_bytes(), &words).is_err());
    assert!(
        asked().heard(&[head("200 OK", 4096).as_bytes(), &[0; 4097]].concat(), &words).is_err()
    );
    let mut dialogue = asked();
    // The dialogue accepts the answer byte by byte.
    for byte in [head("200 OK", 4096).as_bytes(), &[0; 4095]].concat() {
        assert_eq!(dialogue.heard(&[byte], &words), Ok(ClientAction::Listen));
    }
    assert_eq!(dialogue.done, 0);
    assert!(matches!(dialogue.heard(&[0], &words), Ok(ClientAction::Say(_))));
    assert_eq!(dialogue.done, 1);
    let mut messages = Dialogue::new(&Words::of(Load::Messages).unwrap(), 0);
    assert!(messages.heard(b"421 too busy\r\n", &words).is_err());
}

#[test]
fn disk_keeps_writes_and_refuses_access_beyond_its_end() {
    let mut disk = MemoryDisk::blank(8 * SECTOR_BYTES);
    let mut ask = |operation, sector, buffer: Vec<u8>| {
        let buffer = buffer.into_boxed_slice();
        disk.request(DiskRequest {
            token: DiskToken(7),
            operation,
            sector: Sector(sector),
            buffer,
        });
        disk.completed().unwrap()
    };
    assert_eq!(ask(DiskOperation::Write, 6, vec![9; 2 * SECTOR_BYTES]).result, Ok(()));
    assert_eq!(ask(DiskOperation::Flush, 0, vec![]).result, Ok(()));
    assert_eq!(&*ask(DiskOperation::Read, 7, vec![0; SECTOR_BYTES]).buffer, [9; SECTOR_BYTES]);
    assert_eq!(
        ask(DiskOperation::Write, 7, vec![9; 2 * SECTOR_BYTES]).result,
        Err(DiskError::OutOfRange)
    );
    assert_eq!(
        ask(DiskOperation::Read, u64::MAX, vec![0; SECTOR_BYTES]).result,
        Err(DiskError::OutOfRange)
    );
}
