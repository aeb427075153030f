//! One load on one machine: boots the machine, puts the load on it several times, and stops it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use host::{Failure, Repository, Stop, image, packages};

use super::parked::park;
use super::split::Split;
use super::wire::{FrameCapture, Seen};
use super::{CORES, PAPER_CLOCKS_PER_SECOND, Way};
use crate::at_tap::{Place, Queues, Serving, ask_for_pages};
use crate::counters::Sample;
use crate::processors;
use crate::profile::Functions;

/// The duration of a load in seconds.
const SPAN_S: u32 = 2;
const REQUESTS_MAX: u32 = 6_000;
const TURNS: usize = 2;
/// The number of requests before the measurement. They fill caches and are not counted.
const WARMING: u32 = 400;
const WARMING_PER_SECOND: u32 = 500;
/// The time after which all work of a load is finished.
const SETTLE: Duration = Duration::from_millis(300);

pub(super) struct Tools {
    place: Place,
    h2load: PathBuf,
    tcpdump: PathBuf,
    functions: Functions,
    /// The file of the captured frames.
    capture_file: PathBuf,
}

/// The results of one load.
pub(super) struct Point {
    pub(super) way: Way,
    /// Requests offered in a second.
    pub(super) asked: u32,
    pub(super) seen: Seen,
    /// The busy time of each core in the emulator, in percent of the load's duration.
    pub(super) busy: Vec<f64>,
    /// Instructions of each core, divided by the machine's requests.
    pub(super) executed: Vec<f64>,
    /// The instructions of the first core, by part of the machine.
    pub(super) split: Split,
    /// Requests that the first core served, in percent.
    pub(super) first_served: f64,
    /// The time of segments from core to core, in microseconds: mean and maximum. None if each core
    /// has its own queue.
    pub(super) passed: Option<(f64, f64)>,
}

impl Point {
    /// The busy time of each core at this load on the paper's processors, at one instruction a
    /// clock, in percent.
    pub(super) fn clocked(&self) -> Vec<f64> {
        let busy = |instructions: &f64| {
            instructions * f64::from(self.asked) * 100.0 / PAPER_CLOCKS_PER_SECOND
        };
        self.executed.iter().map(busy).collect()
    }
}

impl Tools {
    pub(super) fn get(repository: &Repository, stop: &Stop) -> Result<Tools, Failure> {
        let h2load = packages::program("h2load", "nghttp2-client", stop)?;
        let tcpdump = packages::program("tcpdump", "tcpdump", stop)?;
        let place = Place::make(repository, "multicore-web", stop)?;
        let functions = Functions::read(&image::unstripped(repository))?;
        let capture_file =
            repository.target(format!("bench/multicore-web-{}.pcap", std::process::id()));
        Ok(Tools { place, h2load, tcpdump, functions, capture_file })
    }

    /// Puts the load on a newly booted machine several times. The result is from the turn with the
    /// shortest mean duration of a request, because other load on the host only makes times longer.
    /// Call this in a thread with its own network namespace.
    pub(super) fn measure(
        &self,
        repository: &Repository,
        way: Way,
        asked: u32,
    ) -> Result<Point, Failure> {
        let serving = self.place.boot(repository, CORES, way.queues())?;
        let parked = if way == Way::OnlyCard { park(&serving)? } else { Vec::new() };
        ask(&self.h2load, WARMING, WARMING_PER_SECOND)?;
        std::thread::sleep(SETTLE);
        let mut turns = Vec::new();
        for _ in 0..TURNS {
            turns.push(self.turn(&serving, asked)?);
        }
        let idle = parked.len();
        drop(parked);
        let shares = shares(&serving.stop()?)?;
        let asked_in_all =
            WARMING as usize + turns.iter().map(|turn| turn.seen.requests).sum::<usize>();
        let best = turns
            .into_iter()
            .min_by(|one, other| one.seen.stay.mean_ms.total_cmp(&other.seen.stay.mean_ms));
        let Pass { seen, executed, busy_s } =
            best.ok_or_else(|| Failure::broke("there was no turn"))?;
        let first = executed.first().ok_or_else(|| Failure::broke("a machine has a core"))?;
        Ok(Point {
            way,
            asked,
            seen,
            busy: busy_s.iter().map(|busy| busy * 100.0 / seen.seconds).collect(),
            executed: executed
                .iter()
                .map(|core| core.total() as f64 / seen.requests as f64)
                .collect(),
            split: Split::of(&self.functions, first, seen.requests)?,
            first_served: first_served(&shares, idle, asked_in_all),
            // If each core has its own queue, the few frames that cores pass to each other are not
            // TCP segments.
            passed: passed(&shares).filter(|_| way.queues() == Queues::One),
        })
    }

    fn turn(&self, serving: &Serving, asked: u32) -> Result<Pass, Failure> {
        let process = serving.process_id();
        let before = processors::taken(process, CORES)?;
        let requests = (asked * SPAN_S).min(REQUESTS_MAX);
        let (executed, seen) = serving.during(SETTLE, || self.look_at_load(requests, asked))?;
        let after = processors::taken(process, CORES)?;
        Ok(Pass {
            seen,
            executed,
            busy_s: before.iter().zip(&after).map(|(before, after)| after - before).collect(),
        })
    }

    fn look_at_load(&self, requests: u32, per_second: u32) -> Result<Seen, Failure> {
        let capture = FrameCapture::begin(&self.tcpdump, 80, self.capture_file.clone())?;
        ask(&self.h2load, requests, per_second)?;
        std::thread::sleep(SETTLE);
        capture.end()
    }
}

/// Sends requests, each in its own connection, at `per_second`. A few of them begin together at
/// intervals of whole milliseconds.
fn ask(h2load: &Path, requests: u32, per_second: u32) -> Result<(), Failure> {
    let period_ms = (1_000 / per_second).max(1);
    let at_a_time = per_second * period_ms / 1_000;
    let options =
        [format!("-c{requests}"), format!("-r{at_a_time}"), format!("--rate-period={period_ms}ms")];
    ask_for_pages(h2load, requests, &options)
}

/// The results of one turn of a load.
struct Pass {
    seen: Seen,
    executed: Vec<Sample>,
    /// Host seconds that each core used.
    busy_s: Vec<f64>,
}

/// The counts that a core printed when it stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Share {
    connections: u64,
    frames: u64,
    mean_us: u64,
    most_us: u64,
}

/// The counts of all cores, in their order.
fn shares(printed: &[String]) -> Result<Vec<Share>, Failure> {
    let share = |core: u32| printed.iter().find_map(|line| share(line, core));
    let shares: Option<Vec<Share>> = (0..CORES).map(share).collect();
    shares.ok_or_else(|| {
        Failure::broke(format_args!(
            "the guest did not say what its cores did:\n{}",
            printed.join("\n")
        ))
    })
}

/// Parses a line of the console, such as `[    1.000000] core 1: 10 connections, 50 frames from
/// other cores, on the way 70 us, 300 us at most`.
fn share(line: &str, core: u32) -> Option<Share> {
    let (_, share) = line.split_once(&format!("core {core}: "))?;
    let mut figures = share.split_whitespace().filter_map(|word| word.parse().ok());
    let mut figure = || figures.next();
    Some(Share {
        connections: figure()?,
        frames: figure()?,
        mean_us: figure()?,
        most_us: figure()?,
    })
}

/// The first core's part of all requests, in percent. `idle`: connections of the first core without
/// a request.
fn first_served(shares: &[Share], idle: usize, requests: usize) -> f64 {
    let of_first = shares.first().map_or(0, |share| share.connections).saturating_sub(idle as u64);
    100.0 * of_first as f64 / requests as f64
}

fn passed(shares: &[Share]) -> Option<(f64, f64)> {
    let frames: u64 = shares.iter().map(|share| share.frames).sum();
    let sum: u64 = shares.iter().map(|share| share.frames * share.mean_us).sum();
    let most = shares.iter().map(|share| share.most_us).max()?;
    (frames > 0).then(|| (sum as f64 / frames as f64, most as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(core: u32, figures: [u32; 4]) -> String {
        let [connections, frames, mean, most] = figures;
        format!(
            "[    1.5] core {core}: {connections} connections, {frames} frames from other cores, on the way {mean} us, {most} us at most"
        )
    }

    #[test]
    fn the_share_of_each_core_is_parsed() {
        let printed: Vec<String> = std::iter::once("stopped".to_string())
            .chain((0..CORES).rev().map(|core| line(core, [10 * core, 30 * core, 100 + core, 500])))
            .collect();
        let shares = shares(&printed).unwrap();
        assert_eq!(shares[2], Share { connections: 20, frames: 60, mean_us: 102, most_us: 500 });
        let (mean, most) = passed(&shares).unwrap();
        assert_eq!((mean.round(), most), (102.0, 500.0));
        assert_eq!(super::shares(&printed[..2]).err().unwrap().status(), 1);
    }

    #[test]
    fn idle_connections_do_not_count_as_served_requests() {
        let share = |connections| Share { connections, frames: 0, mean_us: 0, most_us: 0 };
        assert_eq!(first_served(&[share(66), share(98), share(36)], 64, 200), 1.0);
        assert_eq!(passed(&[share(66)]), None);
    }
}
