//! The chain on the cores of this machine: fixed pairs of a core and a device (CEFOS, section 3.2),
//! measured.
//!
//! Each core is a machine of its own, as everywhere in Barepost. It has its own gate, queue of
//! ready threads and device, and shares nothing. A device is a point in time. When its core looks
//! after that time, it finds the request done.

use std::time::{Duration, Instant};

use tasks::Continuation;

use crate::chain::{Chain, Contention, DevicePlace, Ran};

/// Calls underway on a core at once: enough that its device is never idle for want of one.
const WINDOW: usize = 32;
/// Threads that run between two looks at the clock.
const TURN: usize = 64;

/// From the start of the threads until all of them count.
const LEAD: Duration = Duration::from_millis(1);

/// Calls completed in `period`, the same period for all, on `cores` cores. Each core has a device
/// of `round_trip`. One entry for each core.
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
        // A thread that panicked completed nothing.
        cores.into_iter().map(|core| core.join().unwrap_or(0)).collect()
    })
}

struct Core {
    chain: Chain,
    round_trip: Duration,
    /// The request in the device, and the time when it is done.
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
