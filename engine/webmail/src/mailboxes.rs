//! The page on which mailboxes are made, renamed and removed.

use askama::Template;

use crate::frame::Frame;

/// A mailbox of somebody's own.
#[derive(Clone, Copy, Debug)]
pub struct OwnMailbox<'a> {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: &'a str,
    /// Messages in it.
    pub messages: u32,
}

/// The page on which mailboxes are made, renamed and removed.
///
/// Posted to `/mail/boxes`: `do=make` with `name`; `do=rename` with `box`, its number, and `name`; `do=remove` with `box`.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "mailboxes.html")]
pub struct MailboxesPage<'a> {
    /// What surrounds it.
    pub frame: Frame<'a>,
    /// Those that may be renamed and removed, in the order in which they are shown.
    pub own: &'a [OwnMailbox<'a>],
    /// The name that was refused the last time, for which the notice says why.
    pub refused: &'a str,
}
