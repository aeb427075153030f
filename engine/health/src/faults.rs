//! Messages that a reader could not get, because the disk returned wrong data or an error. The
//! console names each with its account and mailbox.
//!
//! Invariant: there are at most [`LINES_PER_MINUTE`] lines a minute. The other faults of the minute
//! are counted, and the count is one more line.

use machine::{ConsoleLines, Instant, Micros};
use store::Store;

const LINES_PER_MINUTE: u32 = 10;
const MINUTE: Micros = Micros::from_secs(60);

/// The faults of the current minute.
#[derive(Default)]
pub(crate) struct FaultLog {
    /// The end of the minute, which begins with the first fault.
    until: Option<Instant>,
    named: u32,
    left_out: u32,
}

impl FaultLog {
    /// Reports the faults since the last call.
    #[inline]
    pub(crate) fn report(&mut self, now: Instant, store: &mut Store, console: &mut ConsoleLines) {
        if self.until.is_some_and(|until| now >= until) {
            self.end_minute(console);
        }
        if store.has_read_faults() {
            self.report_new(now, store, console);
        }
    }

    pub(crate) fn next_deadline(&self) -> Instant {
        Instant::or_never(self.until.filter(|_| self.left_out > 0))
    }

    #[cold]
    fn report_new(&mut self, now: Instant, store: &mut Store, console: &mut ConsoleLines) {
        self.until.get_or_insert(now + MINUTE);
        while let Some(fault) = store.next_read_fault() {
            if self.named < LINES_PER_MINUTE {
                self.named += 1;
                console.print(format_args!("store: {}", fault.named(store)));
            } else {
                self.left_out = self.left_out.saturating_add(1);
            }
        }
        self.left_out = self.left_out.saturating_add(store.take_read_faults_left_out());
    }

    #[cold]
    fn end_minute(&mut self, console: &mut ConsoleLines) {
        if self.left_out > 0 {
            console.print(format_args!(
                "store: {} more reads of damaged or unreadable messages within a minute",
                self.left_out
            ));
        }
        *self = FaultLog::default();
    }
}
