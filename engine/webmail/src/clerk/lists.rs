//! A page of a mailbox: an index walk, and the summaries of what it finds.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use store::{AccountId, Body, JUNK, MailboxId, TRASH, Uid};

use super::rows::{self, Found, RowText};
use super::{Desk, Step};
use crate::answer;
use crate::list::{ListPage, Row};
use crate::surroundings::{Surroundings, Visitor};
use crate::{Page, Stretch};

/// Messages on a page.
pub const ROWS_MAX: usize = 50;

/// A page of a mailbox in the making.
#[derive(Debug)]
pub(super) struct Listing {
    mailbox: MailboxId,
    stretch: Stretch,
    /// None before the index was looked at.
    rows: Option<Vec<Found>>,
}

impl Listing {
    pub(super) fn new(mailbox: MailboxId, stretch: Stretch) -> Listing {
        Listing { mailbox, stretch, rows: None }
    }

    pub(super) fn ask(&mut self, account: AccountId, under_way: &mut usize, desk: &mut impl Desk) -> Step {
        let mailbox = self.mailbox;
        let rows = self.rows.get_or_insert_with(|| {
            let found = |info| Found::new(mailbox, info);
            let below = |uid| desk.store().messages_below(account, mailbox, uid).take(ROWS_MAX).map(found).collect();
            match self.stretch {
                Stretch::Newest => below(None),
                Stretch::Before(uid) => below(Some(Uid(uid))),
                Stretch::After(uid) => {
                    let above = desk.store().messages_from(account, mailbox, Uid(uid.saturating_add(1)));
                    let mut rows: Vec<Found> = above.take(ROWS_MAX).map(found).collect();
                    rows.reverse();
                    rows
                }
            }
        });
        rows::ask(rows, account, under_way, desk)
    }

    pub(super) fn body_arrived(&mut self, body: &Body) {
        rows::body_arrived(self.rows.as_deref_mut().unwrap_or_default(), body);
    }

    pub(super) fn page(&self, visitor: &Visitor, desk: &impl Desk) -> Reply {
        let account = visitor.account;
        let Some(mailbox) = desk.store().mailbox(account, self.mailbox) else { return answer::not_found() };
        let surroundings = Surroundings::of(visitor, desk.store(), Some(self.mailbox));
        let found = self.rows.as_deref().unwrap_or_default();
        let texts: Vec<RowText> = found.iter().map(|row| RowText::of(row, desk.now())).collect();
        let rows: Vec<Row<'_>> = texts.iter().map(RowText::row).collect();
        let path = |stretch| Page::List { mailbox: self.mailbox.0, stretch }.to_string();
        let oldest = found.last().map(|row| row.info.uid);
        let below = oldest.map_or(0, |uid| desk.store().count_below(account, self.mailbox, uid));
        let above = mailbox.messages.saturating_sub(below + found.len() as u32);
        let older = oldest.filter(|_| below > 0).map(|Uid(uid)| path(Stretch::Before(uid)));
        let newer = found.first().filter(|_| above > 0).map(|row| match above as usize {
            ..=ROWS_MAX => path(Stretch::Newest),
            _ => path(Stretch::After(row.info.uid.0)),
        });
        let extent = match found.len() as u32 {
            0 => String::new(),
            count => format!("{}–{} of {}", above + 1, above + count, mailbox.messages),
        };
        answer::page(&ListPage {
            frame: surroundings.frame(visitor, &surroundings.links()),
            title: &surroundings.name_of(self.mailbox),
            here: &path(self.stretch),
            rows: &rows,
            extent: &extent,
            newer: newer.as_deref(),
            older: older.as_deref(),
            is_trash: self.mailbox == TRASH,
            is_junk: self.mailbox == JUNK,
            progress: None,
        })
    }
}
