//! A room with one engine and one client host in it, whose time passes only when both have nothing left to do.

#![allow(dead_code, reason = "each test file uses a part of the room")]
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

use machine::{Instant, Micros};
use server::configuration::Configuration;
use server::{Ending, Engine, MEMORY_BYTES_MIN, Next, Sizes};
use simulated::{Client, Connection, Dice, MemoryDisk, SimulatedMachine};
use smoltcp::wire::Ipv4Address;

pub(crate) const SERVER: Ipv4Address = Ipv4Address::new(10, 0, 0, 2);
const CLIENT: Ipv4Address = Ipv4Address::new(10, 0, 0, 1);
const DISK_BYTES: u64 = 32 << 20;
/// Steps after which a conversation that has not gone on is stuck.
const STEPS_MAX: usize = 200_000;

pub(crate) const CONFIGURATION: &str = r#"
hostname = "mail.barepost.test"
domains = ["barepost.test"]

[network]
address = "10.0.0.2/24"

[[user]]
address = "ada@barepost.test"
# The hash of "lovelace", of little cost: the tests log in often.
password_hash = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$Oi7AsNkSF11/Jvy4J3BMjBTrWUr2l8Z3T8a7yI9rNnQ"
aliases = ["postmaster@barepost.test", "countess@barepost.test"]

[[user]]
address = "grace@barepost.test"
password_hash = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$Oi7AsNkSF11/Jvy4J3BMjBTrWUr2l8Z3T8a7yI9rNnQ"

[access]
plaintext_auth_from = ["10.0.0.0/24"]
"#;

/// One engine, one client, one wire.
pub(crate) struct Room {
    pub(crate) machine: SimulatedMachine,
    pub(crate) engine: Engine,
    pub(crate) client: Client,
    pub(crate) ended: Option<Ending>,
}

impl Room {
    /// A room whose engine starts on a blank disk, and serves.
    pub(crate) fn new(seed: u64) -> Room {
        Room::with_disk(seed, MemoryDisk::blank(DISK_BYTES))
    }

    /// A room whose engine starts on `disk`, and serves.
    pub(crate) fn with_disk(seed: u64, disk: MemoryDisk) -> Room {
        let mut machine = SimulatedMachine::new(seed, disk);
        let configuration = Configuration::parse(CONFIGURATION).expect("the configuration is valid");
        let engine = Engine::new(configuration, Sizes::for_memory(MEMORY_BYTES_MIN), &mut machine);
        let mut room = Room { machine, engine, client: Client::new(CLIENT, seed), ended: None };
        room.until("the engine serves", |room| room.machine.console.iter().any(|line| line.contains("serving")));
        room
    }

    /// Cuts the power, and starts again on what is left of the disk.
    pub(crate) fn power_cut(self, seed: u64) -> Room {
        Room::with_disk(seed, self.machine.disk.power_cut(&mut Dice::new(seed)))
    }

    /// One turn of everybody. Time passes when nobody has anything to do at this moment.
    pub(crate) fn step(&mut self) {
        let next = self.engine.turn(&mut self.machine);
        let now = self.machine.now;
        self.client.exchange(now, &mut self.machine.from_engine, &mut self.machine.to_engine);
        let busy = !self.machine.to_engine.is_empty() || self.machine.disk.has_completions();
        let engine_at = match next {
            Next::Now => now,
            Next::At(at) => at,
            Next::Stopped(ending) => {
                self.ended = Some(ending);
                now
            }
        };
        if !busy {
            let client_at = self.client.next_deadline(now).unwrap_or(Instant(u64::MAX));
            let next = engine_at.min(client_at).min(now + Micros::from_secs(1));
            self.machine.now = next.max(now + Micros(50));
        }
    }

    /// Steps until `reached`.
    pub(crate) fn until(&mut self, what: &str, mut reached: impl FnMut(&mut Room) -> bool) {
        for _ in 0..STEPS_MAX {
            if reached(self) {
                return;
            }
            self.step();
        }
        panic!("stuck while waiting until {what}; console:\n{}", self.machine.console.join("\n"));
    }

    pub(crate) fn connect(&mut self, port: u16) -> Talk {
        let connection = self.client.connect(SERVER, port);
        Talk { connection, heard: Vec::new() }
    }

    /// Sends all of `bytes`, stepping as far as it takes.
    pub(crate) fn send(&mut self, talk: &Talk, bytes: &[u8]) {
        let mut rest = bytes;
        self.until("all is sent", |room| {
            let sent = room.client.send(talk.connection, rest);
            rest = &rest[sent..];
            rest.is_empty()
        });
    }

    /// The next line that the server says, without its CRLF.
    pub(crate) fn line(&mut self, talk: &mut Talk) -> String {
        let mut line = None;
        self.until("a line arrives", |room| {
            talk.heard.extend(room.client.received(talk.connection));
            let end = talk.heard.windows(2).position(|pair| pair == b"\r\n");
            line = end.map(|end| talk.heard.drain(..end + 2).take(end).collect::<Vec<u8>>());
            line.is_some()
        });
        String::from_utf8(line.unwrap_or_default()).expect("replies are text")
    }

    /// Says `command` and returns the last line of an SMTP reply.
    pub(crate) fn smtp(&mut self, talk: &mut Talk, command: &str) -> String {
        self.send(talk, format!("{command}\r\n").as_bytes());
        self.smtp_reply(talk)
    }

    pub(crate) fn smtp_reply(&mut self, talk: &mut Talk) -> String {
        loop {
            let line = self.line(talk);
            if line.as_bytes().get(3) != Some(&b'-') {
                return line;
            }
        }
    }

    /// Says `command` and returns the one line of a POP3 response.
    pub(crate) fn pop3(&mut self, talk: &mut Talk, command: &str) -> String {
        self.send(talk, format!("{command}\r\n").as_bytes());
        self.line(talk)
    }

    /// The lines that follow a response of several lines, unstuffed, with their CRLF.
    pub(crate) fn pop3_lines(&mut self, talk: &mut Talk) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.until("the last line arrives", |room| {
            talk.heard.extend(room.client.received(talk.connection));
            talk.heard.ends_with(b"\r\n.\r\n") || talk.heard == b".\r\n"
        });
        for line in talk.heard.drain(..).collect::<Vec<u8>>().split_inclusive(|byte| *byte == b'\n') {
            if line == b".\r\n" {
                break;
            }
            bytes.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
        }
        bytes
    }

    /// Sends one message from a client of its own, and returns the reply to its end.
    pub(crate) fn deliver(&mut self, recipient: &str, body: &[u8]) -> String {
        let mut talk = self.connect(25);
        assert!(self.smtp_reply(&mut talk).starts_with("220 "));
        assert!(self.smtp(&mut talk, "EHLO client.test").starts_with("250 "));
        assert!(self.smtp(&mut talk, "MAIL FROM:<sender@elsewhere.test>").starts_with("250 "));
        assert!(self.smtp(&mut talk, &format!("RCPT TO:<{recipient}>")).starts_with("250 "));
        assert!(self.smtp(&mut talk, "DATA").starts_with("354 "));
        let mut stuffed = Vec::new();
        for line in body.split_inclusive(|byte| *byte == b'\n') {
            if line.starts_with(b".") {
                stuffed.push(b'.');
            }
            stuffed.extend_from_slice(line);
        }
        self.send(&talk, &stuffed);
        let reply = self.smtp(&mut talk, ".");
        assert!(self.smtp(&mut talk, "QUIT").starts_with("221 "));
        reply
    }

    /// A POP3 session of `user`, logged in.
    pub(crate) fn log_in(&mut self, user: &str) -> Talk {
        let mut talk = self.connect(110);
        assert!(self.line(&mut talk).starts_with("+OK"));
        assert!(self.pop3(&mut talk, &format!("USER {user}")).starts_with("+OK"));
        let response = self.pop3(&mut talk, "PASS lovelace");
        assert!(response.starts_with("+OK"), "{response}");
        talk
    }

    /// Message `number` as it is stored, below the trace fields that delivery put in front of it.
    pub(crate) fn retrieve(&mut self, talk: &mut Talk, number: usize) -> Vec<u8> {
        let response = self.pop3(talk, &format!("RETR {number}"));
        assert!(response.starts_with("+OK"), "{response}");
        let mut message = self.pop3_lines(talk);
        assert!(
            message.starts_with(b"Return-Path: <sender@elsewhere.test>\r\nReceived: from client.test ([10.0.0.1])\r\n")
        );
        let mut trace_lines = 0;
        let mut at = 0;
        while trace_lines < 2 || message[at] == b'\t' {
            at += message[at..].iter().position(|byte| *byte == b'\n').expect("a line ends") + 1;
            trace_lines += 1;
        }
        message.drain(..at);
        message
    }
}

/// One connection, and what of it was heard and not used yet.
pub(crate) struct Talk {
    pub(crate) connection: Connection,
    pub(crate) heard: Vec<u8>,
}
