//! Profiles: counts instructions by address, and reports them by function.
//!
//! There are two reports. The first lists functions as compiled: the cost of a function includes
//! the code that was inlined into it. The second lists functions as written: an instruction belongs
//! to the function that contains its source line. Counts are by block. If a block begins in one
//! function's lines and continues in another's, all of it counts for the first.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use host::{Failure, Repository, image};

use super::counters::Sample;

/// Records where the instructions of our image were executed in a bench:
/// `target/bench/BENCH-CASE.profile`.
pub(super) struct Profiler {
    pub(super) functions: Functions,
    folder: PathBuf,
    bench: &'static str,
}

impl Profiler {
    /// A profiler for the present image.
    pub(super) fn new(repository: &Repository, bench: &'static str) -> Result<Profiler, Failure> {
        Ok(Profiler {
            functions: Functions::read(&image::unstripped(repository))?,
            folder: repository.target("bench"),
            bench,
        })
    }

    /// Writes the profile of one case, for each of its transactions.
    pub(super) fn write(
        &self,
        case: &str,
        sample: &Sample,
        transactions: u32,
    ) -> Result<(), Failure> {
        let text = self.functions.profile(sample, transactions)?;
        let path = self.folder.join(format!("{}-{case}.profile", self.bench));
        std::fs::write(path, text).map_err(Failure::io("writing a profile"))
    }
}

/// The functions of an image.
pub(super) struct Functions {
    image: PathBuf,
    /// Function names, by the address at which each function starts.
    compiled: BTreeMap<u64, String>,
}

impl Functions {
    /// Reads the function names in `image`, which must not be stripped.
    pub(super) fn read(image: &Path) -> Result<Functions, Failure> {
        let output = Command::new("nm").args(["-C", "--defined-only"]).arg(image).output();
        let output = output.map_err(Failure::io("reading the names in the image"))?;
        Ok(Functions {
            image: image.into(),
            compiled: parse(&String::from_utf8_lossy(&output.stdout)),
        })
    }

    /// The functions that executed the most instructions. Each line gives the instructions for each
    /// transaction, the share and the name.
    pub(super) fn profile(&self, sample: &Sample, transactions: u32) -> Result<String, Failure> {
        let compiled =
            sample.by_address().map(|(address, count)| (self.compiled_name(address), count));
        let compiled = ranking(compiled, transactions);
        let written = self.written_names(sample)?;
        let written =
            written.iter().map(String::as_str).zip(sample.by_address().map(|(_, count)| count));
        Ok(format!("As compiled:\n{compiled}\nAs written:\n{}", ranking(written, transactions)))
    }

    /// The instructions of the sample in compiled functions with names that satisfy `is_so`.
    pub(super) fn executed_in(&self, sample: &Sample, is_so: impl Fn(&str) -> bool) -> u64 {
        sample
            .by_address()
            .filter(|(address, _)| is_so(self.compiled_name(*address)))
            .map(|(_, count)| count)
            .sum()
    }

    fn compiled_name(&self, address: u64) -> &str {
        self.compiled.range(..=address).next_back().map_or("outside of the image", |(_, name)| name)
    }

    /// For each address of the sample, the function that contains its source line, at any depth of
    /// inlining.
    fn written_names(&self, sample: &Sample) -> Result<Vec<String>, Failure> {
        // For each address, the output has one line with the function, and one with its file and
        // line.
        Ok(self
            .lines_of(sample, &["-C", "-f", "-s"])?
            .lines()
            .step_by(2)
            .map(str::to_string)
            .collect())
    }

    /// For each address of the sample, its source lines as `FILE:LINE`: the innermost line first,
    /// then the lines into which it was inlined.
    pub(super) fn places(&self, sample: &Sample) -> Result<Vec<Vec<String>>, Failure> {
        Ok(by_address(&self.lines_of(sample, &["-a", "-i"])?))
    }

    /// The output of `addr2line` for all addresses of the sample, in their order.
    fn lines_of(&self, sample: &Sample, options: &[&str]) -> Result<String, Failure> {
        let doing = "looking for the lines of the image";
        let mut finder = Command::new("addr2line");
        finder
            .args(options)
            .arg("-e")
            .arg(&self.image)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut finder = finder.spawn().map_err(Failure::io(doing))?;
        let addresses: String =
            sample.by_address().map(|(address, _)| format!("{address:x}\n")).collect();
        let input = finder.stdin.take();
        // A second thread writes the addresses while this thread reads. With one thread, two full
        // pipes would block both processes.
        let writing = std::thread::spawn(move || {
            input.map(|mut input| input.write_all(addresses.as_bytes()))
        });
        let output = finder.wait_with_output().map_err(Failure::io(doing))?;
        // An address that could not be written has no name in the output.
        let _ = writing.join();
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The owner of the instructions at these source lines. The first line in a file of `owners`
/// decides. In `owners`, the first matching entry counts.
pub(super) fn owner_of<P: Copy>(places: &[String], owners: &[(&str, P)]) -> Option<P> {
    let owner = |place: &String| {
        owners.iter().find(|(file, _)| place.contains(file)).map(|(_, owner)| *owner)
    };
    places.iter().find_map(owner)
}

/// Parses the output of `addr2line`: for each address a line with the address, then its source
/// lines.
fn by_address(printed: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for line in printed.lines() {
        match all.last_mut() {
            Some(places) if !line.starts_with("0x") => places.push(line.to_string()),
            _ => all.push(Vec::new()),
        }
    }
    all
}

/// Sums counts by name, with the largest first.
fn ranking<'a>(counts: impl Iterator<Item = (&'a str, u64)>, transactions: u32) -> String {
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in counts {
        let sum = by_name.entry(name).or_default();
        *sum = sum.saturating_add(count);
    }
    let total = by_name.values().sum::<u64>().max(1) as f64;
    let mut functions: Vec<_> = by_name.into_iter().collect();
    functions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let each = f64::from(transactions.max(1));
    let lines = functions.iter().map(|(name, count)| {
        let count = *count as f64;
        format!("{:>12.1} {:>6.2} %  {name}\n", count / each, 100.0 * count / total)
    });
    lines.collect()
}

/// Parses the output of `nm`: lines of address, kind and name.
fn parse(names: &str) -> BTreeMap<u64, String> {
    let functions = names.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ' ');
        let address = u64::from_str_radix(fields.next()?, 16).ok()?;
        let is_code = matches!(fields.next()?, "t" | "T" | "w" | "W");
        is_code.then_some((address, fields.next()?.to_string()))
    });
    functions.collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Whether a file or folder of the repository has a path that starts with `place`.
    pub(crate) fn is_in_the_repository(place: &str) -> bool {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let (folder, name) = place.rsplit_once('/').unwrap();
        let mut entries = std::fs::read_dir(root.join(folder)).into_iter().flatten();
        entries.any(|entry| entry.unwrap().file_name().to_str().unwrap().starts_with(name))
    }

    #[test]
    fn an_address_belongs_to_the_function_that_contains_it() {
        let functions = parse(
            "0000000000100010 T store::append\n0000000000100000 t net::<impl A for B>::frame\n0000000000200000 D data\n",
        );
        assert_eq!(
            functions.range(..=0x10_000f).next_back().unwrap().1,
            "net::<impl A for B>::frame"
        );
        assert_eq!(functions.len(), 2);
    }

    #[test]
    fn an_address_has_the_lines_that_it_was_inlined_into() {
        let printed =
            "0x0000000000100010\n/net/ring.rs:5\n/net/post.rs:70\n0x0000000000100020\n??:0\n";
        assert_eq!(by_address(printed), [vec!["/net/ring.rs:5", "/net/post.rs:70"], vec!["??:0"]]);
    }

    #[test]
    fn counts_of_one_function_are_added_and_the_most_comes_first() {
        let counts = [("little", 100), ("much", 500), ("much", 400)];
        assert_eq!(
            ranking(counts.into_iter(), 10),
            "        90.0  90.00 %  much\n        10.0  10.00 %  little\n"
        );
    }
}
