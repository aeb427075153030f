//! A user's preferences: the name and signature in sent messages, the time in which sending can be
//! undone, and the look of pages. The account has a note with the preferences, in the format of a
//! form.

use alloc::boxed::Box;
use alloc::string::{String, ToString};

use store::{AccountInfo, NOTE_BYTES_MAX, NoteChange};

use crate::form::Form;
use crate::frame::{Density, Theme};
use crate::zone::known_name;

/// The key of the note.
const KEY: &[u8] = b"settings";

/// The longest name, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 128;
/// The longest signature, in bytes.
pub(crate) const SIGNATURE_BYTES_MAX: usize = 1024;

/// The longest name of a time zone, in bytes.
const ZONE_BYTES_MAX: usize = 64;

const _: () = assert!(
    3 * (NAME_BYTES_MAX + SIGNATURE_BYTES_MAX + ZONE_BYTES_MAX) + 90 <= NOTE_BYTES_MAX,
    "a byte takes up to three characters in a form"
);

/// The time in which sending can be undone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HoldTime {
    /// Messages are sent at once, and sending cannot be undone.
    Off,
    /// Ten seconds, the default.
    #[default]
    Short,
    /// Half a minute.
    Long,
}

impl HoldTime {
    /// All values, in the order in which the settings page offers them.
    pub const ALL: [HoldTime; 3] = [HoldTime::Off, HoldTime::Short, HoldTime::Long];

    /// The value with this name in forms.
    pub fn named(name: &str) -> Option<HoldTime> {
        HoldTime::ALL.into_iter().find(|hold| hold.name() == name)
    }

    /// The name in forms.
    pub fn name(self) -> &'static str {
        match self {
            HoldTime::Off => "0",
            HoldTime::Short => "10",
            HoldTime::Long => "30",
        }
    }

    /// The name on the page.
    pub(crate) fn title(self) -> &'static str {
        match self {
            HoldTime::Off => "Off",
            HoldTime::Short => "10 seconds",
            HoldTime::Long => "30 seconds",
        }
    }

    pub(crate) fn seconds(self) -> Option<u64> {
        match self {
            HoldTime::Off => None,
            HoldTime::Short => Some(10),
            HoldTime::Long => Some(submission::HOLD_SECONDS_MAX),
        }
    }
}

/// The preferences of an account.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Preferences {
    /// The user's name, which is sent with the address.
    pub name: String,
    /// The text at the end of the user's messages.
    pub signature: String,
    /// The time in which sending can be undone.
    pub hold: HoldTime,
    /// The color scheme.
    pub theme: Theme,
    /// The density of lines.
    pub density: Density,
    /// The name of the time zone. Empty: the account has no setting.
    pub zone: String,
}

impl Preferences {
    /// The preferences in the account's note.
    pub(crate) fn of_account(account: &AccountInfo<'_>) -> Preferences {
        let form = account
            .note(KEY)
            .and_then(|note| Form::of("application/x-www-form-urlencoded", note).ok());
        form.map_or_else(Preferences::default, |form| Preferences::of(&form))
    }

    /// Reads the preferences in a form. White space in the name is collapsed.
    pub(crate) fn of(form: &Form<'_>) -> Preferences {
        let text = |name| form.text(name).unwrap_or_default();
        let seen = text("name")
            .split(|character: char| character.is_whitespace() || character.is_control());
        let mut name = String::new();
        for word in seen.filter(|word| !word.is_empty()) {
            name.push_str(if name.is_empty() { "" } else { " " });
            name.push_str(word);
        }
        Preferences {
            name,
            signature: text("signature").replace("\r\n", "\n").trim_end().to_string(),
            hold: HoldTime::named(text("hold")).unwrap_or_default(),
            theme: Theme::named(text("theme")).unwrap_or_default(),
            density: Density::named(text("density")).unwrap_or_default(),
            zone: text("zone").trim().to_string(),
        }
    }

    /// The change that stores the preferences. Errors: the text for the user, if a field is too
    /// long.
    pub(crate) fn note_change(&self) -> Result<NoteChange, &'static str> {
        if self.name.len() > NAME_BYTES_MAX {
            return Err("Your name is too long. The settings were not saved.");
        }
        if self.signature.len() > SIGNATURE_BYTES_MAX {
            return Err(
                "The signature is too long: it can have at most 1 KB. The settings were not saved.",
            );
        }
        let zone = match self.zone.as_str() {
            "" => "",
            zone => known_name(zone).filter(|zone| zone.len() <= ZONE_BYTES_MAX).ok_or(
                "There is no such time zone. Choose one from the list, such as Europe/Berlin. The settings were not saved.",
            )?,
        };
        let fields = [
            ("name", self.name.as_str()),
            ("signature", &self.signature),
            ("hold", self.hold.name()),
            ("theme", self.theme.name()),
            ("density", self.density.name()),
            ("zone", zone),
        ];
        let note = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        Ok(NoteChange::Put(KEY.into(), Box::from(note.into_bytes())))
    }

    /// The text with the signature after it (RFC 3676 section 4.3).
    pub(crate) fn signed(&self, text: &str) -> String {
        let mut signed = text.to_string();
        if !self.signature.is_empty() {
            signed.push_str(if text.is_empty() { "\n\n-- \n" } else { "\n-- \n" });
            signed.push_str(&self.signature);
            signed.push('\n');
        }
        signed
    }
}
