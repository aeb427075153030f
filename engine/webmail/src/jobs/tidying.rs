//! The last steps for a message that was written: the replaced draft is removed, and the message
//! that it answers is flagged.
//!
//! Invariants:
//! - If the store refuses one of them, it is left out: the message itself is safe. If the draft
//!   is to be discarded there is no message, and the refusal is reported.
//! - A busy store is asked again. So no draft stays beside the message that was sent.

use store::{AccountId, DRAFTS, Flags, MailboxId, MarkChange, Refusal, Uid, UidRange};

use crate::context::JobContext;

/// What is still to be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tidying {
    draft: Option<(MailboxId, Uid)>,
    answers: Option<(MailboxId, Uid)>,
    is_strict: bool,
}

/// What the store is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TidyingStep {
    /// The draft goes.
    Remove(MailboxId, Uid),
    /// The message is marked as answered.
    MarkAnswered(MailboxId, Uid),
}

impl Tidying {
    /// `draft`: the draft that the message replaces. `answers`: the message that it answers.
    pub(super) fn new(
        draft: Option<(MailboxId, Uid)>,
        answers: Option<(MailboxId, Uid)>,
    ) -> Tidying {
        let draft = draft.filter(|(mailbox, _)| *mailbox == DRAFTS);
        Tidying { draft, answers, is_strict: false }
    }

    /// `draft`: the draft that is discarded.
    pub(super) fn of_discarded(draft: Option<(MailboxId, Uid)>) -> Tidying {
        Tidying { is_strict: true, ..Tidying::new(draft, None) }
    }

    /// Whether a refusal is to be reported.
    pub(super) fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Asks for the next thing that the store does not refuse. Returns how many outcomes follow;
    /// 0: all is done.
    ///
    /// Errors: `Busy`: the same is to be asked for again. Any other if it is strict.
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
    /// Asks the store for it. Returns how many outcomes follow: none for a draft that is on its
    /// way, or gone.
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
