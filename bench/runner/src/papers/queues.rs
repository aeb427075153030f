//! `queues`: 100,000 emails with one polled queue of tasks, and with a resume queue and a delay
//! queue (bare PC email server, figures 16 and 17).

use experiments::Clocks;
use experiments::queues::{EVENTS, Load, Outcome, Scheduling, run as simulate};
use host::{Failure, Repository, Stop};

use super::{dashes, line, marks};
use crate::plot::{Axis, Figure, Panel, Tone};
use crate::report::{Report, Row};
use crate::workplace::refuse_if_stopped;

const POLLED: &str = "one queue that polls, same model";
const PAPER: &str = "the paper";
/// The factor by which the paper's second design is faster than its first one.
const PAPER_TIMES: f64 = 5.3;
/// The length of the paper's only queue, in tasks.
const PAPER_ONE_QUEUE: f64 = 488.0;
/// The length of the paper's resume queue, in tasks.
const PAPER_TWO_QUEUES: f64 = 137.0;

const EMAILS: u64 = 100_000;
/// The number of threads of the stress tool, as in the paper.
const THREADS: &[usize] = &[1, 10, 100];
/// Clocks to handle an event: an eighth of the guest instructions for a 1 KB message in a new
/// connection.
const HANDLE: u64 = 6_000;
/// Clocks to take a task from a queue or to put a task into one, as counted natively.
const STEP: u64 = 100;
/// The number of lingering tasks in the single queue, in addition to the tasks of 100 threads. It
/// is chosen so that the longest queue has the paper's 488 tasks.
const LINGERING: u64 = 364;

/// The results of both schedulings under the same load.
struct Pair {
    polled: Outcome,
    resumed: Outcome,
}

pub(crate) fn run(_repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    let mut rows = Vec::new();
    for threads in THREADS {
        refuse_if_stopped(stop)?;
        rows.extend(rows_of(
            &format!("threads: {threads}"),
            &pair(Load { threads: *threads, ..load(STEP) }),
        ));
    }
    let full = pair(load(STEP));
    let longest = |outcome: &Outcome| outcome.queue_max as f64;
    rows.push(
        Row::alone("threads: 100: longest, one queue", "tasks", longest(&full.polled)).beside(
            PAPER,
            PAPER_ONE_QUEUE,
            None,
        ),
    );
    rows.push(
        Row::alone("threads: 100: longest, resume queue", "tasks", longest(&full.resumed)).beside(
            PAPER,
            PAPER_TWO_QUEUES,
            None,
        ),
    );
    rows.push(
        Row::alone("threads: 100: steps, one queue to two", "times", full.steps_ratio()).ahead_of(
            PAPER,
            PAPER_TIMES,
            None,
        ),
    );
    rows.push(
        Row::alone("threads: 100: time, one queue to two", "times", full.time_ratio()).ahead_of(
            PAPER,
            PAPER_TIMES,
            None,
        ),
    );
    let dear = pair(load(HANDLE * 10)).time_ratio();
    rows.push(Row::alone("the same, where a step takes ten handlings", "times", dear).ahead_of(
        PAPER,
        PAPER_TIMES,
        None,
    ));
    refuse_if_stopped(stop)?;
    rows.extend(rows_of(
        "threads: 100, beside 10,000 silent connections",
        &pair(Load { silent: 10_000, ..load(STEP) }),
    ));
    Ok(Report {
        machine:
            "a simulated server of 1 GHz, an instruction a clock: 6,000 to handle an event, 100 for a step of a queue"
                .into(),
        rows,
        note: "100,000 emails of 8 events each, every one in a new connection; less is better. A step takes a task from the queue, whether it has \
               anything to do or not. How long tasks linger after their connection's end is not in the paper: it is chosen so that the one queue \
               comes to the paper's 488 at 100 threads.",
        figure: Some(draw(stop)?),
    })
}

fn rows_of(case: &str, Pair { polled, resumed }: &Pair) -> [Row; 3] {
    let row = |what: &str, unit, of: fn(&Outcome) -> f64| {
        Row::alone(format!("{case}: {what}"), unit, of(resumed)).beside(POLLED, of(polled), None)
    };
    [
        row("steps", "steps", |outcome| outcome.steps as f64),
        row("processing time", "s", |outcome| outcome.elapsed.0 as f64 / 1e9),
        row("longest queue of ready tasks", "tasks", |outcome| outcome.queue_max as f64),
    ]
}

fn pair(load: Load) -> Pair {
    Pair {
        polled: simulate(Scheduling::OneQueue, load),
        resumed: simulate(Scheduling::ResumeAndDelay, load),
    }
}

impl Pair {
    fn time_ratio(&self) -> f64 {
        self.polled.elapsed.0 as f64 / self.resumed.elapsed.0 as f64
    }

    fn steps_ratio(&self) -> f64 {
        self.polled.steps as f64 / self.resumed.steps as f64
    }
}

/// A load of 100 threads. `step`: clocks to take a task from a queue. A task lingers while a
/// polling server finishes [`LINGERING`] other tasks.
fn load(step: u64) -> Load {
    let each = u64::from(EVENTS) * (HANDLE + step * PAPER_ONE_QUEUE as u64 / 100);
    Load {
        threads: 100,
        emails: EMAILS,
        silent: 0,
        turnaround: Clocks::from_micros(200),
        linger: Clocks(LINGERING * each),
        handle: Clocks(HANDLE),
        step: Clocks(step),
        seed: 1,
    }
}

fn draw(stop: &Stop) -> Result<Figure, Failure> {
    let panels = vec![by_emails(), by_threads(), by_price(), by_silence()];
    refuse_if_stopped(stop)?;
    Ok(Figure {
        title: "One queue that polls, or resume queue and delay queue".into(),
        caption: "After figures 16 and 17 of Ford, Karne, Wijesinha and Appiah-Kubi, “The Performance of a Bare Machine Email \
                  Server”: 5.3 times in processing time for 100,000 emails, longest queue 488 and 137. At how many threads is \
                  not in its text; they are drawn at 100, the most of its other figures. 1 GHz, an instruction a clock.",
        panels,
    })
}

/// Figure 16: the work that was counted.
fn by_emails() -> Panel {
    let points = |scheduling| {
        (1..=5)
            .map(|fifth| fifth * EMAILS / 5)
            .map(|emails| {
                (emails as f64, simulate(scheduling, Load { emails, ..load(STEP) }).steps as f64)
            })
            .collect()
    };
    Panel {
        title: "Figure 16: work, 100 threads".into(),
        x: Axis::linear("emails"),
        y: Axis::linear("tasks taken from the queue"),
        series: vec![
            line("one queue", Tone::Other, points(Scheduling::OneQueue)),
            line("resume and delay queue", Tone::Ours, points(Scheduling::ResumeAndDelay)),
        ],
    }
}

/// Figure 17.
fn by_threads() -> Panel {
    let points = |scheduling| {
        let longest = |threads: usize| {
            simulate(scheduling, Load { threads, emails: EMAILS / 5, ..load(STEP) }).queue_max
                as f64
        };
        [1, 10, 25, 50, 75, 100, 150, 200]
            .map(|threads: usize| (threads as f64, longest(threads)))
            .to_vec()
    };
    Panel {
        title: "Figure 17: the longest queue".into(),
        x: Axis::linear("threads of the stress tool"),
        y: Axis::linear("tasks that stood in the queue at once"),
        series: vec![
            line("one queue", Tone::Other, points(Scheduling::OneQueue)),
            line("resume queue", Tone::Ours, points(Scheduling::ResumeAndDelay)),
            marks(
                "paper: 488 and 137",
                Tone::Paper,
                vec![(100.0, PAPER_ONE_QUEUE), (100.0, PAPER_TWO_QUEUES)],
            ),
        ],
    }
}

/// The gain of two queues, by the cost of a step.
fn by_price() -> Panel {
    let steps = [30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000];
    let at = |step: u64| {
        (step as f64 / HANDLE as f64, pair(Load { emails: EMAILS / 5, ..load(step) }).time_ratio())
    };
    Panel {
        title: "What two queues gain, by the price of a step".into(),
        x: Axis::logarithmic("a step of the queue, in handlings of an event"),
        y: Axis::linear("processing time, one queue to two"),
        series: vec![
            line("ours to the polling one", Tone::Ours, steps.map(at).to_vec()),
            marks("at our prices", Tone::Second, vec![at(STEP)]),
            dashes("paper: 5.3", Tone::Paper, vec![(0.001, PAPER_TIMES), (100.0, PAPER_TIMES)]),
        ],
    }
}

/// The cost of silent connections.
fn by_silence() -> Panel {
    let points = |scheduling| {
        let seconds =
            |silent| simulate(scheduling, Load { silent, ..load(STEP) }).elapsed.0 as f64 / 1e9;
        [0, 1_000, 2_000, 4_000, 6_000, 8_000, 10_000]
            .map(|silent: usize| (silent as f64, seconds(silent)))
            .to_vec()
    };
    Panel {
        title: "Beside silent connections, 100 threads".into(),
        x: Axis::linear("connections that say nothing"),
        y: Axis::linear("processing time of 100,000 emails, s"),
        series: vec![
            line("one queue", Tone::Other, points(Scheduling::OneQueue)),
            line("resume and delay queue", Tone::Ours, points(Scheduling::ResumeAndDelay)),
        ],
    }
}
