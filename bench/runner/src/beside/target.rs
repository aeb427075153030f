//! A mail server under load. Counts the instructions that it executes for a message, including the
//! work that follows the reply.

use std::time::{Duration, Instant};

use host::Failure;

use super::{Beside, Side};
use crate::counters::{Counters, Sample};

/// The time for the work that a server still does after it has acknowledged the last message.
const REST_BUDGET: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(500);
/// A server is at rest when this many samples in a row find it idle.
const LOOKS: u32 = 4;
/// A server counts as idle up to this many instructions a second above its idle rate.
const RESTING: f64 = 3_000_000.0;
const IDLE: Duration = Duration::from_secs(4);

/// The result of a load of messages on a server.
#[derive(Clone, Copy)]
pub(crate) struct Outcome {
    /// Messages.
    pub(crate) per_second: f64,
    /// Guest instructions for a message.
    pub(crate) instructions: f64,
}

/// A server under load.
pub(crate) struct Target<'a> {
    pub(crate) side: Side,
    counters: &'a Counters,
    /// Instructions of the guest in a second in which nothing happens.
    idle: f64,
}

impl Target<'_> {
    /// Measures the idle rate of a server that has just started. The server is at rest when this
    /// returns.
    pub(crate) fn at(beside: &Beside, side: Side) -> Result<Target<'_>, Failure> {
        let counters = beside.counters(side);
        std::thread::sleep(IDLE);
        let (before, began) = (counters.total_of(0)?, Instant::now());
        std::thread::sleep(IDLE);
        let idle = (counters.total_of(0)? - before) as f64 / began.elapsed().as_secs_f64();
        Ok(Target { side, counters, idle })
    }

    /// Counts the instructions of `work`, which sends `messages` messages and returns how long that
    /// took.
    pub(crate) fn count(
        &self,
        messages: u32,
        work: impl FnOnce() -> Result<Duration, Failure>,
    ) -> Result<Outcome, Failure> {
        let (before, began) = (self.counters.total_of(0)?, Instant::now());
        let took = work()?;
        rest(self.counters, self.idle, REST_BUDGET)?;
        let executed = (self.counters.total_of(0)? - before) as f64
            - self.idle * began.elapsed().as_secs_f64();
        let messages = f64::from(messages);
        Ok(Outcome { per_second: messages / took.as_secs_f64(), instructions: executed / messages })
    }

    /// The present values of the counters.
    pub(crate) fn sample(&self) -> Result<Sample, Failure> {
        self.counters.sample()
    }
}

/// Waits until a guest is at rest. Returns how long the guest was busy. `idle`: the instructions
/// that it executes in a second in which nothing happens.
pub(crate) fn rest(counters: &Counters, idle: f64, budget: Duration) -> Result<Duration, Failure> {
    let (began, mut busy, mut looks) = (Instant::now(), Duration::ZERO, 0);
    while looks < LOOKS {
        if began.elapsed() > budget {
            return Err(Failure::broke("a guest does not come to rest"));
        }
        let (before, looked) = (counters.total_of(0)?, Instant::now());
        std::thread::sleep(LOOK);
        let rate = (counters.total_of(0)? - before) as f64 / looked.elapsed().as_secs_f64();
        if rate < idle + RESTING {
            looks += 1;
        } else {
            (busy, looks) = (began.elapsed(), 0);
        }
    }
    Ok(busy)
}
