//! A session: the state of one connection between two events.
//!
//! Each variant of [`Expect`] is a wait point with one handler: commands in `session/commands.rs`,
//! logins in `session/login.rs`, messages in `session/messages.rs`. This file has the events that
//! concern all states, and the end of the session.
//!
//! Invariants:
//! - A transaction is open exactly while `transaction` is `Some`. Its `message` says whether a
//!   message is open. Both end before the session becomes [`Expect::Closed`]. In that state the
//!   session calls [`Actions`] only to ask for buffer space.
//! - While the session waits for the store, it takes no bytes. So replies are sent in the order of
//!   the commands.
//!
//! A bare CR or LF in a command ends the session with 521, in the same way as in Postfix with
//! `smtpd_forbid_bare_newline = reject` and that code. Some servers take the bytes after it for a
//! second command, so the session ignores these bytes. A message with a bare CR or LF is refused
//! (554), and read to its end (CRLF.CRLF). After that the session continues, since both sides agree
//! on that end. The exception is a bare LF in a chunk (BDAT): it becomes a line end (`content.rs`).
//!
//! Implements: RFC 5321 sections 3.1, 3.8, 4.1.4, 4.3 and 4.5.3.2, RFC 4954 section 4.

mod commands;
mod login;
mod messages;

use alloc::boxed::Box;

use machine::Micros;
use sasl::Exchange;

use crate::actions::{Actions, MessageRefusal};
use crate::command::{CharacterSet, ChunkPlace, Command, parse};
use crate::content::Position;
use crate::line::{
    DiscardedLine, LINE_BYTES_MAX, LINE_END_BYTES, RESPONSE_LINE_BYTES_MAX, SmtpLine, first_line,
    rest_of_line,
};
use crate::name::ClientName;
use crate::reply::{self, REPLY_BYTES_MAX, Reply};

/// The longest time that a client may take for its next command (RFC 5321 section 4.5.3.2.7).
const COMMAND_TIMEOUT: Micros = Micros::from_secs(5 * 60);
/// The longest time that a client may take for the next piece of a message (section 4.5.3.2.5).
const DATA_TIMEOUT: Micros = Micros::from_secs(3 * 60);

/// One client's conversation with the server.
#[derive(Debug)]
pub struct Session {
    expect: Expect,
    waits_for: SmtpWaitsFor,
    greeted: Greeted,
    stopping: PlannedEnd,
    /// Errors of the client since the last accepted message or login.
    faults: u8,
    /// Commands that led to no message, since the last accepted message.
    idle_commands: u8,
    refused_recipients: u8,
    transaction: Option<Transaction>,
    client_name: ClientName,
    identity: ClientIdentity,
    failed_logins: u8,
    /// The exchange is on the heap because it is short-lived, and a session may last for hours.
    exchange: Option<Box<Exchange>>,
}

const _: () = assert!(size_of::<Session>() <= 176);

/// The event that the session waits for. There is one handler for each variant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expect {
    /// The next command.
    Command,
    /// The end of a line that was too long for a command.
    LongLineEnd,
    /// The message after DATA, up to its line of one dot.
    MessageData(MessageInput),
    /// The rest of a chunk after BDAT.
    ChunkData { chunk: MessageInput, bytes_left: u64, place: ChunkPlace },
    /// The store's answer to a complete message.
    Stored,
    /// The client's next response in its login.
    LoginResponse,
    /// The host's answer to a login.
    LoginAnswer,
    /// The TLS handshake. After it a new session replaces this session.
    Handshake,
    /// Nothing: the session is over. It takes bytes and drops them.
    Closed,
}

/// The event after which the session takes bytes again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SmtpWaitsFor {
    /// Bytes beyond those that were offered so far.
    Bytes,
    /// Space for a reply: offer the bytes again once [`Actions::send_room`] is [`REPLY_BYTES_MAX`].
    SendRoom,
    /// The result of a check of the sender or of a recipient: [`Session::sender_known`].
    Sender,
    /// Space for the message: [`Session::message_room`].
    MessageRoom,
    /// [`Session::message_stored`].
    Stored,
    /// [`Session::login_answered`].
    Login,
    /// The TLS handshake, done by the owner of the connection. The owner must drop bytes that the
    /// session did not take. Then [`Session::secured`] creates the next session.
    Handshake,
    /// Nothing: the session is over.
    Nothing,
}

/// The greeting of the client: none, HELO or EHLO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Greeted {
    NotYet,
    Plainly,
    Extended,
}

/// The identity of the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ClientIdentity {
    /// Unknown.
    Unknown,
    /// Proved by a login.
    Proved,
}

/// Whether the session is about to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PlannedEnd {
    No,
    /// The server stops: the session ends as soon as the message or login in progress is answered.
    AfterMessage,
    /// The password has changed: the session ends as soon as the complete message is answered.
    PasswordChanged,
}

/// A transaction: from an accepted MAIL to the answer to its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Transaction {
    recipients: u16,
    /// The most recipients that the transaction may have.
    recipients_max: u16,
    character_set: CharacterSet,
    message: MessageState,
}

/// The message of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MessageState {
    NotBegun,
    /// Begun by BDAT and waiting for its next chunk.
    BetweenChunks(MessageInput),
    /// Begun, and arriving: [`Expect`] has its state.
    Arriving,
    /// Complete, and passed to the host.
    Whole,
}

/// A message while it arrives, or a refused message or chunk that is still read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MessageInput {
    /// The number of bytes of content so far, including discarded bytes.
    bytes: u64,
    position: Position,
    handling: ContentHandling,
}

/// Whether the bytes that arrive are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ContentHandling {
    /// The bytes are passed to the host.
    Kept,
    /// The bytes are discarded, and this reply is sent at their end.
    Refused(Reply),
}

/// The progress of a handler in the bytes that it was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum InputProgress {
    /// The handler took this many bytes. The rest is for the next handler.
    AndGoOn(usize),
    /// The handler took this many bytes. The rest must wait for this event.
    AndWait(usize, SmtpWaitsFor),
}

impl Session {
    /// A client has connected: greets it.
    pub fn connected(actions: &mut impl Actions) -> Session {
        reply::greeting(actions);
        Session::begin(actions)
    }

    /// The TLS handshake after STARTTLS is complete. A new session begins, without a second
    /// greeting (RFC 3207 section 4.2).
    pub fn secured(actions: &mut impl Actions) -> Session {
        Session::begin(actions)
    }

    fn begin(actions: &mut impl Actions) -> Session {
        actions.set_deadline(Some(COMMAND_TIMEOUT));
        Session {
            expect: Expect::Command,
            waits_for: SmtpWaitsFor::Bytes,
            greeted: Greeted::NotYet,
            stopping: PlannedEnd::No,
            faults: 0,
            idle_commands: 0,
            refused_recipients: 0,
            transaction: None,
            client_name: ClientName::from(&b""[..]),
            identity: ClientIdentity::Unknown,
            failed_logins: 0,
            exchange: None,
        }
    }

    /// The event after which the session takes bytes again.
    pub fn waits_for(&self) -> SmtpWaitsFor {
        self.waits_for
    }

    /// Handles bytes of the client, which have just arrived or are offered again. Returns the
    /// number of bytes taken. The caller must offer the rest again, with the bytes that follow,
    /// after the event of [`Session::waits_for`].
    ///
    /// An incomplete command in the rest has at most [`crate::LINE_BYTES_MAX`] bytes. An incomplete
    /// response of a login has at most [`crate::RESPONSE_LINE_BYTES_MAX`]. Bytes of a message never
    /// wait for further bytes.
    pub fn bytes_arrived(&mut self, bytes: &[u8], actions: &mut impl Actions) -> usize {
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            if matches!(
                self.waits_for,
                SmtpWaitsFor::Sender
                    | SmtpWaitsFor::MessageRoom
                    | SmtpWaitsFor::Stored
                    | SmtpWaitsFor::Login
            ) {
                break;
            }
            if actions.send_room() < REPLY_BYTES_MAX
                && !matches!(self.expect, Expect::Handshake | Expect::Closed)
            {
                self.waits_for = SmtpWaitsFor::SendRoom;
                break;
            }
            self.waits_for = SmtpWaitsFor::Bytes;
            let step = match self.expect {
                Expect::Command | Expect::LoginResponse => {
                    self.command_bytes_arrived(rest, actions)
                }
                Expect::LongLineEnd => self.long_line_bytes_arrived(rest, actions),
                Expect::MessageData(incoming) => self.message_data_arrived(incoming, rest, actions),
                Expect::ChunkData { chunk, bytes_left, place } => {
                    self.chunk_data_arrived(chunk, bytes_left, place, rest, actions)
                }
                Expect::Stored => InputProgress::AndWait(0, SmtpWaitsFor::Stored),
                Expect::LoginAnswer => InputProgress::AndWait(0, SmtpWaitsFor::Login),
                // The bytes may come from an attacker (RFC 3207 section 5).
                Expect::Handshake => InputProgress::AndWait(rest.len(), SmtpWaitsFor::Handshake),
                // If the session left bytes unread, TCP would answer with a reset, which could
                // overtake the last reply.
                Expect::Closed => InputProgress::AndWait(rest.len(), SmtpWaitsFor::Nothing),
            };
            match step {
                InputProgress::AndGoOn(count) => taken += count,
                InputProgress::AndWait(count, event) => {
                    taken += count;
                    self.waits_for = event;
                    break;
                }
            }
        }
        if taken > 0 || self.waits_for == SmtpWaitsFor::MessageRoom {
            self.renew_deadline(actions);
        }
        taken
    }

    /// The host reports the result for a complete message. `Ok`: the message is on the disk, and
    /// this is its identifier (printable ASCII, at most 64 bytes). Afterwards the session takes
    /// bytes again.
    pub fn message_stored(
        &mut self,
        result: Result<&[u8], MessageRefusal>,
        actions: &mut impl Actions,
    ) {
        if self.expect != Expect::Stored {
            return;
        }
        if let Some(transaction) = &mut self.transaction {
            transaction.message = MessageState::NotBegun;
        }
        match result {
            Ok(identifier) => {
                self.faults = 0;
                self.idle_commands = 0;
                reply::stored(identifier, actions);
            }
            Err(refusal) => reply::message_refused(refusal, actions),
        }
        self.message_answered(actions);
        self.renew_deadline(actions);
    }

    /// Tells the session that [`Actions::may_begin`] or [`Actions::may_answer`] may give another
    /// answer now. The caller must then offer the bytes again.
    pub fn sender_known(&mut self, actions: &mut impl Actions) {
        if self.waits_for == SmtpWaitsFor::Sender {
            self.waits_for = SmtpWaitsFor::Bytes;
            self.renew_deadline(actions);
        }
    }

    /// Tells the session that there is space for bytes of the message again. The caller must then
    /// offer the bytes again.
    pub fn message_room(&mut self, actions: &mut impl Actions) {
        if self.waits_for == SmtpWaitsFor::MessageRoom {
            self.waits_for = SmtpWaitsFor::Bytes;
            self.renew_deadline(actions);
        }
    }

    /// The deadline that was set last has passed: the client has been silent for too long.
    pub fn deadline_expired(&mut self, actions: &mut impl Actions) {
        match self.expect {
            Expect::Stored | Expect::LoginAnswer | Expect::Handshake | Expect::Closed => {}
            _ => self.end(reply::TOO_SLOW, actions),
        }
    }

    /// The server is about to stop. A message that is being received is still accepted and
    /// answered. No new command is handled (RFC 5321 section 3.8).
    pub fn stopping(&mut self, actions: &mut impl Actions) {
        match self.expect {
            Expect::Command | Expect::LoginResponse | Expect::LongLineEnd => {
                self.end(reply::STOPPING, actions)
            }
            _ => self.stopping = PlannedEnd::AfterMessage,
        }
    }

    /// The password by which the client has logged in is no longer valid: the session ends (RFC
    /// 5321 section 3.8). A complete message is still answered, and an incomplete one is dropped. A
    /// session without a login continues.
    pub fn password_changed(&mut self, actions: &mut impl Actions) {
        match self.expect {
            _ if self.identity == ClientIdentity::Unknown => {}
            Expect::Stored => self.stopping = PlannedEnd::PasswordChanged,
            Expect::Handshake | Expect::Closed => {}
            _ => self.end(reply::PASSWORD_CHANGED, actions),
        }
    }

    /// The client will send no more bytes, or the connection is lost. If the client only stopped
    /// sending, the caller must first have offered all earlier bytes, and the session must wait for
    /// nothing but bytes. The session drops an incomplete message, and ends without a reply.
    pub fn peer_closed(&mut self, actions: &mut impl Actions) {
        if self.expect != Expect::Closed {
            self.finish(actions);
        }
    }

    fn command_bytes_arrived(&mut self, bytes: &[u8], actions: &mut impl Actions) -> InputProgress {
        let limit = if self.expect == Expect::LoginResponse {
            RESPONSE_LINE_BYTES_MAX
        } else {
            LINE_BYTES_MAX
        };
        match first_line(bytes, limit) {
            SmtpLine::Whole(line) => {
                let command = (self.expect == Expect::Command).then(|| parse(line));
                let is_last = bytes.len() == line.len() + LINE_END_BYTES;
                match command {
                    Some(Ok(command)) if !is_last && self.is_hasty(&command, actions) => {
                        self.end(reply::TOO_SOON, actions);
                    }
                    Some(Ok(Command::Data | Command::Chunk { .. })) if !self.may_begin(actions) => {
                        return InputProgress::AndWait(0, SmtpWaitsFor::Sender);
                    }
                    Some(Ok(Command::Recipient(recipient)))
                        if !self.may_answer(&recipient.path, actions) =>
                    {
                        return InputProgress::AndWait(0, SmtpWaitsFor::Sender);
                    }
                    Some(command) => self.command_arrived(command, actions),
                    None => self.login_response_arrived(line, actions),
                }
                InputProgress::AndGoOn(line.len() + LINE_END_BYTES)
            }
            SmtpLine::Partial => InputProgress::AndWait(0, SmtpWaitsFor::Bytes),
            SmtpLine::TooLong => {
                self.exchange_over(actions);
                self.expect = Expect::LongLineEnd;
                InputProgress::AndGoOn(0)
            }
            SmtpLine::BareEnd => {
                self.end(reply::BARE_LINE_END_IN_COMMAND, actions);
                InputProgress::AndGoOn(0)
            }
        }
    }

    fn long_line_bytes_arrived(
        &mut self,
        bytes: &[u8],
        actions: &mut impl Actions,
    ) -> InputProgress {
        match rest_of_line(bytes) {
            DiscardedLine::EndsAfter(count) => {
                self.expect = Expect::Command;
                self.fault(reply::LINE_TOO_LONG, actions);
                InputProgress::AndGoOn(count)
            }
            DiscardedLine::GoesOn(count) => InputProgress::AndWait(count, SmtpWaitsFor::Bytes),
            DiscardedLine::BareEnd => {
                self.end(reply::BARE_LINE_END_IN_COMMAND, actions);
                InputProgress::AndGoOn(0)
            }
        }
    }

    /// Replies to an error of the client, and ends the session after too many errors.
    fn fault(&mut self, reply: Reply, actions: &mut impl Actions) {
        if self.faults >= actions.settings().faults_max {
            return self.end(reply::TOO_MANY_FAULTS, actions);
        }
        self.faults += 1;
        actions.reply(reply);
    }

    /// Sends `reply` and ends the session.
    fn end(&mut self, reply: Reply, actions: &mut impl Actions) {
        actions.reply(reply);
        self.finish(actions);
    }

    fn finish(&mut self, actions: &mut impl Actions) {
        self.transaction_over(actions);
        self.exchange_over(actions);
        if self.expect == Expect::LoginAnswer {
            actions.abandon_login();
        }
        self.expect = Expect::Closed;
        self.waits_for = SmtpWaitsFor::Nothing;
        actions.set_deadline(None);
        actions.close();
    }

    /// Ends an open transaction, and drops its message if the message is incomplete.
    fn transaction_over(&mut self, actions: &mut impl Actions) {
        let Some(transaction) = self.transaction.take() else { return };
        match transaction.message {
            MessageState::BetweenChunks(_) | MessageState::Arriving => actions.message_abort(),
            MessageState::NotBegun | MessageState::Whole => {}
        }
        actions.transaction_end();
    }

    /// Renews the client's deadline, or clears it while the client waits for the server. An
    /// incomplete command does not renew the deadline, since its bytes were not taken.
    fn renew_deadline(&self, actions: &mut impl Actions) {
        match (self.expect, self.waits_for) {
            (Expect::Handshake | Expect::Closed | Expect::LongLineEnd | Expect::Stored, _)
            | (_, SmtpWaitsFor::Sender) => {}
            (Expect::LoginAnswer, _) | (_, SmtpWaitsFor::MessageRoom) => actions.set_deadline(None),
            (Expect::Command | Expect::LoginResponse, _) => {
                actions.set_deadline(Some(COMMAND_TIMEOUT))
            }
            (Expect::MessageData(_) | Expect::ChunkData { .. }, _) => {
                actions.set_deadline(Some(DATA_TIMEOUT))
            }
        }
    }
}
