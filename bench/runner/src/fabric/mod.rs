//! `fabric`: measures a server and its clients in one process, with only shared memory between
//! them, on all processors of the host.
//!
//! For more cores than the host has, it counts the instructions of each core for a request, in
//! QEMU. The counts give an upper bound for the speed of these cores.

mod counted;
mod draw;

use std::time::Duration;

use host::{Failure, Repository, Stop};

use ::fabric::Load;

use super::report::{Report, Row};
use super::workplace::refuse_if_stopped;
use counted::Counted;

/// The duration of one measurement.
const SPAN: Duration = Duration::from_secs(1);
/// The best of this many measurements counts, because other load on the host only reduces it.
const REPETITIONS: usize = 3;

const LOADS: [(Load, &str, &str); 4] = [
    (Load::Pages, "a page of 4 KB, kept connections", "requests/s"),
    (Load::PagesInNewConnections, "a page of 4 KB, a connection each", "requests/s"),
    (Load::Messages, "a message of 1 KB, kept sessions", "messages/s"),
    (Load::MessagesInNewSessions, "a message of 1 KB, a session each", "messages/s"),
];

/// The results of real cores.
struct Done {
    load: Load,
    cores: u8,
    per_second: f64,
    /// The busy time of the busiest core and of the least busy core, in percent.
    busy: (f64, f64),
}

pub(super) fn run(repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    let done = on_cores(stop)?;
    // The programs that the thread starts end with the thread (`host::hold`).
    let counting =
        std::thread::scope(|scope| scope.spawn(|| counted::count(repository, stop)).join());
    let counted = counting.map_err(|_| Failure::broke("the bench panicked"))??;
    let rows = done
        .iter()
        .flat_map(|one| rows_done(one, &done))
        .chain(counted.iter().flat_map(|one| rows_counted(one, &counted)));
    Ok(Report {
        machine: format!(
            "{} processors: up to {} cores of a server and as many clients; counted: QEMU, TCG, q35, one queue of the tap interface for each core",
            available(),
            ::fabric::cores_max()
        ),
        rows: rows.collect(),
        note: "Rows that begin with “real” are measured: best of three spans of a second, 64 connections a client. Rows that begin with “counted” are \
               guest instructions in QEMU, repeatable on any host; “times one at most” is the resulting upper bound for the speed-up, since cores share only rings.",
        figure: Some(draw::figure(&done, &counted)),
    })
}

fn available() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Measures powers of two from one core on, and the largest possible number of cores.
fn on_cores(stop: &Stop) -> Result<Vec<Done>, Failure> {
    let most = ::fabric::cores_max();
    if most == 0 {
        return Err(Failure::refused(
            "this bench needs two processors: one for a core of the server, one for a client",
        ));
    }
    let mut counts: Vec<u8> = std::iter::successors(Some(1), |cores| Some(cores * 2))
        .take_while(|cores| *cores < most)
        .collect();
    counts.push(most);
    let mut done = Vec::new();
    for cores in counts {
        for (load, ..) in LOADS {
            refuse_if_stopped(stop)?;
            done.push(best(cores, load)?);
        }
    }
    Ok(done)
}

fn best(cores: u8, load: Load) -> Result<Done, Failure> {
    let mut best = Done { load, cores, per_second: 0.0, busy: (0.0, 0.0) };
    for _ in 0..REPETITIONS {
        let measured = ::fabric::measure(cores, load, SPAN).map_err(Failure::broke)?;
        if measured.per_second > best.per_second {
            let busy = (measured.busiest * 100.0, measured.idlest * 100.0);
            best = Done { load, cores, per_second: measured.per_second, busy };
        }
    }
    Ok(best)
}

fn rows_done(done: &Done, all: &[Done]) -> Vec<Row> {
    let Some((_, what, unit)) = LOADS.iter().find(|(load, ..)| *load == done.load) else {
        return Vec::new();
    };
    let case = |which: &str| format!("real, {}: {what}{which}", named(u32::from(done.cores)));
    let rate = Row::alone(case(""), unit, done.per_second);
    let busiest = Row::alone(case(": busiest core"), "% of its time", done.busy.0);
    let Some(one) =
        all.iter().find(|one| one.load == done.load && one.cores == 1).filter(|_| done.cores > 1)
    else {
        return vec![rate, busiest];
    };
    vec![
        rate.ahead_of("as many times one", one.per_second * f64::from(done.cores), None),
        Row::alone(case(": each core"), unit, done.per_second / f64::from(done.cores)),
        busiest,
        Row::alone(case(": idlest core"), "% of its time", done.busy.1),
    ]
}

fn named(cores: u32) -> String {
    if cores == 1 { "1 core".into() } else { format!("{cores} cores") }
}

fn rows_counted(counted: &Counted, all: &[Counted]) -> Vec<Row> {
    let case =
        |which: &str| format!("counted, {}: {}{which}", named(counted.cores), counted.load.name());
    let mut rows = vec![Row::alone(case(""), "guest instructions", counted.in_all())];
    if counted.cores > 1 {
        rows.push(Row::alone(case(": busiest core"), "guest instructions", counted.busiest()));
        let bound = counted.speed_up(all);
        rows.push(Row::alone(case(": times one at most"), "times", bound).ahead_of(
            "as many times one",
            f64::from(counted.cores),
            None,
        ));
    }
    rows
}
