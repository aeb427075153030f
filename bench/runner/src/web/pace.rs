//! Latency below saturation: requests at a steady rate of seven tenths of the server's own maximum.
//!
//! `wrk` sends a request as soon as the last response arrives. So its latencies are the latencies
//! of a server at saturation. Here `h2load` sends requests at fixed times. It uses so many
//! connections that hardly any is still busy when its next request is due. The connections begin
//! one after the other, so they do not all send at once.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use host::{Failure, Stop, hold, remark};

use super::load::{Generator, Load, Target};
use super::{Case, PLAIN, ROUNDS, SENDFILE, SMALL};
use crate::report::Row;
use crate::workplace::refuse_if_stopped;

/// The rate of the requests, as a part of the server's maximum.
const PART: f64 = 0.7;
const CONNECTIONS: u32 = 100;
/// The approximate time for which requests are sent.
const SPAN_S: u32 = 3;
/// The time after which all requests are certainly finished.
const SETTLE: Duration = Duration::from_millis(300);

/// The result.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Outcome {
    requests_per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// Our server, and the faster configuration of the peer.
pub(super) struct Paced {
    ours: Outcome,
    peer_name: &'static str,
    peer: Outcome,
}

/// Sends requests to each server in turn, several times, at the server's own rate. `folder`: for
/// the log of `h2load`. The best turn counts, because other load on the host only makes times
/// longer.
pub(super) fn measure(
    generator: &Generator,
    cases: &[Case],
    targets: &[Target<'_>; 3],
    folder: &Path,
    stop: &Stop,
) -> Result<Paced, Failure> {
    let is_full =
        |load: Load| load.file == SMALL && load.connections == CONNECTIONS && !load.closes;
    let full = cases.iter().find(|case| is_full(case.load));
    let most = full.map(|case| case.outcomes.map(|outcome| outcome.requests_per_second));
    let [our_most, sendfile, plain] =
        most.ok_or_else(|| Failure::broke("nothing says what the most is"))?;
    let [our_target, sendfile_target, plain_target] = targets;
    let (peer_name, peer_most, peer_target) = if sendfile > plain {
        (SENDFILE, sendfile, sendfile_target)
    } else {
        (PLAIN, plain, plain_target)
    };
    let (mut ours, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        refuse_if_stopped(stop)?;
        ours.push(pace(generator, our_target, our_most * PART, folder)?);
        peers.push(pace(generator, peer_target, peer_most * PART, folder)?);
    }
    let paced = Paced { ours: best(&ours), peer_name, peer: best(&peers) };
    remark(format_args!(
        "at seven tenths: p99 {:.2} ms beside {:.2} ms",
        paced.ours.p99_ms, paced.peer.p99_ms
    ));
    Ok(paced)
}

impl Paced {
    pub(super) fn rows(&self) -> Vec<Row> {
        let row = |unit: &'static str, ours| {
            let case = format!(
                "{SMALL}, kept connections, {CONNECTIONS} at once, at 70 % of its own most: {unit}"
            );
            Row::alone(case, unit, ours)
        };
        let Paced { ours, peer_name, peer } = self;
        vec![
            row("requests/s", ours.requests_per_second).ahead_of(
                peer_name,
                peer.requests_per_second,
                None,
            ),
            row("ms, p50", ours.p50_ms).beside(peer_name, peer.p50_ms, None),
            row("ms, p99", ours.p99_ms).beside(peer_name, peer.p99_ms, Some(peer.p99_ms)),
        ]
    }
}

fn best(outcomes: &[Outcome]) -> Outcome {
    let least = |one: &Outcome, other: &Outcome| one.p99_ms.total_cmp(&other.p99_ms);
    let nothing = Outcome { requests_per_second: f64::NAN, p50_ms: f64::NAN, p99_ms: f64::NAN };
    outcomes.iter().copied().min_by(least).unwrap_or(nothing)
}

/// Sends this many requests a second to `target`.
fn pace(
    generator: &Generator,
    target: &Target<'_>,
    per_second: f64,
    folder: &Path,
) -> Result<Outcome, Failure> {
    let doing = "running h2load";
    let log = folder.join("paced.log");
    // h2load appends to an existing file.
    let _ = std::fs::remove_file(&log);
    let each = per_second / f64::from(CONNECTIONS);
    let mut command = hold::command(&generator.h2load);
    command.args(["--h1", "-t1", &format!("-c{CONNECTIONS}"), "-r1", "--rate-period=1ms"]);
    command.args([format!("-n{:.0}", per_second * f64::from(SPAN_S)), format!("--rps={each:.3}")]);
    command.arg(format!("--log-file={}", log.display())).arg(format!("{}/{SMALL}", target.url));
    let output =
        command.stdin(Stdio::null()).stderr(Stdio::piped()).output().map_err(Failure::io(doing))?;
    let text =
        std::fs::read_to_string(&log).map_err(Failure::io("reading what h2load wrote down"))?;
    std::thread::sleep(SETTLE);
    let printed = String::from_utf8_lossy(&output.stdout);
    outcome(&text).ok_or_else(|| Failure::broke(format_args!("h2load said\n{printed}")))
}

/// Parses `log`, which has a line for each request: its start in microseconds, its status, and its
/// duration in microseconds. None unless every request got a page.
fn outcome(log: &str) -> Option<Outcome> {
    let (mut took_ms, mut starts): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for line in log.lines() {
        let mut fields = line.split('\t');
        starts.push(fields.next()?.parse().ok()?);
        if fields.next()? != "200" {
            return None;
        }
        took_ms.push(fields.next()?.parse::<f64>().ok()? / 1e3);
    }
    took_ms.sort_by(f64::total_cmp);
    starts.sort_by(f64::total_cmp);
    let part = |part: f64| took_ms.get((took_ms.len() as f64 * part) as usize).copied();
    let requests_per_second = starts.len() as f64 * 1e6 / (starts.last()? - starts.first()?);
    Some(Outcome { requests_per_second, p50_ms: part(0.5)?, p99_ms: part(0.99)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_h2load_is_parsed_and_must_contain_only_pages() {
        let line = |start: u64, status: u32, micros: u64| {
            format!("{}\t{status}\t{micros}\n", 1_763_786_000_000_000 + start * 10_000)
        };
        let log: String = (1..=301).map(|request| line(request, 200, request * 1000)).collect();
        let expected = Outcome { requests_per_second: 301.0 / 3.0, p50_ms: 151.0, p99_ms: 298.0 };
        assert_eq!(outcome(&log), Some(expected));
        assert_eq!(outcome(&(log + &line(302, 503, 1))), None);
        assert_eq!(outcome(""), None);
    }

    #[test]
    fn the_best_turn_is_the_one_with_the_least_p99() {
        let turn = |p99_ms: f64| Outcome { requests_per_second: 100.0, p50_ms: 1.0, p99_ms };
        assert_eq!(best(&[turn(5.0), turn(3.0), turn(4.0)]), turn(3.0));
    }
}
