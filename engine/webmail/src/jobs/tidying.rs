//! The last steps after a message was written: the draft that it replaces is removed, and the
//! message that it answers is flagged.
//!
//! Invariants:
//! - If the store refuses a step, the step is left out, since the message itself is safe. When a
//!   draft is discarded, no message was written, so a refusal is reported to the user.
//! - If the store is busy, the step is asked for again. So when a message was sent, its draft never
//!   remains.

use store::{AccountId, DRAFTS, Flags, MailboxId, MarkChange, Refusal, Uid, UidRange};

use crate::context::JobContext;

/// The remaining steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tidying {
    draft: Option<(MailboxId, Uid)>,
    answers: Option<(MailboxId, Uid)>,
    is_strict: bool,
}

/// A step: a request to the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TidyingStep {
    /// The draft is removed.
    Remove(MailboxId, Uid),
    /// The message is marked as answered.
    MarkAnswered(MailboxId, Uid),
}

impl Tidying {
    /// The steps after a message was written. `draft`: the draft that it replaces. `answers`: the
    /// message that it answers.
    pub(super) fn new(
        draft: Option<(MailboxId, Uid)>,
        answers: Option<(MailboxId, Uid)>,
    ) -> Tidying {
        let draft = draft.filter(|(mailbox, _)| *mailbox == DRAFTS);
        Tidying { draft, answers, is_strict: false }
    }

    /// The steps that discard a draft.
    pub(super) fn of_discarded(draft: Option<(MailboxId, Uid)>) -> Tidying {
        Tidying { is_strict: true, ..Tidying::new(draft, None) }
    }

    /// Whether a refusal must be reported.
    pub(super) fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Asks for the next step that the store does not refuse. Returns how many outcomes follow. 0
    /// means that no step is left.
    ///
    /// Errors: after [`Refusal::Busy`] the same step must be asked for again. If the steps are
    /// strict, any other refusal is an error too.
    pub(super) fn ask(
        &mut self,
        mut ask: impl FnMut(TidyingStep) -> Result<usize, Refusal>,
    ) -> Result<usize, Refusal> {
        while let Some(step) = self.next() {
            let asked = match ask(step) {
                Err(refusal) if refusal == Refusal::Busy || self.is_strict => return Err(refusal),
                asked => asked.unwrap_or_default(),
            };
            match step {
                TidyingStep::Remove(..) => self.draft = None,
                TidyingStep::MarkAnswered(..) => self.answers = None,
            }
            if asked > 0 {
                return Ok(asked);
            }
        }
        Ok(0)
    }

    fn next(&self) -> Option<TidyingStep> {
        let remove = self.draft.map(|(mailbox, uid)| TidyingStep::Remove(mailbox, uid));
        let mark = || self.answers.map(|(mailbox, uid)| TidyingStep::MarkAnswered(mailbox, uid));
        remove.or_else(mark)
    }
}

impl TidyingStep {
    /// Asks the store for the step. Returns how many outcomes follow. The result is 0 for a draft
    /// that is in transit or no longer exists.
    pub(super) fn ask(
        self,
        account: AccountId,
        cx: &mut JobContext<'_, '_>,
    ) -> Result<usize, Refusal> {
        let continuation = cx.continuation();
        match self {
            TidyingStep::Remove(mailbox, uid) => {
                let info = cx.store().message(account, mailbox, uid);
                if info.is_none_or(|info| info.flags.are_on_their_way()) {
                    return Ok(0);
                }
                cx.store_mut().remove(account, mailbox, &[UidRange::one(uid)], continuation)?;
            }
            TidyingStep::MarkAnswered(mailbox, uid) => {
                let change = MarkChange::set(Flags::ANSWERED);
                cx.store_mut().mark(account, mailbox, uid, change, continuation)?;
            }
        }
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use store::INBOX;

    #[test]
    fn a_busy_store_is_asked_again_and_another_refusal_is_final() {
        let (draft, answers) = ((DRAFTS, Uid(7)), (INBOX, Uid(9)));
        let [remove, mark] = [
            TidyingStep::Remove(draft.0, draft.1),
            TidyingStep::MarkAnswered(answers.0, answers.1),
        ];
        let mut tidying = Tidying::new(Some(draft), Some(answers));
        for _ in 0..3 {
            assert_eq!(
                tidying.ask(|step| {
                    assert_eq!(step, remove);
                    Err(Refusal::Busy)
                }),
                Err(Refusal::Busy)
            );
        }
        assert_eq!(tidying.ask(|_| Ok(1)), Ok(1));
        assert_eq!(
            tidying.ask(|step| {
                assert_eq!(step, mark);
                Err(Refusal::Busy)
            }),
            Err(Refusal::Busy)
        );
        assert_eq!(tidying.ask(|_| Ok(1)), Ok(1));
        assert_eq!(tidying.ask(|_| unreachable!("nothing is left")), Ok(0));
        let mut asked = Vec::new();
        let refused = Tidying::new(Some(draft), Some(answers)).ask(|step| {
            asked.push(step);
            Err(Refusal::ReadOnly)
        });
        assert_eq!((refused, asked), (Ok(0), alloc::vec![remove, mark]));
    }
}
