//! Boots our image with several cores on a tap interface and counts instructions by core. Benches
//! use it to measure how cores affect each other.
//!
//! Call it from a thread that has entered its own network namespace (see `network`). The tap
//! interface is created in that namespace.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use barepost::guest::{Accelerator, End, Event, Guest, MachineType, Network, Running, Setup};
use barepost::run::DataFolder;
use host::{Failure, Repository, Stop, hold, image, packages};

use super::counters::{Counters, Sample};
use super::network::ip;
use super::workplace::refuse_if_stopped;

pub(super) const INTERFACE: &str = "ours";
pub(super) const LINUX: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub(super) const MACHINE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// A page of 4 KB of incompressible data.
pub(super) const PAGE: &str = "4k.bin";
const PAGE_BYTES: u32 = 4 << 10;
/// Accounts that receive mail. There are enough that each core owns about the same number.
pub(super) const ACCOUNTS: u32 = 1024;
/// A fixed password hash. No client logs in.
const HASH: &str =
    "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$Oi7AsNkSF11/Jvy4J3BMjBTrWUr2l8Z3T8a7yI9rNnQ";

const MEMORY_MIB: u32 = 512;
const DISK_BYTES: u64 = 1 << 30;
const READY_BUDGET: Duration = Duration::from_secs(60);
const STOP_BUDGET: Duration = Duration::from_secs(20);
const LOAD_BUDGET: Duration = Duration::from_secs(60);

/// The number of queues of the guest's network card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Queues {
    /// One queue. The first core receives the frames of all cores.
    One,
    /// One queue for each core.
    Each,
}

/// The settings of a guest.
pub(super) struct Equipment {
    pub(super) memory_mib: u32,
    pub(super) disk_bytes: u64,
    /// The guest's accounts, as sections of the configuration, and further sections.
    pub(super) users: String,
    /// Lines of the `[network]` table of the configuration.
    pub(super) network: &'static str,
    /// DKIM keys that the guest signs with: the file name, which has the selector, and the contents
    /// of the file. If there are none, new keys are created.
    pub(super) signing_keys: &'static [(&'static str, &'static str)],
}

/// The QEMU program, the image and the data folder with which a bench starts its guests.
pub(super) struct Place {
    qemu: PathBuf,
    image: PathBuf,
    /// Removed when this value is dropped.
    pub(super) folder: PathBuf,
    pub(super) memory_mib: u32,
    pub(super) data: DataFolder,
    stop: Stop,
}

/// A running guest.
pub(super) struct Serving {
    guest: Guest,
    counters: Counters,
    stop: Stop,
}

impl Place {
    /// Makes a workplace with accounts that receive mail. `name`: the name of the bench.
    pub(super) fn make(repository: &Repository, name: &str, stop: &Stop) -> Result<Place, Failure> {
        let users = (0..ACCOUNTS)
            .map(|number| {
                format!("[[user]]\naddress = \"{}\"\npassword_hash = \"{HASH}\"\n", account(number))
            })
            .collect();
        let equipment = Equipment {
            memory_mib: MEMORY_MIB,
            disk_bytes: DISK_BYTES,
            users,
            network: "",
            signing_keys: &[],
        };
        Place::with(repository, name, equipment, stop)
    }

    /// Makes a workplace with this setup.
    pub(super) fn with(
        repository: &Repository,
        name: &str,
        equipment: Equipment,
        stop: &Stop,
    ) -> Result<Place, Failure> {
        let Equipment { memory_mib, disk_bytes, users, network, signing_keys } = equipment;
        packages::program("ip", "iproute2", stop)?;
        let qemu = packages::program("qemu-system-x86_64", "qemu-system-x86", stop)?;
        let image = image::build(repository, stop)?;
        let folder = repository.target(format!("bench/{name}-{}", std::process::id()));
        let doing = "making a site";
        std::fs::create_dir_all(folder.join("site")).map_err(Failure::io(doing))?;
        let page: Vec<u8> =
            (0..PAGE_BYTES).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        std::fs::write(folder.join("site").join(PAGE), page).map_err(Failure::io(doing))?;
        let text = format!(
            "hostname = \"mail.barepost.test\"\ndomains = [\"barepost.test\"]\n{users}[network]\naddress = \"{MACHINE}/24\"\n{network}\
             [web]\nsite = \"site/\"\n[access]\nunthrottled_from = [\"{LINUX}/32\"]\nplaintext_auth_from = [\"{LINUX}/32\"]\n"
        );
        std::fs::write(folder.join("barepost.toml"), text)
            .map_err(Failure::io("configuring a guest"))?;
        for (name, key) in signing_keys {
            let path = folder.join("dkim").join(name);
            let written = std::fs::create_dir_all(folder.join("dkim"))
                .and_then(|()| std::fs::write(path, key));
            written.map_err(Failure::io("writing a key"))?;
        }
        let disk = std::fs::File::create(folder.join("disk.img"))
            .and_then(|file| file.set_len(disk_bytes));
        disk.map_err(Failure::io("making a disk"))?;
        let data = DataFolder::open(&folder)?;
        data.pass_lock_on()?;
        Ok(Place { qemu, image, folder, memory_mib, data, stop: stop.clone() })
    }

    /// Boots a guest with this many cores, under TCG.
    pub(super) fn boot(
        &self,
        repository: &Repository,
        cores: u32,
        queues: Queues,
    ) -> Result<Serving, Failure> {
        let queues = if queues == Queues::Each { cores } else { 1 };
        make_interface(queues)?;
        let counters = Counters::for_cores(repository, cores, &self.stop)?;
        let guest = Guest::start(&Setup {
            qemu: self.qemu.clone(),
            image: self.image.clone(),
            machine: MachineType::Q35,
            accelerator: Accelerator::Tcg,
            cores,
            memory_mib: self.memory_mib,
            network: Network::Tap { interface: INTERFACE.into(), queues },
            files: self.data.files(),
            plugin: Some(counters.plugin()),
            linux: None,
        })?;
        let serving = Serving { guest, counters, stop: self.stop.clone() };
        serving.await_ready()?;
        Ok(serving)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // If the folder cannot be removed, it stays under target/ and does no harm.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Makes the guest's tap interface and gives it the host's address.
pub(super) fn make_interface(queues: u32) -> Result<(), Failure> {
    let several = if queues > 1 { " multi_queue" } else { "" };
    ip(&format!("tuntap add dev {INTERFACE} mode tap vnet_hdr{several}"))?;
    ip(&format!("addr add {LINUX}/24 dev {INTERFACE}"))?;
    ip(&format!("link set {INTERFACE} up"))
}

/// The address of an account.
pub(super) fn account(number: u32) -> String {
    format!("user{}@barepost.test", number % ACCOUNTS)
}

/// The address of a service of the guest.
pub(super) fn service(port: u16) -> SocketAddr {
    SocketAddr::from((MACHINE, port))
}

impl Serving {
    fn await_ready(&self) -> Result<(), Failure> {
        let mut printed = Vec::new();
        while self.guest.started().elapsed() < READY_BUDGET {
            refuse_if_stopped(&self.stop)?;
            if TcpStream::connect_timeout(&service(80), Duration::from_millis(500)).is_ok() {
                return Ok(());
            }
            match self.guest.next_event(Duration::from_millis(20)) {
                Some(Event::Line(line) | Event::Complaint(line)) => printed.push(line),
                Some(Event::Ended) => break,
                None => {}
            }
        }
        Err(Failure::broke(format_args!(
            "the guest does not serve; it said\n{}",
            printed.join("\n")
        )))
    }

    /// Counts what each core executes while `work` runs and for `settle` after it.
    pub(super) fn during<T>(
        &self,
        settle: Duration,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(Vec<Sample>, T), Failure> {
        refuse_if_stopped(&self.stop)?;
        let before = self.counters.samples()?;
        let done = work()?;
        std::thread::sleep(settle);
        let after = self.counters.samples()?;
        Ok((after.iter().zip(&before).map(|(after, before)| after.since(before)).collect(), done))
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The number of instructions that a core has executed so far.
    pub(super) fn total_of(&self, core: u32) -> Result<u64, Failure> {
        self.counters.total_of(core)
    }

    /// The process id of QEMU.
    pub(super) fn process_id(&self) -> u32 {
        self.guest.process_id()
    }

    /// Stops the guest cleanly and removes its interface. Returns the console lines
    /// that were not read before.
    pub(super) fn stop(mut self) -> Result<Vec<String>, Failure> {
        self.guest.ask_to_stop();
        let (asked, mut printed) = (Instant::now(), Vec::new());
        while asked.elapsed() < STOP_BUDGET {
            match self.guest.next_event(Duration::from_millis(20)) {
                Some(Event::Line(line) | Event::Complaint(line)) => printed.push(line),
                Some(Event::Ended) => {
                    return match self.guest.end()? {
                        End::Clean => ip(&format!("link delete {INTERFACE}")).map(|()| printed),
                        End::Other(how) => Err(Failure::broke(format_args!(
                            "the guest did not stop cleanly: {how}"
                        ))),
                    };
                }
                None => {}
            }
        }
        Err(Failure::broke("the guest did not stop in time"))
    }
}

/// Runs h2load (HTTP/1.1) for this many pages, with `options`.
///
/// Errors: not every request got a page.
pub(super) fn ask_for_pages(
    h2load: &Path,
    requests: u32,
    options: &[String],
) -> Result<(), Failure> {
    let doing = "running h2load";
    let mut command = hold::command(h2load);
    command
        .args(["--h1", "-t1", &format!("-n{requests}")])
        .args(options)
        .arg(format!("http://{MACHINE}/{PAGE}"));
    let mut running = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Failure::io(doing))?;
    let began = Instant::now();
    while running.try_wait().map_err(Failure::io(doing))?.is_none() {
        if began.elapsed() > LOAD_BUDGET {
            // If this fails, the process has ended already.
            let _ = running.kill();
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = running.wait_with_output().map_err(Failure::io(doing))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if printed.contains(&format!(" {requests} succeeded, 0 failed, 0 errored, 0 timeout")) {
        return Ok(());
    }
    Err(Failure::broke(format_args!(
        "h2load said\n{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    )))
}
