//! The handler of [`Expect::Command`]. Each line gets one reply.
//!
//! Implements: RFC 5321 sections 4.1.1 and 4.1.4, RFC 3030 section 2, RFC 3207 sections 4 to 4.2.

use crate::actions::{
    Actions, Haste, MessageRefusal, MessageStart, RecipientRefusal, SmtpSettings, SmtpTls,
    TransmissionType,
};
use crate::command::{CharacterSet, ChunkPlace, Command, CommandError, Mail, RcptTo};
use crate::content::Position;
use crate::hold::Hold;
use crate::name::ClientName;
use crate::path::SmtpPath;
use crate::reply::{self, Reply};

use super::{
    ClientIdentity, ContentHandling, Expect, Greeted, MessageInput, MessageState, Session,
    SmtpWaitsFor, Transaction,
};

impl Session {
    pub(super) fn command_arrived(
        &mut self,
        command: Result<Command<'_>, CommandError>,
        actions: &mut impl Actions,
    ) {
        if self.counts_as_too_many(&command, actions) {
            return self.end(reply::TOO_MANY_COMMANDS, actions);
        }
        match command {
            Ok(Command::ExtendedHello(name)) => {
                self.greeting_arrived(name, Greeted::Extended, actions);
                reply::extended_hello(actions);
            }
            Ok(Command::Hello(name)) => {
                self.greeting_arrived(name, Greeted::Plainly, actions);
                reply::hello(actions);
            }
            Ok(Command::Mail(mail, hold)) => self.mail_arrived(mail, hold, actions),
            Ok(Command::Recipient(recipient)) => self.recipient_arrived(&recipient, actions),
            Ok(Command::Data) => self.data_arrived(actions),
            Ok(Command::Chunk { bytes, place }) => self.chunk_arrived(bytes, place, actions),
            Ok(Command::Reset) => {
                self.transaction_over(actions);
                actions.reply(reply::OK);
            }
            Ok(Command::Noop) => actions.reply(reply::OK),
            Ok(Command::Verify) => actions.reply(reply::CANNOT_VERIFY),
            Ok(Command::Help) => actions.reply(reply::HELP),
            Ok(Command::Quit) => self.end(reply::BYE, actions),
            Ok(Command::Login { mechanism, response }) => {
                self.login_asked_for(mechanism, response, actions)
            }
            Ok(Command::StartTls) => self.tls_asked_for(actions),
            // The following bytes are not SMTP, or the start of the next command is unknown.
            Err(fault @ (CommandError::NotSmtp | CommandError::BadChunk)) => {
                self.end(reply::fault(fault), actions)
            }
            Err(fault) => self.fault(reply::fault(fault), actions),
        }
    }

    /// Counts a command that does not lead to a message, unless the client has logged in. Returns
    /// whether there were too many. Recipients and errors have separate limits, and a transaction
    /// accepts only one MAIL.
    fn counts_as_too_many(
        &mut self,
        command: &Result<Command<'_>, CommandError>,
        actions: &impl Actions,
    ) -> bool {
        let is_counted = !matches!(
            command,
            Ok(Command::Mail(..) | Command::Recipient(_) | Command::Chunk { .. } | Command::Quit)
                | Err(_)
        );
        if !is_counted || self.identity == ClientIdentity::Proved {
            return false;
        }
        self.idle_commands = self.idle_commands.saturating_add(1);
        self.idle_commands > actions.settings().idle_commands_max
    }

    /// Whether a client is refused because it has sent more bytes before the reply to `command`.
    pub(super) fn is_hasty(&self, command: &Command<'_>, actions: &impl Actions) -> bool {
        let waits = match command {
            Command::ExtendedHello(_) | Command::Hello(_) | Command::Data => true,
            // A chunk may follow BDAT, and the bytes after STARTTLS are dropped, so neither counts
            // as haste.
            Command::Chunk { .. } | Command::StartTls => false,
            _ => self.greeted != Greeted::Extended,
        };
        waits && actions.settings().haste == Haste::Refused
    }

    /// EHLO and HELO begin the session again (RFC 5321 section 4.1.4).
    fn greeting_arrived(&mut self, name: &[u8], greeted: Greeted, actions: &mut impl Actions) {
        self.transaction_over(actions);
        self.greeted = greeted;
        self.client_name = ClientName::from(name);
    }

    /// STARTTLS: this session ends, with all its state.
    fn tls_asked_for(&mut self, actions: &mut impl Actions) {
        match actions.settings().tls {
            SmtpTls::Absent => self.fault(reply::fault(CommandError::NotImplemented), actions),
            SmtpTls::Spoken => self.fault(reply::TLS_TWICE, actions),
            SmtpTls::Busy => actions.reply(reply::TLS_BUSY),
            SmtpTls::Offered => {
                self.transaction_over(actions);
                actions.reply(reply::START_TLS);
                self.expect = Expect::Handshake;
                self.waits_for = SmtpWaitsFor::Handshake;
            }
        }
    }

    fn mail_arrived(&mut self, mail: Mail<'_>, hold: Option<Hold>, actions: &mut impl Actions) {
        if self.greeted == Greeted::NotYet {
            return self.fault(reply::GREET_FIRST, actions);
        }
        if self.transaction.is_some() {
            return self.fault(reply::MAIL_TWICE, actions);
        }
        if let Some(refusal) = self.needs_login(actions) {
            return self.fault(refusal, actions);
        }
        let SmtpSettings { message_bytes_max, recipients_max, holds, .. } = actions.settings();
        if mail.declared_bytes.is_some_and(|bytes| bytes > message_bytes_max) {
            return actions.reply(reply::TOO_BIG);
        }
        let held_until = match (hold, holds) {
            (None, _) => None,
            (Some(_), None) => {
                return self.fault(reply::fault(CommandError::UnknownParameter), actions);
            }
            (Some(hold), Some(holds)) => match holds.until(hold) {
                None => return self.fault(reply::fault(CommandError::BadParameter), actions),
                until => until,
            },
        };
        match actions.transaction_begin(&Mail { held_until, ..mail }) {
            Ok(()) => {
                let character_set = mail.character_set;
                let message = MessageState::NotBegun;
                self.transaction =
                    Some(Transaction { recipients: 0, recipients_max, character_set, message });
                actions.reply(reply::SENDER_OK);
            }
            Err(refusal) => actions.reply(reply::sender_refusal(refusal)),
        }
    }

    fn recipient_arrived(&mut self, recipient: &RcptTo<'_>, actions: &mut impl Actions) {
        let Some(transaction) = &mut self.transaction else {
            return self.fault(reply::MAIL_FIRST, actions);
        };
        match transaction.check_recipient(&recipient.path) {
            Ok(()) => {}
            Err(Untaken::Wrong(reply)) => return self.fault(reply, actions),
            Err(Untaken::Full) => return actions.reply(reply::TOO_MANY_RECIPIENTS),
        }
        match actions.recipient(recipient) {
            Ok(()) => {
                transaction.recipients += 1;
                actions.reply(reply::RECIPIENT_OK);
            }
            Err(RecipientRefusal::Guessing) => self.end(reply::TOO_MANY_UNKNOWN, actions),
            Err(refusal) => self.recipient_refused(refusal, actions),
        }
    }

    /// Refuses a recipient, and limits how often a client may guess addresses.
    fn recipient_refused(&mut self, refusal: RecipientRefusal, actions: &mut impl Actions) {
        if self.refused_recipients >= actions.settings().refused_recipients_max {
            return self.end(reply::TOO_MANY_FAULTS, actions);
        }
        self.refused_recipients += 1;
        reply::recipient_refusal(refusal, actions);
    }

    fn data_arrived(&mut self, actions: &mut impl Actions) {
        let Some(transaction) = self.transaction else {
            return self.fault(reply::MAIL_FIRST, actions);
        };
        if transaction.message != MessageState::NotBegun {
            return self.fault(reply::CHUNKS_BEGAN, actions);
        }
        // This does not count as an error: a pipelining client sends DATA before it has read that
        // no recipient was accepted.
        if transaction.recipients == 0 {
            return actions.reply(reply::NO_RECIPIENT);
        }
        match self.begin_message(&transaction, actions) {
            Ok(incoming) => {
                self.expect = Expect::MessageData(incoming);
                actions.reply(reply::SEND_MESSAGE);
            }
            Err(refusal) => {
                self.transaction_over(actions);
                actions.reply(reply::message_refusal(refusal));
            }
        }
    }

    /// BDAT. The chunk follows at once, so it is read even if it is refused.
    fn chunk_arrived(&mut self, bytes: u64, place: ChunkPlace, actions: &mut impl Actions) {
        let mut chunk = self.chunk_to_fill(actions);
        if chunk.bytes.saturating_add(bytes) > actions.settings().message_bytes_max {
            self.refuse(&mut chunk, reply::TOO_BIG, actions);
        }
        if bytes == 0 {
            self.chunk_completed(chunk, place, actions);
        } else {
            self.expect = Expect::ChunkData { chunk, bytes_left: bytes, place };
        }
    }

    /// The message to which the next chunk belongs: the message that it continues, a new message,
    /// or a refused one.
    fn chunk_to_fill(&mut self, actions: &mut impl Actions) -> MessageInput {
        let Some(transaction) = self.transaction else {
            return MessageInput::refused(reply::MAIL_FIRST);
        };
        if let MessageState::BetweenChunks(incoming) = transaction.message {
            self.set_message(MessageState::Arriving);
            return incoming;
        }
        if transaction.recipients == 0 {
            return MessageInput::refused(reply::NO_RECIPIENT);
        }
        self.begin_message(&transaction, actions)
            .unwrap_or_else(|refusal| MessageInput::refused(reply::message_refusal(refusal)))
    }

    /// Whether RCPT can be answered now.
    pub(super) fn may_answer(&self, path: &SmtpPath<'_>, actions: &mut impl Actions) -> bool {
        let takes = |transaction: &Transaction| transaction.check_recipient(path).is_ok();
        !self.transaction.as_ref().is_some_and(takes)
            || actions.may_answer(path, self.client_name.as_str())
    }

    /// Whether the message of DATA or the first BDAT may begin now.
    pub(super) fn may_begin(&self, actions: &mut impl Actions) -> bool {
        let begins = |transaction: &Transaction| {
            transaction.recipients > 0 && transaction.message == MessageState::NotBegun
        };
        !self.transaction.as_ref().is_some_and(begins)
            || actions.may_begin(self.client_name.as_str())
    }

    fn begin_message(
        &mut self,
        transaction: &Transaction,
        actions: &mut impl Actions,
    ) -> Result<MessageInput, MessageRefusal> {
        let protocol = match (self.greeted, transaction.character_set) {
            (Greeted::Extended, CharacterSet::Utf8) => TransmissionType::Utf8Smtp,
            (Greeted::Extended, CharacterSet::Ascii) => TransmissionType::Esmtp,
            _ => TransmissionType::Smtp,
        };
        let greeting_name = self.client_name.as_str();
        actions.message_begin(&MessageStart {
            greeting_name,
            protocol,
            recipients: transaction.recipients,
        })?;
        self.set_message(MessageState::Arriving);
        Ok(MessageInput {
            bytes: 0,
            position: Position::LineStart,
            handling: ContentHandling::Kept,
        })
    }
}

/// The reason why a transaction does not accept a recipient, even before the host is asked.
enum Untaken {
    /// The client made an error, which gets this reply.
    Wrong(Reply),
    /// The transaction already has the maximum number of recipients.
    Full,
}

impl Transaction {
    /// Whether the client may name `path` as a recipient now.
    fn check_recipient(&self, path: &SmtpPath<'_>) -> Result<(), Untaken> {
        match () {
            () if self.message != MessageState::NotBegun => {
                Err(Untaken::Wrong(reply::CHUNKS_BEGAN))
            }
            () if self.character_set == CharacterSet::Ascii && !path.text().is_ascii() => {
                Err(Untaken::Wrong(reply::RECIPIENT_NEEDS_SMTPUTF8))
            }
            () if self.recipients >= self.recipients_max => Err(Untaken::Full),
            () => Ok(()),
        }
    }
}

impl MessageInput {
    fn refused(reply: Reply) -> MessageInput {
        MessageInput {
            bytes: 0,
            position: Position::LineStart,
            handling: ContentHandling::Refused(reply),
        }
    }
}
