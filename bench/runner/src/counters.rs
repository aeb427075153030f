//! The instruction counters that the plugin in `bench/plugin` keeps while a guest runs.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use barepost::guest::Plugin;
use host::{Failure, Repository, Stop, hold};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// The number of pairs of address and count. The plugin has the same number.
const SLOTS: usize = 1 << 17;
const SLOT_BYTES: usize = 16;

/// Counters of a guest, in memory that the guest's QEMU shares.
pub(super) struct Counters {
    file: File,
    library: PathBuf,
    cores: u32,
}

/// Instructions executed so far, by the address of the block that they are in.
#[derive(Clone, Default)]
pub(super) struct Sample(BTreeMap<u64, u64>);

impl Counters {
    /// Builds the plugin and makes counters for a guest with one core.
    pub(super) fn new(repository: &Repository, stop: &Stop) -> Result<Counters, Failure> {
        Counters::for_cores(repository, 1, stop)
    }

    /// Builds the plugin and makes counters for a guest with several cores. Each core counts for
    /// itself.
    pub(super) fn for_cores(
        repository: &Repository,
        cores: u32,
        stop: &Stop,
    ) -> Result<Counters, Failure> {
        let library = repository.target("bench/instructions.so");
        std::fs::create_dir_all(repository.target("bench"))
            .map_err(Failure::io("making target/bench"))?;
        let mut compiler = hold::command("cc");
        compiler
            .args(["-O2", "-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(repository.path("bench/plugin/instructions.c"));
        hold::run_to_success(&mut compiler, "building the plugin", Duration::from_secs(60), stop)?;
        let doing = "making the counters";
        let descriptor = memfd_create("counters", MFdFlags::MFD_CLOEXEC)
            .map_err(|error| Failure::io(doing)(error.into()))?;
        let file = File::from(descriptor);
        file.set_len(u64::from(cores) * (SLOTS * SLOT_BYTES) as u64).map_err(Failure::io(doing))?;
        Ok(Counters { file, library, cores })
    }

    /// The plugin that keeps these counters, for a guest's setup.
    pub(super) fn plugin(&self) -> Plugin {
        let path = format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd());
        Plugin {
            library: self.library.clone(),
            arguments: vec![format!("counters={path}"), format!("cores={}", self.cores)],
        }
    }

    /// Reads the counters of the first core.
    pub(super) fn sample(&self) -> Result<Sample, Failure> {
        self.sample_of(0)
    }

    /// Reads the counters of each core.
    pub(super) fn samples(&self) -> Result<Vec<Sample>, Failure> {
        (0..self.cores).map(|core| self.sample_of(core)).collect()
    }

    /// The number of instructions that the core has executed so far.
    pub(super) fn total_of(&self, core: u32) -> Result<u64, Failure> {
        let table = self.table_of(core)?;
        let (words, _) = table.as_chunks::<8>();
        Ok(words.iter().skip(1).step_by(2).map(|count| u64::from_ne_bytes(*count)).sum())
    }

    fn table_of(&self, core: u32) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0; SLOTS * SLOT_BYTES];
        let place = u64::from(core) * bytes.len() as u64;
        self.file.read_exact_at(&mut bytes, place).map_err(Failure::io("reading the counters"))?;
        Ok(bytes)
    }

    fn sample_of(&self, core: u32) -> Result<Sample, Failure> {
        let table = self.table_of(core)?;
        let (slots, _) = table.as_chunks::<SLOT_BYTES>();
        let mut sample = BTreeMap::new();
        for slot in slots {
            let [address, count] = [slot.first_chunk::<8>(), slot.last_chunk::<8>()]
                .map(|half| half.map_or(0, |half| u64::from_ne_bytes(*half)));
            if count != 0 {
                let sum: &mut u64 = sample.entry(address).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        Ok(Sample(sample))
    }
}

impl Sample {
    /// The instructions executed since `earlier`.
    pub(super) fn since(&self, earlier: &Sample) -> Sample {
        let counts = self.0.iter().map(|(address, count)| {
            let before = earlier.0.get(address).copied().unwrap_or(0);
            (*address, count.saturating_sub(before))
        });
        Sample(counts.filter(|(_, count)| *count > 0).collect())
    }

    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    pub(super) fn by_address(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(address, count)| (*address, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_subtracted_by_address() {
        let earlier = Sample([(1, 10), (2, 5)].into());
        let later = Sample([(1, 10), (2, 9), (3, 7)].into());
        let between = later.since(&earlier);
        assert_eq!(between.by_address().collect::<Vec<_>>(), [(2, 4), (3, 7)]);
        assert_eq!(between.total(), 11);
    }
}
