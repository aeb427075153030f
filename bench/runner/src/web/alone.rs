//! Measures our image alone, and the cost of a request by part of the program in the last round.
//! This measurement is for use during development of the server.

use super::load::{self, Generator, Target};
use super::parts::parts;
use super::{ROUNDS, SMALL, loads, name, summary, write_profile};
use crate::at_tap::{Equipment, INTERFACE, Place, Queues, service};
use crate::network::enter;
use crate::profile::Profiler;
use crate::report::{Report, Row};
use host::{Failure, Repository, Stop};

const MEMORY_MIB: u32 = 256;
const DISK_BYTES: u64 = 1 << 30;

/// Measures the loads of the 4 KB file with cases that contain `only`.
pub(crate) fn run_only(
    repository: &Repository,
    only: &str,
    stop: &Stop,
) -> Result<Report, Failure> {
    let equipment = Equipment {
        memory_mib: MEMORY_MIB,
        disk_bytes: DISK_BYTES,
        users: String::new(),
        network: "",
        signing_keys: &[],
    };
    let place = Place::with(repository, "web", equipment, stop)?;
    let generator = Generator::get(&repository.target("bench"), stop)?;
    let profiler = Profiler::new(repository, "web")?;
    // The measurement runs in a separate thread, because the thread enters a new network namespace
    // and cannot leave it. The programs that the thread starts end with the thread (`host::hold`).
    let measuring =
        || enter().and_then(|()| measure(repository, &place, &generator, &profiler, only, stop));
    let measuring = std::thread::scope(|scope| scope.spawn(measuring).join());
    let rows = measuring.map_err(|_| Failure::broke("the bench panicked"))??;
    Ok(Report {
        machine: format!(
            "QEMU, TCG, q35, one core, {MEMORY_MIB} MiB, virtio-net on a tap; wrk with one thread"
        ),
        rows,
        note: "Guest instructions are repeatable on any host. Where they went: target/bench/web-*.profile.",
        figure: None,
    })
}

fn measure(
    repository: &Repository,
    place: &Place,
    generator: &Generator,
    profiler: &Profiler,
    only: &str,
    stop: &Stop,
) -> Result<Vec<Row>, Failure> {
    let serving = place.boot(repository, 1, Queues::One)?;
    let idle = load::idle(serving.counters())?;
    let url = format!("http://{}", service(80));
    let target = Target { url, interface: INTERFACE, counters: serving.counters(), idle };
    let mut rows = Vec::new();
    for load in loads().filter(|load| load.file == SMALL && name(*load).contains(only)) {
        let (mut outcomes, mut of_parts) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let measured = generator.put(load, &target, stop)?;
            outcomes.push(measured.outcome);
            of_parts = parts(&profiler.functions, &measured.executed, measured.requests)?;
            write_profile(profiler, load, &measured)?;
        }
        let outcome = summary(&outcomes);
        rows.push(Row::alone(name(load), "guest instructions", outcome.instructions));
        rows.extend(of_parts.into_iter().map(|(part, count)| {
            Row::alone(format!("{}, of these: {part}", name(load)), "guest instructions", count)
        }));
        rows.push(Row::alone(name(load), "packets", outcome.packets));
    }
    serving.stop()?;
    Ok(rows)
}
