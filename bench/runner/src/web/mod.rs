//! Web servers side by side: our image, and nginx in a Linux guest, in the same QEMU version with
//! the same flags and the same card.
//!
//! Both guests run at the same time. Each has its own tap interface, and sleeps while it has no
//! work. Each load is put on each server in turn, several times. Rates and times come from the best
//! round. Counts are medians. nginx serves with `sendfile` on one port, and without `sendfile` on
//! another.

mod alone;
mod draw;
mod load;
mod pace;
mod parts;

use super::beside::{Beside, Side, SiteFile};
use super::network::{enter, widen};
use super::profile::Profiler;
use super::report::{Report, Row};
use super::statistics::median;
use host::{Failure, Repository, Stop, remark};

pub(super) use alone::run_only;
use load::{Generator, Load, Measured, Outcome, Target};
use pace::Paced;

const SENDFILE: &str = "nginx, sendfile on";
const PLAIN: &str = "nginx, sendfile off";
/// The port where nginx serves without `sendfile`.
const PLAIN_PORT: u16 = 81;

const SMALL: &str = "4k.bin";
const LARGE: &str = "10m.bin";
const FILES: [SiteFile; 2] = [(SMALL, 4 << 10), (LARGE, 10 << 20)];
const CONNECTIONS: [u32; 4] = [1, 16, 100, 1_000];
const LARGE_CONNECTIONS: [u32; 2] = [1, 16];

/// The required multiple of the peer's requests a second.
const TARGET_TIMES: f64 = 10.0;
/// The most guest instructions for a request with its own connection.
const AIM_CLOSES: f64 = 10_000.0;
/// The most guest instructions for a request on a kept connection.
const AIM_KEPT: f64 = 3_000.0;

const ROUNDS: usize = 3;

/// The results of a load at ours, at nginx with `sendfile`, and at nginx without.
struct Case {
    load: Load,
    outcomes: [Outcome; 3],
}

struct Tools {
    beside: Beside,
    generator: Generator,
    profiler: Profiler,
}

pub(super) fn run(repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    let tools = Tools::get(repository, stop)?;
    let machine = format!("{}; wrk with one thread", tools.beside.machine());
    let stop_of_thread = stop.clone();
    // The measurement runs in a separate thread, because the thread enters a new network namespace
    // and cannot leave it. The programs that the thread starts end with the thread (`host::hold`).
    let measuring =
        std::thread::spawn(move || enter().and_then(|()| measure(&tools, &stop_of_thread)));
    let (cases, paced) = measuring.join().map_err(|_| Failure::broke("the bench panicked"))??;
    Ok(Report {
        machine,
        rows: cases.iter().flat_map(rows).chain(paced.rows()).collect(),
        note: "For requests and bytes a second, higher is better; for all else, lower. Where a row has one figure of nginx, it is the figure of the faster configuration. Rates \
               and times are from the best of three rounds, counts are medians. Instructions are counted in all rounds. Instructions with 1,000 kept connections include opening them. \
               In the rows at 70 %, h2load sends requests at fixed times. Each server gets 70 % of its own highest rate with the same number of connections.",
        figure: Some(draw::figure(&cases)),
    })
}

impl Tools {
    fn get(repository: &Repository, stop: &Stop) -> Result<Tools, Failure> {
        let beside = Beside::make(repository, "web", &FILES, stop)?;
        let generator = Generator::get(&repository.target("bench"), stop)?;
        Ok(Tools { beside, generator, profiler: Profiler::new(repository, "web")? })
    }
}

fn measure(tools: &Tools, stop: &Stop) -> Result<(Vec<Case>, Paced), Failure> {
    widen()?;
    let beside = &tools.beside;
    // The guests run until these values are dropped.
    let _our_guest = beside.boot(Side::Ours, &[80], stop)?;
    let _peer_guest = beside.boot(Side::Peer, &[80, PLAIN_PORT], stop)?;
    let (our_idle, peer_idle) =
        (load::idle(beside.counters(Side::Ours))?, load::idle(beside.counters(Side::Peer))?);
    let target = |side: Side, port: u16, idle| Target {
        url: format!("http://{}:{port}", side.guest()),
        interface: side.interface(),
        counters: beside.counters(side),
        idle,
    };
    let targets = [
        target(Side::Ours, 80, our_idle),
        target(Side::Peer, 80, peer_idle),
        target(Side::Peer, PLAIN_PORT, peer_idle),
    ];
    let mut cases = Vec::new();
    for load in loads() {
        let case = Case { load, outcomes: by_turns(tools, load, &targets, stop)? };
        let rates = case.outcomes.map(|outcome| {
            format!(
                "{:.0} ({:.0} instructions, {} errors)",
                outcome.requests_per_second, outcome.instructions, outcome.errors
            )
        });
        remark(format_args!("{}: {} requests/s", name(case.load), rates.join(" beside ")));
        cases.push(case);
    }
    let paced = pace::measure(&tools.generator, &cases, &targets, &beside.folder, stop)?;
    Ok((cases, paced))
}

fn loads() -> impl Iterator<Item = Load> {
    let small = [true, false].into_iter().flat_map(|closes| {
        CONNECTIONS.map(|connections| Load { file: SMALL, connections, closes })
    });
    small.chain(LARGE_CONNECTIONS.map(|connections| Load {
        file: LARGE,
        connections,
        closes: false,
    }))
}

/// The summary of several rounds. In each round every target has its turn. Ours also gets a
/// profile.
fn by_turns(
    tools: &Tools,
    load: Load,
    targets: &[Target<'_>; 3],
    stop: &Stop,
) -> Result<[Outcome; 3], Failure> {
    let mut rounds = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (target, outcomes) in targets.iter().zip(&mut rounds) {
            let measured = tools.generator.put(load, target, stop)?;
            outcomes.push(measured.outcome);
            if target.interface == Side::Ours.interface() {
                write_profile(&tools.profiler, load, &measured)?;
            }
        }
    }
    Ok(rounds.map(|outcomes| summary(&outcomes)))
}

/// Rates and times come from the best round, because other load on the host only makes them worse.
/// Counts are medians.
fn summary(outcomes: &[Outcome]) -> Outcome {
    let best = |figure: fn(&Outcome) -> f64| outcomes.iter().map(figure).fold(f64::NAN, f64::max);
    let least = |figure: fn(&Outcome) -> f64| outcomes.iter().map(figure).fold(f64::NAN, f64::min);
    let middle = |figure: fn(&Outcome) -> f64| median(outcomes.iter().map(figure).collect());
    Outcome {
        requests_per_second: best(|outcome| outcome.requests_per_second),
        bytes_per_second: best(|outcome| outcome.bytes_per_second),
        p50_ms: least(|outcome| outcome.p50_ms),
        p99_ms: least(|outcome| outcome.p99_ms),
        instructions: middle(|outcome| outcome.instructions),
        packets: middle(|outcome| outcome.packets),
        errors: outcomes.iter().map(|outcome| outcome.errors).sum(),
    }
}

/// Writes the profile of a round. The profile of the last round remains.
fn write_profile(profiler: &Profiler, load: Load, measured: &Measured) -> Result<(), Failure> {
    if measured.requests == 0.0 {
        return Err(Failure::broke("our guest answers nothing"));
    }
    let Load { file, connections, closes } = load;
    let how = if closes { "closes" } else { "keeps" };
    profiler.write(
        &format!("{file}-{how}-{connections}"),
        &measured.executed,
        measured.requests as u32,
    )
}

fn name(load: Load) -> String {
    let Load { file, connections, closes } = load;
    let how = if closes { "a connection for each request" } else { "kept connections" };
    format!("{file}, {how}, {connections} at once")
}

fn rows(case: &Case) -> Vec<Row> {
    let [ours, sendfile, plain] = &case.outcomes;
    let row = |unit, figure: fn(&Outcome) -> f64| {
        Row::alone(format!("{}: {unit}", name(case.load)), unit, figure(ours))
    };
    if case.load.file == LARGE {
        let speed = |outcome: &Outcome| outcome.bytes_per_second / 1e6;
        return [(SENDFILE, sendfile), (PLAIN, plain)]
            .map(|(name, peer)| {
                row("MB/s", |outcome| outcome.bytes_per_second / 1e6).ahead_of(
                    name,
                    speed(peer),
                    Some(1.0),
                )
            })
            .into();
    }
    let (name, peer) = if sendfile.requests_per_second > plain.requests_per_second {
        (SENDFILE, sendfile)
    } else {
        (PLAIN, plain)
    };
    let aim = if case.load.closes { AIM_CLOSES } else { AIM_KEPT };
    vec![
        row("requests/s", |outcome| outcome.requests_per_second).ahead_of(
            SENDFILE,
            sendfile.requests_per_second,
            Some(TARGET_TIMES),
        ),
        row("requests/s", |outcome| outcome.requests_per_second).ahead_of(
            PLAIN,
            plain.requests_per_second,
            Some(TARGET_TIMES),
        ),
        row("ms, p50", |outcome| outcome.p50_ms).beside(name, peer.p50_ms, None),
        row("ms, p99", |outcome| outcome.p99_ms).beside(name, peer.p99_ms, None),
        row("guest instructions", |outcome| outcome.instructions).beside(
            name,
            peer.instructions,
            Some(aim),
        ),
        row("packets", |outcome| outcome.packets).beside(name, peer.packets, None),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_has_best_rates_and_times_and_median_counts() {
        let turn = |rate: f64, p99_ms: f64, instructions: f64| Outcome {
            requests_per_second: rate,
            bytes_per_second: rate,
            p50_ms: p99_ms,
            p99_ms,
            instructions,
            packets: 8.0,
            errors: 1.0,
        };
        let summary =
            summary(&[turn(100.0, 9.0, 11.0), turn(300.0, 3.0, 10.0), turn(200.0, 5.0, 99.0)]);
        assert_eq!((summary.requests_per_second, summary.p99_ms), (300.0, 3.0));
        assert_eq!((summary.instructions, summary.packets, summary.errors), (11.0, 8.0, 3.0));
    }
}
