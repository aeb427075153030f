//! POP3 served: what a session wants done, done to the connection, the logins and the store.
//!
//! What takes time has a file of its own: `login`, `reading`, `deletion`.

mod deletion;
mod login;
mod reading;

use alloc::boxed::Box;

use connections::{Caller, Channel};
use machine::Micros;
use pop3::{MessageNumber, PlainLogin, Settings, Tls};
use sasl::{Credentials, Puzzle};
use store::{AccountId, Outcome};
use tasks::{Continuation, Entry};

use crate::archive::Reply;
use crate::common::Common;
use crate::logins::Attempt;
use crate::maildrop::Maildrop;
use crate::session::WaitsFor;
use crate::subsystem::Subsystem;

pub(crate) use deletion::Orphan;

use deletion::Deletion;
use reading::{Read, Reading};

tasks::points! {
    /// Where a POP3 session may wait for the store.
    pub(crate) enum Point of Subsystem::Pop3;
    /// Bytes of a message have been read.
    Read,
    /// Its deletions are on the disk.
    Deleted,
    /// The owner of its account has replied.
    Replied,
}

/// Bytes of responses that a client may leave unread before it has logged in: strangers cannot have all the memory.
const UNREAD_BYTES_MAX: usize = 4 * 1024;

/// One POP3 connection.
pub(crate) struct Conversation {
    session: pop3::Session,
    state: State,
}

/// What the server knows of it beside the session.
#[derive(Default)]
struct State {
    attempt: Option<Box<Attempt>>,
    maildrop: Option<Box<Maildrop>>,
    reading: Option<Reading>,
    read: Read,
    deletion: Option<Box<Deletion>>,
}

/// A session's hands.
pub(crate) struct Hands<'a> {
    common: &'a mut Common,
    caller: Caller,
    state: &'a mut State,
}

impl Conversation {
    /// A client has connected: greets it.
    pub(crate) fn begin(caller: Caller, common: &mut Common) -> Conversation {
        let mut state = State::default();
        let session = pop3::Session::connected(&mut Hands { common, caller, state: &mut state });
        Conversation { session, state }
    }

    /// A client has asked for TLS, and speaks it now.
    pub(crate) fn secured(caller: Caller, common: &mut Common) -> Conversation {
        let mut state = State::default();
        let session = pop3::Session::secured(&mut Hands { common, caller, state: &mut state });
        Conversation { session, state }
    }

    pub(crate) fn waits_for(&self) -> WaitsFor {
        match self.session.waits_for() {
            pop3::WaitsFor::Bytes => WaitsFor::Bytes,
            pop3::WaitsFor::SendRoom => WaitsFor::SendRoom,
            pop3::WaitsFor::Turn => WaitsFor::Turn,
            pop3::WaitsFor::Message if self.state.wants_room() => WaitsFor::SendRoom,
            pop3::WaitsFor::Message | pop3::WaitsFor::Login | pop3::WaitsFor::Deletion => WaitsFor::Us,
            pop3::WaitsFor::Handshake => WaitsFor::Handshake,
            pop3::WaitsFor::Nothing => WaitsFor::Nothing,
        }
    }

    pub(crate) fn is_logged_in(&self) -> bool {
        self.state.maildrop.is_some()
    }

    pub(crate) fn is_of(&self, account: AccountId) -> bool {
        let maildrop = self.state.maildrop.as_ref();
        maildrop.is_some_and(|maildrop| maildrop.account == account) || login::awaits_maildrop_of(account, &self.state)
    }

    /// The password of an account has changed. An attempt to log in is decided by what the password
    /// is then, unless it was granted and waits for its maildrop.
    pub(crate) fn password_changed(&mut self, account: AccountId, caller: Caller, common: &mut Common) {
        if self.is_of(account) {
            self.with(caller, common, |session, hands| {
                login::refuse_granted(session, hands);
                session.password_changed(hands);
            });
        }
    }

    /// Lets the session act.
    pub(crate) fn with<R>(
        &mut self,
        caller: Caller,
        common: &mut Common,
        act: impl FnOnce(&mut pop3::Session, &mut Hands<'_>) -> R,
    ) -> R {
        act(&mut self.session, &mut Hands { common, caller, state: &mut self.state })
    }

    /// There may be room for what is to be said.
    pub(crate) fn go_on(&mut self, caller: Caller, common: &mut Common) {
        if self.waits_for() == WaitsFor::SendRoom {
            self.with(caller, common, |session, hands| {
                if pop3::Actions::send_room(hands) >= pop3::REPLY_BYTES_MAX {
                    session.resumed(hands);
                    reading::go_on(session, hands);
                }
            });
        }
    }

    /// The store has done what the session waited for.
    pub(crate) fn woken(&mut self, caller: Caller, entry: Entry, outcome: Outcome, common: &mut Common) {
        let Some(point) = Point::of(entry) else { return common.forget(outcome) };
        self.with(caller, common, |session, hands| match point {
            Point::Deleted => deletion::part_ended(&outcome, session, hands),
            Point::Read => reading::read_ended(outcome, session, hands),
            Point::Replied => unreachable!("the owner of an account replies otherwise"),
        });
    }

    /// The maildrop of a login is open, or is not to be had. What the session does not want stays with the caller.
    pub(crate) fn replied(&mut self, reply: &mut Option<Reply>, caller: Caller, common: &mut Common) {
        self.with(caller, common, |session, hands| match reply.take() {
            Some(Reply::Maildrop(opened)) => *reply = login::opened(opened, session, hands).map(Reply::Maildrop),
            other => *reply = other,
        });
    }

    /// The session's turn has come: it asked for one, or what it waits for is decided.
    pub(crate) fn resumed(&mut self, caller: Caller, common: &mut Common) {
        self.with(caller, common, |session, hands| {
            deletion::go_on(session, hands);
            login::decide(session, hands);
            reading::end_if_refused(session, hands);
            reading::ask_again(session, hands);
            session.resumed(hands);
        });
    }

    /// A deadline has passed: the session's, that of an answer held back, or of a deletion or a read to be asked for again.
    pub(crate) fn deadline_expired(&mut self, caller: Caller, common: &mut Common) {
        self.with(caller, common, |session, hands| {
            let was_ours = login::answer_held_back(session, hands)
                || deletion::go_on(session, hands)
                || reading::ask_again(session, hands);
            if !was_ours {
                session.deadline_expired(hands);
            }
        });
    }

    /// The connection is gone: what is still held is given back.
    pub(crate) fn ended(&mut self, caller: Caller, common: &mut Common) {
        self.leave_deletion(caller.connection.0, common);
        self.with(caller, common, |_, hands| {
            login::drop_attempt(hands);
            pop3::Actions::stop_reading(hands);
            pop3::Actions::leave_maildrop(hands);
        });
    }
}

impl Hands<'_> {
    fn continuation(&self, point: Point) -> Continuation {
        Continuation { frame: self.caller.connection.0, entry: point.entry() }
    }
}

impl sasl::Host for Hands<'_> {
    fn puzzle(&mut self, name: &str) -> Puzzle {
        let Common { logins, directory, store, .. } = &mut *self.common;
        logins.puzzle(name, directory, store)
    }

    fn login(&mut self, credentials: Credentials<'_>) {
        login::begin(credentials, self);
    }
}

impl pop3::Actions for Hands<'_> {
    fn settings(&self) -> Settings {
        let is_hidden = self.caller.channel == Channel::Tls;
        let plain_login = match is_hidden || self.common.logins.access().allows_plaintext_auth(self.caller.address) {
            true => PlainLogin::Offered,
            false => PlainLogin::Refused,
        };
        let tls = match self.common.connections.tls() {
            _ if is_hidden => Tls::Spoken,
            secure if !secure.serves(self.caller.service) => Tls::Absent,
            secure if !secure.may_begin() => Tls::Busy,
            _ => Tls::Offered,
        };
        Settings { plain_login, tls, ..Settings::default() }
    }

    fn send_room(&self) -> usize {
        match self.state.maildrop {
            Some(_) => self.common.connections.send_room(self.caller),
            None => self.common.connections.send_room_within(self.caller, UNREAD_BYTES_MAX),
        }
    }

    fn reply(&mut self, bytes: &[u8]) {
        self.common.connections.say(self.common.turn.now, self.caller, bytes);
    }

    fn abandon_login(&mut self) {
        login::drop_attempt(self);
    }

    fn message_bytes(&self, message: MessageNumber) -> u64 {
        self.state.maildrop.as_ref().map_or(0, |maildrop| u64::from(maildrop.octets(message)))
    }

    fn unique_id(&self, message: MessageNumber) -> pop3::UniqueId {
        match &self.state.maildrop {
            Some(maildrop) => maildrop.unique_id(message),
            None => pop3::UniqueId::from_uid(0, 0),
        }
    }

    fn is_marked(&self, message: MessageNumber) -> bool {
        self.state.maildrop.as_ref().is_some_and(|maildrop| maildrop.is_marked(message))
    }

    fn mark(&mut self, message: MessageNumber) {
        if let Some(maildrop) = &mut self.state.maildrop {
            maildrop.mark(message);
        }
    }

    fn unmark_all(&mut self) {
        if let Some(maildrop) = &mut self.state.maildrop {
            maildrop.unmark_all();
        }
    }

    fn read(&mut self, message: MessageNumber) {
        reading::begin(message, self);
    }

    fn stop_reading(&mut self) {
        reading::stop(self);
    }

    fn delete_marked(&mut self) {
        deletion::begin(self);
    }

    fn leave_maildrop(&mut self) {
        if let Some(maildrop) = self.state.maildrop.take() {
            self.common.store.close_maildrop(maildrop);
        }
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        self.common.connections.set_deadline(self.common.turn.now, self.caller.connection, after);
    }

    fn close(&mut self) {
        self.common.connections.close(self.common.turn.now, self.caller);
    }
}
