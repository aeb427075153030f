//! The other server of a room: it takes each message that a machine brings, and notes it in that
//! machine's ledger.
//!
//! It never refuses a message, so whatever an outbox keeps for long is the machine's doing, or a
//! fault's of the wire.

use machine::{Instant, Micros};

use super::ledger::Ledger;
use crate::{Client, Connection};

/// Which host it is, by its address: 10.0.0.99.
pub(super) const HOST: usize = 89;
pub(super) const SMARTHOST: &str = "10.0.0.99:25";
const PORT: u16 = 25;
/// Connections that it takes at a time.
const LISTENERS: usize = 16;
/// How long a connection may stand still: a machine may be without power.
const PATIENCE: Micros = Micros::from_secs(30);

/// Where mail of a machine goes.
pub(super) fn address_at(station: usize) -> String {
    format!("bob{station}@far.test")
}

pub(super) struct Peer(Vec<Talk>);

struct Talk {
    connection: Connection,
    heard: Vec<u8>,
    unsaid: Vec<u8>,
    is_greeted: bool,
    /// For whom the message is that comes, once the machine may send that.
    recipient: String,
    is_message: bool,
    moved: Instant,
}

impl Peer {
    pub(super) fn new(client: &mut Client) -> Peer {
        Peer((0..LISTENERS).map(|_| Talk::awaited(client, Instant::START)).collect())
    }

    /// Answers what was said. Something has come, or else there is nothing to answer.
    pub(super) fn serve(&mut self, client: &mut Client, now: Instant, ledgers: &mut [Ledger]) {
        for talk in &mut self.0 {
            let is_late = talk.is_greeted && now.since(talk.moved) > PATIENCE;
            if is_late || client.is_over(talk.connection) {
                client.forget(talk.connection);
                *talk = Talk::awaited(client, now);
            }
            talk.serve(client, now, ledgers);
        }
    }
}

impl Talk {
    fn awaited(client: &mut Client, now: Instant) -> Talk {
        let (connection, recipient) = (client.listen(PORT), String::new());
        let (heard, unsaid) = (Vec::new(), Vec::new());
        Talk { connection, heard, unsaid, is_greeted: false, recipient, is_message: false, moved: now }
    }

    fn serve(&mut self, client: &mut Client, now: Instant, ledgers: &mut [Ledger]) {
        let is_open = client.is_open(self.connection);
        if is_open && !self.is_greeted {
            (self.is_greeted, self.moved) = (true, now);
            self.unsaid.extend_from_slice(b"220 far.test\r\n");
        }
        let heard = client.received(self.connection);
        if !heard.is_empty() {
            self.moved = now;
        }
        self.heard.extend(heard);
        while let Some(end) = self.end_of_next() {
            let said: Vec<u8> = self.heard.drain(..end).collect();
            let answer = self.answer(&said, ledgers);
            self.unsaid.extend_from_slice(answer);
        }
        let sent = client.send(self.connection, &self.unsaid);
        self.unsaid.drain(..sent);
        if self.is_greeted && !is_open && self.unsaid.is_empty() {
            client.close(self.connection);
        }
    }

    /// Where the next command ends, or the message.
    fn end_of_next(&self) -> Option<usize> {
        let ends = |end: &[u8]| self.heard.windows(end.len()).position(|window| window == end);
        match self.is_message {
            true if self.heard.starts_with(b".\r\n") => Some(3),
            true => ends(b"\r\n.\r\n").map(|at| at + 5),
            false => ends(b"\r\n").map(|at| at + 2),
        }
    }

    fn answer(&mut self, said: &[u8], ledgers: &mut [Ledger]) -> &'static [u8] {
        if std::mem::take(&mut self.is_message) {
            let lines = said[..said.len() - 3].split_inclusive(|byte| *byte == b'\n');
            let content: Vec<u8> = lines.flat_map(|line| line.strip_prefix(b".").unwrap_or(line)).copied().collect();
            let station = (0..ledgers.len()).find(|station| address_at(*station) == self.recipient);
            ledgers[station.expect("it is for one of ours")].posted_taken(&content);
            return b"250 2.0.0 Taken\r\n";
        }
        let line = String::from_utf8_lossy(said);
        match line.get(..4).unwrap_or_default() {
            "EHLO" => b"250-far.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 DSN\r\n",
            "RCPT" => {
                self.recipient = line.split(['<', '>']).nth(1).unwrap_or_default().to_string();
                b"250 2.1.5 OK\r\n"
            }
            "DATA" => {
                self.is_message = true;
                b"354 Go on\r\n"
            }
            "QUIT" => b"221 2.0.0 Bye\r\n",
            _ => b"250 2.0.0 OK\r\n",
        }
    }
}
