//! A POP3 connection: passes its events to the session, or to the operation that the session waits
//! for.

use shards::Reply;
use store::{AccountId, Outcome};
use tasks::EntryPoint;

use super::host::{Pop3Call, Pop3Host, Pop3WaitPoint};
use super::state::State;
use super::{deletion, login, reading};

/// One POP3 connection.
pub struct Pop3Conversation {
    session: pop3::Session,
    state: State,
}

impl Pop3Conversation {
    /// A client has connected: greets it.
    pub fn begin(call: &mut Pop3Call<'_>) -> Pop3Conversation {
        let mut state = State::default();
        let session = pop3::Session::connected(&mut Pop3Host::of(call, &mut state));
        Pop3Conversation { session, state }
    }

    /// The TLS handshake after STLS is complete.
    pub fn secured(call: &mut Pop3Call<'_>) -> Pop3Conversation {
        let mut state = State::default();
        let session = pop3::Session::secured(&mut Pop3Host::of(call, &mut state));
        Pop3Conversation { session, state }
    }

    /// The event that the connection waits for.
    pub fn waits_for(&self) -> pop3::Pop3WaitsFor {
        match self.session.waits_for() {
            pop3::Pop3WaitsFor::Message if self.state.wants_room() => pop3::Pop3WaitsFor::SendRoom,
            waits_for => waits_for,
        }
    }

    /// Whether the client is logged in.
    pub fn is_logged_in(&self) -> bool {
        self.state.maildrop.is_some()
    }

    /// Whether the client is logged in to `account`, or its granted login to `account` waits for
    /// the maildrop.
    pub fn is_logged_in_as(&self, account: AccountId) -> bool {
        let maildrop = self.state.maildrop.as_ref();
        maildrop.is_some_and(|maildrop| maildrop.account() == account)
            || login::awaits_maildrop_of(account, &self.state)
    }

    /// The password of `account` has changed: ends its session, and refuses a granted login that
    /// waits for the maildrop. The new password decides any other pending login.
    pub fn password_changed(&mut self, account: AccountId, call: &mut Pop3Call<'_>) {
        if self.is_logged_in_as(account) {
            self.with(call, |session, host| {
                login::refuse_granted(session, host);
                session.password_changed(host);
            });
        }
    }

    /// Calls `act` with the session and its host.
    pub fn with<R>(
        &mut self,
        call: &mut Pop3Call<'_>,
        act: impl FnOnce(&mut pop3::Session, &mut Pop3Host<'_, '_>) -> R,
    ) -> R {
        act(&mut self.session, &mut Pop3Host::of(call, &mut self.state))
    }

    /// Continues the session and its read, if there is enough buffer space for a reply.
    pub fn go_on(&mut self, call: &mut Pop3Call<'_>) {
        self.with(call, |session, host| {
            if pop3::Actions::send_room(host) >= pop3::REPLY_BYTES_MAX {
                session.resumed(host);
                reading::go_on(session, host);
            }
        });
    }

    /// The store has answered a request of the session.
    pub fn woken(&mut self, entry: EntryPoint, outcome: Outcome, call: &mut Pop3Call<'_>) {
        let Some(point) = Pop3WaitPoint::of(entry) else { return call.cx.store.forget(outcome) };
        self.with(call, |session, host| match point {
            Pop3WaitPoint::Deleted => deletion::part_ended(&outcome, session, host),
            Pop3WaitPoint::Read => reading::read_ended(outcome, session, host),
            Pop3WaitPoint::Replied => unreachable!("the owner of an account replies by `replied`"),
        });
    }

    /// The owner of an account has opened the maildrop for a login, or has refused. A reply that
    /// the session does not expect stays in `reply`.
    pub fn replied(&mut self, reply: &mut Option<Reply>, call: &mut Pop3Call<'_>) {
        self.with(call, |session, host| match reply.take() {
            Some(Reply::Maildrop(opened)) => {
                *reply = login::opened(opened, session, host).map(Reply::Maildrop)
            }
            other => *reply = other,
        });
    }

    /// The session's turn has come: the session asked for it, or an operation has a result.
    pub fn resumed(&mut self, call: &mut Pop3Call<'_>) {
        self.with(call, |session, host| {
            deletion::go_on(session, host);
            login::decide(session, host);
            reading::end_if_refused(session, host);
            reading::ask_again(session, host);
            session.resumed(host);
        });
    }

    /// A deadline has passed: of the session, of a delayed login result, or of a deletion or read
    /// to repeat.
    pub fn deadline_expired(&mut self, call: &mut Pop3Call<'_>) {
        self.with(call, |session, host| {
            let was_of_operation = login::answer_held_back(session, host)
                || deletion::go_on(session, host)
                || reading::ask_again(session, host);
            if !was_of_operation {
                session.deadline_expired(host);
            }
        });
    }

    /// The connection has ended: releases its login attempt, read and maildrop.
    pub fn ended(&mut self, call: &mut Pop3Call<'_>) {
        deletion::leave(&mut self.state, call);
        self.with(call, |_, host| {
            login::drop_attempt(host);
            pop3::Actions::stop_reading(host);
            pop3::Actions::leave_maildrop(host);
        });
    }
}
