//! The record of a room: a digest of all events, counters, and a trace for developers.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use machine::Instant;

/// Whether events are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trace {
    /// Print nothing.
    Off,
    /// Print every frame, disk request, random fault and console line.
    On,
}

/// The counters of one or more rooms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoomCounts {
    /// The number of power cuts.
    pub cuts: u64,
    /// The number of messages that the machines acknowledged.
    pub acknowledged: u64,
    /// The number of messages that clients read. Each matched the message that was sent.
    pub read: u64,
    /// The number of messages that clients deleted.
    pub deleted: u64,
    /// The number of pages that clients fetched. Each matched the site or the model.
    pub pages: u64,
    /// The number of frames that reached the wire.
    pub frames: u64,
    /// The number of turns of all engines.
    pub turns: u64,
    /// The simulated time, in microseconds.
    pub micros: u64,
    /// The number of rooms with machines of more than one core.
    pub several_cores: u64,
    /// The number of clients that received data over TLS.
    pub over_tls: u64,
}

impl RoomCounts {
    /// The counters as words, for another process.
    pub fn to_words(&self) -> String {
        let RoomCounts {
            cuts,
            acknowledged,
            read,
            deleted,
            pages,
            frames,
            turns,
            micros,
            several_cores,
            over_tls,
        } = self;
        format!(
            "{cuts} {acknowledged} {read} {deleted} {pages} {frames} {turns} {micros} {several_cores} {over_tls}"
        )
    }

    /// The counters that [`RoomCounts::to_words`] wrote. A word that is not a number counts as
    /// zero.
    pub fn from_words(words: &[&str]) -> RoomCounts {
        let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(0);
        RoomCounts {
            cuts: number(0),
            acknowledged: number(1),
            read: number(2),
            deleted: number(3),
            pages: number(4),
            frames: number(5),
            turns: number(6),
            micros: number(7),
            several_cores: number(8),
            over_tls: number(9),
        }
    }

    /// Adds the counters of another room.
    pub fn add(&mut self, other: &RoomCounts) {
        self.cuts += other.cuts;
        self.acknowledged += other.acknowledged;
        self.read += other.read;
        self.deleted += other.deleted;
        self.pages += other.pages;
        self.frames += other.frames;
        self.turns += other.turns;
        self.micros += other.micros;
        self.several_cores += other.several_cores;
        self.over_tls += other.over_tls;
    }
}

pub(super) struct Chronicle {
    pub(super) now: Instant,
    /// The time at which the faults ended and every machine ran again.
    pub(super) healed_at: Option<Instant>,
    pub(super) counts: RoomCounts,
    digest: DefaultHasher,
    trace: Trace,
}

impl Chronicle {
    pub(super) fn new(trace: Trace) -> Chronicle {
        Chronicle {
            now: Instant::START,
            healed_at: None,
            counts: RoomCounts::default(),
            digest: DefaultHasher::new(),
            trace,
        }
    }

    /// Adds an event to the digest. A replay of the seed must repeat it.
    pub(super) fn fold(&mut self, what: impl Hash) {
        (self.now.0, what).hash(&mut self.digest);
    }

    /// Prints a line of the trace.
    pub(super) fn trace(&self, what: impl FnOnce() -> String) {
        if self.trace == Trace::On {
            self.print(format_args!("{}", what()));
        }
    }

    #[allow(clippy::print_stdout, reason = "the caller has asked for a trace")]
    fn print(&self, line: fmt::Arguments<'_>) {
        println!("{} {line}", self.now);
    }

    pub(super) fn digest(&self) -> u64 {
        self.digest.finish()
    }
}
