//! `[limits]`: the quotas and sending limits of accounts without their own in `[[user]]`.

use alloc::format;

use super::document::{Item, Section, UncheckedSection};
use super::error::ConfigurationError;
use super::keys::keys;
use super::values::Value;

/// The smallest quota, in bytes.
const QUOTA_MIN: u64 = 1 << 20;
/// The default sending limits of an account.
const MESSAGES_PER_DAY: u32 = 2_000;
const NEW_RECIPIENTS_PER_DAY: u32 = 500;

keys! {
    KEYS, described, "[limits]", [],
    "Limits of every account. A `[[user]]` section may have its own. They are read at each start.";
    "quota" {
        form: "size",
        default: "half of the disk",
        range: "at least `\"1M\"`, or `\"unlimited\"`",
        example: r#""2G""#,
        meaning: "The size that the mailboxes of an account may have together. Half as much may \
            wait in its outbox. The default applies once half of the disk is in use. \
            `\"unlimited\"` means as much as the disk has space for.",
    }
    "messages_per_day" {
        form: "integer or string",
        default: MESSAGES_PER_DAY,
        range: format!("1 to {PER_DAY_MAX}, or `\"unlimited\"`"),
        example: "2_000",
        meaning: "The messages that an account may send in a day (UTC), on ports 465 and 587 and \
            in the webmail. Further ones are refused until the next day (`451 4.7.0`).",
    }
    "new_recipients_per_day" {
        form: "integer or string",
        default: NEW_RECIPIENTS_PER_DAY,
        range: format!("1 to {PER_DAY_MAX}, or `\"unlimited\"`"),
        example: "500",
        meaning: "The recipients on other servers to which an account may write in a day (UTC) \
            without having written to them before.",
    }
}

/// The limits of every account that has no limits of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The quota of the account's mailboxes.
    pub quota: Quota,
    /// The maximum number of messages that the account may send in a day.
    pub messages_per_day: PerDay,
    /// The maximum number of new external recipients that the account may write to in a day.
    pub new_recipients_per_day: PerDay,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            quota: Quota::default(),
            messages_per_day: PerDay::Most(MESSAGES_PER_DAY),
            new_recipients_per_day: PerDay::Most(NEW_RECIPIENTS_PER_DAY),
        }
    }
}

/// A limit on actions in a day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PerDay {
    /// No limit.
    Unlimited,
    /// At most this number, from 1 to [`PER_DAY_MAX`].
    Most(u32),
}

/// The highest limit that a configuration may set.
pub const PER_DAY_MAX: u32 = 1_000_000;

impl PerDay {
    /// The limit as a number. `None` if there is no limit.
    pub fn most(self) -> Option<u32> {
        if let PerDay::Most(most) = self { Some(most) } else { None }
    }
}

/// The quota of an account's mailboxes. The quota of its outbox is half as large.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Quota {
    /// Half of the disk, so that one account cannot fill it for all others.
    #[default]
    HalfOfDisk,
    /// As much as the disk has space for.
    Unlimited,
    /// This number of bytes, at least 1 MiB.
    Octets(u64),
}

impl Quota {
    /// The quota in bytes. `None` if only the space of the disk is the limit. `disk_bytes`: the
    /// size of the disk.
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
            units.into_iter().find_map(|(suffix, bits)| Some((text.strip_suffix(suffix)?, bits)));
        let (number, bits) = unit.ok_or("the unit must be M, G or T")?;
        let digits = Some(number).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let number: u64 = digits
            .and_then(|digits| digits.parse().ok())
            .ok_or("the number before the unit is missing")?;
        match number.checked_mul(1 << bits) {
            Some(octets @ QUOTA_MIN..=0xFFFF_FFFF_FFFF) => Ok(Quota::Octets(octets)),
            Some(0) => Err("the size is too small"),
            _ => Err("the size is larger than any disk"),
        }
    }
}

pub(super) fn limits(table: UncheckedSection<'_, '_>) -> Result<Limits, ConfigurationError> {
    let section = &table.section(KEYS)?;
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

/// The value of `key`, if it is present.
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
            format_args!("`{key}` is out of range"),
            format_args!("a number from 1 to {PER_DAY_MAX}, or \"unlimited\""),
        )),
    }
}
