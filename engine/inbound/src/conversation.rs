//! An SMTP connection: passes its events to the SMTP session, or to the check that the session
//! waits for.

use alloc::boxed::Box;

use connections::TransportEvent;
use resolver::{Known, QuestionNumber};
use shards::{DeliveryHandle, Reply, ShardedStore};
use store::{AccountId, Outcome, Refusal};
use tasks::{EntryPoint, FrameId};

use super::host::{ClientStatus, SmtpHost};
use super::incoming::{IncomingMessage, message_refusal};
use super::shared::SmtpCall;
use super::transaction::InboundTransaction;
use super::waiting::InboundWaitPoint;
use super::{end_of_data, login};

/// One SMTP connection.
pub struct SmtpConversation {
    session: smtp::Session,
    transaction: Option<Box<InboundTransaction>>,
    client: Option<Box<ClientStatus>>,
}

impl SmtpConversation {
    /// A client has connected: greets it.
    pub fn begin(call: &mut SmtpCall<'_>) -> SmtpConversation {
        SmtpConversation::with_session(|host| smtp::Session::connected(host), call)
    }

    /// The TLS handshake after STARTTLS is complete.
    pub fn secured(call: &mut SmtpCall<'_>) -> SmtpConversation {
        SmtpConversation::with_session(|host| smtp::Session::secured(host), call)
    }

    fn with_session(
        begin: impl FnOnce(&mut SmtpHost<'_, '_>) -> smtp::Session,
        call: &mut SmtpCall<'_>,
    ) -> SmtpConversation {
        let (mut transaction, mut client) = (None, None);
        let session = begin(&mut SmtpHost::of(call, &mut transaction, &mut client));
        SmtpConversation { session, transaction, client }
    }

    /// The event that the connection waits for.
    pub fn waits_for(&self) -> smtp::SmtpWaitsFor {
        self.session.waits_for()
    }

    /// Whether a transaction is open.
    pub fn has_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// Whether the session is writing a message to a core that is short of buffers or places.
    pub fn holds_scarce_space(&self, store: &ShardedStore) -> bool {
        self.message().is_some_and(|message| store.is_short_for(message.delivery))
    }

    /// Whether the session's message holds buffers while the session waits. Other sessions may need
    /// these buffers. The engine's load shedding calls this function.
    pub fn holds_and_waits(&self, store: &ShardedStore) -> bool {
        // A delivery that is only beginning holds no buffers and waits only for places. So such
        // sessions cannot wait for each other in a circle.
        let begun = self.spread_delivery().filter(|delivery| !store.is_beginning(*delivery));
        begun.is_some_and(|delivery| match self.session.waits_for() {
            smtp::SmtpWaitsFor::MessageRoom => true,
            smtp::SmtpWaitsFor::Stored => self.ends_without_room() || store.is_preparing(delivery),
            _ => false,
        })
    }

    /// Refuses the session's complete message, unless the message is being committed. Returns
    /// whether the message was refused.
    pub fn give_up_message(&self, store: &mut ShardedStore) -> bool {
        self.spread_delivery()
            .is_some_and(|delivery| store.refuse_preparing(delivery, Refusal::Busy))
    }

    fn message(&self) -> Option<&IncomingMessage> {
        self.transaction.as_ref()?.message.as_ref()
    }

    /// Whether the session waits for buffer space for the end of its message.
    fn ends_without_room(&self) -> bool {
        self.message().is_some_and(|message| message.ending.waits_for_room())
    }

    fn spread_delivery(&self) -> Option<FrameId> {
        match self.message()?.delivery {
            DeliveryHandle::MultiShard(delivery) => Some(delivery),
            DeliveryHandle::Local(_) | DeliveryHandle::Remote(_) => None,
        }
    }

    /// Calls `act` with the session and its host.
    pub fn with<R>(
        &mut self,
        call: &mut SmtpCall<'_>,
        act: impl FnOnce(&mut smtp::Session, &mut SmtpHost<'_, '_>) -> R,
    ) -> R {
        let SmtpConversation { session, transaction, client } = self;
        act(session, &mut SmtpHost::of(call, transaction, client))
    }

    /// Whether the client is logged in.
    pub fn is_logged_in(&self) -> bool {
        matches!(self.client.as_deref(), Some(ClientStatus::User(_)))
    }

    /// The session's turn has come: decides its login, or takes the next step of its message.
    pub fn resumed(&mut self, call: &mut SmtpCall<'_>) {
        self.with(call, |session, host| {
            login::decide(session, host);
            end_of_data::resumed(session, host);
        });
    }

    /// Whether the client is logged in to this account.
    pub fn is_logged_in_as(&self, account: AccountId) -> bool {
        matches!(self.client.as_deref(), Some(ClientStatus::User(user)) if *user == account)
    }

    /// Ends the session if it is logged in to this account, because the password of the account has
    /// changed. If a login is under way, the new password decides it.
    pub fn password_changed(&mut self, account: AccountId, call: &mut SmtpCall<'_>) {
        if self.is_logged_in_as(account) {
            self.with(call, |session, host| session.password_changed(host));
        }
    }

    /// The machine is about to stop: tells the session, and ends the wait of a message that has
    /// arrived completely.
    pub fn stopping(&mut self, call: &mut SmtpCall<'_>) {
        self.with(call, |session, host| {
            session.stopping(host);
            end_of_data::give_up(session, host);
        });
    }

    /// Name servers have answered a question about the client, the sender or the message.
    pub fn name_known(&mut self, number: QuestionNumber, known: Known, call: &mut SmtpCall<'_>) {
        self.with(call, |session, host| {
            let Some(known) = end_of_data::name_known(number, known, session, host) else { return };
            if take_answer(number, known, host) {
                session.sender_known(host);
            }
        });
    }

    /// The owner of an account has replied.
    pub fn replied(&mut self, reply: &mut Option<Reply>, call: &mut SmtpCall<'_>) {
        self.with(call, |session, host| match reply.take() {
            Some(Reply::Usage(used)) => {
                let transaction = host.transaction.as_deref_mut();
                if transaction.is_some_and(|transaction| transaction.taken.learn(used)) {
                    session.sender_known(host);
                }
            }
            Some(Reply::MaySend(permitted)) => {
                let SmtpHost { cx, transaction, .. } = host;
                if transaction
                    .as_deref_mut()
                    .is_some_and(|transaction| transaction.permission.learn(permitted, cx))
                {
                    session.sender_known(host);
                }
            }
            Some(Reply::GreylistQuery(known)) => {
                let transaction = host.transaction.as_deref_mut();
                if transaction.is_some_and(|transaction| transaction.deferral.learn(known)) {
                    session.sender_known(host);
                }
            }
            other => *reply = other,
        });
    }

    /// The connection to the filter has an event.
    pub fn filter_event(&mut self, event: TransportEvent, call: &mut SmtpCall<'_>) {
        self.with(call, |session, host| end_of_data::filter_event(event, session, host));
    }

    /// Handles a deadline that has passed. It may be a deadline of the session, of a delayed answer
    /// to a login, or of a check of the client, the sender or the message.
    pub fn deadline_expired(&mut self, call: &mut SmtpCall<'_>) {
        self.with(call, |session, host| {
            if login::answer_held_back(session, host) {
                return;
            }
            if session.waits_for() == smtp::SmtpWaitsFor::Sender && give_up_lookup(host)
                || give_up_spf_check(host)
            {
                return session.sender_known(host);
            }
            if !end_of_data::give_up(session, host) {
                session.deadline_expired(host);
            }
        });
    }

    /// Handles an answer of the store: it has buffer space for the session's message, or has stored
    /// or refused the message.
    pub fn woken(&mut self, entry: EntryPoint, outcome: Outcome, call: &mut SmtpCall<'_>) {
        let Some(point) = InboundWaitPoint::of(entry) else { return call.cx.store.forget(outcome) };
        self.with(call, |session, host| match (point, outcome) {
            (InboundWaitPoint::Room, _) => {
                session.message_room(host);
                end_of_data::room_found(session, host);
            }
            (_, Outcome::Refused(refusal)) => {
                session.message_stored(Err(message_refusal(refusal)), host)
            }
            (_, Outcome::Delivered) => {
                let queue_id = host.queue_id();
                session.message_stored(Ok(queue_id.as_bytes()), host);
            }
            // Only the arm above acknowledges a message.
            _ => {}
        });
    }
}

/// Takes an answer about the client or the sender. Returns whether the session may continue.
fn take_answer(number: QuestionNumber, known: Known, host: &mut SmtpHost<'_, '_>) -> bool {
    let SmtpHost { inbound, cx, caller, transaction, client } = host;
    let known = match client.as_deref_mut() {
        Some(ClientStatus::External(listings)) => {
            match listings.name_known((number, known), *caller, &mut inbound.lists, cx) {
                Ok(is_last) => return is_last,
                Err(known) => known,
            }
        }
        _ => known,
    };
    let Some(transaction) = transaction.as_deref_mut() else { return false };
    transaction.spf_state.name_known(number, known, *caller, &mut inbound.checks)
}

/// Ends the lookup of the client in lists. Returns false if no lookup was under way.
fn give_up_lookup(host: &mut SmtpHost<'_, '_>) -> bool {
    let Some(ClientStatus::External(listings)) = host.client.as_deref_mut() else { return false };
    listings.forget(&mut host.inbound.lists, host.cx.turn.now)
}

/// Ends the SPF check of the sender. Returns false if no check was under way.
fn give_up_spf_check(host: &mut SmtpHost<'_, '_>) -> bool {
    let Some(transaction) = host.transaction.as_deref_mut() else { return false };
    transaction.spf_state.give_up(host.caller, &mut host.inbound.checks)
}
