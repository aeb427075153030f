//! `cefos-livelock`: useful work against offered load, past saturation (CEFOS, figure 6).

use experiments::Clocks;
use experiments::livelock::{Kind, offer};
use host::{Failure, Repository, Stop};

use super::{MODEL, dashes, line};
use crate::plot::{Axis, Figure, Panel, Series, Tone};
use crate::report::{Report, Row};
use crate::workplace::refuse_if_stopped;

/// Offered loads, in calls a second.
const LOADS: &[u64] = &[
    50_000, 100_000, 200_000, 300_000, 400_000, 450_000, 500_000, 550_000, 600_000, 650_000,
    700_000, 800_000, 900_000, 1_000_000, 1_200_000, 1_500_000, 2_000_000,
];
/// Offered loads, as multiples of the machine's maximum.
const MULTIPLES: &[u64] = &[1, 2, 5, 10, 100];
const PERIOD: Clocks = Clocks::from_micros(200_000);
const SEED: u64 = 1;
/// The required part of the maximum useful work, at every offered load.
const FLAT: f64 = 0.95;

pub(crate) fn run(_repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    let curve = |kind| -> Vec<(f64, f64)> {
        LOADS.iter().map(|load| (*load as f64, useful(kind, *load))).collect()
    };
    let curves = [Kind::Turns, Kind::Interrupts, Kind::SelfContinuation].map(curve);
    refuse_if_stopped(stop)?;
    let most = curves.iter().flatten().map(|point| point.1).fold(0.0, f64::max);
    let mut rows = vec![Row::alone("most useful work", "calls/s", most)];
    for times in MULTIPLES {
        refuse_if_stopped(stop)?;
        let load = (most as u64).saturating_mul(*times);
        let case = |what: &str| format!("offered {times} times that: {what}");
        let ours = useful(Kind::Turns, load);
        rows.push(Row::alone(case("by turns"), "calls/s", ours).ahead_of(
            "its own best",
            most,
            Some(FLAT),
        ));
        for (kind, name) in [
            (Kind::Interrupts, "by interrupts, same model"),
            (Kind::SelfContinuation, "by self-continuation, same model"),
        ] {
            rows.push(Row::alone(case("by turns"), "calls/s", ours).ahead_of(
                name,
                useful(kind, load),
                None,
            ));
        }
    }
    Ok(Report {
        machine: format!("{MODEL}; one unit; 150 clocks to take a frame, 1,000 in an interrupt"),
        rows,
        note: "More is better. A call is useful when it has come through the whole chain. Interrupts and self-continuations stop all useful \
               work at last; turns with budgets leave in the card what cannot be done.",
        figure: Some(draw(curves, most)),
    })
}

/// Calls completed in a second.
fn useful(kind: Kind, per_second: u64) -> f64 {
    offer(kind, per_second, PERIOD, SEED).done as f64 / (PERIOD.0 as f64 / 1e9)
}

fn draw(curves: [Vec<(f64, f64)>; 3], most: f64) -> Figure {
    let [turns, interrupts, continued] = curves;
    let end = turns.last().map_or(0.0, |point| point.0);
    let series: Vec<Series> = vec![
        line("turns with budgets: the engine", Tone::Ours, turns),
        line("interrupts", Tone::Other, interrupts),
        line("senders that continue with themselves", Tone::Fourth, continued),
        dashes("ideal", Tone::Paper, vec![(0.0, 0.0), (most, most), (end, most)]),
    ];
    Figure {
        title: "Useful work against offered load".into(),
        caption: "After figure 6 of Kusakabe, Taniguchi and Amamiya, “A Study of a Continuation-based Fine-grain Multithreaded \
                  Operating System CEFOS”, a sketch without numbers: where arrivals come before work, useful work falls to \
                  nothing under load; it must stay flat.",
        panels: vec![Panel {
            title: "Figure 6: a machine past its saturation".into(),
            x: Axis::linear("offered, system calls a second"),
            y: Axis::linear("completed, system calls a second"),
            series,
        }],
    }
}
