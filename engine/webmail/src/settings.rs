//! The settings page: preferences and sessions.

use askama::Template;

use crate::frame::{Density, PageFrame, Theme};
use crate::preferences::HoldTime;

/// A session of the account.
#[derive(Clone, Copy, Debug)]
pub struct SessionLine<'a> {
    /// Names it in the form.
    pub key: &'a str,
    /// The client's program, as text.
    pub program: &'a str,
    /// Since when and from where, as text.
    pub since: &'a str,
    /// Whether it is the session of the page.
    pub is_this: bool,
}

/// The settings page.
///
/// Three forms post to `/mail/settings`: `do=save` with `name`, `signature`, `hold`, `theme` and
/// `density`; `do=password` with `old`, `new` and `again`; and either `end` with the key of a
/// session or `do=end-others`.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "settings.html")]
pub struct SettingsPage<'a> {
    /// The page layout; its theme and density are the preferences.
    pub frame: PageFrame<'a>,
    /// The name before the user's address.
    pub name: &'a str,
    /// The text below the user's messages.
    pub signature: &'a str,
    /// How long sending can be undone.
    pub hold: HoldTime,
    /// The user's sessions.
    pub sessions: &'a [SessionLine<'a>],
}
