//! A message that a user writes. It is sent, saved as a draft, or discarded.
//!
//! A sent message is first held, as a flagged draft that the submission service delivers later. If
//! the user wants no hold and all recipients are local, one delivery stores all copies, including
//! the one in Sent, or stores none.
//!
//! Invariants:
//! - The text is never lost. After a refusal the page is shown again with all fields and the
//!   reason.
//! - Uploaded files are written to a draft while they arrive, and then copied ([`MessageUpload`]).
//! - A draft keeps the files that the page names. They are copied from the draft that it replaces
//!   ([`AttachmentCopy`]).
//! - A message is signed once, when it is written, by its author's domain. All copies have these
//!   signatures, even the copies of a held message.
//! - A message is held only if all its recipients are local accounts or possible remote addresses.
//!   Otherwise the message is refused before it is held.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use machine::UnixTime;
use message::compose::{Composer, Files, NewMessage, Unwritable};
use message::header::HeaderMailbox;
use store::{
    AccountId, Body, CHUNK_OCTETS, Closing, DRAFTS, Flags, Guid, HeadSize, INBOX, MailboxId,
    Recipient, Refusal,
};

use crate::context::JobContext;
use crate::flash::{FlashMessage, UndoAction};
use crate::form::FormReader;
use crate::layout::AuthenticatedClient;
use crate::preferences::Preferences;
use crate::step::{JobProgress, why};
use crate::ticket::FormToken;
use crate::{ComposeStart, ListRange, MessageKey, WebPage};

use super::attachment_copy::AttachmentCopy;
use super::draft::Draft;
use super::recipients::{mailboxes, recipients};
use super::reply_references::ReplyReferences;
use super::tidying::Tidying;
use super::upload::{MessageUpload, UploadPiece};

/// The action on the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DraftAction {
    /// The message is sent.
    Send,
    /// The message is saved as a draft.
    Save,
    /// The message is discarded.
    Discard,
}

/// A message that is being written.
#[derive(Debug)]
pub(crate) struct WriteJob {
    pub(super) draft: Draft,
    pub(super) action: DraftAction,
    pub(super) stage: Stage,
    /// The form of the message, until the whole form has arrived.
    upload: Option<Box<MessageUpload>>,
    pub(super) message: Vec<u8>,
    /// The octets that the store has taken: of the buffer `message`, and of the whole message.
    taken: usize,
    octets: u64,
    reply_references: ReplyReferences,
    /// The files that are copied from the draft.
    pub(super) attachment_copy: Option<Box<AttachmentCopy>>,
    /// The next action on the draft, after it is saved.
    pub(super) next: Option<(Draft, DraftAction)>,
    /// The seconds for which the message is held, and the time when it is sent.
    hold: Option<(u64, UnixTime)>,
    /// The GUID of the draft.
    guid: Option<Guid>,
    /// The size of the signatures, if they are known already.
    head: Option<HeadSize>,
    pub(super) saved: Option<MessageKey>,
    error: Option<String>,
    /// The reply, if the form is not processed further.
    pub(super) reply: Option<Reply>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The form is being received.
    MessageUpload,
    /// The next step reads the message that the draft replies to.
    References,
    /// The next step composes the message and begins the delivery.
    Ready,
    /// The message is being appended.
    Appending,
    /// The delivery is being committed.
    Committing,
    /// The message was delivered.
    Delivered,
    /// The next step removes the replaced draft, or flags the answered message.
    Tidying(Tidying),
    /// The job is done or has failed.
    Over,
}

impl WriteJob {
    /// `token`: the token of the session's forms, or `None` for a client without a session.
    pub(super) fn new(token: Option<FormToken>, reader: FormReader) -> WriteJob {
        WriteJob {
            draft: Draft::default(),
            action: DraftAction::Save,
            stage: Stage::MessageUpload,
            upload: Some(Box::new(MessageUpload::new(token, reader))),
            message: Vec::new(),
            taken: 0,
            octets: 0,
            reply_references: ReplyReferences::default(),
            attachment_copy: None,
            next: None,
            hold: None,
            guid: None,
            head: None,
            saved: None,
            error: None,
            reply: None,
        }
    }

    /// Begins an action on the draft.
    pub(super) fn begin_with(&mut self, draft: Draft, action: DraftAction) {
        self.draft = draft;
        self.action = action;
        self.octets = 0;
        self.reply_references = ReplyReferences::default();
        self.stage =
            if action == DraftAction::Discard { Stage::Delivered } else { Stage::References };
    }

    /// Processes the next piece of the form.
    pub(super) fn piece_arrived(&mut self, piece: &UploadPiece) {
        self.upload.iter_mut().for_each(|upload| upload.piece_arrived(piece));
    }

    /// Records that the session of the form has ended.
    pub(super) fn session_ended(&mut self) {
        self.upload.iter_mut().for_each(|upload| upload.session_ended());
    }

    /// Whether all received pieces of the form were processed, and more may arrive.
    fn wants_more(&self) -> bool {
        let is_taken = self.taken == self.message.len();
        matches!(self.stage, Stage::MessageUpload | Stage::Appending)
            && is_taken
            && self.upload.as_ref().is_some_and(|upload| upload.wants_more())
    }

    pub(super) fn ask(
        &mut self,
        client: &AuthenticatedClient,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        while *under_way == 0 && self.stage != Stage::Over {
            if self.wants_more() {
                return JobProgress::Taken;
            }
            let asked = match self.stage {
                Stage::MessageUpload => Ok(self.form_comes(cx)),
                Stage::References => {
                    let asked = self.reply_references.ask(&self.draft, client.account, cx);
                    asked.inspect(|_| self.stage = Stage::Ready)
                }
                Stage::Ready => self.begin(client.account, cx),
                Stage::Appending => self.append(client.account, cx),
                Stage::Delivered => {
                    self.hold_and_tidy(client.account, cx);
                    Ok(0)
                }
                Stage::Tidying(tidying) => self.tidy_up(tidying, client.account, cx),
                Stage::Committing | Stage::Over => return JobProgress::Waiting,
            };
            match asked {
                Ok(asked) => *under_way += asked,
                Err(Refusal::Busy) => return JobProgress::Yield,
                Err(refusal) => self.fail(self.why_unwritten(refusal).into(), cx),
            }
        }
        JobProgress::Waiting
    }

    /// Ends the job with an error. The rest of the form is read and dropped.
    pub(super) fn fail(&mut self, error: String, cx: &mut JobContext<'_, '_>) {
        cx.abort();
        self.failed(error);
    }

    fn failed(&mut self, error: String) {
        (self.message, self.taken) = (Vec::new(), 0);
        match &mut self.upload {
            Some(upload) => {
                upload.fail(error);
                self.stage = Stage::MessageUpload;
            }
            None => {
                self.error = Some(error);
                self.stage = Stage::Over;
            }
        }
    }

    /// Processes received pieces of the form. Its first file begins a delivery to Drafts.
    fn form_comes(&mut self, cx: &mut JobContext<'_, '_>) -> usize {
        let Some(mut upload) = self.upload.take() else { return 0 };
        if upload.file_begins() {
            self.begin_with(upload.draft(), DraftAction::Save);
            self.upload = Some(upload);
        } else if upload.wants_more() {
            self.upload = Some(upload);
        } else {
            self.form_ended(upload, cx);
        }
        0
    }

    /// Processes octets of the message that the draft replies to, or of the draft with the files.
    pub(super) fn body_arrived(&mut self, body: &Body) {
        if let Some(attachment_copy) = &mut self.attachment_copy {
            return attachment_copy.body_arrived(body, &mut self.message);
        }
        if !self.reply_references.body_arrived(body, self.draft.answers) {
            self.stage = Stage::References;
        }
    }

    fn begin(&mut self, account: AccountId, cx: &mut JobContext<'_, '_>) -> Result<usize, Refusal> {
        let mut remote = Vec::new();
        let begun = match self.action {
            DraftAction::Send => {
                recipients(&self.draft, account, cx).and_then(|(recipients, others)| {
                    remote = others;
                    let is_for_others = !remote.is_empty();
                    self.held_or((recipients, is_for_others), account, cx)
                })
            }
            DraftAction::Save | DraftAction::Discard => {
                let flags = Flags::DRAFT.with(Flags::SEEN);
                Ok(alloc::vec![Recipient { mailbox: DRAFTS, flags, ..Recipient::inbox(account) }])
            }
        };
        let written = begun.and_then(|recipients| Ok((self.write(account, cx)?, recipients)));
        match written {
            Ok((message, recipients)) => {
                cx.begin_delivery(&recipients)?;
                if self.action == DraftAction::Send {
                    if let Err(excess) = cx.may_send(account, remote) {
                        self.hold = None;
                        self.fail(excess.to_string(), cx);
                        return Ok(0);
                    }
                    cx.begin_signing();
                }
                self.message = message;
                self.stage = Stage::Appending;
            }
            Err(error) => self.fail(error, cx),
        }
        Ok(0)
    }

    /// The recipients of the delivery. If the message is held, this is only the user's Drafts. A
    /// message with remote recipients is always held.
    fn held_or(
        &mut self,
        (recipients, is_for_others): (Vec<Recipient>, bool),
        account: AccountId,
        cx: &JobContext<'_, '_>,
    ) -> Result<Vec<Recipient>, String> {
        let known = cx.store().account(account);
        let chosen = known.and_then(|known| Preferences::of_account(&known).hold.seconds());
        let Some(seconds) = chosen.or(is_for_others.then_some(0)) else { return Ok(recipients) };
        if !cx.may_hold() {
            return Err("Too many messages are being sent right now. Try again in a moment.".into());
        }
        // The store keeps whole seconds, so the time is rounded up.
        self.hold = Some((seconds, UnixTime::from_seconds(cx.now().seconds() + seconds + 1)));
        let flags = Flags::DRAFT.with(Flags::SEEN).with(Flags::HELD);
        Ok(alloc::vec![Recipient { mailbox: DRAFTS, flags, ..Recipient::inbox(account) }])
    }

    fn write(
        &mut self,
        account: AccountId,
        cx: &mut JobContext<'_, '_>,
    ) -> Result<Vec<u8>, String> {
        let draft = &self.draft;
        let from = cx.store().account(account).map_or_else(HeaderMailbox::default, |known| {
            HeaderMailbox {
                name: Preferences::of_account(&known).name,
                address: known.address().to_string(),
            }
        });
        let [to, cc, bcc] = [&draft.to, &draft.cc, &draft.bcc].map(|list| mailboxes(list));
        let secret = u128::from_le_bytes(cx.random());
        let message_id = format!("{:032x}@{}", u128::from_le_bytes(cx.random()), cx.host());
        let references = self.reply_references.references();
        let content = NewMessage {
            from: &from,
            to: &to,
            cc: &cc,
            // Drafts keep `Bcc`. The submission service removes it from copies.
            bcc: if self.action == DraftAction::Send && self.hold.is_none() { &[] } else { &bcc },
            subject: &draft.subject,
            date: cx.now(),
            message_id: &message_id,
            in_reply_to: references.last().copied(),
            references: &references,
            text: &draft.text,
            html: None,
            secret,
            files: if self.upload.is_none() && !draft.carries() {
                Files::None
            } else {
                Files::Some
            },
        };
        let mut message = Vec::with_capacity(draft.text.len() * 2 + 2048);
        let composer =
            Composer::begin(&content, &mut message).map_err(|unwritable| match unwritable {
                Unwritable::Address => "One of the email addresses is not valid.".to_string(),
                Unwritable::Identifier => why(Refusal::Busy).to_string(),
            })?;
        match (&mut self.upload, draft.draft.filter(|_| draft.carries())) {
            (Some(upload), _) => upload.begin(draft.clone(), composer),
            (None, Some(saved)) => {
                let parts = draft.carried.iter().map(|(part, _)| usize::from(*part)).collect();
                self.attachment_copy = Some(Box::new(AttachmentCopy::new(saved, parts, composer)));
            }
            (None, None) => composer.message_ended(&mut message),
        }
        let first = message.get(..CHUNK_OCTETS).unwrap_or(&message);
        if self.hold.is_some() && memchr::memmem::find(first, b"\r\n\r\n").is_none() {
            return Err(
                "The subject and the list of recipients are too long. Shorten them and try again."
                    .into(),
            );
        }
        Ok(message)
    }

    fn append(
        &mut self,
        account: AccountId,
        cx: &mut JobContext<'_, '_>,
    ) -> Result<usize, Refusal> {
        let rest = self.message.get(self.taken..).unwrap_or_default();
        if !rest.is_empty() {
            if self.octets + rest.len() as u64 > cx.message_octets_max() {
                return Err(Refusal::TooLarge);
            }
            let taken = cx.append(rest).map_err(Refusal::of_begun_delivery)?;
            (self.taken, self.octets) = (self.taken + taken, self.octets + taken as u64);
            if taken < rest.len() {
                // The store wakes the handler when it can take more.
                return Ok(1);
            }
            self.message.clear();
            self.taken = 0;
        }
        if let Some(mut upload) = self.upload.take() {
            if upload.write(&mut self.message) || upload.wants_more() {
                self.upload = Some(upload);
            } else {
                self.form_ended(upload, cx);
            }
            return Ok(0);
        }
        if let Some(mut attachment_copy) = self.attachment_copy.take() {
            let is_asked = attachment_copy.ask(account, cx, &mut self.message);
            if is_asked == Ok(false) {
                attachment_copy.ended(&mut self.message);
                return Ok(0);
            }
            self.attachment_copy = Some(attachment_copy);
            return is_asked.map(usize::from);
        }
        let Some(head) = self.head.or((self.action != DraftAction::Send).then_some(HeadSize::NONE))
        else {
            let Some(signatures) = cx.signatures() else { return Ok(1) };
            self.head = Some(HeadSize::of(signatures.len()).unwrap_or(HeadSize::NONE));
            self.message = signatures;
            return Ok(0);
        };
        self.guid = cx.guid();
        let date = self.hold.map_or_else(|| cx.now(), |(_, until)| until);
        cx.commit(Closing { head, ..date.into() }).map_err(Refusal::of_begun_delivery)?;
        self.stage = Stage::Committing;
        Ok(1)
    }

    pub(super) fn delivered(&mut self) {
        self.stage = Stage::Delivered;
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        match self.stage {
            Stage::Appending | Stage::Committing => self.failed(self.why_unwritten(refusal).into()),
            Stage::Tidying(tidying) if tidying.is_strict() => self.failed(why(refusal).into()),
            // The answered message or the draft may no longer exist. This does no harm.
            _ => {}
        }
    }

    fn why_unwritten(&self, refusal: Refusal) -> &'static str {
        let is_for_others = self.action == DraftAction::Send && self.hold.is_none();
        match refusal {
            Refusal::TooLarge => "The message is too large. Remove some attachments and try again.",
            Refusal::OverQuota | Refusal::LargerThanQuota if is_for_others => {
                "There is not enough space in your mailbox, or in that of a recipient."
            }
            refusal => why(refusal),
        }
    }

    /// Holds the message, if it must be held. Then prepares the steps that remove the replaced
    /// draft and flag the answered message. If the message is held, the submission service flags
    /// the answered message.
    fn hold_and_tidy(&mut self, account: AccountId, cx: &mut JobContext<'_, '_>) {
        let newest = cx
            .store()
            .messages_below(account, DRAFTS, None)
            .find(|info| Some(info.guid) == self.guid);
        self.saved = newest.map(|info| MessageKey { mailbox: DRAFTS.0, uid: info.uid.0 });
        let is_sent = self.action == DraftAction::Send;
        let answers = self.draft.answers.filter(|_| is_sent).map(MessageKey::in_store);
        if let (Some(info), Some((_, until))) = (newest, self.hold) {
            cx.hold(account, info.uid, answers, until);
        }
        let draft = self.draft.draft.map(MessageKey::in_store);
        self.stage = Stage::Tidying(match self.action {
            DraftAction::Discard => Tidying::of_discarded(draft),
            _ => Tidying::new(draft, answers.filter(|_| self.hold.is_none())),
        });
    }

    fn tidy_up(
        &mut self,
        mut tidying: Tidying,
        account: AccountId,
        cx: &mut JobContext<'_, '_>,
    ) -> Result<usize, Refusal> {
        let tidied = tidying.ask(|step| step.ask(account, cx));
        self.stage = Stage::Tidying(tidying);
        let asked = tidied?;
        if asked == 0 {
            self.stage = Stage::Over;
            self.go_on_with_draft(cx);
        }
        Ok(asked)
    }

    pub(super) fn done(
        &mut self,
        client: &AuthenticatedClient,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        if let Some(reply) = self.reply.take() {
            cx.abort();
            return JobProgress::Reply(reply);
        }
        if let Some(error) = self.error.take() {
            cx.abort();
            return JobProgress::Reply(self.draft.page(&error, client, cx.store()));
        }
        let list = |mailbox: MailboxId| {
            WebPage::List { mailbox: mailbox.0, range: ListRange::Newest }.to_string()
        };
        let (flash, path) = match (self.action, self.saved) {
            (DraftAction::Send, Some(key)) if self.hold.is_some_and(|(seconds, _)| seconds > 0) => {
                (
                    FlashMessage {
                        undo: Some(UndoAction::Sending(key)),
                        ..FlashMessage::success("Sending…")
                    },
                    list(INBOX),
                )
            }
            (DraftAction::Send, _) => (FlashMessage::success("Message sent."), list(INBOX)),
            (DraftAction::Discard, _) => (FlashMessage::success("Draft discarded."), list(INBOX)),
            (DraftAction::Save, Some(key)) => {
                let start = ComposeStart::Draft { draft: key, answers: self.draft.answers };
                (FlashMessage::success("Draft saved."), WebPage::Compose(start).to_string())
            }
            (DraftAction::Save, None) => (FlashMessage::success("Draft saved."), list(DRAFTS)),
        };
        let seconds = self.hold.map(|(seconds, _)| seconds).filter(|seconds| *seconds > 0);
        JobProgress::Redirect(path, FlashMessage { seconds, ..flash })
    }
}
