//! A guest for one measurement, with fresh data and free ports. Everything is removed at its end.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use barepost::guest::{
    Accelerator, End, Event, Guest, MachineType, Network, Plugin, Running, Setup,
};
use barepost::run::{DataFolder, watch_services};
use barepost::services::{Reached, SERVICES, base_max};
use host::{Failure, Repository, Stop, image, packages};

use super::beside::mailboxes::HASH;

const READY_BUDGET: Duration = Duration::from_secs(60);
const STOP_BUDGET: Duration = Duration::from_secs(10);

/// A folder for data, removed when this value is dropped, and the settings of a guest.
pub(super) struct Workplace {
    folder: PathBuf,
    data: DataFolder,
    pub(super) image: PathBuf,
    qemu: PathBuf,
    stop: Stop,
}

/// The form in which the accounts of a guest have their passwords in the configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfiguredPasswords {
    /// The plain passwords of the demo. The guest checks them after each start.
    Plain,
    /// The hash of [`super::beside::mailboxes::PASSWORD`]. A start computes no hash.
    Hashed,
}

/// A guest that serves.
pub(super) struct Serving {
    guest: Guest,
    /// The guest's port P is port base+P of 127.0.0.1.
    pub(super) base: u16,
    /// The time from QEMU's start until every service had sent its greeting.
    pub(super) ready: Duration,
    /// The console output from QEMU's start until every service had sent its greeting.
    pub(super) lines: Vec<String>,
    stop: Stop,
}

impl Workplace {
    /// A process has one workplace at a time.
    pub(super) fn new(
        repository: &Repository,
        passwords: ConfiguredPasswords,
        stop: &Stop,
    ) -> Result<Workplace, Failure> {
        let qemu = packages::program("qemu-system-x86_64", "qemu-system-x86", stop)?;
        let image = image::build(repository, stop)?;
        let folder = repository.target(format!("bench/data-{}", std::process::id()));
        let mut data = DataFolder::open(&folder)?;
        if passwords == ConfiguredPasswords::Hashed {
            let path = data.configuration_path.clone();
            // Only one process or value may have the folder open.
            drop(data);
            replace_passwords(&path)?;
            data = DataFolder::open(&folder)?;
        }
        Ok(Workplace { folder, data, image, qemu, stop: stop.clone() })
    }

    /// The version of the emulator, for a report: `QEMU 7.2.22`.
    pub(super) fn emulator(&self) -> Result<String, Failure> {
        let output = Command::new(&self.qemu)
            .arg("--version")
            .output()
            .map_err(Failure::io("asking QEMU its version"))?;
        let line = String::from_utf8_lossy(&output.stdout);
        let (_, version) = line.split_once(" version ").unwrap_or_default();
        Ok(format!("QEMU {}", version.split_whitespace().next().unwrap_or("of unknown version")))
    }

    /// Boots a guest on this data. It runs under TCG, because TCG can count instructions.
    pub(super) fn boot(
        &self,
        machine: MachineType,
        plugin: Option<Plugin>,
    ) -> Result<Serving, Failure> {
        let base = free_base()?;
        let guest = Guest::start(&Setup {
            qemu: self.qemu.clone(),
            image: self.image.clone(),
            machine,
            accelerator: Accelerator::Tcg,
            cores: 1,
            memory_mib: 256,
            network: Network::User { base },
            files: self.data.files(),
            plugin,
            linux: None,
        })?;
        let ready = watch_services(
            SERVICES.iter().map(|service| (*service, service.forwarded(base))).collect(),
        );
        let mut lines = Vec::new();
        while guest.started().elapsed() < READY_BUDGET {
            if let Ok(moment) = ready.try_recv() {
                let ready = moment.duration_since(guest.started());
                return Ok(Serving { guest, base, ready, lines, stop: self.stop.clone() });
            }
            match guest.next_event(Duration::from_millis(1)) {
                Some(Event::Line(line) | Event::Complaint(line)) => lines.push(line),
                Some(Event::Ended) => break,
                None => {}
            }
            refuse_if_stopped(&self.stop)?;
        }
        Err(Failure::broke(format_args!("the guest does not serve; it said\n{}", lines.join("\n"))))
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // If the folder cannot be removed, it stays under target/ and does no harm.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Serving {
    pub(super) fn process_id(&self) -> u32 {
        self.guest.process_id()
    }

    /// Leaves the guest alone for a while, and collects its output.
    pub(super) fn rest(&mut self, span: Duration) -> Result<(), Failure> {
        let started = Instant::now();
        while let Some(left) = span.checked_sub(started.elapsed()) {
            match self.guest.next_event(left.min(Duration::from_millis(20))) {
                Some(Event::Line(line) | Event::Complaint(line)) => self.lines.push(line),
                Some(Event::Ended) => return Err(Failure::broke("the guest is gone")),
                None => {}
            }
            refuse_if_stopped(&self.stop)?;
        }
        Ok(())
    }

    /// Stops the guest cleanly.
    pub(super) fn stop(mut self) -> Result<(), Failure> {
        self.guest.ask_to_stop();
        let asked = Instant::now();
        while asked.elapsed() < STOP_BUDGET {
            if let Some(Event::Ended) = self.guest.next_event(Duration::from_millis(20)) {
                return match self.guest.end()? {
                    End::Clean => Ok(()),
                    End::Other(how) => {
                        Err(Failure::broke(format_args!("the guest did not stop cleanly: {how}")))
                    }
                };
            }
        }
        Err(Failure::broke("the guest did not stop in time"))
    }
}

/// Replaces the plain passwords of a configuration by [`HASH`].
fn replace_passwords(configuration: &Path) -> Result<(), Failure> {
    let doing = "configuring a guest";
    let text = std::fs::read_to_string(configuration).map_err(Failure::io(doing))?;
    let replaced: Vec<String> = text
        .lines()
        .map(|line| match line.starts_with("password = ") {
            true => format!("password_hash = \"{HASH}\"\n"),
            false => format!("{line}\n"),
        })
        .collect();
    std::fs::write(configuration, replaced.concat()).map_err(Failure::io(doing))
}

pub(super) fn refuse_if_stopped(stop: &Stop) -> Result<(), Failure> {
    if stop.is_requested() { Err(Failure::broke("stopped")) } else { Ok(()) }
}

/// A base for which the ports of all services are free.
fn free_base() -> Result<u16, Failure> {
    let is_free = |base: &u16| {
        SERVICES.iter().all(|service| TcpListener::bind(service.forwarded(*base)).is_ok())
    };
    // Each process starts at another port, so that two processes do not choose the same ports.
    let first = 23_000_u16.saturating_add((std::process::id() % 100) as u16 * 200);
    let bases = (first..base_max()).step_by(200);
    bases.into_iter().find(is_free).ok_or_else(|| Failure::broke("no ports are free"))
}
