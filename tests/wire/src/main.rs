//! An impaired wire between two tap interfaces: it delays, loses, reorders, repeats and corrupts
//! frames, and limits their rate.
//!
//! Usage: `wire ONE OTHER --seed N --there SPEC --back SPEC`. `--there` applies to the frames from
//! ONE to OTHER, and `--back` to those from OTHER to ONE. A SPEC is a list such as
//! `delay=10,loss=0.01,rate=200`. The program prints `ready`, and carries frames until its standard
//! input ends. Then it prints one line for each direction with its counters.
//!
//! The decisions about the n-th frame of a direction are a function of the seed, the direction and
//! n. The times come from the host's clock. So two runs make the same decisions about the n-th
//! frame, but TCP sends other frames in each run.
#![forbid(unsafe_code)]

mod capture;
mod path;
mod spec;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use tap::Frames;

use capture::Capture;
use path::Path;
use spec::Spec;

/// The longest frame that the wire carries.
const FRAME_BYTES_MAX: usize = 1 << 16;
/// The most frames that are read from one side before the other side is checked.
const BATCH: usize = 64;

/// A bad wire between two tap interfaces.
#[derive(Parser)]
#[command(name = "wire")]
struct CommandLine {
    /// A tap interface
    one: String,
    /// Another one
    other: String,
    /// What all decisions follow from
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How frames fare from ONE to OTHER: `delay=` and `late=` in ms, `loss=`, `repeat=`,
    /// `reorder=`, `corrupt=` as probabilities, `rate=` in Mbit/s, `queue=` in KiB
    #[arg(long, value_name = "SPEC", default_value = "")]
    there: Spec,
    /// How frames fare from OTHER to ONE
    #[arg(long, value_name = "SPEC", default_value = "")]
    back: Spec,
    /// Writes every frame as it came from either side, before anything happens to it, to this file
    /// (pcap)
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
}

fn main() -> ExitCode {
    match carry(&CommandLine::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "wire: {error}");
            ExitCode::from(2)
        }
    }
}

/// One direction: the interfaces that its frames come from and go to, and the path between them.
struct Direction<'a> {
    from: &'a OwnedFd,
    to: &'a OwnedFd,
    path: Path,
}

fn carry(options: &CommandLine) -> io::Result<()> {
    let take = |name: &str| {
        tap::attach(name, Frames::Plain, 1)
            .map(|interface| interface.device)
            .map_err(|error| io::Error::other(format!("{name}: {error}")))
    };
    let (one, other) = (take(&options.one)?, take(&options.other)?);
    let mut capture = options.capture.as_deref().map(Capture::create).transpose()?;
    let mut directions = [
        Direction { from: &one, to: &other, path: Path::new(options.there, options.seed, 0) },
        Direction { from: &other, to: &one, path: Path::new(options.back, options.seed, 1) },
    ];
    say("ready")?;
    let started = Instant::now();
    let mut scratch = vec![0; FRAME_BYTES_MAX];
    let stdin = io::stdin();
    loop {
        for direction in &mut directions {
            direction.take_frames(started, &mut scratch, capture.as_mut())?;
        }
        for direction in &mut directions {
            direction.let_frames_go(started)?;
        }
        let due = directions.iter().filter_map(|direction| direction.path.next_due()).min();
        let timeout = due.map(|due| due.saturating_sub(started.elapsed()));
        let timeout = timeout.map(|span| Timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(span.subsec_nanos()),
        });
        let [there, back] = [&one, &other].map(|device| PollFd::new(device, PollFlags::IN));
        let mut awaited = [there, back, PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut awaited, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [.., asked_to_end] = awaited;
        if !asked_to_end.revents().is_empty() && is_over(&stdin)? {
            break;
        }
    }
    for (name, direction) in ["there", "back"].into_iter().zip(&directions) {
        say(format_args!("{name}: {}", direction.path.counters()))?;
    }
    capture.map_or(Ok(()), Capture::finish)
}

impl Direction<'_> {
    /// Reads the frames that have arrived.
    fn take_frames(
        &mut self,
        started: Instant,
        scratch: &mut [u8],
        mut capture: Option<&mut Capture>,
    ) -> io::Result<()> {
        for _ in 0..BATCH {
            match rustix::io::read(self.from, &mut *scratch) {
                Ok(bytes) => {
                    let frame = scratch.get(..bytes).unwrap_or_default();
                    if let Some(capture) = capture.as_deref_mut() {
                        capture.write(frame)?;
                    }
                    self.path.arrived(started.elapsed(), frame);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes the frames that are due.
    fn let_frames_go(&mut self, started: Instant) -> io::Result<()> {
        while let Some(frame) = self.path.next_departure(started.elapsed()) {
            match rustix::io::write(self.to, &frame) {
                // An interface that is down or full loses the frame.
                Ok(_) | Err(Errno::IO | Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.path.give_back(frame);
        }
        Ok(())
    }
}

/// Whether the standard input has ended. It ends when the process at its other end dies, so that
/// the wire does not outlive that process.
fn is_over(stdin: &io::Stdin) -> io::Result<bool> {
    let mut bytes = [0; 64];
    match rustix::io::read(stdin, &mut bytes) {
        Ok(count) => Ok(count == 0),
        Err(Errno::INTR | Errno::AGAIN) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn say(line: impl std::fmt::Display) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

/// Microseconds as a duration.
fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}
