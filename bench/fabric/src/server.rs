//! A core of the server: its engine and its machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use http::{Site, SiteFile};
use machine::{Entropy, Instant, Machine};
use server::configuration::Configuration;
use server::{Engine, MachineKeys, Next, Seed, Sizes};

use crate::card::{FabricMachine, Role};
use crate::disk::MemoryDisk;
use crate::trusting;
use crate::wire::End;

/// The server's address.
pub(crate) const ADDRESS: [u8; 4] = [10, 0, 0, 1];
/// The path of the file that clients request.
pub(crate) const PAGE: &str = "/4k.bin";
/// The size of [`PAGE`].
pub(crate) const PAGE_BYTES: usize = 4 << 10;
/// The path of a large file.
pub(crate) const LARGE: &str = "/1m.bin";
/// The size of the large file, in bytes.
pub const LARGE_BYTES: usize = 1 << 20;
/// The number of accounts that get mail. It is large, so that all cores own nearly the same number.
pub(crate) const ACCOUNTS: usize = 1024;

/// A fixed password hash. No client logs in.
const HASH: &str =
    "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$Oi7AsNkSF11/Jvy4J3BMjBTrWUr2l8Z3T8a7yI9rNnQ";

/// The memory of the machine per core.
const MEMORY_BYTES: u64 = 256 << 20;
const DISK_BYTES: usize = 2 << 30;

/// A core before it runs on its thread.
pub(crate) struct Beginning {
    seed: Seed,
    machine: FabricMachine,
}

/// A running core.
pub(crate) struct Core {
    engine: Engine,
    machine: FabricMachine,
    last_turn_ended: Instant,
    /// The duration of all turns that had work.
    busy: Duration,
}

/// The cores of a server, one for each of `ends`. `serves` becomes true when the server serves.
///
/// Errors: the reason, as text for people.
pub(crate) fn cores(ends: Vec<End>, serves: &Arc<AtomicBool>) -> Result<Vec<Beginning>, String> {
    let cores = ends.len() as u8;
    let sizes = Sizes::for_memory(MEMORY_BYTES * u64::from(cores), cores)
        .ok_or("there is too little memory")?;
    let configuration =
        Configuration::parse(&configuration()).map_err(|error| error.to_string())?;
    let mut machines = (0..).zip(ends).map(|(core, end)| {
        let disk = MemoryDisk::blank(if core == 0 { DISK_BYTES } else { 0 });
        FabricMachine::new(Role::Server { cores }, end, disk, Arc::clone(serves))
    });
    let mut first_machine = machines.next().ok_or("a machine has a core")?;
    let mut secret = [0; 32];
    first_machine.random(&mut secret);
    let papers =
        MachineKeys { certificates: vec![trusting::certificate()?], ..MachineKeys::default() };
    let (first, others) = server::seeds(configuration, site()?, papers, sizes, cores, secret);
    let first = Beginning { seed: first, machine: first_machine };
    let others =
        others.into_iter().zip(machines).map(|(seed, machine)| Beginning { seed, machine });
    Ok(std::iter::once(first).chain(others).collect())
}

impl Beginning {
    /// Makes the engine. Must be called on the core's thread, so that the engine's tables are
    /// allocated there.
    pub(crate) fn begin(self) -> Core {
        let Beginning { seed, mut machine } = self;
        let engine = Engine::new(seed, &mut machine);
        Core { engine, last_turn_ended: machine.now(), machine, busy: Duration::ZERO }
    }
}

impl Core {
    /// Runs one turn of the engine.
    ///
    /// Errors: the reason for which the engine has stopped.
    pub(crate) fn turn(&mut self) -> Result<(), String> {
        let next = self.engine.turn(&mut self.machine);
        let now = self.machine.now();
        if self.machine.take_has_worked() || next == Next::Now {
            self.busy += Duration::from_micros(now.since(self.last_turn_ended).0);
        }
        self.last_turn_ended = now;
        match next {
            Next::Now | Next::At(_) => Ok(()),
            Next::Stopped(ending) => Err(format!("the engine has stopped: {ending:?}")),
        }
    }

    /// The duration of all turns so far that had work.
    pub(crate) fn busy(&self) -> Duration {
        self.busy
    }
}

/// The address of an account.
pub(crate) fn account(number: usize) -> String {
    format!("user{}@fabric.test", number % ACCOUNTS)
}

fn configuration() -> String {
    let [a, b, c, d] = ADDRESS;
    let users: String = (0..ACCOUNTS)
        .map(|number| {
            format!("[[user]]\naddress = \"{}\"\npassword_hash = \"{HASH}\"\n", account(number))
        })
        .collect();
    format!(
        "hostname = \"mail.fabric.test\"\ndomains = [\"fabric.test\"]\n{users}[network]\naddress = \"{a}.{b}.{c}.{d}/24\"\n\
         [access]\nunthrottled_from = [\"{a}.{b}.{c}.0/24\"]\n"
    )
}

/// A site with two pages of bytes that do not repeat. It lives as long as the process, as a
/// machine's site does.
fn site() -> Result<Site, String> {
    let pages = [(PAGE, PAGE_BYTES), (LARGE, LARGE_BYTES)]
        .map(|(name, bytes)| (name.to_string(), file(bytes)));
    let pack = http::pack(&BTreeMap::from(pages)).map_err(|error| error.to_string())?;
    Site::new(pack.leak()).map_err(|error| error.to_string())
}

fn file(bytes: usize) -> SiteFile {
    SiteFile {
        content_type: "application/octet-stream".into(),
        modified: "Sun, 06 Nov 1994 08:49:37 GMT".into(),
        plain: (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect(),
        gzip: None,
        brotli: None,
    }
}
