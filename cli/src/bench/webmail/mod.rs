//! `webmail`: our webmail beside Roundcube in a Linux guest, step by step.
//!
//! It stands beside the figures of the two studies of bare PC webmail servers. Everything goes over TLS: our webmail is not served in the clear.

mod browser;
mod guests;
mod reader;

use super::beside::Beside;
use super::network::enter;
use super::report::{Report, Row};
use crate::failure::Failure;
use crate::house::House;
use crate::stop::Stop;
use guests::{Found, Step};

const PEER: &str = "Roundcube";
/// Guest instructions for an inbox.
const AIM_INBOX: f64 = 100_000.0;

pub(super) fn run(house: &House, stop: &Stop) -> Result<Report, Failure> {
    let beside = Beside::make_webmails(house, "webmail", stop)?;
    // A thread of its own, because it moves into a network of its own and cannot come back. What it starts is held by it.
    let measuring = std::thread::scope(|scope| scope.spawn(|| measure(house, &beside, stop)).join());
    let found = measuring.map_err(|_| Failure::broke("the bench panicked"))??;
    Ok(Report {
        machine: beside.machine(),
        rows: found.iter().flat_map(rows).collect(),
        note: "TLS 1.3, X25519, AES-128-GCM, a certificate of ECDSA P-256, connections that stand. Guest instructions are repeatable on any \
               host; ms are the browser's, emulated. Roundcube's inbox is its page and what the page's scripts ask for; its list alone is the latter. A letter that is read has been read before. Where our instructions went: target/bench/webmail-*.profile.",
        figure: None,
    })
}

fn measure(house: &House, beside: &Beside, stop: &Stop) -> Result<Vec<Found>, Failure> {
    enter()?;
    let targets = guests::boot(beside, stop)?;
    guests::measure(house, &targets, stop)
}

fn rows(found: &Found) -> Vec<Row> {
    let Found { step, ours, peers } = found;
    let case = name(*step);
    let aim = matches!(step, Step::Inbox(_)).then_some(AIM_INBOX);
    vec![
        Row::alone(case.clone(), "guest instructions", ours.instructions).beside(PEER, peers.instructions, aim),
        Row::alone(case.clone(), "ms", ours.ms).beside(PEER, peers.ms, None),
        Row::alone(case, "ms to the first byte", ours.first_byte_ms).beside(PEER, peers.first_byte_ms, None),
    ]
}

fn name(step: Step) -> String {
    match step {
        Step::LoginPage => "the page for a login".into(),
        Step::FirstLogin => "the first login of an account (argon2id)".into(),
        Step::Login => "another login".into(),
        Step::Inbox(letters) => format!("inbox of {letters}"),
        Step::List(letters) => format!("inbox of {letters}, its list alone"),
        Step::Read(bytes) => format!("a letter of {bytes} bytes is read"),
        Step::Compose => "the page for a letter".into(),
        Step::Send(bytes) => format!("a letter of {bytes} bytes is sent"),
        Step::SendFile(bytes) => format!("a letter with a file of {bytes} bytes is sent"),
        Step::FetchFile(bytes) => format!("a file of {bytes} bytes is fetched"),
    }
}
