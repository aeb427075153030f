//! Loads of messages on a mail server, and the time and instructions that they cost.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use host::{Failure, Stop, hold};

use super::{KIB, SINK};
use crate::beside::mailboxes::address;
use crate::beside::{Outcome, Side, Target};
use crate::workplace::refuse_if_stopped;

const BUDGET: Duration = Duration::from_secs(900);

/// The total bytes of one turn of large messages at our server.
const OURS_BYTES: usize = 64 << 20;
/// The total bytes of one turn of large messages at the peer.
const PEERS_BYTES: usize = 32 << 20;

/// A load.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) sessions: u32,
    pub(super) bytes: usize,
    /// True: a session sends one message after another. False: each message has its own connection.
    pub(super) is_kept: bool,
    pub(super) messages: u32,
}

impl Load {
    /// Messages of 1 KB, each with its own connection. `messages_for` sets their number.
    pub(super) fn small(sessions: u32) -> Load {
        Load { sessions, bytes: KIB, is_kept: false, messages: 0 }
    }

    /// The number of messages in one turn.
    pub(super) fn messages_for(self, side: Side) -> u32 {
        let (most, bytes) = match (side, self.sessions) {
            (Side::Ours, 1) => (1_000, OURS_BYTES),
            (Side::Ours, _) => (4_000, OURS_BYTES),
            (Side::Peer, 1) => (100, PEERS_BYTES),
            (Side::Peer, _) => (200, PEERS_BYTES),
        };
        most.min((bytes / self.bytes) as u32)
    }
}

/// The source of messages.
pub(super) struct Source {
    pub(super) program: PathBuf,
    pub(super) stop: Stop,
}

impl Source {
    /// Puts `load` on `target`. Errors: not every message was acknowledged.
    pub(super) fn put(&self, load: Load, target: &Target<'_>) -> Result<Outcome, Failure> {
        self.put_to(SINK, load, target)
    }

    /// Like [`Source::put`], with messages for this account.
    pub(super) fn put_to(
        &self,
        name: &str,
        load: Load,
        target: &Target<'_>,
    ) -> Result<Outcome, Failure> {
        refuse_if_stopped(&self.stop)?;
        target.count(load.messages, || {
            let mut command = hold::command(&self.program);
            if load.is_kept {
                command.arg("-d");
            }
            let sessions = load.sessions.min(load.messages);
            command.args([
                "-s",
                &sessions.to_string(),
                "-m",
                &load.messages.to_string(),
                "-l",
                &load.bytes.to_string(),
            ]);
            command.args(["-f", "bench@client.test", "-t", &address(name)]);
            command
                .arg(format!("inet:{}", SocketAddr::from((target.side.guest(), 25))))
                .stdin(Stdio::null());
            let began = Instant::now();
            hold::run_to_success(&mut command, "sending messages", BUDGET, &self.stop)?;
            Ok(began.elapsed())
        })
    }
}
