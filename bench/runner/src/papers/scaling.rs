//! `cefos-scaling`: throughput of system calls against devices and units (CEFOS, figure 5), on
//! simulated units and on this machine's cores.

use std::time::Duration;

use experiments::scaling::{Machine, calls_in_a_period};
use experiments::{Clocks, Contention, Costs, DevicePlace, cores};
use host::{Failure, Repository, Stop};

use super::{MODEL, dashes, line, marks};
use crate::plot::{Axis, Figure, Panel, Series, Tone};
use crate::report::{Report, Row};
use crate::workplace::refuse_if_stopped;

const PAPER: &str = "the paper";
/// Round-trip times of a device, in microseconds, with the paper's result at three devices and
/// three units where the paper gives one.
const ROUND_TRIPS: [(u64, Option<f64>); 4] = [(0, None), (2, Some(2.5)), (4, None), (6, Some(3.1))];
/// Numbers of devices and units, as in the paper.
const PAIRS: [(u32, usize); 9] =
    [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3)];
/// The highest number of pairs of a device and a unit.
const PAIRS_MAX: u32 = 8;
/// The colours of the series, one for each round-trip time.
const TONES: [Tone; 4] = [Tone::Ours, Tone::Second, Tone::Third, Tone::Fourth];
/// The duration of a count on real cores.
const COUNTED: Duration = Duration::from_millis(5);
/// The number of counts on real cores. The best count is used, because other load on the host only
/// reduces the result.
const REPETITIONS: usize = 150;

/// A way to run the chain.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    contention: Contention,
    place: DevicePlace,
}

const AS_THE_PAPER: Way = Way {
    name: "self-continuation, device on a unit (as the paper)",
    contention: Contention::SelfContinuation,
    place: DevicePlace::OnAUnit,
};
const QUEUED: Way = Way {
    name: "software queue, device on a unit",
    contention: Contention::SoftwareQueue,
    place: DevicePlace::OnAUnit,
};
const APART: Way = Way {
    name: "software queue, device apart",
    contention: Contention::SoftwareQueue,
    place: DevicePlace::Apart,
};

pub(crate) fn run(_repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    let mut rows = Vec::new();
    for way in [AS_THE_PAPER, QUEUED, APART] {
        for (round_trip, papers) in ROUND_TRIPS {
            refuse_if_stopped(stop)?;
            let case = |what: &str| format!("{}, {round_trip} µs: {what}", way.name);
            let row =
                Row::alone(case("three pairs to one"), "times", way.relative(round_trip, 3, 3));
            rows.push(match papers {
                Some(papers) => row.ahead_of(PAPER, papers, None),
                None => row,
            });
            rows.push(Row::alone(
                case("one pair"),
                "calls in 100 µs",
                way.calls(round_trip, 1, 1) as f64,
            ));
        }
    }
    let measured = on_cores(stop)?;
    for Measured { round_trip, cores, per_second, relative } in &measured {
        let case = |what: &str| format!("cores of this machine, {round_trip} µs: {what}");
        rows.push(Row::alone(case(&format!("{cores} of them")), "calls/s", *per_second));
        if *cores > 1 {
            rows.push(
                Row::alone(case(&format!("{cores} of them to one")), "times", *relative).ahead_of(
                    "as many times one",
                    *cores as f64,
                    None,
                ),
            );
        }
    }
    Ok(Report {
        machine: format!("{MODEL}; {} cores of this machine", available()),
        rows,
        note: "More is better. Pairs are of a device and a unit; the simulated figures are the most calls completed within 100,000 clocks. On real \
               cores each has a gate, a queue and a device of its own; runs of one core and of all go by turns, and the best of each counts.",
        figure: Some(draw(&measured)),
    })
}

impl Way {
    fn calls(self, round_trip: u64, devices: u32, units: usize) -> u64 {
        let costs = Costs::counted(Clocks::from_micros(round_trip));
        calls_in_a_period(Machine {
            devices,
            units,
            contention: self.contention,
            place: self.place,
            costs,
        })
    }

    fn relative(self, round_trip: u64, devices: u32, units: usize) -> f64 {
        self.calls(round_trip, devices, units) as f64 / self.calls(round_trip, 1, 1) as f64
    }
}

/// The measured result of this many real cores.
struct Measured {
    round_trip: u64,
    cores: usize,
    per_second: f64,
    /// The result relative to one core in the same run.
    relative: f64,
}

fn available() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Measures one core, then each power of two, and then all cores.
fn on_cores(stop: &Stop) -> Result<Vec<Measured>, Failure> {
    let mut counts: Vec<usize> = std::iter::successors(Some(1), |cores| Some(cores * 2))
        .take_while(|cores| *cores < available())
        .collect();
    counts.push(available());
    let mut measured = Vec::new();
    for (round_trip, _) in ROUND_TRIPS {
        for cores in &counts {
            refuse_if_stopped(stop)?;
            measured.push(measure(round_trip, *cores));
        }
    }
    Ok(measured)
}

fn measure(round_trip: u64, cores: usize) -> Measured {
    let count = |cores| {
        cores::calls_on(cores, Duration::from_micros(round_trip), COUNTED).iter().sum::<u64>()
            as f64
    };
    let (mut one, mut all) = (0.0, 0.0);
    for _ in 0..REPETITIONS {
        one = count(1).max(one);
        all = count(cores).max(all);
    }
    Measured { round_trip, cores, per_second: all / COUNTED.as_secs_f64(), relative: all / one }
}

fn draw(measured: &[Measured]) -> Figure {
    let names = || PAIRS.iter().map(|(devices, units)| format!("{devices}, {units}")).collect();
    let in_pairs = |way: Way, title: &str| {
        let mut series = by_round_trip(|round_trip| {
            let relative =
                PAIRS.iter().map(|(devices, units)| way.relative(round_trip, *devices, *units));
            (0..).map(f64::from).zip(relative).collect()
        });
        series.push(marks(
            "paper: 2.5 at 2 µs, 3.1 at 6 µs",
            Tone::Paper,
            vec![(8.0, 2.5), (8.0, 3.1)],
        ));
        let x = Axis::names("devices, units", names());
        Panel { title: title.into(), x, y: Axis::linear("throughput, of (1, 1)"), series }
    };
    let mut grown = by_round_trip(|round_trip| {
        (1..=PAIRS_MAX)
            .map(|pairs| (f64::from(pairs), APART.relative(round_trip, pairs, pairs as usize)))
            .collect()
    });
    grown.push(dashes(
        "ideal",
        Tone::Paper,
        vec![(0.0, 0.0), (f64::from(PAIRS_MAX), f64::from(PAIRS_MAX))],
    ));
    let mut real = by_round_trip(|round_trip| {
        let of_it = measured.iter().filter(|measured| measured.round_trip == round_trip);
        of_it.map(|measured| (measured.cores as f64, measured.relative)).collect()
    });
    real.push(dashes(
        "ideal",
        Tone::Paper,
        vec![(0.0, 0.0), (available() as f64, available() as f64)],
    ));
    let pairs = |title: &str, x: &str, series| Panel {
        title: title.into(),
        x: Axis::linear(x),
        y: Axis::linear("throughput, of one"),
        series,
    };
    Figure {
        title: "Throughput of system calls against devices and units".into(),
        caption: "After figure 5 of Kusakabe, Taniguchi and Amamiya, “A Study of a Continuation-based Fine-grain Multithreaded \
                  Operating System CEFOS”, whose text gives the two points at (3, 3). Microseconds are the round trip of a \
                  device. The paper suspects that its superlinear 3.1 means a base case slowed by self-continuation.",
        panels: vec![
            in_pairs(AS_THE_PAPER, "Figure 5, as the paper: self-continuation, device on a unit"),
            in_pairs(QUEUED, "Figure 5 with the engine’s gate, device on a unit"),
            pairs(
                "Pairs, device apart, the engine’s gate (simulated)",
                "pairs of a device and a unit",
                grown,
            ),
            pairs(
                "Pairs on the cores of the machine measured on",
                "cores, each with a device",
                real,
            ),
        ],
    }
}

fn by_round_trip(points: impl Fn(u64) -> Vec<(f64, f64)>) -> Vec<Series> {
    let series = ROUND_TRIPS.iter().zip(TONES);
    series
        .map(|((round_trip, _), tone)| line(format!("{round_trip} µs"), tone, points(*round_trip)))
        .collect()
}
