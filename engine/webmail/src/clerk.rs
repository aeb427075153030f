//! Clerks: who does what a page is asked for, each a zero-wait thread over the store of the core that owns the account.
//!
//! A clerk is given one [`Task`] of somebody who is logged in. He asks the store for what he needs, a few things at a time, is woken as they come, and in the end has
//! one [`Reply`]. He never waits: between two of his steps he is a record in a table.
//!
//! Invariants:
//! - A clerk knows one account, and asks for nothing of another.
//! - What he asks the store for he counts, and he is done only when all of it has come back: so every buffer goes home.
//! - A message that leaves has no clerk: the server's submission brings it to its recipients.
//! - He asks for at most [`READS_MAX`] parts of messages at a time. Who opens a mailbox leaves the disk to others as well.
//! - What he keeps of messages is bounded: [`ROWS_MAX`] summaries, [`TEXT_BYTES_MAX`] of text, little more than [`crate::PIECE_BYTES`] of a document, or of the beginning of one what
//!   `showing` says; of a conversation what `conversing` says.

mod arriving;
mod attaching;
mod boxes;
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
mod together;
pub(crate) mod trusting;
mod writing;
pub(crate) mod written;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use store::{AccountId, MailboxId, NoteChange, Outcome, Refusal};

use crate::context::JobContext;
use crate::form::Reader;
use crate::sessions::Digest;
use crate::step::Progress;
use crate::surroundings::Visitor;
use crate::ticket::FormToken;
use crate::{Key, Start, Stretch};
use outbound::QueueAsked;

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
pub(crate) use boxes::BoxChange;
pub(crate) use changes::together;
pub(crate) use changes::{Change, Whom};
pub use conversing::SHOWN_MAX;
pub(crate) use documents::Document;
pub use draft::Draft;
pub use letters::TEXT_BYTES_MAX;
pub use lists::{ROWS_MAX, WALKED_MAX};
pub use password::Secrets;
pub use searches::LOOKED_AT_MAX;
pub(crate) use settings::{Noted, Overview};
pub(crate) use showing::{Elsewhere, Extent};
pub(crate) use trusting::Trust;
pub use written::WrittenRows;

pub(crate) use settings::session_key;

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Task {
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

/// Somebody at work.
#[derive(Debug)]
pub(crate) struct Clerk {
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

impl Clerk {
    /// A clerk who begins.
    pub(crate) fn new(visitor: Visitor, task: Task) -> Clerk {
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
    pub(crate) fn piece_arrived(&mut self, piece: &Piece, cx: &mut JobContext<'_, '_>) -> Progress {
        if let Work::Write(writing) = &mut self.work {
            writing.piece_arrived(piece);
        }
        self.go_on(cx)
    }

    /// The session is over by which a form comes.
    pub(crate) fn session_ended(&mut self) {
        if let Work::Write(writing) = &mut self.work {
            writing.session_ended();
        }
    }

    /// Goes on as far as he can without waiting.
    pub(crate) fn go_on(&mut self, cx: &mut JobContext<'_, '_>) -> Progress {
        let account = self.visitor.account;
        let progress = match &mut self.work {
            Work::List(listing) => listing.ask(account, &mut self.under_way, cx),
            Work::Search(searching) => searching.ask(account, &mut self.under_way, cx),
            Work::Mailboxes(boxes) => boxes.ask(account, &mut self.under_way, cx),
            Work::Queue(queueing) => queueing.ask(&mut self.under_way, cx),
            Work::Trust(trusting) => trusting.ask(account, &mut self.under_way, cx),
            Work::Read(conversing) => conversing.ask(account, &mut self.under_way, cx),
            Work::Print(opening) => opening.ask(account, &mut self.under_way, cx),
            Work::Send(reading) => reading.ask(account, &mut self.under_way, cx),
            Work::Show(showing) => showing.ask(account, &mut self.under_way, cx),
            Work::Export(exporting) => exporting.ask(account, &mut self.under_way, cx),
            Work::Change(changes) => changes.ask(account, &mut self.under_way, cx),
            Work::Compose(composing) => composing.ask(account, &mut self.under_way, cx),
            Work::Write(writing) => writing.ask(&self.visitor, &mut self.under_way, cx),
            Work::TakeBack(taking) => taking.ask(account, &mut self.under_way, cx),
            Work::Settings(_) => Progress::Waiting,
            Work::Note(noting) => noting.ask(account, &mut self.under_way, cx),
            Work::SetPassword(changing) => changing.ask(account, &mut self.under_way, cx),
        };
        match (progress, self.under_way) {
            (_, 1..) => Progress::Waiting,
            (Progress::Waiting, 0) => self.finish(cx),
            (progress, 0) => progress,
        }
    }

    /// Something that he asked for has come. Then he goes on.
    pub(crate) fn woken(&mut self, outcome: Outcome, cx: &mut JobContext<'_, '_>) -> Progress {
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
                cx.store_mut().give_back(body);
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
        self.go_on(cx)
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

    fn finish(&mut self, cx: &mut JobContext<'_, '_>) -> Progress {
        let visitor = &self.visitor;
        match &mut self.work {
            Work::List(listing) => Progress::Reply(listing.page(visitor, cx)),
            Work::Search(searching) => Progress::Reply(searching.page(visitor, cx)),
            Work::Read(conversing) => Progress::Reply(conversing.page(visitor, cx)),
            Work::Print(opening) => Progress::Reply(opening.on_paper(visitor, cx)),
            Work::Mailboxes(boxes) => boxes.done(visitor, cx),
            Work::Queue(queueing) => queueing.done(visitor, cx),
            Work::Trust(trusting) => trusting.done(),
            Work::Send(reading) => reading.next(visitor, cx),
            Work::Show(showing) => showing.next(visitor, cx),
            Work::Export(exporting) => exporting.next(visitor.account, cx),
            Work::Compose(composing) => composing.done(visitor, cx),
            Work::Write(writing) => writing.done(visitor, cx),
            Work::TakeBack(taking) => taking.done(visitor.account, cx),
            Work::Settings(overview) => Progress::Reply(overview.page(visitor, cx.store())),
            Work::Note(noting) => noting.done(cx.host()),
            Work::SetPassword(changing) => changing.done(),
            Work::Change(changes) => changes.done(visitor.account, cx.store()),
        }
    }

    /// Whose account he works on.
    pub(crate) fn account(&self) -> AccountId {
        self.visitor.account
    }

    /// Whether he changes its password.
    pub(crate) fn changes_password(&self) -> bool {
        matches!(self.work, Work::SetPassword(_))
    }

    /// By which session's request.
    pub(crate) fn session(&self) -> Digest {
        self.visitor.session
    }
}
