//! Reads a fuzz target's result from libFuzzer's output.

use std::path::Path;

/// The result of a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Outcome {
    executions: u64,
    /// The edges of the program's control flow that inputs covered.
    edges: u64,
    new_inputs: u64,
    broken: Option<Broken>,
}

/// A failure.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Broken {
    why: String,
    /// The command that reproduces the failure. `None` if libFuzzer has written no input for it.
    again: Option<String>,
}

impl Outcome {
    /// Parses the output. `holds`: whether the target ended with success.
    pub(super) fn read(output: &str, holds: bool, program: &Path) -> Outcome {
        let last = |key: &str| output.lines().rev().find_map(|line| number_after(line, key));
        Outcome {
            executions: last("stat::number_of_executed_units:").unwrap_or(0),
            edges: last(" cov:").unwrap_or(0),
            new_inputs: last("stat::new_units_added:").unwrap_or(0),
            broken: (!holds).then(|| Broken::read(output, program)),
        }
    }

    pub(super) fn holds(&self) -> bool {
        self.broken.is_none()
    }

    /// The outcome as text: one line, and up to two more after a failure.
    pub(super) fn text(&self, name: &str) -> String {
        let Outcome { executions, edges, new_inputs, broken } = self;
        let line = format!(
            "{name:<14} {executions:>9} executions, {edges:>5} edges, {new_inputs:>4} new inputs"
        );
        match broken {
            None => line,
            Some(Broken { why, again: None }) => format!("{line}\n  BROKEN: {why}"),
            Some(Broken { why, again: Some(again) }) => {
                format!("{line}\n  BROKEN: {why}\n  again:  {again}")
            }
        }
    }
}

impl Broken {
    fn read(output: &str, program: &Path) -> Broken {
        let mut lines = output.lines();
        let panicked = lines.by_ref().find(|line| line.contains("panicked at "));
        let message = lines.next().unwrap_or_default();
        let reported = output
            .lines()
            .find_map(|line| line.split_once("ERROR: libFuzzer: ").map(|(_, what)| what));
        let why = match (panicked, reported) {
            (Some(line), _) => {
                let place =
                    line.split_once("panicked at ").map(|(_, place)| place).unwrap_or_default();
                format!("{place} {message}")
            }
            (None, Some(reported)) => reported.to_string(),
            (None, None) => "it ended without a message".to_string(),
        };
        let input = output
            .lines()
            .find_map(|line| line.split_once("Test unit written to ").map(|(_, path)| path));
        Broken { why, again: input.map(|input| format!("{} {}", program.display(), input.trim())) }
    }
}

fn number_after(line: &str, key: &str) -> Option<u64> {
    line.split_once(key)?.1.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELL: &str = "#2\tINITED cov: 5 ft: 6 corp: 1/1b\n#91451\tDONE   cov: 1018 ft: 4116 corp: 965/57Kb\n\
                        stat::number_of_executed_units: 91451\nstat::new_units_added:          2265\n";
    const BROKEN: &str = "#99\tNEW    cov: 1018 ft: 4116\nthread '<unnamed>' (1) panicked at src/a.rs:1:2:\nnot so\n\
                          ==1== ERROR: libFuzzer: deadly signal\nTest unit written to target/test/fuzz/a/crash-12\n\
                          stat::number_of_executed_units: 99\n";

    #[test]
    fn libfuzzer_counts_are_reported() {
        let outcome = Outcome::read(WELL, true, Path::new("target/a"));
        assert!(outcome.holds());
        assert_eq!(
            outcome.text("a"),
            "a                  91451 executions,  1018 edges, 2265 new inputs"
        );
    }

    #[test]
    fn failure_is_reported_with_a_command_to_reproduce_it() {
        let outcome = Outcome::read(BROKEN, false, Path::new("target/a"));
        assert!(!outcome.holds());
        let text = outcome.text("a");
        assert!(text.contains("99 executions,  1018 edges"), "{text}");
        assert!(text.contains("BROKEN: src/a.rs:1:2: not so\n"), "{text}");
        assert!(text.ends_with("again:  target/a target/test/fuzz/a/crash-12"), "{text}");
    }

    #[test]
    fn failure_without_a_panic_message_is_reported() {
        let text = Outcome::read("", false, Path::new("target/a")).text("a");
        assert!(text.ends_with("BROKEN: it ended without a message"), "{text}");
        let text = Outcome::read(
            "==1== ERROR: libFuzzer: timeout after 25 seconds\n",
            false,
            Path::new("a"),
        )
        .text("a");
        assert!(text.ends_with("BROKEN: timeout after 25 seconds"), "{text}");
    }
}
