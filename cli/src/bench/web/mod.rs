//! Web servers side by side: our image, and nginx in a Linux guest, in the same QEMU with the same flags and the same card.
//!
//! Both guests run at the same time, each on a tap interface of its own, and sleep while they have nothing to do. Every load is put on
//! each of them by turns, several times; rates and times are those of the best turn, counts the median. nginx serves with `sendfile` on one port and without on another.

mod draw;
mod load;
mod pace;
mod peer;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::counters::Counters;
use super::median;
use super::network::{enter, ip, widen};
use super::profile::Functions;
use super::report::{Report, Row};
use super::workplace::refuse_if_stopped;
use crate::failure::Failure;
use crate::guest::{Accelerator, Event, Guest, Linux, MachineType, Network, Running, Setup};
use crate::house::House;
use crate::run::DataFolder;
use crate::stop::Stop;
use crate::terminal::remark;
use crate::{image, packages};
use load::{Generator, Load, Measured, Outcome, Target};
use pace::Paced;
use peer::Peer;

const SENDFILE: &str = "nginx, sendfile on";
const PLAIN: &str = "nginx, sendfile off";
/// The port where nginx serves without `sendfile`.
const PLAIN_PORT: u16 = 81;

const SMALL: &str = "4k.bin";
const SMALL_BYTES: usize = 4 << 10;
const LARGE: &str = "10m.bin";
const LARGE_BYTES: usize = 10 << 20;
const CONNECTIONS: [u32; 4] = [1, 16, 100, 1_000];
const LARGE_CONNECTIONS: [u32; 2] = [1, 16];

/// Times the peer's requests a second; and guest instructions for a request, with a connection of its own and without.
const TARGET_TIMES: f64 = 10.0;
const AIM_CLOSES: f64 = 10_000.0;
const AIM_KEPT: f64 = 3_000.0;

const ROUNDS: usize = 3;
const READY_BUDGET: Duration = Duration::from_secs(120);
const MEMORY_MIB: u32 = 256;
const DONE: &str = include_str!("peer/done.lua");

/// What a load came to on ours, on nginx with `sendfile`, and without.
struct Case {
    load: Load,
    outcomes: [Outcome; 3],
}

struct Tools {
    qemu: PathBuf,
    image: PathBuf,
    peer: Peer,
    folder: PathBuf,
    generator: Generator,
    /// Of our image; and the folder for profiles.
    functions: Functions,
    profiles: PathBuf,
    /// Of our guest and of the peer.
    counters: [Counters; 2],
}

pub(super) fn run(house: &House, stop: &Stop) -> Result<Report, Failure> {
    let tools = Tools::get(house, stop)?;
    let machine = format!(
        "QEMU, TCG, q35, one core, {MEMORY_MIB} MiB, virtio-net on a tap; wrk with one thread; peer: {}",
        tools.peer.name
    );
    let stop_of_thread = stop.clone();
    // A thread of its own, because it moves into a network of its own and cannot come back. What it starts is held by it.
    let measuring = std::thread::spawn(move || {
        let measured = enter().and_then(|()| measure(&tools, &stop_of_thread));
        // What cannot be removed lies under target/ and harms nobody.
        let _ = std::fs::remove_dir_all(&tools.folder);
        measured
    });
    let (cases, paced) = measuring.join().map_err(|_| Failure::broke("the bench panicked"))??;
    Ok(Report {
        machine,
        rows: cases.iter().flat_map(rows).chain(paced.rows()).collect(),
        note: "Of requests and bytes more is better, of all else less; the peer's figure is its faster form's where none is named twice. Rates \
               and times are the best of three turns, counts the median, all while the plugin counts. Instructions with 1,000 kept connections include their making. \
               At 70 %: h2load asks at fixed times, each server at seven tenths of its own most with as many connections.",
        figure: Some(draw::figure(&cases)),
    })
}

impl Tools {
    fn get(house: &House, stop: &Stop) -> Result<Tools, Failure> {
        packages::program("ip", "iproute2", stop)?;
        let wrk = packages::program("wrk", "wrk", stop)?;
        let h2load = packages::program("h2load", "nghttp2-client", stop)?;
        let qemu = packages::program("qemu-system-x86_64", "qemu-system-x86", stop)?;
        let image = image::build(house, stop)?;
        let folder = house.target(format!("bench/web-{}", std::process::id()));
        let site = folder.join("ours/site");
        make_site(&site)?;
        configure(&folder.join("ours"))?;
        let script = folder.join("done.lua");
        std::fs::write(&script, DONE).map_err(Failure::io("writing a script for wrk"))?;
        let peer = peer::make(house, &site, stop)?;
        let counters = [Counters::new(house, stop)?, Counters::new(house, stop)?];
        let functions = Functions::read(&image::unstripped(house))?;
        let profiles = house.target("bench");
        Ok(Tools {
            qemu,
            image,
            peer,
            folder,
            generator: Generator { wrk, h2load, script },
            functions,
            profiles,
            counters,
        })
    }
}

/// Files that no compression makes smaller.
fn make_site(site: &Path) -> Result<(), Failure> {
    let doing = "making a site";
    std::fs::create_dir_all(site).map_err(Failure::io(doing))?;
    for (name, bytes) in [(SMALL, SMALL_BYTES), (LARGE, LARGE_BYTES)] {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let words = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        });
        let content: Vec<u8> = words.flatten().take(bytes).collect();
        std::fs::write(site.join(name), content).map_err(Failure::io(doing))?;
    }
    Ok(())
}

fn configure(folder: &Path) -> Result<(), Failure> {
    let text = format!(
        "hostname = \"mail.barepost.test\"\ndomains = [\"barepost.test\"]\n[network]\naddress = \"{}/24\"\n[web]\nsite = \"site/\"\n\
         [access]\nunthrottled_from = [\"{}/32\"]\n",
        Side::Ours.guest(),
        Side::Ours.host()
    );
    std::fs::write(folder.join("barepost.toml"), text).map_err(Failure::io("configuring our guest"))
}

/// Whose guest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Peer,
}

impl Side {
    fn interface(self) -> &'static str {
        match self {
            Side::Ours => "ours",
            Side::Peer => "peer",
        }
    }

    fn host(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 9, self as u8, 1)
    }

    fn guest(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 9, self as u8, 2)
    }
}

fn measure(tools: &Tools, stop: &Stop) -> Result<(Vec<Case>, Paced), Failure> {
    widen()?;
    let [ours, peers] = &tools.counters;
    let data = DataFolder::open(&tools.folder.join("ours"))?;
    data.pass_lock_on()?;
    let our_guest = start(tools, &data, Side::Ours, ours)?;
    let peer_guest = start(tools, &data, Side::Peer, peers)?;
    for (side, guest, port) in
        [(Side::Ours, &our_guest, 80), (Side::Peer, &peer_guest, 80), (Side::Peer, &peer_guest, PLAIN_PORT)]
    {
        wait_for(side, guest, port, stop)?;
    }
    let (our_idle, peer_idle) = (load::idle(ours)?, load::idle(peers)?);
    let target = |side: Side, port: u16, counters, idle| Target {
        url: format!("http://{}:{port}", side.guest()),
        interface: side.interface(),
        counters,
        idle,
    };
    let targets = [
        target(Side::Ours, 80, ours, our_idle),
        target(Side::Peer, 80, peers, peer_idle),
        target(Side::Peer, PLAIN_PORT, peers, peer_idle),
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
        remark(format_args!("{}: {} requests/s", case.name(), rates.join(" beside ")));
        cases.push(case);
    }
    let paced = pace::measure(&tools.generator, &cases, &targets, &tools.folder, stop)?;
    Ok((cases, paced))
}

fn loads() -> impl Iterator<Item = Load> {
    let small = [true, false]
        .into_iter()
        .flat_map(|closes| CONNECTIONS.map(|connections| Load { file: SMALL, connections, closes }));
    small.chain(LARGE_CONNECTIONS.map(|connections| Load { file: LARGE, connections, closes: false }))
}

/// Boots a guest: both with the same flags, card, disk and plugin, apart from what is booted.
fn start(tools: &Tools, data: &DataFolder, side: Side, counters: &Counters) -> Result<Guest, Failure> {
    let interface = side.interface();
    ip(&format!("tuntap add dev {interface} mode tap vnet_hdr"))?;
    ip(&format!("addr add {}/24 dev {interface}", side.host()))?;
    ip(&format!("link set {interface} up"))?;
    let peer = &tools.peer;
    let linux = Linux { initramfs: peer.initramfs.clone(), arguments: peer.arguments(&format!("{}/24", side.guest())) };
    let disk = match side {
        Side::Ours => data.disk_path.clone(),
        Side::Peer => {
            let path = tools.folder.join("peer.img");
            std::fs::File::create(&path)
                .and_then(|file| file.set_len(1 << 20))
                .map_err(Failure::io("making a disk"))?;
            path
        }
    };
    Guest::start(&Setup {
        qemu: tools.qemu.clone(),
        image: if side == Side::Ours { tools.image.clone() } else { peer.kernel.clone() },
        machine: MachineType::Q35,
        accelerator: Accelerator::Tcg,
        cores: 1,
        memory_mib: MEMORY_MIB,
        network: Network::Tap { interface: interface.into(), queues: 1 },
        disk,
        configuration: data.configuration_path.clone(),
        site: data.site_path.clone(),
        certificates: data.certificates_path.clone(),
        plugin: Some(counters.plugin()),
        linux: (side == Side::Peer).then_some(linux),
    })
}

fn wait_for(side: Side, guest: &Guest, port: u16, stop: &Stop) -> Result<(), Failure> {
    let address = SocketAddr::from((side.guest(), port));
    let mut said = Vec::new();
    let started = Instant::now();
    while started.elapsed() < READY_BUDGET {
        refuse_if_stopped(stop)?;
        if TcpStream::connect_timeout(&address, Duration::from_millis(500)).is_ok() {
            return Ok(());
        }
        match guest.next_event(Duration::from_millis(100)) {
            Some(Event::Line(line) | Event::Complaint(line)) => said.push(line),
            Some(Event::Ended) => break,
            None => {}
        }
    }
    Err(Failure::broke(format_args!("the guest at {address} does not serve; it said\n{}", said.join("\n"))))
}

/// The summary of several rounds, in each of which every target has its turn; of ours a profile, too.
fn by_turns(tools: &Tools, load: Load, targets: &[Target<'_>; 3], stop: &Stop) -> Result<[Outcome; 3], Failure> {
    let mut rounds = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (target, outcomes) in targets.iter().zip(&mut rounds) {
            let measured = tools.generator.put(load, target, stop)?;
            outcomes.push(measured.outcome);
            if target.interface == Side::Ours.interface() {
                write_profile(tools, load, &measured)?;
            }
        }
    }
    Ok(rounds.map(|outcomes| summary(&outcomes)))
}

/// Rates and times of the best round, since whatever else runs on the host only takes away; of what is counted the median.
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

/// Of the last round, beside those of the bench `instructions`.
fn write_profile(tools: &Tools, load: Load, measured: &Measured) -> Result<(), Failure> {
    if measured.requests == 0.0 {
        return Err(Failure::broke("our guest answers nothing"));
    }
    let Load { file, connections, closes } = load;
    let how = if closes { "closes" } else { "keeps" };
    let text = tools.functions.profile(&measured.executed, measured.requests as u32)?;
    let path = tools.profiles.join(format!("web-{file}-{how}-{connections}.profile"));
    std::fs::write(path, text).map_err(Failure::io("writing a profile"))
}

impl Case {
    fn name(&self) -> String {
        let Load { file, connections, closes } = self.load;
        let how = if closes { "a connection for each request" } else { "kept connections" };
        format!("{file}, {how}, {connections} at once")
    }
}

fn rows(case: &Case) -> Vec<Row> {
    let [ours, sendfile, plain] = &case.outcomes;
    let row = |unit, figure: fn(&Outcome) -> f64| Row::alone(format!("{}: {unit}", case.name()), unit, figure(ours));
    if case.load.file == LARGE {
        let speed = |outcome: &Outcome| outcome.bytes_per_second / 1e6;
        return [(SENDFILE, sendfile), (PLAIN, plain)]
            .map(|(name, peer)| {
                row("MB/s", |outcome| outcome.bytes_per_second / 1e6).ahead_of(name, speed(peer), Some(1.0))
            })
            .into();
    }
    let (name, peer) =
        if sendfile.requests_per_second > plain.requests_per_second { (SENDFILE, sendfile) } else { (PLAIN, plain) };
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
        row("guest instructions", |outcome| outcome.instructions).beside(name, peer.instructions, Some(aim)),
        row("packets", |outcome| outcome.packets).beside(name, peer.packets, None),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_times_are_the_best_turns_and_counts_the_median() {
        let turn = |rate: f64, p99_ms: f64, instructions: f64| Outcome {
            requests_per_second: rate,
            bytes_per_second: rate,
            p50_ms: p99_ms,
            p99_ms,
            instructions,
            packets: 8.0,
            errors: 1.0,
        };
        let summary = summary(&[turn(100.0, 9.0, 11.0), turn(300.0, 3.0, 10.0), turn(200.0, 5.0, 99.0)]);
        assert_eq!((summary.requests_per_second, summary.p99_ms), (300.0, 3.0));
        assert_eq!((summary.instructions, summary.packets, summary.errors), (11.0, 8.0, 3.0));
    }
}
