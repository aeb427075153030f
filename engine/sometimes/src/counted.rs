//! Counters of places, and the random numbers that decide whether mishaps happen.
//!
//! Invariant: the same seed, and the same calls in the same order, give the same answers.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::{Mishap, Place};

static REACHED: [AtomicU64; Place::ALL.len()] = [const { AtomicU64::new(0) }; Place::ALL.len()];
static HAPPENED: [AtomicU64; Mishap::ALL.len()] = [const { AtomicU64::new(0) }; Mishap::ALL.len()];

/// The probability of each mishap, in units of 1/65,536.
static CHANCES: [AtomicU64; Mishap::ALL.len()] = [const { AtomicU64::new(0) }; Mishap::ALL.len()];
static DICE: AtomicU64 = AtomicU64::new(1);
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Counts that the place was reached.
pub fn reached(place: Place) {
    if let Some(count) = REACHED.get(place as usize) {
        count.fetch_add(1, Relaxed);
    }
}

/// The number of times that the place was reached in this process.
pub fn count(place: Place) -> u64 {
    REACHED.get(place as usize).map_or(0, |count| count.load(Relaxed))
}

/// Whether the mishap happens now.
pub fn happens(mishap: Mishap) -> bool {
    let chances = CHANCES.get(mishap as usize).map_or(0, |chances| chances.load(Relaxed));
    if chances == 0 || !IS_ON.load(Relaxed) || roll() & 0xffff >= chances {
        return false;
    }
    if let Some(count) = HAPPENED.get(mishap as usize) {
        count.fetch_add(1, Relaxed);
    }
    true
}

/// The number of times that the mishap has happened in this process.
pub fn happened(mishap: Mishap) -> u64 {
    HAPPENED.get(mishap as usize).map_or(0, |count| count.load(Relaxed))
}

/// Lets mishaps happen from now on. `seed` decides how often each mishap happens: never, rarely or
/// often.
pub fn begin(seed: u64) {
    DICE.store(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, Relaxed);
    for chances in &CHANCES {
        let order = roll() % 32;
        // Each mishap that can happen has between one chance in 4 and one in 32,768.
        chances.store(if order < 14 { 2 << order } else { 0 }, Relaxed);
    }
    resume();
}

/// Lets no mishap happen from now on.
pub fn end() {
    CHANCES.iter().for_each(|chances| chances.store(0, Relaxed));
    pause();
}

/// Lets no mishap happen until [`resume`].
pub fn pause() {
    IS_ON.store(false, Relaxed);
}

/// Lets mishaps happen again.
pub fn resume() {
    IS_ON.store(true, Relaxed);
}

/// The next random number (xorshift64*; Vigna, 2016).
fn roll() -> u64 {
    let mut state = DICE.load(Relaxed);
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    DICE.store(state, Relaxed);
    state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
}
