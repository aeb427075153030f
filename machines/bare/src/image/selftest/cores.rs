//! Tests of the interaction of the cores: each core counts, sleeps, is woken, keeps its own time,
//! and passes memory to the others. One core that fails stops all cores.
//!
//! The file `opt/barepost/cores` from the host has the expected number of cores.

use super::time::best_lateness;
use super::{Outcome, PATIENCE, ensure, finish, network, tls};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use bare::boot::OtherCore;
use bare::{BareMachine, fw_cfg};
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire,
    Ordering::Relaxed, Ordering::Release,
};
use machine::{CoreId, Entropy, Instant, Machine, Micros};

/// The maximum number of cores in these tests, which is also the limit of the machine.
const CORES_MAX: usize = 16;

/// The number of the step that all cores run now. `DONE` has the last step that each core has
/// completed.
static STEP: AtomicU32 = AtomicU32::new(0);
static DONE: [AtomicU32; CORES_MAX] = [const { AtomicU32::new(0) }; CORES_MAX];
static FAILED: [AtomicBool; CORES_MAX] = [const { AtomicBool::new(false) }; CORES_MAX];

/// The number of times that each core has had the token. The core with the token is the remainder
/// of `TOKEN` divided by the number of cores.
static WOKEN: [AtomicU64; CORES_MAX] = [const { AtomicU64::new(0) }; CORES_MAX];
static TOKEN: AtomicU64 = AtomicU64::new(0);

/// The boxes that each core passes to the next core, which returns them to the allocator.
static PARCELS: [AtomicPtr<Parcel>; CORES_MAX] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; CORES_MAX];

type Parcel = Vec<Vec<u8>>;

/// A promise, and the function that checks it on each core.
type Step = (&'static str, fn(&mut BareMachine, usize) -> Outcome);

const STEPS: [Step; 8] = [
    ("each core has its own number, and draws its own random bytes", is_itself),
    ("only the first core reports a disk", has_no_disk),
    ("TLS works on each core", tls::shake),
    ("a sleep of each core ends by its own timer", timer_wakes),
    ("a core wakes when another core wakes it", token_goes_round),
    ("memory that another core frees returns to its owner", memory_goes_home),
    (
        "answers for a core arrive at its own queue of the card, and end its sleep",
        answers_come_home,
    ),
    ("lines of several cores are whole", lines_are_whole),
];

pub(super) fn run(mut machine: BareMachine, others: Vec<OtherCore>) -> ! {
    let expected = number_file("opt/barepost/cores");
    let count = 1 + others.len();
    let (mut passed, mut failed) = (0, 0);
    let mut judge = |machine: &mut BareMachine, what: &str, outcome: Outcome| match outcome {
        Ok(()) => {
            passed += 1;
            machine.print(format_args!("ok {what}"));
        }
        Err(reason) => {
            failed += 1;
            machine.print(format_args!("FAILED {what}: {reason}"));
        }
    };
    judge(
        &mut machine,
        "all cores start",
        ensure(count == expected, "the host expects another number of cores"),
    );
    let queues = usize::from(machine.card().queues);
    let is_expected = queues == number_file("opt/barepost/queues");
    judge(
        &mut machine,
        "the card has as many pairs of queues as the host expects",
        ensure(is_expected, "the card has another number of pairs"),
    );
    others.into_iter().for_each(|core| core.live(move |machine| live(machine, count)));
    for (number, (what, step)) in (1..).zip(STEPS) {
        STEP.store(number, Release);
        (1..count).for_each(|core| machine.wake(CoreId(core as u8)));
        let own = step(&mut machine, count);
        let all = wait_for_others(&mut machine, number, count);
        judge(&mut machine, what, own.and(all));
    }
    finish(&mut machine, passed, failed)
}

fn wait_for_others(machine: &mut BareMachine, step: u32, count: usize) -> Outcome {
    let end = machine.now() + PATIENCE;
    while DONE.iter().take(count).skip(1).any(|done| done.load(Acquire) != step) {
        ensure(machine.now() < end, "a core never completed the step")?;
        let until = machine.now() + Micros::from_millis(1);
        machine.idle(until);
    }
    ensure(FAILED.iter().all(|failed| !failed.load(Relaxed)), "the check failed on another core")
}

/// The work of a core other than the first.
fn live(mut machine: BareMachine, count: usize) {
    let own = machine.core().index();
    for (number, (what, step)) in (1..).zip(STEPS) {
        while STEP.load(Acquire) < number {
            machine.idle(Instant::NEVER);
        }
        if let Err(reason) = step(&mut machine, count) {
            machine.print(format_args!("FAILED {what} on {}: {reason}", machine.core()));
            FAILED.iter().for_each(|failed| failed.store(true, Relaxed));
        }
        DONE.iter().skip(own).take(1).for_each(|done| done.store(number, Release));
        machine.wake(CoreId::FIRST);
    }
    loop {
        machine.idle(Instant::NEVER);
    }
}

fn number_file(name: &str) -> usize {
    let file = fw_cfg::file(name).unwrap_or_default();
    core::str::from_utf8(&file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1)
}

fn at<T>(list: &[T; CORES_MAX], core: usize) -> Result<&T, &'static str> {
    list.get(core).ok_or("the core has a number beyond the limit")
}

fn is_itself(machine: &mut BareMachine, count: usize) -> Outcome {
    static SEEN: [AtomicU32; CORES_MAX] = [const { AtomicU32::new(0) }; CORES_MAX];
    static DRAWN: [AtomicU64; CORES_MAX] = [const { AtomicU64::new(0) }; CORES_MAX];
    static ASKED: [AtomicU64; CORES_MAX] = [const { AtomicU64::new(0) }; CORES_MAX];
    let own = machine.core().index();
    ensure(own < count, "the core has a number beyond all cores")?;
    ensure(at(&SEEN, own)?.fetch_add(1, Relaxed) == 0, "two cores have one number")?;
    let mut drawn = [0; 8];
    // Draws enough bytes that the generator must replace its key several times.
    for _ in 0..20_000 {
        machine.random(&mut drawn);
    }
    // ring requests its random bytes in this way.
    let mut asked = [0; 8];
    ensure(randomness::getrandom(&mut asked).is_ok(), "there is no randomness for ring")?;
    for (places, bytes) in [(&DRAWN, drawn), (&ASKED, asked)] {
        let number = u64::from_le_bytes(bytes);
        ensure(
            places.iter().all(|other| other.load(Relaxed) != number),
            "two cores draw the same",
        )?;
        at(places, own)?.store(number, Relaxed);
    }
    let (mut before, start) = (machine.now(), machine.now());
    while machine.now().since(start) < Micros::from_millis(2) {
        let now = machine.now();
        ensure(now >= before, "the core's time goes back")?;
        before = now;
    }
    Ok(())
}

fn has_no_disk(machine: &mut BareMachine, _: usize) -> Outcome {
    let has_disk = machine.disk().sectors > 0;
    ensure(
        has_disk == (machine.core() == CoreId::FIRST),
        "the first core has no disk, or another core has one",
    )
}

fn timer_wakes(machine: &mut BareMachine, _: usize) -> Outcome {
    let best_lateness = best_lateness(machine, Micros::from_millis(3))?;
    ensure(best_lateness < Micros::from_millis(20), "every sleep ended too late")
}

/// A token goes round all cores many times. The core with the token wakes the next one. The others
/// sleep, and only a wake ends the sleep.
fn token_goes_round(machine: &mut BareMachine, count: usize) -> Outcome {
    const ROUNDS: u64 = 300;
    let (own, count) = (machine.core().index() as u64, count as u64);
    let start = machine.now();
    let end = start + PATIENCE;
    let woken = at(&WOKEN, own as usize)?;
    while woken.load(Relaxed) < ROUNDS {
        let token = TOKEN.load(Acquire);
        if token % count == own {
            woken.fetch_add(1, Relaxed);
            TOKEN.store(token + 1, Release);
            machine.wake(CoreId(((own + 1) % count) as u8));
        } else {
            machine.idle(end);
            ensure(machine.now() < end, "the core was never woken")?;
        }
    }
    if own == 0 {
        let each = machine.now().since(start).0 / (ROUNDS * count);
        machine.print(format_args!("{each} us from one core to the next, asleep"));
    }
    Ok(())
}

/// Each core makes boxes for the next core, which checks and drops them. Afterwards about as much
/// memory is free as before.
fn memory_goes_home(machine: &mut BareMachine, count: usize) -> Outcome {
    const PARCELS_EACH: usize = 50;
    let own = machine.core().index();
    let neighbours = [(own + 1) % count, (own + count - 1) % count];
    let (outgoing, incoming) = (at(&PARCELS, own)?, at(&PARCELS, neighbours[1])?);
    let (mut sent, mut received) = (0, 0);
    let before = machine.memory().free;
    let end = machine.now() + PATIENCE;
    while sent < PARCELS_EACH || received < PARCELS_EACH {
        let is_room = sent < PARCELS_EACH && outgoing.load(Acquire).is_null();
        if is_room {
            outgoing.store(Box::into_raw(Box::new(parcel(sent))), Release);
            sent += 1;
        }
        let incoming = incoming.swap(core::ptr::null_mut(), AcqRel);
        if !incoming.is_null() {
            // SAFETY: the pointer came out of a box, and the core that takes it off the list is its
            // only user.
            let incoming = unsafe { Box::from_raw(incoming) };
            ensure(*incoming == parcel(received), "a box lost its contents")?;
            received += 1;
        }
        if is_room || !incoming.is_null() {
            neighbours.into_iter().for_each(|core| machine.wake(CoreId(core as u8)));
        } else {
            machine.idle(end);
        }
        ensure(machine.now() < end, "no box arrived")?;
    }
    // Each of about thirty sizes may have taken one or two slabs on each core.
    ensure(before.saturating_sub(machine.memory().free) < count * (6 << 20), "memory got lost")
}

/// Only one core at a time asks the router, because of Linux's taps. A tap learns the queue of a
/// sender only after it has delivered the answer to the sender's frame. So an answer arrives in the
/// queue that sent the previous question. Each core therefore first sends one question and does not
/// expect its answer.
fn answers_come_home(machine: &mut BareMachine, count: usize) -> Outcome {
    static TURN: AtomicU32 = AtomicU32::new(0);
    let own = machine.core().index();
    let end = machine.now() + PATIENCE;
    while TURN.load(Acquire) != own as u32 {
        machine.idle(end);
        ensure(machine.now() < end, "the core never got its turn")?;
    }
    let has_queue = own < usize::from(machine.card().queues);
    let outcome = if has_queue { ask_router(machine) } else { Ok(()) };
    TURN.store(own as u32 + 1, Release);
    machine.wake(CoreId(((own + 1) % count) as u8));
    outcome
}

fn ask_router(machine: &mut BareMachine) -> Outcome {
    let head = network::question(machine);
    network::send(machine, &head, &[])?;
    machine.ring_doorbells();
    let pause = machine.now() + Micros::from_millis(20);
    while machine.now() < pause {
        machine.idle(pause);
    }
    while let Some(frame) = machine.receive() {
        machine.give_back(frame);
    }
    for _ in 0..20 {
        let start = machine.now();
        network::send(machine, &head, &[])?;
        network::wait_for_answer(machine)?;
        ensure(machine.now().since(start) < PATIENCE, "the answer did not end the sleep")?;
    }
    Ok(())
}

/// Makes boxes of many sizes.
fn parcel(number: usize) -> Parcel {
    (0..60).map(|part| vec![(number + part) as u8; 1 + 53 * (number + part) % 3000]).collect()
}

fn lines_are_whole(machine: &mut BareMachine, _: usize) -> Outcome {
    for number in 0..20 {
        machine.print(format_args!(
            "line {number} of {} is as whole as a line of one core alone would be",
            machine.core()
        ));
    }
    Ok(())
}

/// Makes a core other than the first fail, while all are busy or asleep.
pub(super) fn break_another(machine: &mut BareMachine, others: Vec<OtherCore>) {
    static IS_TIME: AtomicBool = AtomicBool::new(false);
    let last = others.len();
    for core in others {
        core.live(move |mut machine| {
            let own = machine.core().index();
            while own == last && !IS_TIME.load(Acquire) {
                machine.idle(Instant::NEVER);
            }
            assert!(own != last, "on purpose");
            // Every second core is busy and prints lines. The others sleep.
            loop {
                if own % 2 == 0 {
                    machine.idle(Instant::NEVER);
                }
                let pause = machine.now() + Micros::from_millis(1);
                while machine.now() < pause {}
                machine.print(format_args!("{} lives", machine.core()));
            }
        });
    }
    let until = machine.now() + Micros::from_millis(20);
    while machine.now() < until {
        machine.idle(until);
    }
    IS_TIME.store(true, Release);
    machine.wake(CoreId(last as u8));
    let end = machine.now() + PATIENCE;
    while machine.now() < end {
        machine.idle(end);
    }
}
