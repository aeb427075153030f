//! The other mail server of a room. It takes messages from machines, and records each in the model
//! of the machine that sent it.
//!
//! The server defers only the mailbox [`RemoteMailbox::Away`] for ever. So if a message for other
//! mailboxes stays in an outbox for long, the cause is the machine or a fault of the wire.

use machine::{Instant, Micros};

use super::model::Model;
use super::remote::RemoteMailbox;
use crate::{Client, Connection};

const PORT: u16 = 25;
/// The most connections at the same time.
const LISTENERS: usize = 16;
/// The server drops a connection that is idle for longer: the machine may have lost its power.
const PATIENCE: Micros = Micros::from_secs(30);

/// The server defers one in this many RCPT commands for mailboxes that take mail.
const PUT_OFF_EVERY: u64 = 6;

pub(super) struct RemoteServer {
    sessions: Vec<PeerSession>,
    /// The number of RCPT commands so far for mailboxes that take mail.
    rcpt_count: u64,
}

struct PeerSession {
    connection: Connection,
    heard: Vec<u8>,
    unsaid: Vec<u8>,
    is_greeted: bool,
    /// The mailboxes that were accepted for the next message. `station`: the machine that sends the
    /// message.
    recipients: Vec<RemoteMailbox>,
    station: usize,
    /// The client is sending a message: DATA was answered with 354.
    is_message: bool,
    /// The time at which input last arrived, or at which the connection was accepted.
    moved: Instant,
}

impl RemoteServer {
    pub(super) fn new(client: &mut Client) -> RemoteServer {
        RemoteServer {
            sessions: (0..LISTENERS)
                .map(|_| PeerSession::awaited(client, Instant::START))
                .collect(),
            rcpt_count: 0,
        }
    }

    /// Answers the commands that have arrived.
    pub(super) fn serve(&mut self, client: &mut Client, now: Instant, models: &mut [Model]) {
        for session in &mut self.sessions {
            let is_late = session.is_greeted && now.since(session.moved) > PATIENCE;
            if is_late || client.is_over(session.connection) {
                client.forget(session.connection);
                *session = PeerSession::awaited(client, now);
            }
            session.serve(client, now, models, &mut self.rcpt_count);
        }
    }
}

impl PeerSession {
    /// A session for the next connection.
    fn awaited(client: &mut Client, now: Instant) -> PeerSession {
        let connection = client.listen(PORT);
        let (heard, unsaid, recipients) = (Vec::new(), Vec::new(), Vec::new());
        PeerSession {
            connection,
            heard,
            unsaid,
            is_greeted: false,
            recipients,
            station: 0,
            is_message: false,
            moved: now,
        }
    }

    fn serve(
        &mut self,
        client: &mut Client,
        now: Instant,
        models: &mut [Model],
        rcpt_count: &mut u64,
    ) {
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
            let input: Vec<u8> = self.heard.drain(..end).collect();
            let answer = self.answer(&input, models, rcpt_count);
            self.unsaid.extend_from_slice(answer);
        }
        let sent = client.send(self.connection, &self.unsaid);
        self.unsaid.drain(..sent);
        if self.is_greeted && !is_open && self.unsaid.is_empty() {
            client.close(self.connection);
        }
    }

    /// The length of the next complete command or message in `heard`.
    fn end_of_next(&self) -> Option<usize> {
        let ends = |end: &[u8]| self.heard.windows(end.len()).position(|window| window == end);
        match self.is_message {
            true if self.heard.starts_with(b".\r\n") => Some(3),
            true => ends(b"\r\n.\r\n").map(|at| at + 5),
            false => ends(b"\r\n").map(|at| at + 2),
        }
    }

    /// The reply to a complete command or message.
    fn answer(
        &mut self,
        input: &[u8],
        models: &mut [Model],
        rcpt_count: &mut u64,
    ) -> &'static [u8] {
        if std::mem::take(&mut self.is_message) {
            let lines = input[..input.len() - 3].split_inclusive(|byte| *byte == b'\n');
            let content: Vec<u8> =
                lines.flat_map(|line| line.strip_prefix(b".").unwrap_or(line)).copied().collect();
            models[self.station].posted.taken(&content, &std::mem::take(&mut self.recipients));
            return b"250 2.0.0 Taken\r\n";
        }
        let line = String::from_utf8_lossy(input);
        match line.get(..4).unwrap_or_default() {
            "EHLO" => b"250-far.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 DSN\r\n",
            "MAIL" | "RSET" => {
                self.recipients.clear();
                b"250 2.0.0 OK\r\n"
            }
            "RCPT" => self.rcpt(line.split(['<', '>']).nth(1).unwrap_or_default(), rcpt_count),
            "DATA" if self.recipients.is_empty() => b"554 5.5.1 No valid recipients\r\n",
            "DATA" => {
                self.is_message = true;
                b"354 Go on\r\n"
            }
            "QUIT" => b"221 2.0.0 Bye\r\n",
            _ => b"250 2.0.0 OK\r\n",
        }
    }

    /// The reply to RCPT.
    fn rcpt(&mut self, address: &str, rcpt_count: &mut u64) -> &'static [u8] {
        let (mailbox, station) =
            RemoteMailbox::named(address).expect("the recipient is a mailbox of this server");
        if mailbox.takes() {
            *rcpt_count += 1;
        }
        match mailbox {
            RemoteMailbox::Unknown => b"550 5.1.1 No such mailbox\r\n",
            RemoteMailbox::Away => b"451 4.3.0 Not now\r\n",
            RemoteMailbox::Bob | RemoteMailbox::Carol
                if rcpt_count.is_multiple_of(PUT_OFF_EVERY) =>
            {
                b"451 4.7.1 Try again\r\n"
            }
            RemoteMailbox::Bob | RemoteMailbox::Carol => {
                self.recipients.push(mailbox);
                self.station = station;
                b"250 2.1.5 OK\r\n"
            }
        }
    }
}
