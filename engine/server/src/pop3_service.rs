//! POP3 served: what a session wants done, done to the connection, the logins and the store.
//!
//! A session has at most one read under way. A read that nobody wants any more is waited for before the next begins, so
//! that its bytes cannot be taken for another's.

use alloc::boxed::Box;
use core::net::IpAddr;

use machine::Micros;
use net::ConnectionId;
use pop3::{DeletionError, LoginRefusal, MessageNumber, PlainLogin, ReadError, Settings};
use store::{Body, INBOX, Outcome, Refusal, Uid};
use tasks::{Continuation, Countdown};

use crate::common::{Common, Point};
use crate::logins::{Attempt, AttemptState, Throttled, Verdict};
use crate::maildrop::Maildrop;

/// Ranges of UIDs that one removal takes.
const RANGES_PER_REMOVAL: usize = 400;

/// One POP3 connection.
pub(crate) struct Conversation {
    pub(crate) session: pop3::Session,
    state: State,
}

/// What the server knows of it beside the session.
#[derive(Default)]
struct State {
    attempt: Option<Box<Attempt>>,
    maildrop: Option<Box<Maildrop>>,
    reading: Option<Reading>,
    read: Read,
    deletion: Option<Deletion>,
}

/// A message that the session wants.
struct Reading {
    uid: Uid,
    octets: u32,
    /// Octets that the session has taken.
    taken: u32,
    /// A part of the message, and how much of it was taken.
    part: Option<(Body, usize)>,
    /// The store would not read: the session is told in the next turn.
    refused: Option<Refusal>,
}

/// Whether the store reads for this session.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Read {
    #[default]
    Idle,
    UnderWay,
    /// It does, but nobody wants it.
    Unwanted,
}

/// The deletion of the marked messages: it is over when nothing of it is outstanding.
struct Deletion {
    outstanding: Countdown,
    result: Result<(), DeletionError>,
}

impl Conversation {
    /// A client has connected: greets it.
    pub(crate) fn begin(connection: ConnectionId, peer: IpAddr, common: &mut Common) -> Conversation {
        let mut state = State::default();
        let session = pop3::Session::connected(&mut Hands { common, connection, peer, state: &mut state });
        Conversation { session, state }
    }

    /// Lets the session act.
    pub(crate) fn with<R>(
        &mut self,
        connection: ConnectionId,
        peer: IpAddr,
        common: &mut Common,
        act: impl FnOnce(&mut pop3::Session, &mut Hands<'_>) -> R,
    ) -> R {
        act(&mut self.session, &mut Hands { common, connection, peer, state: &mut self.state })
    }

    /// There may be room for replies.
    pub(crate) fn room(&mut self, connection: ConnectionId, peer: IpAddr, common: &mut Common) {
        if self.session.waits_for() == pop3::WaitsFor::SendRoom {
            self.with(connection, peer, common, |session, hands| {
                if pop3::Actions::send_room(hands) >= pop3::REPLY_BYTES_MAX {
                    session.resumed(hands);
                    offer_message(session, hands);
                }
            });
        }
        self.go_on_next_turn(connection, common);
    }

    /// The store has done what the session waited for.
    pub(crate) fn woken(
        &mut self,
        connection: ConnectionId,
        peer: IpAddr,
        point: Point,
        outcome: Outcome,
        common: &mut Common,
    ) {
        self.with(connection, peer, common, |session, hands| match point {
            Point::Deleted => {
                if let Some(deletion) = &mut hands.state.deletion {
                    if !matches!(outcome, Outcome::Changed) {
                        deletion.result = Err(DeletionError);
                    }
                    deletion.outstanding.arrived();
                }
                end_deletion(session, hands);
            }
            Point::MessageRead => read_completed(outcome, session, hands),
            _ => hands.common.forget(outcome),
        });
    }

    /// The session goes on in this turn, because it asked to or because what it waits for is decided.
    pub(crate) fn resumed(&mut self, connection: ConnectionId, peer: IpAddr, common: &mut Common) {
        self.with(connection, peer, common, |session, hands| {
            end_deletion(session, hands);
            decide_login(session, hands);
            end_refused_read(session, hands);
            session.resumed(hands);
        });
        self.go_on_next_turn(connection, common);
    }

    /// A deadline has passed: the session's, or that of an answer held back.
    pub(crate) fn deadline_expired(&mut self, connection: ConnectionId, peer: IpAddr, common: &mut Common) {
        self.with(connection, peer, common, |session, hands| match &hands.state.attempt {
            Some(attempt) if attempt.state == AttemptState::Refused => {
                answer_login(Err(LoginRefusal::Credentials), session, hands);
            }
            _ => session.deadline_expired(hands),
        });
    }

    /// The connection is gone: what is still held is given back.
    pub(crate) fn ended(&mut self, connection: ConnectionId, peer: IpAddr, common: &mut Common) {
        self.with(connection, peer, common, |_, hands| {
            hands.drop_attempt();
            pop3::Actions::stop_reading(hands);
            pop3::Actions::leave_maildrop(hands);
        });
    }

    fn go_on_next_turn(&mut self, connection: ConnectionId, common: &mut Common) {
        if self.session.waits_for() == pop3::WaitsFor::Turn {
            common.ready.resume(connection.0);
        }
    }
}

/// A session's hands.
pub(crate) struct Hands<'a> {
    common: &'a mut Common,
    connection: ConnectionId,
    peer: IpAddr,
    state: &'a mut State,
}

impl Hands<'_> {
    fn continuation(&self, point: Point) -> Continuation {
        Continuation { frame: self.connection.0, entry: point.entry() }
    }

    /// Asks the store for the next part of the message that the session wants.
    fn request_part(&mut self) -> Result<(), Refusal> {
        let continuation = self.continuation(Point::MessageRead);
        let State { reading: Some(reading), maildrop: Some(maildrop), read, .. } = &mut *self.state else {
            return Ok(());
        };
        if *read == Read::Idle {
            self.common.store.read(maildrop.account, INBOX, reading.uid, reading.taken, continuation)?;
            *read = Read::UnderWay;
        }
        Ok(())
    }

    fn drop_attempt(&mut self) {
        let Some(attempt) = self.state.attempt.take() else { return };
        self.common.logins.end(&attempt, self.common.now);
        if let Some(next) = self.common.logins.abandon(self.connection.0) {
            self.common.ready.resume(next);
        }
    }
}

/// The attempt's turn has come: it has the hasher, or needs none.
fn decide_login(session: &mut pop3::Session, hands: &mut Hands<'_>) {
    let Some(attempt) = hands.state.attempt.as_mut() else { return };
    let common = &mut *hands.common;
    let verdict = match attempt.state {
        AttemptState::Refused => return,
        AttemptState::Verified(account) => Verdict::Granted(account),
        AttemptState::TooMany => return answer_login(Err(LoginRefusal::TryLater), session, hands),
        AttemptState::Hashing => {
            let account = common.directory.login(&common.store, attempt.name());
            let known = account.and_then(|id| Some((id, common.store.account(id)?.password_hash())));
            let verdict = common.logins.decide(attempt, known, common.now);
            if let Some(next) = common.logins.leave(hands.connection.0) {
                common.ready.resume(next);
            }
            verdict
        }
    };
    match verdict {
        Verdict::Granted(account) => {
            let opened = common.open_maildrop(account);
            let opened = opened.map(|maildrop| hands.state.maildrop.insert(maildrop).describe());
            answer_login(opened, session, hands);
        }
        Verdict::Refused(Micros(0)) => answer_login(Err(LoginRefusal::Credentials), session, hands),
        Verdict::Refused(delay) => {
            attempt.state = AttemptState::Refused;
            common.set_deadline(hands.connection, Some(delay));
        }
    }
}

fn answer_login(result: Result<pop3::Maildrop, LoginRefusal>, session: &mut pop3::Session, hands: &mut Hands<'_>) {
    if let Some(attempt) = hands.state.attempt.take() {
        hands.common.logins.end(&attempt, hands.common.now);
    }
    session.login_answered(result, hands);
}

/// Tells the session of its deletion, if that is over.
fn end_deletion(session: &mut pop3::Session, hands: &mut Hands<'_>) {
    if let Some(deletion) = hands.state.deletion.take_if(|deletion| deletion.outstanding.is_done()) {
        session.deleted(deletion.result, hands);
    }
}

/// Tells the session of a message that the store would not read.
fn end_refused_read(session: &mut pop3::Session, hands: &mut Hands<'_>) {
    if let Some(refusal) = hands.state.reading.as_ref().and_then(|reading| reading.refused) {
        hands.state.reading = None;
        session.message_ended(Err(read_error(&Outcome::Refused(refusal))), hands);
    }
}

/// A part of a message has been read, or could not be.
fn read_completed(outcome: Outcome, session: &mut pop3::Session, hands: &mut Hands<'_>) {
    let wanted = core::mem::take(&mut hands.state.read) == Read::UnderWay;
    match (outcome, &mut hands.state.reading) {
        (Outcome::Body(body), Some(reading)) if wanted => {
            reading.part = Some((body, 0));
            offer_message(session, hands);
        }
        (outcome, Some(_)) if wanted => {
            hands.state.reading = None;
            session.message_ended(Err(read_error(&outcome)), hands);
        }
        (outcome, _) => {
            hands.common.forget(outcome);
            request_message(session, hands);
        }
    }
}

/// Offers the session what has been read of its message, and asks for the rest, or ends it.
fn offer_message(session: &mut pop3::Session, hands: &mut Hands<'_>) {
    let Some((body, start)) = hands.state.reading.as_mut().and_then(|reading| reading.part.take()) else { return };
    let rest = body.bytes().get(start..).unwrap_or_default();
    let count = session.message_bytes_arrived(rest, hands);
    let Some(reading) = hands.state.reading.as_mut() else { return hands.common.store.give_back(body) };
    reading.taken += count as u32;
    if count < rest.len() {
        reading.part = Some((body, start + count));
        return;
    }
    hands.common.store.give_back(body);
    request_message(session, hands);
}

/// Asks for the next part of the message, or ends it when it was the last.
fn request_message(session: &mut pop3::Session, hands: &mut Hands<'_>) {
    let Some(reading) = hands.state.reading.as_ref() else { return };
    if reading.taken >= reading.octets && reading.octets > 0 {
        hands.state.reading = None;
        return session.message_ended(Ok(()), hands);
    }
    if let Err(refusal) = hands.request_part() {
        hands.state.reading = None;
        session.message_ended(Err(read_error(&Outcome::Refused(refusal))), hands);
    }
}

fn read_error(outcome: &Outcome) -> ReadError {
    match outcome {
        Outcome::Refused(Refusal::Damaged) => ReadError::Damaged,
        _ => ReadError::TryLater,
    }
}

impl pop3::Actions for Hands<'_> {
    fn settings(&self) -> Settings {
        let plain_login = match self.common.access.allows_plaintext_auth(self.peer) {
            true => PlainLogin::Offered,
            false => PlainLogin::Refused,
        };
        Settings { plain_login, ..Settings::default() }
    }

    fn send_room(&self) -> usize {
        self.common.net.send_room(self.connection)
    }

    fn reply(&mut self, bytes: &[u8]) {
        self.common.say(self.connection, bytes);
    }

    fn login(&mut self, user: &str, password: &[u8]) {
        let common = &mut *self.common;
        let throttled = match common.access.is_unthrottled(self.peer) {
            true => Throttled::No,
            false => Throttled::Yes,
        };
        let mut attempt = Box::new(Attempt::new(user, password, self.peer, throttled));
        let known = common.directory.login(&common.store, user).and_then(|account| common.store.account(account));
        attempt.state = if !common.logins.begin(&attempt, common.now) {
            AttemptState::TooMany
        } else if let Some(known) =
            known.filter(|known| common.logins.is_verified(&attempt, known.password_hash(), common.now))
        {
            AttemptState::Verified(known.id())
        } else {
            AttemptState::Hashing
        };
        if attempt.state != AttemptState::Hashing || common.logins.enter(self.connection.0) {
            common.ready.resume(self.connection.0);
        }
        self.state.attempt = Some(attempt);
    }

    fn abandon_login(&mut self) {
        self.drop_attempt();
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
        let Some(maildrop) = &self.state.maildrop else { return };
        let octets = maildrop.octets(message);
        let uid = maildrop.uid(message).unwrap_or(Uid(0));
        self.state.reading = Some(Reading { uid, octets, taken: 0, part: None, refused: None });
        if let Err(refusal) = self.request_part() {
            // What is started is never answered from within the call.
            if let Some(reading) = &mut self.state.reading {
                reading.refused = Some(refusal);
            }
            self.common.ready.resume(self.connection.0);
        }
    }

    fn stop_reading(&mut self) {
        if let Some((body, _)) = self.state.reading.take().and_then(|reading| reading.part) {
            self.common.store.give_back(body);
        }
        if self.state.read == Read::UnderWay {
            self.state.read = Read::Unwanted;
        }
    }

    fn delete_marked(&mut self) {
        let Some(maildrop) = &self.state.maildrop else { return };
        let mut deletion = Deletion { outstanding: Countdown::default(), result: Ok(()) };
        let continuation = self.continuation(Point::Deleted);
        for ranges in maildrop.marked().chunks(RANGES_PER_REMOVAL) {
            match self.common.store.remove(maildrop.account, INBOX, ranges, continuation) {
                Ok(()) => deletion.outstanding.expect_one_more(),
                Err(_) => deletion.result = Err(DeletionError),
            }
        }
        if deletion.outstanding.is_done() {
            self.common.ready.resume(self.connection.0);
        }
        self.state.deletion = Some(deletion);
    }

    fn leave_maildrop(&mut self) {
        if let Some(maildrop) = self.state.maildrop.take() {
            self.common.close_maildrop(&maildrop);
        }
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        self.common.set_deadline(self.connection, after);
    }

    fn close(&mut self) {
        self.common.net.close(self.connection);
    }
}
