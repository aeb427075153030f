//! The random source for the crate ring. Each core has a separate generator for this purpose.
//!
//! ring takes no generator from its callers, so the generator in the core's `BareMachine` cannot be
//! passed to it. ring uses the crate `getrandom`, which our own crate of that name replaces. Our
//! crate calls this source. The source draws from the generator of the running core.

use core::cell::UnsafeCell;

use randomness::Source;

use super::EntropyPool;
use crate::clock;
use crate::cpu::cores::{self, CORES_MAX};

/// The storage of a core's generator.
struct Place(UnsafeCell<Option<EntropyPool>>);

// SAFETY: 1. a core uses only its own storage; 2. the first core fills each storage before that
// core has work (`give`); 3. no interrupt runs code, and the source does not call itself: drawing
// from a generator requests no randomness.
unsafe impl Sync for Place {}

static PLACES: [Place; CORES_MAX] = [const { Place(UnsafeCell::new(None)) }; CORES_MAX];

/// Draws from the generator of the core that calls it.
const SOURCE: Source = |bytes| {
    let Some(place) = PLACES.get(cores::this()) else { return false };
    // SAFETY: the conditions of `Place`.
    match unsafe { &mut *place.0.get() } {
        Some(entropy) => {
            entropy.fill(bytes, clock::now());
            true
        }
        None => false,
    }
};

/// Gives a core its generator.
///
/// # Safety
/// `core` is the calling core, at its boot, or a core that has no work yet. No other call runs at
/// the same time.
pub(crate) unsafe fn give(core: usize, entropy: EntropyPool) {
    if let Some(place) = PLACES.get(core) {
        // SAFETY: by the caller's condition, no other code uses the place now.
        unsafe { *place.0.get() = Some(entropy) };
    }
    randomness::provide(&SOURCE);
}
