//! The page that creates, renames and removes mailboxes.

use askama::Template;

use crate::frame::PageFrame;

/// A mailbox that the user has created.
#[derive(Clone, Copy, Debug)]
pub struct OwnMailbox<'a> {
    /// The number of the mailbox.
    pub id: u32,
    /// The name of the mailbox.
    pub name: &'a str,
    /// The number of its messages.
    pub messages: u32,
}

/// The page that creates, renames and removes mailboxes.
///
/// The forms of the page post to `/mail/boxes`: `do=make` with `name`, `do=rename` with `box` and
/// `name`, and `do=remove` with `box`. The value of `box` is the number of a mailbox.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "mailboxes.html")]
pub struct MailboxesPage<'a> {
    /// The page layout.
    pub frame: PageFrame<'a>,
    /// The mailboxes that the user has created, in the order in which the page lists them.
    pub own: &'a [OwnMailbox<'a>],
    /// The name that was refused last. The flash message shows the reason.
    pub refused: &'a str,
}
