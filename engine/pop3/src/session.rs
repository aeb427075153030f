//! A session: the state of one connection between two events.
//!
//! Each variant of [`Expect`] is a wait point. Logins are in `session/authorization.rs`, commands
//! on a maildrop in `session/transaction.rs`, long lists in `session/listing.rs`, and messages in
//! `session/retrieval.rs`. This file has the events that concern all states, and the end of the
//! session.
//!
//! Invariants:
//! - `maildrop` is set exactly from an accepted login to [`Actions::leave_maildrop`]. But the
//!   client may use the maildrop only when its login mechanism is complete.
//! - While a command is in progress, the session takes no further bytes, so responses are sent in
//!   order.
//! - In [`Expect::Closed`] the session makes no more calls of [`Actions`].
//!
//! Implements: RFC 1939 sections 3 to 6.

mod authorization;
mod listing;
mod retrieval;
mod transaction;

use alloc::boxed::Box;

use machine::Micros;
use sasl::Exchange;

use crate::actions::{Actions, DeletionError, Maildrop};
use crate::command::{Command, parse};
use crate::line::{CommandLine, LINE_BYTES_MAX, RESPONSE_LINE_BYTES_MAX, first_line};
use crate::reply::{self, REPLY_BYTES_MAX, Reply};

use listing::{ListStep, MaildropList};
use retrieval::Retrieval;

/// The most messages that the commands of a session visit in one turn. Further commands wait for
/// the next turn.
const VISITED_PER_TURN_MAX: u32 = 2_048;

/// RFC 1939 section 3: the autologout timer is at least ten minutes.
const AUTOLOGOUT: Micros = Micros::from_secs(10 * 60);

/// One client's session.
#[derive(Debug)]
pub struct Session {
    expect: Expect,
    waits_for: Pop3WaitsFor,
    stopping: Stopping,
    faults: u8,
    commands_before_login: u8,
    failed_logins: u8,
    /// Messages that commands have visited since [`Session::resumed`].
    visited: u32,
    /// A pending login is on the heap because it is short-lived, and a session may last for hours.
    pending_login: Option<Box<PendingLogin>>,
    maildrop: Option<MarkedMaildrop>,
}

const _: () = assert!(size_of::<Session>() <= 96);

/// The event that the session waits for. There is one handler for each variant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expect {
    /// A command of the AUTHORIZATION state.
    Authorization,
    /// The client's next response in its login.
    LoginResponse,
    /// The result of a login.
    LoginAnswer,
    /// A command of the TRANSACTION state.
    Transaction,
    /// Buffer space for the rest of a list.
    Listing(MaildropList),
    /// The next bytes of a message, or its end.
    Message(Retrieval),
    /// The result of the deletion (UPDATE state), and how to end the session after it.
    Update(Goodbye),
    /// The end of a line that was too long.
    LongLineEnd,
    /// The TLS handshake. After it a new session replaces this session.
    Handshake,
    /// Nothing: the session is over.
    Closed,
}

/// The event after which the session continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pop3WaitsFor {
    /// More bytes: the bytes offered so far contain no complete command.
    Bytes,
    /// Buffer space for replies. Once there is space for [`REPLY_BYTES_MAX`], call
    /// [`Session::resumed`], and offer first the bytes of the message and then the bytes of
    /// commands again.
    SendRoom,
    /// The next turn, so that other sessions can act in this turn. Call [`Session::resumed`], and
    /// offer the bytes of commands again.
    Turn,
    /// [`Session::login_answered`].
    Login,
    /// [`Session::message_bytes_arrived`] or [`Session::message_ended`].
    Message,
    /// [`Session::deleted`].
    Deletion,
    /// The TLS handshake, done by the owner of the connection. The owner must drop bytes that the
    /// session did not take. Then [`Session::secured`] creates the next session.
    Handshake,
    /// Nothing: the session is over.
    Nothing,
}

/// The part of a login that the client has sent so far.
#[derive(Debug)]
enum PendingLogin {
    /// The name in USER, until PASS.
    User(Box<str>),
    /// The exchange of AUTH, until its end.
    Exchange(Exchange),
}

/// The way in which the session ends after the UPDATE state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Goodbye {
    Aloud,
    /// Without a reply: the client has disconnected.
    Silent,
}

/// Whether the server is about to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stopping {
    No,
    /// The session ends as soon as the command in progress is answered.
    AfterReply,
}

/// The open maildrop, and the number and size of its marked messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MarkedMaildrop {
    all: Maildrop,
    marked: Maildrop,
}

impl Session {
    /// A client has connected: greets it.
    pub fn connected(actions: &mut impl Actions) -> Session {
        actions.reply(reply::GREETING);
        Session::begin(actions)
    }

    /// The TLS handshake after STLS is complete. A new session begins, without a second greeting
    /// (RFC 2595 section 4).
    pub fn secured(actions: &mut impl Actions) -> Session {
        Session::begin(actions)
    }

    fn begin(actions: &mut impl Actions) -> Session {
        actions.set_deadline(Some(AUTOLOGOUT));
        Session {
            expect: Expect::Authorization,
            waits_for: Pop3WaitsFor::Bytes,
            stopping: Stopping::No,
            faults: 0,
            commands_before_login: 0,
            failed_logins: 0,
            visited: 0,
            pending_login: None,
            maildrop: None,
        }
    }

    /// The event after which the session continues.
    pub fn waits_for(&self) -> Pop3WaitsFor {
        self.waits_for
    }

    /// Handles bytes of commands, which have just arrived or are offered again. Returns the number
    /// of bytes taken. The caller offers the rest again, with the bytes that follow, after the
    /// event of [`Session::waits_for`]. An incomplete command in the rest has at most
    /// [`crate::LINE_BYTES_MAX`] bytes. An incomplete response of a login has at most
    /// [`crate::RESPONSE_LINE_BYTES_MAX`].
    pub fn bytes_arrived(&mut self, bytes: &[u8], actions: &mut impl Actions) -> usize {
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            let count = match self.expect {
                // If the session left bytes unread, TCP would send a reset, which could overtake
                // the last reply. Bytes before the handshake are dropped because they may come from
                // an attacker.
                Expect::Handshake | Expect::Closed => rest.len(),
                Expect::Authorization
                | Expect::LoginResponse
                | Expect::Transaction
                | Expect::LongLineEnd => {
                    if actions.send_room() < REPLY_BYTES_MAX {
                        self.waits_for = Pop3WaitsFor::SendRoom;
                        break;
                    }
                    if self.visited >= VISITED_PER_TURN_MAX {
                        self.waits_for = Pop3WaitsFor::Turn;
                        break;
                    }
                    self.command_bytes_arrived(rest, actions)
                }
                Expect::LoginAnswer
                | Expect::Listing(_)
                | Expect::Message(_)
                | Expect::Update(_) => break,
            };
            if count == 0 {
                break;
            }
            taken += count;
        }
        if taken > 0
            && !matches!(self.expect, Expect::Handshake | Expect::Closed | Expect::LongLineEnd)
        {
            actions.set_deadline(Some(AUTOLOGOUT));
        }
        taken
    }

    /// Continues a list, after buffer space has become free or the next turn has begun. After this
    /// call, the caller may offer bytes again.
    pub fn resumed(&mut self, actions: &mut impl Actions) {
        self.visited = 0;
        if let Expect::Listing(listing) = self.expect {
            self.list(listing, b"", actions);
        }
    }

    /// The deletion of the marked messages has ended. `Ok`: all of them are durably deleted.
    pub fn deleted(&mut self, result: Result<(), DeletionError>, actions: &mut impl Actions) {
        let Expect::Update(goodbye) = self.expect else { return };
        if goodbye == Goodbye::Aloud {
            actions.reply(if result.is_ok() { reply::BYE } else { reply::NOT_DELETED });
        }
        self.finish(actions);
    }

    /// The client was silent for too long. The session ends without a reply, and without a QUIT
    /// nothing is deleted (RFC 1939 section 3).
    pub fn deadline_expired(&mut self, actions: &mut impl Actions) {
        self.peer_closed(actions);
    }

    /// The server is about to stop. A command in progress is still answered. Without a QUIT nothing
    /// is deleted.
    pub fn stopping(&mut self, actions: &mut impl Actions) {
        match self.expect {
            Expect::Authorization
            | Expect::LoginResponse
            | Expect::Transaction
            | Expect::LongLineEnd => {
                self.end(reply::STOPPING, actions);
            }
            _ => self.stopping = Stopping::AfterReply,
        }
    }

    /// The account's password has changed since the login: the session ends. Without a QUIT nothing
    /// is deleted. A session without a login continues.
    pub fn password_changed(&mut self, actions: &mut impl Actions) {
        match self.expect {
            _ if self.maildrop.is_none() => {}
            Expect::Transaction | Expect::LongLineEnd => self.end(reply::PASSWORD_CHANGED, actions),
            Expect::Update(_) | Expect::Closed => {}
            // Within a message or a list, the client would take an error line for a part of the
            // response.
            _ => self.finish(actions),
        }
    }

    /// The client will send no more bytes, or the connection is lost. If the client only stopped
    /// sending, this must be called when all earlier bytes have been offered and the session waits
    /// only for bytes. Deletions after QUIT go on.
    pub fn peer_closed(&mut self, actions: &mut impl Actions) {
        match self.expect {
            Expect::Update(_) => self.expect = Expect::Update(Goodbye::Silent),
            Expect::Closed => {}
            _ => self.finish(actions),
        }
    }

    /// Takes one line, or the available part of a line that is too long. Returns 0 if the line has
    /// not ended.
    fn command_bytes_arrived(&mut self, bytes: &[u8], actions: &mut impl Actions) -> usize {
        self.waits_for = Pop3WaitsFor::Bytes;
        let limit = if self.expect == Expect::LoginResponse {
            RESPONSE_LINE_BYTES_MAX
        } else {
            LINE_BYTES_MAX
        };
        match first_line(bytes, limit) {
            CommandLine::Whole(_, count) if self.expect == Expect::LongLineEnd => {
                self.fault(reply::LINE_TOO_LONG, actions);
                self.command_answered(actions);
                count
            }
            CommandLine::Whole(line, count) => {
                match self.expect {
                    Expect::LoginResponse => self.login_response_arrived(line, actions),
                    _ => self.line_arrived(line, actions),
                }
                count
            }
            CommandLine::Partial if self.expect == Expect::LongLineEnd => bytes.len(),
            CommandLine::Partial => 0,
            CommandLine::TooLong => {
                self.login_over(actions);
                self.expect = Expect::LongLineEnd;
                limit
            }
        }
    }

    fn line_arrived(&mut self, line: &[u8], actions: &mut impl Actions) {
        if self.maildrop.is_none() {
            self.commands_before_login = self.commands_before_login.saturating_add(1);
            if self.commands_before_login > actions.settings().commands_before_login_max {
                return self.end(reply::TOO_MANY_COMMANDS, actions);
            }
        }
        match (parse(line), self.maildrop) {
            (Ok(Command::Quit), None) => self.end(reply::BYE, actions),
            (Ok(Command::Capabilities), _) => reply::capabilities(actions),
            (Ok(command), None) => self.authorization_command_arrived(&command, actions),
            (Ok(command), Some(maildrop)) => {
                self.transaction_command_arrived(&command, maildrop, actions)
            }
            (Err(fault), _) => self.fault(reply::fault(fault), actions),
        }
    }

    /// Sends `before`, and as much of a list as there is space for.
    fn list(&mut self, mut listing: MaildropList, before: Reply, actions: &mut impl Actions) {
        let messages = self.maildrop.map_or(0, |maildrop| maildrop.all.messages);
        let begun = listing;
        match listing.send(before, messages, &mut self.visited, actions) {
            ListStep::Whole => self.command_answered(actions),
            ListStep::InPart(waits_for) => {
                self.expect = Expect::Listing(listing);
                self.waits_for = waits_for;
                if listing != begun {
                    actions.set_deadline(Some(AUTOLOGOUT));
                }
            }
        }
    }

    /// A command that had to wait is answered: the session accepts the next command.
    fn command_answered(&mut self, actions: &mut impl Actions) {
        if self.expect == Expect::Closed {
            return;
        }
        self.expect =
            if self.maildrop.is_some() { Expect::Transaction } else { Expect::Authorization };
        self.waits_for = Pop3WaitsFor::Bytes;
        actions.set_deadline(Some(AUTOLOGOUT));
        self.stop_if_stopping(actions);
    }

    /// Ends the session if the server is about to stop.
    fn stop_if_stopping(&mut self, actions: &mut impl Actions) {
        if self.stopping == Stopping::AfterReply {
            self.end(reply::STOPPING, actions);
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
        match self.expect {
            Expect::LoginAnswer => actions.abandon_login(),
            Expect::Message(_) => actions.stop_reading(),
            _ => {}
        }
        if self.maildrop.take().is_some() {
            actions.leave_maildrop();
        }
        self.pending_login = None;
        self.expect = Expect::Closed;
        self.waits_for = Pop3WaitsFor::Nothing;
        actions.set_deadline(None);
        actions.close();
    }
}
