//! The sleep: what ends it, and that nothing is slept through.

use super::*;
use machine::{DiskOperation, DiskToken, Ethernet, Micros, Offloads, SECTOR_BYTES, Sector};
use rustix::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Duration;

/// Longer than anything here takes; a sleep that lasts as long was ended by nothing.
const LONG: Duration = Duration::from_secs(10);

struct Room {
    machine: HostedMachine,
    linux: UnixDatagram,
    bell: Bell,
    stop: Arc<AtomicBool>,
}

fn room() -> Room {
    let (ours, linux) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let (machine, bell, stop) = machine_on(ours.into());
    Room { machine, linux, bell, stop }
}

fn machine_on(interface: OwnedFd) -> (HostedMachine, Bell, Arc<AtomicBool>) {
    let card = Card { address: Ethernet([2, 0, 0, 0, 0, 1]), mtu: 1500, offloads: Offloads::default(), queues: 1 };
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    let (bell, stop) = (Bell::new().unwrap(), Arc::new(AtomicBool::new(false)));
    let (console, _) = Console::new();
    let tap = Tap::over(interface, card);
    let machine = HostedMachine::new(tap, file, console, bell.clone(), Arc::clone(&stop)).unwrap();
    (machine, bell, stop)
}

/// How long the machine sleeps when nothing but an event ends it.
fn slept(machine: &mut HostedMachine) -> Duration {
    let began = Moment::now();
    let until = machine.now() + Micros::from_secs(LONG.as_secs());
    machine.idle(until);
    began.elapsed()
}

#[test]
fn a_sleep_ends_at_its_time_and_not_before() {
    let Room { mut machine, linux: _linux, bell, .. } = room();
    bell.ring();
    assert!(slept(&mut machine) < LONG, "it was woken, once");
    let until = machine.now() + Micros::from_millis(30);
    machine.idle(until);
    assert!(machine.now() >= until);
    machine.idle(Instant::START);
}

#[test]
fn a_frame_that_arrived_before_or_during_the_sleep_ends_it() {
    let Room { mut machine, linux, .. } = room();
    linux.send(&[0; 72]).unwrap();
    assert!(slept(&mut machine) < LONG);
    let frame = machine.receive().unwrap();
    machine.give_back(frame);
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        linux.send(&[0; 72]).unwrap();
        std::thread::sleep(LONG);
    });
    assert!(slept(&mut machine) < LONG);
    assert!(machine.receive().is_some());
}

#[test]
fn no_completion_is_slept_through() {
    let Room { mut machine, linux: _linux, .. } = room();
    for token in 0..3000 {
        let operation = if token % 100 == 0 { DiskOperation::Flush } else { DiskOperation::Read };
        let bytes = if operation == DiskOperation::Flush { 0 } else { SECTOR_BYTES };
        let buffer = vec![0; bytes].into_boxed_slice();
        machine.request(DiskRequest { token: DiskToken(token), operation, sector: Sector(0), buffer }).unwrap();
        loop {
            if machine.completed().is_some() {
                break;
            }
            assert!(slept(&mut machine) < LONG, "request {token} was slept through");
        }
    }
}

#[test]
fn a_request_that_is_refused_at_once_is_not_slept_through() {
    let Room { mut machine, linux: _linux, .. } = room();
    let buffer = vec![0; 1].into_boxed_slice();
    let request = DiskRequest { token: DiskToken(1), operation: DiskOperation::Read, sector: Sector(0), buffer };
    machine.request(request).unwrap();
    assert!(slept(&mut machine) < LONG);
    assert!(machine.completed().is_some());
}

#[test]
fn who_asks_to_stop_wakes_the_machine_and_the_wish_stays() {
    let Room { mut machine, linux: _linux, bell, stop } = room();
    assert!(!machine.stop_requested());
    stop.store(true, Ordering::Relaxed);
    bell.ring();
    assert!(slept(&mut machine) < LONG);
    assert!(machine.stop_requested() && machine.stop_requested());
}

#[test]
fn a_machine_whose_card_was_taken_away_stops_and_sleeps_until_then() {
    // Of a socket of this kind the sleep hears that the other end is gone, as of an interface.
    let (ours, linux) = UnixStream::pair().unwrap();
    let (mut machine, ..) = machine_on(ours.into());
    drop(linux);
    let plain = Outgoing { head: &[0; 60], payload: &[], checksum: None, segment_bytes: None };
    machine.transmit(&plain).unwrap();
    assert!(machine.is_cut_off() && machine.stop_requested());
    let until = machine.now() + Micros::from_millis(30);
    machine.idle(until);
    assert!(machine.now() >= until, "it would not come to rest");
}

#[test]
fn random_bytes_are_filled_in_whatever_their_number() {
    let Room { mut machine, .. } = room();
    let mut bytes = [0; 1000];
    machine.random(&mut bytes);
    assert!(bytes.chunks(8).all(|part| part.iter().any(|byte| *byte != 0)));
    machine.random(&mut []);
}
