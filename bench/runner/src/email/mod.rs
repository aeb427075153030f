//! `email`: our mail server beside Postfix and Dovecot in a Linux guest, with the loads that the
//! paper of the bare PC email server uses in its figures.
//!
//! Both guests run at the same time, in the same QEMU version with the same flags, and sleep while
//! they have no work. Each load is put on each guest in turn. Both reply 250 only after a flush.
//! Messages come from Postfix's own load generator, `smtp-source`. A client in lock step fetches
//! them.

mod draw;
mod load;
mod steps;
pub(super) mod wan;

use std::net::SocketAddr;
use std::time::Instant;

use host::{Failure, Repository, Stop, packages, remark, unpacked};

use super::beside::mailboxes::{Account, PASSWORD, address};
use super::beside::{Beside, More, Outcome, Side, Target};
use super::client::Client;
use super::network::{enter, widen};
use super::report::{Report, Row};
use super::statistics::median;
use load::{Load, Source};
use steps::{STEPS, Sending, StepCapture, Timing};

const PEER: &str = "Postfix and Dovecot";
/// The label for the best of the paper's peers.
const PAPER: &str = "paper: the best of its peers";

const KIB: usize = 1 << 10;
const SESSIONS: [u32; 3] = [1, 10, 100];
const SIZES: [usize; 6] = [KIB, 8 * KIB, 64 * KIB, 256 * KIB, KIB * KIB, 2 * KIB * KIB];
/// The number of simultaneous sessions for messages of each of the [`SIZES`].
const SIZES_SESSIONS: u32 = 10;
/// The numbers of messages in our server's long runs with several sessions, as in the paper.
const OUR_LONG_RUNS: [u32; 3] = [1_000, 10_000, 100_000];
/// The numbers of messages in our server's long runs with one session, as in the paper.
const OUR_LONG_RUNS_IN_ONE_SESSION: [u32; 3] = [1_000, 10_000, 80_000];
/// The numbers of messages in the peer's long runs: no more than the peer accepts in a minute.
const PEER_LONG_RUNS: [u32; 2] = [100, 1_000];
const ROUNDS: usize = 2;
const FETCHED: u32 = 200;
/// The messages that are timed step by step.
const TIMED: Sending = Sending { clients: 1, messages: 10, bytes: KIB };

/// The account with messages that no client fetches.
const SINK: &str = "user0";
/// The account with messages that a client fetches by POP3.
const READER: &str = "user1";

/// The required ratio to the peer, by the number of sessions, and for the largest messages.
fn target(load: Load) -> Option<f64> {
    match load {
        Load { sessions: 1, bytes: KIB, .. } => Some(15.0),
        Load { bytes: KIB, .. } => Some(50.0),
        Load { bytes, .. } => (Some(&bytes) == SIZES.last()).then_some(20.0),
    }
}

/// A load and its results at our server and at the peer.
struct Case {
    load: Load,
    ours: Outcome,
    peers: Outcome,
}

/// A long run: a server received `messages` messages in `sessions` simultaneous sessions, within
/// `seconds` seconds.
struct Many {
    side: Side,
    sessions: u32,
    messages: u32,
    seconds: f64,
}

impl Many {
    fn per_second(&self) -> f64 {
        f64::from(self.messages) / self.seconds
    }
}

/// All results.
struct All {
    cases: Vec<Case>,
    many: Vec<Many>,
    fetched: [Outcome; 2],
    steps: [Timing; 2],
}

pub(super) fn run(repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    let source =
        Source { program: unpacked::SMTP_SOURCE.fetch(repository, stop)?, stop: stop.clone() };
    let tshark = packages::program("tshark", "tshark", stop)?;
    let accounts = [SINK, READER].map(|name| Account { name: name.into(), messages: Vec::new() });
    let beside = Beside::make_mail_servers(repository, "email", &accounts, &More::default(), stop)?;
    // The measurement runs in a separate thread, because the thread enters a new network namespace
    // and cannot leave it. The programs that the thread starts end with the thread (`host::hold`).
    let measure = || {
        enter()?;
        widen()?;
        // The guests run until these values are dropped.
        let _ours = beside.boot(Side::Ours, &[25, 110], stop)?;
        let _peers = beside.boot(Side::Peer, &[25, 110], stop)?;
        let targets = [Target::at(&beside, Side::Ours)?, Target::at(&beside, Side::Peer)?];
        targets.iter().try_for_each(|target| {
            source.put(Load { messages: 20, ..Load::small(10) }, target).map(drop)
        })?;
        let capture = |side: Side| {
            let capture = StepCapture {
                tshark: &tshark,
                folder: &beside.folder,
                interface: side.interface(),
            };
            steps::measure(&capture, side, TIMED)
        };
        let steps = [capture(Side::Ours)?, capture(Side::Peer)?];
        let cases =
            loads().map(|load| by_turns(&source, load, &targets)).collect::<Result<_, _>>()?;
        let fetched = [fetch(&source, &targets[0])?, fetch(&source, &targets[1])?];
        let many = many(&source, &targets)?;
        Ok(All { cases, many, fetched, steps })
    };
    let measuring = std::thread::scope(|scope| scope.spawn(measure).join());
    let all = measuring.map_err(|_| Failure::broke("the bench panicked"))??;
    Ok(Report {
        machine: format!("{}; smtp-source", beside.machine()),
        rows: rows(&all),
        note: "For messages a second and \"times as fast\", higher is better; for all else, lower. Each load has two rounds, and the plugin counts instructions in both; the table has the better rate and the median count. Long runs and POP3 have one round. A rate counts \
               acknowledged messages. The peer may deliver them to mailboxes later, and its instructions are counted until it has done so. Steps are as tshark saw them on the tap: from the client's \
               last octet to the answer; the median of ten messages. The paper's ratios are those of its own machine to its own peers.",
        figure: Some(draw::figure(&all)),
    })
}

fn loads() -> impl Iterator<Item = Load> {
    let small = [false, true]
        .into_iter()
        .flat_map(|is_kept| SESSIONS.map(|sessions| Load { is_kept, ..Load::small(sessions) }));
    let sizes =
        SIZES.into_iter().skip(1).map(|bytes| Load { bytes, ..Load::small(SIZES_SESSIONS) });
    small.chain(sizes)
}

fn by_turns(source: &Source, load: Load, targets: &[Target<'_>; 2]) -> Result<Case, Failure> {
    let mut rounds = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        for (target, outcomes) in targets.iter().zip(&mut rounds) {
            outcomes.push(
                source.put(Load { messages: load.messages_for(target.side), ..load }, target)?,
            );
        }
    }
    let [ours, peers] = rounds.map(|outcomes| Outcome {
        per_second: outcomes.iter().map(|one| one.per_second).fold(0.0, f64::max),
        instructions: median(outcomes.iter().map(|one| one.instructions).collect()),
    });
    remark(format_args!(
        "{}: {:.1} messages/s ({:.0} instructions) beside {:.1} ({:.0})",
        name(load),
        ours.per_second,
        ours.instructions,
        peers.per_second,
        peers.instructions
    ));
    Ok(Case { load, ours, peers })
}

/// A client fetches messages of 1 KB, one after the other.
fn fetch(source: &Source, target: &Target<'_>) -> Result<Outcome, Failure> {
    source.put_to(READER, Load { messages: FETCHED, is_kept: true, ..Load::small(10) }, target)?;
    let mut client = Client::connect(SocketAddr::from((target.side.guest(), 110)), "+OK")?;
    client.command(format!("USER {}\r\n", address(READER)).as_bytes(), "+OK")?;
    client.command(format!("PASS {PASSWORD}\r\n").as_bytes(), "+OK")?;
    target.count(FETCHED, || {
        let began = Instant::now();
        for number in 1..=FETCHED {
            let bytes = client.fetch(format!("RETR {number}\r\n").as_bytes())?;
            if bytes < KIB {
                return Err(Failure::broke(format_args!(
                    "message {number} came back with only {bytes} bytes"
                )));
            }
        }
        Ok(began.elapsed())
    })
}

fn many(source: &Source, targets: &[Target<'_>; 2]) -> Result<Vec<Many>, Failure> {
    let mut all = Vec::new();
    for sessions in SESSIONS {
        for target in targets {
            let side = target.side;
            let counts: &[u32] = match (side, sessions) {
                (Side::Ours, 1) => &OUR_LONG_RUNS_IN_ONE_SESSION,
                (Side::Ours, _) => &OUR_LONG_RUNS,
                (Side::Peer, _) => &PEER_LONG_RUNS,
            };
            for &messages in counts {
                let outcome = source.put(Load { messages, ..Load::small(sessions) }, target)?;
                let seconds = f64::from(messages) / outcome.per_second;
                remark(format_args!(
                    "{side:?}, {sessions} at once: {messages} messages in {seconds:.1} s"
                ));
                all.push(Many { side, sessions, messages, seconds });
            }
        }
    }
    Ok(all)
}

fn name(load: Load) -> String {
    let Load { sessions, bytes, is_kept, .. } = load;
    let how = if is_kept { "kept sessions" } else { "a connection for each" };
    format!("messages of {}, {how}, {sessions} at once", readable(bytes))
}

fn readable(bytes: usize) -> String {
    if bytes < KIB * KIB {
        format!("{} KB", bytes / KIB)
    } else {
        format!("{} MB", bytes / KIB / KIB)
    }
}

fn rows(all: &All) -> Vec<Row> {
    let [ours, peers] = &all.fetched;
    let fetched = "a message of 1 KB is fetched by POP3";
    let fetched = [
        Row::alone(fetched, "messages/s", ours.per_second).ahead_of(PEER, peers.per_second, None),
        Row::alone(fetched, "guest instructions", ours.instructions).beside(
            PEER,
            peers.instructions,
            None,
        ),
    ];
    let [ours, peers] = &all.steps;
    let steps = STEPS.iter().zip(ours.milliseconds.iter().zip(&peers.milliseconds));
    let steps = steps
        .map(|(step, (ours, peers))| Row::alone(*step, "ms", *ours).beside(PEER, *peers, None));
    let cases = all.cases.iter().flat_map(rows_of_case);
    cases
        .chain(all.many.iter().map(row_of_many))
        .chain(rows_of_most(all))
        .chain(fetched)
        .chain(steps)
        .chain(paper())
        .collect()
}

fn rows_of_case(case: &Case) -> [Row; 2] {
    let Case { load, ours, peers } = case;
    [
        Row::alone(name(*load), "messages/s", ours.per_second).ahead_of(
            PEER,
            peers.per_second,
            target(*load),
        ),
        Row::alone(name(*load), "guest instructions", ours.instructions).beside(
            PEER,
            peers.instructions,
            None,
        ),
    ]
}

fn row_of_many(many: &Many) -> Row {
    let side = if many.side == Side::Ours { "ours" } else { "the peer's" };
    Row::alone(
        format!("{} messages, {} at once, {side}", many.messages, many.sessions),
        "s",
        many.seconds,
    )
}

/// The longest run at each server, by the number of sessions.
fn rows_of_most(all: &All) -> impl Iterator<Item = Row> {
    let most = |side, sessions| {
        let many =
            all.many.iter().filter(move |many| many.side == side && many.sessions == sessions);
        many.max_by_key(|many| many.messages)
    };
    SESSIONS.into_iter().filter_map(move |sessions| {
        let (ours, peers) = (most(Side::Ours, sessions)?, most(Side::Peer, sessions)?);
        let case = format!(
            "{} messages, {sessions} at once; the peer's are {}",
            ours.messages, peers.messages
        );
        let row = Row::alone(case, "messages/s", ours.per_second());
        Some(row.ahead_of(PEER, peers.per_second(), target(Load::small(sessions))))
    })
}

/// The paper's results on its own machine: section IV.1, figures 2 to 4 and 6.
fn paper() -> [Row; 4] {
    let row = |case: &str, times: f64| {
        Row::alone(case, "times as fast", times).ahead_of(PAPER, 1.0, None)
    };
    [
        row("paper: 80,000 messages, 1 thread", 1.99),
        row("paper: 10,000 messages, 10 threads", 9.46),
        row("paper: 10,000 messages, 100 threads", 2.95),
        row("paper: throughput with 2 MB", 4.35),
    ]
}
