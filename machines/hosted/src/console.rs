//! The console: it passes lines, each with the date and time at which it was printed, to a thread
//! that shows them.
//!
//! A slow terminal never delays a turn: lines that do not fit into the channel are dropped, and a
//! later line has their number.

use std::fmt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use machine::LineStamp;

/// The maximum number of lines that wait to be shown.
const LINES: usize = 1024;

/// A core's end of the console.
#[derive(Clone)]
pub(crate) struct Console {
    lines: SyncSender<String>,
    lost: u64,
}

impl Console {
    /// The console and the receiver of its lines. The receiver disconnects when the console is
    /// dropped.
    pub(crate) fn new() -> (Console, Receiver<String>) {
        let (lines, shown) = sync_channel(LINES);
        (Console { lines, lost: 0 }, shown)
    }

    pub(crate) fn print(&mut self, stamp: LineStamp, text: fmt::Arguments<'_>) {
        if self.lost > 0
            && self.lines.try_send(format!("[console: {} lines lost]", self.lost)).is_ok()
        {
            self.lost = 0;
        }
        let line = format!("{stamp} {text}");
        self.lost += u64::from(self.lines.try_send(line).is_err());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::{Instant, UnixTime};

    const START: LineStamp = LineStamp { wall: Some(UnixTime(0)), now: Instant::START };

    #[test]
    fn a_line_begins_with_its_date_and_time() {
        let (mut console, lines) = Console::new();
        let now = Instant(12_000_345);
        console.print(LineStamp { now, ..START }, format_args!("hello"));
        assert_eq!(lines.recv().unwrap(), "1970-01-01 00:00:00Z [   12.000345] hello");
    }

    #[test]
    fn lines_beyond_the_capacity_are_dropped_and_counted() {
        let (mut console, lines) = Console::new();
        for _ in 0..LINES + 7 {
            console.print(START, format_args!("line"));
        }
        assert_eq!(lines.try_iter().count(), LINES);
        console.print(START, format_args!("later"));
        assert_eq!(lines.recv().unwrap(), "[console: 7 lines lost]");
        assert_eq!(lines.recv().unwrap(), "1970-01-01 00:00:00Z [    0.000000] later");
    }
}
