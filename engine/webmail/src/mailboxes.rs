//! The page that creates, renames and removes mailboxes.

use askama::Template;

use crate::frame::PageFrame;

/// One of the user's own mailboxes.
#[derive(Clone, Copy, Debug)]
pub struct OwnMailbox<'a> {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: &'a str,
    /// Messages in it.
    pub messages: u32,
}

/// The page that creates, renames and removes mailboxes.
///
/// Its forms post to `/mail/boxes`: `do=make` with `name`; `do=rename` with `box`, its number, and
/// `name`; `do=remove` with `box`.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "mailboxes.html")]
pub struct MailboxesPage<'a> {
    /// The page layout.
    pub frame: PageFrame<'a>,
    /// The user's own mailboxes, in the order in which the page lists them.
    pub own: &'a [OwnMailbox<'a>],
    /// The name that was refused last. The flash message says why.
    pub refused: &'a str,
}
