//! `multicore-web`: the work of each of four cores under a load of pages, for the paper of the
//! multi-core web server.
//!
//! There are three machines. In two of them the first core receives and sends frames for all cores,
//! as in the paper. It also serves pages, or it only handles the card (the two cases of the paper's
//! figure 11). In the third machine each core has a receive queue and a transmit queue.

mod draw;
mod measure;
mod parked;
mod split;
mod wire;

use super::at_tap::Queues;
use super::network::{enter, widen};
use super::report::{Report, Row};
use super::workplace::refuse_if_stopped;
use host::{Failure, Repository, Stop, remark};

use measure::{Point, Tools};

const CORES: u32 = 4;
/// Offered loads, in requests a second.
const LOADS: [u32; 6] = [500, 1_000, 2_000, 4_000, 6_000, 8_000];

/// The load at which the instructions for a request are reported.
const COUNTED: u32 = 2_000;
/// A load is left out if less than this part of its requests begins in time. Such a load is too
/// much for the machine or its host.
const BEGUN_PART_MIN: f64 = 0.75;

/// The paper's highest rate, in requests a second.
const PAPER_PER_SECOND: f64 = 8_400.0;
/// The paper's highest busy time of a first core that serves no pages, in percent.
const PAPER_BUSY: f64 = 92.0;
/// The paper's highest number of simultaneous requests.
const PAPER_AT_ONCE: f64 = 100.0;
/// The clock rate of the paper's processors.
const PAPER_CLOCKS_PER_SECOND: f64 = 3.4e9;

/// The first core's work for the connections of the other cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// The first core has the card's only queue, and serves pages like the others.
    Serves,
    /// The first core has the card's only queue, and serves no pages.
    OnlyCard,
    /// None, because each core has its own queue.
    QueueEach,
}

const WAYS: [Way; 3] = [Way::Serves, Way::OnlyCard, Way::QueueEach];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Serves => "one queue, first core serves too",
            Way::OnlyCard => "one queue, first core only the card",
            Way::QueueEach => "a queue for each core",
        }
    }

    fn queues(self) -> Queues {
        if self == Way::QueueEach { Queues::Each } else { Queues::One }
    }

    /// The label in the figure. The figure's caption says more.
    fn label(self) -> &'static str {
        match self {
            Way::Serves => "serves too",
            Way::OnlyCard => "only the card",
            Way::QueueEach => "a queue each",
        }
    }
}

pub(super) fn run(repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    // The measurement runs in a separate thread, because the thread enters a new network namespace
    // and cannot leave it. The programs that the thread starts end with the thread (`host::hold`).
    let measuring = std::thread::scope(|scope| scope.spawn(|| measure(repository, stop)).join());
    let points = measuring.map_err(|_| Failure::broke("the bench panicked"))??;
    Ok(Report {
        machine: format!(
            "QEMU, TCG, q35, {CORES} cores, virtio-net on a tap; h2load with one thread, a page of 4 KB and a connection for each request"
        ),
        rows: points.iter().flat_map(rows).collect(),
        note: "For requests a second, higher is better; for all else, lower. The percentages of 3.4 GHz are counted instructions, at an instruction a clock. A core counts as \
               busy, emulated, while the host runs its thread, with the plugin counting. If the host has fewer processors than guest and clients, no core gets all of its time. \
               Times are measured at the tap, in the better of two turns. The time of a frame between cores is from the turn that steers it to the turn that takes it.",
        figure: Some(draw::figure(&points)),
    })
}

fn measure(repository: &Repository, stop: &Stop) -> Result<Vec<Point>, Failure> {
    // Fetch the tools before the thread enters its network namespace, which has no connection to
    // the Internet.
    let tools = Tools::get(repository, stop)?;
    enter()?;
    widen()?;
    let mut points = Vec::new();
    for way in WAYS {
        for asked in LOADS {
            refuse_if_stopped(stop)?;
            let point = tools.measure(repository, way, asked)?;
            remark(format_args!(
                "{}, {asked}/s: {:.0}/s, cores busy {:.0?} %, {:.0} served by the first, {} at once, first response {:.2} ms",
                way.name(),
                point.seen.requests_per_second,
                point.busy,
                point.first_served,
                point.seen.most_at_once,
                point.seen.first_response.mean_ms,
            ));
            // A load that did not reach the machine tells nothing about the machine.
            if asked > COUNTED && point.seen.requests_per_second < f64::from(asked) * BEGUN_PART_MIN
            {
                break;
            }
            points.push(point);
        }
    }
    Ok(points)
}

fn of_first(of_cores: &[f64]) -> f64 {
    of_cores.first().copied().unwrap_or(f64::NAN)
}

fn mean_of_others(of_cores: &[f64]) -> f64 {
    of_cores.iter().skip(1).sum::<f64>() / (of_cores.len() as f64 - 1.0)
}

fn rows(point: &Point) -> Vec<Row> {
    let seen = &point.seen;
    let row = |what: &str, unit, ours| {
        Row::alone(format!("{}, {}/s: {what}", point.way.name(), point.asked), unit, ours)
    };
    let mut rows = vec![
        row("came to", "requests/s", seen.requests_per_second),
        row("first core", "% of 3.4 GHz, an instruction a clock", of_first(&point.clocked())),
        row(
            "other cores",
            "% of 3.4 GHz, an instruction a clock",
            mean_of_others(&point.clocked()),
        ),
        row("first core, emulated", "% of the time", of_first(&point.busy)),
        row("other cores, emulated", "% of the time", mean_of_others(&point.busy)),
        row("served by the first core", "% of all", point.first_served),
        row("stay in the list, mean", "ms", seen.stay.mean_ms),
        row("stay in the list, most", "ms", seen.stay.most_ms),
        row("most at once", "requests", seen.most_at_once as f64),
        row("first response", "ms", seen.first_response.mean_ms),
        row("connection", "ms", seen.connection.mean_ms),
    ];
    if let Some((mean, most)) = point.passed {
        rows.push(row("frames on their way between cores, mean", "µs", mean));
        rows.push(row("frames on their way between cores, most", "µs", most));
    }
    if point.asked == COUNTED {
        rows.extend(rows_counted(point));
    }
    rows
}

/// The instructions of the cores for a request.
fn rows_counted(point: &Point) -> Vec<Row> {
    let row = |what: &str, ours| {
        Row::alone(format!("{}: {what}", point.way.name()), "guest instructions", ours)
    };
    let parts = point
        .split
        .parts()
        .map(|(part, count)| row(&format!("first core, for a request: {part}"), count));
    let whole = [
        row("first core, for a request", of_first(&point.executed)),
        row("another core, for a request", mean_of_others(&point.executed)),
        row("all cores, for a request", point.executed.iter().sum()),
    ];
    whole.into_iter().chain(parts).collect()
}
