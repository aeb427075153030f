//! A user's own mailboxes: creates, renames and removes them.
//!
//! Invariant: no message is lost with its mailbox. Its messages are moved to Trash first.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use store::{AccountId, BUILT_IN, MailboxId, Refusal, TRASH, Uid, UidRange};

use crate::Page;
use crate::answer;
use crate::context::JobContext;
use crate::mailboxes::{MailboxesPage, OwnMailbox};
use crate::said::Said;
use crate::step::{Progress, why};
use crate::surroundings::{Surroundings, Visitor};

/// A change of a mailbox.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BoxChange {
    /// Create one with this name.
    Make(String),
    /// Rename it.
    Rename(MailboxId, String),
    /// Remove it.
    Remove(MailboxId),
}

/// A change in progress, or the list of mailboxes.
#[derive(Debug)]
pub(crate) struct Boxes {
    change: Option<BoxChange>,
    is_done: bool,
    refused: Option<Refusal>,
}

impl Boxes {
    pub(super) fn new(change: Option<BoxChange>) -> Boxes {
        Boxes {
            is_done: change.is_none(),
            change: change.map(BoxChange::in_one_form),
            refused: None,
        }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> Progress {
        if self.is_done || self.refused.is_some() || *under_way > 0 {
            return Progress::Waiting;
        }
        let (continuation, now) = (cx.continuation(), cx.now());
        let asked = match &self.change {
            Some(BoxChange::Make(name) | BoxChange::Rename(_, name)) if is_built_in(name) => {
                Err(Refusal::NameTaken)
            }
            Some(BoxChange::Make(name)) => {
                cx.store_mut().create_mailbox(account, name, now, continuation)
            }
            Some(BoxChange::Rename(id, name)) => {
                cx.store_mut().rename_mailbox(account, *id, name, continuation)
            }
            Some(BoxChange::Remove(id)) => {
                match cx.store().mailbox(account, *id).map_or(0, |info| info.messages) {
                    0 => cx.store_mut().delete_mailbox(account, *id, continuation),
                    _ if BUILT_IN.iter().any(|(built_in, _)| built_in == id) => {
                        Err(Refusal::BuiltIn)
                    }
                    _ => {
                        let all = UidRange { first: Uid(1), last: Uid(u32::MAX) };
                        cx.store_mut().file(account, *id, &[all], TRASH, continuation)
                    }
                }
            }
            None => return Progress::Waiting,
        };
        match asked {
            Ok(()) => *under_way += 1,
            Err(Refusal::Busy) => return Progress::Yield,
            Err(refusal) => self.refused = Some(refusal),
        }
        Progress::Waiting
    }

    /// The change is done.
    pub(super) fn changed(&mut self) {
        self.is_done = true;
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        // A message may have arrived after the move to Trash, or the last one may be gone: the next
        // step looks again.
        let is_looked_at_again = matches!(refusal, Refusal::NotEmpty | Refusal::NoSuchMessage);
        if !(is_looked_at_again && matches!(self.change, Some(BoxChange::Remove(_)))) {
            self.refused = Some(refusal);
        }
    }

    pub(super) fn done(&self, visitor: &Visitor, cx: &JobContext<'_, '_>) -> Progress {
        let text = match (&self.change, self.refused) {
            (None, None) => return Progress::Reply(page(visitor, "", cx)),
            (_, Some(refusal)) => {
                let visitor =
                    Visitor { said: Some(Said::wrong(refused_for(refusal))), ..visitor.clone() };
                let name = if let Some(BoxChange::Make(name)) = &self.change { name } else { "" };
                return Progress::Reply(page(&visitor, name, cx));
            }
            (Some(BoxChange::Make(name)), None) => format!("The mailbox “{name}” was made."),
            (Some(BoxChange::Rename(_, name)), None) => {
                format!("The mailbox is called “{name}” now.")
            }
            (Some(BoxChange::Remove(_)), None) => "The mailbox was removed.".to_string(),
        };
        Progress::Redirect(Page::Mailboxes.to_string(), Said::done(&text))
    }
}

impl BoxChange {
    /// Collapses white space in a name, removes it at the ends, and drops control characters.
    fn in_one_form(self) -> BoxChange {
        let form = |name: String| {
            let seen: String =
                name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
            seen.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        match self {
            BoxChange::Make(name) => BoxChange::Make(form(name)),
            BoxChange::Rename(id, name) => BoxChange::Rename(id, form(name)),
            BoxChange::Remove(id) => BoxChange::Remove(id),
        }
    }
}

/// Whether a name differs from a built-in one at most by case. Users could not tell the two apart.
fn is_built_in(name: &str) -> bool {
    BUILT_IN.iter().any(|(_, built_in)| built_in.eq_ignore_ascii_case(name))
}

fn refused_for(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::NameTaken => "There is a mailbox of that name already.",
        Refusal::TooLarge => "A mailbox has a name of up to 255 bytes.",
        Refusal::TooMany => "There are as many mailboxes as there can be.",
        Refusal::BuiltIn => "This mailbox stays as it is: everybody has it.",
        refusal => why(refusal),
    }
}

fn page(visitor: &Visitor, refused: &str, cx: &JobContext<'_, '_>) -> Reply {
    let store = cx.store();
    let known = store.account(visitor.account);
    let all = known.iter().flat_map(|known| known.mailboxes());
    let own = all.filter(|(id, _)| !BUILT_IN.iter().any(|(built_in, _)| built_in == id));
    let own: Vec<OwnMailbox<'_>> = own
        .map(|(id, name)| OwnMailbox {
            id: id.0,
            name,
            messages: store.mailbox(visitor.account, id).map_or(0, |info| info.messages),
        })
        .collect();
    let surroundings = Surroundings::of(visitor, store, None);
    answer::page(&MailboxesPage {
        frame: surroundings.frame(visitor, &surroundings.links()),
        own: &own,
        refused,
    })
}
