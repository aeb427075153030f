//! Time: the time-stamp counter, converted to microseconds since the machine started.
//!
//! Invariants:
//! - Instants never go back. A core reads its own counter, which continues in every sleep state
//!   that this machine uses. Another core is used only if its counter agrees with the first one's
//!   (`boot::other_cores`).
//! - Only the first core reads the clock chip. All cores use its result as the time of day.
//! - Until the rate of the counter is known, the time is zero.

mod calibrate;
pub(crate) mod rtc;

pub(crate) use calibrate::hertz;

use crate::cpu;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use machine::{Instant, LineStamp, Micros, UnixTime};

/// The value of the counter at the first instruction.
static START: AtomicU64 = AtomicU64::new(0);

/// Microseconds per tick, in units of 2^-48.
static MICROS_PER_TICK: AtomicU64 = AtomicU64::new(0);
const FRACTION_BITS: u32 = 48;

/// Ticks per microsecond, in units of 2^-32.
static TICKS_PER_MICRO: AtomicU64 = AtomicU64::new(0);

/// An update of the chip's registers and its announcement take 2.2 ms together.
const CHIP_UPDATE_MAX: Micros = Micros::from_millis(3);

/// The rate of the counter, in ticks per second.
static HERTZ: AtomicU64 = AtomicU64::new(0);

/// The time of day when the machine started, in microseconds since 1970; zero if unknown.
static DAY_AT_START: AtomicU64 = AtomicU64::new(0);

/// The time of day at `now`.
#[inline]
pub(crate) fn day(now: Instant) -> UnixTime {
    UnixTime(DAY_AT_START.load(Relaxed).saturating_add(now.0))
}

/// The stamp of a line on the console.
pub(crate) fn stamp() -> LineStamp {
    let now = now();
    LineStamp { wall: knows_day().then(|| day(now)), now }
}

/// Whether the time of day is known.
pub(crate) fn knows_day() -> bool {
    DAY_AT_START.load(Relaxed) != 0
}

/// Sets the time of day: it is `day` at `now`.
pub(crate) fn set_day(now: Instant, day: UnixTime) {
    DAY_AT_START.store(day.0.saturating_sub(now.0), Relaxed);
}

/// Reads the time of day from the clock chip, at boot. If the chip is changing its registers, waits
/// until the change is over, at most [`CHIP_UPDATE_MAX`].
pub(crate) fn find_day() {
    wait_until(CHIP_UPDATE_MAX, || {
        let read = rtc::read();
        read.into_iter().for_each(|day| set_day(now(), day));
        read.is_some()
    });
}

/// Starts the clock: its time was zero when the counter had the value `start`. The counter ticks
/// `hertz` times a second.
pub(crate) fn start(start: u64, hertz: u64) {
    START.store(start, Relaxed);
    HERTZ.store(hertz, Relaxed);
    let per_tick = (1_000_000_u128 << FRACTION_BITS).checked_div(u128::from(hertz)).unwrap_or(0);
    MICROS_PER_TICK.store(per_tick as u64, Relaxed);
    let per_micro = (u128::from(hertz) << 32) / 1_000_000;
    TICKS_PER_MICRO.store(per_micro as u64, Relaxed);
}

/// The time since the first instruction.
#[inline]
pub(crate) fn now() -> Instant {
    let ticks = cpu::time_stamp().saturating_sub(START.load(Relaxed));
    let micros = (u128::from(ticks) * u128::from(MICROS_PER_TICK.load(Relaxed))) >> FRACTION_BITS;
    Instant(micros as u64)
}

/// The counter's value at `instant`.
pub(crate) fn ticks_at(instant: Instant) -> u64 {
    let ticks = (u128::from(instant.0) * u128::from(TICKS_PER_MICRO.load(Relaxed))) >> 32;
    START.load(Relaxed).saturating_add(u64::try_from(ticks).unwrap_or(u64::MAX))
}

/// The rate of the counter, in ticks per second.
pub(crate) fn ticks_per_second() -> u64 {
    HERTZ.load(Relaxed)
}

/// Polls `is_done` until it is true or `limit` has passed. Returns whether `is_done` became true.
/// Call this only during boot and shutdown, since turns never wait.
pub(crate) fn wait_until(limit: Micros, mut is_done: impl FnMut() -> bool) -> bool {
    let end = now() + limit;
    loop {
        if is_done() {
            return true;
        }
        if now() >= end {
            return false;
        }
        core::hint::spin_loop();
    }
}
