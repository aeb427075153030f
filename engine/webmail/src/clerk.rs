//! The jobs of request handlers. Each is a zero-wait thread over the store of the core that owns
//! the account.
//!
//! A handler runs one [`Job`] for a client with a session. The job asks the store for a few things
//! at a time, is woken as they arrive, and ends with one [`Reply`]. It never blocks: between two
//! steps it is a record in a table.
//!
//! Invariants:
//! - A job knows one account and reads or changes nothing of another.
//! - A job counts its requests to the store and ends only when all are answered. So every buffer
//!   returns to the store.
//! - A message that was sent has no handler: submission brings it to its recipients.
//! - A job has at most [`READS_MAX`] reads in progress. So one open mailbox leaves disk time to
//!   others.
//! - The memory of a job is bounded: [`ROWS_MAX`] summaries, [`TEXT_BYTES_MAX`] of text, and little
//!   more than [`crate::PIECE_BYTES`] of a document. `showing` and `conversing` have limits of
//!   their own.

mod answering;
mod arriving;
mod attached;
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
mod recipients;
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

use store::{MailboxId, NoteChange, Outcome, Refusal};

use crate::context::JobContext;
use crate::form::Reader;
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

/// A job: a variant for each kind of page, with its progress.
#[derive(Debug)]
pub(crate) enum Job {
    /// A page that is notified of changes. It has no handler of its own: see `listeners`.
    Listen,
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

impl Job {
    /// Messages of a mailbox, the newest first.
    pub(crate) fn list(mailbox: MailboxId, stretch: Stretch) -> Job {
        Job::List(Listing::new(mailbox, stretch))
    }

    /// Messages that match these words. `only`: the one mailbox to search. `before`: the search
    /// goes on behind this message.
    pub(crate) fn search(words: String, only: Option<MailboxId>, before: Option<Key>) -> Job {
        Job::Search(Box::new(Searching::new(words, only, before)))
    }

    /// A message with its conversation. `loaded`: the message that loads remote content.
    pub(crate) fn read(key: Key, loaded: Option<Key>) -> Job {
        Job::Read(Box::new(Conversing::new(key, loaded)))
    }

    /// A message, or a part of it, unchanged.
    pub(crate) fn send(key: Key, document: Document) -> Job {
        Job::Send(Box::new(Reading::new(key, document)))
    }

    /// The HTML part of that index, as a document of its own.
    pub(crate) fn show(key: Key, part: u16, elsewhere: Elsewhere, extent: Extent) -> Job {
        Job::Show(Box::new(Showing::new(key, part, elsewhere, extent)))
    }

    /// A mailbox as one file.
    pub(crate) fn export(mailbox: MailboxId) -> Job {
        Job::Export(Box::new(Exporting::new(mailbox)))
    }

    /// A change of messages. `then`: the path under `/mail/` that the browser is redirected to.
    pub(crate) fn change(change: Change, whom: Whom, then: String) -> Job {
        Job::Change(Changes::new(change, whom, then))
    }

    /// The list of mailboxes, or a change of one.
    pub(crate) fn mailboxes(change: Option<BoxChange>) -> Job {
        Job::Mailboxes(Boxes::new(change))
    }

    /// The queue of all cores, for an administrator. `then`: as for [`Job::change`].
    pub(crate) fn queue(asked: QueueAsked, then: String) -> Job {
        Job::Queue(Queueing::new(asked, then))
    }

    /// Turns the loading of a sender's remote content on or off. `then`: as for [`Job::change`].
    pub(crate) fn trust(trust: Trust, then: String) -> Job {
        Job::Trust(Trusting::new(trust, then))
    }

    /// A message for printing.
    pub(crate) fn print(key: Key) -> Job {
        Job::Print(Box::new(Opening::new(key)))
    }

    /// The page for a new message.
    pub(crate) fn compose(start: Start) -> Job {
        Job::Compose(Box::new(Composing::new(start)))
    }

    /// A held message becomes a draft again.
    pub(crate) fn take_back(key: Key) -> Job {
        Job::TakeBack(TakingBack::new(key))
    }

    /// Changes the password, and the account's persisted sessions with it.
    pub(crate) fn set_password(secrets: Secrets, notes: Vec<NoteChange>) -> Job {
        Job::SetPassword(Box::new(Changing::new(secrets, notes)))
    }

    /// Changes notes of the account.
    pub(crate) fn note(changes: Vec<NoteChange>, noted: Noted) -> Job {
        Job::Note(Noting::new(changes, noted))
    }

    /// A message that a client writes. Its form comes in pieces. `token`: the token of the
    /// session's forms; absent for a client without a session.
    pub(crate) fn write(token: Option<FormToken>, form: Reader) -> Job {
        Job::Write(Box::new(Writing::new(token, form)))
    }

    /// A piece of the form has come. All earlier pieces were processed.
    pub(crate) fn piece_arrived(&mut self, piece: &Piece) {
        if let Job::Write(writing) = self {
            writing.piece_arrived(piece);
        }
    }

    /// The session of the form has ended.
    pub(crate) fn session_ended(&mut self) {
        if let Job::Write(writing) = self {
            writing.session_ended();
        }
    }

    /// Whether the job changes a password.
    pub(crate) fn changes_password(&self) -> bool {
        matches!(self, Job::SetPassword(_))
    }

    /// Goes on as far as it can without waiting.
    pub(crate) fn go_on(
        &mut self,
        visitor: &Visitor,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> Progress {
        let account = visitor.account;
        let progress = match self {
            Job::List(listing) => listing.ask(account, under_way, cx),
            Job::Search(searching) => searching.ask(account, under_way, cx),
            Job::Mailboxes(boxes) => boxes.ask(account, under_way, cx),
            Job::Queue(queueing) => queueing.ask(under_way, cx),
            Job::Trust(trusting) => trusting.ask(account, under_way, cx),
            Job::Read(conversing) => conversing.ask(account, under_way, cx),
            Job::Print(opening) => opening.ask(account, under_way, cx),
            Job::Send(reading) => reading.ask(account, under_way, cx),
            Job::Show(showing) => showing.ask(account, under_way, cx),
            Job::Export(exporting) => exporting.ask(account, under_way, cx),
            Job::Change(changes) => changes.ask(account, under_way, cx),
            Job::Compose(composing) => composing.ask(account, under_way, cx),
            Job::Write(writing) => writing.ask(visitor, under_way, cx),
            Job::TakeBack(taking) => taking.ask(account, under_way, cx),
            Job::Settings(_) | Job::Listen => Progress::Waiting,
            Job::Note(noting) => noting.ask(account, under_way, cx),
            Job::SetPassword(changing) => changing.ask(account, under_way, cx),
        };
        match (progress, *under_way) {
            (_, 1..) => Progress::Waiting,
            (Progress::Waiting, 0) => self.finish(visitor, cx),
            (progress, 0) => progress,
        }
    }

    /// The store has answered a request of the job. Then the job goes on.
    pub(crate) fn woken(
        &mut self,
        outcome: Outcome,
        visitor: &Visitor,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> Progress {
        *under_way -= 1;
        match outcome {
            Outcome::Body(body) => {
                match self {
                    Job::List(listing) => listing.body_arrived(&body),
                    Job::Search(searching) => searching.body_arrived(&body),
                    Job::Read(conversing) => conversing.body_arrived(&body),
                    Job::Print(opening) => opening.body_arrived(&body),
                    Job::Send(reading) => reading.body_arrived(&body),
                    Job::Show(showing) => showing.body_arrived(&body),
                    Job::Export(exporting) => exporting.body_arrived(&body),
                    Job::Compose(composing) => composing.body_arrived(&body),
                    Job::Write(writing) => writing.body_arrived(&body),
                    Job::Change(_)
                    | Job::Mailboxes(_)
                    | Job::Queue(_)
                    | Job::Trust(_)
                    | Job::TakeBack(_)
                    | Job::Settings(_)
                    | Job::Note(_)
                    | Job::SetPassword(_)
                    | Job::Listen => unreachable!("it reads no message"),
                }
                cx.store_mut().give_back(body);
            }
            Outcome::Refused(refusal) => self.refused(refusal),
            Outcome::Filed(filed) => match self {
                Job::Change(changes) => changes.filed(filed),
                // It moves the messages of a mailbox until none is left.
                Job::Mailboxes(_) => {}
                _ => unreachable!("it moves no message"),
            },
            Outcome::Delivered => {
                let Job::Write(writing) = self else { unreachable!("it delivers no message") };
                writing.delivered();
            }
            Outcome::Changed | Outcome::MailboxCreated(_) if let Job::Mailboxes(boxes) = self => {
                boxes.changed()
            }
            Outcome::Changed
            | Outcome::Room
            | Outcome::AccountCreated(_)
            | Outcome::MailboxCreated(_) => {}
        }
        self.go_on(visitor, under_way, cx)
    }

    fn refused(&mut self, refusal: Refusal) {
        match self {
            Job::List(_) | Job::Search(_) | Job::Settings(_) | Job::Queue(_) | Job::Listen => {}
            Job::TakeBack(taking) => taking.refused(refusal),
            Job::Note(noting) => noting.refused(refusal),
            Job::SetPassword(changing) => changing.refused(refusal),
            Job::Read(conversing) => conversing.refused(refusal),
            Job::Print(opening) => opening.refused(refusal),
            Job::Mailboxes(boxes) => boxes.refused(refusal),
            Job::Trust(trusting) => trusting.refused(refusal),
            Job::Send(reading) => reading.refused(refusal),
            Job::Show(showing) => showing.refused(refusal),
            Job::Export(exporting) => exporting.refused(refusal),
            Job::Change(changes) => changes.refused(refusal),
            Job::Compose(composing) => composing.refused(refusal),
            Job::Write(writing) => writing.refused(refusal),
        }
    }

    fn finish(&mut self, visitor: &Visitor, cx: &mut JobContext<'_, '_>) -> Progress {
        match self {
            Job::List(listing) => Progress::Reply(listing.page(visitor, cx)),
            Job::Search(searching) => Progress::Reply(searching.page(visitor, cx)),
            Job::Read(conversing) => Progress::Reply(conversing.page(visitor, cx)),
            Job::Print(opening) => Progress::Reply(opening.on_paper(visitor, cx)),
            Job::Mailboxes(boxes) => boxes.done(visitor, cx),
            Job::Queue(queueing) => queueing.done(visitor, cx),
            Job::Trust(trusting) => trusting.done(),
            Job::Send(reading) => reading.next(visitor, cx),
            Job::Show(showing) => showing.next(visitor, cx),
            Job::Export(exporting) => exporting.next(visitor.account, cx),
            Job::Compose(composing) => composing.done(visitor, cx),
            Job::Write(writing) => writing.done(visitor, cx),
            Job::TakeBack(taking) => taking.done(visitor.account, cx),
            Job::Settings(overview) => Progress::Reply(overview.page(visitor, cx.store())),
            Job::Note(noting) => noting.done(cx.host()),
            Job::SetPassword(changing) => changing.done(),
            Job::Change(changes) => changes.done(visitor.account, cx.store()),
            Job::Listen => unreachable!("listeners have no request handler"),
        }
    }
}
