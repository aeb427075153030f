//! The rate of the time-stamp counter: from the processor or the hypervisor, or else measured
//! against the interval timer (8254).
//!
//! The measurement takes 2 ms, from one tick of the timer to another. Each tick happens between two
//! readings of the counter. Of several ticks, the one with the closest readings is used. So the
//! result stays exact on a host that takes the processor away for a while. The remaining error is a
//! few hundred nanoseconds at both ends, 0.02 % in all. The time of day does not drift by this
//! error: `wall_clock` follows the clock chip.

use crate::cpu::{self, Port, Processor};

/// The interval timer's rate.
const TIMER_HERTZ: u64 = 1_193_182;

/// The length of the measurement in ticks of the interval timer: 2 ms.
const WINDOW_TICKS: u16 = 2386;

/// The number of ticks at each end of the measurement. The most exact of them is used.
const TICKS_COMPARED: u32 = 8;

/// The greatest distance of two readings, in ticks of the time-stamp counter (3 to 20 ms). A
/// greater distance may hide half a period of the timer, so the measurement starts again.
const GAP_MAX: u64 = 20_000_000;
const ATTEMPTS: u32 = 50;

/// If the timer's count does not change in this number of readings, the machine has no timer.
const IDLE_READINGS_MAX: u32 = 20_000;

/// The counter's rate in hertz; `None` if it cannot be determined.
pub(crate) fn hertz(processor: &Processor) -> Option<u64> {
    processor.tsc_hertz.or_else(|| (0..ATTEMPTS).find_map(|_| measure()))
}

fn measure() -> Option<u64> {
    let timer = IntervalTimer::start();
    let first = timer.best_tick(timer.count(), 1)?;
    let last = timer.best_tick(first.count, WINDOW_TICKS)?;
    let ticks = u64::from(first.count.wrapping_sub(last.count));
    last.stamp.checked_sub(first.stamp)?.checked_mul(TIMER_HERTZ)?.checked_div(ticks)
}

/// One tick of the interval timer.
struct Tick {
    /// The timer's count at the tick.
    count: u16,
    /// The time stamp in the middle between the readings before and after the tick. `doubt` is the
    /// distance of the two readings.
    stamp: u64,
    doubt: u64,
}

/// Channel 2 of the interval timer, which raises no interrupt.
struct IntervalTimer {
    count: Port,
    command: Port,
}

impl IntervalTimer {
    /// Starts the channel, which counts down from 65,536 repeatedly.
    fn start() -> IntervalTimer {
        // SAFETY: 1. the timer and its gate access no memory; 2. no code relies on them: channel 0,
        // which could interrupt, is not changed.
        let (count, command, gate) = unsafe { (Port::new(0x42), Port::new(0x43), Port::new(0x61)) };
        // Gate on, loudspeaker off.
        gate.write8(gate.read8() & !0b10 | 0b01);
        // Channel 2, low byte then high byte, mode 2, binary.
        command.write8(0b1011_0100);
        count.write8(0);
        count.write8(0);
        IntervalTimer { count, command }
    }

    fn count(&self) -> u16 {
        // Latches channel 2.
        self.command.write8(0b1000_0000);
        let low = self.count.read8();
        u16::from_le_bytes([low, self.count.read8()])
    }

    /// The most exact of several ticks that are at least `ticks` (under 32,768) after `since`.
    fn best_tick(&self, since: u16, ticks: u16) -> Option<Tick> {
        let mut best = self.next_tick(since, ticks)?;
        let mut count = best.count;
        for _ in 1..TICKS_COMPARED {
            let tick = self.next_tick(count, 1)?;
            count = tick.count;
            if tick.doubt < best.doubt {
                best = tick;
            }
        }
        Some(best)
    }

    /// The first tick that is at least `ticks` after `since`.
    fn next_tick(&self, since: u16, ticks: u16) -> Option<Tick> {
        let (mut before, mut count_before) = (cpu::time_stamp(), self.count());
        let mut idle_readings = 0;
        while idle_readings < IDLE_READINGS_MAX {
            let count = self.count();
            let after = cpu::time_stamp();
            if after - before > GAP_MAX {
                return None;
            }
            if (ticks..0x8000).contains(&since.wrapping_sub(count)) {
                return Some(Tick { count, stamp: before.midpoint(after), doubt: after - before });
            }
            idle_readings = if count == count_before { idle_readings + 1 } else { 0 };
            (before, count_before) = (after, count);
        }
        None
    }
}
