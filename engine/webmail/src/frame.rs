//! What surrounds each page of somebody who is logged in: search, mailboxes, what just happened.

/// How a page is coloured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Theme {
    /// As the reader's system is.
    #[default]
    Auto,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// All there are, in the order in which they are offered.
    pub const ALL: [Theme; 3] = [Theme::Auto, Theme::Light, Theme::Dark];

    /// The one that forms and the style call so.
    pub fn named(name: &str) -> Option<Theme> {
        Theme::ALL.into_iter().find(|theme| theme.name() == name)
    }

    /// What people call it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Theme::Auto => "As the system's",
            Theme::Light => "Light",
            Theme::Dark => "Dark",
        }
    }

    /// The name by which the style knows it.
    pub fn name(self) -> &'static str {
        match self {
            Theme::Auto => "auto",
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }
}

/// How close the lines of a list stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Density {
    /// With room between them.
    #[default]
    Comfortable,
    /// As many as fit.
    Compact,
}

impl Density {
    /// All there are, in the order in which they are offered.
    pub const ALL: [Density; 2] = [Density::Comfortable, Density::Compact];

    /// The one that forms and the style call so.
    pub fn named(name: &str) -> Option<Density> {
        Density::ALL.into_iter().find(|density| density.name() == name)
    }

    /// What people call it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Density::Comfortable => "Comfortable",
            Density::Compact => "Compact",
        }
    }

    /// The name by which the style knows it.
    pub fn name(self) -> &'static str {
        match self {
            Density::Comfortable => "comfortable",
            Density::Compact => "compact",
        }
    }
}

/// A mailbox beside the page.
#[derive(Clone, Copy, Debug)]
pub struct MailboxLink<'a> {
    /// Its number.
    pub id: u32,
    /// Its name, in the reader's language.
    pub name: &'a str,
    /// Messages in it that were not read.
    pub unseen: u32,
    /// Whether the page shows it.
    pub is_open: bool,
}

/// How much somebody has, of what he may have.
#[derive(Clone, Copy, Debug)]
pub struct Meter<'a> {
    /// What he has, in words.
    pub taken: &'a str,
    /// What he may have, in words.
    pub allowed: &'a str,
    /// How many hundredths of that he has, 100 at most.
    pub percent: u8,
}

impl Meter<'_> {
    /// From so many hundredths on little room is left.
    pub const SCARCE: u8 = 90;

    pub(crate) fn is_scarce(&self) -> bool {
        self.percent >= Meter::SCARCE
    }
}

/// What came of the action before.
#[derive(Clone, Copy, Debug)]
pub struct Notice<'a> {
    /// In words.
    pub text: &'a str,
    /// Whether something went wrong.
    pub is_error: bool,
    /// What takes it back, if anything does: to be posted to `/mail/undo`.
    pub undo: Option<&'a str>,
    /// For how many seconds that can be, if not for long.
    pub seconds: Option<u64>,
}

/// What surrounds each page.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Whose mail it is.
    pub address: &'a str,
    /// The session's token, for forms.
    pub token: &'a str,
    /// How it is coloured.
    pub theme: Theme,
    /// How close the lines of lists stand.
    pub density: Density,
    /// What was searched for, empty if nothing was.
    pub search: &'a str,
    /// All mailboxes, in the order in which they are shown.
    pub mailboxes: &'a [MailboxLink<'a>],
    /// How much its reader has, where he may not have all that there is room for.
    pub meter: Option<Meter<'a>>,
    /// What came of the action before.
    pub notice: Option<Notice<'a>>,
    /// Whether its reader sees what is for administrators.
    pub is_administrator: bool,
}
