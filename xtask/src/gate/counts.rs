//! Reads the numbers of passed and failed tests from a part's output.

use std::ops::AddAssign;

/// The numbers of tests that passed and that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
    }
}

impl Counts {
    /// Parses the summaries of cargo's and Python's test runners and of `barepost` itself. A part
    /// without a summary is one test. A part that did not succeed has at least one failed test.
    pub(crate) fn of(output: &str, succeeded: bool) -> Counts {
        let mut counts = Counts::default();
        let mut ran = 0_usize;
        for line in output.lines() {
            if let Some(summary) = line.strip_prefix("test result: ") {
                counts += Counts {
                    passed: number_before(summary, " passed"),
                    failed: number_before(summary, " failed"),
                };
            } else if let Some(rest) = line.strip_prefix("Ran ") {
                ran = rest.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
            } else if is_python_verdict(line) {
                let failed = ["failures=", "errors=", "unexpected successes="]
                    .map(|key| number_after(line, key));
                let failed: usize = failed.iter().sum();
                let skipped = number_after(line, "skipped=");
                counts +=
                    Counts { passed: ran.saturating_sub(failed).saturating_sub(skipped), failed };
                ran = 0;
            }
        }
        if counts == Counts::default() && succeeded {
            counts.passed = 1;
        }
        if !succeeded {
            counts.failed = counts.failed.max(1);
        }
        counts
    }
}

/// Whether a line is a summary such as `OK`, `OK (skipped=1)`, `FAILED (failures=1, errors=2)`.
fn is_python_verdict(line: &str) -> bool {
    matches!(line.split(' ').next(), Some("OK" | "FAILED"))
}

fn number_before(text: &str, word: &str) -> usize {
    let before = text.split(word).next().unwrap_or_default();
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn number_after(text: &str, word: &str) -> usize {
    let after = text.split_once(word).map(|(_, after)| after).unwrap_or_default();
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summaries_of_cargo_are_added() {
        let output = "running 2 tests\ntest result: ok. 22 passed; 0 failed; 0 ignored\n\ntest result: FAILED. 3 passed; 1 failed; 0 ignored\n";
        assert_eq!(Counts::of(output, false), Counts { passed: 25, failed: 1 });
    }

    #[test]
    fn the_summaries_of_python_are_understood() {
        assert_eq!(
            Counts::of("Ran 7 tests in 1.2s\n\nOK\n", true),
            Counts { passed: 7, failed: 0 }
        );
        assert_eq!(
            Counts::of("Ran 7 tests in 1.2s\n\nOK (skipped=2)\n", true),
            Counts { passed: 5, failed: 0 }
        );
        let failed = "Ran 9 tests in 1.2s\n\nFAILED (failures=1, errors=2)\n";
        assert_eq!(Counts::of(failed, false), Counts { passed: 6, failed: 3 });
    }

    #[test]
    fn a_part_without_summary_is_one_test() {
        assert_eq!(Counts::of("anything\n", true), Counts { passed: 1, failed: 0 });
        assert_eq!(Counts::of("anything\n", false), Counts { passed: 0, failed: 1 });
    }

    #[test]
    fn a_part_that_did_not_succeed_has_a_failed_test() {
        let died_later = "test result: ok. 22 passed; 0 failed; 0 ignored\nerror: test failed\n";
        assert_eq!(Counts::of(died_later, false), Counts { passed: 22, failed: 1 });
    }
}
