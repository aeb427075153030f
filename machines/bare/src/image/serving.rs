//! The machine's life when it serves mail: the loop around the engine, and the configuration that it starts with.

use bare::boot;
use bare::{Memory, end, fw_cfg};
use http::Site;
use machine::Machine;
use server::configuration::Configuration;
use server::{Ending, Engine, Next, Sizes};

/// What the configuration is called where QEMU hands it over.
const CONFIGURATION_FILE: &str = "opt/barepost/barepost.toml";

/// What the packed site is called there.
const SITE_FILE: &str = "opt/barepost/site.pack";

/// There is one engine, on the first core.
pub(super) const CORES_MAX: usize = 1;

/// The whole of the machine's life: one turn after the other, and sleep where there is nothing to do.
pub(super) fn run(machine: boot::Machine) -> ! {
    let mut machine = machine.first;
    let site = site();
    // The site stays for ever: what it takes is not the engine's.
    let memory_bytes = machine.memory().total.saturating_sub(site.bytes()) as u64;
    let Some(sizes) = Sizes::for_memory(memory_bytes, 1) else {
        let (has, needs) = (memory_bytes >> 20, Sizes::memory_bytes_min(1) >> 20);
        end::refuse(format_args!("{has} MiB of memory are left for the engine, and it needs {needs}"));
    };
    let mut secret = [0; 32];
    machine.random(&mut secret);
    let (seed, _) = server::seeds(configuration(), site, sizes, 1, secret);
    let mut engine = Engine::new(seed, &mut machine);
    let Memory { total, free } = machine.memory();
    machine.print(format_args!(
        "memory: {} KiB for the engine, {} KiB of them taken",
        total >> 10,
        (total - free) >> 10
    ));
    let mut crash_sector = None;
    loop {
        match engine.turn(&mut machine) {
            Next::Now => {}
            Next::At(at) => machine.idle(at),
            Next::Stopped(Ending::Asked) => end::stop(end::Status::Stopped),
            Next::Stopped(Ending::Refused) => end::stop(end::Status::Refused),
        }
        // Not before the disk is known to be ours: nothing is written to any other.
        if crash_sector.is_none() {
            crash_sector = engine.crash_sector().inspect(|sector| end::set_crash_sector(*sector));
        }
    }
}

/// The packed site, read once and kept for ever; the empty one if there is none.
fn site() -> Site {
    let Some(file) = fw_cfg::file(SITE_FILE) else { return Site::default() };
    match Site::new(file.leak()) {
        Ok(site) => site,
        Err(error) => end::refuse(format_args!("{SITE_FILE}: {error}")),
    }
}

fn configuration() -> Configuration {
    let Some(file) = fw_cfg::file(CONFIGURATION_FILE) else {
        end::refuse(format_args!("there is no configuration: QEMU gives it as {CONFIGURATION_FILE}"));
    };
    let Ok(text) = core::str::from_utf8(&file) else {
        end::refuse(format_args!("barepost.toml is not UTF-8"));
    };
    match Configuration::parse(text) {
        Ok(configuration) => configuration,
        Err(error) => end::refuse(format_args!("barepost.toml:{error}")),
    }
}
