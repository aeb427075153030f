//! PASS and AUTH: the result of a login attempt, and the maildrop that it opens.

use alloc::boxed::Box;

use accounts::logins::Decision;
use pop3::LoginRefusal;
use sasl::Credentials;
use shards::{NotOpened, OpenMaildrop, Opened};
use store::AccountId;

use super::host::{Pop3Host, Pop3WaitPoint};
use super::state::State;

/// Begins a login attempt with the client's credentials. A later turn decides it.
pub(super) fn begin(credentials: Credentials<'_>, host: &mut Pop3Host<'_, '_>) {
    let (logins, mut cx) = host.cx.logins();
    host.state.attempt = Some(Box::new(logins.begin(credentials, host.caller, &mut cx)));
}

/// Decides the login attempt, if its password hash is computed or not needed.
pub(super) fn decide(session: &mut pop3::Session, host: &mut Pop3Host<'_, '_>) {
    let Some(attempt) = host.state.attempt.as_mut() else { return };
    let (logins, mut cx) = host.cx.logins();
    match logins.decide(attempt, host.caller, &mut cx) {
        Some(Decision::Granted(account)) => {
            let at = host.continuation(Pop3WaitPoint::Replied);
            if let Some(done) = host.cx.store.ask_owner(OpenMaildrop(account), at) {
                opened(done, session, host);
            }
        }
        Some(Decision::Refused) => answer(Err(LoginRefusal::Credentials), session, host),
        Some(Decision::TooMany | Decision::NotReady) => {
            answer(Err(LoginRefusal::TryLater), session, host)
        }
        Some(Decision::HeldBack) | None => {}
    }
}

/// The owner of an account has opened the maildrop for a login, or has refused. Returns `opened` if
/// no login waits for it.
pub(super) fn opened(
    opened: Opened,
    session: &mut pop3::Session,
    host: &mut Pop3Host<'_, '_>,
) -> Option<Opened> {
    if host.state.attempt.as_ref().is_none_or(|attempt| !attempt.is_granted()) {
        return Some(opened);
    }
    let described = opened.map(|maildrop| {
        let maildrop = host.state.maildrop.insert(maildrop);
        pop3::Maildrop { messages: maildrop.len() as u32, bytes: maildrop.octets_of_all() }
    });
    let refused = |why| match why {
        NotOpened::InUse => LoginRefusal::InUse,
        NotOpened::TooMuch => LoginRefusal::TryLater,
    };
    answer(described.map_err(refused), session, host);
    None
}

/// Whether a login attempt for `account` was granted and waits for the maildrop.
pub(super) fn awaits_maildrop_of(account: AccountId, state: &State) -> bool {
    state
        .attempt
        .as_ref()
        .is_some_and(|attempt| attempt.is_granted() && attempt.account() == Some(account))
}

/// Refuses a granted login attempt, since the password has changed. When its maildrop arrives, no
/// login waits for it.
pub(super) fn refuse_granted(session: &mut pop3::Session, host: &mut Pop3Host<'_, '_>) {
    if host.state.attempt.as_ref().is_some_and(|attempt| attempt.is_granted()) {
        answer(Err(LoginRefusal::Credentials), session, host);
    }
}

/// Sends the refusal that was delayed until this deadline. Returns false if no refusal was delayed.
pub(super) fn answer_held_back(session: &mut pop3::Session, host: &mut Pop3Host<'_, '_>) -> bool {
    let is_held_back = host.state.attempt.as_ref().is_some_and(|attempt| attempt.is_held_back());
    if is_held_back {
        answer(Err(LoginRefusal::Credentials), session, host);
    }
    is_held_back
}

/// Abandons the login attempt.
pub(super) fn drop_attempt(host: &mut Pop3Host<'_, '_>) {
    if let Some(attempt) = host.state.attempt.take() {
        host.cx.logins.abandon(&attempt, host.cx.turn.now, host.cx.compute);
    }
}

fn answer(
    result: Result<pop3::Maildrop, LoginRefusal>,
    session: &mut pop3::Session,
    host: &mut Pop3Host<'_, '_>,
) {
    let attempt = host.state.attempt.take();
    if let Some(attempt) = &attempt {
        host.cx.logins.end(attempt, host.cx.turn.now);
    }
    let signature = attempt.and_then(|attempt| attempt.signature());
    session.login_answered(result.map(|maildrop| (maildrop, signature)), host);
}
