//! The jobs of request handlers. Each is a zero-wait thread over the store of the core that owns
//! the account.
//!
//! A handler runs one [`Job`] for a client with a session. The job sends the store a few requests
//! at a time, is woken by their answers, and ends with one [`http::Reply`]. It never blocks:
//! between two steps it is a record in a table.
//!
//! Invariants:
//! - A job reads and changes the mail of one account only.
//! - A job counts its requests to the store, and ends only when all of them are answered. So the
//!   job returns every buffer to the store.
//! - After a message was sent, no handler works on it. The crate `submission` delivers it.
//! - A job has at most [`crate::READS_MAX`] reads in progress. So one reader leaves disk time to
//!   others.
//! - The memory of a job is bounded: [`ROWS_MAX`] summaries, [`TEXT_BYTES_MAX`] of text and as much
//!   HTML, and little more than [`crate::PIECE_BYTES`] of a document. The jobs `html_document` and
//!   `conversation` have other limits.

mod attachment_copy;
pub(crate) mod attachments;
mod changes;
mod compose;
mod conversation;
mod copies;
mod documents;
mod draft;
pub(crate) mod embedded_images;
mod export;
mod file_contents;
mod html_document;
mod invitation;
mod list;
mod mailboxes;
mod message_contents;
mod message_date;
mod notices;
mod open_message;
mod password;
mod people;
mod piece_reader;
mod queue;
mod recipients;
mod reply_references;
pub(crate) mod row_cache;
mod row_totals;
mod rows;
mod search;
mod secured;
mod settings;
mod tidying;
pub(crate) mod trusted_senders;
mod undo_send;
mod upload;
mod write;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use store::{MailboxId, NoteChange, Outcome, Refusal};

use crate::context::JobContext;
use crate::form::FormReader;
use crate::layout::AuthenticatedClient;
use crate::remote_content::RemoteContent;
use crate::step::JobProgress;
use crate::ticket::FormToken;
use crate::{ComposeStart, Destination, ListRange, MessageKey, SearchPlace};
use outbound::{QueueEntryId, QueueQuery};

use changes::ChangeJob;
use compose::ComposeJob;
use conversation::ConversationJob;
use documents::DocumentJob;
use export::ExportJob;
use html_document::HtmlJob;
use list::ListJob;
use mailboxes::MailboxJob;
use password::PasswordJob;
use queue::QueueJob;
use search::SearchJob;
use settings::NoteJob;
use trusted_senders::TrustJob;
use undo_send::UndoSendJob;
use write::WriteJob;

pub(crate) use changes::ranges_of;
pub(crate) use changes::{Change, Selection};
pub(crate) use conversation::ConversationView;
pub use conversation::SHOWN_MAX;
pub(crate) use documents::DocumentKind;
pub use draft::Draft;
pub(crate) use html_document::Extent;
pub use list::{ROWS_MAX, WALKED_MAX};
pub(crate) use mailboxes::MailboxChange;
pub use message_contents::TEXT_BYTES_MAX;
pub(crate) use password::ALREADY_CHANGED;
pub use password::Secrets;
pub use row_cache::RowCache;
pub use search::LOOKED_AT_MAX;
pub(crate) use settings::{Noted, SettingsJob};
pub(crate) use trusted_senders::TrustChange;
pub use upload::UploadPiece;

pub(crate) use settings::session_key;

/// A job: a variant for each kind of page, with its progress.
#[derive(Debug)]
pub(crate) enum Job {
    /// A page that is notified of changes. It has no handler: see `listeners`.
    Listen,
    List(ListJob),
    Search(Box<SearchJob>),
    Read(Box<ConversationJob>),
    Send(Box<DocumentJob>),
    Show(Box<HtmlJob>),
    Export(Box<ExportJob>),
    Change(ChangeJob),
    Mailboxes(MailboxJob),
    Queue(QueueJob),
    Trust(TrustJob),
    Compose(Box<ComposeJob>),
    Write(Box<WriteJob>),
    TakeBack(UndoSendJob),
    Settings(SettingsJob),
    Note(NoteJob),
    SetPassword(Box<PasswordJob>),
}

impl Job {
    /// Messages of a mailbox, the newest first.
    pub(crate) fn list(mailbox: MailboxId, range: ListRange) -> Job {
        Job::List(ListJob::new(mailbox, range))
    }

    /// Messages that match these words. `only`: the only mailbox to search. `before`: the search
    /// continues after this message.
    pub(crate) fn search(
        words: String,
        only: Option<MailboxId>,
        before: Option<SearchPlace>,
    ) -> Job {
        Job::Search(Box::new(SearchJob::new(words, only, before)))
    }

    /// A message with its conversation. `list`: the list from which it was opened. `loaded`: the
    /// message that loads remote content.
    pub(crate) fn read(
        key: MessageKey,
        list: Option<Destination>,
        loaded: Option<MessageKey>,
        view: ConversationView,
    ) -> Job {
        Job::Read(Box::new(ConversationJob::new(key, list, loaded, view)))
    }

    /// A message, or a part of it, unchanged.
    pub(crate) fn send(key: MessageKey, document: DocumentKind) -> Job {
        Job::Send(Box::new(DocumentJob::new(key, document)))
    }

    /// The HTML part with this index, as a separate document.
    pub(crate) fn show(
        key: MessageKey,
        part: u16,
        remote_content: RemoteContent,
        extent: Extent,
    ) -> Job {
        Job::Show(Box::new(HtmlJob::new(key, part, remote_content, extent)))
    }

    /// A mailbox as one file.
    pub(crate) fn export(mailbox: MailboxId) -> Job {
        Job::Export(Box::new(ExportJob::new(mailbox)))
    }

    /// A change of messages. `next_page`: the path to which the browser is redirected afterwards.
    pub(crate) fn change(change: Change, selection: Selection, next_page: String) -> Job {
        Job::Change(ChangeJob::new(change, selection, next_page))
    }

    /// The list of mailboxes, or a change of a mailbox.
    pub(crate) fn mailboxes(change: Option<MailboxChange>) -> Job {
        Job::Mailboxes(MailboxJob::new(change))
    }

    /// The queue of all cores, for an administrator. `next_page`: as for [`Job::change`].
    pub(crate) fn queue(asked: QueueQuery, next_page: String) -> Job {
        Job::Queue(QueueJob::new(asked, next_page))
    }

    /// Cancels the sending of a message of the user's own outbox. `next_page`: as for
    /// [`Job::change`].
    pub(crate) fn cancel(entry: QueueEntryId, next_page: String) -> Job {
        Job::Queue(QueueJob::cancel(entry, next_page))
    }

    /// Turns the loading of a sender's remote content on or off. `next_page`: as for
    /// [`Job::change`].
    pub(crate) fn trust(trust: TrustChange, next_page: String) -> Job {
        Job::Trust(TrustJob::new(trust, next_page))
    }

    /// The page for a new message.
    pub(crate) fn compose(start: ComposeStart) -> Job {
        Job::Compose(Box::new(ComposeJob::new(start)))
    }

    /// Makes a held message a draft again.
    pub(crate) fn take_back(key: MessageKey) -> Job {
        Job::TakeBack(UndoSendJob::new(key))
    }

    /// Changes the password, and with it the account's persisted sessions.
    pub(crate) fn set_password(secrets: Secrets, notes: Vec<NoteChange>) -> Job {
        Job::SetPassword(Box::new(PasswordJob::new(secrets, notes)))
    }

    /// Changes notes of the account.
    pub(crate) fn note(changes: Vec<NoteChange>, noted: Noted) -> Job {
        Job::Note(NoteJob::new(changes, noted))
    }

    /// Receives a message that a client has written, as a form in pieces. `token`: the token of the
    /// session's forms, or `None` for a client without a session.
    pub(crate) fn write(token: Option<FormToken>, form: FormReader) -> Job {
        Job::Write(Box::new(WriteJob::new(token, form)))
    }

    /// Takes the next piece of the form, after all earlier pieces were processed.
    pub(crate) fn piece_arrived(&mut self, piece: &UploadPiece) {
        if let Job::Write(writing) = self {
            writing.piece_arrived(piece);
        }
    }

    /// Records that the session of the form has ended.
    pub(crate) fn session_ended(&mut self) {
        if let Job::Write(writing) = self {
            writing.session_ended();
        }
    }

    /// Whether the job changes a password.
    pub(crate) fn changes_password(&self) -> bool {
        matches!(self, Job::SetPassword(_))
    }

    /// Continues the job until it must wait or is done.
    pub(crate) fn go_on(
        &mut self,
        client: &AuthenticatedClient,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        let account = client.account;
        let progress = match self {
            Job::List(listing) => listing.ask(account, under_way, cx),
            Job::Search(searching) => searching.ask(account, under_way, cx),
            Job::Mailboxes(boxes) => boxes.ask(account, under_way, cx),
            Job::Queue(queueing) => queueing.ask(under_way, cx),
            Job::Trust(trusting) => trusting.ask(account, under_way, cx),
            Job::Read(conversing) => conversing.ask(account, under_way, cx),
            Job::Send(reading) => reading.ask(account, under_way, cx),
            Job::Show(showing) => showing.ask(account, under_way, cx),
            Job::Export(exporting) => exporting.ask(account, under_way, cx),
            Job::Change(changes) => changes.ask(account, under_way, cx),
            Job::Compose(composing) => composing.ask(account, under_way, cx),
            Job::Write(writing) => writing.ask(client, under_way, cx),
            Job::TakeBack(taking) => taking.ask(account, under_way, cx),
            Job::Settings(_) | Job::Listen => JobProgress::Waiting,
            Job::Note(noting) => noting.ask(account, under_way, cx),
            Job::SetPassword(changing) => changing.ask(account, under_way, cx),
        };
        match (progress, *under_way) {
            (_, 1..) => JobProgress::Waiting,
            (JobProgress::Waiting, 0) => self.finish(client, cx),
            (progress, 0) => progress,
        }
    }

    /// Takes the store's answer to a request of the job, and continues the job.
    pub(crate) fn woken(
        &mut self,
        outcome: Outcome,
        client: &AuthenticatedClient,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        *under_way -= 1;
        match outcome {
            Outcome::Body(body) => {
                match self {
                    Job::List(listing) => listing.body_arrived(&body),
                    Job::Search(searching) => searching.body_arrived(&body),
                    Job::Read(conversing) => conversing.body_arrived(&body),
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
                    | Job::Listen => unreachable!("this job reads no message"),
                }
                cx.store_mut().give_back(body);
            }
            Outcome::Refused(refusal) => self.refused(refusal),
            Outcome::Filed(filed) => match self {
                Job::Change(changes) => changes.filed(filed),
                // The removal of a mailbox moves messages until the mailbox is empty.
                Job::Mailboxes(_) => {}
                _ => unreachable!("this job moves no message"),
            },
            Outcome::Delivered => {
                let Job::Write(writing) = self else {
                    unreachable!("this job delivers no message")
                };
                writing.delivered();
            }
            Outcome::Changed | Outcome::MailboxCreated(_) if let Job::Mailboxes(boxes) = self => {
                boxes.changed()
            }
            Outcome::Changed
            | Outcome::DeliveryReady
            | Outcome::AccountCreated(_)
            | Outcome::MailboxCreated(_) => {}
        }
        self.go_on(client, under_way, cx)
    }

    fn refused(&mut self, refusal: Refusal) {
        match self {
            Job::List(_) | Job::Search(_) | Job::Settings(_) | Job::Queue(_) | Job::Listen => {}
            Job::TakeBack(taking) => taking.refused(refusal),
            Job::Note(noting) => noting.refused(refusal),
            Job::SetPassword(changing) => changing.refused(refusal),
            Job::Read(conversing) => conversing.refused(refusal),
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

    fn finish(&mut self, client: &AuthenticatedClient, cx: &mut JobContext<'_, '_>) -> JobProgress {
        match self {
            Job::List(listing) => JobProgress::Reply(listing.page(client, cx)),
            Job::Search(searching) => JobProgress::Reply(searching.page(client, cx)),
            Job::Read(conversing) => JobProgress::Reply(conversing.page(client, cx)),
            Job::Mailboxes(boxes) => boxes.done(client, cx),
            Job::Queue(queueing) => queueing.done(client, cx),
            Job::Trust(trusting) => trusting.done(),
            Job::Send(reading) => reading.next(client, cx),
            Job::Show(showing) => showing.next(),
            Job::Export(exporting) => exporting.next(client.account, cx),
            Job::Compose(composing) => composing.done(client, cx),
            Job::Write(writing) => writing.done(client, cx),
            Job::TakeBack(taking) => taking.done(client.account, cx),
            Job::Settings(overview) => JobProgress::Reply(overview.page(client, cx)),
            Job::Note(noting) => noting.done(cx.host()),
            Job::SetPassword(changing) => changing.done(),
            Job::Change(changes) => changes.done(client.account, cx.store()),
            Job::Listen => unreachable!("listeners have no request handler"),
        }
    }
}
