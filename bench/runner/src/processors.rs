//! The busy time of a guest's processors: the host time that their threads used. A processor that
//! sleeps (HLT) uses none.

use std::fs;
use std::path::Path;

use host::Failure;

/// Linux counts the time of threads in hundredths of a second on every machine.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds of host time that each of the first `count` guest processors has used so far. `process`:
/// QEMU's process.
pub(super) fn taken(process: u32, count: u32) -> Result<Vec<f64>, Failure> {
    let doing = "looking at a guest's processors";
    let threads = fs::read_dir(format!("/proc/{process}/task")).map_err(Failure::io(doing))?;
    let mut taken = vec![None; count as usize];
    for thread in threads {
        let folder = thread.map_err(Failure::io(doing))?.path();
        if let Some((number, seconds)) = of_thread(&folder)
            && let Some(place) = taken.get_mut(number)
        {
            *place = Some(seconds);
        }
    }
    taken
        .into_iter()
        .collect::<Option<_>>()
        .ok_or_else(|| Failure::broke(format_args!("{doing}: one is not there")))
}

/// None if the thread is not the thread of a processor, or has ended.
fn of_thread(folder: &Path) -> Option<(usize, f64)> {
    parse(&fs::read_to_string(folder.join("stat")).ok()?)
}

/// Parses a line of /proc. QEMU names the thread of processor 0 `CPU 0/TCG`.
fn parse(line: &str) -> Option<(usize, f64)> {
    let (before, after) = line.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let number = name.strip_prefix("CPU ")?.split('/').next()?.parse().ok()?;
    // The fields 12 and 13 after the name are the ticks in user mode and in kernel mode.
    let mut figures = after.split_whitespace().skip(11).map(str::parse::<f64>);
    Some((number, (figures.next()?.ok()? + figures.next()?.ok()?) / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processors_time_is_its_threads_time() {
        let line =
            "4711 (CPU 2/TCG) S 1 4711 4711 0 -1 4194304 117 0 0 0 250 50 0 0 20 0 1 0 4881518";
        assert_eq!(parse(line), Some((2, 3.0)));
        assert_eq!(
            parse("4711 (qemu-system-x86) S 1 4711 4711 0 -1 4194304 117 0 0 0 250 50 0"),
            None
        );
    }
}
