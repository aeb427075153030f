//! Tests of the machine's end: all cores end after any core has ended, for any reason.

use super::*;
use std::io::Write;
use std::os::unix::net::UnixStream;

use machine::{Card, Ethernet, Instant, Offloads};

/// A time that is longer than any step of these tests.
const LONG: Duration = Duration::from_secs(20);

const CARD: Card = Card {
    address: Ethernet([2, 0, 0, 0, 0, 1]),
    mtu: 1500,
    offloads: Offloads { checksum: true, segmentation_ipv4: true, segmentation_ipv6: true },
    queues: 1,
};

const CONFIGURATION: &str =
    "hostname = 'mail.a.test'\ndomains = ['a.test']\n[network]\naddress = '10.0.0.2/24'\n";

/// Starts a machine with a card of one queue. Returns the machine and the other end of the card.
fn begin(cores: u8, disk: File) -> (Life, UnixStream) {
    let (ours, linux) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let setup = Setup {
        taps: vec![Tap::over(ours.into(), CARD, 64)],
        cores,
        disk,
        configuration: Configuration::parse(CONFIGURATION).unwrap(),
        site: Site::default(),
        papers: MachineKeys::default(),
        sizes: Sizes::for_memory(256 << 20, cores).unwrap(),
    };
    (Life::start(setup).unwrap(), linux)
}

fn empty_disk() -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(16 << 20).unwrap();
    file
}

fn await_line(life: &Life, part: &str) {
    let deadline = Moment::now() + LONG;
    loop {
        let line = life.next_line(deadline.saturating_duration_since(Moment::now())).unwrap();
        if line.contains(part) {
            return;
        }
    }
}

/// Waits until all cores have released the console. Returns the way in which the machine ended.
fn end(life: Life) -> Ending {
    let deadline = Moment::now() + LONG;
    loop {
        match life.next_line(deadline.saturating_duration_since(Moment::now())) {
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => return life.end(),
            Err(RecvTimeoutError::Timeout) => panic!("a core has not ended"),
        }
    }
}

#[test]
fn a_stop_request_ends_every_core() {
    for cores in [1, 2, 4] {
        let (life, _linux) = begin(cores, empty_disk());
        await_line(&life, "serving a.test");
        life.ask_to_stop();
        assert_eq!(end(life), Ending::Asked, "{cores} cores");
    }
}

#[test]
fn an_unusable_disk_ends_every_core() {
    let mut disk = empty_disk();
    disk.write_all(&[7; 1 << 20]).unwrap();
    let (life, _linux) = begin(4, disk);
    assert_eq!(end(life), Ending::Refused);
}

#[test]
fn a_removed_card_ends_every_core() {
    let (life, linux) = begin(4, empty_disk());
    await_line(&life, "serving a.test");
    drop(linux);
    assert_eq!(end(life), Ending::CutOff);
}

/// Runs a machine of three cores. Core `broken` panics, and the other cores only sleep until the
/// machine ends.
fn with_a_panic_on(broken: u8) -> Ending {
    let (console, lines) = Console::new();
    let seats = Seats::new(3).unwrap();
    let start = |core| {
        let machine = HostedMachine {
            core: CoreId(core),
            seats: seats.clone(),
            about_card: CARD,
            card: None,
            disk: None,
            console: console.clone(),
            started: Moment::now(),
        };
        let live = move |mut machine: HostedMachine| {
            assert!(core != broken, "core {core} breaks");
            while !machine.seats.is_over() {
                machine.idle(Instant::NEVER);
            }
            Ending::Asked
        };
        start_core(machine, None, live).unwrap()
    };
    let (first, others) = (start(0), vec![start(1), start(2)]);
    drop(console);
    end(Life { lines, seats, first, others })
}

#[test]
fn a_panic_on_any_core_ends_the_machine() {
    for broken in 0..3 {
        assert_eq!(with_a_panic_on(broken), Ending::Panicked, "core {broken}");
    }
}

#[test]
fn each_core_has_its_own_processor_if_there_are_enough() {
    let processors = sched_getaffinity(None).unwrap().count() as u8;
    for cores in 2..=processors.min(16) {
        let places = places(cores);
        assert!(
            places.len() >= usize::from(cores) && places.iter().all(|place| place.count() == 1)
        );
        assert!(
            places
                .iter()
                .enumerate()
                .all(|(at, place)| places.iter().skip(at + 1).all(|other| other != place))
        );
    }
    assert!(places(1).is_empty() && places(processors.saturating_add(1)).is_empty());
}
