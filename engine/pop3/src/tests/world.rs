//! A server around the session under test. It records all actions, and asserts the session's
//! obligations.

use std::string::{String, ToString};
use std::vec::Vec;

use machine::Micros;
use sasl::{Credentials, Host, Proof, Puzzle, ServerSignature};
use testkit::scram;

use crate::{
    Actions, DeletionError, LoginRefusal, Maildrop, MessageNumber, PlainLogin, Pop3Settings,
    Pop3WaitsFor, ReadError, Session, UniqueId,
};

/// The server.
#[derive(Debug)]
pub(super) struct World {
    pub(super) settings: Pop3Settings,
    pub(super) send_room: usize,
    /// Replies that the test has not taken yet.
    pub(super) sent: Vec<u8>,
    /// Logins, stopped reads and deletions of the session.
    pub(super) log: Vec<String>,
    pub(super) messages: Vec<Vec<u8>>,
    marks: Vec<bool>,
    /// The message that is being read.
    pub(super) reading: Option<Vec<u8>>,
    pub(super) maildrop_open: bool,
    /// The server's signature for a client with an accepted proof.
    signature: Option<ServerSignature>,
    pub(super) deadline: Option<Micros>,
    pub(super) closed: bool,
}

impl World {
    pub(super) fn new() -> World {
        World::with(&[b"Subject: one\r\n\r\n1\r\n", b"Subject: two\r\n\r\n.\r\n..2\r\n", b""])
    }

    pub(super) fn with(messages: &[&[u8]]) -> World {
        World {
            settings: Pop3Settings { plain_login: PlainLogin::Offered, ..Pop3Settings::default() },
            send_room: usize::MAX,
            sent: Vec::new(),
            log: Vec::new(),
            messages: messages.iter().map(|message| message.to_vec()).collect(),
            marks: std::vec![false; messages.len()],
            reading: None,
            maildrop_open: false,
            signature: None,
            deadline: None,
            closed: false,
        }
    }

    fn assert_open(&self) {
        assert!(self.maildrop_open && !self.closed);
    }
}

impl Host for World {
    fn puzzle(&mut self, name: &str) -> Puzzle {
        assert!(!self.closed);
        self.log.push(std::format!("puzzle {name:?}"));
        scram::puzzle()
    }

    fn login(&mut self, credentials: Credentials<'_>) {
        assert!(!self.maildrop_open && !self.closed);
        let name = credentials.name;
        match credentials.proof {
            Proof::Password(password) => {
                self.log
                    .push(std::format!("login {name:?} {:?}", String::from_utf8_lossy(password)));
            }
            Proof::Scram(proof) => {
                self.signature = scram::check(&proof);
                self.log.push(std::format!("login {name:?}, proved: {}", self.signature.is_some()));
            }
        }
    }
}

impl Actions for World {
    fn settings(&self) -> Pop3Settings {
        self.settings
    }

    fn send_room(&self) -> usize {
        self.send_room
    }

    fn reply(&mut self, bytes: &[u8]) {
        assert!(!self.closed, "a reply after the end");
        assert!(bytes.len() <= self.send_room, "{} bytes into {}", bytes.len(), self.send_room);
        self.sent.extend_from_slice(bytes);
        self.send_room -= bytes.len();
    }

    fn abandon_login(&mut self) {
        assert!(!self.maildrop_open && !self.closed);
        self.log.push("abandon".to_string());
    }

    fn message_bytes(&self, message: MessageNumber) -> u64 {
        self.assert_open();
        self.messages[message.index()].len() as u64
    }

    fn unique_id(&self, message: MessageNumber) -> UniqueId {
        self.assert_open();
        UniqueId::from_uid(0x5eed, message.0 + 9)
    }

    fn is_marked(&self, message: MessageNumber) -> bool {
        self.assert_open();
        self.marks[message.index()]
    }

    fn mark(&mut self, message: MessageNumber) {
        self.assert_open();
        assert!(!core::mem::replace(&mut self.marks[message.index()], true));
    }

    fn unmark_all(&mut self) {
        self.assert_open();
        self.marks.fill(false);
    }

    fn read(&mut self, message: MessageNumber) {
        self.assert_open();
        assert!(self.reading.is_none() && !self.is_marked(message));
        self.reading = Some(self.messages[message.index()].clone());
    }

    fn stop_reading(&mut self) {
        self.assert_open();
        assert!(self.reading.take().is_some());
        self.log.push("stop".to_string());
    }

    fn delete_marked(&mut self) {
        self.assert_open();
        let marked: Vec<usize> =
            (1..).zip(&self.marks).filter(|(_, mark)| **mark).map(|(number, _)| number).collect();
        self.log.push(std::format!("delete {marked:?}"));
    }

    fn leave_maildrop(&mut self) {
        self.assert_open();
        self.maildrop_open = false;
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        assert!(!self.closed);
        self.deadline = after;
    }

    fn close(&mut self) {
        assert!(!self.closed && !self.maildrop_open && self.reading.is_none());
        self.closed = true;
    }
}

/// A session, its server, and the bytes that the session has not taken yet.
pub(super) struct Conversation {
    pub(super) session: Session,
    pub(super) world: World,
    pub(super) kept: Vec<u8>,
    /// Buffer space that the client frees whenever the session waits for buffer space.
    pub(super) send_room_step: usize,
    /// The result of each login. `None`: the host has none yet.
    pub(super) login_answer: Option<Result<(), LoginRefusal>>,
    /// The number of bytes of a message that one read returns. 0: the host has none yet.
    pub(super) read_step: usize,
    /// The number of bytes of a message after which the read fails, and the error.
    pub(super) read_error: Option<(usize, ReadError)>,
    pub(super) deletion_answer: Option<Result<(), DeletionError>>,
    read: usize,
}

impl Conversation {
    /// A client has connected and was greeted.
    pub(super) fn with(mut world: World) -> Conversation {
        let session = Session::connected(&mut world);
        let mut conversation = Conversation {
            session,
            world,
            kept: Vec::new(),
            send_room_step: usize::MAX,
            login_answer: Some(Ok(())),
            read_step: usize::MAX,
            read_error: None,
            deletion_answer: Some(Ok(())),
            read: 0,
        };
        assert_eq!(conversation.replies(), "+OK Barepost ready\r\n");
        conversation
    }

    pub(super) fn new() -> Conversation {
        Conversation::with(World::new())
    }

    /// A conversation with a client that is logged in.
    pub(super) fn logged_in_to(world: World) -> Conversation {
        let mut conversation = Conversation::with(world);
        conversation.says("USER ada\r\nPASS secret\r\n");
        let replies = conversation.replies();
        assert!(
            replies.starts_with("+OK Send PASS\r\n+OK ") && replies.ends_with(" messages\r\n"),
            "{replies}"
        );
        conversation
    }

    pub(super) fn logged_in() -> Conversation {
        Conversation::logged_in_to(World::new())
    }

    /// The client sends bytes. The session gets the events that it waits for, until it waits for
    /// more bytes or for an event that the test withholds.
    pub(super) fn says(&mut self, bytes: impl AsRef<[u8]>) {
        self.kept.extend_from_slice(bytes.as_ref());
        loop {
            let taken = self.session.bytes_arrived(&self.kept, &mut self.world);
            assert!(taken <= self.kept.len());
            self.kept.drain(..taken);
            let progress = match self.session.waits_for() {
                Pop3WaitsFor::Bytes | Pop3WaitsFor::Handshake | Pop3WaitsFor::Nothing => false,
                Pop3WaitsFor::SendRoom => self.room_comes(),
                Pop3WaitsFor::Turn => {
                    self.session.resumed(&mut self.world);
                    true
                }
                Pop3WaitsFor::Login => self.login_comes(),
                Pop3WaitsFor::Message => self.message_comes(),
                Pop3WaitsFor::Deletion => match self.deletion_answer {
                    Some(answer) => {
                        self.session.deleted(answer, &mut self.world);
                        true
                    }
                    None => false,
                },
            };
            if !progress {
                break;
            }
        }
    }

    fn room_comes(&mut self) -> bool {
        if self.send_room_step == 0 {
            return false;
        }
        self.world.send_room = self.world.send_room.saturating_add(self.send_room_step);
        if self.world.reading.is_some() {
            self.message_comes();
        } else {
            self.session.resumed(&mut self.world);
        }
        true
    }

    fn login_comes(&mut self) -> bool {
        let Some(answer) = self.login_answer else { return false };
        let messages = self.world.messages.len() as u32;
        let bytes = self.world.messages.iter().map(|message| message.len() as u64).sum();
        self.world.maildrop_open = answer.is_ok();
        let answer = answer.map(|()| (Maildrop { messages, bytes }, self.world.signature.take()));
        self.session.login_answered(answer, &mut self.world);
        true
    }

    fn message_comes(&mut self) -> bool {
        if self.read_step == 0 {
            return false;
        }
        let message = self.world.reading.clone().unwrap();
        let rest = &message[self.read..];
        let failed = self.read_error.filter(|(after, _)| self.read >= *after);
        if rest.is_empty() || failed.is_some() {
            self.read = 0;
            self.world.reading = None;
            let result = failed.map_or(Ok(()), |(_, error)| Err(error));
            self.session.message_ended(result, &mut self.world);
            return true;
        }
        let piece = &rest[..self.read_step.min(rest.len())];
        let taken = self.session.message_bytes_arrived(piece, &mut self.world);
        assert!(taken <= piece.len());
        self.read += taken;
        if self.world.reading.is_none() {
            assert_eq!(taken, piece.len());
            self.read = 0;
        }
        true
    }

    /// The server's replies since the last call.
    pub(super) fn replies(&mut self) -> String {
        String::from_utf8(core::mem::take(&mut self.world.sent)).unwrap()
    }

    /// For each pair, sends the first text and checks that the second is the exact reply.
    #[track_caller]
    pub(super) fn exchange(&mut self, lines: &[(&str, &str)]) {
        for (client, server) in lines {
            self.says(client);
            assert_eq!(&self.replies(), server, "after {client:?}");
        }
    }
}
