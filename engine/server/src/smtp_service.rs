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
mod lists;
mod login;
mod posting;
pub(crate) mod proof;
mod quota;
mod recipients;
mod sender;
mod waiting;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use compute::Compute;
use configuration::{Access, Configuration};
use connections::{Caller, Channel, Connections, Stir};
use dns::Name;
use machine::{Micros, Turn, UnixTime};
use mail::{Deed, Greylist, Strangers};
use message::{
    Assurance, DateTimeNow, Origin, RECEIVED_BYTES_MAX, RETURN_PATH_BYTES_MAX, Received, Revision, return_path,
};
use net::Net;
use resolver::{Known, Names, QuestionNumber};
use sasl::{Credentials, Puzzle};
use smtp::{
    Envelope, Extensions, ForwardPath, Haste, Holds, Mail, MessageRefusal, RecipientRefusal, SenderRefusal, Settings,
    Tls,
};
use sometimes::buggify;
use store::{AccountId, Head, Outcome, Recipient, Refusal, State};
use tasks::{Continuation, Entry, FrameId};

use crate::archive::{Archive, LetterId, Reply};
use crate::console::ConsoleLines;
use crate::directory::Directory;
use crate::filter::Filter;
use crate::identifier::{Identifier, Identifiers};
use crate::logins::{self, Attempt, Logins};
use crate::session::WaitsFor;
use crate::signing::Signer;
use crate::sizes::Sizes;
use crate::strangers::{is_judged, is_near};

use waiting::Point;

use allowance::Permission;
use ending::Ending;
use filter::Inquiry;
use incoming::{Incoming, message_refusal};
use lists::{Lists, Standing};
use posting::Posting;
use proof::{Checks, Proof};
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

/// What SMTP sessions of a core share.
pub(crate) struct Inbound {
    hostname: String,
    settings: Settings,
    date_now: DateTimeNow,
    identifiers: Identifiers,
    /// Records for transactions that no session uses.
    #[expect(clippy::vec_box, reason = "a session takes a pointer, not the record")]
    transactions: Vec<Box<Transaction>>,
    /// Where the trace fields of a message are put together.
    trace: Box<[u8; TRACE_BYTES_MAX]>,
    /// What clients have done lately.
    strangers: Strangers,
    /// How long a client from outside is listened to before it is greeted.
    greeting_delay: Option<Micros>,
    /// The senders whose messages are deferred until they come again, if any are.
    greylist: Option<Greylist>,
    /// Lists of addresses that clients are looked up in.
    lists: Lists,
    /// The filter that is asked about messages, if there is one.
    filter: Option<Filter>,
    checks: Checks,
}

/// The parts of a core that SMTP sessions use.
pub(crate) struct Context<'c> {
    pub(crate) turn: Turn,
    pub(crate) connections: &'c mut Connections,
    pub(crate) store: &'c mut Archive,
    pub(crate) directory: &'c Directory,
    pub(crate) logins: &'c mut Logins,
    pub(crate) signer: &'c mut Signer,
    pub(crate) names: &'c mut Names,
    pub(crate) compute: &'c mut Compute,
    pub(crate) console: &'c mut ConsoleLines,
}

impl Context<'_> {
    /// Whether the rules for strangers apply to the client.
    fn is_judged(&self, caller: Caller) -> bool {
        is_judged(caller, self.connections.net(), self.logins.access())
    }

    /// The account that mail for `path` is delivered to.
    fn recipient(&self, path: &ForwardPath<'_>) -> Result<AccountId, RecipientRefusal> {
        self.directory.recipient(self.store, |address| self.connections.net().has_address(address), path)
    }

    /// What logs clients in, and the parts that it uses.
    fn logins(&mut self) -> (&mut Logins, logins::Context<'_>) {
        let Context { turn, connections, store, directory, compute, logins, .. } = self;
        (logins, logins::Context { turn: *turn, connections, store, directory, compute })
    }
}

/// A client's connection, with what its session acts on.
pub(crate) struct SmtpCall<'c> {
    pub(crate) caller: Caller,
    pub(crate) inbound: &'c mut Inbound,
    pub(crate) cx: Context<'c>,
}

/// How much of what SMTP sessions share is in use.
pub(crate) struct InboundInUse {
    pub(crate) transactions_left: usize,
    pub(crate) searches: usize,
    pub(crate) checks: usize,
    pub(crate) kept_for_proofs: usize,
    pub(crate) inquiries: usize,
    pub(crate) kept_for_filter: usize,
}

impl Inbound {
    /// `greylist_key`: the same on all cores, so that each knows what the others learn. The other keys are random.
    pub(crate) fn new(configuration: &Configuration, sizes: &Sizes, seed: InboundSeed, wall: UnixTime) -> Inbound {
        let InboundSeed { cores, greylist_key, identifiers, strangers_key, proofs_key } = seed;
        let abuse = &configuration.abuse;
        let trusted = abuse.trusted_arc.iter().filter_map(|domain| Name::parse(domain.as_str()).ok());
        Inbound {
            hostname: configuration.hostname.as_str().to_string(),
            settings: Settings::default(),
            date_now: DateTimeNow::new(wall),
            identifiers,
            transactions: (0..sizes.transactions).map(|_| Box::new(Transaction::with_room())).collect(),
            trace: Box::new([0; TRACE_BYTES_MAX]),
            strangers: Strangers::new(abuse.limits, strangers_key),
            greeting_delay: Some(abuse.greeting_delay).filter(|delay| delay.0 > 0),
            greylist: abuse.greylist.map(|delay| Greylist::new(delay, greylist_key, cores)),
            lists: Lists::new(abuse),
            filter: configuration.filter.as_ref().map(|named| Filter::new(named, configuration, sizes.filter_bytes())),
            checks: Checks::new(trusted.collect(), proofs_key),
        }
    }

    /// Whether all records of transactions are in use.
    pub(crate) fn is_without_transactions(&self) -> bool {
        self.transactions.is_empty()
    }

    /// What clients have done lately, whatever they speak.
    #[inline]
    pub(crate) fn strangers(&mut self) -> &mut Strangers {
        &mut self.strangers
    }

    /// What this core and others tell each other about senders that come again.
    #[inline]
    pub(crate) fn greylist(&mut self) -> Option<&mut Greylist> {
        self.greylist.as_mut()
    }

    /// Whether other cores are to be told about such senders.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.greylist.as_ref().is_some_and(Greylist::has_news)
    }

    /// How long the client is listened to before it is greeted, if it is.
    pub(crate) fn greeting_delay(&self, caller: Caller, net: &Net, access: &Access) -> Option<Micros> {
        self.greeting_delay.filter(|_| is_judged(caller, net, access))
    }

    /// What is in use now.
    pub(crate) fn in_use(&self) -> InboundInUse {
        let filter = self.filter.as_ref();
        InboundInUse {
            transactions_left: self.transactions.len(),
            searches: self.lists.searches,
            checks: self.checks.under_way,
            kept_for_proofs: self.checks.kept.held(),
            inquiries: filter.map_or(0, Filter::under_way),
            kept_for_filter: filter.map_or(0, |filter| filter.kept),
        }
    }
}

/// What is drawn or given for the SMTP sessions of a core at its start.
pub(crate) struct InboundSeed {
    pub(crate) cores: u8,
    /// The same on all cores, so that each knows what the others learn.
    pub(crate) greylist_key: [u8; 16],
    pub(crate) identifiers: Identifiers,
    /// Random.
    pub(crate) strangers_key: [u8; 16],
    /// Random.
    pub(crate) proofs_key: [u8; 16],
}

/// One SMTP connection.
pub(crate) struct SmtpConversation {
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

impl SmtpConversation {
    /// A client has connected: greets it.
    pub(crate) fn begin(call: &mut SmtpCall<'_>) -> SmtpConversation {
        SmtpConversation::with_session(|host| smtp::Session::connected(host), call)
    }

    /// A client has asked for TLS, and speaks it now.
    pub(crate) fn secured(call: &mut SmtpCall<'_>) -> SmtpConversation {
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
    pub(crate) fn holds_and_waits(&self, store: &Archive) -> bool {
        self.spread_letter().is_some_and(|letter| match self.session.waits_for() {
            smtp::WaitsFor::MessageRoom => true,
            smtp::WaitsFor::Stored => self.ends_without_room() || store.is_preparing(letter),
            _ => false,
        })
    }

    /// Has its complete letter refused, if that may be; false: it may not.
    pub(crate) fn give_up_letter(&self, store: &mut Archive) -> bool {
        self.spread_letter().is_some_and(|letter| store.refuse_preparing(letter, Refusal::Busy))
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
        call: &mut SmtpCall<'_>,
        act: impl FnOnce(&mut smtp::Session, &mut SmtpHost<'_, '_>) -> R,
    ) -> R {
        let SmtpConversation { session, transaction, client } = self;
        act(session, &mut SmtpHost::of(call, transaction, client))
    }

    pub(crate) fn is_logged_in(&self) -> bool {
        matches!(self.client.as_deref(), Some(Client::User(_)))
    }

    /// The session's turn has come: its login is to be decided, or a signature under its message.
    pub(crate) fn resumed(&mut self, call: &mut SmtpCall<'_>) {
        self.with(call, |session, host| {
            login::decide(session, host);
            ending::resumed(session, host);
        });
    }

    pub(crate) fn is_of(&self, account: AccountId) -> bool {
        matches!(self.client.as_deref(), Some(Client::User(user)) if *user == account)
    }

    /// The password of an account has changed. An attempt to log in is decided by what the password
    /// is then.
    pub(crate) fn password_changed(&mut self, account: AccountId, call: &mut SmtpCall<'_>) {
        if self.is_of(account) {
            self.with(call, |session, host| session.password_changed(host));
        }
    }

    /// The machine is about to go away.
    pub(crate) fn stopping(&mut self, call: &mut SmtpCall<'_>) {
        self.with(call, |session, host| {
            session.stopping(host);
            ending::given_up(session, host);
        });
    }

    /// This came of a question about who sends, or about a message.
    pub(crate) fn name_known(&mut self, number: QuestionNumber, known: Known, call: &mut SmtpCall<'_>) {
        self.with(call, |session, host| {
            let others = ending::name_known(number, known, session, host);
            if let Some(known) = others.and_then(|known| lists::name_known(number, known, session, host)) {
                sender::name_known(number, known, session, host);
            }
        });
    }

    /// The owner of an account has replied.
    pub(crate) fn replied(&mut self, reply: &mut Option<Reply>, call: &mut SmtpCall<'_>) {
        self.with(call, |session, host| match reply.take() {
            Some(Reply::Usage(used)) => quota::learn(used, session, host),
            Some(Reply::MaySend(permitted)) => allowance::learn(permitted, session, host),
            other => *reply = other,
        });
    }

    /// Something has happened to the connection by which the filter is asked about the message.
    pub(crate) fn filter_stirred(&mut self, stir: Stir, call: &mut SmtpCall<'_>) {
        self.with(call, |session, host| ending::filter_stirred(stir, session, host));
    }

    /// A deadline has passed: the session's, or that of an answer held back, or of what is found out about who sends or about a message.
    pub(crate) fn deadline_expired(&mut self, call: &mut SmtpCall<'_>) {
        self.with(call, |session, host| {
            let is_other = login::answer_held_back(session, host)
                || lists::given_up(session, host)
                || sender::given_up(session, host)
                || ending::given_up(session, host);
            if !is_other {
                session.deadline_expired(host);
            }
        });
    }

    /// The store has done what the session waited for.
    pub(crate) fn woken(&mut self, entry: Entry, outcome: Outcome, call: &mut SmtpCall<'_>) {
        let Some(point) = Point::of(entry) else { return call.cx.store.forget(outcome) };
        self.with(call, |session, host| match (point, outcome) {
            (Point::Room, _) => {
                session.message_room(host);
                ending::room_found(session, host);
            }
            (_, Outcome::Refused(refusal)) => session.message_stored(Err(message_refusal(refusal)), host),
            (_, Outcome::Delivered) => {
                let identifier = host.identifier();
                session.message_stored(Ok(identifier.as_bytes()), host);
            }
            // Nothing else acknowledges a letter.
            _ => {}
        });
    }
}

/// What an SMTP session acts by.
pub(crate) struct SmtpHost<'a, 'c> {
    inbound: &'a mut Inbound,
    cx: &'a mut Context<'c>,
    caller: Caller,
    transaction: &'a mut Option<Box<Transaction>>,
    client: &'a mut Option<Box<Client>>,
}

impl<'a, 'c> SmtpHost<'a, 'c> {
    #[inline]
    fn of(
        call: &'a mut SmtpCall<'c>,
        transaction: &'a mut Option<Box<Transaction>>,
        client: &'a mut Option<Box<Client>>,
    ) -> SmtpHost<'a, 'c> {
        let SmtpCall { caller, inbound, cx } = call;
        SmtpHost { inbound, cx, caller: *caller, transaction, client }
    }

    /// The name of the message that is on its way into the store.
    fn identifier(&self) -> Identifier {
        let message = self.transaction.as_ref().and_then(|transaction| transaction.message.as_ref());
        message.map(|message| message.identifier).unwrap_or_default()
    }

    fn message(&mut self) -> Result<(&mut Incoming, &mut Inbound, &mut Context<'c>), MessageRefusal> {
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
