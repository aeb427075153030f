//! The server around a POP3 session. The user names in the script select the server's answers. The
//! server records all requests, and asserts the session's obligations.

use machine::Micros;
use pop3::{
    Actions, DeletionError, LoginRefusal, MessageNumber, PlainLogin, Pop3Settings, REPLY_BYTES_MAX,
    UniqueId,
};
use sasl::{Credentials, Host, Proof, Puzzle, ServerSignature};
use testkit::scram;

/// A reply of fewer bytes may be sent without buffer space.
const SHORT_REPLY_BYTES: usize = 128;

/// The messages that a maildrop may have. Each is a different case. The last cannot be read to its
/// end.
const MESSAGES: [&[u8]; 8] = [
    b"Subject: one\r\n\r\n1\r\n",
    b"Subject: two\r\n\r\n.\r\n..2\r\n.3",
    b"",
    b".\r\n\r\n.\r\n.\r\n",
    b"no header line ends",
    b"a: b\r\nc: d\r\n\r\n\r\n\r\nx\r\n",
    b"\r\n.",
    b"a: b\r\n\r\nthis one is damaged\r\n",
];

/// The message that the session reads.
#[derive(Clone)]
pub(super) struct Reading {
    pub(super) bytes: Vec<u8>,
    /// Reading fails after this many bytes.
    pub(super) fails_after: Option<usize>,
}

pub(super) struct World {
    /// The server's output.
    pub(super) sent: Vec<u8>,
    /// The requests of the session, as text.
    pub(super) log: Vec<String>,
    pub(super) messages: Vec<Vec<u8>>,
    pub(super) reading: Option<Reading>,
    pub(super) send_room: usize,
    pub(super) deadline: Option<Micros>,
    pub(super) closed: bool,
    /// The numbers of the messages that QUIT has deleted.
    pub(super) deleted: Vec<usize>,
    /// Whether each message is marked for deletion.
    marks: Vec<bool>,
    /// Whether the session has opened the maildrop.
    is_open: bool,
    /// The login without an answer yet.
    login: Option<Login>,
    /// Whether the session has requested a deletion, and has no answer yet.
    deleting: bool,
}

/// A login that the session has requested.
struct Login {
    user: String,
    proof: LoginProof,
}

/// The proof of the login.
enum LoginProof {
    Password,
    Scram(Option<ServerSignature>),
}

impl World {
    pub(super) fn new(chosen: u8) -> World {
        let messages: Vec<Vec<u8>> =
            (0..8).filter(|bit| chosen >> bit & 1 == 1).map(|bit| MESSAGES[bit].to_vec()).collect();
        World {
            sent: Vec::new(),
            log: Vec::new(),
            reading: None,
            send_room: REPLY_BYTES_MAX,
            deadline: None,
            closed: false,
            deleted: Vec::new(),
            marks: vec![false; messages.len()],
            messages,
            is_open: false,
            login: None,
            deleting: false,
        }
    }

    /// Answers the requested login.
    pub(super) fn log_in(&mut self) -> Result<Option<ServerSignature>, LoginRefusal> {
        let Login { user, proof } = self.login.take().expect("the session requested a login");
        let answer = match (user.as_str(), proof) {
            ("mallory", _) | (_, LoginProof::Scram(None)) => Err(LoginRefusal::Credentials),
            ("twin", _) => Err(LoginRefusal::InUse),
            ("later", _) => Err(LoginRefusal::TryLater),
            (_, LoginProof::Password) => Ok(None),
            (_, LoginProof::Scram(signature)) => Ok(signature),
        };
        self.is_open = answer.is_ok();
        answer
    }

    /// Carries out the requested deletion.
    pub(super) fn delete(&mut self) -> Result<(), DeletionError> {
        assert!(std::mem::take(&mut self.deleting), "the session requested a deletion");
        self.deleted =
            (1..).zip(&self.marks).filter(|(_, mark)| **mark).map(|(number, _)| number).collect();
        if self.deleted.len() == 3 { Err(DeletionError) } else { Ok(()) }
    }

    /// Whether the session has requested something and has no answer yet.
    pub(super) fn has_open_request(&self) -> bool {
        self.login.is_some() || self.deleting || self.reading.is_some()
    }

    fn assert_open(&self) {
        assert!(self.is_open && !self.closed, "a maildrop is used while it is open");
    }
}

impl Host for World {
    fn puzzle(&mut self, name: &str) -> Puzzle {
        assert!(!self.is_open && !self.closed && self.login.is_none());
        self.log.push(format!("puzzle {name:?}"));
        scram::puzzle()
    }

    fn login(&mut self, Credentials { name, proof }: Credentials<'_>) {
        assert!(!self.is_open && !self.closed && self.login.is_none());
        assert!(!name.is_empty() && !name.chars().any(|c| c.is_ascii_control()));
        self.log.push(format!("login {name:?} {proof:?}"));
        let proof = match proof {
            Proof::Password(_) => LoginProof::Password,
            Proof::Scram(proof) => LoginProof::Scram(scram::check(&proof)),
        };
        self.login = Some(Login { user: name.into(), proof });
    }
}

impl Actions for World {
    fn settings(&self) -> Pop3Settings {
        Pop3Settings { plain_login: PlainLogin::Offered, faults_max: 12, ..Pop3Settings::default() }
    }

    fn send_room(&self) -> usize {
        self.send_room
    }

    fn reply(&mut self, bytes: &[u8]) {
        assert!(!self.closed, "a reply after the end");
        assert!(
            bytes.len() <= self.send_room || bytes.len() < SHORT_REPLY_BYTES,
            "a long reply without buffer space"
        );
        self.sent.extend_from_slice(bytes);
        self.send_room = self.send_room.saturating_sub(bytes.len());
    }

    fn abandon_login(&mut self) {
        assert!(!self.is_open && !self.closed && self.login.take().is_some());
        self.log.push("abandon".into());
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
        assert!(
            !std::mem::replace(&mut self.marks[message.index()], true),
            "a message is marked once"
        );
    }

    fn unmark_all(&mut self) {
        self.assert_open();
        self.marks.fill(false);
    }

    fn read(&mut self, message: MessageNumber) {
        self.assert_open();
        assert!(self.reading.is_none() && !self.is_marked(message));
        let bytes = self.messages[message.index()].clone();
        let fails_after = bytes
            .ends_with(b"damaged\r\n")
            .then_some(if message.0.is_multiple_of(2) { 0 } else { 11 });
        self.reading = Some(Reading { bytes, fails_after });
    }

    fn stop_reading(&mut self) {
        self.assert_open();
        assert!(self.reading.take().is_some(), "only a begun reading is stopped");
    }

    fn delete_marked(&mut self) {
        self.assert_open();
        assert!(!self.deleting && self.marks.contains(&true));
        self.deleting = true;
        self.log.push(format!("delete {:?}", self.marks));
    }

    fn leave_maildrop(&mut self) {
        self.assert_open();
        self.is_open = false;
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        assert!(!self.closed);
        self.deadline = after;
    }

    fn close(&mut self) {
        assert!(
            !self.closed && !self.is_open && !self.has_open_request(),
            "the maildrop and all requests end before the session"
        );
        self.closed = true;
    }
}
