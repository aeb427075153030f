//! The page layout of a session, with data from the store.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use store::{AccountId, AccountInfo, MailboxId, OUTBOX, Store};

use crate::chosen::Chosen;
use crate::frame::{Frame, MailboxLink, Meter, Notice};
use crate::said::Said;
use crate::sessions::Digest;

/// The authenticated client of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Visitor {
    /// The account.
    pub account: AccountId,
    /// The session.
    pub session: Digest,
    /// The token of its forms.
    pub token: Arc<str>,
    /// The flash message for its page.
    pub said: Option<Said>,
    /// Whether it is an administrator.
    pub is_administrator: bool,
}

/// The data of a [`Frame`].
pub(crate) struct Surroundings {
    address: String,
    mailboxes: Vec<Beside>,
    quota: Option<Quota>,
    undo: Option<String>,
    chosen: Chosen,
}

/// The use of a quota.
struct Quota {
    taken: String,
    allowed: String,
    percent: u8,
}

impl Quota {
    fn of(known: &AccountInfo<'_>) -> Option<Quota> {
        let (taken, allowed) = (known.taken(), known.allowed()?);
        let percent = taken.saturating_mul(100).checked_div(allowed).unwrap_or(100).min(100) as u8;
        Some(Quota { taken: size_for_people(taken), allowed: size_for_people(allowed), percent })
    }
}

/// A mailbox in the side bar.
struct Beside {
    id: MailboxId,
    name: String,
    unseen: u32,
    is_open: bool,
}

impl Surroundings {
    /// `open`: the mailbox of the page.
    pub(crate) fn of(visitor: &Visitor, store: &Store, open: Option<MailboxId>) -> Surroundings {
        let known = store.account(visitor.account);
        let all = known.iter().flat_map(|known| known.mailboxes());
        let all =
            all.filter_map(|(id, name)| Some((id, name, store.mailbox(visitor.account, id)?)));
        // The outbox is shown only while it has messages.
        let shown =
            all.filter(|(id, _, info)| *id != OUTBOX || info.messages > 0 || Some(*id) == open);
        let mailboxes = shown.map(|(id, name, info)| Beside {
            id,
            name: name_for_people(name).to_string(),
            unseen: info.unseen,
            is_open: Some(id) == open,
        });
        Surroundings {
            address: known.as_ref().map_or(String::new(), |known| known.address().to_string()),
            mailboxes: mailboxes.collect(),
            quota: known.as_ref().and_then(Quota::of),
            undo: visitor.said.as_ref().and_then(|said| said.undo).map(|undo| undo.to_string()),
            chosen: known.as_ref().map(Chosen::by).unwrap_or_default(),
        }
    }

    /// The name of a mailbox.
    pub(crate) fn name_of(&self, mailbox: MailboxId) -> String {
        self.mailboxes
            .iter()
            .find(|beside| beside.id == mailbox)
            .map_or_else(String::new, |beside| beside.name.clone())
    }

    /// The user's preferences.
    pub(crate) fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// The mailboxes, for [`Surroundings::frame`].
    pub(crate) fn links(&self) -> Vec<MailboxLink<'_>> {
        let all = self.mailboxes.iter();
        all.map(|Beside { id, name, unseen, is_open }| MailboxLink {
            id: id.0,
            name,
            unseen: *unseen,
            is_open: *is_open,
        })
        .collect()
    }

    /// The layout data of a page.
    pub(crate) fn frame<'a>(
        &'a self,
        visitor: &'a Visitor,
        mailboxes: &'a [MailboxLink<'a>],
    ) -> Frame<'a> {
        let notice = visitor.said.as_ref().map(|said| Notice {
            text: &said.text,
            is_error: said.is_error,
            undo: self.undo.as_deref(),
            seconds: said.seconds,
        });
        Frame {
            address: &self.address,
            token: &visitor.token,
            theme: self.chosen.theme,
            density: self.chosen.density,
            search: "",
            mailboxes,
            meter: self.quota.as_ref().map(|quota| Meter {
                taken: &quota.taken,
                allowed: &quota.allowed,
                percent: quota.percent,
            }),
            notice,
            is_administrator: visitor.is_administrator,
        }
    }
}

/// The name of a mailbox on pages. Only the inbox has another name in the protocols.
pub(crate) fn name_for_people(name: &str) -> &str {
    if name == "INBOX" { "Inbox" } else { name }
}

/// Octets in the largest unit of which there is one, with a decimal below ten. The units are those
/// of the configuration.
pub(crate) fn size_for_people(octets: u64) -> String {
    let units = [(40, "TB"), (30, "GB"), (20, "MB")];
    let (bits, unit) = units.into_iter().find(|(bits, _)| octets >> bits > 0).unwrap_or((10, "KB"));
    let tenths = ((u128::from(octets) * 10) >> bits) as u64;
    match (tenths / 10, tenths % 10) {
        (whole @ 0..10, tenth @ 1..) => format!("{whole}.{tenth} {unit}"),
        (whole, _) => format!("{whole} {unit}"),
    }
}
