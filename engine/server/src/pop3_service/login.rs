//! PASS: an attempt begins, has its turn at the hasher, and is answered at once or after a while.

use alloc::boxed::Box;

use machine::Micros;
use pop3::LoginRefusal;

use crate::archive::Opened;
use crate::common::HASHER;
use crate::logins::{Attempt, AttemptState, Throttled, Verdict};

use super::Hands;

/// A name and a password have arrived. What comes of them is decided in a later turn.
pub(super) fn begin(user: &str, password: &[u8], hands: &mut Hands<'_>) {
    let (common, caller) = (&mut *hands.common, hands.caller);
    let throttled = match common.access.is_unthrottled(caller.address) {
        true => Throttled::No,
        false => Throttled::Yes,
    };
    let login = common.directory.login(&common.store, user);
    let mut attempt = Box::new(Attempt::new(login, password, caller.address, throttled));
    let known = attempt.account().and_then(|account| common.store.account(account));
    attempt.state = if !common.logins.begin(&attempt, common.now) {
        AttemptState::TooMany
    } else if let Some(known) =
        known.filter(|known| common.logins.is_verified(&attempt, known.password_hash, common.now))
    {
        AttemptState::Verified(known.id)
    } else {
        AttemptState::Hashing
    };
    match attempt.state {
        AttemptState::Hashing => common.enter(HASHER, caller.connection.0),
        _ => common.ready.resume(caller.connection.0),
    }
    hands.state.attempt = Some(attempt);
}

/// The attempt's turn has come: it has the hasher, or needs none.
pub(super) fn decide(session: &mut pop3::Session, hands: &mut Hands<'_>) {
    let Some(attempt) = hands.state.attempt.as_mut() else { return };
    let common = &mut *hands.common;
    let verdict = match attempt.state {
        AttemptState::Refused | AttemptState::Opening => return,
        AttemptState::Verified(account) => Verdict::Granted(account),
        AttemptState::TooMany => return answer(Err(LoginRefusal::TryLater), session, hands),
        AttemptState::Hashing => {
            let known = attempt.account().and_then(|id| Some((id, common.store.account(id)?.password_hash)));
            let verdict = common.logins.decide(attempt, known, common.now);
            common.leave(HASHER, hands.caller.connection.0);
            verdict
        }
    };
    match verdict {
        Verdict::Granted(account) => {
            attempt.state = AttemptState::Opening;
            let mut done = common.store.open_maildrop(account, hands.caller.connection.0);
            opened(&mut done, session, hands);
        }
        Verdict::Refused(Micros(0)) => answer(Err(LoginRefusal::Credentials), session, hands),
        Verdict::Refused(delay) => {
            attempt.state = AttemptState::Refused;
            common.set_deadline(hands.caller.connection, Some(delay));
        }
    }
}

/// The maildrop of an attempt that was granted is open, or is not to be had; or neither is known yet.
pub(super) fn opened(opened: &mut Option<Opened>, session: &mut pop3::Session, hands: &mut Hands<'_>) {
    if hands.state.attempt.as_ref().is_some_and(|attempt| attempt.state == AttemptState::Opening)
        && let Some(opened) = opened.take()
    {
        let described = opened.map(|maildrop| hands.state.maildrop.insert(maildrop).describe());
        answer(described, session, hands);
    }
}

/// A deadline has passed: gives the answer that was held back until then. False when there is none.
pub(super) fn answer_held_back(session: &mut pop3::Session, hands: &mut Hands<'_>) -> bool {
    let is_held_back = hands.state.attempt.as_ref().is_some_and(|attempt| attempt.state == AttemptState::Refused);
    if is_held_back {
        answer(Err(LoginRefusal::Credentials), session, hands);
    }
    is_held_back
}

/// Nobody waits for the answer any more.
pub(super) fn drop_attempt(hands: &mut Hands<'_>) {
    let Some(attempt) = hands.state.attempt.take() else { return };
    hands.common.logins.end(&attempt, hands.common.now);
    hands.common.leave(HASHER, hands.caller.connection.0);
}

fn answer(result: Result<pop3::Maildrop, LoginRefusal>, session: &mut pop3::Session, hands: &mut Hands<'_>) {
    if let Some(attempt) = hands.state.attempt.take() {
        hands.common.logins.end(&attempt, hands.common.now);
    }
    session.login_answered(result, hands);
}
