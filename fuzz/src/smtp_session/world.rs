//! The server around an SMTP session. The local parts of addresses in the script select what the
//! server refuses. The server records all requests, and asserts the session's obligations.

use machine::Micros;
use sasl::{Credentials, Host, Proof, Puzzle, ServerSignature};
use smtp::{
    Actions, AuthRefusal, ENVELOPE_ID_BYTES_MAX, EnvelopeId, Mail, MessageRefusal, MessageStart,
    ORIGINAL_BYTES_MAX, Original, REPLY_BYTES_MAX, RcptTo, RecipientRefusal, SenderRefusal,
    SmtpPath, SmtpSettings,
};
use testkit::scram;

/// A reply of fewer bytes may be sent without buffer space.
const SHORT_REPLY_BYTES: usize = 128;

pub(super) struct World {
    /// The server's output.
    pub(super) sent: Vec<u8>,
    /// The requests of the session, as text.
    pub(super) log: Vec<String>,
    /// Messages that the server acknowledged as stored.
    pub(super) stored: Vec<Vec<u8>>,
    pub(super) send_room: usize,
    pub(super) message_room: usize,
    pub(super) deadline: Option<Micros>,
    pub(super) closed: bool,
    /// The server dropped a message while its bytes arrived. The time of the refusal depends on the
    /// pieces in which the bytes arrive.
    pub(super) dropped_bytes: bool,
    settings: SmtpSettings,
    /// The local part of the open transaction's sender. It selects the operation that fails.
    sender: Option<String>,
    /// Whether the check of the sender has ended. Only the sender `unknown` waits for its check.
    pub(super) is_sender_checked: bool,
    /// The message that arrives.
    message: Option<Vec<u8>>,
    /// The message that is complete and has no answer yet.
    whole: Option<Vec<u8>>,
    /// The answer to the requested login.
    login: Option<Result<Option<ServerSignature>, AuthRefusal>>,
    /// Whether a SCRAM login has succeeded. The client may still be waiting for its reply.
    is_logged_in: bool,
}

impl World {
    pub(super) fn new(message_bytes_max: u64, login: smtp::LoginPolicy) -> World {
        World {
            sent: Vec::new(),
            log: Vec::new(),
            stored: Vec::new(),
            send_room: REPLY_BYTES_MAX,
            message_room: 0,
            deadline: None,
            closed: false,
            dropped_bytes: false,
            settings: SmtpSettings {
                message_bytes_max,
                recipients_max: 4,
                refused_recipients_max: 5,
                login,
                ..SmtpSettings::default()
            },
            sender: None,
            is_sender_checked: false,
            message: None,
            whole: None,
            login: None,
            is_logged_in: false,
        }
    }

    /// Answers the requested login.
    pub(super) fn log_in(&mut self) -> Result<Option<ServerSignature>, AuthRefusal> {
        let answer = self.login.take().expect("the session requested a login");
        self.is_logged_in = matches!(answer, Ok(Some(_)));
        answer
    }

    /// Whether the session has requested a login and has no answer yet.
    pub(super) fn has_open_request(&self) -> bool {
        self.login.is_some()
    }

    /// The store's answer to the complete message.
    pub(super) fn store(&mut self) -> Result<&'static [u8], MessageRefusal> {
        let whole = self.whole.clone();
        let fails = self.sender_is("notstored");
        match whole {
            Some(message) if !fails => {
                self.stored.push(message);
                Ok(b"4D2")
            }
            _ => Err(MessageRefusal::TryLater),
        }
    }

    /// Whether the store has a complete message and has not answered yet.
    pub(super) fn waits_for_store(&self) -> bool {
        self.whole.is_some()
    }

    /// Whether `what` is the local part of the sender, which selects the operation that fails.
    fn sender_is(&self, what: &str) -> bool {
        self.sender.as_ref().is_some_and(|sender| sender == what)
    }
}

impl Host for World {
    fn puzzle(&mut self, name: &str) -> Puzzle {
        assert!(!self.closed && self.login.is_none() && self.sender.is_none());
        self.log.push(format!("puzzle {name:?}"));
        scram::puzzle()
    }

    fn login(&mut self, Credentials { name, proof }: Credentials<'_>) {
        assert!(!self.closed && self.login.is_none() && self.sender.is_none());
        self.log.push(format!("login {name:?} {proof:?}"));
        self.login = Some(match (name, proof) {
            ("mallory", _) => Err(AuthRefusal::Credentials),
            ("later", _) => Err(AuthRefusal::TryLater),
            (_, Proof::Password(_)) => Ok(None),
            (_, Proof::Scram(proof)) => match scram::check(&proof) {
                None => Err(AuthRefusal::Credentials),
                signature => Ok(signature),
            },
        });
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
        assert!(bytes.len() <= REPLY_BYTES_MAX, "a reply longer than the maximum");
        assert!(
            bytes.len() <= self.send_room || bytes.len() < SHORT_REPLY_BYTES,
            "a long reply without buffer space"
        );
        self.sent.extend_from_slice(bytes);
        self.send_room = self.send_room.saturating_sub(bytes.len());
    }

    fn hostname(&self) -> &str {
        "mail.test"
    }

    fn transaction_begin(&mut self, mail: &Mail<'_>) -> Result<(), SenderRefusal> {
        assert!(self.sender.is_none() && !self.closed, "one transaction at a time");
        assert!(mail.declared_bytes.is_none_or(|bytes| bytes <= self.settings.message_bytes_max));
        let path = mail.reverse_path.text();
        let local_part = path.rsplit_once('@').map_or("", |(local_part, _)| local_part);
        match local_part {
            "full" => return Err(SenderRefusal::StorageFull),
            "busy" => return Err(SenderRefusal::Busy),
            _ => {}
        }
        let envelope_id = mail.envelope_id.map(EnvelopeId::ascii).unwrap_or_default();
        assert!(
            envelope_id.len() <= ENVELOPE_ID_BYTES_MAX + 2 && is_word(&envelope_id),
            "{envelope_id:?}"
        );
        self.sender = Some(local_part.into());
        self.log.push(format!(
            "from {path:?} {:?} {:?} {:?}",
            mail.declared_bytes, mail.body, mail.character_set
        ));
        self.log.push(format!("back goes {:?}, as {envelope_id:?}", mail.returned));
        Ok(())
    }

    fn may_answer(&mut self, _path: &SmtpPath<'_>, _greeting_name: &str) -> bool {
        assert!(
            self.sender.is_some() && self.message.is_none() && self.whole.is_none() && !self.closed
        );
        true
    }

    fn recipient(&mut self, recipient: &RcptTo<'_>) -> Result<(), RecipientRefusal> {
        assert!(
            self.sender.is_some() && self.message.is_none() && self.whole.is_none() && !self.closed
        );
        let path = &recipient.path;
        let text = path.text();
        assert!(
            !text.bytes().any(|byte| byte.is_ascii_control()),
            "a path has no control character"
        );
        if let SmtpPath::Mailbox(mailbox) = path {
            match mailbox.local_part {
                "nobody" => return Err(RecipientRefusal::UnknownUser),
                "elsewhere" => return Err(RecipientRefusal::NotLocal),
                "toomany" => return Err(RecipientRefusal::TooMany),
                "full" => return Err(RecipientRefusal::MailboxFull),
                "often" => return Err(RecipientRefusal::TooOften),
                "new" => return Err(RecipientRefusal::Greylisted),
                "guessed" => return Err(RecipientRefusal::Guessing),
                "unwanted" => return Err(RecipientRefusal::Unwanted),
                "asleep" => return Err(RecipientRefusal::Unavailable),
                _ => {}
            }
        }
        let original = recipient.original.map(Original::ascii).unwrap_or_default();
        assert!(original.len() <= ORIGINAL_BYTES_MAX && is_word(&original), "{original:?}");
        self.log.push(format!("to {text:?}, told {:?} of {original:?}", recipient.notify));
        Ok(())
    }

    fn reason(&self) -> &str {
        "nobody wants it"
    }

    fn transaction_end(&mut self) {
        assert!(self.message.is_none() && !self.closed, "a message ends before its transaction");
        assert!(self.sender.take().is_some(), "a transaction ends once");
        (self.whole, self.is_sender_checked) = (None, false);
        self.log.push("over".into());
    }

    fn may_begin(&mut self, _greeting_name: &str) -> bool {
        assert!(
            self.sender.is_some() && self.message.is_none() && self.whole.is_none() && !self.closed
        );
        self.is_sender_checked || !self.sender_is("unknown")
    }

    fn message_begin(&mut self, envelope: &MessageStart<'_>) -> Result<(), MessageRefusal> {
        assert!(
            self.sender.is_some() && self.message.is_none() && self.whole.is_none() && !self.closed
        );
        assert!(envelope.recipients > 0 && envelope.recipients <= self.settings.recipients_max);
        if self.sender_is("nobegin") {
            return Err(MessageRefusal::StorageFull);
        }
        self.message = Some(Vec::new());
        self.log.push(format!("message {envelope:?}"));
        Ok(())
    }

    fn message_bytes(&mut self, bytes: &[u8]) -> Result<usize, MessageRefusal> {
        assert!(!self.closed && !bytes.is_empty());
        let drops = self.sender_is("nobytes");
        let message = self.message.as_mut().expect("bytes belong to a message");
        if drops && message.len() + bytes.len() > 9 {
            self.message = None;
            self.dropped_bytes = true;
            return Err(MessageRefusal::Loop);
        }
        let taken = bytes.len().min(self.message_room);
        self.message_room -= taken;
        message.extend_from_slice(&bytes[..taken]);
        assert!(
            message.len() as u64 <= self.settings.message_bytes_max,
            "no message is longer than allowed"
        );
        Ok(taken)
    }

    fn message_end(&mut self) -> Result<(), MessageRefusal> {
        assert!(!self.closed);
        let message = self.message.take().expect("a message ends once");
        if self.sender_is("noend") {
            return Err(MessageRefusal::TryLater);
        }
        self.whole = Some(message);
        Ok(())
    }

    fn message_abort(&mut self) {
        assert!(!self.closed && self.message.take().is_some(), "a message is dropped once");
    }

    fn abandon_login(&mut self) {
        let was_logged_in = std::mem::take(&mut self.is_logged_in);
        assert!(!self.closed && (self.login.take().is_some() || was_logged_in));
        self.log.push("no login".into());
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        assert!(!self.closed);
        self.deadline = after;
    }

    fn close(&mut self) {
        assert!(!self.closed, "a connection is closed once");
        let nothing_is_open =
            self.sender.is_none() && self.message.is_none() && self.login.is_none();
        assert!(nothing_is_open, "transactions and logins end before the session");
        self.closed = true;
    }
}

/// Whether `text` can be part of a list of words, and of a header field.
fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.ends_with(',')
}
