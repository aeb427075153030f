//! Two kinds of scheduling: one queue that polls its tasks, or a resume queue and a delay queue
//! (bare PC email server, section IV.4, figures 16 and 17).
//!
//! A stress tool has several threads. Each thread sends emails one after another, each in a new
//! connection. An email is a dialogue of [`EVENTS`] events. After each event the server's task
//! waits for the client's next event. After the last event the client begins its next email. But
//! the task lingers, because the server must wait for the end of the connection.
//!
//! - [`Scheduling::OneQueue`] is the paper's first design. All tasks are in one queue, first come
//!   first served. The scheduler polls the first task. If the task's event has not arrived, the
//!   task joins the end of the queue.
//! - [`Scheduling::ResumeAndDelay`] is the paper's second design, and the engine's. A waiting task
//!   is in the delay queue. Its event or its deadline moves it to the resume queue. No task is
//!   polled.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use chance::Dice;
use machine::Instant;
use tasks::{DelayQueue, FrameId, FrameTable, ResumeQueue};

use crate::costs::{CLOCKS_PER_MICRO, Clocks};

/// The number of events of an email that the server handles: connection, greeting, sender,
/// recipient, data, message, end, and the acknowledgment of the end.
pub const EVENTS: u32 = 8;
/// The longest silence of a client. It is longer than any run of the model.
const TIMEOUT: Clocks = Clocks::from_micros(1 << 40);

/// The scheduling of tasks.
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
    /// The number of emails that are sent at a time.
    pub threads: usize,
    /// The number of all emails.
    pub emails: u64,
    /// The number of further connections, with silent clients.
    pub silent: usize,
    /// The mean time from an answer to the client's next event.
    pub turnaround: Clocks,
    /// The time for which a task is kept after its last event.
    pub linger: Clocks,
    /// The cost of handling one event.
    pub handle: Clocks,
    /// The cost of taking a task from a queue and checking whether it has an event.
    pub step: Clocks,
    /// The seed of the clients' turnarounds.
    pub seed: u64,
}

/// The result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// The number of emails that the server has received.
    pub emails: u64,
    /// The time until the server has received the last email.
    pub elapsed: Clocks,
    /// The number of steps. Each takes a task from the queue.
    pub steps: u64,
    /// The number of steps in which the task had no event.
    pub in_vain: u64,
    /// The most tasks in the only queue, or in the resume queue.
    pub queue_max: usize,
    /// The most tasks in the delay queue.
    pub delayed_max: usize,
}

/// Runs until the server has received every email, and only the tasks of silent clients are left.
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
    /// The event that this task waits for has arrived.
    Arrived(FrameId),
}

/// A task of the server.
struct Task {
    events_left: u32,
    has_event: bool,
}

/// The next state of a task.
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
    /// The number of events scheduled so far. It orders events of the same time.
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
            // A task for each silent client and each thread, and the most lingering tasks.
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

    /// Skips ahead when no task in the queue has an event. Counts the steps in vain until the next
    /// event.
    fn skip_rounds_in_vain(&mut self, length: usize) {
        let next = self.world.peek();
        assert!(next.is_some(), "emails are in progress, but no event is scheduled");
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

    /// Sleeps until the next event or deadline, because no task is ready.
    fn sleep(&mut self, deadline: Option<Instant>) {
        let event = self.world.peek().map(|Reverse((at, ..))| *at);
        let deadline = deadline.map(|deadline| Clocks::from_micros(deadline.0));
        let next = event.into_iter().chain(deadline).min();
        assert!(next.is_some(), "emails are in progress, but no event is scheduled");
        self.now = next.map_or(self.now, |at| self.now.max(at));
    }

    /// Whether the server has received every email, and only connections of silent clients are
    /// open.
    fn is_done(&self) -> bool {
        self.outcome.emails == self.load.emails && self.tasks.len() == self.load.silent
    }

    /// Runs a task that was taken from a queue: handles its event, if it has one. Both kinds of
    /// scheduling use this step.
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

    /// Schedules the connection for a client's next email, unless all emails have begun.
    fn begin_email(&mut self) {
        if self.begun < self.load.emails {
            self.begun += 1;
            let at = self.now + Clocks(self.dice.around(self.load.turnaround.0));
            self.later(at, Event::Connected);
        }
    }

    /// Makes the tasks of silent clients. They never get an event.
    fn silent_tasks(&mut self) -> impl Iterator<Item = FrameId> {
        let silent = (0..self.load.silent)
            .filter_map(|_| self.tasks.insert(Task { events_left: EVENTS, has_event: false }).ok());
        silent.collect::<Vec<_>>().into_iter()
    }

    /// Makes a task for a connection. The connection is the task's first event.
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

    /// The next event with a time that has been reached.
    fn next_event(&mut self) -> Option<Event> {
        let due = self.world.peek().is_some_and(|Reverse((at, ..))| *at <= self.now);
        if due { self.world.pop().map(|Reverse((.., event))| event) } else { None }
    }
}

/// The most tasks that linger at a time. A task lingers for at most the linger time and a tick of
/// the delay queue. Before a task lingers, the server handles all events of an email for it.
fn lingering_max(load: Load) -> usize {
    let span = load.linger.0 + 2_000 * CLOCKS_PER_MICRO;
    let each = load.handle.0.saturating_mul(u64::from(EVENTS)).max(1);
    usize::try_from((span / each).min(load.emails)).unwrap_or(usize::MAX) + load.threads
}

/// A time on the delay queue's clock, which counts microseconds.
fn instant(clocks: Clocks) -> Instant {
    Instant(clocks.0 / CLOCKS_PER_MICRO)
}
