//! Runs scenarios. A broken invariant is a panic, which is caught and reported. The shrinker finds
//! a smaller scenario that fails at the same source line.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once};

use machine::Instant;
use simulated::room::{FAULTS, Report, Scenario, Trace, run_scenario};

/// The most runs that the shrinker may use.
const RUNS_MAX: u32 = 400;

/// The result of a room.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TrialOutcome {
    Good(Report),
    /// The panic message: the source line, and the invariant that was broken.
    Failed(String),
}

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Runs a scenario, and catches its panic.
pub(crate) fn try_out(scenario: &Scenario, trace: Trace) -> TrialOutcome {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            if let Ok(mut last) = LAST_PANIC.lock() {
                *last = panic.to_string().replace('\n', " ");
            }
        }));
    });
    match catch_unwind(AssertUnwindSafe(|| run_scenario(scenario, trace))) {
        Ok(report) => TrialOutcome::Good(report),
        Err(_) => {
            TrialOutcome::Failed(LAST_PANIC.lock().map(|last| last.clone()).unwrap_or_default())
        }
    }
}

/// Finds a smaller scenario that fails at the same source line, and its failure; `None` if the
/// scenario does not fail.
pub(crate) fn shrink(scenario: &Scenario) -> Option<(Scenario, String)> {
    let TrialOutcome::Failed(first) = try_out(scenario, Trace::Off) else { return None };
    let mut shrinker = Shrinker { best: scenario.clone(), failure: first, runs: 0 };
    shrinker.run();
    Some((shrinker.best, shrinker.failure))
}

/// The options of `./barepost test sim` that run this scenario.
pub(crate) fn words(scenario: &Scenario) -> String {
    let whole = Scenario::of_seed(scenario.seed);
    let mut words = format!("--seed {}", scenario.seed);
    let is_off = |fault: &_| whole.faults.contain(*fault) && !scenario.faults.contain(*fault);
    let off: Vec<String> =
        FAULTS.into_iter().filter(is_off).map(|fault| fault.to_string()).collect();
    let without = ranges(&scenario.left_out);
    if !off.is_empty() {
        words += &format!(" --off {}", off.join(","));
    }
    if !without.is_empty() {
        words += &format!(" --without {}", without.join(","));
    }
    if scenario.cores != whole.cores {
        words += &format!(" --cores {}", scenario.cores);
    }
    if scenario.until != whole.until {
        words += &format!(" --until {}", scenario.until.0);
    }
    words
}

/// Abbreviates sorted numbers: `0-3`, `5` for 0, 1, 2, 3, 5.
fn ranges(numbers: &[usize]) -> Vec<String> {
    let parts = numbers.chunk_by(|one, next| one + 1 == *next);
    let text = |part: &[usize]| match part {
        [first, .., last] => format!("{first}-{last}"),
        _ => part.first().map(usize::to_string).unwrap_or_default(),
    };
    parts.map(text).collect()
}

struct Shrinker {
    best: Scenario,
    failure: String,
    runs: u32,
}

impl Shrinker {
    fn run(&mut self) {
        loop {
            let before = self.best.clone();
            self.shorten();
            self.reduce_cores();
            self.switch_off();
            self.leave_out();
            if self.best == before || self.runs >= RUNS_MAX {
                return;
            }
        }
    }

    /// Runs a candidate. If the candidate fails at the same source line, it becomes the best
    /// scenario. Returns whether it became the best.
    fn try_candidate(&mut self, candidate: Scenario) -> bool {
        if self.runs >= RUNS_MAX || candidate == self.best {
            return false;
        }
        self.runs += 1;
        match try_out(&candidate, Trace::Off) {
            TrialOutcome::Failed(failure) if place(&failure) == place(&self.failure) => {
                (self.best, self.failure) = (candidate, failure);
                true
            }
            _ => false,
        }
    }

    fn shorten(&mut self) {
        let (mut good, mut bad) = (0, self.best.until.0);
        while bad - good > bad / 16 + 1 {
            let middle = good + (bad - good) / 2;
            let candidate = Scenario { until: Instant(middle), ..self.best.clone() };
            if self.try_candidate(candidate) {
                bad = middle;
            } else {
                good = middle;
            }
        }
    }

    fn reduce_cores(&mut self) {
        for cores in 1..self.best.cores {
            if self.try_candidate(Scenario { cores, ..self.best.clone() }) {
                return;
            }
        }
    }

    fn switch_off(&mut self) {
        for fault in FAULTS {
            let candidate =
                Scenario { faults: self.best.faults.without(fault), ..self.best.clone() };
            self.try_candidate(candidate);
        }
    }

    /// Leaves out events in groups: at first each group is half of all events, then a quarter, down
    /// to single events.
    fn leave_out(&mut self) {
        let is_in = |scenario: &Scenario, event: &usize| !scenario.left_out.contains(event);
        let mut size = self.best.events().div_ceil(2);
        while size > 0 {
            let remaining: Vec<usize> =
                (0..self.best.events()).filter(|event| is_in(&self.best, event)).collect();
            for some in remaining.chunks(size) {
                let mut candidate = self.best.clone();
                candidate.left_out.extend(some);
                candidate.left_out.sort_unstable();
                self.try_candidate(candidate);
            }
            size /= 2;
        }
    }
}

/// The source line that a panic names.
fn place(failure: &str) -> &str {
    failure.split(": ").next().unwrap_or_default()
}
