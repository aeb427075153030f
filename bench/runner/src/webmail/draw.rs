//! The figure: our webmail and Roundcube, beside the results of the studies. Only results that the
//! studies' text states as numbers are shown.

use super::guests::{Found, Step};
use super::load::{LARGE, Loaded, PAPER_HZ};
use super::target::Taken;
use super::wide::{Far, ROUND_MS, RemoteAction};
use crate::beside::Side;
use crate::plot::{Axis, Figure, Panel, Series, Shape, Tone};

/// Times of an inbox in the studies' texts: the number of messages, and the milliseconds for their
/// own webmail and for other webmails. The first entry is from a LAN, and the second is over TLS.
const PAPER_INBOX: [(usize, f64, f64); 2] = [(6, 0.1, 1.1), (10, 42.0, 6.5 * 42.0)];
/// The times of an inbox in a WAN in the studies' texts: the milliseconds for their own webmail and
/// for other webmails.
const PAPER_WIDE_INBOX: (f64, f64) = (0.392, 230.0);
/// The instructions of the studies' processor in a millisecond, at one instruction a clock.
const PAPER_INSTRUCTIONS_PER_MS: f64 = PAPER_HZ / 1000.0;

pub(super) fn figure(found: &[Found], loaded: &[Loaded], far: &[Far]) -> Figure {
    Figure {
        title: "A webmail: Barepost, and Roundcube in a Linux guest, over TLS".into(),
        caption: "Beside the webmail study’s figures 1, 2 and 4 (steps), 3, 6 and 5 (sending and reading by size), 7 to 12 (load), 13 to 18 (a wide network), and the TLS paper’s 7 to 13. \
                  Guest instructions are counted in QEMU (TCG) and hold for any host; rates and times are the emulator’s, both guests in one run. Crosses of the papers: times of \
                  theirs and of the others, taken as instructions of their 3.2 GHz at one a clock.",
        panels: vec![
            steps(found),
            inboxes(found),
            by_size("A message is read, by the bytes of its text", found, read),
            by_size("A message is sent, by the bytes of its text", found, sent),
            by_size("A message with a file is sent, by its bytes", found, sent_with_file),
            by_size("That file is fetched", found, fetched),
            of_tls("What TLS takes of reading a message", found, read),
            of_tls("What TLS takes of sending one", found, sent),
            under_load(
                "Users who ask 100 times a second each",
                "answers a second",
                loaded,
                |one| one.per_second,
            ),
            under_load("How long they wait", "ms, median", loaded, |one| one.p50_ms),
            under_load("How busy the processor is", "% of the emulator’s", loaded, |one| {
                one.busy
            }),
            stressed(found, loaded),
            wide_steps(far),
            wide_by_size("A message is read", far, |action| {
                if let RemoteAction::Read(bytes) = action { Some(bytes) } else { None }
            }),
            wide_by_size("A message is sent", far, far_sent),
            throughput(found, far),
        ],
    }
}

fn read(step: Step) -> Option<usize> {
    if let Step::Read(bytes) = step { Some(bytes) } else { None }
}

fn sent(step: Step) -> Option<usize> {
    if let Step::Send(bytes) = step { Some(bytes) } else { None }
}

fn sent_with_file(step: Step) -> Option<usize> {
    if let Step::SendFile(bytes) = step { Some(bytes) } else { None }
}

fn fetched(step: Step) -> Option<usize> {
    if let Step::FetchFile(bytes) = step { Some(bytes) } else { None }
}

fn far_sent(action: RemoteAction) -> Option<usize> {
    if let RemoteAction::Send(bytes) = action { Some(bytes) } else { None }
}

const SIDES: [(Side, &str, Tone); 2] =
    [(Side::Ours, "Barepost", Tone::Ours), (Side::Peer, "Roundcube", Tone::Other)];

fn taken(found: &Found, side: Side) -> &Taken {
    if side == Side::Ours { &found.ours } else { &found.peers }
}

fn series(shape: Shape, points: impl Fn(Side) -> Vec<(f64, f64)>) -> Vec<Series> {
    let one = |(side, name, tone): (Side, &str, Tone)| {
        let drawable =
            points(side).into_iter().filter(|(_, value)| value.is_finite() && *value > 0.0);
        Series { name: name.into(), tone, shape, points: drawable.collect() }
    };
    SIDES.map(one).into()
}

fn steps(found: &[Found]) -> Panel {
    let steps = [
        Step::LoginPage,
        Step::FirstLogin,
        Step::Login,
        Step::Inbox(10),
        Step::Read(1_000),
        Step::Send(1_000),
    ];
    let names = ["login page", "first login", "login", "inbox", "read", "send"];
    Panel {
        title: "Steps, with messages of 1,000 bytes".into(),
        x: Axis::names("step", names.map(str::to_string).into()),
        y: Axis::logarithmic("guest instructions"),
        series: series(Shape::Bars, |side| {
            let of = |step| {
                found.iter().find(|one| one.step == step).map(|one| taken(one, side).instructions)
            };
            steps
                .iter()
                .enumerate()
                .filter_map(|(index, step)| Some((index as f64, of(*step)?)))
                .collect()
        }),
    }
}

fn inboxes(found: &[Found]) -> Panel {
    let of = |side| {
        let points = found.iter().filter_map(|one| match one.step {
            Step::Inbox(messages) => Some((messages as f64, taken(one, side).instructions)),
            _ => None,
        });
        points.collect()
    };
    let mut series = series(Shape::Line, of);
    for (name, tone, ms) in [
        ("paper: theirs", Tone::Paper, PAPER_INBOX.map(|one| one.1)),
        ("others", Tone::Third, PAPER_INBOX.map(|one| one.2)),
    ] {
        let points = PAPER_INBOX
            .iter()
            .zip(ms)
            .map(|((messages, ..), ms)| (*messages as f64, ms * PAPER_INSTRUCTIONS_PER_MS));
        series.push(Series {
            name: name.into(),
            tone,
            shape: Shape::Marks,
            points: points.collect(),
        });
    }
    Panel {
        title: "An inbox, by its messages".into(),
        x: Axis::linear("messages"),
        y: Axis::logarithmic("guest instructions"),
        series,
    }
}

fn by_size(title: &str, found: &[Found], bytes_of: fn(Step) -> Option<usize>) -> Panel {
    Panel {
        title: title.into(),
        x: Axis::linear("KB"),
        y: Axis::logarithmic("guest instructions"),
        series: series(Shape::Line, |side| {
            let point = |one: &Found| {
                Some((bytes_of(one.step)? as f64 / 1000.0, taken(one, side).instructions))
            };
            found.iter().filter_map(point).collect()
        }),
    }
}

fn under_load(title: &str, y: &str, loaded: &[Loaded], figure: fn(&Loaded) -> f64) -> Panel {
    Panel {
        title: title.into(),
        x: Axis::linear("users"),
        y: Axis::logarithmic(y),
        series: series(Shape::Line, |side| {
            let chosen = loaded.iter().filter(|one| one.side == side && !one.load.is_pressing);
            chosen.map(|one| (one.load.users as f64, figure(one))).collect()
        }),
    }
}

/// The instructions with TLS: all of them, and those outside of encryption and decryption.
fn of_tls(title: &str, found: &[Found], bytes_of: fn(Step) -> Option<usize>) -> Panel {
    let line = |name: &str, tone, instructions: fn(&Taken) -> f64| {
        let point =
            |one: &Found| Some((bytes_of(one.step)? as f64 / 1000.0, instructions(&one.ours)));
        Series {
            name: name.into(),
            tone,
            shape: Shape::Line,
            points: found.iter().filter_map(point).collect(),
        }
    };
    Panel {
        title: title.into(),
        x: Axis::linear("KB"),
        y: Axis::logarithmic("guest instructions"),
        series: vec![
            line("Barepost", Tone::Ours, |taken| taken.instructions),
            line("without TLS", Tone::Second, |taken| taken.instructions - taken.for_tls),
        ],
    }
}

/// The time to read and to send a large message: alone, and while ten users send requests at their
/// full rate.
fn stressed(found: &[Found], loaded: &[Loaded]) -> Panel {
    let alone =
        |side, step| found.iter().find(|one| one.step == step).map(|one| taken(one, side).ms);
    let names = ["read", "read, under load", "sent", "sent, under load"];
    Panel {
        title: "A message of 120,000 bytes, alone and beside 10 users".into(),
        x: Axis::names("", names.map(str::to_string).into()),
        y: Axis::logarithmic("ms"),
        series: series(Shape::Bars, |side| {
            let others = loaded.iter().filter(|one| one.side == side).find_map(|one| one.others_ms);
            let [read, sent] = others.map_or([None; 2], |ms| ms.map(Some));
            let ms = [alone(side, Step::Read(LARGE)), read, alone(side, Step::Send(LARGE)), sent];
            ms.iter().enumerate().filter_map(|(index, ms)| Some((index as f64, (*ms)?))).collect()
        }),
    }
}

fn far_ms(far: &Far, side: Side) -> f64 {
    if side == Side::Ours { far.ours } else { far.peers }
}

fn wide_steps(far: &[Far]) -> Panel {
    let is_step = |one: &&Far| {
        matches!(one.action, RemoteAction::LoginPage | RemoteAction::Login | RemoteAction::Inbox(_))
    };
    let names = ["login page", "login", "inbox of 6"];
    let mut series = series(Shape::Bars, |side| {
        let steps = far.iter().filter(is_step).enumerate();
        steps.map(|(index, one)| (index as f64, far_ms(one, side))).collect()
    });
    let (theirs, others) = PAPER_WIDE_INBOX;
    for (name, tone, ms) in
        [("paper’s inbox: theirs", Tone::Paper, theirs), ("others", Tone::Third, others)]
    {
        series.push(Series {
            name: name.into(),
            tone,
            shape: Shape::Marks,
            points: vec![(2.0, ms)],
        });
    }
    let y = Axis::logarithmic("ms");
    Panel {
        title: format!("Steps, {ROUND_MS} ms away"),
        x: Axis::names("step", names.map(str::to_string).into()),
        y,
        series,
    }
}

fn wide_by_size(title: &str, far: &[Far], bytes_of: fn(RemoteAction) -> Option<usize>) -> Panel {
    Panel {
        title: format!("{title}, {ROUND_MS} ms away"),
        x: Axis::linear("KB"),
        y: Axis::logarithmic("ms"),
        series: series(Shape::Line, |side| {
            let point =
                |one: &Far| Some((bytes_of(one.action)? as f64 / 1000.0, far_ms(one, side)));
            far.iter().filter_map(point).collect()
        }),
    }
}

/// The throughput of sending a message, in the local network and over the wide one.
fn throughput(found: &[Found], far: &[Far]) -> Panel {
    let point = |bytes: usize, ms: f64| (bytes as f64 / 1000.0, bytes as f64 / ms);
    let near = |side| {
        found.iter().filter_map(|one| Some(point(sent(one.step)?, taken(one, side).ms))).collect()
    };
    let away = |side| {
        far.iter().filter_map(|one| Some(point(far_sent(one.action)?, far_ms(one, side)))).collect()
    };
    let line =
        |name: &str, tone, points| Series { name: name.into(), tone, shape: Shape::Line, points };
    Panel {
        title: format!("Throughput of sending, near and {ROUND_MS} ms away"),
        x: Axis::linear("KB"),
        y: Axis::logarithmic("KB/s"),
        series: vec![
            line("Barepost", Tone::Ours, near(Side::Ours)),
            line("far", Tone::Second, away(Side::Ours)),
            line("Roundcube", Tone::Other, near(Side::Peer)),
            line("far", Tone::Fourth, away(Side::Peer)),
        ],
    }
}
