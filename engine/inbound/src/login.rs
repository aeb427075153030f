//! AUTH: the result of a login, and what a client may do after it.

use alloc::boxed::Box;

use accounts::entries;
use accounts::logins::Decision;
use connections::Channel;
use machine::Protocol;
use sasl::Credentials;
use smtp::{
    AuthRefusal, Domain, RecipientRefusal, ReversePath, SenderRefusal, SmtpMailbox, SmtpPath,
};
use store::AccountId;

use super::host::{ClientStatus, SmtpHost};

/// Begins a login with the client's credentials. A later turn decides it.
pub(super) fn begin(credentials: Credentials<'_>, host: &mut SmtpHost<'_, '_>) {
    let (logins, mut cx) = host.cx.logins();
    *host.client =
        Some(Box::new(ClientStatus::LoggingIn(logins.begin(credentials, host.caller, &mut cx))));
}

/// Decides the login, if its password hash is computed or not needed.
pub(super) fn decide(session: &mut smtp::Session, host: &mut SmtpHost<'_, '_>) {
    let Some(ClientStatus::LoggingIn(attempt)) = host.client.as_deref_mut() else { return };
    let (logins, mut cx) = host.cx.logins();
    match logins.decide(attempt, host.caller, &mut cx) {
        Some(Decision::Granted(account)) => answer(Ok(account), session, host),
        Some(Decision::Refused) => answer(Err(AuthRefusal::Credentials), session, host),
        Some(Decision::TooMany | Decision::NotReady) => {
            answer(Err(AuthRefusal::TryLater), session, host)
        }
        Some(Decision::HeldBack) | None => {}
    }
}

/// Sends the refusal that was delayed until this deadline. Returns false if no refusal was delayed.
pub(super) fn answer_held_back(session: &mut smtp::Session, host: &mut SmtpHost<'_, '_>) -> bool {
    let is_held_back = matches!(
        host.client.as_deref(),
        Some(ClientStatus::LoggingIn(attempt)) if attempt.is_held_back()
    );
    if is_held_back {
        answer(Err(AuthRefusal::Credentials), session, host);
    }
    is_held_back
}

/// Abandons the login, or logs the client out.
pub(super) fn drop_attempt(host: &mut SmtpHost<'_, '_>) {
    if let Some(ClientStatus::LoggingIn(attempt)) = host.client.take().map(|client| *client) {
        host.cx.logins.abandon(&attempt, host.cx.turn.now, host.cx.compute);
    }
}

fn answer(
    result: Result<AccountId, AuthRefusal>,
    session: &mut smtp::Session,
    host: &mut SmtpHost<'_, '_>,
) {
    let mut signature = None;
    if let Some(ClientStatus::LoggingIn(attempt)) = host.client.take().map(|client| *client) {
        host.cx.logins.end(&attempt, host.cx.turn.now);
        signature = attempt.signature();
    }
    *host.client = result.ok().map(|account| Box::new(ClientStatus::User(account)));
    session.login_answered(result.map(|_| signature), host);
}

/// The policy for logins on this connection.
pub(super) fn setting(host: &SmtpHost<'_, '_>) -> smtp::LoginPolicy {
    if host.caller.service_entry().protocol != Protocol::Submission {
        smtp::LoginPolicy::Absent
    } else if host.caller.channel == Channel::Tls
        || host.cx.logins.access().allows_plaintext_auth(host.caller.address)
    {
        smtp::LoginPolicy::Required
    } else {
        smtp::LoginPolicy::AfterTls
    }
}

/// Checks that a logged-in client sends from one of its addresses, or with an empty reverse path.
///
/// Errors: the address belongs to another account or to none.
pub(super) fn check_sender(
    path: &ReversePath<'_>,
    host: &SmtpHost<'_, '_>,
) -> Result<(), SenderRefusal> {
    match (host.account(), path) {
        (None, _) | (_, ReversePath::Null) => Ok(()),
        (Some(account), ReversePath::Named(path)) => match host.cx.recipient(path) {
            Ok(owner) if owner == account => Ok(()),
            _ => Err(SenderRefusal::NotTheirs),
        },
    }
}

/// Checks that mail for `path`, a remote recipient, may be relayed: the client has logged in, and
/// the domain is a name.
///
/// Errors: mail for `path` is not relayed.
pub(super) fn check_relaying(
    path: &SmtpPath<'_>,
    host: &SmtpHost<'_, '_>,
) -> Result<(), RecipientRefusal> {
    let SmtpPath::Mailbox(SmtpMailbox { domain: Domain::Name(domain), .. }) = path else {
        return Err(RecipientRefusal::NotLocal);
    };
    match host.account() {
        None => Err(RecipientRefusal::NotLocal),
        Some(_) if !entries::is_fully_qualified(domain) => Err(RecipientRefusal::NotFullyQualified),
        Some(_) => Ok(()),
    }
}
