//! The time of a page on an open TLS connection: on an otherwise idle server, and while handshakes
//! arrive as fast as the server answers them.
//!
//! Two clients run in one thread, in turn. The first client requests a page, and requests it again
//! as soon as the page has arrived. The second client sends the first flight of a handshake, always
//! the same bytes, and aborts when the answer arrives. So the second client needs almost no time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::dialogue::{Load, Words};
use crate::measure::{Room, Thread, processors, serve, stay_on};
use crate::server;
use crate::wire::{End, ends};

/// The duration of each measurement.
const SPAN: Duration = Duration::from_secs(1);
/// The number of repetitions. The result is the smallest 99th percentile of all repetitions,
/// because other load on the host only makes page times longer.
const REPETITIONS: usize = 3;
/// The number of pages at the beginning that are not counted.
const WARM: usize = 500;

/// The times of pages without and with a flood of handshakes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Flooded {
    /// The 99th percentile on an otherwise idle server.
    pub quiet: Duration,
    /// The 99th percentile while handshakes arrive.
    pub flooded: Duration,
    /// The handshakes that the server answers in a second during the flood.
    pub handshakes_per_second: f64,
}

/// Measures page times without and with a flood, several times in turn.
///
/// Errors: the reason, as text for people.
pub fn flood() -> Result<Flooded, String> {
    let mut best =
        Flooded { quiet: Duration::MAX, flooded: Duration::MAX, handshakes_per_second: 0.0 };
    for _ in 0..REPETITIONS {
        let (quiet, _) = pages(0)?;
        let (flooded, handshakes_per_second) = pages(Load::Hellos.connections())?;
        best.quiet = best.quiet.min(quiet);
        if flooded < best.flooded {
            (best.flooded, best.handshakes_per_second) = (flooded, handshakes_per_second);
        }
    }
    Ok(best)
}

/// The 99th percentile of page times while `others` connections do handshakes, and the number of
/// handshakes that the server answers in a second.
pub(crate) fn pages(others: usize) -> Result<(Duration, f64), String> {
    let processors = processors();
    let (Some(near_processor), Some(far_processor)) = (processors.first(), processors.get(1))
    else {
        return Err("this needs two processors".into());
    };
    let (near, far) = ends(1, 2);
    let room = Room::new();
    let mut threads = Vec::new();
    for beginning in server::cores(near, &room.serves)? {
        threads.push(serve(beginning, *near_processor, &room)?);
    }
    room.await_that(&threads, |room| room.serves.load(Ordering::Acquire))?;
    let (words, hellos) =
        (Arc::new(Words::of(Load::SecurePages)?), Arc::new(Words::of(Load::Hellos)?));
    let (far_processor, found) = (*far_processor, Arc::new(Found::default()));
    let (own, finds) = (Arc::clone(&room.is_over), Arc::clone(&found));
    threads.push(Thread::start("clients", move |count| {
        stay_on(far_processor)?;
        let [one, other] = <[End; 2]>::try_from(far).map_err(|_| "there are two ends")?;
        let mut asking = Client::new(words, 1, one, 1, 1);
        let mut flooding = Client::new(hellos, others, other, 2, 1);
        let mut took = Vec::with_capacity(1 << 20);
        let (mut asked, mut began, mut before) = (Instant::now(), Instant::now(), 0);
        while !own.load(Ordering::Relaxed) && (took.len() < WARM || began.elapsed() < SPAN) {
            asking.turn()?;
            if asking.done() > count.load(Ordering::Relaxed) {
                took.push(asked.elapsed());
                asked = Instant::now();
                count.store(asking.done(), Ordering::Relaxed);
            }
            if took.len() == WARM {
                (began, before) = (Instant::now(), flooding.done());
            }
            flooding.turn()?;
        }
        finds.answered.store(flooding.done() - before, Ordering::Relaxed);
        finds
            .p99_ns
            .store(p99(took.split_off(WARM.min(took.len()))).as_nanos() as u64, Ordering::Relaxed);
        Ok(())
    })?);
    room.await_that(&threads, |_| false)?;
    drop(room);
    for thread in threads {
        thread.handle.join().map_err(|_| "a thread panicked")??;
    }
    let answered = found.answered.load(Ordering::Relaxed) as f64 / SPAN.as_secs_f64();
    Ok((Duration::from_nanos(found.p99_ns.load(Ordering::Relaxed)), answered))
}

/// The results of the clients' thread.
#[derive(Default)]
struct Found {
    p99_ns: AtomicU64,
    answered: AtomicU64,
}

fn p99(mut took: Vec<Duration>) -> Duration {
    took.sort();
    took.get(took.len() * 99 / 100).copied().unwrap_or(Duration::MAX)
}
