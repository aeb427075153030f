//! The figure of the web servers: requests, latency and instructions against connections.

use super::load::{Load, Outcome};
use super::{Case, PLAIN, SENDFILE, SMALL};
use crate::plot::{Axis, Figure, Panel, Series, Shape, Tone};

const NAMES: [(&str, Tone); 3] =
    [("Barepost", Tone::Ours), (SENDFILE, Tone::Other), (PLAIN, Tone::Fourth)];

pub(super) fn figure(cases: &[Case]) -> Figure {
    let panel = |title: &str, y: &str, closes: bool, figure: fn(&Outcome) -> f64| Panel {
        title: title.into(),
        x: Axis::logarithmic("connections at once"),
        y: Axis::logarithmic(y),
        series: series(cases, closes, figure),
    };
    Figure {
        title: "A file of 4 KB: Barepost, and nginx in a Linux guest".into(),
        caption: "The same QEMU (TCG), the same card on a tap, one core each, by turns in one run. Each request has a connection of its own at the left; \
                  connections are kept at the right. Guest instructions are counted by a plugin of the translator.",
        panels: vec![
            panel("A connection for each request", "requests a second", true, |outcome| {
                outcome.requests_per_second
            }),
            panel("Kept connections", "requests a second", false, |outcome| {
                outcome.requests_per_second
            }),
            panel(
                "A connection for each request",
                "guest instructions for a request",
                true,
                |outcome| outcome.instructions,
            ),
            panel("Kept connections", "guest instructions for a request", false, |outcome| {
                outcome.instructions
            }),
            panel(
                "A connection for each request",
                "latency, 99th percentile, ms",
                true,
                |outcome| outcome.p99_ms,
            ),
            panel("Kept connections", "latency, 99th percentile, ms", false, |outcome| {
                outcome.p99_ms
            }),
        ],
    }
}

fn series(cases: &[Case], wanted: bool, figure: fn(&Outcome) -> f64) -> Vec<Series> {
    let is_wanted = |load: Load| load.file == SMALL && load.closes == wanted;
    let chosen: Vec<&Case> = cases.iter().filter(|case| is_wanted(case.load)).collect();
    let of = |index: usize| {
        let points = chosen.iter().filter_map(|case| {
            Some((f64::from(case.load.connections), figure(case.outcomes.get(index)?)))
        });
        points.filter(|(_, value)| value.is_finite() && *value > 0.0).collect()
    };
    let named = NAMES.into_iter().enumerate();
    named
        .map(|(index, (name, tone))| Series {
            name: name.into(),
            tone,
            shape: Shape::Line,
            points: of(index),
        })
        .collect()
}
