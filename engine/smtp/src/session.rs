//! A session: what the server remembers of one connection between two events.
//!
//! Each variant of [`Expect`] is a waiting point and has one handler: commands in `session/commands.rs`, logging in
//! in `session/login.rs`, messages in `session/messages.rs`. This file has the events that concern all of them, and the end.
//!
//! Invariants:
//! - A transaction is open exactly while `transaction` is there, a message exactly while that says so; both are ended
//!   before the session is [`Expect::Closed`], and nothing is asked of [`Actions`] after that.
//! - While the session waits for the store it takes no bytes: replies leave in the order of the commands.
//!
//! A bare CR or LF in a command ends the session by 521, as Postfix does with `smtpd_forbid_bare_newline = reject` and
//! that code: what follows it is a second command to some servers, so nothing that follows is looked at. In a message it
//! costs the message (554), which is read to its true end; there the session goes on, since both sides agree on where
//! that end is.
//!
//! Answers to: RFC 5321 sections 3.1, 3.8, 4.1.4, 4.3 and 4.5.3.2, RFC 4954 section 4.

mod commands;
mod login;
mod messages;

use alloc::boxed::Box;

use machine::Micros;
use sasl::Exchange;

use crate::actions::{Actions, MessageRefusal};
use crate::command::{CharacterSet, Command, Place, parse};
use crate::content::Position;
use crate::line::{
    LINE_BYTES_MAX, LINE_END_BYTES, Line, RESPONSE_LINE_BYTES_MAX, Rest, first_line, rest_of_line,
};
use crate::name::Name;
use crate::reply::{self, REPLY_BYTES_MAX, Reply};

/// How long a client may take for its next command (RFC 5321 section 4.5.3.2.7).
const COMMAND_TIMEOUT: Micros = Micros::from_secs(5 * 60);
/// How long it may take for the next piece of a message (section 4.5.3.2.5).
const DATA_TIMEOUT: Micros = Micros::from_secs(3 * 60);

/// One client's conversation with the server.
#[derive(Debug)]
pub struct Session {
    expect: Expect,
    waits_for: WaitsFor,
    greeted: Greeted,
    stopping: Stopping,
    /// Since the last accepted message.
    faults: u8,
    /// Commands that brought no message, since the last accepted one.
    idle_commands: u8,
    refused_recipients: u8,
    transaction: Option<Transaction>,
    client_name: Name,
    identity: Identity,
    failed_logins: u8,
    /// On the heap because it is there for a moment and a session for hours.
    exchange: Option<Box<Exchange>>,
}

const _: () = assert!(size_of::<Session>() <= 176);

/// What the session waits for. One variant a waiting point, one handler each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expect {
    /// The next command.
    Command,
    /// The end of a line that was too long for a command.
    LongLineEnd,
    /// The message after DATA, up to its line of one dot.
    MessageData(Incoming),
    /// The rest of a chunk after BDAT.
    ChunkData { chunk: Incoming, bytes_left: u64, place: Place },
    /// The store's answer to a whole message.
    Stored,
    /// The client's next response in its login.
    LoginResponse,
    /// The answer to its login.
    LoginAnswer,
    /// TLS, and another session in this one's place.
    Handshake,
    /// Nothing any more.
    Closed,
}

/// What must happen before the session takes bytes again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitsFor {
    /// More bytes than it was offered, and nothing else.
    Bytes,
    /// Room for a reply: offer the bytes again once [`Actions::send_room`] is [`REPLY_BYTES_MAX`].
    SendRoom,
    /// What is to be found out about the sender, or about a recipient: [`Session::sender_known`].
    Sender,
    /// Room for the message: [`Session::message_room`].
    MessageRoom,
    /// [`Session::message_stored`].
    Stored,
    /// [`Session::login_answered`].
    Login,
    /// The handshake of TLS, which is done by whoever owns the connection. What the client has said and was not taken is to be thrown away, and [`Session::secured`] is the
    /// session from then on.
    Handshake,
    /// Nothing: it is over.
    Nothing,
}

/// How the client greeted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Greeted {
    NotYet,
    Plainly,
    Extended,
}

/// Who the client is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Identity {
    /// Anybody.
    Unknown,
    /// Who it says it is.
    Proved,
}

/// Whether the session is about to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stopping {
    No,
    /// The server goes away, as soon as the message, or the login, that is on its way is answered.
    AfterMessage,
    /// The password has changed: as soon as the whole message that is on its way is answered.
    PasswordChanged,
}

/// A transaction: from an accepted MAIL to the answer to its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Transaction {
    recipients: u16,
    /// The most that it may have.
    recipients_max: u16,
    character_set: CharacterSet,
    message: Message,
}

/// The message of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Message {
    NotBegun,
    /// Begun by BDAT and waiting for its next chunk.
    BetweenChunks(Incoming),
    /// Begun, and arriving: [`Expect`] has the rest.
    Arriving,
    /// Whole and handed over.
    Whole,
}

/// A message, or what is read in place of one, while it arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Incoming {
    /// Content so far, whether it was passed on or thrown away.
    bytes: u64,
    position: Position,
    fate: Fate,
}

/// What becomes of the bytes that arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// They are passed on.
    Kept,
    /// They are thrown away, and at their end this is said.
    Refused(Reply),
}

/// What a handler has done with the bytes that it was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Taken {
    /// So many bytes; there may be work for the next handler.
    AndGoOn(usize),
    /// So many bytes, and now something else must happen first.
    AndWait(usize, WaitsFor),
}

impl Session {
    /// A client has connected: greets it.
    pub fn connected(actions: &mut impl Actions) -> Session {
        reply::greeting(actions);
        Session::begin(actions)
    }

    /// TLS is spoken with a client that has asked for it: he begins anew, and is not greeted again (RFC 3207 section 4.2).
    pub fn secured(actions: &mut impl Actions) -> Session {
        Session::begin(actions)
    }

    fn begin(actions: &mut impl Actions) -> Session {
        actions.set_deadline(Some(COMMAND_TIMEOUT));
        Session {
            expect: Expect::Command,
            waits_for: WaitsFor::Bytes,
            greeted: Greeted::NotYet,
            stopping: Stopping::No,
            faults: 0,
            idle_commands: 0,
            refused_recipients: 0,
            transaction: None,
            client_name: Name::from(""),
            identity: Identity::Unknown,
            failed_logins: 0,
            exchange: None,
        }
    }

    /// What must happen before bytes are worth offering.
    pub fn waits_for(&self) -> WaitsFor {
        self.waits_for
    }

    /// Bytes have arrived, or there may be room now for what was offered before. Returns how many were taken; the rest
    /// is to be offered again, with what follows it, when [`Session::waits_for`] has come.
    ///
    /// The rest of an incomplete command is at most [`crate::LINE_BYTES_MAX`] bytes, of a login's response [`crate::RESPONSE_LINE_BYTES_MAX`]; of a message nothing is left over for
    /// lack of bytes.
    pub fn bytes_arrived(&mut self, bytes: &[u8], actions: &mut impl Actions) -> usize {
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            if matches!(
                self.waits_for,
                WaitsFor::Sender | WaitsFor::MessageRoom | WaitsFor::Stored | WaitsFor::Login
            ) {
                break;
            }
            if actions.send_room() < REPLY_BYTES_MAX
                && !matches!(self.expect, Expect::Handshake | Expect::Closed)
            {
                self.waits_for = WaitsFor::SendRoom;
                break;
            }
            self.waits_for = WaitsFor::Bytes;
            let step = match self.expect {
                Expect::Command | Expect::LoginResponse => {
                    self.command_bytes_arrived(rest, actions)
                }
                Expect::LongLineEnd => self.long_line_bytes_arrived(rest, actions),
                Expect::MessageData(incoming) => self.message_data_arrived(incoming, rest, actions),
                Expect::ChunkData { chunk, bytes_left, place } => {
                    self.chunk_data_arrived(chunk, bytes_left, place, rest, actions)
                }
                Expect::Stored => Taken::AndWait(0, WaitsFor::Stored),
                Expect::LoginAnswer => Taken::AndWait(0, WaitsFor::Login),
                // Nobody knows who has said this (RFC 3207 section 5).
                Expect::Handshake => Taken::AndWait(rest.len(), WaitsFor::Handshake),
                // Unread bytes would make TCP answer by a reset, which could overtake the last reply.
                Expect::Closed => Taken::AndWait(rest.len(), WaitsFor::Nothing),
            };
            match step {
                Taken::AndGoOn(count) => taken += count,
                Taken::AndWait(count, event) => {
                    taken += count;
                    self.waits_for = event;
                    break;
                }
            }
        }
        if taken > 0 || self.waits_for == WaitsFor::MessageRoom {
            self.renew_deadline(actions);
        }
        taken
    }

    /// The message that [`Actions::message_end`] handed over is on the disk, under the name `identifier` (printable
    /// ASCII, at most 64 bytes), or it never will be. Bytes are taken again afterwards.
    pub fn message_stored(
        &mut self,
        result: Result<&[u8], MessageRefusal>,
        actions: &mut impl Actions,
    ) {
        if self.expect != Expect::Stored {
            return;
        }
        if let Some(transaction) = &mut self.transaction {
            transaction.message = Message::NotBegun;
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

    /// [`Actions::may_begin`] or [`Actions::may_answer`] may say something else now. Offer the bytes again.
    pub fn sender_known(&mut self, actions: &mut impl Actions) {
        if self.waits_for == WaitsFor::Sender {
            self.waits_for = WaitsFor::Bytes;
            self.renew_deadline(actions);
        }
    }

    /// There is room again for the message's bytes. Offer them.
    pub fn message_room(&mut self, actions: &mut impl Actions) {
        if self.waits_for == WaitsFor::MessageRoom {
            self.waits_for = WaitsFor::Bytes;
            self.renew_deadline(actions);
        }
    }

    /// The time that was last set is up: the client has been silent for too long.
    pub fn deadline_expired(&mut self, actions: &mut impl Actions) {
        match self.expect {
            Expect::Stored | Expect::LoginAnswer | Expect::Handshake | Expect::Closed => {}
            _ => self.end(reply::TOO_SLOW, actions),
        }
    }

    /// The server is about to go away. A message on its way is still taken and answered, everything else is not begun
    /// any more (RFC 5321 section 3.8).
    pub fn stopping(&mut self, actions: &mut impl Actions) {
        match self.expect {
            Expect::Command | Expect::LoginResponse | Expect::LongLineEnd => {
                self.end(reply::STOPPING, actions)
            }
            _ => self.stopping = Stopping::AfterMessage,
        }
    }

    /// The password by which the client has logged in is not the account's any more: the session
    /// ends (RFC 5321 section 3.8). A message that is whole is still answered, and one that is not
    /// is dropped. Whoever has not logged in goes on.
    pub fn password_changed(&mut self, actions: &mut impl Actions) {
        match self.expect {
            _ if self.identity == Identity::Unknown => {}
            Expect::Stored => self.stopping = Stopping::PasswordChanged,
            Expect::Handshake | Expect::Closed => {}
            _ => self.end(reply::PASSWORD_CHANGED, actions),
        }
    }

    /// The client will send no more, or the connection is lost. Everything before that was offered, and the session was
    /// not waiting for anything but bytes; or it does not matter any more. What is not whole is dropped, without a reply.
    pub fn peer_closed(&mut self, actions: &mut impl Actions) {
        if self.expect != Expect::Closed {
            self.finish(actions);
        }
    }

    fn command_bytes_arrived(&mut self, bytes: &[u8], actions: &mut impl Actions) -> Taken {
        let limit = if self.expect == Expect::LoginResponse {
            RESPONSE_LINE_BYTES_MAX
        } else {
            LINE_BYTES_MAX
        };
        match first_line(bytes, limit) {
            Line::Whole(line) => {
                let command = (self.expect == Expect::Command).then(|| parse(line));
                let is_last = bytes.len() == line.len() + LINE_END_BYTES;
                match command {
                    Some(Ok(command)) if !is_last && self.is_hasty(&command, actions) => {
                        self.end(reply::TOO_SOON, actions);
                    }
                    Some(Ok(Command::Data | Command::Chunk { .. })) if !self.may_begin(actions) => {
                        return Taken::AndWait(0, WaitsFor::Sender);
                    }
                    Some(Ok(Command::Recipient(recipient)))
                        if !self.may_answer(&recipient.path, actions) =>
                    {
                        return Taken::AndWait(0, WaitsFor::Sender);
                    }
                    Some(command) => self.command_arrived(command, actions),
                    None => self.login_response_arrived(line, actions),
                }
                Taken::AndGoOn(line.len() + LINE_END_BYTES)
            }
            Line::Partial => Taken::AndWait(0, WaitsFor::Bytes),
            Line::TooLong => {
                self.exchange_over(actions);
                self.expect = Expect::LongLineEnd;
                Taken::AndGoOn(0)
            }
            Line::BareEnd => {
                self.end(reply::BARE_LINE_END_IN_COMMAND, actions);
                Taken::AndGoOn(0)
            }
        }
    }

    fn long_line_bytes_arrived(&mut self, bytes: &[u8], actions: &mut impl Actions) -> Taken {
        match rest_of_line(bytes) {
            Rest::EndsAfter(count) => {
                self.expect = Expect::Command;
                self.fault(reply::LINE_TOO_LONG, actions);
                Taken::AndGoOn(count)
            }
            Rest::GoesOn(count) => Taken::AndWait(count, WaitsFor::Bytes),
            Rest::BareEnd => {
                self.end(reply::BARE_LINE_END_IN_COMMAND, actions);
                Taken::AndGoOn(0)
            }
        }
    }

    /// The client did something wrong: says so, and ends the session when it did so too often.
    fn fault(&mut self, reply: Reply, actions: &mut impl Actions) {
        if self.faults >= actions.settings().faults_max {
            return self.end(reply::TOO_MANY_FAULTS, actions);
        }
        self.faults += 1;
        actions.reply(reply);
    }

    /// Says `reply` and ends the session.
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
        self.waits_for = WaitsFor::Nothing;
        actions.set_deadline(None);
        actions.close();
    }

    /// Ends the transaction, if there is one, and drops its message, if that is not whole.
    fn transaction_over(&mut self, actions: &mut impl Actions) {
        let Some(transaction) = self.transaction.take() else { return };
        match transaction.message {
            Message::BetweenChunks(_) | Message::Arriving => actions.message_abort(),
            Message::NotBegun | Message::Whole => {}
        }
        actions.transaction_end();
    }

    /// Gives the client its time anew, or stops the clock while it is the server that takes its time. A line without an
    /// end earns nothing, and neither does a command without an end: it was not taken.
    fn renew_deadline(&self, actions: &mut impl Actions) {
        match (self.expect, self.waits_for) {
            (Expect::Handshake | Expect::Closed | Expect::LongLineEnd | Expect::Stored, _)
            | (_, WaitsFor::Sender) => {}
            (Expect::LoginAnswer, _) | (_, WaitsFor::MessageRoom) => actions.set_deadline(None),
            (Expect::Command | Expect::LoginResponse, _) => {
                actions.set_deadline(Some(COMMAND_TIMEOUT))
            }
            (Expect::MessageData(_) | Expect::ChunkData { .. }, _) => {
                actions.set_deadline(Some(DATA_TIMEOUT))
            }
        }
    }
}
