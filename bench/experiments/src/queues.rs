//! One queue that polls its tasks, or a resume queue and a delay queue (bare PC email server,
//! section IV.4, figures 16 and 17).
//!
//! A stress tool with several threads sends emails one after another, each in a connection of its
//! own. An email is a dialogue of [`EVENTS`] events. After each event the server's task waits for
//! the client's next. After the last event the client goes on to its next email, but the task
//! lingers: the server must still wait out the end of the connection.
//!
//! - [`Scheduling::OneQueue`] is the paper's first. All tasks stand in one queue, first come first
//!   served. The scheduler asks the first task whether its event has come. If it has not, the task
//!   goes to the end.
//! - [`Scheduling::ResumeAndDelay`] is the paper's second and the engine's. A waiting task stands
//!   in the delay queue. Its event or its deadline moves it to the resume queue. No task is polled.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use chance::Dice;
use machine::Instant;
use tasks::{DelayQueue, FrameId, FrameTable, ResumeQueue};

use crate::costs::{CLOCKS_PER_MICRO, Clocks};

/// Events of an email that the server handles: connection, greeting, sender, recipient, data,
/// message, end, and the acknowledgment of the end.
pub const EVENTS: u32 = 8;
/// How long a client may be silent: longer than any run.
const TIMEOUT: Clocks = Clocks::from_micros(1 << 40);

/// How tasks are scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheduling {
    /// One queue that polls its tasks.
    OneQueue,
    /// Resume queue and delay queue.
    ResumeAndDelay,
}

/// The stress tool, and the costs.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Emails at once.
    pub threads: usize,
    /// Emails in all.
    pub emails: u64,
    /// Further connections with silent clients.
    pub silent: usize,
    /// From an answer to the client's next event, on the average.
    pub turnaround: Clocks,
    /// How long a task is kept after its last event.
    pub linger: Clocks,
    /// Handling one event.
    pub handle: Clocks,
    /// Taking a task from a queue and finding out what to do, whether there is anything or not.
    pub step: Clocks,
    /// The seed of the clients' turnarounds.
    pub seed: u64,
}

/// The result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Emails that were taken.
    pub emails: u64,
    /// From the first connection until the last email was taken.
    pub elapsed: Clocks,
    /// Tasks taken from the queue.
    pub steps: u64,
    /// The runs of tasks that had nothing to do.
    pub in_vain: u64,
    /// Tasks in the queue (the resume queue, where there are two), at most.
    pub queue_max: usize,
    /// Tasks that waited in the delay queue, at most.
    pub delayed_max: usize,
}

/// Runs until every email was taken, and every task of a client that is not silent has ended.
pub fn run(scheduling: Scheduling, load: Load) -> Outcome {
    let mut server = Server::new(load);
    match scheduling {
        Scheduling::OneQueue => server.run_one_queue(),
        Scheduling::ResumeAndDelay => server.run_resume_and_delay(),
    }
    server.outcome
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// A client connects.
    Connected,
    /// The event that this task waits for has come.
    Arrived(FrameId),
}

/// A task of the server.
struct Task {
    events_left: u32,
    has_event: bool,
}

/// What a task does next.
enum Next {
    Waits,
    Lingers,
    Ends,
}

struct Server {
    load: Load,
    now: Clocks,
    tasks: FrameTable<Task>,
    /// Future events, by time.
    world: BinaryHeap<Reverse<(Clocks, u64, Event)>>,
    /// Events scheduled so far. The number orders events of the same time.
    number: u64,
    begun: u64,
    dice: Dice,
    outcome: Outcome,
}

impl Server {
    fn new(load: Load) -> Server {
        let mut server = Server {
            load,
            now: Clocks(0),
            // A task for each thread, and as many lingering tasks as there can be at once.
            tasks: FrameTable::with_capacity(load.silent + load.threads + lingering_max(load)),
            world: BinaryHeap::new(),
            number: 0,
            begun: 0,
            dice: Dice::new(load.seed),
            outcome: Outcome::default(),
        };
        for _ in 0..load.threads {
            server.begin_email();
        }
        server
    }

    fn run_one_queue(&mut self) {
        let mut queue: VecDeque<FrameId> = self.silent_tasks().collect();
        let mut in_vain_in_a_row = 0;
        while !self.is_done() {
            while let Some(event) = self.next_event() {
                in_vain_in_a_row = 0;
                match event {
                    Event::Connected => queue.extend(self.new_task()),
                    Event::Arrived(frame) => self.event_came(frame),
                }
            }
            self.outcome.queue_max = self.outcome.queue_max.max(queue.len());
            if in_vain_in_a_row >= queue.len() {
                self.skip_rounds_in_vain(queue.len());
            }
            let Some(frame) = queue.pop_front() else { continue };
            let had_event = self.tasks.get(frame).is_some_and(|task| task.has_event);
            match self.step(frame) {
                Next::Ends => {}
                Next::Waits => queue.push_back(frame),
                Next::Lingers => {
                    let end = self.now + self.load.linger;
                    self.later(end, Event::Arrived(frame));
                    queue.push_back(frame);
                }
            }
            in_vain_in_a_row = if had_event { 0 } else { in_vain_in_a_row + 1 };
        }
    }

    /// No task in the queue has anything to do. The queue goes round until something happens.
    fn skip_rounds_in_vain(&mut self, length: usize) {
        let next = self.world.peek();
        assert!(next.is_some(), "emails are underway, and nothing will ever happen");
        let Some(Reverse((at, ..))) = next else { return };
        let steps = if length == 0 {
            0
        } else {
            at.0.saturating_sub(self.now.0).div_ceil(self.load.step.0)
        };
        self.outcome.steps += steps;
        self.outcome.in_vain += steps;
        self.now = (self.now + Clocks(steps * self.load.step.0)).max(*at);
    }

    fn run_resume_and_delay(&mut self) {
        let capacity = self.tasks.capacity();
        let mut ready = ResumeQueue::with_capacity(capacity);
        let mut delay = DelayQueue::with_capacity(capacity, Instant(0));
        self.silent_tasks().for_each(|frame| delay.set(frame, instant(TIMEOUT)));
        while !self.is_done() {
            while let Some(event) = self.next_event() {
                match event {
                    Event::Connected => {
                        self.new_task().into_iter().for_each(|frame| ready.resume(frame))
                    }
                    Event::Arrived(frame) => {
                        self.event_came(frame);
                        delay.cancel(frame);
                        ready.resume(frame);
                    }
                }
            }
            while let Some(frame) = delay.next_due(instant(self.now)) {
                self.event_came(frame);
                ready.resume(frame);
            }
            self.outcome.queue_max = self.outcome.queue_max.max(ready.len());
            self.outcome.delayed_max = self.outcome.delayed_max.max(self.tasks.len() - ready.len());
            ready.begin_turn();
            let Some(frame) = ready.next_ready() else {
                self.sleep(delay.next_deadline());
                continue;
            };
            match self.step(frame) {
                Next::Ends => {}
                Next::Waits => delay.set(frame, instant(self.now + TIMEOUT)),
                Next::Lingers => delay.set(frame, instant(self.now + self.load.linger)),
            }
        }
    }

    /// Nothing is ready: sleeps until something happens.
    fn sleep(&mut self, deadline: Option<Instant>) {
        let event = self.world.peek().map(|Reverse((at, ..))| *at);
        let deadline = deadline.map(|deadline| Clocks::from_micros(deadline.0));
        let next = event.into_iter().chain(deadline).min();
        assert!(next.is_some(), "emails are underway, and nothing will ever happen");
        self.now = next.map_or(self.now, |at| self.now.max(at));
    }

    /// Whether every email was taken, and every connection has ended but those of silent clients.
    fn is_done(&self) -> bool {
        self.outcome.emails == self.load.emails && self.tasks.len() == self.load.silent
    }

    /// Takes a task from the queue, as every step of either scheduler does, and lets it do what it
    /// can.
    fn step(&mut self, frame: FrameId) -> Next {
        self.outcome.steps += 1;
        self.now += self.load.step;
        let Some(task) = self.tasks.get_mut(frame) else { return Next::Ends };
        if !std::mem::take(&mut task.has_event) {
            self.outcome.in_vain += 1;
            return Next::Waits;
        }
        if task.events_left == 0 {
            self.tasks.remove(frame);
            return Next::Ends;
        }
        task.events_left -= 1;
        let is_last = task.events_left == 0;
        self.now += self.load.handle;
        if is_last {
            self.outcome.emails += 1;
            self.outcome.elapsed = self.now;
            self.begin_email();
            return Next::Lingers;
        }
        let answer = self.now + Clocks(self.dice.around(self.load.turnaround.0));
        self.later(answer, Event::Arrived(frame));
        Next::Waits
    }

    /// A client connects for its next email, if there is one.
    fn begin_email(&mut self) {
        if self.begun < self.load.emails {
            self.begun += 1;
            let at = self.now + Clocks(self.dice.around(self.load.turnaround.0));
            self.later(at, Event::Connected);
        }
    }

    /// Tasks of silent clients: their events never come.
    fn silent_tasks(&mut self) -> impl Iterator<Item = FrameId> {
        let silent = (0..self.load.silent)
            .filter_map(|_| self.tasks.insert(Task { events_left: EVENTS, has_event: false }).ok());
        silent.collect::<Vec<_>>().into_iter()
    }

    /// A task for a connection, with the connection as its first event.
    fn new_task(&mut self) -> Option<FrameId> {
        let task = self.tasks.insert(Task { events_left: EVENTS, has_event: true });
        assert!(task.is_ok(), "there is room for every task");
        task.ok()
    }

    fn event_came(&mut self, frame: FrameId) {
        if let Some(task) = self.tasks.get_mut(frame) {
            task.has_event = true;
        }
    }

    fn later(&mut self, at: Clocks, event: Event) {
        self.number += 1;
        self.world.push(Reverse((at, self.number, event)));
    }

    /// The next event that has happened by now.
    fn next_event(&mut self) -> Option<Event> {
        let due = self.world.peek().is_some_and(|Reverse((at, ..))| *at <= self.now);
        if due { self.world.pop().map(|Reverse((.., event))| event) } else { None }
    }
}

/// The most tasks that linger at once. They have ended one right after the other, within the linger
/// time plus a tick of the delay queue.
fn lingering_max(load: Load) -> usize {
    let span = load.linger.0 + 2_000 * CLOCKS_PER_MICRO;
    let each = load.handle.0.saturating_mul(u64::from(EVENTS)).max(1);
    usize::try_from((span / each).min(load.emails)).unwrap_or(usize::MAX) + load.threads
}

/// The queue's clock ticks in microseconds; a deadline never comes early.
fn instant(clocks: Clocks) -> Instant {
    Instant(clocks.0 / CLOCKS_PER_MICRO)
}
