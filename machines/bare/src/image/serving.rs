//! The mail server's image. It reads the configuration, and runs the engine of each core in a loop.

use bare::{BareMachine, Memory, boot, end, fw_cfg};
use core::sync::atomic::{
    AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Relaxed, Ordering::Release,
};
use http::Site;
use machine::{Entropy, Machine};
use server::configuration::Configuration;
use server::pack::{self, BadPack};
use server::{Ending, Engine, MachineKeys, Next, Seed, Sizes};

/// The name of the configuration file from QEMU.
const CONFIGURATION_FILE: &str = "opt/barepost/barepost.toml";

/// The name of the file with the packed site.
const SITE_FILE: &str = "opt/barepost/site.pack";

/// The name of the file with the certificates and their keys.
const CERTIFICATES_FILE: &str = "opt/barepost/certificates.pack";

/// The name of the file with the keys that sign messages.
const SIGNING_KEYS_FILE: &str = "opt/barepost/signing-keys.pack";

/// The name of the file with the certificates of authorities.
const AUTHORITIES_FILE: &str = "opt/barepost/authorities.pack";

/// The number of bytes of memory that all engines together may take after they are created.
static PROMISED: AtomicU64 = AtomicU64::new(0);

/// The number of cores without an engine yet.
static UNMADE: AtomicUsize = AtomicUsize::new(0);

/// Gives every core its engine, and runs the engine of the first core.
pub(super) fn run(machine: boot::Machine) -> ! {
    let boot::Machine { first: mut machine, others } = machine;
    let cores = 1 + others.len() as u8;
    let site = site();
    // The site stays in memory for ever, and its memory is not available to the engines.
    let memory_bytes = machine.memory().total.saturating_sub(site.bytes()) as u64;
    let Some(sizes) = Sizes::for_memory(memory_bytes, cores) else {
        let (has, needs) = (memory_bytes >> 20, Sizes::memory_bytes_min(cores) >> 20);
        end::refuse(format_args!(
            "not enough memory: {cores} cores need {needs} MiB, but only {has} MiB are free"
        ));
    };
    let mut secret = [0; 32];
    machine.random(&mut secret);
    let (seed, seeds) = server::seeds(configuration(), site, papers(), sizes, cores, secret);
    PROMISED.store(sizes.promised_bytes() * u64::from(cores), Relaxed);
    UNMADE.store(usize::from(cores), Release);
    for (core, seed) in others.into_iter().zip(seeds) {
        core.live(move |machine| {
            live(machine, seed);
        });
    }
    match live(machine, seed) {
        Ending::Asked => end::stop(end::Status::Stopped),
        Ending::Refused => end::stop(end::Status::Refused),
    }
}

/// Runs the loop of a core: one turn after another, and a sleep when no work is due.
fn live(mut machine: BareMachine, seed: Seed) -> Ending {
    let mut engine = Engine::new(seed, &mut machine);
    if UNMADE.fetch_sub(1, AcqRel) == 1 {
        check_memory(&mut machine);
    }
    let mut crash_sector = None;
    loop {
        match engine.turn(&mut machine) {
            Next::Now => {}
            Next::At(at) => machine.idle(at),
            Next::Stopped(ending) => return ending,
        }
        // The crash sector is known only when the engine has recognised the disk as its own.
        // Nothing is written to any other disk.
        if crash_sector.is_none() {
            crash_sector = engine.crash_sector().inspect(|sector| end::set_crash_sector(*sector));
        }
    }
}

/// Reports the memory. The machine refuses to serve if its free memory, without the reserve, is
/// less than the engines may still take. So no client can exhaust the memory.
fn check_memory(machine: &mut BareMachine) {
    let Memory { total, free } = machine.memory();
    let promised = PROMISED.load(Relaxed);
    let (taken, left) = (total - free, free.saturating_sub(Memory::reserve(total)) as u64);
    let (total, taken, promised_kib) = (total >> 10, taken >> 10, promised >> 10);
    machine.print(format_args!(
        "memory: {total} KiB for the engine, {taken} KiB in use, {promised_kib} KiB reserved for clients and the index"
    ));
    if promised > left {
        end::refuse(format_args!(
            "not enough memory: {promised_kib} KiB are needed for clients and the index, but only {} KiB are free",
            left >> 10
        ));
    }
}

/// The packed site, read once and kept for ever. Empty if the file is missing.
fn site() -> Site {
    let Some(file) = fw_cfg::file(SITE_FILE) else { return Site::default() };
    match Site::new(file.leak()) {
        Ok(site) => site,
        Err(error) => end::refuse(format_args!("{SITE_FILE}: {error}")),
    }
}

/// The certificates and keys from QEMU.
fn papers() -> MachineKeys {
    MachineKeys {
        certificates: unpacked(CERTIFICATES_FILE, pack::certificates),
        signing_keys: unpacked(SIGNING_KEYS_FILE, pack::signing_keys).into(),
        authorities: unpacked(AUTHORITIES_FILE, pack::authorities),
        ..MachineKeys::default()
    }
}

/// The contents of the packed file with this name, or the default if the file is missing. The
/// file's memory is wiped, because it may contain keys.
fn unpacked<T: Default>(name: &str, unpack: impl Fn(&[u8]) -> Result<T, BadPack>) -> T {
    let Some(mut file) = fw_cfg::file(name) else { return T::default() };
    let all = unpack(&file);
    file.fill(0);
    match all {
        Ok(all) => all,
        Err(error) => end::refuse(format_args!("{name}: {error}")),
    }
}

fn configuration() -> Configuration {
    let Some(file) = fw_cfg::file(CONFIGURATION_FILE) else {
        end::refuse(format_args!(
            "no configuration: pass it with QEMU's -fw_cfg name={CONFIGURATION_FILE},file=PATH"
        ));
    };
    let Ok(text) = core::str::from_utf8(&file) else {
        end::refuse(format_args!("barepost.toml is not UTF-8"));
    };
    match Configuration::parse(text) {
        Ok(configuration) => configuration,
        Err(error) => end::refuse(format_args!("barepost.toml:{error}")),
    }
}
