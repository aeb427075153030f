//! `barepost pkt FILE…`: plays packetdrill scripts against the engine's TCP, in virtual time.
//!
//! One line a script, `FILE: passed`, `FILE: failed: …` or `FILE: not applicable: …`; what was left to us on the way is said
//! below it, and the last line is `N passed, N failed, N skipped`. Exit status 0 only if nothing failed.

use std::path::{Path, PathBuf};

use clap::Args;
use host::{Failure, say};
use simulated::{Outcome, Verdict, play};

#[derive(Args)]
pub(crate) struct Options {
    /// Scripts in the language of packetdrill
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Say nothing of what the RFCs leave to us and a script has otherwise
    #[arg(long)]
    quiet: bool,
}

/// How many scripts came to which verdict.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

/// Errors: refused when a file cannot be read; told when a script failed.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let Counts { passed, failed, skipped } = play_all(&options.files, options.quiet, say)?;
    say(format_args!("{passed} passed, {failed} failed, {skipped} skipped"));
    if failed == 0 { Ok(()) } else { Err(Failure::Told) }
}

/// Plays scripts, and prints a line for each and, unless `quiet`, for each liberty.
///
/// Errors: refused when a file cannot be read.
pub(crate) fn play_all(files: &[PathBuf], quiet: bool, mut print: impl FnMut(String)) -> Result<Counts, Failure> {
    let mut counts = Counts::default();
    for path in files {
        let text =
            std::fs::read(path).map_err(|error| Failure::refused(format_args!("{}: {error}", path.display())))?;
        let Outcome { verdict, liberties } = play(&String::from_utf8_lossy(&text));
        print(format!("{}: {verdict}", path.display()));
        counts.add(&verdict);
        for (line, what) in liberties.iter().filter(|_| !quiet) {
            print(format!("  line {line}: {what}"));
        }
    }
    Ok(counts)
}

/// The scripts in a folder, by name.
pub(crate) fn scripts_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        scripts.push(entry?.path());
    }
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "pkt"));
    scripts.sort();
    Ok(scripts)
}

impl Counts {
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

    #[test]
    fn scripts_are_counted_by_their_verdicts_and_the_liberties_said() {
        let place = tempfile::tempdir().unwrap();
        let listen = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n";
        let scripts = [
            ("a.pkt", format!("{listen}+0 < S 0:0(0) win 100 <wscale 1>\n+0 > S. 0:0(0) ack 1 <mss 1460,wscale 14>\n")),
            ("b.pkt", format!("{listen}+0 > R 0:0(0)\n")),
            ("c.pkt", "0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3\n".to_string()),
            ("d.txt", "no script\n".to_string()),
        ];
        for (name, text) in scripts {
            std::fs::write(place.path().join(name), text).unwrap();
        }
        let files = scripts_in(place.path()).unwrap();
        let mut lines = Vec::new();
        let counts = play_all(&files, false, |line| lines.push(line)).unwrap();
        assert_eq!((counts.passed, counts.failed, counts.skipped), (1, 1, 1));
        assert!(lines[0].ends_with("a.pkt: passed") && lines[1].starts_with("  line 5: "), "{lines:?}");
        assert!(lines[2].contains("b.pkt: failed: line 4: ") && lines[3].contains("c.pkt: not applicable: line 1: "));
        let mut quiet = Vec::new();
        play_all(&files, true, |line| quiet.push(line)).unwrap();
        assert_eq!(quiet.len(), 3);
        assert_eq!(run(&Options { files, quiet: true }).unwrap_err().status(), 1);
        let missing = Options { files: vec![place.path().join("none.pkt")], quiet: true };
        assert_eq!(run(&missing).unwrap_err().status(), 2);
    }
}
