//! `tls`: the cost of TLS. Natively, an engine and its client run in one process. The comparison is
//! with the TLS libraries alone on the same processor. In QEMU, the comparison is with nginx and
//! OpenSSL in a Linux guest that has the same certificate, by guest instructions.
//!
//! The figure of `tls` shows what figures 5 to 13 of the paper on a TLS webmail server show, as far
//! as they concern the web. `webmail` covers the paper's webmail figures.

mod client;
mod draw;
mod guests;
mod native;
mod two;

use super::beside::{Beside, Side, SiteFile};
use super::report::{Report, Row};
use host::{Failure, Repository, Stop};

use guests::{Found, Steps, Taken};

/// The file that most measurements request.
const PAGE: &str = "4k.bin";
/// The size of [`PAGE`].
const PAGE_BYTES: usize = 4 << 10;
/// The sizes of the paper, 1 to 16 KB.
const FILES: [SiteFile; 7] = [
    ("1k.bin", 1 << 10),
    ("2k.bin", 2 << 10),
    (PAGE, PAGE_BYTES),
    ("6k.bin", 6 << 10),
    ("8k.bin", 8 << 10),
    ("12k.bin", 12 << 10),
    ("16k.bin", 16 << 10),
];

/// Guest instructions for a page of 4 KB on a kept connection.
const AIM_KEPT: f64 = 15_000.0;

/// With or without TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Channel {
    Plain,
    Tls,
}

impl Channel {
    fn name(self) -> &'static str {
        if self == Channel::Tls { "TLS" } else { "in the clear" }
    }

    fn peer_name(self) -> &'static str {
        if self == Channel::Tls { "nginx, OpenSSL" } else { "nginx" }
    }
}

pub(super) fn run(repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    let native = native::measure(stop)?;
    let beside = Beside::make(repository, "tls", &FILES, stop)?;
    // The measurement runs in a separate thread, because the thread enters a new network namespace
    // and cannot leave it. The programs that the thread starts end with the thread (`host::hold`).
    let measuring = std::thread::scope(|scope| {
        scope.spawn(|| guests::measure(repository, &beside, stop)).join()
    });
    let found = measuring.map_err(|_| Failure::broke("the bench panicked"))??;
    Ok(Report {
        machine: format!(
            "natively: a core of the server and a client, each on a processor; counted: {}",
            beside.machine()
        ),
        rows: native.rows().into_iter().chain(counted(&found)).collect(),
        note: "TLS 1.3, X25519, AES-128-GCM, a certificate of ECDSA P-256 everywhere. Rows that begin with “native” are for a second in which the server's core is busy, best of \
               several turns, beside the libraries alone in the same run. Rows that begin with “counted” are guest instructions, repeatable on any host; ms are the client's, \
               emulated. A POST is read whole and answered by 405 on both. Where our instructions went: target/bench/tls-*.profile.",
        figure: Some(draw::figure(&found)),
    })
}

/// The results at a guest on a channel.
fn of(found: &[Found], side: Side, channel: Channel) -> Option<&Found> {
    found.iter().find(|one| one.side == side && one.channel == channel)
}

fn counted(found: &[Found]) -> Vec<Row> {
    let mut rows = Vec::new();
    for channel in [Channel::Tls, Channel::Plain] {
        if let (Some(ours), Some(peers)) =
            (of(found, Side::Ours, channel), of(found, Side::Peer, channel))
        {
            rows.extend(counted_on(channel, ours, peers));
        }
    }
    rows
}

fn counted_on(channel: Channel, ours: &Found, peers: &Found) -> Vec<Row> {
    let peer = channel.peer_name();
    let aim = (channel == Channel::Tls).then_some(AIM_KEPT);
    let mut rows = Vec::new();
    let mut add = |what: String, ours: Taken, peers: Taken, aim: Option<f64>| {
        let case = format!("counted, {}: {what}", channel.name());
        let instructions = Row::alone(case.clone(), "guest instructions", ours.instructions);
        rows.push(instructions.beside(peer, peers.instructions, aim));
        rows.push(Row::alone(case, "ms", ours.ms).beside(peer, peers.ms, None));
    };
    let kept = |found: &Found| {
        found.gets.iter().find(|(bytes, _)| *bytes == PAGE_BYTES).map(|(_, taken)| *taken)
    };
    if let (Some(ours), Some(peers)) = (kept(ours), kept(peers)) {
        add("a page of 4 KB, kept connection".into(), ours, peers, aim);
    }
    if let (Some(ours), Some(peers)) = (ours.two, peers.two) {
        add("the same in HTTP/2, a stream at a time".into(), ours, peers, None);
    }
    for ((name, ours), (_, peers)) in steps(&ours.steps).into_iter().zip(steps(&peers.steps)) {
        add(format!("a transaction's step: {name}"), ours, peers, None);
    }
    for (verb, ours, peers) in
        [("GET", &ours.gets, &peers.gets), ("POST", &ours.posts, &peers.posts)]
    {
        for ((bytes, ours), (_, peers)) in
            ours.iter().zip(peers).filter(|((bytes, _), _)| *bytes != PAGE_BYTES)
        {
            add(format!("{verb} of {} KB, kept connection", bytes >> 10), *ours, *peers, None);
        }
    }
    for ((number, ours), (_, peers)) in ours.numbers.iter().zip(&peers.numbers) {
        let pages = if *number == 1 { "page" } else { "pages" };
        add(format!("a whole connection, {number} {pages} of 4 KB"), *ours, *peers, None);
    }
    // The time of 16 simultaneous requests tells nothing about one request.
    let case =
        format!("counted, {}: a page of 4 KB, 16 kept connections ask at once", channel.name());
    let crowd = Row::alone(case, "guest instructions", ours.crowd.instructions);
    rows.push(crowd.beside(peer, peers.crowd.instructions, aim));
    rows
}

/// A transaction's steps in order, with their names.
fn steps(steps: &Steps) -> Vec<(&'static str, Taken)> {
    let all = [
        ("connection", Some(steps.connection)),
        ("full handshake", steps.handshake),
        ("resumed handshake", steps.resumed),
        ("GET", Some(steps.get)),
        ("POST", Some(steps.post)),
        ("end", Some(steps.end)),
    ];
    all.into_iter().filter_map(|(name, taken)| Some((name, taken?))).collect()
}
