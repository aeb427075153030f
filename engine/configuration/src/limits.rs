//! `[limits]`: how much accounts may have and send, unless a `[[user]]` says otherwise.

use super::document::{Item, Section};
use super::error::ConfigurationError;
use super::values::Value;

/// The least that an account can be allowed, in octets.
const QUOTA_MIN: u64 = 1 << 20;

/// What holds for every account of which `[[user]]` says nothing else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How much it may have in its mailboxes.
    pub quota: Quota,
    /// How many messages it may send in a day.
    pub messages_per_day: PerDay,
    /// To how many people elsewhere it may write in a day to whom it has not before.
    pub new_recipients_per_day: PerDay,
}

impl Default for Limits {
    fn default() -> Limits {
        let (messages_per_day, new_recipients_per_day) = (PerDay::Most(2000), PerDay::Most(500));
        Limits { quota: Quota::default(), messages_per_day, new_recipients_per_day }
    }
}

/// How often something may be done in a day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PerDay {
    /// However often.
    Unlimited,
    /// So often, at least once and at most [`PER_DAY_MAX`] times.
    Most(u32),
}

/// The highest limit that is one.
pub const PER_DAY_MAX: u32 = 1_000_000;

impl PerDay {
    /// `None`: however often.
    pub fn most(self) -> Option<u32> {
        if let PerDay::Most(most) = self { Some(most) } else { None }
    }
}

/// How much an account may have in its mailboxes. Half as much may wait in its outbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Quota {
    /// Half of the disk, so that no account fills it for all others.
    #[default]
    HalfOfDisk,
    /// As much as the disk has room for.
    Unlimited,
    /// So many octets, at least 1 MiB.
    Octets(u64),
}

impl Quota {
    /// In octets. `disk_bytes`: the size of the disk. `None`: as much as the disk has room for.
    pub fn octets(self, disk_bytes: u64) -> Option<u64> {
        match self {
            Quota::HalfOfDisk => Some(disk_bytes / 2),
            Quota::Unlimited => None,
            Quota::Octets(octets) => Some(octets),
        }
    }
}

impl Value for Quota {
    const FORM: &'static str =
        "a size of at least 1M, such as \"500M\" or \"2G\", or \"unlimited\"";

    fn parse(text: &str) -> Result<Quota, &'static str> {
        if text == "unlimited" {
            return Ok(Quota::Unlimited);
        }
        let units = [(['M', 'm'], 20), (['G', 'g'], 30), (['T', 't'], 40)];
        let unit =
            units.into_iter().find_map(|(letters, bits)| Some((text.strip_suffix(letters)?, bits)));
        let (number, bits) = unit.ok_or("the unit must be M, G or T")?;
        let digits = Some(number).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let number: u64 = digits
            .and_then(|digits| digits.parse().ok())
            .ok_or("before the unit stands no number")?;
        match number.checked_mul(1 << bits) {
            Some(octets @ QUOTA_MIN..=0xFFFF_FFFF_FFFF) => Ok(Quota::Octets(octets)),
            Some(0) => Err("nothing fits into that"),
            _ => Err("that is more than any disk has"),
        }
    }
}

pub(super) fn limits(section: &Section<'_, '_>) -> Result<Limits, ConfigurationError> {
    section.refuse_unknown(&["quota", "messages_per_day", "new_recipients_per_day"])?;
    let usual = Limits::default();
    Ok(Limits {
        quota: section
            .optional("quota")
            .map(|item| item.parsed())
            .transpose()?
            .unwrap_or(usual.quota),
        messages_per_day: per_day(section, "messages_per_day")?.unwrap_or(usual.messages_per_day),
        new_recipients_per_day: per_day(section, "new_recipients_per_day")?
            .unwrap_or(usual.new_recipients_per_day),
    })
}

/// The value of `key`, if it is there.
pub(super) fn per_day(
    section: &Section<'_, '_>,
    key: &str,
) -> Result<Option<PerDay>, ConfigurationError> {
    let Some(item) = section.optional(key) else { return Ok(None) };
    let number = |item: &Item<'_, '_>| item.integer().and_then(|number| u32::try_from(number).ok());
    match number(&item) {
        Some(most @ 1..=PER_DAY_MAX) => Ok(Some(PerDay::Most(most))),
        None if item.is("unlimited") => Ok(Some(PerDay::Unlimited)),
        _ => Err(item.error(
            format_args!("`{key}` is no limit"),
            format_args!("a number from 1 to {PER_DAY_MAX}, or \"unlimited\""),
        )),
    }
}
