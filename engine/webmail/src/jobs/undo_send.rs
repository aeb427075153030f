//! Takes back a held message, so that it is a draft again. Also finds out whether a message is in
//! transit.
//!
//! Invariants:
//! - A message that is taken back is removed from the submission service before its flags are
//!   changed in the store. So a message is never both taken back and sent.
//! - Only a held message can be taken back. After the delivery has begun, a recipient may already
//!   have the message, even while the message waits for a retry. Such a message stays in transit,
//!   and the reply says so.

use alloc::string::ToString;

use store::{
    AccountId, DRAFTS, EntryState, Flags, INBOX, MailboxId, MarkChange, OUTBOX, Refusal, Store, Uid,
};

use crate::context::JobContext;
use crate::flash::{FlashMessage, UndoAction};
use crate::step::{JobProgress, why};
use crate::{ComposeStart, ListRange, MessageKey, WebPage};

/// A message to take back.
#[derive(Debug)]
pub(crate) struct UndoSendJob {
    key: MessageKey,
    /// The message that the held message replies to, if it is known.
    answers: Option<(MailboxId, Uid)>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The next step checks whether the message is still held.
    Wanted,
    /// The store is clearing the message's flag.
    ClearingFlag,
    /// The message is a draft.
    Back,
    /// The message is being sent, or was sent.
    TooLate,
    /// The store has refused the change, and the message is still held.
    Refused(Refusal),
}

impl UndoSendJob {
    pub(super) fn new(key: MessageKey) -> UndoSendJob {
        UndoSendJob { key, answers: None, stage: Stage::Wanted }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        if *under_way > 0 {
            return JobProgress::Waiting;
        }
        if self.stage == Stage::ClearingFlag {
            self.stage = Stage::Back;
        }
        if self.stage != Stage::Wanted {
            return JobProgress::Waiting;
        }
        let (mailbox, uid) = self.key.in_store();
        let info = cx.store().message(account, mailbox, uid).filter(|_| mailbox == DRAFTS);
        let is_on_its_way = info.is_some_and(|info| info.flags.are_on_their_way());
        let is_held = info.is_some_and(|info| {
            info.flags.contains(Flags::HELD) && !info.flags.contains(Flags::LEAVING)
        });
        let taken = is_held.then(|| cx.take_back(account, uid)).flatten();
        self.stage = match (info, taken) {
            (Some(_), None) if !is_on_its_way => Stage::Back,
            (Some(info), Some(answers)) => {
                self.answers = answers;
                let continuation = cx.continuation();
                match cx.store_mut().mark(
                    account,
                    mailbox,
                    uid,
                    MarkChange::clear(Flags::HELD),
                    continuation,
                ) {
                    Ok(()) => {
                        *under_way += 1;
                        Stage::ClearingFlag
                    }
                    Err(Refusal::Busy) => {
                        cx.hold(account, uid, answers, info.internal_date);
                        return JobProgress::Yield;
                    }
                    Err(refusal) => Stage::Refused(refusal),
                }
            }
            _ => Stage::TooLate,
        };
        JobProgress::Waiting
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.stage = Stage::Refused(refusal);
    }

    pub(super) fn done(&self, account: AccountId, cx: &mut JobContext<'_, '_>) -> JobProgress {
        let (mailbox, uid) = self.key.in_store();
        let (flash, path) = match self.stage {
            Stage::Wanted | Stage::ClearingFlag | Stage::Back => {
                let flash = FlashMessage::success("Sending undone. The message is back in Drafts.");
                let answers = self
                    .answers
                    .map(|(mailbox, uid)| MessageKey { mailbox: mailbox.0, uid: uid.0 });
                (flash, WebPage::Compose(ComposeStart::Draft { draft: self.key, answers }))
            }
            Stage::TooLate => {
                let flash = FlashMessage::failure(
                    "Too late to undo: the message is being sent or has been sent.",
                );
                (flash, WebPage::List { mailbox: INBOX.0, range: ListRange::Newest })
            }
            Stage::Refused(refusal) => {
                if let Some(info) = cx.store().message(account, mailbox, uid) {
                    cx.hold(account, uid, self.answers, info.internal_date);
                }
                (
                    FlashMessage::failure(why(refusal)),
                    WebPage::List { mailbox: DRAFTS.0, range: ListRange::Newest },
                )
            }
        };
        JobProgress::Redirect(path.to_string(), flash)
    }
}

/// Whether a message is in transit to its recipients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Transit {
    None,
    UnderWay,
    /// The message waits in the outbox, or a delivery attempt has it.
    Queued,
    /// An administrator holds the message, or has returned it to its sender.
    HeldBack,
}

impl Transit {
    /// The transit state of the message in this mailbox with this UID and these flags.
    pub(super) fn of(
        store: &Store,
        account: AccountId,
        mailbox: MailboxId,
        (uid, flags): (Uid, Flags),
    ) -> Transit {
        let entry = if mailbox == OUTBOX { store.outbox_entry(account, uid) } else { None };
        match entry.map(|entry| entry.state()) {
            Some(EntryState::Queued) => Transit::Queued,
            Some(EntryState::Held | EntryState::Returned) => Transit::HeldBack,
            None if mailbox == DRAFTS && flags.are_on_their_way() => Transit::UnderWay,
            None => Transit::None,
        }
    }
}

/// The flash message for a draft that is in transit. `None`: the draft is not in transit.
pub(super) fn flash_if_sending(
    key: MessageKey,
    account: AccountId,
    cx: &JobContext<'_, '_>,
) -> Option<FlashMessage> {
    let (mailbox, uid) = key.in_store();
    let info = cx.store().message(account, mailbox, uid)?;
    if Transit::of(cx.store(), account, mailbox, (uid, info.flags)) == Transit::None {
        return None;
    }
    let left = info.internal_date.seconds().saturating_sub(cx.now().seconds());
    let is_held = info.flags.contains(Flags::HELD) && left > 0;
    let undo = is_held.then_some(UndoAction::Sending(key));
    Some(FlashMessage {
        undo,
        seconds: is_held.then_some(left),
        ..FlashMessage::success("Sending…")
    })
}
