//! SMTP served: what a session wants done, done to the connection, the directory and the store.
//!
//! A transaction has a record while it is open, lent from a pool of a fixed size; an idle session has none. The body
//! goes from the received frame into the store's buffers, behind the trace fields that are ours. Files of their own have logging in, `login`, and what is found out about who sends, `sender`.

mod login;
mod sender;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use machine::Micros;
use message::{
    Assurance, Origin, RECEIVED_BYTES_MAX, RETURN_PATH_BYTES_MAX, Received, Reviser, Revision, SENDER_FOUND_BYTES_MAX,
    return_path,
};
use sasl::{Credentials, Puzzle};
use smtp::{Envelope, ForwardPath, Mail, MessageRefusal, RecipientRefusal, SenderRefusal, Settings, Tls};
use sometimes::buggify;
use store::{Outcome, Recipient, Refusal, State};
use tasks::{Continuation, FrameId};

use crate::archive::LetterId;
use crate::common::{Common, Point};
use crate::identifier::Identifier;
use crate::names::{Known, QuestionNumber};
use crate::secure::Channel;
use crate::session::{Caller, WaitsFor};

use login::Login;
use sender::Finding;

/// With as many `Received:` fields a message runs in circles (RFC 5321 section 6.3).
const HOPS_MAX: u16 = 100;

/// Bytes of replies that a client may leave unread before its next command is looked at: so those who never read cannot
/// have all the memory.
const UNREAD_BYTES_MAX: usize = 16 * 1024;

/// Bytes of the trace fields at most.
pub(crate) const TRACE_BYTES_MAX: usize = RETURN_PATH_BYTES_MAX + SENDER_FOUND_BYTES_MAX + RECEIVED_BYTES_MAX;

/// One SMTP connection.
pub(crate) struct Conversation {
    session: smtp::Session,
    pub(crate) transaction: Option<Box<Transaction>>,
    login: Option<Box<Login>>,
}

/// What the server knows of an open transaction.
#[derive(Default)]
pub(crate) struct Transaction {
    reverse_path: String,
    /// The first recipient as the client wrote it.
    first_recipient: String,
    recipients: Vec<Recipient>,
    finding: Finding,
    message: Option<Incoming>,
}

/// A message on its way into the store.
struct Incoming {
    letter: LetterId,
    identifier: Identifier,
    revision: Revision,
}

impl Incoming {
    /// Puts the next bytes of the message into the store, as they are to be kept. Returns how many were taken.
    fn put(&mut self, bytes: &[u8], common: &mut Common, continuation: Continuation) -> Result<usize, MessageRefusal> {
        self.revise(common, continuation, |revision, own, store| revision.pass(bytes, own, store))
    }

    /// All of it has come: what is still to be said about it goes into the store.
    fn complete(&mut self, common: &mut Common, continuation: Continuation) -> Result<(), MessageRefusal> {
        let is_all = self.revise(common, continuation, |revision, own, store| revision.end(own, store))?;
        // There is no room for a line or two, and no way to wait for it any more.
        if is_all { Ok(()) } else { Err(MessageRefusal::TryLater) }
    }

    fn revise<R>(
        &mut self,
        common: &mut Common,
        continuation: Continuation,
        act: impl FnOnce(&mut Revision, &Reviser<'_>, &mut dyn FnMut(&[u8]) -> Result<usize, Refusal>) -> Result<R, Refusal>,
    ) -> Result<R, MessageRefusal> {
        let Incoming { letter, identifier, revision } = self;
        let Common { store, hostname, date_now, wall, .. } = common;
        let own = Reviser { hostname, identifier: identifier.as_bytes(), now: date_now.at(*wall) };
        act(revision, &own, &mut |bytes| store.append(*letter, bytes, continuation)).map_err(message_refusal)
    }
}

impl Transaction {
    /// A record that has room for the usual transaction, so that none of those allocates.
    pub(crate) fn with_room() -> Transaction {
        Transaction {
            reverse_path: String::with_capacity(smtp::PATH_BYTES_MAX),
            first_recipient: String::with_capacity(smtp::PATH_BYTES_MAX),
            recipients: Vec::with_capacity(8),
            finding: Finding::NotSought,
            message: None,
        }
    }

    fn clear(&mut self) {
        self.reverse_path.clear();
        self.first_recipient.clear();
        self.recipients.clear();
        self.finding = Finding::NotSought;
        self.message = None;
    }
}

impl Conversation {
    /// A client has connected: greets it.
    pub(crate) fn begin(caller: Caller, common: &mut Common) -> Conversation {
        let (mut transaction, mut login) = (None, None);
        let hands = &mut Hands { common, caller, transaction: &mut transaction, login: &mut login };
        Conversation { session: smtp::Session::connected(hands), transaction, login }
    }

    /// A client has asked for TLS, and speaks it now.
    pub(crate) fn secured(caller: Caller, common: &mut Common) -> Conversation {
        let (mut transaction, mut login) = (None, None);
        let hands = &mut Hands { common, caller, transaction: &mut transaction, login: &mut login };
        Conversation { session: smtp::Session::secured(hands), transaction, login }
    }

    pub(crate) fn waits_for(&self) -> WaitsFor {
        match self.session.waits_for() {
            smtp::WaitsFor::Bytes => WaitsFor::Bytes,
            smtp::WaitsFor::SendRoom => WaitsFor::SendRoom,
            smtp::WaitsFor::Sender | smtp::WaitsFor::MessageRoom | smtp::WaitsFor::Stored | smtp::WaitsFor::Login => {
                WaitsFor::Us
            }
            smtp::WaitsFor::Handshake => WaitsFor::Handshake,
            smtp::WaitsFor::Nothing => WaitsFor::Nothing,
        }
    }

    pub(crate) fn has_message(&self) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.message.is_some())
    }

    /// Whether it waits for a letter that holds of what others may wait for: see `pressure`.
    pub(crate) fn holds_and_waits(&self, common: &Common) -> bool {
        self.spread_letter().is_some_and(|letter| match self.session.waits_for() {
            smtp::WaitsFor::MessageRoom => true,
            smtp::WaitsFor::Stored => common.store.is_preparing(letter),
            _ => false,
        })
    }

    /// Has its complete letter refused, if that may be; false: it may not.
    pub(crate) fn give_up_letter(&self, common: &mut Common) -> bool {
        self.spread_letter().is_some_and(|letter| common.store.refuse_preparing(letter, Refusal::Busy))
    }

    fn spread_letter(&self) -> Option<FrameId> {
        match self.transaction.as_ref()?.message.as_ref()?.letter {
            LetterId::Spread(letter) => Some(letter),
            LetterId::Own(_) | LetterId::Distant(_) => None,
        }
    }

    /// Lets the session act.
    pub(crate) fn with<R>(
        &mut self,
        caller: Caller,
        common: &mut Common,
        act: impl FnOnce(&mut smtp::Session, &mut Hands<'_>) -> R,
    ) -> R {
        let Conversation { session, transaction, login } = self;
        act(session, &mut Hands { common, caller, transaction, login })
    }

    pub(crate) fn is_logged_in(&self) -> bool {
        matches!(self.login.as_deref(), Some(Login::Of(_)))
    }

    /// The session's turn has come: its login is to be decided.
    pub(crate) fn resumed(&mut self, caller: Caller, common: &mut Common) {
        self.with(caller, common, login::decide);
    }

    /// This came of a question about who sends.
    pub(crate) fn name_known(&mut self, number: QuestionNumber, known: Known, caller: Caller, common: &mut Common) {
        self.with(caller, common, |session, hands| sender::name_known(number, known, session, hands));
    }

    /// A deadline has passed: the session's, or that of an answer held back, or of what is found out about who sends.
    pub(crate) fn deadline_expired(&mut self, caller: Caller, common: &mut Common) {
        self.with(caller, common, |session, hands| {
            if !login::answer_held_back(session, hands) && !sender::given_up(session, hands) {
                session.deadline_expired(hands);
            }
        });
    }

    /// The store has done what the session waited for.
    pub(crate) fn woken(&mut self, caller: Caller, point: Point, outcome: Outcome, common: &mut Common) {
        self.with(caller, common, |session, hands| match (point, outcome) {
            (Point::MessageRoom, _) => session.message_room(hands),
            (_, Outcome::Refused(refusal)) => session.message_stored(Err(message_refusal(refusal)), hands),
            (_, Outcome::Delivered) => {
                let identifier = hands.identifier();
                session.message_stored(Ok(identifier.as_bytes()), hands);
            }
            // Nothing else acknowledges a letter.
            _ => {}
        });
    }
}

/// A session's hands.
pub(crate) struct Hands<'a> {
    common: &'a mut Common,
    caller: Caller,
    transaction: &'a mut Option<Box<Transaction>>,
    login: &'a mut Option<Box<Login>>,
}

impl Hands<'_> {
    /// The name of the message that is on its way into the store.
    fn identifier(&self) -> Identifier {
        let message = self.transaction.as_ref().and_then(|transaction| transaction.message.as_ref());
        message.map(|message| message.identifier).unwrap_or_default()
    }

    fn message(&mut self) -> Result<(&mut Common, &mut Incoming), MessageRefusal> {
        let transaction = self.transaction.as_mut().ok_or(MessageRefusal::TryLater)?;
        Ok((self.common, transaction.message.as_mut().ok_or(MessageRefusal::TryLater)?))
    }

    fn message_dropped(&mut self) {
        if let Some(transaction) = self.transaction.as_mut() {
            transaction.message = None;
        }
    }

    fn continuation(&self, point: Point) -> Continuation {
        Continuation { frame: self.caller.connection.0, entry: point.entry() }
    }

    /// Puts our trace fields in front of the message.
    fn trace(
        &mut self,
        envelope: &Envelope<'_>,
        letter: LetterId,
        identifier: Identifier,
    ) -> Result<(), MessageRefusal> {
        let Some(transaction) = self.transaction.as_ref() else { return Err(MessageRefusal::TryLater) };
        let continuation = self.continuation(Point::MessageRoom);
        let assurance = match (self.caller.channel, self.account()) {
            (Channel::Plain, None) => Assurance::None,
            (Channel::Plain, Some(_)) => Assurance::Login,
            (Channel::Tls, None) => Assurance::Tls,
            (Channel::Tls, Some(_)) => Assurance::TlsAndLogin,
        };
        let common = &mut *self.common;
        let received = Received {
            greeting_name: envelope.greeting_name,
            peer: self.caller.address,
            hostname: &common.hostname,
            protocol: match envelope.protocol {
                smtp::Protocol::Smtp => message::Protocol::Smtp,
                smtp::Protocol::Esmtp => message::Protocol::Esmtp,
                smtp::Protocol::Utf8Smtp => message::Protocol::Utf8Smtp,
            },
            assurance,
            identifier: identifier.as_bytes(),
            recipient: (envelope.recipients == 1).then_some(transaction.first_recipient.as_str()),
            at: common.date_now.at(common.wall),
        };
        let trace = common.trace.as_mut_slice();
        let length = return_path(&transaction.reverse_path, trace)
            .and_then(|start| {
                let found = transaction.found(&common.hostname, envelope.greeting_name);
                Some(start + found.map_or(Some(0), |found| found.write(trace.get_mut(start..)?))?)
            })
            .and_then(|start| Some(start + received.write(trace.get_mut(start..)?)?))
            .ok_or(MessageRefusal::TryLater)?;
        let trace = common.trace.get(..length).unwrap_or_default();
        let taken = common.store.append(letter, trace, continuation).map_err(message_refusal)?;
        if taken == length { Ok(()) } else { Err(MessageRefusal::TryLater) }
    }
}

impl sasl::Host for Hands<'_> {
    fn puzzle(&mut self, name: &str) -> Puzzle {
        self.common.puzzle(name)
    }

    fn login(&mut self, credentials: Credentials<'_>) {
        login::begin(credentials, self);
    }
}

impl smtp::Actions for Hands<'_> {
    fn settings(&self) -> Settings {
        let tls = match (self.caller.channel, &self.common.secure) {
            (Channel::Tls, _) => Tls::Spoken,
            (_, secure) if !secure.serves(self.caller.service) => Tls::Absent,
            (_, secure) if !secure.may_begin() => Tls::Busy,
            _ => Tls::Offered,
        };
        Settings { tls, login: self.login_setting(), ..self.common.smtp_settings }
    }

    fn send_room(&self) -> usize {
        self.common.send_room_within(self.caller, UNREAD_BYTES_MAX)
    }

    fn reply(&mut self, bytes: &[u8]) {
        self.common.say(self.caller, bytes);
    }

    fn hostname(&self) -> &str {
        &self.common.hostname
    }

    fn transaction_begin(&mut self, mail: &Mail<'_>) -> Result<(), SenderRefusal> {
        self.check_sender(&mail.reverse_path)?;
        if self.common.store.state() != State::Serving {
            return Err(SenderRefusal::Busy);
        }
        if !self.common.store.has_room_for(mail.declared_bytes.unwrap_or(0)) {
            return Err(SenderRefusal::StorageFull);
        }
        if buggify!(NoTransaction) {
            return Err(SenderRefusal::Busy);
        }
        let mut transaction = self.common.transactions.pop().ok_or(SenderRefusal::Busy)?;
        transaction.reverse_path.push_str(mail.reverse_path.text());
        *self.transaction = Some(transaction);
        Ok(())
    }

    fn recipient(&mut self, path: &ForwardPath<'_>) -> Result<(), RecipientRefusal> {
        let recipient = Recipient::inbox(self.recipient_account(path)?);
        let Some(transaction) = self.transaction.as_mut() else { return Err(RecipientRefusal::Unavailable) };
        if transaction.first_recipient.is_empty() {
            transaction.first_recipient.push_str(path.text());
        }
        // Two addresses of one account get one copy.
        if !transaction.recipients.contains(&recipient) {
            transaction.recipients.push(recipient);
        }
        Ok(())
    }

    fn may_begin(&mut self, greeting_name: &str) -> bool {
        sender::is_known(greeting_name, self)
    }

    fn transaction_end(&mut self) {
        sender::forget(self);
        if let Some(mut transaction) = self.transaction.take() {
            transaction.clear();
            self.common.transactions.push(transaction);
        }
    }

    fn message_begin(&mut self, envelope: &Envelope<'_>) -> Result<(), MessageRefusal> {
        let origin = if self.account().is_some() { Origin::Submitted } else { Origin::Relayed };
        let transaction = self.transaction.as_mut().ok_or(MessageRefusal::TryLater)?;
        let letter = self.common.store.begin(&transaction.recipients).map_err(message_refusal)?;
        let identifier = self.common.identifiers.next();
        transaction.message = Some(Incoming { letter, identifier, revision: Revision::new(origin) });
        self.trace(envelope, letter, identifier).inspect_err(|_| self.message_abort())
    }

    fn message_bytes(&mut self, bytes: &[u8]) -> Result<usize, MessageRefusal> {
        let continuation = self.continuation(Point::MessageRoom);
        let (common, incoming) = self.message()?;
        let taken = incoming.put(bytes, common, continuation);
        let is_loop = incoming.revision.hops() >= HOPS_MAX;
        let taken = if is_loop { Err(MessageRefusal::Loop) } else { taken };
        taken.inspect_err(|_| self.message_abort())
    }

    fn message_end(&mut self) -> Result<(), MessageRefusal> {
        let continuation = self.continuation(Point::MessageStored);
        let (common, incoming) = self.message()?;
        if let Err(refusal) = incoming.complete(common, continuation) {
            self.message_abort();
            return Err(refusal);
        }
        let (common, incoming) = self.message()?;
        let committed = common.store.commit(incoming.letter, common.wall, continuation);
        committed.map_err(message_refusal).inspect_err(|_| self.message_dropped())
    }

    fn message_abort(&mut self) {
        if let Ok((common, incoming)) = self.message() {
            common.store.abort(incoming.letter);
        }
        self.message_dropped();
    }

    fn abandon_login(&mut self) {
        login::drop_attempt(self);
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        self.common.set_deadline(self.caller.connection, after);
    }

    fn close(&mut self) {
        self.common.close(self.caller);
    }
}

fn message_refusal(refusal: Refusal) -> MessageRefusal {
    match refusal {
        Refusal::DiskFull | Refusal::IndexFull => MessageRefusal::StorageFull,
        Refusal::TooLarge => MessageRefusal::TooBig,
        _ => MessageRefusal::TryLater,
    }
}
