//! The page layout of a session, with data from the store.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use store::{AccountId, AccountInfo, MailboxId, OUTBOX, Store};

use crate::flash::FlashMessage;
use crate::frame::{FlashNotice, MailboxLink, PageFrame, QuotaMeter};
use crate::preferences::Preferences;
use crate::sessions::Digest;

/// The authenticated client of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AuthenticatedClient {
    /// The account.
    pub account: AccountId,
    /// The session.
    pub session: Digest,
    /// The token of the session's forms.
    pub token: Arc<str>,
    /// The flash message that the page shows.
    pub flash: Option<FlashMessage>,
    /// Whether the account is an administrator's.
    pub is_administrator: bool,
}

/// The values that a [`PageFrame`] borrows.
pub(crate) struct PageLayout {
    address: String,
    mailboxes: Vec<SidebarMailbox>,
    quota: Option<QuotaText>,
    undo: Option<String>,
    preferences: Preferences,
}

/// The use of a quota.
struct QuotaText {
    taken: String,
    allowed: String,
    percent: u8,
}

impl QuotaText {
    fn of(known: &AccountInfo<'_>) -> Option<QuotaText> {
        let (taken, allowed) = (known.taken(), known.allowed()?);
        let percent = taken.saturating_mul(100).checked_div(allowed).unwrap_or(100).min(100) as u8;
        Some(QuotaText { taken: display_size(taken), allowed: display_size(allowed), percent })
    }
}

/// A mailbox in the side bar.
struct SidebarMailbox {
    id: MailboxId,
    name: String,
    unseen: u32,
    is_open: bool,
}

impl PageLayout {
    /// Reads the layout's values from the store. `open`: the mailbox that the page shows.
    pub(crate) fn of(
        client: &AuthenticatedClient,
        store: &Store,
        open: Option<MailboxId>,
    ) -> PageLayout {
        let known = store.account(client.account);
        let all = known.iter().flat_map(|known| known.mailboxes());
        let all = all.filter_map(|(id, name)| Some((id, name, store.mailbox(client.account, id)?)));
        // The side bar has the outbox only while it has messages or is open.
        let shown =
            all.filter(|(id, _, info)| *id != OUTBOX || info.messages > 0 || Some(*id) == open);
        let mailboxes = shown.map(|(id, name, info)| SidebarMailbox {
            id,
            name: display_name(name).to_string(),
            unseen: info.unseen,
            is_open: Some(id) == open,
        });
        PageLayout {
            address: known.as_ref().map_or(String::new(), |known| known.address().to_string()),
            mailboxes: mailboxes.collect(),
            quota: known.as_ref().and_then(QuotaText::of),
            undo: client.flash.as_ref().and_then(|flash| flash.undo).map(|undo| undo.to_string()),
            preferences: known.as_ref().map(Preferences::of_account).unwrap_or_default(),
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
    pub(crate) fn preferences(&self) -> &Preferences {
        &self.preferences
    }

    /// The mailboxes in the side bar, for [`PageLayout::frame`].
    pub(crate) fn links(&self) -> Vec<MailboxLink<'_>> {
        let all = self.mailboxes.iter();
        all.map(|SidebarMailbox { id, name, unseen, is_open }| MailboxLink {
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
        client: &'a AuthenticatedClient,
        mailboxes: &'a [MailboxLink<'a>],
    ) -> PageFrame<'a> {
        let notice = client.flash.as_ref().map(|flash| FlashNotice {
            text: &flash.text,
            is_error: flash.is_error,
            undo: self.undo.as_deref(),
            seconds: flash.seconds,
        });
        PageFrame {
            address: &self.address,
            token: &client.token,
            theme: self.preferences.theme,
            density: self.preferences.density,
            zone: &self.preferences.zone,
            search: "",
            mailboxes,
            meter: self.quota.as_ref().map(|quota| QuotaMeter {
                taken: &quota.taken,
                allowed: &quota.allowed,
                percent: quota.percent,
            }),
            notice,
            is_administrator: client.is_administrator,
        }
    }
}

/// The name of a mailbox on pages. Only the inbox has a different name in the mail protocols.
pub(crate) fn display_name(name: &str) -> &str {
    if name == "INBOX" { "Inbox" } else { name }
}

/// Formats a size in the largest unit of which it has at least one, from KB on. A number below ten
/// has one decimal place, unless that is 0. The units have the same meaning as in the
/// configuration.
pub(crate) fn display_size(octets: u64) -> String {
    let units = [(40, "TB"), (30, "GB"), (20, "MB")];
    let (bits, unit) = units.into_iter().find(|(bits, _)| octets >> bits > 0).unwrap_or((10, "KB"));
    let tenths = ((u128::from(octets) * 10) >> bits) as u64;
    match (tenths / 10, tenths % 10) {
        (whole @ 0..10, tenth @ 1..) => format!("{whole}.{tenth} {unit}"),
        (whole, _) => format!("{whole} {unit}"),
    }
}
