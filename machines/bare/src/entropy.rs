//! Randomness: a ChaCha20 generator, seeded and reseeded from the machine's sources.
//!
//! Sources: RDSEED and RDRAND of the processor, and the entropy device. All sources that answer are
//! combined by exclusive or, so that each source alone is enough and none can weaken the others.
//! Each core has its own generator. The first core seeds the generators of the other cores. Only
//! the first core has the device. So whenever it reseeds its own generator, it also leaves fresh
//! bytes for the other cores.
//!
//! Invariants:
//! - The generator returns no byte before a source has answered. A machine without any source does
//!   not start.
//! - After [`RESEED_BYTES`] or [`RESEED_AFTER`], whichever comes first, the generator gets a new
//!   key. The new key is the generator's own output, combined with fresh bytes. An attacker that
//!   learns the new key does not learn earlier output.

pub(crate) mod for_ring;

use crate::clock;
use crate::cpu::Processor;
use crate::cpu::cores::{self, CORES_MAX};
use crate::virtio::random::{RANDOM_BYTES, RandomDevice};
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use machine::{Instant, Micros};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const RESEED_BYTES: usize = 64 << 10;
const RESEED_AFTER: Micros = Micros::from_secs(60);

/// The longest time for which the boot waits for the entropy device if the machine has no other
/// source.
const PATIENCE: Micros = Micros::from_secs(2);

const SEED_BYTES: usize = 32;
const _: () = assert!(SEED_BYTES == RANDOM_BYTES);

type Seed = [u8; SEED_BYTES];

/// The bytes that the first core leaves for each other core's next key.
static LEFT: [[AtomicU64; SEED_BYTES / 8]; CORES_MAX] =
    [const { [const { AtomicU64::new(0) }; SEED_BYTES / 8] }; CORES_MAX];

/// A core's source of random bytes.
pub(crate) struct EntropyPool {
    processor: ProcessorSource,
    device: Option<RandomDevice>,
    generator: ChaCha20Rng,
    bytes_left: usize,
    reseed_at: Instant,
}

impl EntropyPool {
    /// Seeds the generator. `None` if no source answers.
    pub(crate) fn start(
        processor: &Processor,
        mut device: Option<RandomDevice>,
    ) -> Option<EntropyPool> {
        let processor =
            ProcessorSource { has_rdseed: processor.rdseed, has_rdrand: processor.rdrand };
        let mut seed = processor.seed();
        let mut brought = device.as_mut().and_then(RandomDevice::take);
        if seed.is_none() && brought.is_none() {
            let device = device.as_mut()?;
            clock::wait_until(PATIENCE, || {
                brought = device.take();
                brought.is_some()
            });
        }
        if let Some(brought) = brought {
            seed = Some(seed.map_or(brought, |seed| combined(seed, brought)));
        }
        Some(EntropyPool {
            processor,
            device,
            generator: ChaCha20Rng::from_seed(seed?),
            bytes_left: RESEED_BYTES,
            reseed_at: clock::now() + RESEED_AFTER,
        })
    }

    /// A generator for another core, seeded by this one.
    pub(crate) fn for_other(&mut self) -> EntropyPool {
        let mut seed = Seed::default();
        self.generator.fill_bytes(&mut seed);
        EntropyPool {
            processor: self.processor,
            device: None,
            generator: ChaCha20Rng::from_seed(seed),
            bytes_left: RESEED_BYTES,
            reseed_at: clock::now() + RESEED_AFTER,
        }
    }

    /// Fills `bytes` with random bytes.
    pub(crate) fn fill(&mut self, bytes: &mut [u8], now: Instant) {
        match self.bytes_left.checked_sub(bytes.len()) {
            Some(left) if now < self.reseed_at => self.bytes_left = left,
            _ => self.reseed(now),
        }
        self.generator.fill_bytes(bytes);
    }

    fn reseed(&mut self, now: Instant) {
        let mut seed = Seed::default();
        self.generator.fill_bytes(&mut seed);
        let sources =
            [self.processor.seed(), self.device.as_mut().and_then(RandomDevice::take), take_left()];
        for source in sources.into_iter().flatten() {
            seed = combined(seed, source);
        }
        self.generator = ChaCha20Rng::from_seed(seed);
        self.bytes_left = RESEED_BYTES;
        self.reseed_at = now + RESEED_AFTER;
        if self.device.is_some() {
            self.leave();
        }
    }

    /// Leaves fresh bytes for every other core. The generator that makes them has just been
    /// reseeded with bytes of the device, if the device had any.
    fn leave(&mut self) {
        for words in LEFT.iter().skip(1) {
            for word in words {
                word.store(self.generator.next_u64(), Relaxed);
            }
        }
    }
}

/// The bytes that the first core has left for this core since the last call. Torn or repeated bytes
/// do no harm, because `reseed` combines them with other sources.
fn take_left() -> Option<Seed> {
    let words = LEFT.get(cores::this()).filter(|_| cores::this() != 0)?;
    let mut seed = Seed::default();
    for (part, word) in seed.chunks_exact_mut(size_of::<u64>()).zip(words) {
        part.copy_from_slice(&word.swap(0, Relaxed).to_le_bytes());
    }
    Some(seed)
}

fn combined(mut one: Seed, other: Seed) -> Seed {
    one.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
    one
}

/// The processor's own generators.
#[derive(Clone, Copy)]
struct ProcessorSource {
    has_rdseed: bool,
    has_rdrand: bool,
}

impl ProcessorSource {
    /// A seed from the processor. `None` if the processor has no generator, or a broken one.
    fn seed(&self) -> Option<Seed> {
        let mut seed = Seed::default();
        let mut before = None;
        for part in seed.chunks_exact_mut(size_of::<u64>()) {
            let number = self.number()?;
            // Some processors return the same number for ever after a sleep of the whole system.
            if before == Some(number) {
                return None;
            }
            before = Some(number);
            part.copy_from_slice(&number.to_le_bytes());
        }
        Some(seed)
    }

    /// A number from RDSEED if RDSEED has one ready, else from RDRAND. Each gets ten tries, as the
    /// manual advises.
    fn number(&self) -> Option<u64> {
        let by_rdseed = || {
            let (number, is_good): (u64, u8);
            // SAFETY: CPUID says that the processor has the instruction.
            unsafe {
                asm!("rdseed {}", "setc {}", out(reg) number, out(reg_byte) is_good, options(nomem, nostack))
            };
            (is_good != 0).then_some(number)
        };
        let by_rdrand = || {
            let (number, is_good): (u64, u8);
            // SAFETY: CPUID says that the processor has the instruction.
            unsafe {
                asm!("rdrand {}", "setc {}", out(reg) number, out(reg_byte) is_good, options(nomem, nostack))
            };
            (is_good != 0).then_some(number)
        };
        let rdseed = (0..10).filter(|_| self.has_rdseed).find_map(|_| by_rdseed());
        rdseed.or_else(|| (0..10).filter(|_| self.has_rdrand).find_map(|_| by_rdrand()))
    }
}
