//! The threads of the server and its clients, each on its own processor, and their work in a span
//! of time.
//!
//! The measuring thread only reads counters that the other threads write, and sleeps between two
//! readings. It shares a processor with another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::client::Client;
use crate::dialogue::{Load, Words};
use crate::server::{self, Beginning};
use crate::wire::ends;

/// The longest wait for a state of the threads.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time between two checks of the threads.
const LOOK: Duration = Duration::from_millis(1);

/// The work that was done in a span of time.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Exchanges a second, such as pages or messages.
    pub per_second: f64,
    /// The part of the span, 0 to 1, in which the server's busiest core had work.
    pub busiest: f64,
    /// The part of the span, 0 to 1, in which the server's least busy core had work.
    pub idlest: f64,
}

/// The most cores that a server can have on this host. There are as many clients as cores, and each
/// core and client needs its own processor.
pub fn cores_max() -> u8 {
    (processors().len() / 2).min(usize::from(::server::CORES_MAX)) as u8
}

/// Measures a server with `cores` cores (1 to [`cores_max`]) and as many clients, under `load`,
/// within `span`.
///
/// Errors: the reason, as text for people.
pub fn measure(cores: u8, load: Load, span: Duration) -> Result<Measured, String> {
    let processors = processors();
    let (near, far) = ends(cores, cores);
    let room = Room::new();
    let mut threads = Vec::new();
    for (beginning, processor) in server::cores(near, &room.serves)?.into_iter().zip(&processors) {
        threads.push(serve(beginning, *processor, &room)?);
    }
    room.await_that(&threads, |_| room.serves.load(Ordering::Acquire))?;
    let clients = (cores..).zip(far).zip(processors.iter().skip(usize::from(cores)));
    let words = Arc::new(Words::of(load)?);
    for ((end, wire), processor) in clients {
        let words = Arc::clone(&words);
        let make = move || Client::new(words, load.connections(), wire, end, cores);
        threads.push(ask(make, *processor, &room)?);
    }
    let (servers, clients) = threads.split_at(usize::from(cores));
    room.await_that(&threads, |_| clients.iter().all(|client| client.count() >= load.warm()))?;
    let (began, busy, done) = (Instant::now(), counts(servers), counts(clients));
    room.await_that(&threads, |_| began.elapsed() >= span)?;
    let (took, busy_then, done_then) =
        (began.elapsed().as_secs_f64(), counts(servers), counts(clients));
    drop(room);
    for thread in threads {
        thread.handle.join().map_err(|_| "a thread panicked")??;
    }
    let parts =
        busy_then.iter().zip(&busy).map(|(then, before)| (then - before) as f64 / 1e6 / took);
    let (busiest, idlest) =
        parts.fold((0.0_f64, 1.0_f64), |(most, least), part| (most.max(part), least.min(part)));
    let done = done_then.iter().sum::<u64>() - done.iter().sum::<u64>();
    Ok(Measured { per_second: done as f64 / took, busiest, idlest })
}

/// The processors that this process may use.
pub(crate) fn processors() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect()
}

/// Moves the calling thread to the first processor, and keeps it there.
pub(crate) fn stay_on_first() -> Result<(), String> {
    stay_on(*processors().first().ok_or("there is no processor")?)
}

/// Moves the calling thread to `processor`, and keeps it there.
pub(crate) fn stay_on(processor: usize) -> Result<(), String> {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only)
        .map_err(|error| format!("processor {processor} is not available: {error}"))
}

/// The state that all threads share.
pub(crate) struct Room {
    pub(crate) serves: Arc<AtomicBool>,
    pub(crate) is_over: Arc<AtomicBool>,
}

/// A thread and its counter: microseconds of work for a core of the server, or the exchanges that a
/// client has completed.
pub(crate) struct Thread {
    pub(crate) handle: JoinHandle<Result<(), String>>,
    count: Arc<AtomicU64>,
}

impl Thread {
    pub(crate) fn start(
        name: &str,
        work: impl FnOnce(&AtomicU64) -> Result<(), String> + Send + 'static,
    ) -> Result<Thread, String> {
        let count = Arc::new(AtomicU64::new(0));
        let own = Arc::clone(&count);
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || work(&own));
        Ok(Thread { handle: thread.map_err(|error| error.to_string())?, count })
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

fn counts(threads: &[Thread]) -> Vec<u64> {
    threads.iter().map(Thread::count).collect()
}

pub(crate) fn serve(beginning: Beginning, processor: usize, room: &Room) -> Result<Thread, String> {
    let is_over = Arc::clone(&room.is_over);
    Thread::start("server", move |count| {
        stay_on(processor)?;
        let mut core = beginning.begin();
        while !is_over.load(Ordering::Relaxed) {
            core.turn()?;
            count.store(core.busy().as_micros() as u64, Ordering::Relaxed);
        }
        Ok(())
    })
}

fn ask(
    make: impl FnOnce() -> Client + Send + 'static,
    processor: usize,
    room: &Room,
) -> Result<Thread, String> {
    let is_over = Arc::clone(&room.is_over);
    Thread::start("client", move |count| {
        stay_on(processor)?;
        let mut client = make();
        while !is_over.load(Ordering::Relaxed) {
            client.turn()?;
            count.store(client.done(), Ordering::Relaxed);
        }
        Ok(())
    })
}

impl Room {
    pub(crate) fn new() -> Room {
        Room { serves: Arc::new(AtomicBool::new(false)), is_over: Arc::new(AtomicBool::new(false)) }
    }

    /// Waits until `is_so` returns true, or until a thread has ended. The caller finds the error of
    /// an ended thread when it joins the thread.
    ///
    /// Errors: the wait exceeds [`PATIENCE`].
    pub(crate) fn await_that(
        &self,
        threads: &[Thread],
        is_so: impl Fn(&Room) -> bool,
    ) -> Result<(), String> {
        let began = Instant::now();
        while !is_so(self) {
            if threads.iter().any(|thread| thread.handle.is_finished()) {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err("the threads make no progress".into());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
