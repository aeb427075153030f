//! Letters put on a mail server, and what they took there.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{KIB, SINK};
use crate::bench::beside::mailboxes::address;
use crate::bench::beside::{Beside, Side};
use crate::bench::counters::Counters;
use crate::bench::workplace::refuse_if_stopped;
use crate::failure::Failure;
use crate::hold;
use crate::stop::Stop;

const BUDGET: Duration = Duration::from_secs(900);
/// What a server still does when the last letter is acknowledged, it has to have done by then.
const REST_BUDGET: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(500);
/// Looks in a row that have to find a server at rest.
const LOOKS: u32 = 4;
/// Instructions in a second above what an idle server executes that are no work.
const RESTING: f64 = 3_000_000.0;
const IDLE: Duration = Duration::from_secs(4);

/// Bytes that a turn of large letters comes to, ours and the peer's.
const OURS_BYTES: usize = 64 << 20;
const PEERS_BYTES: usize = 32 << 20;

/// What a load is.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) sessions: u32,
    pub(super) bytes: usize,
    /// Whether a session sends one letter after the other, or each has a connection of its own.
    pub(super) is_kept: bool,
    pub(super) letters: u32,
}

impl Load {
    /// Letters of 1 KB, each with a connection of its own; how many is left open.
    pub(super) fn small(sessions: u32) -> Load {
        Load { sessions, bytes: KIB, is_kept: false, letters: 0 }
    }

    /// How many letters one turn has.
    pub(super) fn letters_for(self, side: Side) -> u32 {
        let (most, bytes) = match (side, self.sessions) {
            (Side::Ours, 1) => (1_000, OURS_BYTES),
            (Side::Ours, _) => (4_000, OURS_BYTES),
            (Side::Peer, 1) => (100, PEERS_BYTES),
            (Side::Peer, _) => (200, PEERS_BYTES),
        };
        most.min((bytes / self.bytes) as u32)
    }
}

/// What came of it.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    /// Letters.
    pub(super) per_second: f64,
    /// Guest instructions for a letter.
    pub(super) instructions: f64,
}

/// A server under load.
pub(super) struct Target<'a> {
    pub(super) side: Side,
    counters: &'a Counters,
    /// Instructions of the guest in a second in which nothing happens.
    idle: f64,
}

impl Target<'_> {
    /// One that has just begun to serve: it is at rest when this returns.
    pub(super) fn at(beside: &Beside, side: Side) -> Result<Target<'_>, Failure> {
        let counters = beside.counters(side);
        std::thread::sleep(IDLE);
        let (before, began) = (counters.total_of(0)?, Instant::now());
        std::thread::sleep(IDLE);
        let idle = (counters.total_of(0)? - before) as f64 / began.elapsed().as_secs_f64();
        Ok(Target { side, counters, idle })
    }

    /// What `work` on so many letters comes to, which tells how long they took.
    pub(super) fn count(
        &self,
        letters: u32,
        work: impl FnOnce() -> Result<Duration, Failure>,
    ) -> Result<Outcome, Failure> {
        let (before, began) = (self.counters.total_of(0)?, Instant::now());
        let took = work()?;
        self.rest()?;
        let executed = (self.counters.total_of(0)? - before) as f64 - self.idle * began.elapsed().as_secs_f64();
        let letters = f64::from(letters);
        Ok(Outcome { per_second: letters / took.as_secs_f64(), instructions: executed / letters })
    }

    /// Returns when the server has nothing more to do.
    fn rest(&self) -> Result<(), Failure> {
        let (began, mut looks) = (Instant::now(), 0);
        while looks < LOOKS {
            if began.elapsed() > REST_BUDGET {
                return Err(Failure::broke(format_args!("the guest at {} does not come to rest", self.side.guest())));
            }
            let (before, looked) = (self.counters.total_of(0)?, Instant::now());
            std::thread::sleep(LOOK);
            let rate = (self.counters.total_of(0)? - before) as f64 / looked.elapsed().as_secs_f64();
            looks = if rate < self.idle + RESTING { looks + 1 } else { 0 };
        }
        Ok(())
    }
}

/// Where letters come from.
pub(super) struct Source {
    pub(super) program: PathBuf,
    pub(super) stop: Stop,
}

impl Source {
    /// Puts `load` on `target`. Errors: not every letter was acknowledged.
    pub(super) fn put(&self, load: Load, target: &Target<'_>) -> Result<Outcome, Failure> {
        self.put_to(SINK, load, target)
    }

    /// The same with letters for an account.
    pub(super) fn put_to(&self, name: &str, load: Load, target: &Target<'_>) -> Result<Outcome, Failure> {
        refuse_if_stopped(&self.stop)?;
        target.count(load.letters, || {
            let mut command = hold::command(&self.program);
            if load.is_kept {
                command.arg("-d");
            }
            let sessions = load.sessions.min(load.letters);
            command.args(["-s", &sessions.to_string(), "-m", &load.letters.to_string(), "-l", &load.bytes.to_string()]);
            command.args(["-f", "bench@client.test", "-t", &address(name)]);
            command.arg(format!("inet:{}", SocketAddr::from((target.side.guest(), 25)))).stdin(Stdio::null());
            let began = Instant::now();
            hold::run_to_success(&mut command, "sending letters", BUDGET, &self.stop)?;
            Ok(began.elapsed())
        })
    }
}
