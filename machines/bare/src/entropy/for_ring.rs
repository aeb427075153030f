//! The randomness that ring asks for by itself: each core has a generator for it.
//!
//! ring takes no generator from its callers, so that the one in the core's `BareMachine` cannot be handed to it. It asks the crate `getrandom`, which is ours, and
//! that asks here; which core is asking, the core itself says.

use core::cell::UnsafeCell;

use randomness::Source;

use super::EntropyPool;
use crate::clock;
use crate::cpu::cores::{self, CORES_MAX};

/// A core's generator.
struct Place(UnsafeCell<Option<EntropyPool>>);

// SAFETY: 1. a core uses its own place alone; 2. the first core fills each place before that core lives (`give`); 3. nothing here is interrupted, nor called while
// it runs: drawing from a generator asks nobody for randomness.
unsafe impl Sync for Place {}

static PLACES: [Place; CORES_MAX] = [const { Place(UnsafeCell::new(None)) }; CORES_MAX];

/// Draws from the generator of the core that runs this.
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
/// The core is this one, at its boot, or one that has no life yet; nobody else calls this at the same time.
pub(crate) unsafe fn give(core: usize, entropy: EntropyPool) {
    if let Some(place) = PLACES.get(core) {
        // SAFETY: by the caller's condition, nobody else uses the place now.
        unsafe { *place.0.get() = Some(entropy) };
    }
    randomness::provide(&SOURCE);
}
