//! A room: a wire with the two ends `here` and `there`, and a machine at each end. At the end
//! `here` is Linux, in the network namespace of this thread. At the end `there` is our machine or
//! another Linux. Our machine uses a tap interface, which a bridge joins to the wire's interface
//! `there`. The other Linux is the network namespace of another thread, into which the interface
//! `there` is moved. Each room makes all interfaces anew and removes them at its end.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use barepost::guest::{Guest, Running};
use barepost::run::watch_services;
use barepost::services::SERVICES;
use host::{Failure, Repository, Stop, hold};
use nix::unistd::gettid;

use super::flows::{self, Way};
use super::wire::Wire;
use crate::network::{self, ip};

/// The file of a Linux setting. With 1 in this file, Linux keeps no metrics of a path after its
/// last connection. Then no flow begins with the results of an earlier one.
const NO_METRICS_SAVE: &str = "/proc/sys/net/ipv4/tcp_no_metrics_save";

/// Moves this thread into a new network namespace.
pub(super) fn enter() -> Result<(), Failure> {
    network::enter()?;
    std::fs::write(NO_METRICS_SAVE, "1").map_err(Failure::io("making Linux forget paths"))
}

/// Linux's address at the end `here`.
pub(super) const HERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
/// The address at the end `there`.
pub(super) const THERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// The tap interface of our machine.
pub(super) const TAP: &str = "machine";

const READY_BUDGET: Duration = Duration::from_secs(120);
const BUILD_BUDGET: Duration = Duration::from_secs(1200);

/// The machine at the end `there`.
pub(super) enum Machine {
    Hosted(Child),
    Guest(Guest),
}

/// A wire with a machine at each end.
pub(super) struct Room {
    /// The wire. It ends before its interfaces are removed.
    wire: Option<Wire>,
    there: There,
}

enum There {
    Machine(Machine),
    /// When the sender is dropped, the thread and its network namespace end.
    Linux(std::sync::mpsc::Sender<()>, Option<std::thread::JoinHandle<()>>),
}

impl Room {
    /// Our machine at the other end of a wire with `spec` in both directions.
    pub(super) fn with_machine(
        wire: &Path,
        spec: &str,
        seed: u64,
        start: impl Fn() -> Result<Machine, Failure>,
    ) -> Result<Room, Failure> {
        make_interfaces()?;
        ip(&format!("tuntap add dev {TAP} mode tap"))?;
        ip("link add bridge type bridge")?;
        for name in [TAP, "there"] {
            ip(&format!("link set {name} master bridge"))?;
        }
        for name in [TAP, "there"] {
            ip(&format!("link set {name} up"))?;
        }
        // With ARP, Linux would answer on the bridge for the address at the end `here`. Then the
        // machine's frames for that address would bypass the wire.
        ip("link set bridge arp off up")?;
        let wire = Some(Wire::between(wire, "here", "there", spec, seed)?);
        let room = Room { wire, there: There::Machine(start()?) };
        let services = SERVICES
            .iter()
            .map(|service| (*service, SocketAddr::from((THERE, service.port))))
            .collect();
        let ready = watch_services(services).recv_timeout(READY_BUDGET);
        ready.map_err(|_| {
            Failure::broke(format_args!("the machine does not serve behind a wire with {spec}"))
        })?;
        Ok(room)
    }

    /// Linux at the other end of a wire with `spec` in both directions.
    pub(super) fn with_linux(wire: &Path, spec: &str, seed: u64) -> Result<Room, Failure> {
        make_interfaces()?;
        let wire = Some(Wire::between(wire, "here", "there", spec, seed)?);
        let (moved, thread_moved) = channel();
        let (begin, asked_to_begin) = channel();
        let (listens, listening) = channel();
        let (end, asked_to_end) = channel();
        let thread = std::thread::spawn(move || {
            let entered = enter().map(|()| gettid());
            let is_in = entered.is_ok();
            // The receiver exists until this thread ends, so the send cannot fail.
            let _ = moved.send(entered);
            if is_in && asked_to_begin.recv().is_ok() {
                let _ = listens.send(take_interface().and_then(|()| flows::listen()));
                let _ = asked_to_end.recv();
            }
        });
        let thread_id = thread_moved.recv().map_err(|_| Failure::broke("the peer is gone"))??;
        ip(&format!("link set there netns {thread_id}"))?;
        let _ = begin.send(());
        listening.recv().map_err(|_| Failure::broke("the peer is gone"))??;
        Ok(Room { wire, there: There::Linux(end, Some(thread)) })
    }

    /// Delivers a message of `bytes` to each of `users`. Flows fetch it later.
    pub(super) fn deliver(self, users: usize, bytes: usize) -> Result<(), Failure> {
        flows::deliver_to_machine(users, bytes)?().map(drop)
    }

    /// The total goodput of `count` parallel flows, in Mbit/s.
    pub(super) fn flows(self, way: Way, count: usize, bytes: usize) -> Result<f64, Failure> {
        let prepare = match (&self.there, way) {
            (There::Machine(_), Way::In) => flows::send_to_machine,
            (There::Machine(_), Way::Out) => flows::fetch_from_machine,
            (There::Linux(..), Way::In) => flows::send_to_linux,
            (There::Linux(..), Way::Out) => flows::fetch_from_linux,
        };
        let flows = (0..count).map(|place| prepare(place, bytes)).collect::<Result<Vec<_>, _>>()?;
        let running: Vec<_> = flows.into_iter().map(std::thread::spawn).collect();
        let goodputs = running
            .into_iter()
            .map(|flow| flow.join().map_err(|_| Failure::broke("a flow panicked"))?);
        goodputs.sum()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        match &mut self.there {
            There::Machine(Machine::Hosted(child)) => hold::end(child),
            There::Machine(Machine::Guest(guest)) => {
                guest.kill();
                while !matches!(
                    guest.next_event(READY_BUDGET),
                    Some(barepost::guest::Event::Ended) | None
                ) {}
            }
            There::Linux(end, thread) => {
                *end = channel().0;
                let _ = thread.take().map(std::thread::JoinHandle::join);
            }
        }
        self.wire = None;
        // An interface that was moved into a network namespace disappears with it.
        for name in ["bridge", TAP, "there", "here"] {
            let _ = ip(&format!("link delete {name}"));
        }
    }
}

/// Builds the program of the hosted machine.
pub(super) fn build_hosted(repository: &Repository, stop: &Stop) -> Result<PathBuf, Failure> {
    let mut cargo = hold::command("cargo");
    cargo.args([
        "build",
        "--quiet",
        "--release",
        "-p",
        "barepost-hosted",
        "--target-dir",
        "target",
    ]);
    hold::run_to_success(
        cargo.current_dir(repository.root()),
        "building the machine",
        BUILD_BUDGET,
        stop,
    )?;
    Ok(repository.target("release/barepost-hosted"))
}

/// Starts the hosted machine at the tap interface.
pub(super) fn start_hosted(program: &Path, folder: &Path) -> Result<Machine, Failure> {
    let mut command = hold::command(program);
    command.args(["run", "--hosted", "--tap", TAP, "--data"]).arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().map(Machine::Hosted).map_err(Failure::io("starting the machine"))
}

/// Makes both ends of the wire as tap interfaces.
fn make_interfaces() -> Result<(), Failure> {
    ip("tuntap add dev here mode tap")?;
    ip("tuntap add dev there mode tap")?;
    ip(&format!("addr add {HERE}/24 dev here"))?;
    ip("link set here up")
}

/// Configures the moved interface, in the other network namespace.
fn take_interface() -> Result<(), Failure> {
    ip(&format!("addr add {THERE}/24 dev there"))?;
    ip("link set there up")
}
