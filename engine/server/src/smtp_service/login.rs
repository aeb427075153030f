//! AUTH: what comes of an attempt to log in, and what may be done by whom it has let in.

use alloc::boxed::Box;

use connections::{Channel, Protocol};
use sasl::Credentials;
use smtp::{Domain, ForwardPath, LoginRefusal, Mailbox, RecipientRefusal, ReversePath, SenderRefusal};
use store::AccountId;

use crate::common::Common;
use crate::logins::{AttemptState, Decision};
use crate::queue;

use super::{Client, Hands};

/// The client has said who it is. What comes of that is decided in a later turn.
pub(super) fn begin(credentials: Credentials<'_>, hands: &mut Hands<'_>) {
    let (logins, mut cx) = hands.common.logins();
    *hands.client = Some(Box::new(Client::LoggingIn(logins.begin(credentials, hands.caller, &mut cx))));
}

/// The attempt's turn has come: its hash is computed, or it needs none.
pub(super) fn decide(session: &mut smtp::Session, hands: &mut Hands<'_>) {
    let Some(Client::LoggingIn(attempt)) = hands.client.as_deref_mut() else { return };
    let (logins, mut cx) = hands.common.logins();
    match logins.decide(attempt, hands.caller, &mut cx) {
        Some(Decision::Granted(account)) => answer(Ok(account), session, hands),
        Some(Decision::Refused) => answer(Err(LoginRefusal::Credentials), session, hands),
        Some(Decision::TooMany) => answer(Err(LoginRefusal::TryLater), session, hands),
        Some(Decision::HeldBack) | None => {}
    }
}

/// A deadline has passed: gives the answer that was held back until then. False when there is none.
pub(super) fn answer_held_back(session: &mut smtp::Session, hands: &mut Hands<'_>) -> bool {
    let is_held_back = matches!(
        hands.client.as_deref(),
        Some(Client::LoggingIn(attempt)) if attempt.state == AttemptState::Refused
    );
    if is_held_back {
        answer(Err(LoginRefusal::Credentials), session, hands);
    }
    is_held_back
}

/// Nobody waits for the answer any more, or the client does not want to be who it has proved to be.
pub(super) fn drop_attempt(hands: &mut Hands<'_>) {
    if let Some(Client::LoggingIn(attempt)) = hands.client.take().map(|client| *client) {
        let Common { logins, compute, turn, .. } = &mut *hands.common;
        logins.abandon(&attempt, turn.now, compute);
    }
}

fn answer(result: Result<AccountId, LoginRefusal>, session: &mut smtp::Session, hands: &mut Hands<'_>) {
    let mut signature = None;
    if let Some(Client::LoggingIn(attempt)) = hands.client.take().map(|client| *client) {
        hands.common.logins.end(&attempt, hands.common.turn.now);
        signature = attempt.signature();
    }
    *hands.client = result.ok().map(|account| Box::new(Client::User(account)));
    session.login_answered(result.map(|_| signature), hands);
}

impl Hands<'_> {
    /// Whether clients say who they are, and whether they may now.
    pub(super) fn login_setting(&self) -> smtp::Login {
        if self.caller.service_entry().protocol != Protocol::Submission {
            smtp::Login::Absent
        } else if self.caller.channel == Channel::Tls
            || self.common.logins.access().allows_plaintext_auth(self.caller.address)
        {
            smtp::Login::Required
        } else {
            smtp::Login::AfterTls
        }
    }

    /// Who the client has proved to be.
    pub(super) fn account(&self) -> Option<AccountId> {
        match self.client.as_deref() {
            Some(Client::User(account)) => Some(*account),
            _ => None,
        }
    }

    /// Whoever has said who he is sends under his own addresses, or under none.
    pub(super) fn check_sender(&self, path: &ReversePath<'_>) -> Result<(), SenderRefusal> {
        match (self.account(), path) {
            (None, _) | (_, ReversePath::Null) => Ok(()),
            (Some(account), ReversePath::Mailbox(mailbox)) => {
                match self.common.recipient(&ForwardPath::Mailbox(*mailbox)) {
                    Ok(owner) if owner == account => Ok(()),
                    _ => Err(SenderRefusal::NotTheirs),
                }
            }
        }
    }

    /// Mail for `path`, which is none of ours, goes to whoever else takes it: for who is logged in, and to a domain by its name.
    ///
    /// Errors: it does not.
    pub(super) fn check_relaying(&self, path: &ForwardPath<'_>) -> Result<(), RecipientRefusal> {
        let ForwardPath::Mailbox(Mailbox { domain: Domain::Name(domain), .. }) = path else {
            return Err(RecipientRefusal::NotLocal);
        };
        match self.account() {
            None => Err(RecipientRefusal::NotLocal),
            Some(_) if !queue::is_fully_qualified(domain) => Err(RecipientRefusal::NotFullyQualified),
            Some(_) => Ok(()),
        }
    }
}
