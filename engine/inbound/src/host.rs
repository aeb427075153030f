//! The host of an SMTP session: everything that the session acts on.

use alloc::boxed::Box;

use accounts::logins::LoginAttempt;
use connections::Caller;
use mail::RateLimitedAction;
use relay::QueueId;
use smtp::MessageRefusal;
use store::AccountId;
use tasks::Continuation;

use super::context::SmtpContext;
use super::incoming::IncomingMessage;
use super::limits;
use super::lists::Listings;
use super::shared::{Inbound, SmtpCall};
use super::transaction::InboundTransaction;
use super::waiting::InboundWaitPoint;

/// The facts about a client in addition to its address: its login, or its listings.
pub(super) enum ClientStatus {
    /// The client is logging in: the result is not known, or the answer is delayed.
    LoggingIn(LoginAttempt),
    /// The client has logged in to this account.
    User(AccountId),
    /// The client was looked up in lists of addresses.
    External(Listings),
}

impl ClientStatus {
    /// The listings of a client, if the client was looked up.
    pub(super) fn listings(client: Option<&ClientStatus>) -> Option<&Listings> {
        if let Some(ClientStatus::External(listings)) = client { Some(listings) } else { None }
    }
}

/// The host of an SMTP session: everything that the session acts on.
pub struct SmtpHost<'a, 'c> {
    pub(super) inbound: &'a mut Inbound,
    pub(super) cx: &'a mut SmtpContext<'c>,
    pub(super) caller: Caller,
    pub(super) transaction: &'a mut Option<Box<InboundTransaction>>,
    pub(super) client: &'a mut Option<Box<ClientStatus>>,
}

impl<'a, 'c> SmtpHost<'a, 'c> {
    #[inline]
    pub(super) fn of(
        call: &'a mut SmtpCall<'c>,
        transaction: &'a mut Option<Box<InboundTransaction>>,
        client: &'a mut Option<Box<ClientStatus>>,
    ) -> SmtpHost<'a, 'c> {
        let SmtpCall { caller, inbound, cx } = call;
        SmtpHost { inbound, cx, caller: *caller, transaction, client }
    }

    /// The queue id of the message that is being received.
    pub(super) fn queue_id(&self) -> QueueId {
        let message =
            self.transaction.as_ref().and_then(|transaction| transaction.message.as_ref());
        message.map(|message| message.queue_id).unwrap_or_default()
    }

    pub(super) fn message(
        &mut self,
    ) -> Result<(&mut IncomingMessage, &mut Inbound, &mut SmtpContext<'c>), MessageRefusal> {
        let transaction = self.transaction.as_mut().ok_or(MessageRefusal::TryLater)?;
        Ok((transaction.message.as_mut().ok_or(MessageRefusal::TryLater)?, self.inbound, self.cx))
    }

    fn message_dropped(&mut self) {
        let message = self.transaction.as_mut().and_then(|transaction| transaction.message.take());
        let Some(message) = message else { return };
        if let Some(mut proof) = message.proof {
            proof.forget(self.caller, &mut self.inbound.checks, self.cx);
        }
        if let (Some(mut inquiry), Some(filter)) = (message.inquiry, &mut self.inbound.filter) {
            inquiry.forget(filter, &mut self.cx.for_filter());
        }
        if let Some(mut signing) = message.signing {
            signing.forget(self.cx.signer, self.cx.compute);
        }
    }

    pub(super) fn continuation(&self, point: InboundWaitPoint) -> Continuation {
        Continuation { frame: self.caller.connection.0, entry: point.entry() }
    }

    /// The account that the client has logged in to.
    pub(super) fn account(&self) -> Option<AccountId> {
        match self.client.as_deref() {
            Some(ClientStatus::User(account)) => Some(*account),
            _ => None,
        }
    }

    /// The listings of the client, if the client was looked up.
    pub(super) fn listings(&self) -> Option<&Listings> {
        ClientStatus::listings(self.client.as_deref())
    }

    /// Whether the SPF check of the sender is complete, or not needed. Otherwise, continues the
    /// check.
    pub(super) fn is_sender_known(&mut self, greeting_name: &str) -> bool {
        let is_logged_in = self.account().is_some();
        let SmtpHost { inbound, cx, caller, transaction, .. } = self;
        let Some(InboundTransaction { reverse_path, spf_state, .. }) = transaction.as_deref_mut()
        else {
            return true;
        };
        spf_state.is_known(
            (reverse_path, greeting_name),
            is_logged_in,
            *caller,
            &mut inbound.checks,
            cx,
        )
    }

    /// Whether the rate limits allow the client this action now. If so, counts the action.
    pub(super) fn may_do(&mut self, action: RateLimitedAction) -> bool {
        limits::may_do(action, self.caller, &mut self.inbound.rate_limits, self.cx)
    }

    /// Gives the message up, if there is one.
    pub(super) fn abort_message(&mut self) {
        if let Ok((incoming, _, cx)) = self.message() {
            cx.store.abort(incoming.delivery);
        }
        self.message_dropped();
    }
}
