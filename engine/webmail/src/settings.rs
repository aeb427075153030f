//! The settings page: preferences and sessions.

use askama::Template;

use crate::frame::{Density, PageFrame, Theme};
use crate::preferences::HoldTime;

/// A session of the account.
#[derive(Clone, Copy, Debug)]
pub struct SessionLine<'a> {
    /// The key of the session in the form.
    pub key: &'a str,
    /// The client's program, as text.
    pub program: &'a str,
    /// The time and the client's address of the login, as text.
    pub since: &'a str,
    /// Whether this session has requested the page.
    pub is_this: bool,
}

/// The settings page.
///
/// Three forms post to `/mail/settings`: `do=save` with `name`, `signature`, `hold`, `theme`,
/// `density` and `zone`; `do=password` with `old`, `new` and `again`; and either `end` with the key
/// of a session or `do=end-others`. The script posts `do=zone` with the browser's `zone`.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "settings.html")]
pub struct SettingsPage<'a> {
    /// The page layout. Its theme and density are the current preferences.
    pub frame: PageFrame<'a>,
    /// The user's name, which is sent with the address.
    pub name: &'a str,
    /// The text at the end of the user's messages.
    pub signature: &'a str,
    /// The time in which sending can be undone.
    pub hold: HoldTime,
    /// The name of the user's time zone, or empty.
    pub zone: &'a str,
    /// The user's sessions.
    pub sessions: &'a [SessionLine<'a>],
}
