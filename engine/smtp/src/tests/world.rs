//! A server around the session under test. It records all actions, and asserts the session's
//! obligations.

use std::string::{String, ToString};
use std::vec::Vec;

use machine::{Micros, UnixTime};
use sasl::{Credentials, Host, Proof, Puzzle, ServerSignature};
use testkit::scram;

use crate::{
    Actions, AuthRefusal, EnvelopeId, Extensions, Holds, LoginPolicy, Mail, MessageRefusal,
    MessageStart, Original, REPLY_BYTES_MAX, RcptTo, RecipientRefusal, SenderRefusal, Session,
    SmtpPath, SmtpSettings, SmtpTls, SmtpWaitsFor,
};

/// The server's side.
#[derive(Debug)]
pub(super) struct World {
    pub(super) settings: SmtpSettings,
    pub(super) hostname: String,
    pub(super) send_room: usize,
    /// Replies that the test has not taken yet.
    pub(super) sent: Vec<u8>,
    /// All actions of the session except replies and the bytes of messages.
    pub(super) log: Vec<String>,
    /// The message that is arriving.
    pub(super) message: Vec<u8>,
    /// The complete messages.
    pub(super) messages: Vec<Vec<u8>>,
    /// The number of bytes that `message_bytes` still takes before there is no space.
    pub(super) message_room: usize,
    pub(super) sender_refusal: Option<SenderRefusal>,
    /// Whether a check must end before a message begins.
    pub(super) sender_is_unknown: bool,
    /// Whether a check must end before a recipient is answered.
    pub(super) recipient_is_unknown: bool,
    /// The reason for the refusal of all mail from the client.
    pub(super) reason: String,
    pub(super) begin_refusal: Option<MessageRefusal>,
    /// The refusal of `message_bytes`, once the message has this many bytes.
    pub(super) bytes_refusal: Option<(usize, MessageRefusal)>,
    pub(super) end_refusal: Option<MessageRefusal>,
    /// The deadline that the host sets at the end of a message.
    pub(super) end_patience: Option<Micros>,
    pub(super) deadline: Option<Micros>,
    pub(super) closed: bool,
    pub(super) login_open: bool,
    /// The server's signature for a client that has proved the password.
    signature: Option<ServerSignature>,
    /// Whether a login with a signature was granted.
    is_signed: bool,
    transaction_open: bool,
    message_open: bool,
    message_whole: bool,
}

impl World {
    pub(super) fn new() -> World {
        World {
            settings: SmtpSettings {
                message_bytes_max: 1_000,
                recipients_max: 3,
                ..SmtpSettings::default()
            },
            hostname: "mail.test".to_string(),
            send_room: usize::MAX,
            sent: Vec::new(),
            log: Vec::new(),
            message: Vec::new(),
            messages: Vec::new(),
            message_room: usize::MAX,
            sender_refusal: None,
            sender_is_unknown: false,
            recipient_is_unknown: false,
            reason: String::new(),
            begin_refusal: None,
            bytes_refusal: None,
            end_refusal: None,
            end_patience: None,
            deadline: None,
            closed: false,
            login_open: false,
            signature: None,
            is_signed: false,
            transaction_open: false,
            message_open: false,
            message_whole: false,
        }
    }

    /// Whether no transaction, message or login is open.
    pub(super) fn is_settled(&self) -> bool {
        !self.transaction_open && !self.message_open && !self.message_whole && !self.login_open
    }
}

impl Host for World {
    fn puzzle(&mut self, name: &str) -> Puzzle {
        assert!(!self.closed);
        self.log.push(std::format!("puzzle {name:?}"));
        scram::puzzle()
    }

    fn login(&mut self, credentials: Credentials<'_>) {
        assert!(!self.login_open && !self.transaction_open && !self.closed);
        self.login_open = true;
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
    fn settings(&self) -> SmtpSettings {
        self.settings
    }

    fn send_room(&self) -> usize {
        self.send_room
    }

    fn reply(&mut self, bytes: &[u8]) {
        assert!(!self.closed, "a reply after the end");
        self.sent.extend_from_slice(bytes);
        self.send_room = self.send_room.saturating_sub(bytes.len());
    }

    fn hostname(&self) -> &str {
        &self.hostname
    }

    fn transaction_begin(&mut self, mail: &Mail<'_>) -> Result<(), SenderRefusal> {
        assert!(!self.transaction_open && !self.closed);
        if let Some(refusal) = self.sender_refusal {
            return Err(refusal);
        }
        self.transaction_open = true;
        self.log.push(std::format!(
            "from <{}> {:?} {:?} {:?}",
            mail.reverse_path.text(),
            mail.declared_bytes,
            mail.body,
            mail.character_set
        ));
        if let Some(until) = mail.held_until {
            self.log.push(std::format!("held until {}", until.seconds()));
        }
        if mail.returned.is_some() || mail.envelope_id.is_some() {
            self.log.push(std::format!(
                "returned {:?} as {:?}",
                mail.returned,
                mail.envelope_id.map(EnvelopeId::ascii)
            ));
        }
        Ok(())
    }

    fn may_answer(&mut self, path: &SmtpPath<'_>, _: &str) -> bool {
        assert!(self.transaction_open && !self.message_open && !self.message_whole && !self.closed);
        if self.recipient_is_unknown {
            self.log.push(std::format!("who is <{}>", path.text()));
        }
        !self.recipient_is_unknown
    }

    fn recipient(&mut self, recipient: &RcptTo<'_>) -> Result<(), RecipientRefusal> {
        assert!(self.transaction_open && !self.message_open && !self.closed);
        let path = &recipient.path;
        if let SmtpPath::Mailbox(mailbox) = path {
            match mailbox.local_part {
                "nobody" => return Err(RecipientRefusal::UnknownUser),
                "elsewhere" => return Err(RecipientRefusal::NotLocal),
                "abridged" => return Err(RecipientRefusal::NotFullyQualified),
                "toomany" => return Err(RecipientRefusal::TooMany),
                "full" => return Err(RecipientRefusal::MailboxFull),
                "small" => return Err(RecipientRefusal::NeverFits),
                "often" => return Err(RecipientRefusal::TooOften),
                "new" => return Err(RecipientRefusal::Greylisted),
                "unchecked" => return Err(RecipientRefusal::Unchecked),
                "guessed" => return Err(RecipientRefusal::Guessing),
                "unwanted" => return Err(RecipientRefusal::Unwanted),
                "asleep" => return Err(RecipientRefusal::Unavailable),
                _ => {}
            }
        }
        self.log.push(std::format!("to <{}>", path.text()));
        if recipient.notify.is_some() || recipient.original.is_some() {
            self.log.push(std::format!(
                "told {:?} of {:?}",
                recipient.notify,
                recipient.original.map(Original::ascii)
            ));
        }
        Ok(())
    }

    fn reason(&self) -> &str {
        &self.reason
    }

    fn transaction_end(&mut self) {
        assert!(self.transaction_open && !self.message_open && !self.closed);
        self.transaction_open = false;
        self.message_whole = false;
        self.log.push("over".to_string());
    }

    fn may_begin(&mut self, greeting_name: &str) -> bool {
        assert!(self.transaction_open && !self.message_open && !self.message_whole && !self.closed);
        if self.sender_is_unknown {
            self.log.push(std::format!("who is {greeting_name}"));
            self.deadline = None;
        }
        !self.sender_is_unknown
    }

    fn message_begin(&mut self, envelope: &MessageStart<'_>) -> Result<(), MessageRefusal> {
        assert!(self.transaction_open && !self.message_open && !self.message_whole && !self.closed);
        assert!(envelope.recipients > 0);
        if let Some(refusal) = self.begin_refusal {
            return Err(refusal);
        }
        self.message_open = true;
        self.message.clear();
        self.log.push(std::format!(
            "message from {} by {:?} for {}",
            envelope.greeting_name,
            envelope.protocol,
            envelope.recipients
        ));
        Ok(())
    }

    fn message_bytes(&mut self, bytes: &[u8]) -> Result<usize, MessageRefusal> {
        assert!(self.message_open && !self.closed && !bytes.is_empty());
        if let Some((length, refusal)) = self.bytes_refusal
            && self.message.len() + bytes.len() >= length
        {
            self.message_open = false;
            return Err(refusal);
        }
        let taken = bytes.len().min(self.message_room);
        self.message_room -= taken;
        self.message.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn message_end(&mut self) -> Result<(), MessageRefusal> {
        assert!(self.message_open && !self.closed);
        self.message_open = false;
        if let Some(refusal) = self.end_refusal {
            return Err(refusal);
        }
        self.message_whole = true;
        assert_eq!(self.deadline, None);
        self.deadline = self.end_patience;
        self.messages.push(core::mem::take(&mut self.message));
        Ok(())
    }

    fn message_abort(&mut self) {
        assert!(self.message_open && !self.closed);
        self.message_open = false;
        self.log.push("abort".to_string());
    }

    fn abandon_login(&mut self) {
        assert!(
            (core::mem::take(&mut self.login_open) || core::mem::take(&mut self.is_signed))
                && !self.closed
        );
        self.log.push("no login".to_string());
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        assert!(!self.closed);
        self.deadline = after;
    }

    fn close(&mut self) {
        assert!(!self.closed && self.is_settled());
        self.closed = true;
    }
}

/// A session, its server, and the bytes that the session has not taken yet.
pub(super) struct Conversation {
    pub(super) session: Session,
    pub(super) world: World,
    pub(super) kept: Vec<u8>,
    /// Space that the server makes for a message whenever the session waits for it.
    pub(super) message_room_step: usize,
    /// Space that the client makes for replies whenever the session waits for it.
    pub(super) send_room_step: usize,
    /// Whether the store answers at once.
    pub(super) store_answers: bool,
    /// The result of each login. `None`: the host has none yet.
    pub(super) login_answer: Option<Result<(), AuthRefusal>>,
}

impl Conversation {
    /// A client that has connected and was greeted.
    pub(super) fn new() -> Conversation {
        Conversation::with(World::new())
    }

    pub(super) fn with(mut world: World) -> Conversation {
        let session = Session::connected(&mut world);
        let mut conversation = Conversation {
            session,
            world,
            kept: Vec::new(),
            message_room_step: usize::MAX,
            send_room_step: usize::MAX,
            store_answers: true,
            login_answer: Some(Ok(())),
        };
        let greeting = conversation.replies();
        assert!(
            greeting.starts_with("220 ") && greeting.ends_with(" ESMTP Barepost\r\n"),
            "{greeting}"
        );
        conversation
    }

    /// A client that has sent EHLO.
    pub(super) fn greeted() -> Conversation {
        let mut conversation = Conversation::new();
        conversation.says("EHLO client.test\r\n");
        assert!(conversation.replies().ends_with("250 HELP\r\n"));
        conversation
    }

    /// A client that has sent EHLO, MAIL and RCPT.
    pub(super) fn addressed() -> Conversation {
        let mut conversation = Conversation::greeted();
        conversation.exchange(&[
            ("MAIL FROM:<ada@example.org>\r\n", "250 2.1.0 Sender OK\r\n"),
            ("RCPT TO:<bob@mail.test>\r\n", "250 2.1.5 Recipient OK\r\n"),
        ]);
        conversation
    }

    /// The client sends bytes. Then the session gets the events that it waits for, until it waits
    /// for more bytes or for an event that the test withholds.
    pub(super) fn says(&mut self, bytes: impl AsRef<[u8]>) {
        self.kept.extend_from_slice(bytes.as_ref());
        loop {
            let taken = self.session.bytes_arrived(&self.kept, &mut self.world);
            assert!(taken <= self.kept.len());
            self.kept.drain(..taken);
            match self.session.waits_for() {
                SmtpWaitsFor::Bytes
                | SmtpWaitsFor::Handshake
                | SmtpWaitsFor::Sender
                | SmtpWaitsFor::Nothing => {
                    break;
                }
                SmtpWaitsFor::Stored if self.store_answers => {
                    self.session.message_stored(Ok(b"4D2"), &mut self.world);
                }
                SmtpWaitsFor::Stored => break,
                SmtpWaitsFor::Login => match self.login_answer {
                    Some(answer) => {
                        self.world.login_open = false;
                        let answer = answer.map(|()| self.world.signature.take());
                        self.world.is_signed = matches!(answer, Ok(Some(_)));
                        self.session.login_answered(answer, &mut self.world);
                    }
                    None => break,
                },
                SmtpWaitsFor::MessageRoom if self.message_room_step > 0 => {
                    self.world.message_room = self.message_room_step;
                    self.session.message_room(&mut self.world);
                }
                SmtpWaitsFor::MessageRoom => break,
                SmtpWaitsFor::SendRoom if self.send_room_step > 0 => {
                    self.world.send_room = self.world.send_room.saturating_add(self.send_room_step);
                }
                SmtpWaitsFor::SendRoom => break,
            }
        }
    }

    /// The server's replies since the last call.
    pub(super) fn replies(&mut self) -> String {
        let sent = String::from_utf8(core::mem::take(&mut self.world.sent)).unwrap();
        assert_well_formed(&sent);
        sent
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

/// Asserts that every line has a code, a separator and a line end, and is not too long.
pub(super) fn assert_well_formed(replies: &str) {
    assert!(replies.is_empty() || replies.ends_with("\r\n"), "{replies:?}");
    for line in replies.split_terminator("\r\n") {
        assert!(line.len() + 2 <= 512, "{line:?}");
        assert!(line.bytes().all(|byte| (b' '..0x7f).contains(&byte)), "{line:?}");
        assert!(line.bytes().take(3).all(|byte| byte.is_ascii_digit()), "{line:?}");
        // Only the challenge of a login may be empty (RFC 4954 section 4).
        assert!(
            matches!(line.as_bytes()[3], b' ' | b'-') && (line.len() > 4 || line == "334 "),
            "{line:?}"
        );
    }
}

#[test]
fn longest_reply_fits_into_its_buffer() {
    let mut world = World::new();
    world.hostname = "h".repeat(255);
    world.settings.message_bytes_max = u64::MAX;
    world.settings.recipients_max = u16::MAX;
    world.settings.extensions = Extensions::ALL;
    world.settings.holds =
        Some(Holds { seconds_max: 999_999_999, now: UnixTime::from_seconds(1_800_000_000) });
    world.settings.tls = SmtpTls::Offered;
    world.settings.login = LoginPolicy::Required;
    let mut conversation = Conversation::with(world);
    conversation.says("EHLO x\r\n");
    assert!(conversation.replies().len() <= REPLY_BYTES_MAX);
    conversation.says("HELO x\r\n");
    assert!(conversation.replies().len() <= REPLY_BYTES_MAX);
}
