//! Loads on a webmail, as in the study: 1 to 10 users. Each user sends 100 requests a second over
//! 10 connections. At most 100 requests are in progress.
//!
//! Each request is the cheapest one that shows the user's inbox. If a response is late, the
//! connection sends its next request as soon as the response arrives. So a slow machine gets fewer
//! requests. A load lasts a few seconds, and ends when all requests have been answered. Both
//! webmails get each load, one after the other. Only ours also gets a pressing load, in which
//! connections do not pause between requests.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use host::{Failure, Stop, remark};

use super::browser::{Browser, Question};
use super::reader::Reader;
use super::target::Target;
use crate::beside::Side;
use crate::beside::mailboxes::{self, GRACE, READER, USERS, WRITER};
use crate::processors;
use crate::statistics::median;
use crate::workplace::refuse_if_stopped;

/// Numbers of simultaneous users.
const AT_ONCE: [usize; 3] = [1, 5, USERS];
const CONNECTIONS: usize = 10;
const PER_SECOND: f64 = 100.0;
const SPAN: Duration = Duration::from_secs(4);
/// The text size of the messages that other users read and send under the greatest load.
pub(super) const LARGE: usize = 120_000;
/// The clock rate of the studies' processors. The benches assume one instruction a clock.
pub(super) const PAPER_HZ: f64 = 3.2e9;

/// The result of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
    pub(super) side: Side,
    pub(super) load: Load,
    pub(super) per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// Guest instructions for a response.
    pub(super) instructions: f64,
    /// The busy time of the emulated processor, in percent.
    pub(super) busy: f64,
    /// The busy time on the studies' processor, at one instruction a clock, in percent.
    pub(super) busy_there: f64,
    /// Requests with an unexpected response.
    pub(super) failed: usize,
    /// The times in milliseconds in which one other user read a large message and another sent one,
    /// during the load. `None` if the load has no other users.
    pub(super) others_ms: Option<[f64; 2]>,
}

/// A load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Load {
    pub(super) users: usize,
    /// Whether each connection sends its next request as soon as it has a response.
    pub(super) is_pressing: bool,
}

impl Load {
    /// The time between two requests of a connection.
    fn pause(self) -> Duration {
        if self.is_pressing {
            Duration::ZERO
        } else {
            Duration::from_secs_f64(CONNECTIONS as f64 / PER_SECOND)
        }
    }

    /// Whether two other users work during the load. Their work is small compared with the load.
    fn has_others(self) -> bool {
        self.users == USERS && !self.is_pressing
    }
}

/// One of a user's connections.
struct Asker {
    browser: Browser,
    questions: Vec<Question>,
    /// The time from the beginning of the load to the first request.
    first: Duration,
}

/// The responses to all connections.
#[derive(Default)]
struct Answers {
    ms: Vec<f64>,
    failed: Vec<Failure>,
}

/// Puts every load on each webmail in turn.
pub(super) fn measure(targets: &[Target<'_>; 2], stop: &Stop) -> Result<Vec<Loaded>, Failure> {
    let mut users = Vec::new();
    for target in targets {
        let begin = |number| {
            let mut reader = target.log_in(&mailboxes::user(number))?;
            // The first request fills caches, so it is not measured.
            let list = reader.list();
            reader.browser.ask_all(&list).map(|_| reader)
        };
        users.push((0..USERS).map(begin).collect::<Result<Vec<_>, Failure>>()?);
    }
    let both = targets.iter().zip(&users);
    let paced = AT_ONCE.map(|users| Load { users, is_pressing: false });
    let loads = paced.into_iter().flat_map(|load| both.clone().map(move |one| (load, one)));
    let pressing =
        both.clone().take(1).map(|ours| (Load { users: USERS, is_pressing: true }, ours));
    let mut found = Vec::new();
    for (load, (target, users)) in loads.chain(pressing) {
        refuse_if_stopped(stop)?;
        let loaded = target.load(load, users)?;
        remark(format_args!("{loaded:.1?}"));
        found.push(loaded);
    }
    Ok(found)
}

impl Target<'_> {
    fn load(&self, load: Load, users: &[Reader]) -> Result<Loaded, Failure> {
        let askers = askers(load, users)?;
        let others = if load.has_others() { Some(self.others()?) } else { None };
        std::thread::sleep(Duration::from_millis(300));
        let (before, taken) = (self.counters.total_of(0)?, self.taken()?);
        let (began, answers) = (Instant::now(), Mutex::new(Answers::default()));
        let others_ms = std::thread::scope(|scope| {
            for asker in askers {
                let answers = &answers;
                scope.spawn(move || asker.work(load, began, answers));
            }
            others.map(|others| work_meanwhile(others, began)).transpose()
        })?;
        let seconds = began.elapsed().as_secs_f64();
        let executed = (self.counters.total_of(0)? - before) as f64 - self.idle * seconds;
        let busy = (self.taken()? - taken) / seconds;
        let Answers { mut ms, failed } =
            answers.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = failed.first() {
            remark(format_args!(
                "{} of {:?} were not answered: {failure}",
                failed.len(),
                self.side
            ));
        }
        ms.sort_by(f64::total_cmp);
        Ok(Loaded {
            side: self.side,
            load,
            per_second: ms.len() as f64 / seconds,
            instructions: executed / ms.len() as f64,
            p99_ms: ms.get(ms.len() * 99 / 100).copied().unwrap_or(f64::NAN),
            p50_ms: median(ms),
            busy: 100.0 * busy,
            busy_there: 100.0 * executed / seconds / PAPER_HZ,
            failed: failed.len(),
            others_ms,
        })
    }

    /// Host seconds that the guest's processor has used so far.
    fn taken(&self) -> Result<f64, Failure> {
        Ok(processors::taken(self.process, 1)?.iter().sum())
    }

    /// A user that reads a large message and a user that sends one, each with its requests.
    fn others(&self) -> Result<[(Browser, Vec<Question>); 2], Failure> {
        let reader = self.log_in(READER)?;
        let mut writer = self.log_in(WRITER)?;
        let begun = writer.begin_message()?;
        let (read, send) = (
            vec![reader.message(mailboxes::number(LARGE))],
            writer.send(&begun, GRACE, LARGE, None),
        );
        Ok([(reader.browser, read), (writer.browser, send)])
    }
}

/// The connections of the load's users. Each connection begins a little after the one before it.
fn askers(load: Load, users: &[Reader]) -> Result<Vec<Asker>, Failure> {
    let chosen =
        users.iter().take(load.users).flat_map(|reader| std::iter::repeat_n(reader, CONNECTIONS));
    let count = (load.users * CONNECTIONS) as u32;
    let asker = |(reader, number): (&Reader, u32)| {
        let first = load.pause() * number / count;
        Ok(Asker { browser: reader.browser.another()?, questions: reader.list(), first })
    };
    chosen.zip(0..).map(asker).collect()
}

impl Asker {
    /// Sends requests as long as the load is on. A connection with a wrong answer ends.
    fn work(mut self, load: Load, began: Instant, answers: &Mutex<Answers>) {
        let mut next = began + self.first;
        while next.duration_since(began) < SPAN {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            let asked = self.browser.ask_all(&self.questions);
            let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            match asked {
                Ok(took) => answers.ms.push(took.as_secs_f64() * 1000.0),
                Err(failure) => return answers.failed.push(failure),
            }
            next = (next + load.pause()).max(Instant::now());
        }
    }
}

/// Runs both other users at the same time, at the height of the load. Returns their times in
/// milliseconds.
fn work_meanwhile(
    others: [(Browser, Vec<Question>); 2],
    began: Instant,
) -> Result<[f64; 2], Failure> {
    std::thread::sleep((began + SPAN / 4).saturating_duration_since(Instant::now()));
    let running = others
        .map(|(mut browser, questions)| std::thread::spawn(move || browser.ask_all(&questions)));
    let [read, send] =
        running.map(|one| one.join().map_err(|_| Failure::broke("a client panicked"))?);
    Ok([read?, send?].map(|took| took.as_secs_f64() * 1000.0))
}
