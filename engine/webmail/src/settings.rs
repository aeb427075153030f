//! The page of what somebody may choose, and of where he is logged in.

use askama::Template;

use crate::chosen::Hold;
use crate::frame::{Density, Frame, Theme};

/// Somewhere where somebody is logged in.
#[derive(Clone, Copy, Debug)]
pub struct SessionLine<'a> {
    /// Names it in the form.
    pub key: &'a str,
    /// With what, for people: what the browser says of itself.
    pub program: &'a str,
    /// Since when and from where, for people.
    pub since: &'a str,
    /// Whether it is the one that looks at the page.
    pub is_this: bool,
}

/// The page of what somebody may choose.
///
/// Three forms are posted to `/mail/settings`: `do=save` with `name`, `signature`, `hold`, `theme` and `density`; `do=password` with `old`, `new` and `again`;
/// and either `end` with the key of a session or `do=end-others`.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "settings.html")]
pub struct SettingsPage<'a> {
    /// What surrounds it; its theme and density are the chosen ones.
    pub frame: Frame<'a>,
    /// The name that stands before the address in what he sends.
    pub name: &'a str,
    /// What stands below what he writes.
    pub signature: &'a str,
    /// How long his letters can be taken back.
    pub hold: Hold,
    /// Where he is logged in.
    pub sessions: &'a [SessionLine<'a>],
}
