//! The chain of `chain.rs`, measured on the cores of this machine: each core has a device of its
//! own (CEFOS, section 3.2).
//!
//! As everywhere in Barepost, the cores share nothing. Each core has its own gate, queue of ready
//! threads and device. A device is only a time at which its request is done. The core reads the
//! clock, and completes the request after that time.

use std::time::{Duration, Instant};

use tasks::Continuation;

use crate::chain::{Chain, Contention, DevicePlace, Ran};

/// The number of calls in progress on a core: enough to keep its device busy.
const WINDOW: usize = 32;
/// The most thread runs between two readings of the clock.
const TURN: usize = 64;

/// The time from the start of the threads until all of them begin to count.
const LEAD: Duration = Duration::from_millis(1);

/// The number of calls that each of `cores` cores completes in `period`. The period is the same for
/// all cores, and each core has a device with this `round_trip`.
pub fn calls_on(cores: usize, round_trip: Duration, period: Duration) -> Vec<u64> {
    let start = Instant::now() + LEAD;
    std::thread::scope(|scope| {
        let one = || {
            while Instant::now() < start {
                std::hint::spin_loop();
            }
            Core::new(round_trip).work_until(start + period)
        };
        let cores: Vec<_> = (0..cores).map(|_| scope.spawn(one)).collect();
        // A thread that panicked counts as no completed call.
        cores.into_iter().map(|core| core.join().unwrap_or(0)).collect()
    })
}

struct Core {
    chain: Chain,
    round_trip: Duration,
    /// The device's request, and the time at which it is done.
    request: Option<(Instant, Continuation)>,
}

impl Core {
    fn new(round_trip: Duration) -> Core {
        let chain = Chain::new(1, WINDOW, Contention::SoftwareQueue, DevicePlace::Apart);
        Core { chain, round_trip, request: None }
    }

    fn work_until(mut self, end: Instant) -> u64 {
        loop {
            while self.chain.underway() < WINDOW {
                assert!(self.chain.send(0), "there is room for a window of calls");
            }
            self.turn();
            let now = Instant::now();
            if now >= end {
                return self.chain.counts().done;
            }
            if let Some((_, continuation)) = self.request.take_if(|(done, _)| *done <= now) {
                self.chain.completed(continuation);
            }
        }
    }

    fn turn(&mut self) {
        for _ in 0..TURN {
            let Some((frame, _)) = self.chain.next_ready() else { return };
            match self.chain.run(frame) {
                Ran::Requested(continuation) if self.round_trip.is_zero() => {
                    self.chain.completed(continuation)
                }
                Ran::Requested(continuation) => {
                    assert!(self.request.is_none(), "a device has one request at a time");
                    self.request = Some((Instant::now() + self.round_trip, continuation));
                }
                Ran::Onwards | Ran::ContinuedWithItself | Ran::Done => {}
            }
        }
    }
}
