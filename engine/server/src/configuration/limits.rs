//! `[limits]`: how much accounts may have, unless a `[[user]]` says otherwise.

use super::document::Section;
use super::error::ConfigurationError;
use super::values::Value;

/// The least that an account can be allowed, in octets.
const QUOTA_MIN: u64 = 1 << 20;

/// What holds for every account of which `[[user]]` says nothing else.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// How much it may have in its mailboxes.
    pub quota: Quota,
}

/// How much an account may have in its mailboxes, its outbox left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Quota {
    /// As much as the disk has room for.
    #[default]
    Unlimited,
    /// So many octets, at least 1 MiB.
    Octets(u64),
}

impl Quota {
    /// In octets. `None`: as much as the disk has room for.
    pub fn octets(self) -> Option<u64> {
        if let Quota::Octets(octets) = self { Some(octets) } else { None }
    }
}

impl Value for Quota {
    const FORM: &'static str = "a size of at least 1M, such as \"500M\" or \"2G\", or \"unlimited\"";

    fn parse(text: &str) -> Result<Quota, &'static str> {
        if text == "unlimited" {
            return Ok(Quota::Unlimited);
        }
        let units = [(['M', 'm'], 20), (['G', 'g'], 30), (['T', 't'], 40)];
        let unit = units.into_iter().find_map(|(letters, bits)| Some((text.strip_suffix(letters)?, bits)));
        let (number, bits) = unit.ok_or("the unit is missing: M, G or T")?;
        let digits = Some(number).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let number: u64 = digits.and_then(|digits| digits.parse().ok()).ok_or("before the unit stands no number")?;
        match number.checked_mul(1 << bits) {
            Some(octets @ QUOTA_MIN..=0xFFFF_FFFF_FFFF) => Ok(Quota::Octets(octets)),
            Some(0) => Err("nothing fits into that"),
            _ => Err("that is more than any disk has"),
        }
    }
}

pub(super) fn limits(section: &Section<'_, '_>) -> Result<Limits, ConfigurationError> {
    section.refuse_unknown(&["quota"])?;
    let quota = section.optional("quota").map(|item| item.parsed()).transpose()?.unwrap_or_default();
    Ok(Limits { quota })
}
