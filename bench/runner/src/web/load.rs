//! Loads on a web server, and the time and instructions that they cost.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use host::{Failure, Stop, hold, packages};

use crate::counters::{Counters, Sample};
use crate::workplace::refuse_if_stopped;

const DONE: &str = include_str!("done.lua");
/// The duration of a load, in seconds.
const SPAN_S: u64 = 2;
/// The time after which all work of a load is finished.
const SETTLE: Duration = Duration::from_millis(300);
const IDLE: Duration = Duration::from_secs(2);

/// A load.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) file: &'static str,
    pub(super) connections: u32,
    /// Whether each request has its own connection.
    pub(super) closes: bool,
}

/// The result of a load.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    pub(super) requests_per_second: f64,
    pub(super) bytes_per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// Guest instructions for a request.
    pub(super) instructions: f64,
    /// Frames in both directions for a request.
    pub(super) packets: f64,
    pub(super) errors: f64,
}

/// A server under load.
pub(super) struct Target<'a> {
    pub(super) url: String,
    /// The tap interface of its guest.
    pub(super) interface: &'static str,
    pub(super) counters: &'a Counters,
    /// Instructions of the guest in a second in which nothing happens.
    pub(super) idle: f64,
}

/// The load generators. `wrk` with its script sends the next request when a response arrives.
/// `h2load` sends requests at fixed times.
pub(super) struct Generator {
    pub(super) wrk: PathBuf,
    pub(super) h2load: PathBuf,
    pub(super) script: PathBuf,
}

/// Instructions that a guest executes in a second without any request.
pub(super) fn idle(counters: &Counters) -> Result<f64, Failure> {
    let (before, started) = (counters.sample()?, Instant::now());
    std::thread::sleep(IDLE);
    Ok(counters.sample()?.since(&before).total() as f64 / started.elapsed().as_secs_f64())
}

/// The result of a load, and the guest's instructions by address.
pub(super) struct Measured {
    pub(super) outcome: Outcome,
    pub(super) executed: Sample,
    pub(super) requests: f64,
}

impl Generator {
    /// Finds the programs, and writes the script into `folder`.
    pub(super) fn get(folder: &Path, stop: &Stop) -> Result<Generator, Failure> {
        let wrk = packages::program("wrk", "wrk", stop)?;
        let h2load = packages::program("h2load", "nghttp2-client", stop)?;
        let script = folder.join("done.lua");
        std::fs::write(&script, DONE).map_err(Failure::io("writing a script for wrk"))?;
        Ok(Generator { wrk, h2load, script })
    }

    /// Puts `load` on `target`. If the target answers nothing, the values for a request are NaN.
    pub(super) fn put(
        &self,
        load: Load,
        target: &Target<'_>,
        stop: &Stop,
    ) -> Result<Measured, Failure> {
        refuse_if_stopped(stop)?;
        let started = Instant::now();
        let before = Taken::now(target)?;
        let printed = self.run(load, target)?;
        std::thread::sleep(SETTLE);
        let after = Taken::now(target)?;
        let found = Found::parse(&printed)
            .ok_or_else(|| Failure::broke(format_args!("wrk said\n{printed}")))?;
        let executed = after.sample.since(&before.sample);
        let of_requests = executed.total() as f64 - target.idle * started.elapsed().as_secs_f64();
        let outcome = Outcome {
            requests_per_second: found.requests / found.seconds,
            bytes_per_second: found.bytes / found.seconds,
            p50_ms: found.for_each(found.p50_ms * found.requests),
            p99_ms: found.for_each(found.p99_ms * found.requests),
            instructions: found.for_each(of_requests),
            packets: found.for_each(after.packets - before.packets),
            errors: found.errors,
        };
        Ok(Measured { outcome, executed, requests: found.requests })
    }

    fn run(&self, load: Load, target: &Target<'_>) -> Result<String, Failure> {
        let doing = "running wrk";
        let mut command = hold::command(&self.wrk);
        command.args([
            "-t1",
            &format!("-c{}", load.connections),
            &format!("-d{SPAN_S}s"),
            "--timeout",
            "5s",
        ]);
        if load.closes {
            command.args(["-H", "Connection: close"]);
        }
        command.arg("-s").arg(&self.script).arg(format!("{}/{}", target.url, load.file));
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let output = command.output().map_err(Failure::io(doing))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The counts of a guest so far.
struct Taken {
    sample: Sample,
    packets: f64,
}

impl Taken {
    fn now(target: &Target<'_>) -> Result<Taken, Failure> {
        let doing = "reading the interface's counters";
        // The file of this thread, because the thread has its own network namespace.
        let text = std::fs::read_to_string(Path::new("/proc/thread-self/net/dev"))
            .map_err(Failure::io(doing))?;
        let packets = packets(&text, target.interface).ok_or_else(|| Failure::broke(doing))?;
        Ok(Taken { sample: target.counters.sample()?, packets })
    }
}

/// Frames of `interface` in both directions. The second and the tenth number of its line are
/// packets.
fn packets(text: &str, interface: &str) -> Option<f64> {
    let line =
        text.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'))?;
    let figures: Vec<f64> =
        line.split_whitespace().filter_map(|figure| figure.parse().ok()).collect();
    Some(figures.get(1)? + figures.get(9)?)
}

/// The line that the script prints.
#[derive(PartialEq, Debug)]
struct Found {
    requests: f64,
    seconds: f64,
    bytes: f64,
    p50_ms: f64,
    p99_ms: f64,
    errors: f64,
}

impl Found {
    fn for_each(&self, sum: f64) -> f64 {
        if self.requests > 0.0 { sum / self.requests } else { f64::NAN }
    }

    fn parse(printed: &str) -> Option<Found> {
        let line = printed.lines().find_map(|line| line.strip_prefix("result "))?;
        let figures: Vec<f64> = line.split(' ').filter_map(|figure| figure.parse().ok()).collect();
        let [requests, micros, bytes, p50, p99, errors] = figures.try_into().ok()?;
        Some(Found {
            requests,
            seconds: micros / 1e6,
            bytes,
            p50_ms: p50 / 1e3,
            p99_ms: p99 / 1e3,
            errors,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_line_of_wrk_is_parsed() {
        let found = Found::parse("Running\nresult 1534 3090000 6340000 16170 891340 2\n").unwrap();
        assert_eq!(
            found,
            Found {
                requests: 1534.0,
                seconds: 3.09,
                bytes: 6.34e6,
                p50_ms: 16.17,
                p99_ms: 891.34,
                errors: 2.0
            }
        );
        assert_eq!(Found::parse("unable to connect"), None);
    }

    #[test]
    fn packets_of_both_directions_are_counted() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n  ours: 1000 10 0 0 0 0 0 0 2000 32 0 0 0 0 0 0\n";
        assert_eq!(packets(text, "ours"), Some(42.0));
        assert_eq!(packets(text, "our"), None);
    }
}
