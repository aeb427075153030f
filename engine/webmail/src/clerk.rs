//! Clerks: who does what a page is asked for, each a zero-wait thread over the store of the core that owns the account.
//!
//! A clerk is given one [`Task`] of somebody who is logged in. He asks the store for what he needs, a few things at a time, is woken as they come, and in the end has
//! one [`Reply`]. He never waits: between two of his steps he is a record in a table.
//!
//! Invariants:
//! - A clerk knows one account, and asks for nothing of another.
//! - What he asks the store for he counts, and he is done only when all of it has come back: so every buffer goes home.
//! - A letter that leaves has no clerk: a [`Carrier`] brings it to whom it is for, as much a zero-wait thread as he is.
//! - He asks for at most [`READS_MAX`] parts of messages at a time. Who opens a mailbox leaves the disk to others as well.
//! - What he keeps of messages is bounded: [`ROWS_MAX`] summaries, [`TEXT_BYTES_MAX`] of text, little more than [`crate::PIECE_BYTES`] of a document, or of the beginning of one what
//!   `showing` says; of a conversation what `conversing` says.

mod arriving;
mod attaching;
mod boxes;
mod carrying;
mod changes;
mod composing;
mod conversing;
mod copies;
mod documents;
mod draft;
mod exporting;
mod holding;
mod letters;
mod lists;
mod password;
pub(crate) mod pictures;
mod pieces;
mod queueing;
mod rows;
mod searches;
mod settings;
mod showing;
pub(crate) mod trusting;
mod writing;
mod written;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use http::{End, Reply};
use machine::UnixTime;
use store::{AccountId, Closing, Guid, MailboxId, NoteChange, Origin, Outcome, Recipient, Refusal, Store, Uid};
use tasks::Continuation;

use crate::answer;
use crate::form::Reader;
use crate::queue::{QueueAsked, QueueTold};
use crate::sessions::{Digest, Said, Sessions};
use crate::stream::Stream;
use crate::surroundings::Visitor;
use crate::ticket::FormToken;
use crate::visit::Secrets;
use crate::{Key, Start, Stretch};
use boxes::Boxes;
use changes::Changes;
use composing::Composing;
use conversing::Conversing;
use documents::Reading;
use exporting::Exporting;
use holding::TakingBack;
use letters::Opening;
use lists::Listing;
use password::Changing;
use queueing::Queueing;
use searches::Searching;
use settings::Noting;
use showing::Showing;
use trusting::Trusting;
use writing::Writing;

pub use arriving::Piece;
pub use boxes::BoxChange;
pub use carrying::{Carried, Carrier, Way};
pub(crate) use changes::together;
pub use changes::{Change, Messages, Whom};
pub use conversing::SHOWN_MAX;
pub use documents::Document;
pub use draft::Draft;
pub use letters::TEXT_BYTES_MAX;
pub use lists::{ROWS_MAX, WALKED_MAX};
pub use searches::LOOKED_AT_MAX;
pub use settings::{Noted, Overview};
pub use showing::Extent;
pub use trusting::Trust;
pub use written::WrittenRows;

pub(crate) use settings::session_key;

/// Parts of messages that a clerk asks for at a time.
pub const READS_MAX: usize = 8;

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Task {
    /// Messages of a mailbox are to be shown, the newest first.
    List(MailboxId, Stretch),
    /// Messages are to be found: by these words, in this mailbox alone, behind this message.
    Search(String, Option<MailboxId>, Option<Key>),
    /// A message is to be read, with its conversation. Which message is to load what it wants from elsewhere.
    Read(Key, Option<Key>),
    /// A message, or a part of it, is to be sent as what it is.
    Send(Key, Document),
    /// HTML of a message, the part of that index, is to be shown as a document of its own.
    Show(Key, u16, Elsewhere, Extent),
    /// A mailbox is to be sent as one file.
    Export(MailboxId),
    /// Something is to be done with messages. Where to go then: a path under `/mail/`.
    Change(Change, Whom, String),
    /// Mailboxes are to be shown, or one of them is to be changed.
    Mailboxes(Option<BoxChange>),
    /// The queue of all cores is to be looked at, or changed, by an administrator. Where to go then: a path under `/mail/`.
    Queue(QueueAsked, String),
    /// A sender's letters are to load what they want from elsewhere, or not any more. Where to go then: a path under `/mail/`.
    Trust(Trust, String),
    /// A message is to be put on paper.
    Print(Key),
    /// A letter is to be written: the page for it, with what it begins with.
    Compose(Start),
    /// A letter that is held is to be a draft again.
    TakeBack(Key),
    /// What somebody has chosen is to be shown.
    Settings(Overview),
    /// The password is to be another; sessions are to be noted so.
    SetPassword(Secrets, Vec<NoteChange>),
    /// Notes of the account are to be changed.
    Note(Vec<NoteChange>, Noted),
}

/// Whether what a message wants from elsewhere is loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Elsewhere {
    /// It is not: who sent the message would see that it is read.
    #[default]
    Kept,
    /// The reader has asked for it.
    Loaded,
}

/// Somebody at work.
#[derive(Debug)]
pub struct Clerk {
    visitor: Visitor,
    work: Work,
    /// What he has asked for and not got.
    under_way: usize,
}

#[derive(Debug)]
enum Work {
    List(Listing),
    Search(Box<Searching>),
    Read(Box<Conversing>),
    Send(Box<Reading>),
    Show(Box<Showing>),
    Export(Box<Exporting>),
    Change(Changes),
    Mailboxes(Boxes),
    Queue(Queueing),
    Trust(Trusting),
    Print(Box<Opening>),
    Compose(Box<Composing>),
    Write(Box<Writing>),
    TakeBack(TakingBack),
    Settings(Overview),
    Note(Noting),
    SetPassword(Box<Changing>),
}

/// What a clerk works with: the store of the core that owns the account, and the way of letters to everybody on this machine.
///
/// He has one letter on its way at a time.
pub trait Desk {
    /// The store.
    fn store(&self) -> &Store;

    /// The store, to be asked.
    fn store_mut(&mut self) -> &mut Store;

    /// Rows of lists that this core has written.
    fn rows(&mut self) -> &mut WrittenRows;

    /// What wakes the clerk.
    fn continuation(&self) -> Continuation;

    /// The time of day.
    fn now(&self) -> UnixTime;

    /// Random bytes that nobody can know before.
    fn random(&mut self) -> [u8; 16];

    /// The machine's name.
    fn host(&self) -> &str;

    /// Whose inbox what is sent to an address comes into. `None`: nobody's here.
    fn recipient(&self, address: &str) -> Option<AccountId>;

    /// Whether a letter can go to this address, which is nobody's here or of somebody whose mail is sent on.
    fn may_post(&self, address: &str) -> bool;

    /// How a letter of an account goes to these addresses, all of which [`Desk::may_post`] has allowed.
    fn posting(&self, account: AccountId, addresses: &[String]) -> Posting;

    /// Whether an account may send one more letter today, for these people elsewhere. If so, it counts.
    fn may_send(&mut self, account: AccountId, elsewhere: Vec<String>) -> Result<(), Excess>;

    /// Begins a letter. Errors: as [`Store::begin`].
    fn begin_letter(&mut self, recipients: &[Recipient]) -> Result<(), Refusal>;

    /// What is appended from now on is to be signed by the domain in whose name it is.
    fn begin_signing(&mut self);

    /// Appends to it, as [`Store::append`] does. Errors: so, too; and [`Refusal::TooMany`] where too much is kept of letters that are being signed.
    fn append(&mut self, octets: &[u8]) -> Result<usize, Refusal>;

    /// What signs the letter, all of which was appended: its head, to be appended last. `None`: it is being computed, and the clerk is woken when it is there.
    fn signatures(&mut self) -> Option<Vec<u8>>;

    /// What its first recipient's message will be called, where that is one of this core's.
    fn guid(&self) -> Option<Guid>;

    /// Has it delivered. The clerk is woken when it is. Errors: as [`Store::commit`]; there is no letter then.
    fn commit(&mut self, closing: Closing) -> Result<(), Refusal>;

    /// Gives it up.
    fn abort(&mut self);

    /// How long a letter may be, in octets.
    fn letter_octets_max(&self) -> u64;

    /// As [`Store::forget_arrival`], whoever's account it is.
    fn forget_arrival(&mut self, account: AccountId, origin: Origin) -> Result<(), Refusal>;

    /// Whether one more letter may be held.
    fn may_hold(&self) -> bool;

    /// This draft of an account of this core is held: it leaves when that time has come, if nobody takes it back. `answers`: the message of the account that it answers.
    fn hold(&mut self, account: AccountId, uid: Uid, answers: Option<(MailboxId, Uid)>, until: UnixTime);

    /// This draft does not leave. Returns what it answers, if that is known; `None`: it is leaving, or was never held.
    fn take_back(&mut self, account: AccountId, uid: Uid) -> Option<Option<(MailboxId, Uid)>>;

    /// Tells all cores the password that the account has now. Whether they are to be waited for: then the clerk is woken when all know it.
    fn tell_password(&mut self, account: AccountId) -> bool;

    /// Asks this of all cores that own something of it. The clerk is woken when all have told.
    fn ask_queue(&mut self, asked: &QueueAsked);

    /// What they have told.
    fn queue_told(&mut self) -> Vec<QueueTold>;
}

/// Why an account may not send a letter today.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Excess {
    /// It has sent so many.
    Letters(u32),
    /// It may write to so many people elsewhere to whom it has not before, and these would be more.
    People(u32),
    /// Its outbox holds as much as it may.
    Waiting,
}

/// How a letter goes to people elsewhere: from its writer's outbox.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Posting {
    /// What stands above it there.
    pub head: Vec<u8>,
    /// The entries of the outbox that it is to be in.
    pub entries: Vec<Recipient>,
}

/// What comes next.
#[derive(Debug)]
pub enum Next {
    /// The clerk waits for what he has asked for.
    Woken,
    /// The store has too much to do: he tries again in the next turn.
    Turn,
    /// He has taken what came of a form, and more of it may come.
    Taken,
    /// He is done.
    Done(Done),
    /// The reply begins. He goes on when more of it is wanted, or is forgotten when it is not wanted any more.
    Begun(Stream),
    /// There is so much more of it.
    Said(Vec<u8>),
    /// There is no more of it.
    Over(End),
}

/// A task that is done.
#[derive(Debug)]
pub enum Done {
    /// This is answered to who asked.
    Reply(Reply),
    /// Who asked is sent on to that path, where the page tells him this, and what would take it back.
    SentOn(String, Said),
}

/// What came of a step.
enum Step {
    /// Something was asked for, or there was nothing to ask for.
    Asked,
    /// The store has no time.
    Busy,
    /// All was taken that came of a form.
    Taken,
}

impl Clerk {
    /// A clerk who begins.
    pub fn new(visitor: Visitor, task: Task) -> Clerk {
        let work = match task {
            Task::List(mailbox, stretch) => Work::List(Listing::new(mailbox, stretch)),
            Task::Search(words, only, before) => Work::Search(Box::new(Searching::new(words, only, before))),
            Task::Read(key, loaded) => Work::Read(Box::new(Conversing::new(key, loaded))),
            Task::Send(place, document) => Work::Send(Box::new(Reading::new(place, document))),
            Task::Show(key, part, elsewhere, extent) => {
                Work::Show(Box::new(Showing::new(key, part, elsewhere, extent)))
            }
            Task::Export(mailbox) => Work::Export(Box::new(Exporting::new(mailbox))),
            Task::Change(change, whom, then) => Work::Change(Changes::new(change, whom, then)),
            Task::Mailboxes(change) => Work::Mailboxes(Boxes::new(change)),
            Task::Queue(asked, then) => Work::Queue(Queueing::new(asked, then)),
            Task::Trust(trust, then) => Work::Trust(Trusting::new(trust, then)),
            Task::Print(key) => Work::Print(Box::new(Opening::new(key))),
            Task::Compose(start) => Work::Compose(Box::new(Composing::new(start))),
            Task::TakeBack(key) => Work::TakeBack(TakingBack::new(key)),
            Task::Settings(overview) => Work::Settings(overview),
            Task::SetPassword(secrets, notes) => Work::SetPassword(Box::new(Changing::new(secrets, notes))),
            Task::Note(changes, noted) => Work::Note(Noting::new(changes, noted)),
        };
        Clerk { visitor, work, under_way: 0 }
    }

    /// One who takes a letter whose form comes in pieces, and does with it what that says. `token`: what forms of the visitor's session carry; none for a stranger.
    pub(crate) fn of_letter(visitor: Visitor, token: Option<FormToken>, form: Reader) -> Clerk {
        Clerk { visitor, work: Work::Write(Box::new(Writing::new(token, form))), under_way: 0 }
    }

    /// A piece of the form has come, and he has taken those before it.
    pub fn piece_arrived(&mut self, piece: &Piece, desk: &mut impl Desk) -> Next {
        if let Work::Write(writing) = &mut self.work {
            writing.piece_arrived(piece);
        }
        self.go_on(desk)
    }

    /// The session is over by which a form comes.
    pub fn session_ended(&mut self) {
        if let Work::Write(writing) = &mut self.work {
            writing.session_ended();
        }
    }

    /// Goes on as far as he can without waiting.
    pub fn go_on(&mut self, desk: &mut impl Desk) -> Next {
        let account = self.visitor.account;
        let step = match &mut self.work {
            Work::List(listing) => listing.ask(account, &mut self.under_way, desk),
            Work::Search(searching) => searching.ask(account, &mut self.under_way, desk),
            Work::Mailboxes(boxes) => boxes.ask(account, &mut self.under_way, desk),
            Work::Queue(queueing) => queueing.ask(&mut self.under_way, desk),
            Work::Trust(trusting) => trusting.ask(account, &mut self.under_way, desk),
            Work::Read(conversing) => conversing.ask(account, &mut self.under_way, desk),
            Work::Print(opening) => opening.ask(account, &mut self.under_way, desk),
            Work::Send(reading) => reading.ask(account, &mut self.under_way, desk),
            Work::Show(showing) => showing.ask(account, &mut self.under_way, desk),
            Work::Export(exporting) => exporting.ask(account, &mut self.under_way, desk),
            Work::Change(changes) => changes.ask(account, &mut self.under_way, desk),
            Work::Compose(composing) => composing.ask(account, &mut self.under_way, desk),
            Work::Write(writing) => writing.ask(&self.visitor, &mut self.under_way, desk),
            Work::TakeBack(taking) => taking.ask(account, &mut self.under_way, desk),
            Work::Settings(_) => Step::Asked,
            Work::Note(noting) => noting.ask(account, &mut self.under_way, desk),
            Work::SetPassword(changing) => changing.ask(account, &mut self.under_way, desk),
        };
        match (step, self.under_way) {
            (_, 1..) => Next::Woken,
            (Step::Busy, 0) => Next::Turn,
            (Step::Taken, 0) => Next::Taken,
            (Step::Asked, 0) => self.finish(desk),
        }
    }

    /// Something that he asked for has come. Then he goes on.
    pub fn woken(&mut self, outcome: Outcome, desk: &mut impl Desk) -> Next {
        self.under_way -= 1;
        match outcome {
            Outcome::Body(body) => {
                match &mut self.work {
                    Work::List(listing) => listing.body_arrived(&body),
                    Work::Search(searching) => searching.body_arrived(&body),
                    Work::Read(conversing) => conversing.body_arrived(&body),
                    Work::Print(opening) => opening.body_arrived(&body),
                    Work::Send(reading) => reading.body_arrived(&body),
                    Work::Show(showing) => showing.body_arrived(&body),
                    Work::Export(exporting) => exporting.body_arrived(&body),
                    Work::Compose(composing) => composing.body_arrived(&body),
                    Work::Write(writing) => writing.body_arrived(&body),
                    Work::Change(_)
                    | Work::Mailboxes(_)
                    | Work::Queue(_)
                    | Work::Trust(_)
                    | Work::TakeBack(_)
                    | Work::Settings(_)
                    | Work::Note(_)
                    | Work::SetPassword(_) => {}
                }
                desk.store_mut().give_back(body);
            }
            Outcome::Refused(refusal) => self.refused(refusal),
            Outcome::Filed(filed) => {
                if let Work::Change(changes) = &mut self.work {
                    changes.filed(filed);
                }
            }
            Outcome::Delivered => {
                if let Work::Write(writing) = &mut self.work {
                    writing.delivered();
                }
            }
            Outcome::Changed | Outcome::MailboxCreated(_) if let Work::Mailboxes(boxes) = &mut self.work => {
                boxes.changed()
            }
            Outcome::Changed | Outcome::Room | Outcome::AccountCreated(_) | Outcome::MailboxCreated(_) => {}
        }
        self.go_on(desk)
    }

    fn refused(&mut self, refusal: Refusal) {
        match &mut self.work {
            Work::List(_) | Work::Search(_) | Work::Settings(_) | Work::Queue(_) => {}
            Work::TakeBack(taking) => taking.refused(refusal),
            Work::Note(noting) => noting.refused(refusal),
            Work::SetPassword(changing) => changing.refused(refusal),
            Work::Read(conversing) => conversing.refused(refusal),
            Work::Print(opening) => opening.refused(refusal),
            Work::Mailboxes(boxes) => boxes.refused(refusal),
            Work::Trust(trusting) => trusting.refused(refusal),
            Work::Send(reading) => reading.refused(refusal),
            Work::Show(showing) => showing.refused(refusal),
            Work::Export(exporting) => exporting.refused(refusal),
            Work::Change(changes) => changes.refused(refusal),
            Work::Compose(composing) => composing.refused(refusal),
            Work::Write(writing) => writing.refused(refusal),
        }
    }

    fn finish(&mut self, desk: &mut impl Desk) -> Next {
        let visitor = &self.visitor;
        Next::Done(match &mut self.work {
            Work::List(listing) => Done::with(listing.page(visitor, desk)),
            Work::Search(searching) => Done::with(searching.page(visitor, desk)),
            Work::Read(conversing) => Done::with(conversing.page(visitor, desk)),
            Work::Print(opening) => Done::with(opening.on_paper(visitor, desk)),
            Work::Mailboxes(boxes) => boxes.done(visitor, desk),
            Work::Queue(queueing) => queueing.done(visitor, desk),
            Work::Trust(trusting) => trusting.done(),
            Work::Send(reading) => return reading.next(visitor, desk),
            Work::Show(showing) => return showing.next(visitor, desk),
            Work::Export(exporting) => return exporting.next(visitor.account, desk),
            Work::Compose(composing) => composing.done(visitor, desk),
            Work::Write(writing) => writing.done(visitor, desk),
            Work::TakeBack(taking) => taking.done(visitor.account, desk),
            Work::Settings(overview) => Done::with(overview.page(visitor, desk.store())),
            Work::Note(noting) => noting.done(desk.host()),
            Work::SetPassword(changing) => changing.done(),
            Work::Change(changes) => changes.done(visitor.account, desk.store()),
        })
    }

    /// Whose account he works on.
    pub fn account(&self) -> AccountId {
        self.visitor.account
    }

    /// Whether he changes its password.
    pub fn changes_password(&self) -> bool {
        matches!(self.work, Work::SetPassword(_))
    }

    /// By which session's request.
    pub fn session(&self) -> Digest {
        self.visitor.session
    }
}

impl Key {
    /// As the store speaks of it.
    fn in_store(self) -> (MailboxId, Uid) {
        (MailboxId(self.mailbox), Uid(self.uid))
    }
}

impl Done {
    pub(crate) fn with(reply: Reply) -> Done {
        Done::Reply(reply)
    }

    /// What is answered to who asked, by a request of this session.
    pub fn reply(self, session: &Digest, sessions: &mut Sessions) -> Reply {
        match self {
            Done::Reply(reply) => reply,
            Done::SentOn(then, said) => answer::elsewhere_told(&then, sessions.say(session, said)),
        }
    }
}

/// What a refusal of the store means for people.
pub(crate) fn why(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::DiskFull | Refusal::IndexFull => {
            "There is no space left on the disk. Nothing was changed: delete something, and try again."
        }
        Refusal::OverQuota => {
            "Your mailbox is full. Nothing was changed: delete something for good, also from Trash, and try again."
        }
        Refusal::LargerThanQuota => "It is larger than all that your mailbox may hold. Nothing was changed.",
        Refusal::ReadOnly => {
            "The server's disk has failed. You can read mail, but nothing can be changed until the disk works again. Try again in a few minutes."
        }
        Refusal::NoSuchMessage | Refusal::NoSuchMailbox | Refusal::NoSuchAccount => {
            "It is not there any more: another window or program has moved or removed it."
        }
        Refusal::Unreadable => "The server's disk failed to read this part of the message. Try again in a moment.",
        Refusal::Damaged => "The disk does not give it back as it was written: this part of it cannot be read.",
        _ => "The machine has too much to do just now. Nothing was changed: try again in a moment.",
    }
}
