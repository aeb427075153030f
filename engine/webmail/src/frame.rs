//! The data of the layout around each page of a session: search, mailboxes and the flash message.

/// The color scheme of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Theme {
    /// The scheme of the reader's system.
    #[default]
    Auto,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// All values, in the order in which the page offers them.
    pub const ALL: [Theme; 3] = [Theme::Auto, Theme::Light, Theme::Dark];

    /// The value with this name in forms and in the style sheet.
    pub fn named(name: &str) -> Option<Theme> {
        Theme::ALL.into_iter().find(|theme| theme.name() == name)
    }

    /// Its name on the page.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Theme::Auto => "System",
            Theme::Light => "Light",
            Theme::Dark => "Dark",
        }
    }

    /// Its name in forms and in the style sheet.
    pub fn name(self) -> &'static str {
        match self {
            Theme::Auto => "auto",
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }
}

/// The density of lines in a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Density {
    /// With space between them.
    #[default]
    Comfortable,
    /// As many as fit.
    Compact,
}

impl Density {
    /// All values, in the order in which the page offers them.
    pub const ALL: [Density; 2] = [Density::Comfortable, Density::Compact];

    /// The value with this name in forms and in the style sheet.
    pub fn named(name: &str) -> Option<Density> {
        Density::ALL.into_iter().find(|density| density.name() == name)
    }

    /// Its name on the page.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Density::Comfortable => "Comfortable",
            Density::Compact => "Compact",
        }
    }

    /// Its name in forms and in the style sheet.
    pub fn name(self) -> &'static str {
        match self {
            Density::Comfortable => "comfortable",
            Density::Compact => "compact",
        }
    }
}

/// A mailbox in the side bar.
#[derive(Clone, Copy, Debug)]
pub struct MailboxLink<'a> {
    /// Its number.
    pub id: u32,
    /// Its name for readers.
    pub name: &'a str,
    /// Unread messages in it.
    pub unseen: u32,
    /// Whether the page shows it.
    pub is_open: bool,
}

/// How much of its quota an account uses.
#[derive(Clone, Copy, Debug)]
pub struct QuotaMeter<'a> {
    /// Its use, as text.
    pub taken: &'a str,
    /// Its quota, as text.
    pub allowed: &'a str,
    /// The use in percent, 100 at most.
    pub percent: u8,
}

impl QuotaMeter<'_> {
    /// From this percentage on the page warns.
    pub const SCARCE: u8 = 90;

    pub(crate) fn is_scarce(&self) -> bool {
        self.percent >= QuotaMeter::SCARCE
    }
}

/// The flash message: the result of the last action.
#[derive(Clone, Copy, Debug)]
pub struct FlashNotice<'a> {
    /// Its text.
    pub text: &'a str,
    /// Whether the action has failed.
    pub is_error: bool,
    /// The value to post to `/mail/undo`, if the action can be undone.
    pub undo: Option<&'a str>,
    /// For how many seconds it can be undone, if that time is short.
    pub seconds: Option<u64>,
}

/// The data of the layout.
#[derive(Clone, Copy, Debug)]
pub struct PageFrame<'a> {
    /// The account's address.
    pub address: &'a str,
    /// The session's token, for forms.
    pub token: &'a str,
    /// The color scheme.
    pub theme: Theme,
    /// The density of lists.
    pub density: Density,
    /// The search words; empty if the page shows no search.
    pub search: &'a str,
    /// All mailboxes, in the order in which they are shown.
    pub mailboxes: &'a [MailboxLink<'a>],
    /// The use of the quota, if the account has one.
    pub meter: Option<QuotaMeter<'a>>,
    /// The flash message.
    pub notice: Option<FlashNotice<'a>>,
    /// Whether the reader is an administrator.
    pub is_administrator: bool,
}
