//! POP3 served: what a session wants done, done to the connection, the logins and the store.
//!
//! What takes time has a file of its own: `login`, `reading`, `deletion`.

mod deletion;
mod login;
mod reading;

use alloc::boxed::Box;
use alloc::vec::Vec;

use compute::Compute;
use connections::{Caller, Channel, Connections};
use machine::{Micros, Turn};
use pop3::{MessageNumber, PlainLogin, Settings, Tls};
use sasl::{Credentials, Puzzle};
use store::{AccountId, Outcome};
use tasks::{Continuation, Entry, FrameId};

use crate::archive::{Archive, Maildrop, Reply};
use crate::directory::Directory;
use crate::logins::{self, Attempt, Logins};
use crate::subsystem::Subsystem;

use deletion::{Deletion, Orphan};
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
pub(crate) struct Pop3Conversation {
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

/// What POP3 sessions of a core share.
#[derive(Default)]
pub(crate) struct Pop3 {
    /// Deletions whose clients have left.
    orphans: Vec<Orphan>,
}

impl Pop3 {
    /// A removal has ended, of the session that had this frame and is gone.
    pub(crate) fn orphan_ended(&mut self, frame: FrameId, store: &mut Archive) {
        deletion::orphan_ended(&mut self.orphans, frame, store);
    }
}

/// The parts of a core that POP3 sessions use.
pub(crate) struct Context<'c> {
    pub(crate) turn: Turn,
    pub(crate) connections: &'c mut Connections,
    pub(crate) store: &'c mut Archive,
    pub(crate) directory: &'c Directory,
    pub(crate) logins: &'c mut Logins,
    pub(crate) compute: &'c mut Compute,
}

impl Context<'_> {
    /// What logs clients in, and the parts that it uses.
    fn logins(&mut self) -> (&mut Logins, logins::Context<'_>) {
        let Context { turn, connections, store, directory, logins, compute } = self;
        (logins, logins::Context { turn: *turn, connections, store, directory, compute })
    }
}

/// A client's connection, with what its session acts on.
pub(crate) struct Pop3Call<'c> {
    pub(crate) caller: Caller,
    pub(crate) pop3: &'c mut Pop3,
    pub(crate) cx: Context<'c>,
}

/// What a POP3 session acts by.
pub(crate) struct Pop3Host<'a, 'c> {
    cx: &'a mut Context<'c>,
    caller: Caller,
    state: &'a mut State,
}

impl Pop3Conversation {
    /// A client has connected: greets it.
    pub(crate) fn begin(call: &mut Pop3Call<'_>) -> Pop3Conversation {
        let mut state = State::default();
        let session = pop3::Session::connected(&mut Pop3Host::of(call, &mut state));
        Pop3Conversation { session, state }
    }

    /// A client has asked for TLS, and speaks it now.
    pub(crate) fn secured(call: &mut Pop3Call<'_>) -> Pop3Conversation {
        let mut state = State::default();
        let session = pop3::Session::secured(&mut Pop3Host::of(call, &mut state));
        Pop3Conversation { session, state }
    }

    pub(crate) fn waits_for(&self) -> pop3::WaitsFor {
        match self.session.waits_for() {
            pop3::WaitsFor::Message if self.state.wants_room() => pop3::WaitsFor::SendRoom,
            waits_for => waits_for,
        }
    }

    pub(crate) fn is_logged_in(&self) -> bool {
        self.state.maildrop.is_some()
    }

    pub(crate) fn is_of(&self, account: AccountId) -> bool {
        let maildrop = self.state.maildrop.as_ref();
        maildrop.is_some_and(|maildrop| maildrop.account() == account)
            || login::awaits_maildrop_of(account, &self.state)
    }

    /// The password of an account has changed. An attempt to log in is decided by what the password
    /// is then, unless it was granted and waits for its maildrop.
    pub(crate) fn password_changed(&mut self, account: AccountId, call: &mut Pop3Call<'_>) {
        if self.is_of(account) {
            self.with(call, |session, host| {
                login::refuse_granted(session, host);
                session.password_changed(host);
            });
        }
    }

    /// Lets the session act.
    pub(crate) fn with<R>(
        &mut self,
        call: &mut Pop3Call<'_>,
        act: impl FnOnce(&mut pop3::Session, &mut Pop3Host<'_, '_>) -> R,
    ) -> R {
        act(&mut self.session, &mut Pop3Host::of(call, &mut self.state))
    }

    /// There may be room for what is to be said.
    pub(crate) fn go_on(&mut self, call: &mut Pop3Call<'_>) {
        if self.waits_for() == pop3::WaitsFor::SendRoom {
            self.with(call, |session, host| {
                if pop3::Actions::send_room(host) >= pop3::REPLY_BYTES_MAX {
                    session.resumed(host);
                    reading::go_on(session, host);
                }
            });
        }
    }

    /// The store has done what the session waited for.
    pub(crate) fn woken(&mut self, entry: Entry, outcome: Outcome, call: &mut Pop3Call<'_>) {
        let Some(point) = Point::of(entry) else { return call.cx.store.forget(outcome) };
        self.with(call, |session, host| match point {
            Point::Deleted => deletion::part_ended(&outcome, session, host),
            Point::Read => reading::read_ended(outcome, session, host),
            Point::Replied => unreachable!("the owner of an account replies otherwise"),
        });
    }

    /// The maildrop of a login is open, or is not to be had. What the session does not want stays with the caller.
    pub(crate) fn replied(&mut self, reply: &mut Option<Reply>, call: &mut Pop3Call<'_>) {
        self.with(call, |session, host| match reply.take() {
            Some(Reply::Maildrop(opened)) => *reply = login::opened(opened, session, host).map(Reply::Maildrop),
            other => *reply = other,
        });
    }

    /// The session's turn has come: it asked for one, or what it waits for is decided.
    pub(crate) fn resumed(&mut self, call: &mut Pop3Call<'_>) {
        self.with(call, |session, host| {
            deletion::go_on(session, host);
            login::decide(session, host);
            reading::end_if_refused(session, host);
            reading::ask_again(session, host);
            session.resumed(host);
        });
    }

    /// A deadline has passed: the session's, that of an answer held back, or of a deletion or a read to be asked for again.
    pub(crate) fn deadline_expired(&mut self, call: &mut Pop3Call<'_>) {
        self.with(call, |session, host| {
            let was_ours = login::answer_held_back(session, host)
                || deletion::go_on(session, host)
                || reading::ask_again(session, host);
            if !was_ours {
                session.deadline_expired(host);
            }
        });
    }

    /// The connection is gone: what is still held is given back.
    pub(crate) fn ended(&mut self, call: &mut Pop3Call<'_>) {
        deletion::leave(&mut self.state, call);
        self.with(call, |_, host| {
            login::drop_attempt(host);
            pop3::Actions::stop_reading(host);
            pop3::Actions::leave_maildrop(host);
        });
    }
}

impl<'a, 'c> Pop3Host<'a, 'c> {
    #[inline]
    fn of(call: &'a mut Pop3Call<'c>, state: &'a mut State) -> Pop3Host<'a, 'c> {
        Pop3Host { cx: &mut call.cx, caller: call.caller, state }
    }

    fn continuation(&self, point: Point) -> Continuation {
        Continuation { frame: self.caller.connection.0, entry: point.entry() }
    }
}

impl sasl::Host for Pop3Host<'_, '_> {
    fn puzzle(&mut self, name: &str) -> Puzzle {
        self.cx.logins.puzzle(name, self.cx.directory, self.cx.store)
    }

    fn login(&mut self, credentials: Credentials<'_>) {
        login::begin(credentials, self);
    }
}

impl pop3::Actions for Pop3Host<'_, '_> {
    fn settings(&self) -> Settings {
        let is_hidden = self.caller.channel == Channel::Tls;
        let plain_login = match is_hidden || self.cx.logins.access().allows_plaintext_auth(self.caller.address) {
            true => PlainLogin::Offered,
            false => PlainLogin::Refused,
        };
        let tls = match self.cx.connections.tls() {
            _ if is_hidden => Tls::Spoken,
            secure if !secure.serves(self.caller.service) => Tls::Absent,
            secure if !secure.may_begin() => Tls::Busy,
            _ => Tls::Offered,
        };
        Settings { plain_login, tls, ..Settings::default() }
    }

    fn send_room(&self) -> usize {
        match self.state.maildrop {
            Some(_) => self.cx.connections.send_room(self.caller),
            None => self.cx.connections.send_room_within(self.caller, UNREAD_BYTES_MAX),
        }
    }

    fn reply(&mut self, bytes: &[u8]) {
        self.cx.connections.say(self.cx.turn.now, self.caller, bytes);
    }

    fn abandon_login(&mut self) {
        login::drop_attempt(self);
    }

    fn message_bytes(&self, message: MessageNumber) -> u64 {
        self.state.maildrop.as_ref().map_or(0, |maildrop| u64::from(maildrop.octets(message.index())))
    }

    fn unique_id(&self, message: MessageNumber) -> pop3::UniqueId {
        match &self.state.maildrop {
            Some(maildrop) => {
                let uid = maildrop.uid(message.index()).map_or(0, |uid| uid.0);
                pop3::UniqueId::from_uid(maildrop.uid_validity(), uid)
            }
            None => pop3::UniqueId::from_uid(0, 0),
        }
    }

    fn is_marked(&self, message: MessageNumber) -> bool {
        self.state.maildrop.as_ref().is_some_and(|maildrop| maildrop.is_marked(message.index()))
    }

    fn mark(&mut self, message: MessageNumber) {
        if let Some(maildrop) = &mut self.state.maildrop {
            maildrop.mark(message.index());
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
            self.cx.store.close_maildrop(maildrop);
        }
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        self.cx.connections.set_deadline(self.cx.turn.now, self.caller.connection, after);
    }

    fn close(&mut self) {
        self.cx.connections.close(self.cx.turn.now, self.caller);
    }
}
