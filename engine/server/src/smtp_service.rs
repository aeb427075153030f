//! SMTP served: what a session wants done, done to the connection, the directory and the store.
//!
//! A transaction has a record while it is open, lent from a pool of a fixed size; an idle session has none. The body
//! goes from the received frame into the store's buffers, behind the trace fields that are ours; of a stranger's message those that say what was found out about it come
//! last, and are read first, as do the signatures under one that is submitted here. Files of their own have logging in, `login`, what is found out about who sends, `sender`, what lists say of him, `lists`, how much he may do, `limits`, and whether he is put off, `greylist`, whom a message is for, `recipients`, whether they have room, `quota`, how its bytes go into the store, `incoming`, and about whose a message is, `proof`, what a filter makes of it, `filter`, the end of a message, `ending`, and mail for somebody elsewhere, `posting`.

mod allowance;
mod ending;
mod filter;
mod greylist;
mod incoming;
mod limits;
pub(crate) mod lists;
mod login;
mod posting;
pub(crate) mod proof;
mod quota;
mod recipients;
mod sender;
mod waiting;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use connections::{Caller, Channel};
use machine::Micros;
use mail::Deed;
use message::{Assurance, Origin, RECEIVED_BYTES_MAX, RETURN_PATH_BYTES_MAX, Received, Revision, return_path};
use resolver::{Known, QuestionNumber};
use sasl::{Credentials, Puzzle};
use smtp::{
    Envelope, Extensions, ForwardPath, Haste, Holds, Mail, MessageRefusal, RecipientRefusal, SenderRefusal, Settings,
    Tls,
};
use sometimes::buggify;
use store::{AccountId, Head, Outcome, Recipient, Refusal, State};
use tasks::{Continuation, Entry, FrameId};

use crate::archive::{LetterId, Reply};
use crate::common::Common;
use crate::identifier::Identifier;
use crate::logins::Attempt;
use crate::session::WaitsFor;

use waiting::Point;

use allowance::Permission;
use ending::Ending;
use filter::Inquiry;
use incoming::{Incoming, message_refusal};
use lists::Standing;
use posting::Posting;
use proof::Proof;
use quota::Taken;
use sender::Finding;

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

/// Bytes of the trace fields at most: of those that come first, and of those that come last.
pub(crate) const TRACE_BYTES_MAX: usize = Head::OCTETS_MAX;

const _: () = assert!(RETURN_PATH_BYTES_MAX + RECEIVED_BYTES_MAX <= TRACE_BYTES_MAX);

/// One SMTP connection.
pub(crate) struct Conversation {
    session: smtp::Session,
    pub(crate) transaction: Option<Box<Transaction>>,
    client: Option<Box<Client>>,
}

/// What is known of a client beside his address: of a user what he has said, of a stranger what others say. Nobody is both.
enum Client {
    /// He has said who he is; that is not decided, or the answer is held back.
    LoggingIn(Attempt),
    /// He is who he says he is.
    User(AccountId),
    /// He was looked up in lists.
    Stranger(Standing),
}

/// What the server knows of an open transaction.
#[derive(Default)]
pub(crate) struct Transaction {
    reverse_path: String,
    /// The first recipient as the client wrote it.
    first_recipient: String,
    /// Those who are here.
    recipients: Vec<Recipient>,
    posting: Posting,
    finding: Finding,
    /// How large its sender says the message is.
    declared: Option<u64>,
    taken: Taken,
    permission: Permission,
    /// The one recipient has no room for the largest message, and nobody knows how large this one is.
    is_narrow: bool,
    /// Why its message is not kept, in the words of the filter.
    reason: String,
    message: Option<Incoming>,
}

impl Transaction {
    /// A record that has room for the usual transaction, so that none of those allocates.
    pub(crate) fn with_room() -> Transaction {
        Transaction {
            reverse_path: String::with_capacity(smtp::PATH_BYTES_MAX),
            first_recipient: String::with_capacity(smtp::PATH_BYTES_MAX),
            recipients: Vec::with_capacity(8),
            posting: Posting::default(),
            finding: Finding::NotSought,
            declared: None,
            taken: Taken::NotAsked,
            permission: Permission::NotAsked,
            is_narrow: false,
            reason: String::new(),
            message: None,
        }
    }

    fn clear(&mut self) {
        self.reverse_path.clear();
        self.first_recipient.clear();
        self.recipients.clear();
        self.posting = Posting::default();
        self.finding = Finding::NotSought;
        (self.declared, self.taken, self.is_narrow) = (None, Taken::NotAsked, false);
        self.permission = Permission::NotAsked;
        self.reason.clear();
        self.message = None;
    }
}

impl Conversation {
    /// A client has connected: greets it.
    pub(crate) fn begin(caller: Caller, common: &mut Common) -> Conversation {
        Conversation::with_session(|hands| smtp::Session::connected(hands), caller, common)
    }

    /// A client has asked for TLS, and speaks it now.
    pub(crate) fn secured(caller: Caller, common: &mut Common) -> Conversation {
        Conversation::with_session(|hands| smtp::Session::secured(hands), caller, common)
    }

    fn with_session(
        begin: impl FnOnce(&mut Hands<'_>) -> smtp::Session,
        caller: Caller,
        common: &mut Common,
    ) -> Conversation {
        let (mut transaction, mut client) = (None, None);
        let session = begin(&mut Hands { common, caller, transaction: &mut transaction, client: &mut client });
        Conversation { session, transaction, client }
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
        self.message().is_some()
    }

    /// Whether it waits for a letter that holds of what others may wait for: see `pressure`.
    pub(crate) fn holds_and_waits(&self, common: &Common) -> bool {
        self.spread_letter().is_some_and(|letter| match self.session.waits_for() {
            smtp::WaitsFor::MessageRoom => true,
            smtp::WaitsFor::Stored => self.ends_without_room() || common.store.is_preparing(letter),
            _ => false,
        })
    }

    /// Has its complete letter refused, if that may be; false: it may not.
    pub(crate) fn give_up_letter(&self, common: &mut Common) -> bool {
        self.spread_letter().is_some_and(|letter| common.store.refuse_preparing(letter, Refusal::Busy))
    }

    fn message(&self) -> Option<&Incoming> {
        self.transaction.as_ref()?.message.as_ref()
    }

    /// Whether it waits for room for the end of its message.
    fn ends_without_room(&self) -> bool {
        self.message().is_some_and(|message| message.ending.waits_for_room())
    }

    fn spread_letter(&self) -> Option<FrameId> {
        match self.message()?.letter {
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
        let Conversation { session, transaction, client } = self;
        act(session, &mut Hands { common, caller, transaction, client })
    }

    pub(crate) fn is_logged_in(&self) -> bool {
        matches!(self.client.as_deref(), Some(Client::User(_)))
    }

    /// The session's turn has come: its login is to be decided, or a signature under its message.
    pub(crate) fn resumed(&mut self, caller: Caller, common: &mut Common) {
        self.with(caller, common, |session, hands| {
            login::decide(session, hands);
            ending::resumed(session, hands);
        });
    }

    pub(crate) fn is_of(&self, account: AccountId) -> bool {
        matches!(self.client.as_deref(), Some(Client::User(user)) if *user == account)
    }

    /// The password of an account has changed. An attempt to log in is decided by what the password
    /// is then.
    pub(crate) fn password_changed(&mut self, account: AccountId, caller: Caller, common: &mut Common) {
        if self.is_of(account) {
            self.with(caller, common, |session, hands| session.password_changed(hands));
        }
    }

    /// The machine is about to go away.
    pub(crate) fn stopping(&mut self, caller: Caller, common: &mut Common) {
        self.with(caller, common, |session, hands| {
            session.stopping(hands);
            ending::given_up(session, hands);
        });
    }

    /// This came of a question about who sends, or about a message.
    pub(crate) fn name_known(&mut self, number: QuestionNumber, known: Known, caller: Caller, common: &mut Common) {
        self.with(caller, common, |session, hands| {
            let others = ending::name_known(number, known, session, hands);
            if let Some(known) = others.and_then(|known| lists::name_known(number, known, session, hands)) {
                sender::name_known(number, known, session, hands);
            }
        });
    }

    /// The owner of an account has replied.
    pub(crate) fn replied(&mut self, reply: &mut Option<Reply>, caller: Caller, common: &mut Common) {
        self.with(caller, common, |session, hands| match reply.take() {
            Some(Reply::Usage(used)) => quota::learn(used, session, hands),
            Some(Reply::MaySend(permitted)) => allowance::learn(permitted, session, hands),
            other => *reply = other,
        });
    }

    /// A deadline has passed: the session's, or that of an answer held back, or of what is found out about who sends or about a message.
    pub(crate) fn deadline_expired(&mut self, caller: Caller, common: &mut Common) {
        self.with(caller, common, |session, hands| {
            let is_other = login::answer_held_back(session, hands)
                || lists::given_up(session, hands)
                || sender::given_up(session, hands)
                || ending::given_up(session, hands);
            if !is_other {
                session.deadline_expired(hands);
            }
        });
    }

    /// The store has done what the session waited for.
    pub(crate) fn woken(&mut self, caller: Caller, entry: Entry, outcome: Outcome, common: &mut Common) {
        let Some(point) = Point::of(entry) else { return common.forget(outcome) };
        self.with(caller, common, |session, hands| match (point, outcome) {
            (Point::Room, _) => {
                session.message_room(hands);
                ending::room_found(session, hands);
            }
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
    client: &'a mut Option<Box<Client>>,
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
        let message = self.transaction.as_mut().and_then(|transaction| transaction.message.take());
        let Some(message) = message else { return };
        if let Some(mut proof) = message.proof {
            proof.forget(self.caller, self.common);
        }
        if let Some(mut inquiry) = message.inquiry {
            inquiry.forget(self.caller, self.common);
        }
        if let Some(mut signing) = message.signing {
            signing.forget(&mut self.common.signer, &mut self.common.compute);
        }
    }

    fn continuation(&self, point: Point) -> Continuation {
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
            at: common.date_now.at(common.turn.wall),
        };
        let trace = common.trace.as_mut_slice();
        let message = transaction.message.as_ref();
        let is_said_last =
            message.is_some_and(|message| message.is_judged() || message.signing.is_some() && common.signer.has_keys());
        let is_elsewhere = transaction.posting.is_wanted();
        let above = if is_said_last || is_elsewhere { Some(0) } else { return_path(&transaction.reverse_path, trace) };
        let length = above
            .and_then(|start| Some(start + received.write(trace.get_mut(start..)?)?))
            .ok_or(MessageRefusal::TryLater)?;
        let trace = common.trace.get(..length).unwrap_or_default();
        if let Some(message) = transaction.message.as_mut().filter(|message| !message.head.is_empty()) {
            message.head.extend_from_slice(trace);
            return Ok(());
        }
        let taken = common.store.append(letter, trace, continuation).map_err(message_refusal)?;
        if taken == length { Ok(()) } else { Err(MessageRefusal::TryLater) }
    }
}

impl sasl::Host for Hands<'_> {
    fn puzzle(&mut self, name: &str) -> Puzzle {
        let Common { logins, directory, store, .. } = &mut *self.common;
        logins.puzzle(name, directory, store)
    }

    fn login(&mut self, credentials: Credentials<'_>) {
        login::begin(credentials, self);
    }
}

impl smtp::Actions for Hands<'_> {
    fn settings(&self) -> Settings {
        let tls = match (self.caller.channel, self.common.connections.tls()) {
            (Channel::Tls, _) => Tls::Spoken,
            (_, secure) if !secure.serves(self.caller.service) => Tls::Absent,
            (_, secure) if !secure.may_begin() => Tls::Busy,
            _ => Tls::Offered,
        };
        let (login, settings) = (self.login_setting(), self.common.smtp_settings);
        if login == smtp::Login::Absent {
            // What strangers send is in a mailbox when they hear that we have it, or is not taken.
            let extensions = settings.extensions.without(Extensions::DSN);
            let haste = if self.common.is_judged(self.caller) { Haste::Refused } else { Haste::Tolerated };
            return Settings { tls, login, haste, extensions, ..settings };
        }
        let holds = Some(Holds { seconds_max: HOLD_SECONDS_MAX, now: self.common.turn.wall });
        Settings { tls, login, holds, ..settings }
    }

    fn send_room(&self) -> usize {
        self.common.connections.send_room_within(self.caller, UNREAD_BYTES_MAX)
    }

    fn reply(&mut self, bytes: &[u8]) {
        self.common.connections.say(self.common.turn.now, self.caller, bytes);
    }

    fn hostname(&self) -> &str {
        &self.common.hostname
    }

    fn transaction_begin(&mut self, mail: &Mail<'_>) -> Result<(), SenderRefusal> {
        self.check_sender(&mail.reverse_path)?;
        match self.common.store.state() {
            State::Serving => {}
            State::ReadOnly(_) => return Err(SenderRefusal::DiskFailed),
            State::Opening | State::Refused(_) => return Err(SenderRefusal::Busy),
        }
        if !self.common.store.has_room_for(mail.declared_bytes.unwrap_or(0)) {
            return Err(SenderRefusal::StorageFull);
        }
        if buggify!(NoTransaction) {
            return Err(SenderRefusal::Busy);
        }
        if !self.may_do(Deed::Message) {
            return Err(SenderRefusal::TooOften);
        }
        let mut transaction = self.common.transactions.pop().ok_or(SenderRefusal::Busy)?;
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
            self.common.transactions.push(transaction);
        }
    }

    fn message_begin(&mut self, envelope: &Envelope<'_>) -> Result<(), MessageRefusal> {
        let account = self.account();
        let origin = match account {
            Some(_) => Origin::Submitted,
            None if self.common.is_near(self.caller.address) => Origin::Relayed,
            None => Origin::Stranger,
        };
        let submitter = account.and_then(|account| self.common.store.account(account));
        let author = submitter.map_or_else(String::new, |submitter| submitter.address.into());
        let transaction = self.transaction.as_mut().ok_or(MessageRefusal::TryLater)?;
        transaction.permission.check()?;
        let (letter, head) = transaction.begin(account, self.common)?;
        let identifier = self.common.identifiers.next();
        let proof = transaction.sender(envelope.greeting_name).map(Proof::new);
        let inquiry = account.is_none().then(|| Inquiry::begin(envelope.greeting_name, self.caller, self.common));
        let inquiry = inquiry.flatten();
        let revision = Revision::new(origin);
        let signing = (origin == Origin::Submitted).then(|| self.common.signer.begin(self.caller.address));
        let ending = Ending::NotYet;
        let message = Incoming { letter, head, identifier, author, revision, proof, inquiry, signing, ending };
        transaction.message = Some(message);
        self.trace(envelope, letter, identifier).inspect_err(|_| self.message_abort())
    }

    fn message_bytes(&mut self, bytes: &[u8]) -> Result<usize, MessageRefusal> {
        let (continuation, caller) = (self.continuation(Point::Room), self.caller);
        let (common, incoming) = self.message()?;
        let taken = incoming.put(bytes, common, continuation);
        let taken = match &incoming.revision {
            revision if revision.hops() >= HOPS_MAX => Err(MessageRefusal::Loop),
            revision if revision.fields() > FIELDS_MAX => Err(MessageRefusal::TooManyFields),
            _ => taken,
        };
        let taken = taken.and_then(|taken| {
            let looked_at = bytes.get(..taken).unwrap_or(bytes);
            let checked = incoming.proof.as_mut().map_or(Ok(()), |proof| proof.arrived(looked_at, caller, common));
            checked.map(|()| taken)
        });
        if let (Ok(taken), Some(inquiry)) = (taken, &mut incoming.inquiry) {
            inquiry.arrived(bytes.get(..taken).unwrap_or(bytes), common);
        }
        taken.inspect_err(|_| self.message_abort())
    }

    fn message_end(&mut self) -> Result<(), MessageRefusal> {
        ending::begin(self)
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
        self.common.connections.set_deadline(self.common.turn.now, self.caller.connection, after);
    }

    fn close(&mut self) {
        self.common.connections.close(self.common.turn.now, self.caller);
    }
}
