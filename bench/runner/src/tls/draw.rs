//! The figure: transactions with and without TLS, beside the paper's results.

use super::guests::{Found, Taken};
use super::{Channel, of, steps};
use crate::beside::Side;
use crate::plot::{Axis, Figure, Panel, Series, Shape, Tone};

/// The server, the channel, the label and the colour.
const KINDS: [(Side, Channel, &str, Tone); 4] = [
    (Side::Ours, Channel::Tls, "Barepost, TLS", Tone::Ours),
    (Side::Ours, Channel::Plain, "in the clear", Tone::Second),
    (Side::Peer, Channel::Tls, "nginx, TLS", Tone::Other),
    (Side::Peer, Channel::Plain, "in the clear", Tone::Fourth),
];

/// The least multiple by which TLS raises the cost of a retrieved message in the paper.
const PAPER_RETRIEVED: f64 = 3.0;
/// The multiple by which TLS raises the cost of a composed message in the paper.
const PAPER_COMPOSED: f64 = 2.0;
/// The smallest size of a composed message with that multiple.
const PAPER_FROM_KB: f64 = 10.0;
/// The largest message size of the paper.
const PAPER_TO_KB: f64 = 16.0;

/// Selects the costs by size.
type CostsBySize = fn(&Found) -> &Vec<(usize, Taken)>;

pub(super) fn figure(found: &[Found]) -> Figure {
    let instructions = |taken: &Taken| taken.instructions;
    Figure {
        title:
            "A transaction with and without TLS: Barepost, and nginx with OpenSSL in a Linux guest"
                .into(),
        caption: "Beside the TLS webmail paper’s figures 5 and 6 (above: the steps of a GET and a POST), 11 and 13 (GET by size), 10 and 12 (POST by size) and 9 (by number); \
                  its compose, inbox and retrieval belong to a webmail and are left out. Guest instructions, counted; ms are the client’s, in QEMU (TCG). TLS 1.3, ECDSA P-256, \
                  AES-128-GCM on both. The paper’s servers had RSA, CBC and SHA-1.",
        panels: vec![
            Panel {
                title: "Steps of a transaction, a page and a body of 4 KB".into(),
                x: Axis::names("step", names()),
                y: Axis::logarithmic("guest instructions"),
                series: bars(found, instructions),
            },
            Panel {
                title: "The same in time".into(),
                x: Axis::names("step", names()),
                y: Axis::logarithmic("ms at the client"),
                series: bars(found, |taken| taken.ms),
            },
            by_size("GET by size, kept connection", found, |found| &found.gets),
            by_size("POST by size, kept connection", found, |found| &found.posts),
            Panel {
                title: "A whole connection, by the number of pages".into(),
                x: Axis::linear("pages of 4 KB"),
                y: Axis::logarithmic("guest instructions"),
                series: lines(found, |found| {
                    found
                        .numbers
                        .iter()
                        .map(|(number, taken)| (*number as f64, taken.instructions))
                        .collect()
                }),
            },
            Panel {
                title: "TLS against the clear".into(),
                x: Axis::linear("KB"),
                y: Axis::linear("times as much"),
                series: ratios(found),
            },
        ],
    }
}

const NAMES: [&str; 6] =
    ["connection", "full handshake", "resumed handshake", "GET", "POST", "end"];

fn names() -> Vec<String> {
    ["connect", "full", "resumed", "GET", "POST", "end"].map(str::to_string).into()
}

fn bars(found: &[Found], figure: fn(&Taken) -> f64) -> Vec<Series> {
    let series = KINDS.into_iter().filter_map(|(side, channel, name, tone)| {
        let steps = steps(&of(found, side, channel)?.steps);
        let points = steps.iter().filter_map(|(name, taken)| {
            Some((NAMES.iter().position(|known| known == name)? as f64, figure(taken)))
        });
        Some(Series { name: name.into(), tone, shape: Shape::Bars, points: drawable(points) })
    });
    series.collect()
}

fn by_size(title: &str, found: &[Found], costs: CostsBySize) -> Panel {
    Panel {
        title: title.into(),
        x: Axis::linear("KB"),
        y: Axis::logarithmic("guest instructions"),
        series: lines(found, |found| {
            costs(found)
                .iter()
                .map(|(bytes, taken)| (kilobytes(*bytes), taken.instructions))
                .collect()
        }),
    }
}

fn lines(found: &[Found], points: impl Fn(&Found) -> Vec<(f64, f64)>) -> Vec<Series> {
    let series = KINDS.into_iter().filter_map(|(side, channel, name, tone)| {
        let points = drawable(points(of(found, side, channel)?).into_iter());
        Some(Series { name: name.into(), tone, shape: Shape::Line, points })
    });
    series.collect()
}

/// The cost with TLS divided by the cost without TLS.
fn ratios(found: &[Found]) -> Vec<Series> {
    let mut all = Vec::new();
    let sizes: [(&str, CostsBySize); 2] =
        [("GET", |found| &found.gets), ("POST", |found| &found.posts)];
    for (side, server, tones) in [
        (Side::Ours, "Barepost", [Tone::Ours, Tone::Second]),
        (Side::Peer, "nginx", [Tone::Other, Tone::Fourth]),
    ] {
        let (Some(tls), Some(plain)) =
            (of(found, side, Channel::Tls), of(found, side, Channel::Plain))
        else {
            continue;
        };
        for ((verb, costs), tone) in sizes.into_iter().zip(tones) {
            let points = costs(tls).iter().zip(costs(plain));
            let points = points.map(|((bytes, tls), (_, plain))| {
                (kilobytes(*bytes), tls.instructions / plain.instructions)
            });
            all.push(Series {
                name: format!("{server}, {verb}"),
                tone,
                shape: Shape::Line,
                points: drawable(points),
            });
        }
    }
    for (name, from, times) in [
        ("paper: retrieved, at least", 1.0, PAPER_RETRIEVED),
        ("composed", PAPER_FROM_KB, PAPER_COMPOSED),
    ] {
        let points = vec![(from, times), (PAPER_TO_KB, times)];
        all.push(Series { name: name.into(), tone: Tone::Paper, shape: Shape::Dashes, points });
    }
    all
}

fn kilobytes(bytes: usize) -> f64 {
    bytes as f64 / 1024.0
}

/// The points with values above zero, because the axis is logarithmic.
fn drawable(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    points.filter(|(_, value)| value.is_finite() && *value > 0.0).collect()
}
