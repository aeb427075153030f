//! `relay`: messages that arrive and are relayed to other servers, beside Postfix in a Linux guest.
//! It also measures a queue of up to a million entries.
//!
//! Both guests run at the same time, in the same QEMU version with the same flags. Each load is put
//! on each guest in turn. Both guests reply 250 only after a flush, ask the same name server, and
//! deliver messages to the same program (smtp-sink). At our server, a client that sends to other
//! servers logs in first. The peer relays messages from its local network.

mod draw;
mod outside;
mod through;
mod waiting;

use base64ct::{Base64, Encoding};
use host::{Failure, Repository, Stop};

use super::at_tap::{Equipment, Place};
use super::beside::mailboxes::{self, Account, HASH, PASSWORD, address};
use super::beside::{Beside, More, POSTFIX_SETTINGS, Side};
use super::profile::Profiler;
use super::report::{Report, Row};
use outside::{Destination, Outside, name_server_of};
use through::{Load, Mixed, OtherHalf, Through};
use waiting::{Found, SIZES};

const PEER: &str = "Postfix";
/// The target: this multiple of the peer's messages a second.
const TARGET: f64 = 30.0;
const WITHOUT: &str = "an empty queue";

/// The account that sends most messages to other servers.
const SENDER: &str = "sender";
/// A second account that sends to other servers. It has no messages in a long queue.
const ANOTHER: &str = "another";

/// Memory for a million entries: an eighth of a GiB for the store's index, and as much for the
/// queue's index.
const MEMORY_MIB: u32 = 1024;
/// The size of the disk. A message takes a page of 4 KiB.
const DISK_BYTES: u64 = 8 << 30;

/// The key that signs the messages of a long queue, from RFC 8463. A million RSA signatures would
/// take half an hour.
const SIGNING_KEYS: &[(&str, &str)] = &[(
    "measured.pem",
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n",
)];

/// Limits that allow accounts to send any number of messages.
const LIMITS: &str =
    "[limits]\nmessages_per_day = \"unlimited\"\nnew_recipients_per_day = \"unlimited\"\n";
/// A setting that allows Barepost to send to hosts with private addresses.
const RELAY: &str = "[relay]\nprivate_networks = [\"10.9.0.0/24\"]\n";
/// The name server of both servers.
const NETWORK: &str = "dns = [\"10.9.0.3\"]\n";

/// All results.
struct All {
    sides: through::All,
    found: Vec<Found>,
}

pub(super) fn run(repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    measure(repository, |_| true, stop)
}

/// Measures the cases with names that contain `only`.
pub(super) fn run_only(
    repository: &Repository,
    only: &str,
    stop: &Stop,
) -> Result<Report, Failure> {
    measure(repository, |name| name.contains(only), stop)
}

fn measure(
    repository: &Repository,
    is_chosen: impl Fn(&str) -> bool,
    stop: &Stop,
) -> Result<Report, Failure> {
    let outside = Outside::fetch(repository, stop)?;
    let loads: Vec<Load> = Load::ALL.into_iter().filter(|load| is_chosen(&load.name())).collect();
    let other_halves: Vec<OtherHalf> =
        OtherHalf::ALL.into_iter().filter(|half| is_chosen(half.name())).collect();
    let sizes: Vec<u32> =
        SIZES.into_iter().filter(|entries| is_chosen(&name_of(*entries))).collect();
    let mut machine = format!("QEMU, TCG, q35, one core, {MEMORY_MIB} MiB, virtio-net on a tap");
    let mut all = All { sides: through::All::default(), found: Vec::new() };
    if !(loads.is_empty() && other_halves.is_empty()) {
        let beside = make_servers(repository, stop)?;
        machine = beside.machine();
        let profiler = &Profiler::new(repository, "relay")?;
        let measurement = through::Measurement {
            beside: &beside,
            profiler,
            outside: &outside,
            loads,
            other_halves,
            stop,
        };
        all.sides = in_own_network(|| measurement.make(&beside.folder))?;
    }
    if !sizes.is_empty() {
        let place = make_place(repository, stop)?;
        let measurement =
            waiting::Measurement { repository, place: &place, outside: &outside, sizes, stop };
        all.found = in_own_network(|| measurement.make(&place.folder))?;
    }
    Ok(Report {
        machine: format!("{machine}; smtp-sink"),
        rows: rows(&all),
        note: "For messages a second, higher is better; for all else, lower. Messages a second are counted from the first that arrives to the last that leaves, and instructions until the guest is at rest. Each load has \
               two rounds, and the plugin counts instructions in both; the table has the better rate and the median count. Our server signs sent messages with RSA and Ed25519, and the peer does not; neither signs those sent on. The slow destination takes a second for a message. A long queue is for a destination that is down. The wait of \
               a message for another destination is measured for two and a half minutes from the start, in which the queue is examined more than once. Where our instructions went: target/bench/relay-*.profile.",
        figure: Some(draw::figure(&all)),
    })
}

/// Runs `measure` in a separate thread, because the thread enters a network namespace and cannot
/// leave it. The programs that the thread starts end with the thread (`host::hold`).
fn in_own_network<T: Send>(
    measure: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let measuring = std::thread::scope(|scope| scope.spawn(measure).join());
    measuring.map_err(|_| Failure::broke("the bench panicked"))?
}

fn make_servers(repository: &Repository, stop: &Stop) -> Result<Beside, Failure> {
    let sender = Account { name: SENDER.into(), messages: Vec::new() };
    let settings = format!(
        "{POSTFIX_SETTINGS}smtp_dns_support_level = enabled\nvirtual_alias_maps = texthash:/etc/postfix/forwarded\n"
    );
    let files = [
        ("etc/postfix/main.cf", settings),
        (
            "etc/postfix/forwarded",
            of_each(|from, to| format!("{from} {}\n", to.address(Side::Peer))),
        ),
        ("etc/resolv.conf", format!("nameserver {}\n", name_server_of(Side::Peer))),
    ];
    let tables = of_each(|from, to| {
        let to = to.address(Side::Ours);
        format!(
            "[[user]]\naddress = \"{from}\"\npassword_hash = \"{HASH}\"\nforward = [\"{to}\"]\nkeep = false\n"
        )
    });
    let tables = tables + LIMITS + RELAY;
    let more = More { tables: &tables, network: NETWORK, files: &files };
    Beside::make_mail_servers(repository, "relay", &[sender], &more, stop)
}

/// Concatenates `line` for each account with forwarding. `line` gets the account and its
/// destination.
fn of_each(line: impl Fn(String, Destination) -> String) -> String {
    Destination::ALL.map(|destination| line(destination.account(), destination)).concat()
}

fn make_place(repository: &Repository, stop: &Stop) -> Result<Place, Failure> {
    let account =
        |name: &str| mailboxes::section(&Account { name: name.into(), messages: Vec::new() });
    let users = account(SENDER) + &account(ANOTHER) + LIMITS + RELAY;
    let equipment = Equipment {
        memory_mib: MEMORY_MIB,
        disk_bytes: DISK_BYTES,
        users,
        network: NETWORK,
        signing_keys: SIGNING_KEYS,
    };
    Place::with(repository, "relay-queue", equipment, stop)
}

/// The login command of an account that sends.
fn login(name: &str) -> String {
    let text = format!("\0{}\0{PASSWORD}", address(name));
    format!("AUTH PLAIN {}\r\n", Base64::encode_string(text.as_bytes()))
}

fn name_of(entries: u32) -> String {
    match entries {
        0 => WITHOUT.into(),
        1_000_000 => "a queue of 1,000,000".into(),
        _ => format!("a queue of {},000", entries / 1000),
    }
}

fn rows(all: &All) -> Vec<Row> {
    let through = all.sides.through.iter().flat_map(rows_of_through);
    let mixed = all.sides.mixed.iter().map(row_of_mixed);
    let empty = all.found.iter().find(|found| found.entries == 0);
    let queues = empty.into_iter().flat_map(|empty| {
        let others = all.found.iter().filter(|found| found.entries > 0);
        others.flat_map(|found| rows_of_queue(found, empty))
    });
    through.chain(mixed).chain(queues).collect()
}

fn rows_of_through(through: &Through) -> [Row; 2] {
    let Through { load, ours, peers } = through;
    [
        Row::alone(load.name(), "messages/s", ours.per_second).ahead_of(
            PEER,
            peers.per_second,
            Some(TARGET),
        ),
        Row::alone(load.name(), "guest instructions", ours.instructions).beside(
            PEER,
            peers.instructions,
            None,
        ),
    ]
}

fn row_of_mixed(mixed: &Mixed) -> Row {
    Row::alone(mixed.other_half.name(), "messages/s", mixed.ours).ahead_of(
        PEER,
        mixed.peers,
        Some(TARGET),
    )
}

/// The rows of a long queue, compared with the rows of an empty queue.
fn rows_of_queue(found: &Found, empty: &Found) -> Vec<Row> {
    let row = |what: &str, unit, ours, without| {
        Row::alone(format!("{}: {what}", name_of(found.entries)), unit, ours)
            .beside(WITHOUT, without, None)
    };
    let alone = |what: &str, unit, ours| {
        Row::alone(format!("{}: {what}", name_of(found.entries)), unit, ours)
    };
    let bytes = (found.mib - empty.mib) * 1_048_576.0 / f64::from(found.entries);
    let mut rows = vec![
        row(
            "start to ready",
            "guest instructions",
            found.start.instructions,
            empty.start.instructions,
        ),
        row("start to ready", "ms, emulated", found.start.ms, empty.start.ms),
        alone("from ready until it rests", "s, emulated", found.rests_after),
        alone("from ready until it rests, for each entry", "guest instructions", found.for_each),
        row("host memory at rest", "MiB", found.mib, empty.mib),
        alone("memory for an entry", "bytes", bytes),
    ];
    let waits = [
        ("a message of another user for another destination waits", found.others, empty.others),
        ("a message of the same user for another destination waits", found.own, empty.own),
    ];
    for (what, ours, without) in waits {
        rows.push(row(what, "ms", ours.median, without.median));
        rows.push(row(&format!("{what} at most"), "ms", ours.longest, without.longest));
    }
    if let Some((per_second, instructions)) = found.drained {
        rows.push(alone("the destination is there again", "messages/s", per_second));
        rows.push(alone(
            "the destination is there again, for a message",
            "guest instructions",
            instructions,
        ));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sender_logs_in_as_itself() {
        assert_eq!(
            login(SENDER),
            "AUTH PLAIN AHNlbmRlckBiYXJlcG9zdC50ZXN0AGNvcnJlY3QgaG9yc2UgYmF0dGVyeSBzdGFwbGU=\r\n"
        );
    }

    #[test]
    fn our_machine_asks_the_name_server_that_is_near() {
        assert_eq!(NETWORK, format!("dns = [\"{}\"]\n", name_server_of(Side::Ours)));
    }
}
