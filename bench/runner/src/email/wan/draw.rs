//! The figures of messages over a wide network.

use super::{All, CLIENTS_OF_SIZES, Case, MANY, ROUNDS_MS, TIMED, name};
use crate::beside::Side;
use crate::email::KIB;
use crate::email::draw::{panel_of_steps, series, sizes_axis};
use crate::plot::{Axis, Figure, Panel, Shape};

/// The first of the figures that show steps.
const FIRST_OF_STEPS: usize = 13;

pub(super) fn figure(all: &All) -> Figure {
    let sizes = ROUNDS_MS.map(|round_ms| panel_of_sizes(all, round_ms));
    let steps = TIMED.iter().zip(&all.steps).enumerate().map(|(index, (sending, steps))| {
        panel_of_steps(&format!("{} (figure {})", name(*sending), FIRST_OF_STEPS + index), steps)
    });
    Figure {
        title: "Mail over a wide network: Barepost, and Postfix with Dovecot in a Linux guest"
            .into(),
        caption: "The same QEMU (TCG), the same card on a tap, one core each, in one run; a wire between that delays and loses one frame of a thousand; a connection for each message; 250 only after a \
                  flush. After figures 7 to 11 and 13 to 15 of the email server paper, whose server was 1.8 times as fast as its peers with 5,500 messages, and had 2.54 times their throughput with 2 MB.",
        panels: [panel_of_many(all)].into_iter().chain(sizes).chain(steps).collect(),
    }
}

fn panel_of_many(all: &All) -> Panel {
    let points = |side| {
        let of = |round_ms| {
            all.cases
                .iter()
                .find(|case| case.round_ms == round_ms && case.sending.count() == MANY.count())
        };
        let seconds = |rate: f64| f64::from(MANY.count()) / rate;
        let cases =
            ROUNDS_MS.iter().enumerate().filter_map(|(index, ms)| Some((index as f64, of(*ms)?)));
        cases
            .map(|(index, case)| {
                (index, seconds(if side == Side::Ours { case.ours } else { case.peers }))
            })
            .collect()
    };
    Panel {
        title: format!("{} (figures 7 to 9)", name(MANY)),
        x: Axis::names("there and back", ROUNDS_MS.map(|ms| format!("{ms} ms")).into()),
        y: Axis::logarithmic("seconds"),
        series: series(Shape::Bars, points),
    }
}

fn panel_of_sizes(all: &All, round_ms: u32) -> Panel {
    let points = |side| {
        let is_shown =
            |case: &&Case| case.round_ms == round_ms && case.sending.clients == CLIENTS_OF_SIZES;
        let cases = all.cases.iter().filter(is_shown);
        cases
            .map(|case| {
                let per_second = if side == Side::Ours { case.ours } else { case.peers };
                ((case.sending.bytes / KIB) as f64, case.sending.bytes as f64 * per_second / 1e6)
            })
            .collect()
    };
    Panel {
        title: format!("Messages of many sizes, {round_ms} ms (figures 10, 11)"),
        x: sizes_axis(),
        y: Axis::logarithmic("MB a second"),
        series: series(Shape::Line, points),
    }
}
