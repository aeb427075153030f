//! `boot`: the time until the machine serves, and the resources of the host that an idle machine
//! uses.

use std::time::{Duration, Instant};

use barepost::guest::MachineType;
use host::{Failure, Repository, Stop};

use super::report::{Report, Row};
use super::statistics::median;
use super::workplace::{ConfiguredPasswords, Serving, Workplace};

const PEER: &str = "Postfix 3.7 + Dovecot 2.3, Debian 12 guest, recorded";
/// The peer's time from QEMU's start to its first SYN-ACK.
const PEER_READY_MS: f64 = 12_000.0;
/// The peer's memory in use when idle.
const PEER_MEMORY_MIB: f64 = 120.0;

const REPETITIONS: usize = 5;
const IDLE: Duration = Duration::from_secs(10);

pub(super) fn run(repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    let workplace = Workplace::new(repository, ConfiguredPasswords::Plain, stop)?;
    // The first boot makes the disk and the accounts. Later boots use them.
    let first = workplace.boot(MachineType::Q35, None)?;
    let mut rows =
        vec![Row::alone("first boot ever, QEMU's start to ready", "ms", millis(first.ready))];
    first.stop()?;
    for (machine, name) in [(MachineType::Q35, "q35"), (MachineType::Microvm, "microvm")] {
        let mut ready = Vec::new();
        let mut own = Vec::new();
        for _ in 0..REPETITIONS {
            let serving = workplace.boot(machine, None)?;
            ready.push(millis(serving.ready));
            own.extend(milliseconds_to_serving(&serving.lines));
            serving.stop()?;
        }
        let row = Row::alone(format!("{name}: QEMU's start to ready"), "ms", median(ready));
        rows.push(row.beside(PEER, PEER_READY_MS, None));
        rows.push(Row::alone(format!("{name}: first instruction to serving"), "ms", median(own)));
    }
    let bytes = workplace.image.metadata().map_err(Failure::io("measuring the image"))?.len();
    rows.push(Row::alone("image", "KiB", bytes as f64 / 1024.0));
    let mut serving = workplace.boot(MachineType::Q35, None)?;
    rows.extend(at_rest(&mut serving)?);
    serving.stop()?;
    Ok(Report {
        machine: format!("{} TCG, one core, 256 MiB, QEMU's user network", workplace.emulator()?),
        rows,
        note: "Ready: every service has greeted a client. The peer's figures are recorded ones (to its first SYN-ACK; \
               memory in use as its kernel reports it).",
        figure: None,
    })
}

/// The resources of an idle machine: the memory that it reports as used, and the memory and
/// processor time that QEMU uses on the host.
fn at_rest(serving: &mut Serving) -> Result<Vec<Row>, Failure> {
    serving.rest(Duration::from_secs(1))?;
    let before = processor_seconds(serving.process_id())?;
    let started = Instant::now();
    serving.rest(IDLE)?;
    let used = processor_seconds(serving.process_id())? - before;
    let percent = 100.0 * used / started.elapsed().as_secs_f64();
    let mut rows = Vec::new();
    if let Some(mib) = memory_mib(&serving.lines) {
        rows.push(Row::alone("memory taken by the idle machine", "MiB", mib).beside(
            PEER,
            PEER_MEMORY_MIB,
            None,
        ));
    }
    rows.push(Row::alone("resident memory of QEMU", "MiB", resident_mib(serving.process_id())?));
    rows.push(Row::alone("processor time of QEMU while idle", "% of a core", percent));
    Ok(rows)
}

/// The time from the guest's first instruction until it serves, from its console line
/// `DATE TIME [SECONDS.MICROS] serving …`.
fn milliseconds_to_serving(lines: &[String]) -> Option<f64> {
    let line = lines.iter().find(|line| line.contains("] serving "))?;
    let (_, time) = line.split_once('[')?;
    let (time, _) = time.split_once(']')?;
    let seconds: f64 = time.trim().parse().ok()?;
    Some(seconds * 1000.0)
}

/// The memory that the guest uses, from two of its console lines. The first line is
/// `memory: … KiB free, image N KiB at …, page tables N KiB`. When the guest has made all its
/// tables and pools, it prints `memory: … KiB for the engine, N KiB in use`.
fn memory_mib(lines: &[String]) -> Option<f64> {
    let number = |before: &str, after: &str| {
        let line = lines.iter().find(|line| {
            line.contains("] memory: ") && line.contains(before) && line.contains(after)
        })?;
        let (_, rest) = line.split_once(before)?;
        rest.split_once(after)?.0.trim().parse::<f64>().ok()
    };
    let kib = number(", image ", " KiB")?
        + number(", page tables ", " KiB")?
        + number(" for the engine, ", " KiB")?;
    Some(kib / 1024.0)
}

/// The user and kernel time of a process so far.
fn processor_seconds(process: u32) -> Result<f64, Failure> {
    // proc(5): fields 14 and 15 of stat, in ticks of 1/100 s. The second field may hold blanks but
    // ends with `)`.
    let stat = read(process, "stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    Ok(fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

/// The resident memory of a process of the host.
pub(super) fn resident_mib(process: u32) -> Result<f64, Failure> {
    let status = read(process, "status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kib = line.trim().trim_end_matches(" kB").parse::<f64>();
    kib.map(|kib| kib / 1024.0).map_err(|_| Failure::broke("QEMU's resident memory is not known"))
}

fn read(process: u32, name: &str) -> Result<String, Failure> {
    std::fs::read_to_string(format!("/proc/{process}/{name}"))
        .map_err(Failure::io("looking at QEMU"))
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn console_lines_of_the_guest_are_parsed() {
        let lines = [
            "2026-11-28 02:10:33Z [    0.001000] memory: 260232 KiB free, image 748 KiB at 0x100000, page tables 640 KiB",
            "2026-11-28 02:10:33Z [    0.002000] memory: 259592 KiB for the engine, 3220 KiB in use",
            "2026-11-28 02:10:33Z [    0.012345] serving a as b",
        ]
        .map(str::to_string);
        assert_eq!(milliseconds_to_serving(&lines), Some(12.345));
        assert_eq!(memory_mib(&lines), Some(4.5));
        assert_eq!(memory_mib(&[]), None);
    }

    #[test]
    fn the_time_and_memory_of_a_process_are_read() {
        let own = std::process::id();
        let before = processor_seconds(own).unwrap();
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(100) {}
        assert!(processor_seconds(own).unwrap() > before);
        assert!(resident_mib(own).unwrap() > 1.0);
    }
}
