//! `email-wan`: messages over a wide-area network, for the figures of the email server's paper. A
//! wire between the host and both guests simulates the network.
//!
//! The paper's client stood 40 miles and 18 hops away. Here the round trip takes 20 or 50 ms, and
//! one frame in a thousand is lost.

mod draw;

use std::time::Instant;

use host::{Failure, Repository, Stop, packages, remark};

use super::steps::{self, STEPS, Sending, StepCapture, Timing};
use super::{KIB, PEER, SINK, SIZES, readable};
use crate::beside::mailboxes::Account;
use crate::beside::{Beside, More, Side, Target};
use crate::goodput::Wire;
use crate::network::{enter, widen};
use crate::report::{Report, Row};
use crate::workplace::refuse_if_stopped;

/// The round-trip times in milliseconds.
const ROUNDS_MS: [u32; 2] = [20, 50];
/// The fraction of frames that is lost in each direction.
const LOSS: f64 = 0.001;
/// The load of the paper's figures 7 to 9, with as many messages as in the paper.
const MANY: Sending = Sending { clients: 100, messages: 55, bytes: KIB };
/// The load of a single client. It has fewer messages than [`MANY`], because the client sends one
/// after the other, and each message takes several round trips.
const ONE: Sending = Sending { clients: 1, messages: 50, bytes: KIB };
const CLIENTS_OF_SIZES: u32 = 10;
const MESSAGES_OF_SIZES: u32 = 10;
const WARMING: Sending = Sending { clients: 10, messages: 2, bytes: KIB };
/// The messages that are measured step by step: the paper's figures 13 to 15.
const TIMED: [Sending; 3] = [
    Sending { clients: 1, messages: 20, bytes: 8 * KIB },
    Sending { clients: 1, messages: 100, bytes: KIB },
    Sending { clients: 4, messages: 25, bytes: KIB },
];
const PAPER_JAVA: &str = "paper: its server in Java";
const PAPER_MAIL_PRO: &str = "paper: ShareMailPro";

/// Messages a second over a network with a round-trip time of this many milliseconds.
struct Case {
    round_ms: u32,
    sending: Sending,
    ours: f64,
    peers: f64,
}

/// All results.
struct All {
    cases: Vec<Case>,
    steps: Vec<[Timing; 2]>,
}

pub(crate) fn run(repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    let tshark = packages::program("tshark", "tshark", stop)?;
    let wire = Wire::build(repository, stop)?;
    let accounts = [Account { name: SINK.into(), messages: Vec::new() }];
    let beside =
        Beside::make_mail_servers(repository, "email-wan", &accounts, &More::default(), stop)?;
    // The measurement runs in a separate thread, because the thread enters a new network namespace
    // and cannot leave it. The programs that the thread starts end with the thread (`host::hold`).
    let measure = || {
        enter()?;
        widen()?;
        // The guests run until these values are dropped.
        let _ours = beside.boot(Side::Ours, &[25], stop)?;
        let _peers = beside.boot(Side::Peer, &[25], stop)?;
        let targets = [Target::at(&beside, Side::Ours)?, Target::at(&beside, Side::Peer)?];
        targets.iter().try_for_each(|target| WARMING.send(target.side))?;
        [Side::Ours, Side::Peer].into_iter().try_for_each(Side::withdraw)?;
        let (mut cases, mut all_steps) = (Vec::new(), Vec::new());
        for round_ms in ROUNDS_MS {
            let spec = format!("delay={},loss={LOSS}", round_ms / 2);
            // The wires last until the next round-trip time is measured.
            let _wires = (Side::Ours.wire(&wire, &spec)?, Side::Peer.wire(&wire, &spec)?);
            for sending in loads() {
                refuse_if_stopped(stop)?;
                cases.push(case(round_ms, sending, &targets)?);
            }
            if Some(&round_ms) == ROUNDS_MS.first() {
                for sending in TIMED {
                    refuse_if_stopped(stop)?;
                    let capture = |side: Side| {
                        let capture = StepCapture {
                            tshark: &tshark,
                            folder: &beside.folder,
                            interface: &side.near(),
                        };
                        steps::measure(&capture, side, sending)
                    };
                    all_steps.push([capture(Side::Ours)?, capture(Side::Peer)?]);
                }
            }
        }
        Ok(All { cases, steps: all_steps })
    };
    let measuring = std::thread::scope(|scope| scope.spawn(measure).join());
    let all = measuring.map_err(|_| Failure::broke("the bench panicked"))??;
    Ok(Report {
        machine: format!("{}; tests/wire, {LOSS} of all frames lost each way", beside.machine()),
        rows: rows(&all),
        note: "For messages a second and \"times as fast\", higher is better; for all else, lower. A rate counts acknowledged messages, each after a flush; each load was measured once. Steps are as tshark saw them at the client's end of the wire, \
               and include the network delay: from the client's last octet to the answer; the median of all messages, with a round-trip time of 20 ms. The paper's ratios are those of its own machine to its own peers, over the Internet.",
        figure: Some(draw::figure(&all)),
    })
}

/// The loads of the paper: its many messages, its single session, and its message sizes.
fn loads() -> impl Iterator<Item = Sending> {
    let sizes = SIZES.map(|bytes| Sending {
        clients: CLIENTS_OF_SIZES,
        messages: MESSAGES_OF_SIZES,
        bytes,
    });
    [MANY, ONE].into_iter().chain(sizes)
}

fn case(round_ms: u32, sending: Sending, targets: &[Target<'_>; 2]) -> Result<Case, Failure> {
    let put = |target: &Target<'_>| {
        let work = || {
            let began = Instant::now();
            sending.send(target.side).map(|()| began.elapsed())
        };
        Ok::<f64, Failure>(target.count(sending.count(), work)?.per_second)
    };
    let [ours, peers] = targets;
    let (ours, peers) = (put(ours)?, put(peers)?);
    remark(format_args!(
        "{round_ms} ms, {}: {ours:.1} messages/s beside {peers:.1}",
        name(sending)
    ));
    Ok(Case { round_ms, sending, ours, peers })
}

fn rows(all: &All) -> Vec<Row> {
    let cases = all.cases.iter().map(|case| {
        let name = format!("{} ms: {}", case.round_ms, name(case.sending));
        Row::alone(name, "messages/s", case.ours).ahead_of(PEER, case.peers, None)
    });
    let steps = TIMED.iter().zip(&all.steps).flat_map(|(sending, [ours, peers])| {
        let steps = STEPS.iter().zip(ours.milliseconds.iter().zip(&peers.milliseconds));
        steps.map(|(step, (ours, peers))| {
            Row::alone(format!("{}: {step}", name(*sending)), "ms", *ours)
                .beside(PEER, *peers, None)
        })
    });
    cases.chain(steps).chain(paper()).collect()
}

fn name(sending: Sending) -> String {
    format!(
        "{} messages of {}, {} at once",
        sending.count(),
        readable(sending.bytes),
        sending.clients
    )
}

/// The paper's results on its own machine: section IV.2, figures 7, 10 and 11.
fn paper() -> [Row; 4] {
    let row = |case: &str, times: f64, peer: &'static str| {
        Row::alone(case, "times as fast", times).ahead_of(peer, 1.0, None)
    };
    [
        row("paper: 5,500 messages of 1 KB", 1.8, PAPER_JAVA),
        row("paper: 5,500 messages of 1 KB", 1.86, PAPER_MAIL_PRO),
        row("paper: throughput with 2 MB", 2.54, PAPER_JAVA),
        row("paper: throughput with 2 MB", 2.18, PAPER_MAIL_PRO),
    ]
}
