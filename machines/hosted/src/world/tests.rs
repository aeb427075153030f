//! Tests of the sleep: certain events end it, and the sleep misses none of them.

use super::*;
use machine::{
    DiskOperation, DiskToken, Entropy, Ethernet, Micros, Offloads, SECTOR_BYTES, Sector,
};
use rustix::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Duration;

/// A time that is longer than any step of these tests. A sleep that lasts as long was not ended by
/// an event.
const LONG: Duration = Duration::from_secs(10);

struct Room {
    machine: HostedMachine,
    linux: UnixDatagram,
    seats: Seats,
}

fn room() -> Room {
    let (ours, linux) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let machine = machine_on(ours.into());
    Room { seats: machine.seats.clone(), machine, linux }
}

fn machine_on(interface: OwnedFd) -> HostedMachine {
    let card = Card {
        address: Ethernet([2, 0, 0, 0, 0, 1]),
        mtu: 1500,
        offloads: Offloads::default(),
        queues: 1,
    };
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    let (seats, (console, _)) = (Seats::new(2).unwrap(), Console::new());
    let disk = FileDisk::start(file, seats.of(CoreId::FIRST).bell()).unwrap();
    HostedMachine {
        core: CoreId::FIRST,
        about_card: card,
        card: Some(Tap::over(interface, card, 4)),
        disk: Some(disk),
        console,
        started: Moment::now(),
        seats,
    }
}

/// The second core of the machine, which has neither card nor disk.
fn second_core(first: &HostedMachine) -> HostedMachine {
    HostedMachine {
        core: CoreId(1),
        seats: first.seats.clone(),
        about_card: first.about_card,
        card: None,
        disk: None,
        console: first.console.clone(),
        started: first.started,
    }
}

/// Lets the machine sleep for at most [`LONG`]. Returns the time that it slept.
fn slept(machine: &mut HostedMachine) -> Duration {
    let began = Moment::now();
    let until = machine.now() + Micros::from_secs(LONG.as_secs());
    machine.idle(until);
    began.elapsed()
}

#[test]
fn a_sleep_ends_at_its_time_and_not_before() {
    let Room { mut machine, linux: _linux, seats } = room();
    seats.of(CoreId::FIRST).bell().ring();
    assert!(slept(&mut machine) < LONG, "the bell ends one sleep");
    let until = machine.now() + Micros::from_millis(30);
    machine.idle(until);
    assert!(machine.now() >= until);
    machine.idle(Instant::START);
}

#[test]
fn a_frame_before_or_during_the_sleep_ends_it() {
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
fn no_disk_completion_is_missed_by_a_sleep() {
    let Room { mut machine, linux: _linux, .. } = room();
    for token in 0..3000 {
        let operation = if token % 100 == 0 { DiskOperation::Flush } else { DiskOperation::Read };
        let bytes = if operation == DiskOperation::Flush { 0 } else { SECTOR_BYTES };
        let buffer = vec![0; bytes].into_boxed_slice();
        machine
            .request(DiskRequest { token: DiskToken(token), operation, sector: Sector(0), buffer })
            .unwrap();
        loop {
            if machine.completed().is_some() {
                break;
            }
            assert!(slept(&mut machine) < LONG, "the sleep missed request {token}");
        }
    }
}

#[test]
fn a_request_refused_at_once_ends_the_sleep() {
    let Room { mut machine, linux: _linux, .. } = room();
    let buffer = vec![0; 1].into_boxed_slice();
    let request = DiskRequest {
        token: DiskToken(1),
        operation: DiskOperation::Read,
        sector: Sector(0),
        buffer,
    };
    machine.request(request).unwrap();
    assert!(slept(&mut machine) < LONG);
    assert!(machine.completed().is_some());
}

#[test]
fn a_stop_request_wakes_every_core_and_persists() {
    let Room { mut machine, linux: _linux, seats } = room();
    let mut second = second_core(&machine);
    assert!(!machine.stop_requested());
    seats.request_stop();
    assert!(slept(&mut machine) < LONG);
    assert!(slept(&mut second) < LONG);
    assert!(machine.stop_requested() && machine.stop_requested() && second.stop_requested());
}

#[test]
fn a_machine_that_is_over_wakes_every_core() {
    let Room { mut machine, linux: _linux, seats } = room();
    let mut second = second_core(&machine);
    seats.end();
    assert!(slept(&mut machine) < LONG);
    assert!(slept(&mut second) < LONG);
    assert!(seats.is_over());
}

/// Two cores pass a number back and forth. Each core puts the number into its ring, wakes the other
/// core, and sleeps.
#[test]
fn no_message_of_another_core_is_missed_by_a_sleep() {
    const THROWS: u32 = 20_000;
    let Room { machine, linux: _linux, .. } = room();
    let second = second_core(&machine);
    let ((to_second, from_first), (to_first, from_second)) = (rings::ring(4), rings::ring(4));
    let play = |mut machine: HostedMachine,
                mut out: rings::Sender<u32>,
                mut back: rings::Receiver<u32>| {
        let other = CoreId(1 - machine.core.0);
        let mut number = 0;
        while number < THROWS {
            match back.receive() {
                Some(thrown) => {
                    number = thrown + 1;
                    out.send(number).unwrap();
                    machine.wake(other);
                }
                None => assert!(
                    slept(&mut machine) < LONG,
                    "the sleep missed the message after {number}"
                ),
            }
        }
    };
    let mut first_throw = to_first;
    first_throw.send(0).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| play(second, first_throw, from_first));
        play(machine, to_second, from_second);
    });
}

#[test]
fn a_core_without_buffers_sleeps_until_one_is_returned() {
    let Room { mut machine, linux, seats } = room();
    (0..5).for_each(|_| assert_eq!(linux.send(&[0; 72]).unwrap(), 72));
    let held: Vec<Frame> = std::iter::from_fn(|| machine.receive()).collect();
    assert_eq!(held.len(), 4);
    let until = machine.now() + Micros::from_millis(30);
    machine.idle(until);
    assert!(machine.now() >= until, "the machine does not sleep");
    seats.of(CoreId::FIRST).wake();
    assert!(slept(&mut machine) < LONG);
    held.into_iter().for_each(|frame| machine.give_back(frame));
    assert!(slept(&mut machine) < LONG);
    assert!(machine.receive().is_some());
}

#[test]
fn a_core_without_card_and_disk_refuses_all_requests() {
    let Room { machine, linux: _linux, .. } = room();
    let mut second = second_core(&machine);
    let plain = OutgoingFrame { head: &[0; 60], payload: &[], checksum: None, segment_bytes: None };
    assert_eq!(second.transmit(&plain), Err(TransmitError::Full));
    let flush = DiskRequest {
        token: DiskToken(1),
        operation: DiskOperation::Flush,
        sector: Sector(0),
        buffer: Vec::new().into_boxed_slice(),
    };
    second.request(flush).unwrap_err();
    assert!(second.receive().is_none() && second.completed().is_none());
    assert_eq!((second.disk().sectors, second.card()), (0, machine.card()));
}

#[test]
fn a_machine_that_lost_its_card_stops() {
    // With a stream socket, poll reports that the other end is gone, as it does for an interface.
    let (ours, linux) = UnixStream::pair().unwrap();
    let mut machine = machine_on(ours.into());
    drop(linux);
    let plain = OutgoingFrame { head: &[0; 60], payload: &[], checksum: None, segment_bytes: None };
    machine.transmit(&plain).unwrap();
    assert!(machine.is_cut_off() && machine.stop_requested());
    let until = machine.now() + Micros::from_millis(30);
    machine.idle(until);
    assert!(machine.now() >= until, "the machine does not sleep");
}

#[test]
fn any_number_of_random_bytes_is_filled_in() {
    let Room { mut machine, .. } = room();
    let mut bytes = [0; 1000];
    machine.random(&mut bytes);
    assert!(bytes.chunks(8).all(|part| part.iter().any(|byte| *byte != 0)));
    machine.random(&mut []);
}
