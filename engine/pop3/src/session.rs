//! A session: what the server remembers of one connection between two events.
//!
//! Each variant of [`Expect`] is a waiting point: logging in is in `session/authorization.rs`, the commands on a maildrop
//! in `session/transaction.rs`, long lists in `session/listing.rs`, messages on their way out in `session/retrieval.rs`.
//! This file has the events that concern all of them, and the end.
//!
//! Invariants:
//! - `maildrop` is there exactly from an accepted login to [`Actions::leave_maildrop`]. The client knows of it when it has heard all that its mechanism has to say.
//! - While something is under way for a command no further bytes are taken: responses leave in order.
//! - After [`Expect::Closed`] nothing is asked of [`Actions`] any more.
//!
//! Answers to: RFC 1939 sections 3 to 6.

mod authorization;
mod listing;
mod retrieval;
mod transaction;

use alloc::boxed::Box;

use machine::Micros;
use sasl::Exchange;

use crate::actions::{Actions, DeletionError, Maildrop};
use crate::command::{Command, parse};
use crate::line::{LINE_BYTES_MAX, Line, RESPONSE_LINE_BYTES_MAX, first_line};
use crate::reply::{self, REPLY_BYTES_MAX, Reply};

use listing::{Listing, ListingStep};
use retrieval::Retrieval;

/// Messages that the commands of one session visit in a turn; what follows has to wait for the next.
const VISITED_PER_TURN_MAX: u32 = 2_048;

/// RFC 1939 section 3: the autologout timer is at least ten minutes.
const AUTOLOGOUT: Micros = Micros::from_secs(10 * 60);

/// One client's conversation with the server.
#[derive(Debug)]
pub struct Session {
    expect: Expect,
    waits_for: WaitsFor,
    stopping: Stopping,
    faults: u8,
    commands_before_login: u8,
    failed_logins: u8,
    /// Messages that commands have visited since [`Session::resumed`].
    visited: u32,
    /// On the heap because it is there for a moment and a session for hours.
    given: Option<Box<Given>>,
    maildrop: Option<MarkedMaildrop>,
}

const _: () = assert!(size_of::<Session>() <= 96);

/// What the session waits for. One variant a waiting point, one handler each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expect {
    /// A command of the AUTHORIZATION state.
    Authorization,
    /// The client's next response in its login.
    LoginResponse,
    /// The answer to a login.
    LoginAnswer,
    /// A command of the TRANSACTION state.
    Transaction,
    /// Room for the rest of a list.
    Listing(Listing),
    /// The next bytes of a message, or its end.
    Message(Retrieval),
    /// The end of the UPDATE state, and how to part then.
    Update(Goodbye),
    /// The end of a line that was too long.
    LongLineEnd,
    /// TLS, and another session in this one's place.
    Handshake,
    /// Nothing any more.
    Closed,
}

/// What must happen before the session goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitsFor {
    /// More bytes of commands than it was offered, and nothing else.
    Bytes,
    /// Room for replies: once there is [`REPLY_BYTES_MAX`] of it call [`Session::resumed`], offer a message's bytes again,
    /// and then the commands'.
    SendRoom,
    /// The next turn, so that others have theirs: call [`Session::resumed`], and offer the bytes of commands again.
    Turn,
    /// [`Session::login_answered`].
    Login,
    /// [`Session::message_bytes_arrived`] or [`Session::message_ended`].
    Message,
    /// [`Session::deleted`].
    Deletion,
    /// The handshake of TLS, which is done by whoever owns the connection. What the client has said and was not taken is to be thrown away, and [`Session::secured`] is the
    /// session from then on.
    Handshake,
    /// Nothing: it is over.
    Nothing,
}

/// What the client has said of its login.
#[derive(Debug)]
enum Given {
    /// By USER, until its PASS.
    User(Box<str>),
    /// By AUTH, until its end.
    Exchange(Exchange),
}

/// How to part after the UPDATE state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Goodbye {
    Aloud,
    /// There is nobody to hear it.
    Silent,
}

/// Whether the server is about to go away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stopping {
    No,
    /// As soon as what is under way is answered.
    AfterReply,
}

/// A maildrop and what of it is marked.
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

    /// TLS is spoken with a client that has asked for it: he begins anew, and is not greeted again (RFC 2595 section 4).
    pub fn secured(actions: &mut impl Actions) -> Session {
        Session::begin(actions)
    }

    fn begin(actions: &mut impl Actions) -> Session {
        actions.set_deadline(Some(AUTOLOGOUT));
        Session {
            expect: Expect::Authorization,
            waits_for: WaitsFor::Bytes,
            stopping: Stopping::No,
            faults: 0,
            commands_before_login: 0,
            failed_logins: 0,
            visited: 0,
            given: None,
            maildrop: None,
        }
    }

    /// What must happen before the session goes on.
    pub fn waits_for(&self) -> WaitsFor {
        self.waits_for
    }

    /// Bytes of commands have arrived, or something else has that the session waited for. Returns how many were taken;
    /// the rest (of an incomplete command at most [`crate::LINE_BYTES_MAX`], of a login's response [`crate::RESPONSE_LINE_BYTES_MAX`]) is to be offered again, with what follows
    /// it, when [`Session::waits_for`] has come.
    pub fn bytes_arrived(&mut self, bytes: &[u8], actions: &mut impl Actions) -> usize {
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            let count = match self.expect {
                // Unread bytes would make TCP answer by a reset, which could overtake the last reply. And whoever speaks before the
                // handshake that he asked for may not be the client.
                Expect::Handshake | Expect::Closed => rest.len(),
                Expect::Authorization
                | Expect::LoginResponse
                | Expect::Transaction
                | Expect::LongLineEnd => {
                    if actions.send_room() < REPLY_BYTES_MAX {
                        self.waits_for = WaitsFor::SendRoom;
                        break;
                    }
                    if self.visited >= VISITED_PER_TURN_MAX {
                        self.waits_for = WaitsFor::Turn;
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

    /// There is more room for replies, or it is the next turn: goes on with a list. Bytes are worth offering again.
    pub fn resumed(&mut self, actions: &mut impl Actions) {
        self.visited = 0;
        if let Expect::Listing(listing) = self.expect {
            self.list(listing, b"", actions);
        }
    }

    /// The marked messages are deleted, durably, or not all of them were.
    pub fn deleted(&mut self, result: Result<(), DeletionError>, actions: &mut impl Actions) {
        let Expect::Update(goodbye) = self.expect else { return };
        if goodbye == Goodbye::Aloud {
            actions.reply(if result.is_ok() { reply::BYE } else { reply::NOT_DELETED });
        }
        self.finish(actions);
    }

    /// The client was silent for too long. It is not told, and nothing is deleted (RFC 1939 section 3).
    pub fn deadline_expired(&mut self, actions: &mut impl Actions) {
        self.peer_closed(actions);
    }

    /// The server is about to go away. What is under way is still answered; nothing is deleted without a QUIT.
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

    /// The password by which the client has logged in is not the account's any more: the session
    /// ends, and nothing is deleted without a QUIT. Whoever has not logged in goes on.
    pub fn password_changed(&mut self, actions: &mut impl Actions) {
        match self.expect {
            _ if self.maildrop.is_none() => {}
            Expect::Transaction | Expect::LongLineEnd => self.end(reply::PASSWORD_CHANGED, actions),
            Expect::Update(_) | Expect::Closed => {}
            // A line in the midst of a message or a list would be taken for a part of it.
            _ => self.finish(actions),
        }
    }

    /// The client will send no more, or the connection is lost. Everything before that was offered, and the session was
    /// not waiting for anything but bytes; or it does not matter any more. Deletions that QUIT has begun go on.
    pub fn peer_closed(&mut self, actions: &mut impl Actions) {
        match self.expect {
            Expect::Update(_) => self.expect = Expect::Update(Goodbye::Silent),
            Expect::Closed => {}
            _ => self.finish(actions),
        }
    }

    /// Takes one line, or what is there of one that is too long. Zero: its end is yet to come.
    fn command_bytes_arrived(&mut self, bytes: &[u8], actions: &mut impl Actions) -> usize {
        self.waits_for = WaitsFor::Bytes;
        let limit = if self.expect == Expect::LoginResponse {
            RESPONSE_LINE_BYTES_MAX
        } else {
            LINE_BYTES_MAX
        };
        match first_line(bytes, limit) {
            Line::Whole(_, count) if self.expect == Expect::LongLineEnd => {
                self.fault(reply::LINE_TOO_LONG, actions);
                self.command_answered(actions);
                count
            }
            Line::Whole(line, count) => {
                match self.expect {
                    Expect::LoginResponse => self.login_response_arrived(line, actions),
                    _ => self.line_arrived(line, actions),
                }
                count
            }
            Line::Partial if self.expect == Expect::LongLineEnd => bytes.len(),
            Line::Partial => 0,
            Line::TooLong => {
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

    /// Sends `before`, and of a list what there is room for.
    fn list(&mut self, mut listing: Listing, before: Reply, actions: &mut impl Actions) {
        let messages = self.maildrop.map_or(0, |maildrop| maildrop.all.messages);
        let begun = listing;
        match listing.send(before, messages, &mut self.visited, actions) {
            ListingStep::Whole => self.command_answered(actions),
            ListingStep::InPart(waits_for) => {
                self.expect = Expect::Listing(listing);
                self.waits_for = waits_for;
                if listing != begun {
                    actions.set_deadline(Some(AUTOLOGOUT));
                }
            }
        }
    }

    /// A command that took more than its line is answered: the next may come.
    fn command_answered(&mut self, actions: &mut impl Actions) {
        if self.expect == Expect::Closed {
            return;
        }
        self.expect =
            if self.maildrop.is_some() { Expect::Transaction } else { Expect::Authorization };
        self.waits_for = WaitsFor::Bytes;
        actions.set_deadline(Some(AUTOLOGOUT));
        self.stop_if_stopping(actions);
    }

    fn stop_if_stopping(&mut self, actions: &mut impl Actions) {
        if self.stopping == Stopping::AfterReply {
            self.end(reply::STOPPING, actions);
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
        match self.expect {
            Expect::LoginAnswer => actions.abandon_login(),
            Expect::Message(_) => actions.stop_reading(),
            _ => {}
        }
        if self.maildrop.take().is_some() {
            actions.leave_maildrop();
        }
        self.given = None;
        self.expect = Expect::Closed;
        self.waits_for = WaitsFor::Nothing;
        actions.set_deadline(None);
        actions.close();
    }
}
