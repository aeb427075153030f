//! Goodput over bad wires: our TCP beside Linux's TCP, over the same wire with the same seed, in
//! the same run.
//!
//! Linux is at one end of the wire. At the other end is first our machine. Then Linux is at both
//! ends, each in its own network namespace. Our machine receives a message in chunks (BDAT) and
//! acknowledges each chunk. It sends a message for RETR. The reference server does the same without
//! a mail server. A flow ends when all its bytes have arrived, or after [`FLOW_BUDGET`]. Its
//! goodput counts the bytes that had arrived by then.

mod flows;
mod room;
mod wire;

use std::path::{Path, PathBuf};
use std::time::Duration;

use barepost::guest::{Accelerator, Guest, MachineType, Network, Setup};
use barepost::run::DataFolder;
use host::{Failure, Repository, Stop, image, packages};

use super::report::{Report, Row};
use super::workplace::refuse_if_stopped;
use flows::Way;
use room::{Machine, Room};

pub(super) use wire::Wire;

const PEER: &str = "Linux (CUBIC), same wire and seed";
/// The required part of Linux's goodput.
const TARGET: f64 = 0.9;
/// The longest duration of a flow. A slower flow is judged by the bytes that have arrived.
const FLOW_BUDGET: Duration = Duration::from_secs(12);
const SEED: u64 = 1;

/// The number of parallel flows, for wires that a single flow cannot fill because of losses. Two
/// flows can differ by a factor of two, because each loses other frames, and only some losses cause
/// a timeout.
const FLOWS: usize = 8;

/// Wires: name, specification besides the rate (for both directions), and the number of flows.
/// Delays in a name are round-trip times.
const WIRES: &[(&str, &str, usize)] = &[
    ("0 ms", "", 1),
    ("0 ms, 1 % lost", "loss=0.01", 1),
    ("0 ms, 5 % lost", "loss=0.05", FLOWS),
    ("20 ms", "delay=10", 1),
    ("20 ms, 1 % lost", "delay=10,loss=0.01", FLOWS),
    ("20 ms, 5 % lost", "delay=10,loss=0.05", FLOWS),
    ("100 ms", "delay=50", 1),
    ("100 ms, 1 % lost", "delay=50,loss=0.01", FLOWS),
    ("100 ms, 5 % lost", "delay=50,loss=0.05", FLOWS),
    ("20 ms, 2 % overtaken", "delay=10,reorder=0.02", 1),
    ("20 ms, 2 % repeated", "delay=10,repeat=0.02", 1),
    ("20 ms, 1 % corrupted", "delay=10,corrupt=0.01", FLOWS),
];

/// The kind of machine. It determines the rate of the wire, which is low enough that neither side's
/// processor limits the flow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hosted,
    Guest,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Hosted => "hosted, 200 Mbit/s",
            Kind::Guest => "QEMU, 20 Mbit/s",
        }
    }

    /// The wire's rate, with a queue of 50 ms.
    fn wire(self) -> &'static str {
        match self {
            Kind::Hosted => "rate=200,queue=1220",
            Kind::Guest => "rate=20,queue=122",
        }
    }

    /// The bytes of one flow: about as many as the wire carries in a second.
    fn flow_bytes(self) -> usize {
        match self {
            Kind::Hosted => 32 << 20,
            Kind::Guest => 4 << 20,
        }
    }
}

/// The programs and folders of the measurement.
struct Tools {
    wire: PathBuf,
    hosted: PathBuf,
    qemu: PathBuf,
    image: PathBuf,
    folder: PathBuf,
}

pub(super) fn run(repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    run_only(repository, "", stop)
}

/// Measures the rows with cases that contain `only`.
pub(super) fn run_only(
    repository: &Repository,
    only: &str,
    stop: &Stop,
) -> Result<Report, Failure> {
    let tools = Tools::get(repository, stop)?;
    let (stop_of_thread, only) = (stop.clone(), only.to_owned());
    // The measurement runs in a separate thread, because the thread enters a new network namespace
    // and cannot leave it. The programs that the thread starts end with the thread (`host::hold`).
    let measuring = std::thread::spawn(move || {
        let rows = room::enter().and_then(|()| measure(&tools, &only, &stop_of_thread));
        // A remainder under target/ does no harm.
        let _ = std::fs::remove_dir_all(&tools.folder);
        rows
    });
    let rows = measuring.join().map_err(|_| Failure::broke("the bench panicked"))??;
    Ok(Report {
        machine: "one core, 256 MiB, on a tap interface behind tests/wire; QEMU: q35, TCG".into(),
        rows,
        note: "In: a message by BDAT from Linux to the machine. Out: a message by RETR from the machine to Linux. The \
               goodput of several flows is that of all together. More is better, and a ratio of 1 is as good as Linux. Delays are there and back; all else happens in both directions.",
        figure: None,
    })
}

impl Tools {
    fn get(repository: &Repository, stop: &Stop) -> Result<Tools, Failure> {
        packages::program("ip", "iproute2", stop)?;
        let qemu = packages::program("qemu-system-x86_64", "qemu-system-x86", stop)?;
        let image = image::build(repository, stop)?;
        let (wire, hosted) =
            (Wire::build(repository, stop)?, room::build_hosted(repository, stop)?);
        let folder = repository.target(format!("bench/goodput-{}", std::process::id()));
        Ok(Tools { wire, hosted, qemu, image, folder })
    }
}

fn measure(tools: &Tools, only: &str, stop: &Stop) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for kind in [Kind::Hosted, Kind::Guest] {
        let folder = tools.folder.join(if kind == Kind::Hosted { "hosted" } else { "guest" });
        let cases: Vec<Case> = cases(kind).filter(|case| case.name().contains(only)).collect();
        if cases.is_empty() {
            continue;
        }
        configure(&folder)?;
        let start = || start(kind, tools, &folder);
        // Delivers the messages that the flows fetch later.
        Room::with_machine(&tools.wire, kind.wire(), SEED, start)?
            .deliver(FLOWS, kind.flow_bytes())?;
        for case in cases {
            refuse_if_stopped(stop)?;
            let Case { way, wire, flows, .. } = case;
            let spec = format!("{},{wire}", kind.wire());
            let ours = Room::with_machine(&tools.wire, &spec, SEED, start)?.flows(
                way,
                flows,
                kind.flow_bytes(),
            )?;
            let linux =
                Room::with_linux(&tools.wire, &spec, SEED)?.flows(way, flows, kind.flow_bytes())?;
            host::remark(format_args!("{}: {ours:.2} beside {linux:.2} Mbit/s", case.name()));
            rows.push(Row::alone(case.name(), "Mbit/s", ours).ahead_of(PEER, linux, Some(TARGET)));
        }
    }
    Ok(rows)
}

/// The case that one row measures.
struct Case {
    kind: Kind,
    name: &'static str,
    wire: &'static str,
    flows: usize,
    way: Way,
}

impl Case {
    fn name(&self) -> String {
        let flows = if self.flows > 1 { format!(", {} flows", self.flows) } else { String::new() };
        format!("{}, {}: {}{flows}", self.kind.name(), self.name, self.way)
    }
}

fn cases(kind: Kind) -> impl Iterator<Item = Case> {
    WIRES.iter().flat_map(move |(name, wire, flows)| {
        [Way::In, Way::Out].map(|way| Case { kind, name, wire, flows: *flows, way })
    })
}

fn configure(folder: &Path) -> Result<(), Failure> {
    let doing = "making a data folder";
    std::fs::create_dir_all(folder).map_err(Failure::io(doing))?;
    let users: String = (0..FLOWS)
        .map(|place| {
            format!("[[user]]\naddress = \"{}\"\npassword = \"lovelace\"\n", flows::user(place))
        })
        .collect();
    let text = format!(
        "hostname = \"mail.barepost.test\"\ndomains = [\"barepost.test\"]\n[network]\naddress = \"{}/24\"\n{users}\
         [access]\nplaintext_auth_from = [\"{}/32\"]\nunthrottled_from = [\"{}/32\"]\n",
        room::THERE,
        room::HERE,
        room::HERE
    );
    std::fs::write(folder.join("barepost.toml"), text).map_err(Failure::io(doing))
}

fn start(kind: Kind, tools: &Tools, folder: &Path) -> Result<Machine, Failure> {
    match kind {
        Kind::Hosted => room::start_hosted(&tools.hosted, folder),
        Kind::Guest => {
            let data = DataFolder::open(folder)?;
            data.pass_lock_on()?;
            let guest = Guest::start(&Setup {
                qemu: tools.qemu.clone(),
                image: tools.image.clone(),
                machine: MachineType::Q35,
                accelerator: Accelerator::Tcg,
                cores: 1,
                memory_mib: 256,
                network: Network::Tap { interface: room::TAP.into(), queues: 1 },
                files: data.files(),
                plugin: None,
                linux: None,
            })?;
            Ok(Machine::Guest(guest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, cases};

    #[test]
    fn every_case_can_be_measured_alone() {
        let names: Vec<String> = [Kind::Hosted, Kind::Guest]
            .into_iter()
            .flat_map(cases)
            .map(|case| case.name())
            .collect();
        assert_eq!(names.len(), 48);
        for name in &names {
            assert_eq!(names.iter().filter(|other| other.contains(name)).count(), 1, "{name}");
        }
    }
}
