//! Runs the engine in this process, at a tap interface, for `./barepost run --hosted` and for
//! benches. The hosted machine implements `Running`, as a guest does. It is a separate program, so
//! that users do not compile the engine for Linux.
//!
//! A guest needs `host::hold` so that it ends with `barepost`. The hosted machine is a thread, and
//! always ends with its process.
#![forbid(unsafe_code)]

use std::fmt::Display;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use barepost::guest::{End, Event, Running};
use barepost::run::{DataFolder, Hosting, LEAVE_PATIENCE};
use configuration::pack::{self, BadPack};
use host::Failure;
use hosted::{AttachError, Ending, Life, Setup, Tap};
use http::Site;
use server::{MachineKeys, Sizes};

/// The machine.
pub struct Hosted {
    life: Life,
    started: Instant,
    /// Whether the machine was killed. Its thread still runs, and this process ignores it.
    is_left: bool,
}

impl Hosting for Hosted {
    type Taps = Vec<Tap>;

    /// Retries while the interface is busy: a machine that was just killed may still hold it.
    fn attach(interface: &str, cores: u8) -> Result<Vec<Tap>, Failure> {
        let started = Instant::now();
        loop {
            match Tap::attach(interface, cores) {
                Ok(taps) => return Ok(taps),
                Err(AttachError::Busy) if started.elapsed() < LEAVE_PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(error) => {
                    let hint = match error {
                        AttachError::Missing => {
                            format!(" (create it with: ip tuntap add dev {interface} mode tap)")
                        }
                        AttachError::NoTap => {
                            " (one made with multi_queue is for several cores: --cores)".into()
                        }
                        _ => String::new(),
                    };
                    return Err(Failure::refused(format_args!("--tap {interface}: {error}{hint}")));
                }
            }
        }
    }

    fn start(
        taps: Vec<Tap>,
        cores: u8,
        data: &DataFolder,
        memory_mib: u32,
    ) -> Result<Hosted, Failure> {
        let started = Instant::now();
        let sizes = Sizes::for_memory(u64::from(memory_mib) << 20, cores).ok_or_else(|| {
            Failure::refused(format_args!(
                "--memory {memory_mib}M: this number of cores needs {} MiB",
                Sizes::memory_bytes_min(cores) >> 20
            ))
        })?;
        let (configuration, site) = (data.configuration.clone(), site(data)?);
        let (disk, papers) = (data.disk()?, papers(data)?);
        let setup = Setup { taps, cores, disk, configuration, site, papers, sizes };
        let life = Life::start(setup).map_err(Failure::io("starting the machine"))?;
        Ok(Hosted { life, started, is_left: false })
    }
}

impl Running for Hosted {
    fn started(&self) -> Instant {
        self.started
    }

    fn next_event(&self, patience: Duration) -> Option<Event> {
        if self.is_left {
            return Some(Event::Ended);
        }
        match self.life.next_line(patience) {
            Ok(line) => Some(Event::Line(line)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Event::Ended),
        }
    }

    fn ask_to_stop(&mut self) {
        self.life.ask_to_stop();
    }

    /// Ignores the machine from now on. A thread cannot be killed, but it ends with the process.
    fn kill(&mut self) {
        self.is_left = true;
    }

    fn end(self) -> Result<End, Failure> {
        if self.is_left {
            return Ok(End::Other("it was killed".into()));
        }
        Ok(match self.life.end() {
            Ending::Asked => End::Clean,
            Ending::Refused => {
                End::Other("it refused to start; see its console for the reason".into())
            }
            Ending::CutOff => End::Other("the tap interface was removed".into()),
            Ending::Panicked => {
                End::Other("it panicked; all acknowledged mail is on the disk".into())
            }
        })
    }
}

/// The names and keys that a machine needs: its certificates, signing keys and authorities.
fn papers(data: &DataFolder) -> Result<MachineKeys, Failure> {
    let authorities = data.authorities_path.as_ref().map(|path| unpacked(path, pack::authorities));
    Ok(MachineKeys {
        certificates: unpacked(&data.certificates_path, pack::certificates)?,
        signing_keys: unpacked(&data.signing_keys_path, pack::signing_keys)?.into(),
        authorities: authorities.transpose()?.unwrap_or_default(),
        ..MachineKeys::default()
    })
}

/// The site. It stays in memory as long as this process runs.
fn site(data: &DataFolder) -> Result<Site, Failure> {
    let Some(path) = &data.site_path else { return Ok(Site::default()) };
    let pack = std::fs::read(path).map_err(Failure::io("reading the packed site"))?;
    Site::new(pack.leak())
        .map_err(|error| Failure::broke(format_args!("{}: {error}", path.display())))
}

fn unpacked<T>(path: &Path, unpack: impl Fn(&[u8]) -> Result<T, BadPack>) -> Result<T, Failure> {
    let broke = |error: &dyn Display| Failure::broke(format_args!("{}: {error}", path.display()));
    let pack = std::fs::read(path).map_err(|error| broke(&error))?;
    unpack(&pack).map_err(|error| broke(&error))
}
