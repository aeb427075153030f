//! What an SMTP session wants done, done to the connection, the directory and the store.

use alloc::boxed::Box;
use alloc::string::String;

use connections::{Caller, Channel};
use machine::Micros;
use mail::Deed;
use message::{Assurance, Origin, RECEIVED_BYTES_MAX, RETURN_PATH_BYTES_MAX, Received, Revision, return_path};
use sasl::{Credentials, Puzzle};
use smtp::{
    Envelope, Extensions, ForwardPath, Haste, Holds, Mail, MessageRefusal, RecipientRefusal, SenderRefusal, Settings,
    Tls,
};
use sometimes::buggify;
use store::{AccountId, State};
use tasks::Continuation;

use crate::archive::LetterId;
use crate::identifier::Identifier;
use crate::logins::Attempt;

use super::ending::{self, Ending};
use super::incoming::{Incoming, message_refusal};
use super::inquiry::Inquiry;
use super::lists::{self, Standing};
use super::proof::Proof;
use super::strangers::is_near;
use super::transaction::Transaction;
use super::waiting::Point;
use super::{Context, Inbound, SmtpCall, TRACE_BYTES_MAX, allowance, greylist, login, quota, recipients, sender};

/// With as many `Received:` fields a message runs in circles (RFC 5321 section 6.3).
const HOPS_MAX: u16 = 100;

/// A message whose header has more fields is not taken: what checks and signs it has work to do for
/// each.
const FIELDS_MAX: u16 = 1_000;

/// For how long a message may be held that is submitted here: 60 days.
const HOLD_SECONDS_MAX: u32 = 60 * 24 * 60 * 60;

/// Bytes of replies that a client may leave unread before its next command is looked at: so those who never read cannot
/// have all the memory.
const UNREAD_BYTES_MAX: usize = 16 * 1024;

const _: () = assert!(RETURN_PATH_BYTES_MAX + RECEIVED_BYTES_MAX <= TRACE_BYTES_MAX);

/// What is known of a client beside his address: of a user what he has said, of a stranger what others say. Nobody is both.
pub(super) enum Client {
    /// He has said who he is; that is not decided, or the answer is held back.
    LoggingIn(Attempt),
    /// He is who he says he is.
    User(AccountId),
    /// He was looked up in lists.
    Stranger(Standing),
}

/// What an SMTP session acts by.
pub(crate) struct SmtpHost<'a, 'c> {
    pub(super) inbound: &'a mut Inbound,
    pub(super) cx: &'a mut Context<'c>,
    pub(super) caller: Caller,
    pub(super) transaction: &'a mut Option<Box<Transaction>>,
    pub(super) client: &'a mut Option<Box<Client>>,
}

impl<'a, 'c> SmtpHost<'a, 'c> {
    #[inline]
    pub(super) fn of(
        call: &'a mut SmtpCall<'c>,
        transaction: &'a mut Option<Box<Transaction>>,
        client: &'a mut Option<Box<Client>>,
    ) -> SmtpHost<'a, 'c> {
        let SmtpCall { caller, inbound, cx } = call;
        SmtpHost { inbound, cx, caller: *caller, transaction, client }
    }

    /// The name of the message that is on its way into the store.
    pub(super) fn identifier(&self) -> Identifier {
        let message = self.transaction.as_ref().and_then(|transaction| transaction.message.as_ref());
        message.map(|message| message.identifier).unwrap_or_default()
    }

    pub(super) fn message(&mut self) -> Result<(&mut Incoming, &mut Inbound, &mut Context<'c>), MessageRefusal> {
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
            inquiry.forget(self.caller, filter, self.cx);
        }
        if let Some(mut signing) = message.signing {
            signing.forget(self.cx.signer, self.cx.compute);
        }
    }

    pub(super) fn continuation(&self, point: Point) -> Continuation {
        Continuation { frame: self.caller.connection.0, entry: point.entry() }
    }

    /// Puts our trace fields in front of the message: of one above which something is said last, the one that says how it came.
    fn trace(
        &mut self,
        envelope: &Envelope<'_>,
        letter: LetterId,
        identifier: Identifier,
    ) -> Result<(), MessageRefusal> {
        let continuation = self.continuation(Point::Room);
        let assurance = match (self.caller.channel, self.account()) {
            (Channel::Plain, None) => Assurance::None,
            (Channel::Plain, Some(_)) => Assurance::Login,
            (Channel::Tls, None) => Assurance::Tls,
            (Channel::Tls, Some(_)) => Assurance::TlsAndLogin,
        };
        let Some(transaction) = self.transaction.as_mut() else { return Err(MessageRefusal::TryLater) };
        let (inbound, cx) = (&mut *self.inbound, &mut *self.cx);
        let received = Received {
            greeting_name: envelope.greeting_name,
            peer: self.caller.address,
            hostname: &inbound.hostname,
            protocol: match envelope.protocol {
                smtp::Protocol::Smtp => message::Protocol::Smtp,
                smtp::Protocol::Esmtp => message::Protocol::Esmtp,
                smtp::Protocol::Utf8Smtp => message::Protocol::Utf8Smtp,
            },
            assurance,
            identifier: identifier.as_bytes(),
            recipient: (envelope.recipients == 1).then_some(transaction.first_recipient.as_str()),
            at: inbound.date_now.at(cx.turn.wall),
        };
        let trace = inbound.trace.as_mut_slice();
        let message = transaction.message.as_ref();
        let is_said_last =
            message.is_some_and(|message| message.is_judged() || message.signing.is_some() && cx.signer.has_keys());
        let is_elsewhere = transaction.posting.is_wanted();
        let above = if is_said_last || is_elsewhere { Some(0) } else { return_path(&transaction.reverse_path, trace) };
        let length = above
            .and_then(|start| Some(start + received.write(trace.get_mut(start..)?)?))
            .ok_or(MessageRefusal::TryLater)?;
        let trace = inbound.trace.get(..length).unwrap_or_default();
        if let Some(message) = transaction.message.as_mut().filter(|message| !message.head.is_empty()) {
            message.head.extend_from_slice(trace);
            return Ok(());
        }
        let taken = cx.store.append(letter, trace, continuation).map_err(message_refusal)?;
        if taken == length { Ok(()) } else { Err(MessageRefusal::TryLater) }
    }
}

impl sasl::Host for SmtpHost<'_, '_> {
    fn puzzle(&mut self, name: &str) -> Puzzle {
        self.cx.logins.puzzle(name, self.cx.directory, self.cx.store)
    }

    fn login(&mut self, credentials: Credentials<'_>) {
        login::begin(credentials, self);
    }
}

impl smtp::Actions for SmtpHost<'_, '_> {
    fn settings(&self) -> Settings {
        let tls = match (self.caller.channel, self.cx.connections.tls()) {
            (Channel::Tls, _) => Tls::Spoken,
            (_, secure) if !secure.serves(self.caller.service) => Tls::Absent,
            (_, secure) if !secure.may_begin() => Tls::Busy,
            _ => Tls::Offered,
        };
        let (login, settings) = (self.login_setting(), self.inbound.settings);
        if login == smtp::Login::Absent {
            // What strangers send is in a mailbox when they hear that we have it, or is not taken.
            let extensions = settings.extensions.without(Extensions::DSN);
            let haste = if self.cx.is_judged(self.caller) { Haste::Refused } else { Haste::Tolerated };
            return Settings { tls, login, haste, extensions, ..settings };
        }
        let holds = Some(Holds { seconds_max: HOLD_SECONDS_MAX, now: self.cx.turn.wall });
        Settings { tls, login, holds, ..settings }
    }

    fn send_room(&self) -> usize {
        self.cx.connections.send_room_within(self.caller, UNREAD_BYTES_MAX)
    }

    fn reply(&mut self, bytes: &[u8]) {
        self.cx.connections.say(self.cx.turn.now, self.caller, bytes);
    }

    fn hostname(&self) -> &str {
        &self.inbound.hostname
    }

    fn transaction_begin(&mut self, mail: &Mail<'_>) -> Result<(), SenderRefusal> {
        self.check_sender(&mail.reverse_path)?;
        match self.cx.store.state() {
            State::Serving => {}
            State::ReadOnly(_) => return Err(SenderRefusal::DiskFailed),
            State::Opening | State::Refused(_) => return Err(SenderRefusal::Busy),
        }
        if !self.cx.store.has_room_for(mail.declared_bytes.unwrap_or(0)) {
            return Err(SenderRefusal::StorageFull);
        }
        if buggify!(NoTransaction) {
            return Err(SenderRefusal::Busy);
        }
        if !self.may_do(Deed::Message) {
            return Err(SenderRefusal::TooOften);
        }
        let mut transaction = self.inbound.transactions.pop().ok_or(SenderRefusal::Busy)?;
        transaction.reverse_path.push_str(mail.reverse_path.text());
        transaction.posting.note(mail);
        transaction.declared = mail.declared_bytes;
        *self.transaction = Some(transaction);
        Ok(())
    }

    fn recipient(&mut self, named: &smtp::Recipient<'_>) -> Result<(), RecipientRefusal> {
        recipients::name(named, self)
    }

    fn may_answer(&mut self, path: &ForwardPath<'_>, greeting_name: &str) -> bool {
        lists::is_known(path, self) && greylist::is_known(path, greeting_name, self) && quota::is_known(path, self)
    }

    fn reason(&self) -> &str {
        let of_filter = self.transaction.as_ref().map(|transaction| transaction.reason.as_str());
        of_filter.filter(|reason| !reason.is_empty()).or_else(|| self.refusal()).unwrap_or_default()
    }

    fn may_begin(&mut self, greeting_name: &str) -> bool {
        sender::is_known(greeting_name, self) && allowance::is_known(self)
    }

    fn transaction_end(&mut self) {
        lists::forget(self);
        sender::forget(self);
        ending::forget(self);
        if let Some(mut transaction) = self.transaction.take() {
            transaction.clear();
            self.inbound.transactions.push(transaction);
        }
    }

    fn message_begin(&mut self, envelope: &Envelope<'_>) -> Result<(), MessageRefusal> {
        let account = self.account();
        let origin = match account {
            Some(_) => Origin::Submitted,
            None if is_near(self.caller.address, self.cx.connections.net()) => Origin::Relayed,
            None => Origin::Stranger,
        };
        let submitter = account.and_then(|account| self.cx.store.account(account));
        let author = submitter.map_or_else(String::new, |submitter| submitter.address.into());
        let transaction = self.transaction.as_mut().ok_or(MessageRefusal::TryLater)?;
        transaction.permission.check()?;
        let (letter, head) = transaction.begin(account, self.cx.store)?;
        let identifier = self.inbound.identifiers.next();
        let proof = transaction.sender(envelope.greeting_name).map(Proof::new);
        let inquiry = (self.inbound.filter.is_some() && account.is_none() && self.cx.is_judged(self.caller))
            .then(|| Inquiry::begin(envelope.greeting_name));
        let revision = Revision::new(origin);
        let signing = (origin == Origin::Submitted).then(|| self.cx.signer.begin(self.caller.address));
        let ending = Ending::NotYet;
        let message = Incoming { letter, head, identifier, author, revision, proof, inquiry, signing, ending };
        transaction.message = Some(message);
        self.trace(envelope, letter, identifier).inspect_err(|_| self.message_abort())
    }

    fn message_bytes(&mut self, bytes: &[u8]) -> Result<usize, MessageRefusal> {
        let (continuation, caller) = (self.continuation(Point::Room), self.caller);
        let (incoming, inbound, cx) = self.message()?;
        let taken = incoming.put(bytes, inbound, cx, continuation);
        let taken = match &incoming.revision {
            revision if revision.hops() >= HOPS_MAX => Err(MessageRefusal::Loop),
            revision if revision.fields() > FIELDS_MAX => Err(MessageRefusal::TooManyFields),
            _ => taken,
        };
        let taken = taken.and_then(|taken| {
            let looked_at = bytes.get(..taken).unwrap_or(bytes);
            let proof = incoming.proof.as_mut();
            let checked = proof.map_or(Ok(()), |proof| proof.arrived(looked_at, caller, &mut inbound.checks, cx));
            checked.map(|()| taken)
        });
        if let (Ok(taken), Some(inquiry), Some(filter)) = (taken, &mut incoming.inquiry, &mut inbound.filter) {
            inquiry.arrived(bytes.get(..taken).unwrap_or(bytes), filter);
        }
        taken.inspect_err(|_| self.message_abort())
    }

    fn message_end(&mut self) -> Result<(), MessageRefusal> {
        ending::begin(self)
    }

    fn message_abort(&mut self) {
        if let Ok((incoming, _, cx)) = self.message() {
            cx.store.abort(incoming.letter);
        }
        self.message_dropped();
    }

    fn abandon_login(&mut self) {
        login::drop_attempt(self);
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        self.cx.connections.set_deadline(self.cx.turn.now, self.caller.connection, after);
    }

    fn close(&mut self) {
        self.cx.connections.close(self.cx.turn.now, self.caller);
    }
}
