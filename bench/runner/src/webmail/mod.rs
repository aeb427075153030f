//! `webmail`: our webmail beside Roundcube in a Linux guest, step by step.
//!
//! The results are compared with the figures of the two studies of bare PC webmail servers. All
//! requests use TLS, because our webmail is not served in the clear.

mod browser;
mod draw;
mod guests;
mod load;
pub(super) mod mailbox;
mod reader;
mod target;
mod wide;

use super::at_tap::{Equipment, Place};
use super::beside::{Beside, Side, mailboxes};
use super::network::enter;
use super::report::{Report, Row};
use host::{Failure, Repository, Stop};

use guests::{Found, Step};
use load::{Loaded, PAPER_HZ};
use target::Taken;
use wide::{Far, ROUND_MS, RemoteAction};

const PEER: &str = "Roundcube";
/// The most guest instructions for an inbox.
const AIM_INBOX: f64 = 100_000.0;
/// The longest time until the first byte of a page.
const AIM_FIRST_BYTE_MS: f64 = 1.0;
/// The required multiple of Roundcube's requests a second.
const TARGET_TIMES: f64 = 50.0;

/// The memory of our guest when it is measured alone, in MiB.
const ALONE_MIB: u32 = 512;
const ALONE_DISK_BYTES: u64 = 1 << 30;

/// All results.
struct All {
    found: Vec<Found>,
    loaded: Vec<Loaded>,
    far: Vec<Far>,
}

pub(super) fn run(repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    let beside = Beside::make_webmails(repository, "webmail", stop)?;
    // The measurement runs in a separate thread, because the thread enters a new network namespace
    // and cannot leave it. The programs that the thread starts end with the thread (`host::hold`).
    let measuring =
        std::thread::scope(|scope| scope.spawn(|| measure(repository, &beside, stop)).join());
    let All { found, loaded, far } =
        measuring.map_err(|_| Failure::broke("the bench panicked"))??;
    Ok(Report {
        machine: beside.machine(),
        rows: found
            .iter()
            .flat_map(rows)
            .chain(rows_of_load(&loaded))
            .chain(far.iter().map(row_of_far))
            .collect(),
        note: "TLS 1.3, X25519, AES-128-GCM, a certificate of ECDSA P-256, persistent connections. For answers a second, higher is better; for all else, lower. Guest instructions are repeatable on any \
               host; ms are the browser's, emulated, and busy is what the emulator's processor took of the host's, while the plugin counts. Roundcube's inbox is its page and the requests of the page's scripts; its list \
               alone is only those requests, and is what clients request under load. A message that is read has been opened before. Where our instructions went: target/bench/webmail-*.profile.",
        figure: Some(draw::figure(&found, &loaded, &far)),
    })
}

/// Measures our own steps with cases that contain `only`, without a peer. It is for use during
/// development. A file is fetched only if a step has sent it.
pub(super) fn run_only(
    repository: &Repository,
    only: &str,
    stop: &Stop,
) -> Result<Report, Failure> {
    let users = mailboxes::users();
    let equipment = Equipment {
        memory_mib: ALONE_MIB,
        disk_bytes: ALONE_DISK_BYTES,
        users,
        network: "",
        signing_keys: &[],
    };
    let place = Place::with(repository, "webmail", equipment, stop)?;
    let is_chosen = |step| name(step).contains(only);
    // This measurement also needs its own thread, for the reason given in `run`.
    let measuring =
        || enter().and_then(|()| guests::measure_ours(repository, &place, is_chosen, stop));
    let measuring = std::thread::scope(|scope| scope.spawn(measuring).join());
    let found = measuring.map_err(|_| Failure::broke("the bench panicked"))??;
    Ok(Report {
        machine: format!(
            "QEMU, TCG, q35, one core, {ALONE_MIB} MiB, virtio-net on a tap, over TLS"
        ),
        rows: found.iter().flat_map(|(step, ours)| rows_alone(*step, ours)).collect(),
        note: "Guest instructions are repeatable on any host. Where they went: target/bench/webmail-*.profile.",
        figure: None,
    })
}

fn measure(repository: &Repository, beside: &Beside, stop: &Stop) -> Result<All, Failure> {
    enter()?;
    let [ours, peers] = guests::boot(beside, stop)?;
    let targets =
        [guests::target(beside, Side::Ours, &ours)?, guests::target(beside, Side::Peer, &peers)?];
    let found = guests::measure(repository, &targets, stop)?;
    let loaded = load::measure(&targets, stop)?;
    let far = wide::measure(repository, &targets, stop)?;
    Ok(All { found, loaded, far })
}

fn rows_alone(step: Step, ours: &Taken) -> [Row; 2] {
    let case = name(step);
    [
        Row::alone(case.clone(), "guest instructions", ours.instructions),
        Row::alone(case, "guest instructions, TLS's of these", ours.for_tls),
    ]
}

fn rows(found: &Found) -> Vec<Row> {
    let Found { step, ours, peers } = found;
    let case = name(*step);
    let aim = matches!(step, Step::Inbox(_)).then_some(AIM_INBOX);
    let mut rows = vec![
        Row::alone(case.clone(), "guest instructions", ours.instructions).beside(
            PEER,
            peers.instructions,
            aim,
        ),
        Row::alone(case.clone(), "guest instructions, TLS's of these", ours.for_tls),
        Row::alone(case.clone(), "ms", ours.ms).beside(PEER, peers.ms, None),
    ];
    if step.is_page() {
        let [ours, peers] = [ours, peers].map(|taken| taken.to_first_byte / PAPER_HZ * 1000.0);
        let row = Row::alone(case, "ms to the first byte, 3.2 GHz, an instruction a clock", ours);
        rows.push(if peers.is_nan() {
            row
        } else {
            row.beside(PEER, peers, Some(AIM_FIRST_BYTE_MS))
        });
    }
    rows
}

fn name(step: Step) -> String {
    match step {
        Step::LoginPage => "the page for a login".into(),
        Step::FirstLogin => "the first login of an account (argon2id)".into(),
        Step::Login => "another login".into(),
        Step::Inbox(messages) => format!("inbox of {messages}"),
        Step::List(messages) => format!("inbox of {messages}, its list alone"),
        Step::Read(bytes) => format!("a message of {bytes} bytes is read"),
        Step::Compose => "the page for a message".into(),
        Step::Send(bytes) => format!("a message of {bytes} bytes is sent"),
        Step::SendFile(bytes) => format!("a message with a file of {bytes} bytes is sent"),
        Step::FetchFile(bytes) => format!("a file of {bytes} bytes is fetched"),
    }
}

/// Each load of ours beside the peer's same load.
fn rows_of_load(loaded: &[Loaded]) -> Vec<Row> {
    let ours = loaded.iter().filter(|one| one.side == Side::Ours);
    let peers = |ours: &Loaded| {
        loaded.iter().find(|one| one.side == Side::Peer && one.load.users == ours.load.users)
    };
    ours.filter_map(|ours| Some(rows_of_one_load(ours, peers(ours)?))).flatten().collect()
}

fn rows_of_one_load(ours: &Loaded, peers: &Loaded) -> Vec<Row> {
    let how = if ours.load.is_pressing {
        "as fast as they are answered"
    } else {
        "100 times a second each"
    };
    let case = match ours.load.users {
        1 => format!("1 user asks for a list of 10 {how}"),
        users => format!("{users} users ask for a list of 10 {how}"),
    };
    let target = ours.load.is_pressing.then_some(TARGET_TIMES);
    let mut rows = vec![Row::alone(case.clone(), "answers/s", ours.per_second).ahead_of(
        PEER,
        peers.per_second,
        target,
    )];
    let mut add = |unit, ours: f64, peers: f64| {
        rows.push(Row::alone(case.clone(), unit, ours).beside(PEER, peers, None));
    };
    add("ms, p50", ours.p50_ms, peers.p50_ms);
    add("ms, p99", ours.p99_ms, peers.p99_ms);
    add("guest instructions", ours.instructions, peers.instructions);
    add("% busy", ours.busy, peers.busy);
    add("% busy at 3.2 GHz, an instruction a clock", ours.busy_there, peers.busy_there);
    if let (Some(ours), Some(peers)) = (ours.others_ms, peers.others_ms) {
        add("ms, another user reads 120,000 bytes", ours[0], peers[0]);
        add("ms, another user sends 120,000 bytes", ours[1], peers[1]);
    }
    if ours.failed + peers.failed > 0 {
        add("questions that were not answered", ours.failed as f64, peers.failed as f64);
    }
    rows
}

fn row_of_far(far: &Far) -> Row {
    let what = match far.action {
        RemoteAction::LoginPage => name(Step::LoginPage),
        RemoteAction::Login => name(Step::Login),
        RemoteAction::Inbox(messages) => name(Step::Inbox(messages)),
        RemoteAction::Read(bytes) => name(Step::Read(bytes)),
        RemoteAction::Send(bytes) => name(Step::Send(bytes)),
    };
    Row::alone(format!("{ROUND_MS} ms away: {what}"), "ms", far.ours).beside(PEER, far.peers, None)
}
