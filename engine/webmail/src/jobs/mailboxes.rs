//! Creates, renames and removes a user's mailboxes.
//!
//! Invariant: no message is lost with its mailbox. The messages of a mailbox are moved to Trash
//! before it is removed.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use store::{AccountId, BUILT_IN, MailboxId, Refusal, TRASH, Uid, UidRange};

use crate::WebPage;
use crate::answer;
use crate::context::JobContext;
use crate::flash::FlashMessage;
use crate::layout::{AuthenticatedClient, PageLayout};
use crate::mailboxes::{MailboxesPage, OwnMailbox};
use crate::step::{JobProgress, why};

/// A change of a mailbox.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum MailboxChange {
    /// Create a mailbox with this name.
    Make(String),
    /// Give this mailbox another name.
    Rename(MailboxId, String),
    /// Remove this mailbox.
    Remove(MailboxId),
}

/// A change in progress, or the list of mailboxes.
#[derive(Debug)]
pub(crate) struct MailboxJob {
    change: Option<MailboxChange>,
    is_done: bool,
    refused: Option<Refusal>,
}

impl MailboxJob {
    pub(super) fn new(change: Option<MailboxChange>) -> MailboxJob {
        MailboxJob {
            is_done: change.is_none(),
            change: change.map(MailboxChange::in_one_form),
            refused: None,
        }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        if self.is_done || self.refused.is_some() || *under_way > 0 {
            return JobProgress::Waiting;
        }
        let (continuation, now) = (cx.continuation(), cx.now());
        let asked = match &self.change {
            Some(MailboxChange::Make(name) | MailboxChange::Rename(_, name))
                if is_built_in(name) =>
            {
                Err(Refusal::NameTaken)
            }
            Some(MailboxChange::Make(name)) => {
                cx.store_mut().create_mailbox(account, name, now, continuation)
            }
            Some(MailboxChange::Rename(id, name)) => {
                cx.store_mut().rename_mailbox(account, *id, name, continuation)
            }
            Some(MailboxChange::Remove(id)) => {
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
            None => return JobProgress::Waiting,
        };
        match asked {
            Ok(()) => *under_way += 1,
            Err(Refusal::Busy) => return JobProgress::Yield,
            Err(refusal) => self.refused = Some(refusal),
        }
        JobProgress::Waiting
    }

    /// Records that the store has made the change.
    pub(super) fn changed(&mut self) {
        self.is_done = true;
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        // A message may have arrived after the move to Trash, or another session may have removed
        // the last message. So the next step examines the mailbox again.
        let is_looked_at_again = matches!(refusal, Refusal::NotEmpty | Refusal::NoSuchMessage);
        if !(is_looked_at_again && matches!(self.change, Some(MailboxChange::Remove(_)))) {
            self.refused = Some(refusal);
        }
    }

    pub(super) fn done(
        &self,
        client: &AuthenticatedClient,
        cx: &JobContext<'_, '_>,
    ) -> JobProgress {
        let text = match (&self.change, self.refused) {
            (None, None) => return JobProgress::Reply(page(client, "", cx)),
            (_, Some(refusal)) => {
                let client = AuthenticatedClient {
                    flash: Some(FlashMessage::failure(refused_for(refusal))),
                    ..client.clone()
                };
                let name =
                    if let Some(MailboxChange::Make(name)) = &self.change { name } else { "" };
                return JobProgress::Reply(page(&client, name, cx));
            }
            (Some(MailboxChange::Make(name)), None) => format!("Folder “{name}” created."),
            (Some(MailboxChange::Rename(_, name)), None) => {
                format!("Folder renamed to “{name}”.")
            }
            (Some(MailboxChange::Remove(_)), None) => "Folder deleted.".to_string(),
        };
        JobProgress::Redirect(WebPage::Mailboxes.to_string(), FlashMessage::success(&text))
    }
}

impl MailboxChange {
    /// Collapses white space in the name, and removes white space at its ends. Control characters
    /// count as white space.
    fn in_one_form(self) -> MailboxChange {
        let form = |name: String| {
            let seen: String = name
                .chars()
                .map(|character| if character.is_control() { ' ' } else { character })
                .collect();
            seen.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        match self {
            MailboxChange::Make(name) => MailboxChange::Make(form(name)),
            MailboxChange::Rename(id, name) => MailboxChange::Rename(id, form(name)),
            MailboxChange::Remove(id) => MailboxChange::Remove(id),
        }
    }
}

/// Whether a name equals a built-in name when case is ignored. Users would confuse two such names.
fn is_built_in(name: &str) -> bool {
    BUILT_IN.iter().any(|(_, built_in)| built_in.eq_ignore_ascii_case(name))
}

fn refused_for(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::NameTaken => "A folder with this name already exists.",
        Refusal::TooLarge => "Enter a folder name of at most 255 bytes.",
        Refusal::TooMany => "You cannot create any more folders.",
        Refusal::BuiltIn => "This folder cannot be renamed or deleted.",
        refusal => why(refusal),
    }
}

fn page(client: &AuthenticatedClient, refused: &str, cx: &JobContext<'_, '_>) -> Reply {
    let store = cx.store();
    let known = store.account(client.account);
    let all = known.iter().flat_map(|known| known.mailboxes());
    let own = all.filter(|(id, _)| !BUILT_IN.iter().any(|(built_in, _)| built_in == id));
    let own: Vec<OwnMailbox<'_>> = own
        .map(|(id, name)| OwnMailbox {
            id: id.0,
            name,
            messages: store.mailbox(client.account, id).map_or(0, |info| info.messages),
        })
        .collect();
    let layout = PageLayout::of(client, store, None);
    answer::page(&MailboxesPage {
        frame: layout.frame(client, &layout.links()),
        own: &own,
        refused,
    })
}
