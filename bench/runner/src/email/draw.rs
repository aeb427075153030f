//! The figures of the email servers: time against messages, time and throughput against sizes, and
//! the steps of a message.

use super::steps::{STEPS, Timing};
use super::{All, Case, KIB, PEER, SESSIONS, SIZES_SESSIONS};
use crate::beside::Side;
use crate::plot::{Axis, Figure, Panel, Series, Shape, Tone};

const NAMES: [(&str, Tone, Side); 2] =
    [("Barepost", Tone::Ours, Side::Ours), (PEER, Tone::Other, Side::Peer)];

pub(super) fn figure(all: &All) -> Figure {
    let many = SESSIONS.iter().map(|sessions| panel_of_many(all, *sessions));
    let sizes = [
        panel_of_sizes(
            all,
            "Messages of many sizes (figure 5)",
            "ms for a message",
            |_, per_second| 1000.0 / per_second,
        ),
        panel_of_sizes(
            all,
            "Messages of many sizes (figure 6)",
            "MB a second",
            |bytes, per_second| bytes as f64 * per_second / 1e6,
        ),
    ];
    Figure {
        title: "Mail: Barepost, and Postfix with Dovecot in a Linux guest".into(),
        caption: "The same QEMU (TCG), the same card on a tap, one core each, in one run; a connection for each message; 250 only after a flush. After figures 2 to 6 and 12 of the email server \
                  paper, whose server was 1.99, 9.46 and 2.95 times as fast as the best of its peers with 1, 10 and 100 threads, and had 4.35 times the throughput of the best peer with 2 MB.",
        panels: many
            .chain(sizes)
            .chain([panel_of_steps("The steps of a message (figure 12)", &all.steps)])
            .collect(),
    }
}

fn panel_of_many(all: &All, sessions: u32) -> Panel {
    let at_once =
        if sessions == 1 { "One session".into() } else { format!("{sessions} sessions at once") };
    let points = |side| {
        let many = all.many.iter().filter(|many| many.side == side && many.sessions == sessions);
        many.map(|many| (f64::from(many.messages), many.seconds)).collect()
    };
    let figure = 2 + SESSIONS.iter().position(|one| *one == sessions).unwrap_or_default();
    Panel {
        title: format!("{at_once} (figure {figure})"),
        x: Axis::logarithmic("messages of 1 KB"),
        y: Axis::logarithmic("seconds"),
        series: series(Shape::Line, points),
    }
}

fn panel_of_sizes(all: &All, title: &str, y: &str, value: fn(usize, f64) -> f64) -> Panel {
    let points = |side| {
        let cases = all
            .cases
            .iter()
            .filter(|case| case.load.sessions == SIZES_SESSIONS && !case.load.is_kept);
        let point = |case: &Case| {
            let outcome = if side == Side::Ours { case.ours } else { case.peers };
            let bytes = case.load.bytes;
            ((bytes / KIB) as f64, value(bytes, outcome.per_second))
        };
        cases.map(point).collect()
    };
    Panel {
        title: title.into(),
        x: sizes_axis(),
        y: Axis::logarithmic(y),
        series: series(Shape::Line, points),
    }
}

/// The time that each server needs for each step. The labels are short names of [`STEPS`].
pub(super) fn panel_of_steps(title: &str, steps: &[Timing; 2]) -> Panel {
    const NAMES: [&str; STEPS.len()] =
        ["SYN", "hello", "EHLO", "MAIL", "RCPT", "DATA", "message", "QUIT", "all"];
    let [ours, peers] = steps;
    let points = |side| {
        let timing = if side == Side::Ours { ours } else { peers };
        timing.milliseconds.iter().enumerate().map(|(step, ms)| (step as f64, *ms)).collect()
    };
    Panel {
        title: title.into(),
        x: Axis::names("from the client's command to the reply", NAMES.map(str::to_string).into()),
        y: Axis::logarithmic("ms"),
        series: series(Shape::Bars, points),
    }
}

/// The sizes of messages.
pub(super) fn sizes_axis() -> Axis {
    Axis::logarithmic("KB of a message")
}

/// The series of both servers.
pub(super) fn series(shape: Shape, points: impl Fn(Side) -> Vec<(f64, f64)>) -> Vec<Series> {
    let one = |(name, tone, side): (&str, Tone, Side)| Series {
        name: name.into(),
        tone,
        shape,
        points: points(side),
    };
    NAMES.into_iter().map(one).collect()
}
