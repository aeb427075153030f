//! The instructions that each core executes for a page or a message, in QEMU, with 1, 2, 4 and 8
//! cores.
//!
//! Suppose that cores never wait for each other. Then the busiest core limits their throughput. If
//! the busiest of n cores executes 1/m of the instructions that one core alone executes for a
//! request, then n cores reach at most m times the throughput.

use std::path::Path;
use std::time::Duration;

use host::{Failure, Repository, Stop, packages, remark};

use crate::at_tap::{Place, Queues, Serving, account, ask_for_pages, service};
use crate::client::{Client, message};
use crate::network::enter;

const CORES: [u32; 4] = [1, 2, 4, 8];
/// The time after which all work of a load is finished.
const SETTLE: Duration = Duration::from_millis(300);

const PAGES: u32 = 10_000;
const CONNECTIONS: u32 = 256;
/// The number of connections that are opened at once.
const OPENED: u32 = 2_000;
const SESSIONS: u32 = 64;
const MESSAGES_PER_SESSION: u32 = 25;
const MESSAGE_BYTES: usize = 1024;

/// The kind of request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Counting {
    Pages,
    PagesInNewConnections,
    Messages,
}

pub(super) const COUNTINGS: [Counting; 3] =
    [Counting::Pages, Counting::PagesInNewConnections, Counting::Messages];

/// The counts for each page or message.
pub(super) struct Counted {
    pub(super) load: Counting,
    pub(super) cores: u32,
    each: Vec<f64>,
}

impl Counting {
    pub(super) fn name(self) -> &'static str {
        match self {
            Counting::Pages => "a page of 4 KB, kept connections",
            Counting::PagesInNewConnections => "a page of 4 KB, a connection each",
            Counting::Messages => "a message of 1 KB, kept sessions",
        }
    }

    /// Puts the load on the guest. Returns the number of pages or messages.
    fn put(self, h2load: &Path) -> Result<u32, Failure> {
        match self {
            Counting::Pages => {
                ask_for_pages(h2load, PAGES, &[format!("-c{CONNECTIONS}")]).map(|()| PAGES)
            }
            Counting::PagesInNewConnections => {
                // Each request has its own connection. A few connections begin in each millisecond.
                let options = [format!("-c{OPENED}"), "-r2".into(), "--rate-period=1ms".into()];
                ask_for_pages(h2load, OPENED, &options).map(|()| OPENED)
            }
            Counting::Messages => send_messages().map(|()| SESSIONS * MESSAGES_PER_SESSION),
        }
    }
}

impl Counted {
    pub(super) fn in_all(&self) -> f64 {
        self.each.iter().sum()
    }

    pub(super) fn busiest(&self) -> f64 {
        self.each.iter().copied().fold(0.0, f64::max)
    }

    /// An upper bound for the throughput of these cores, as a multiple of the throughput of one
    /// core.
    pub(super) fn speed_up(&self, all: &[Counted]) -> f64 {
        let one = all.iter().find(|one| one.load == self.load && one.cores == 1);
        one.map_or(f64::NAN, Counted::in_all) / self.busiest()
    }
}

/// Counts the instructions of all loads with all numbers of cores. Call this in a separate thread,
/// because the thread enters a network namespace and cannot leave it.
pub(super) fn count(repository: &Repository, stop: &Stop) -> Result<Vec<Counted>, Failure> {
    let h2load = packages::program("h2load", "nghttp2-client", stop)?;
    let place = Place::make(repository, "fabric", stop)?;
    // Enter the namespace only now, because missing packages are fetched from the Internet before.
    enter()?;
    let mut counted = Vec::new();
    for cores in CORES {
        let serving = place.boot(repository, cores, Queues::Each)?;
        for load in COUNTINGS {
            // The first load is not counted, since it fills caches.
            load.put(&h2load)?;
            let one = measure(&serving, load, cores, &h2load)?;
            remark(format_args!(
                "{}: {}: {:.0} instructions, {:.0} on the busiest core",
                super::named(cores),
                load.name(),
                one.in_all(),
                one.busiest()
            ));
            counted.push(one);
        }
        serving.stop()?;
    }
    Ok(counted)
}

fn measure(
    serving: &Serving,
    load: Counting,
    cores: u32,
    h2load: &Path,
) -> Result<Counted, Failure> {
    let (executed, done) = serving.during(SETTLE, || load.put(h2load))?;
    Ok(Counted {
        load,
        cores,
        each: executed.iter().map(|core| core.total() as f64 / f64::from(done)).collect(),
    })
}

/// Runs the sessions at the same time, in threads that share this thread's network namespace.
fn send_messages() -> Result<(), Failure> {
    let text = message(MESSAGE_BYTES);
    std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let text = &text;
                scope.spawn(move || send_in_a_session(session * MESSAGES_PER_SESSION, text))
            })
            .collect();
        sessions.into_iter().try_for_each(|session| {
            session.join().map_err(|_| Failure::broke("a session panicked"))?
        })
    })
}

/// Sends messages in one session. The account `first` receives the first message. Each later
/// message goes to the next account.
fn send_in_a_session(first: u32, text: &[u8]) -> Result<(), Failure> {
    let mut session = Client::connect(service(25), "220")?;
    session.command(b"EHLO client.test\r\n", "250")?;
    for number in first..first + MESSAGES_PER_SESSION {
        session.command(b"MAIL FROM:<bench@client.test>\r\n", "250")?;
        session.command(format!("RCPT TO:<{}>\r\n", account(number)).as_bytes(), "250")?;
        session.command(b"DATA\r\n", "354")?;
        session.command(text, "250")?;
    }
    session.command(b"QUIT\r\n", "221")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_core_bounds_the_throughput_of_several() {
        let of = |cores: u32, each: Vec<f64>| Counted { load: Counting::Pages, cores, each };
        let all = [of(1, vec![1000.0]), of(4, vec![300.0, 250.0, 400.0, 150.0])];
        assert_eq!((all[1].in_all(), all[1].busiest()), (1100.0, 400.0));
        assert_eq!(all[1].speed_up(&all), 2.5);
    }
}
