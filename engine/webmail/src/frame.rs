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
    /// All values, in the order in which the settings page offers them.
    pub const ALL: [Theme; 3] = [Theme::Auto, Theme::Light, Theme::Dark];

    /// The value with this name in forms and in the style sheet.
    pub fn named(name: &str) -> Option<Theme> {
        Theme::ALL.into_iter().find(|theme| theme.name() == name)
    }

    /// The name on the settings page.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Theme::Auto => "System",
            Theme::Light => "Light",
            Theme::Dark => "Dark",
        }
    }

    /// The name in forms and in the style sheet.
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
    /// With space between the lines.
    #[default]
    Comfortable,
    /// As many lines as fit.
    Compact,
}

impl Density {
    /// All values, in the order in which the settings page offers them.
    pub const ALL: [Density; 2] = [Density::Comfortable, Density::Compact];

    /// The value with this name in forms and in the style sheet.
    pub fn named(name: &str) -> Option<Density> {
        Density::ALL.into_iter().find(|density| density.name() == name)
    }

    /// The name on the settings page.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Density::Comfortable => "Comfortable",
            Density::Compact => "Compact",
        }
    }

    /// The name in forms and in the style sheet.
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
    /// The number of the mailbox.
    pub id: u32,
    /// The name that the page shows.
    pub name: &'a str,
    /// The number of unread messages.
    pub unseen: u32,
    /// Whether the page shows this mailbox.
    pub is_open: bool,
}

/// The used part of an account's quota.
#[derive(Clone, Copy, Debug)]
pub struct QuotaMeter<'a> {
    /// The used storage, as text.
    pub taken: &'a str,
    /// The quota, as text.
    pub allowed: &'a str,
    /// The use in percent, 100 at most.
    pub percent: u8,
}

impl QuotaMeter<'_> {
    /// The percentage from which the page warns the reader.
    pub const SCARCE: u8 = 90;

    pub(crate) fn is_scarce(&self) -> bool {
        self.percent >= QuotaMeter::SCARCE
    }
}

/// The flash message: the result of the last action.
#[derive(Clone, Copy, Debug)]
pub struct FlashNotice<'a> {
    /// The text.
    pub text: &'a str,
    /// Whether the action has failed.
    pub is_error: bool,
    /// The value to post to `/mail/undo`, if the action can be undone.
    pub undo: Option<&'a str>,
    /// The number of seconds in which the action can be undone, if this time is limited.
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
    /// The name of the reader's time zone. Empty: the account has no setting.
    pub zone: &'a str,
    /// The words of the search, or empty.
    pub search: &'a str,
    /// All mailboxes, in the order in which the page shows them.
    pub mailboxes: &'a [MailboxLink<'a>],
    /// The use of the quota, if the account has one.
    pub meter: Option<QuotaMeter<'a>>,
    /// The flash message, if there is one.
    pub notice: Option<FlashNotice<'a>>,
    /// Whether the reader is an administrator.
    pub is_administrator: bool,
}
