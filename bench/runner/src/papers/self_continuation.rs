//! `cefos-selfcontinuation`: senders that contend for one gate, by self-continuation and with the
//! gate's software queue (CEFOS, figures 7 to 11).

use std::time::{Duration, Instant};

use experiments::contention::{Work, contend, growth};
use experiments::{Clocks, Contention, Costs};
use host::{Failure, Repository, Stop};

use super::{MODEL, dashes, line};
use crate::plot::{Axis, Figure, Panel, Tone};
use crate::report::{Report, Row};
use crate::workplace::refuse_if_stopped;

const LOSER: &str = "self-continuation, same model";
/// The numbers of calls in the paper.
const PAPERS: &[usize] = &[5, 10, 20, 40, 60, 80];
/// Larger numbers of calls.
const MORE: &[usize] = &[100, 300, 1_000, 3_000, 10_000];
/// The round-trip time of the device behind the gate.
const ROUND_TRIP: Clocks = Clocks::from_micros(2);
/// The number of contenders that are timed.
const TIMED: usize = 1_000;
const TIMES: usize = 5;

/// The results of the same calls with both kinds of contention.
struct Pair {
    queued: Work,
    continued: Work,
}

pub(crate) fn run(_repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    let mut pairs = Vec::new();
    for calls in PAPERS.iter().chain(MORE) {
        refuse_if_stopped(stop)?;
        pairs.push(Pair {
            queued: work(*calls, Contention::SoftwareQueue),
            continued: work(*calls, Contention::SelfContinuation),
        });
    }
    let mut rows = Vec::new();
    for Pair { queued, continued } in &pairs {
        let per_call = |work: &Work| work.clocks.0 as f64 / work.calls as f64;
        let case = |what: &str| format!("{} calls: {what}", queued.calls);
        rows.push(Row::alone(case("in all"), "clocks", queued.clocks.0 as f64).beside(
            LOSER,
            continued.clocks.0 as f64,
            None,
        ));
        rows.push(Row::alone(case("each"), "clocks", per_call(queued)).beside(
            LOSER,
            per_call(continued),
            None,
        ));
        rows.push(
            Row::alone(case("self-continuations"), "runs", queued.self_continuations as f64)
                .beside(LOSER, continued.self_continuations as f64, None),
        );
    }
    rows.extend(exponents(&pairs));
    let time =
        |contention| (0..TIMES).map(|_| timed(contention)).min().unwrap_or_default().as_secs_f64();
    let times = time(Contention::SelfContinuation) / time(Contention::SoftwareQueue);
    rows.push(Row::alone(
        format!("{TIMED} calls: time here, of self-continuation to the queue"),
        "times",
        times,
    ));
    Ok(Report {
        machine: format!("{MODEL}; one unit, one gate, one device of 2 µs"),
        rows,
        note: "Less is better. The paper: total clocks grow as the square of the number of calls, clocks for a call and self-continuations \
               for a sender linearly; with software queues the total grows linearly.",
        figure: Some(draw(&pairs)),
    })
}

fn work(calls: usize, contention: Contention) -> Work {
    contend(calls, contention, Costs::counted(ROUND_TRIP))
}

fn timed(contention: Contention) -> Duration {
    let started = Instant::now();
    std::hint::black_box(work(TIMED, contention));
    started.elapsed()
}

/// The exponent of the growth of work at the largest numbers of calls, where linear terms are
/// negligible.
fn exponents(pairs: &[Pair]) -> Option<Row> {
    let [.., from, to] = pairs else { return None };
    let slope = |of: fn(&Pair) -> &Work| {
        growth((of(from).calls, of(from).clocks.0), (of(to).calls, of(to).clocks.0))
    };
    let row = Row::alone(
        "exponent of the growth of total clocks",
        "of calls",
        slope(|pair| &pair.queued),
    );
    Some(row.beside(LOSER, slope(|pair| &pair.continued), None))
}

fn draw(pairs: &[Pair]) -> Figure {
    let points = |of: &dyn Fn(&Pair) -> f64, most: u64| -> Vec<(f64, f64)> {
        pairs
            .iter()
            .filter(|pair| pair.queued.calls <= most)
            .map(|pair| (pair.queued.calls as f64, of(pair)))
            .collect()
    };
    let continued = |of: &dyn Fn(&Work) -> f64, most| {
        line("self-continuation", Tone::Other, points(&|pair| of(&pair.continued), most))
    };
    let queued = |of: &dyn Fn(&Work) -> f64, most| {
        line(
            "software queue: the engine’s gate",
            Tone::Ours,
            points(&|pair| of(&pair.queued), most),
        )
    };
    let clocks = |work: &Work| work.clocks.0 as f64;
    let each = |work: &Work| work.clocks.0 as f64 / work.calls as f64;
    let in_vain = |work: &Work| work.self_continuations as f64;
    let in_vain_each = |work: &Work| work.self_continuations as f64 / work.calls as f64;
    let panel = |title: &str, y: &str, series| Panel {
        title: title.into(),
        x: Axis::linear("system calls"),
        y: Axis::linear(y),
        series,
    };
    let far = Panel {
        title: "Beyond the paper: up to 10,000 calls".into(),
        x: Axis::logarithmic("system calls"),
        y: Axis::logarithmic("clocks"),
        series: vec![
            continued(&clocks, u64::MAX),
            queued(&clocks, u64::MAX),
            dashes("∝ n²", Tone::Paper, square_law(pairs)),
            dashes("∝ n", Tone::Paper, linear_law(pairs)),
        ],
    };
    Figure {
        title: "Contending for a gate".into(),
        caption: "After figures 7 to 11 of Kusakabe, Taniguchi and Amamiya, “A Study of a Continuation-based Fine-grain \
                  Multithreaded Operating System CEFOS”, whose text gives no numbers for them: 7 is quadratic, 8 and 9 are \
                  linear, and with software queues 10 and 11 are linear.",
        panels: vec![
            panel("Figure 7: total clocks", "clocks", vec![continued(&clocks, 80)]),
            panel("Figure 8: clocks for a system call", "clocks", vec![continued(&each, 80)]),
            panel(
                "Figure 9: self-continuations of a sender",
                "self-continuations, mean",
                vec![continued(&in_vain_each, 80)],
            ),
            panel(
                "Figure 10: self-continuations",
                "self-continuations",
                vec![continued(&in_vain, 80), queued(&in_vain, 80)],
            ),
            panel(
                "Figure 11: total clocks",
                "clocks",
                vec![continued(&clocks, 80), queued(&clocks, 80)],
            ),
            far,
        ],
    }
}

/// The quadratic curve through the last point.
fn square_law(pairs: &[Pair]) -> Vec<(f64, f64)> {
    law(pairs, |pair| &pair.continued, 2)
}

/// The straight line through the last point.
fn linear_law(pairs: &[Pair]) -> Vec<(f64, f64)> {
    law(pairs, |pair| &pair.queued, 1)
}

fn law(pairs: &[Pair], of: fn(&Pair) -> &Work, power: i32) -> Vec<(f64, f64)> {
    let Some(last) = pairs.last().map(of) else { return Vec::new() };
    let at = |calls: f64| (calls, last.clocks.0 as f64 * (calls / last.calls as f64).powi(power));
    vec![at(100.0), at(last.calls as f64)]
}
