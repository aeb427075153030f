//! Starts the other cores, one after another, each with its own stacks. A started core sleeps until
//! it gets work.
//!
//! A core starts in real mode, in a page below 1 MiB (`other_core.s`). A few instructions later it
//! runs the image's code, with the page tables of the first core. There it loads its tables, and
//! enables its vector state and its interrupt controller. Then the first core compares the
//! time-stamp counters of the two. A core that does not start, or has a disagreeing counter, is
//! reset and never used, and the console reports it.
//!
//! Invariants:
//! - One core starts at a time. The words that `other_core.s` reads do not change before the core
//!   has started or has been reset.
//! - The start page is filled while the boot tables still map it, and is never written again.

use crate::clock;
use crate::console::print;
use crate::cpu::apic::LocalApic;
use crate::cpu::cores::{self, CORES_MAX};
use crate::cpu::{self, Processor, interrupts};
use crate::memory::stacks::{Stack, Stacks};
use crate::shared::Lock;
use alloc::boxed::Box;
use core::ops::Range;
use core::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use machine::Micros;

#[cfg(not(test))]
core::arch::global_asm!(include_str!("other_core.s"));

unsafe extern "C" {
    static other_core_start: u8;
    static other_core_end: u8;
    static other_core_tables: AtomicU64;
    static other_core_stack: AtomicU64;
    static other_core_seat: AtomicU64;
}

/// The time that a core may take to start after the first start message. Some processors need a
/// second message, which is sent after this time. `PATIENCE_TWICE`: the time after the second
/// message, and the limit of all later waits for the core.
const PATIENCE_ONCE: Micros = Micros::from_millis(10);
const PATIENCE_TWICE: Micros = Micros::from_millis(200);

/// The number of comparisons of two counters.
const COMPARISONS: u64 = 4;

/// The exchange between the first core and the starting core. The first core sets a question
/// number. The starting core answers with that number and a time stamp.
static QUESTION: AtomicU64 = AtomicU64::new(0);
static ANSWER: AtomicU64 = AtomicU64::new(0);
static STAMP: AtomicU64 = AtomicU64::new(0);
static VERDICT: AtomicU64 = AtomicU64::new(UNDECIDED);
const UNDECIDED: u64 = 0;
const WELCOME: u64 = 1;
const UNFIT: u64 = 2;

/// The data for the core that starts.
static START: Lock<Option<(LocalApic, Stacks)>> = Lock::new(None);

/// The work for each core. It is empty until [`give_life`] sets it.
static LIVES: [Life; CORES_MAX] =
    [const { Life { is_given: AtomicBool::new(false), work: Lock::new(None) } }; CORES_MAX];

type Work = Box<dyn FnOnce() + Send>;

struct Life {
    is_given: AtomicBool,
    work: Lock<Option<Work>>,
}

/// A page below 1 MiB with the start code of a core.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartPage(u64);

impl StartPage {
    /// Fills the page at `address`.
    ///
    /// # Safety
    /// The page is mapped and writable now, and is below 1 MiB. It is never used for another
    /// purpose.
    pub(super) unsafe fn fill(address: u64) -> StartPage {
        let code = (&raw const other_core_start) as u64..(&raw const other_core_end) as u64;
        let bytes = (code.end - code.start) as usize;
        // SAFETY: 1. by the caller's condition; 2. the code is shorter than a page.
        unsafe { (address as *mut u8).copy_from_nonoverlapping(code.start as *const u8, bytes) };
        StartPage(address)
    }
}

/// A page in which a core can start: the lowest free page below 640 KiB, except page zero.
pub(super) fn start_page(free: impl Iterator<Item = Range<u64>>) -> Option<u64> {
    const PAGE: u64 = crate::memory::PAGE_BYTES;
    let place = |range: Range<u64>| {
        let page = range.start.max(PAGE).next_multiple_of(PAGE);
        (page + PAGE <= range.end.min(0xA_0000)).then_some(page)
    };
    free.filter_map(place).min()
}

/// Starts a core for each of `stacks` and of `apic_ids`. Returns the number of running cores,
/// including the first one. Their numbers have no gap.
///
/// # Safety
/// 1. `root` is the address of the page tables in use. All of `stacks` are mapped there, and no
///    other code uses them.
/// 2. Called once, on the first core.
pub(super) unsafe fn start(
    page: StartPage,
    root: u64,
    apic: &LocalApic,
    apic_ids: impl Iterator<Item = u32>,
    stacks: impl Iterator<Item = Stacks>,
) -> usize {
    let mut stacks = stacks;
    let mut count = 1;
    let mut free = None;
    for apic_id in apic_ids {
        let Some(stacks) = free.take().or_else(|| stacks.next()) else { break };
        let seat = cores::seat(count);
        seat.take(count, apic_id);
        START.with(|start| *start = Some((*apic, stacks)));
        for verdict in [&QUESTION, &ANSWER, &VERDICT] {
            verdict.store(0, Relaxed);
        }
        // SAFETY: these three statics are words of `other_core.s`. No core that could read them is
        // starting now.
        unsafe {
            other_core_tables.store(root, Relaxed);
            other_core_stack.store(stacks.top(Stack::Main), Relaxed);
            other_core_seat.store((&raw const *seat) as u64, Release);
        }
        // SAFETY: 1. the page was filled; 2. tables, stack and seat are in place.
        let outcome = unsafe { start_one(page, apic, count) };
        match outcome {
            Ok(()) => count += 1,
            Err(reason) => {
                apic.reset_core(apic_id);
                print!("the core with number {apic_id} is not used: {reason}");
                free = Some(stacks);
            }
        }
    }
    count
}

/// # Safety
/// The conditions of `LocalApic::start_core`.
unsafe fn start_one(page: StartPage, apic: &LocalApic, number: usize) -> Result<(), &'static str> {
    let seat = cores::seat(number);
    let apic_id = seat.apic_id();
    apic.reset_core(apic_id);
    let mut has_started = false;
    for patience in [PATIENCE_ONCE, PATIENCE_TWICE] {
        // SAFETY: the caller's condition.
        unsafe { apic.start_core(apic_id, page.0) };
        has_started = sleep_until(patience, apic, || seat.is_running());
        if has_started {
            break;
        }
    }
    if !has_started {
        return Err("it did not start");
    }
    let is_fit = has_our_time(number, apic);
    VERDICT.store(if is_fit { WELCOME } else { UNFIT }, Release);
    wake(number, apic);
    if is_fit {
        return Ok(());
    }
    sleep_until(PATIENCE_TWICE, apic, || !seat.is_running());
    Err("its time-stamp counter does not agree with the first core's")
}

/// Whether each time stamp of core `number` is between two time stamps that this core took before
/// and after it.
fn has_our_time(number: usize, apic: &LocalApic) -> bool {
    (1..=COMPARISONS).all(|question| {
        let before = cpu::time_stamp_in_order();
        QUESTION.store(question, Release);
        wake(number, apic);
        let is_answered = sleep_until(PATIENCE_TWICE, apic, || ANSWER.load(Acquire) == question);
        let after = cpu::time_stamp_in_order();
        is_answered && (before..=after).contains(&STAMP.load(Relaxed))
    })
}

/// Sleeps until `is_done` is true, or for `limit`. Returns whether `is_done` is true. Another core
/// wakes this one after a change. Spinning would slow down the other core on hosts with fewer real
/// cores.
fn sleep_until(limit: Micros, apic: &LocalApic, is_done: impl Fn() -> bool) -> bool {
    let end = clock::now() + limit;
    let sleep = cores::seat(cores::this()).sleep();
    loop {
        let may_sleep = sleep.begin();
        let is_over = is_done() || clock::now() >= end;
        if !is_over && may_sleep {
            apic.wake_at(end);
            cpu::sleep_until_interrupt();
        }
        sleep.end();
        if is_over {
            return is_done();
        }
    }
}

/// Ends the sleep of core `number`.
fn wake(number: usize, apic: &LocalApic) {
    let seat = cores::seat(number);
    if seat.sleep().wake() {
        apic.interrupt(seat.apic_id());
    }
}

/// The entry of every other core, on its own stack and with its own seat.
#[unsafe(no_mangle)]
extern "C" fn other_core_main() -> ! {
    let Some((apic, stacks)) = START.with(Option::take) else { cpu::halt() };
    interrupts::load(&stacks);
    Processor::detect();
    apic.start_other();
    let number = cores::this();
    let seat = cores::seat(number);
    seat.runs();
    let mut answered = 0;
    while VERDICT.load(Acquire) == UNDECIDED {
        wake(0, &apic);
        let is_asked = || QUESTION.load(Acquire) != answered || VERDICT.load(Acquire) != UNDECIDED;
        sleep_until(Micros(u64::MAX), &apic, is_asked);
        answered = QUESTION.load(Acquire);
        STAMP.store(cpu::time_stamp_in_order(), Relaxed);
        ANSWER.store(answered, Release);
    }
    if VERDICT.load(Acquire) == UNFIT {
        seat.leaves();
        wake(0, &apic);
        cpu::halt();
    }
    live(number, &apic);
    cpu::halt()
}

/// Waits until this core gets work, and runs it.
fn live(number: usize, apic: &LocalApic) {
    let Some(life) = LIVES.get(number) else { return };
    sleep_until(Micros(u64::MAX), apic, || life.is_given.load(Acquire));
    if let Some(work) = life.work.with(Option::take) {
        work();
    }
}

/// Gives work to core `number`, which waits for it. When the work returns, the core stops.
pub(super) fn give_life(number: usize, apic: &LocalApic, work: Work) {
    let Some(life) = LIVES.get(number) else { return };
    life.work.with(|place| *place = Some(work));
    life.is_given.store(true, Release);
    wake(number, apic);
}
