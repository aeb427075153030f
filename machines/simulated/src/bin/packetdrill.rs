//! `packetdrill [--quiet] [--strict] [--] FILE…`: plays packetdrill scripts against the engine's
//! TCP, in virtual time, for `./barepost pkt`.
//!
//! The program prints one line for each script: `FILE: passed`, `FILE: failed: …` or `FILE: not
//! applicable: …`. The next lines list the liberties that the engine took: differences from the
//! script that an RFC allows. The last line is `N passed, N failed, N skipped`. The exit status is
//! 0 if no script failed, and 2 if a file cannot be read. With `--strict` a script that is not
//! applicable counts as failed, and the last line has the format of cargo's test results.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program's output is for people"
)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use simulated::{Outcome, Verdict, play};

/// The command-line options.
#[derive(Default)]
struct Arguments {
    files: Vec<PathBuf>,
    /// Whether to omit the liberties from the output.
    is_quiet: bool,
    is_strict: bool,
}

/// The number of scripts for each verdict.
#[derive(Default)]
struct VerdictCounts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse(std::env::args_os().skip(1));
    ExitCode::from(run(&arguments, |line| println!("{line}")))
}

/// Plays the scripts and prints the results. Returns the exit status.
fn run(arguments: &Arguments, mut print: impl FnMut(String)) -> u8 {
    let mut counts = VerdictCounts::default();
    for path in &arguments.files {
        match std::fs::read(path) {
            Ok(text) => counts.add(&play_one(path, &text, arguments.is_quiet, &mut print)),
            Err(error) => {
                eprintln!("barepost: {}: {error}", path.display());
                return 2;
            }
        }
    }
    let VerdictCounts { passed, mut failed, skipped } = counts;
    if arguments.is_strict {
        failed = failed.saturating_add(skipped);
        print(format!("test result: {passed} passed; {failed} failed"));
    } else {
        print(format!("{passed} passed, {failed} failed, {skipped} skipped"));
    }
    u8::from(failed > 0)
}

/// Plays a script. Prints a line for it and, unless `is_quiet`, for each liberty.
fn play_one(path: &Path, text: &[u8], is_quiet: bool, print: &mut impl FnMut(String)) -> Verdict {
    let Outcome { verdict, liberties } = play(&String::from_utf8_lossy(text));
    print(format!("{}: {verdict}", path.display()));
    for (line, what) in liberties.iter().filter(|_| !is_quiet) {
        print(format!("  line {line}: {what}"));
    }
    verdict
}

impl Arguments {
    /// Parses the words of the command line. After `--` all words are files.
    fn parse(mut words: impl Iterator<Item = OsString>) -> Arguments {
        let mut arguments = Arguments::default();
        while let Some(word) = words.next() {
            match word.to_str() {
                Some("--quiet") => arguments.is_quiet = true,
                Some("--strict") => arguments.is_strict = true,
                Some("--") => arguments.files.extend(words.by_ref().map(PathBuf::from)),
                _ => arguments.files.push(word.into()),
            }
        }
        arguments
    }
}

impl VerdictCounts {
    fn add(&mut self, verdict: &Verdict) {
        let count = match verdict {
            Verdict::Passed => &mut self.passed,
            Verdict::Failed { .. } => &mut self.failed,
            Verdict::NotApplicable { .. } => &mut self.skipped,
        };
        *count = count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output for the scripts `names` in `folder`, and the exit status.
    fn output_of(folder: &Path, names: &[&str], options: &[&str]) -> (Vec<String>, u8) {
        let files = names.iter().map(|name| folder.join(name).into_os_string());
        let words = options.iter().map(OsString::from).chain(files);
        let mut lines = Vec::new();
        let status = run(&Arguments::parse(words), |line| lines.push(line));
        (lines, status)
    }

    #[test]
    fn scripts_are_counted_by_verdict_and_liberties_are_printed() {
        let place = tempfile::tempdir().unwrap();
        let listen = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n";
        let scripts = [
            (
                "a.pkt",
                format!(
                    "{listen}+0 < S 0:0(0) win 100 <wscale 1>\n+0 > S. 0:0(0) ack 1 <mss 1460,wscale 14>\n"
                ),
            ),
            ("b.pkt", format!("{listen}+0 > R 0:0(0)\n")),
            ("c.pkt", "0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3\n".to_string()),
        ];
        for (name, text) in scripts {
            std::fs::write(place.path().join(name), text).unwrap();
        }
        let all = ["a.pkt", "b.pkt", "c.pkt"];
        let (lines, status) = output_of(place.path(), &all, &[]);
        assert!(
            lines[0].ends_with("a.pkt: passed") && lines[1].starts_with("  line 5: "),
            "{lines:?}"
        );
        assert!(
            lines[2].contains("b.pkt: failed: line 4: ")
                && lines[3].contains("c.pkt: not applicable: line 1: ")
        );
        assert_eq!((lines[4].as_str(), status), ("1 passed, 1 failed, 1 skipped", 1));
        let (lines, status) = output_of(place.path(), &all, &["--quiet"]);
        assert_eq!((lines.len(), status), (4, 1));
        let (_, status) = output_of(place.path(), &["none.pkt"], &["--quiet"]);
        assert_eq!(status, 2);
    }

    #[test]
    fn a_strict_run_fails_on_a_script_that_is_not_applicable() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("c.pkt"), "0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3\n")
            .unwrap();
        assert_eq!(output_of(place.path(), &["c.pkt"], &[]).1, 0);
        let (lines, status) = output_of(place.path(), &["c.pkt"], &["--strict"]);
        assert_eq!((lines[1].as_str(), status), ("test result: 0 passed; 1 failed", 1));
    }
}
