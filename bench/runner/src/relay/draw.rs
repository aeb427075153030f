//! The figure: messages through the queue, a slow destination beside a fast one, and the cost of a
//! long queue.

use super::through::{Load, OtherHalf, Way};
use super::waiting::Found;
use super::{All, PEER};
use crate::beside::Side;
use crate::plot::{Axis, Figure, Panel, Series, Shape, Tone};

const NAMES: [(&str, Tone, Side); 2] =
    [("Barepost", Tone::Ours, Side::Ours), (PEER, Tone::Other, Side::Peer)];

pub(super) fn figure(all: &All) -> Figure {
    let sides = [
        through(all, "Messages through the queue", "messages a second", |outcome| {
            outcome.per_second
        }),
        through(all, "The same", "guest instructions for a message", |outcome| {
            outcome.instructions
        }),
        mixed(all),
    ];
    let line = |name, tone, value| Line { name, tone, value };
    let memory = [line("Barepost", Tone::Ours, |found| Some(found.mib))];
    let waits = [
        line("another user's, at most", Tone::Ours, |found| Some(found.others.longest)),
        line("another user's, median", Tone::Second, |found| Some(found.others.median)),
        line("the same user's, at most", Tone::Third, |found| Some(found.own.longest)),
    ];
    let drained =
        [line("Barepost", Tone::Ours, |found| found.drained.map(|(per_second, _)| per_second))];
    let queue = [
        of_queue(all, "A long queue: memory", "MiB of the host's", &memory),
        of_queue(
            all,
            "A long queue: a message for another destination",
            "ms until it is there",
            &waits,
        ),
        of_queue(all, "A long queue: it leaves", "messages a second", &drained),
    ];
    Figure {
        title: "Mail for other servers: Barepost, and Postfix in a Linux guest".into(),
        caption: "The same QEMU (TCG), the same card on a tap, one core each, in one run; 250 only after a flush; messages of 1 KB to smtp-sink, counted until the last has left. The slow destination takes a \
                  second for a message.",
        panels: sides.into_iter().chain(queue).collect(),
    }
}

fn both(points: impl Fn(Side) -> Vec<(f64, f64)>) -> Vec<Series> {
    let one = |(name, tone, side): (&str, Tone, Side)| Series {
        name: name.into(),
        tone,
        shape: Shape::Bars,
        points: points(side),
    };
    NAMES.into_iter().map(one).collect()
}

fn through(all: &All, title: &str, y: &str, value: fn(crate::beside::Outcome) -> f64) -> Panel {
    let name = |load: Load| {
        let way = if load.way == Way::Sent { "sent" } else { "sent on" };
        format!("{way}, {}", load.sessions)
    };
    let points = |side| {
        let outcomes = all
            .sides
            .through
            .iter()
            .map(|one| if side == Side::Ours { one.ours } else { one.peers });
        outcomes.enumerate().map(|(index, outcome)| (index as f64, value(outcome))).collect()
    };
    Panel {
        title: title.into(),
        x: Axis::names(
            "way, and sessions",
            all.sides.through.iter().map(|one| name(one.load)).collect(),
        ),
        y: Axis::logarithmic(y),
        series: both(points),
    }
}

fn mixed(all: &All) -> Panel {
    let name = |half| if half == OtherHalf::Fast { "another fast one" } else { "a slow one" };
    let points = |side| {
        let rates =
            all.sides.mixed.iter().map(|one| if side == Side::Ours { one.ours } else { one.peers });
        rates.enumerate().map(|(index, rate)| (index as f64, rate)).collect()
    };
    Panel {
        title: "A fast destination beside another".into(),
        x: Axis::names(
            "beside it",
            all.sides.mixed.iter().map(|one| name(one.other_half).into()).collect(),
        ),
        y: Axis::logarithmic("messages a second of the fast one's"),
        series: both(points),
    }
}

/// The figures of queues of several lengths.
struct Line {
    name: &'static str,
    tone: Tone,
    value: fn(&Found) -> Option<f64>,
}

fn of_queue(all: &All, title: &str, y: &str, lines: &[Line]) -> Panel {
    let series = lines.iter().map(|Line { name, tone, value }| {
        let found = all.found.iter().filter(|found| found.entries > 0);
        let points =
            found.filter_map(|found| Some((f64::from(found.entries), value(found)?))).collect();
        Series { name: (*name).into(), tone: *tone, shape: Shape::Line, points }
    });
    Panel {
        title: title.into(),
        x: Axis::logarithmic("entries"),
        y: Axis::logarithmic(y),
        series: series.collect(),
    }
}
