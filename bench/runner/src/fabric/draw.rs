//! The figure: the throughput of real cores, and the upper bound for counted cores.

use super::counted::{COUNTINGS, Counted, Counting};
use super::{Done, LOADS};
use crate::plot::{Axis, Figure, Panel, Series, Shape, Tone};

const TONES: [Tone; 4] = [Tone::Ours, Tone::Second, Tone::Third, Tone::Fourth];

pub(super) fn figure(done: &[Done], counted: &[Counted]) -> Figure {
    let most = counted.iter().map(|one| one.cores).max().map_or(1.0, f64::from);
    let mut bounds = of_counted(counted, |one| one.speed_up(counted));
    bounds.push(Series {
        name: "ideal".into(),
        tone: Tone::Paper,
        shape: Shape::Dashes,
        points: vec![(0.0, 0.0), (most, most)],
    });
    let panel = |title: &str, x: &str, y: Axis, series| Panel {
        title: title.into(),
        x: Axis::linear(x),
        y,
        series,
    };
    Figure {
        title: "Engines and clients with nothing in between, and what cores execute".into(),
        caption: "Above: threads of one process, each on a processor of its own, frames through rings in memory; a client for each core. \
                  Below: guest instructions for a page or a message in QEMU, one queue of the card for each core. The count of \
                  a single core, divided by that of the busiest of several, bounds their speed-up.",
        panels: vec![
            panel(
                "Real cores: pages",
                "cores of the server",
                Axis::linear("requests a second"),
                of_done(done, "requests/s"),
            ),
            panel(
                "Real cores: messages",
                "cores of the server",
                Axis::linear("messages a second"),
                of_done(done, "messages/s"),
            ),
            panel(
                "Counted: all cores together",
                "cores of the machine",
                Axis::linear("guest instructions for each"),
                of_counted(counted, Counted::in_all),
            ),
            panel(
                "Counted: at most",
                "cores of the machine",
                Axis::linear("times what one does"),
                bounds,
            ),
        ],
    }
}

fn of_done(done: &[Done], wanted: &str) -> Vec<Series> {
    let loads = LOADS.iter().filter(|(.., unit)| *unit == wanted).zip(TONES);
    loads
        .map(|((load, name, _), tone)| {
            let of_it = done.iter().filter(|one| one.load == *load);
            line(name, tone, of_it.map(|one| (f64::from(one.cores), one.per_second)).collect())
        })
        .collect()
}

fn of_counted(counted: &[Counted], figure: impl Fn(&Counted) -> f64) -> Vec<Series> {
    let series = COUNTINGS.into_iter().zip(TONES);
    series
        .map(|(load, tone): (Counting, Tone)| {
            let of_it = counted.iter().filter(|one| one.load == load);
            line(load.name(), tone, of_it.map(|one| (f64::from(one.cores), figure(one))).collect())
        })
        .collect()
}

fn line(name: &str, tone: Tone, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.into(), tone, shape: Shape::Line, points }
}
