//! Where instructions went: counts by address, told by function.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::counters::Sample;
use crate::failure::Failure;

/// The functions of an image, by the address at which each starts.
pub(super) struct Functions(BTreeMap<u64, String>);

impl Functions {
    /// Reads the names in `image`, which must not be stripped.
    pub(super) fn read(image: &Path) -> Result<Functions, Failure> {
        let output = Command::new("nm").args(["-C", "--defined-only"]).arg(image).output();
        let output = output.map_err(Failure::io("reading the names in the image"))?;
        Ok(Functions(parse(&String::from_utf8_lossy(&output.stdout))))
    }

    /// The functions that executed most, as lines of `per transaction · share · name`.
    pub(super) fn profile(&self, sample: &Sample, transactions: u32) -> String {
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (address, count) in sample.by_address() {
            let name = self.0.range(..=address).next_back().map_or("outside of the image", |(_, name)| name);
            let sum = by_name.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
        let mut functions: Vec<_> = by_name.into_iter().collect();
        functions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let total = sample.total().max(1) as f64;
        let each = f64::from(transactions.max(1));
        let lines = functions.iter().map(|(name, count)| {
            let count = *count as f64;
            format!("{:>12.1} {:>6.2} %  {name}\n", count / each, 100.0 * count / total)
        });
        lines.collect()
    }
}

/// `names`: lines of address, kind and name, as `nm` prints them.
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
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_by_the_function_that_holds_the_address() {
        let functions = parse(
            "0000000000100010 T store::append\n0000000000100000 t net::<impl A for B>::frame\n0000000000200000 D data\n",
        );
        assert_eq!(functions.range(..=0x10_000f).next_back().unwrap().1, "net::<impl A for B>::frame");
        assert_eq!(functions.len(), 2);
    }
}
