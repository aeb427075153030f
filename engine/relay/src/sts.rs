//! The MTA-STS policy of a domain, for domains without DNSSEC. The policy names the hosts that
//! accept the domain's mail. These hosts must use TLS, with certificates that are valid for their
//! names.
//!
//! A DNS record of the domain announces the policy and its version ([`announced`]). The policy
//! itself is a text on a web server of the domain, over TLS ([`crate::Fetch`]), and is valid for
//! the time that it states. So an attacker that removes the record, or blocks the web server, does
//! not remove a known policy.
//!
//! Invariants:
//! - A policy that is incomplete or not understood counts as no policy.
//! - The memory for a policy is bounded by [`TEXT_BYTES_MAX`].
//!
//! Implements: RFC 8461 sections 3.1, 3.2, 4.1 and 5.

use alloc::boxed::Box;
use alloc::vec::Vec;

use dns::{Name, Record};
use machine::Micros;

/// The longest policy that is read, in bytes (RFC 8461 section 3.3).
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// A policy is valid for a year at most.
const MAX_AGE_SECONDS_MAX: u64 = 31_557_600;

const ID_BYTES_MAX: usize = 32;

/// The version of a domain's policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyId(Box<str>);

/// The policy of a domain for the hosts that accept its mail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StsPolicy {
    /// The treatment of hosts that violate the policy.
    pub mode: StsMode,
    /// For how long the policy is valid.
    pub max_age: Micros,
    exchangers: Vec<Pattern>,
}

/// The mode of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StsMode {
    /// Nothing is sent to a host that violates the policy.
    Enforce,
    /// Mail is sent even to a host that violates the policy.
    Testing,
    /// The domain has no policy.
    None,
}

/// A name, or all names with exactly one more label before this name.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Pattern {
    Name(Name),
    Below(Name),
}

/// The version that the records at `_mta-sts` below a domain announce. `None`: there is no policy,
/// or the records are ambiguous.
pub fn announced(records: &[Record]) -> Option<PolicyId> {
    let mut texts = records.iter().filter_map(|record| match record {
        Record::Text(text) => {
            core::str::from_utf8(text).ok().filter(|text| text.starts_with("v=STSv1;"))
        }
        _ => None,
    });
    let (text, None) = (texts.next()?, texts.next()) else { return None };
    let id = text.split(';').find_map(|field| field.trim().strip_prefix("id="))?;
    let is_one = (1..=ID_BYTES_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_one.then(|| PolicyId(id.into()))
}

impl StsPolicy {
    /// Reads a policy. `None`: it is not valid.
    pub fn read(text: &[u8]) -> Option<StsPolicy> {
        let text = core::str::from_utf8(text).ok()?;
        let fields = || {
            text.lines()
                .filter_map(|line| line.split_once(':'))
                .map(|(key, value)| (key.trim(), value.trim()))
        };
        // If a key occurs twice, the first one counts.
        let first = |name: &str| fields().find(|(key, _)| *key == name).map(|(_, value)| value);
        let mode = match first("mode")? {
            "enforce" => StsMode::Enforce,
            "testing" => StsMode::Testing,
            "none" => StsMode::None,
            _ => return None,
        };
        let seconds: u64 = first("max_age")
            .filter(|age| age.bytes().all(|byte| byte.is_ascii_digit()))?
            .parse()
            .ok()?;
        let all = fields().filter(|(key, _)| *key == "mx").map(|(_, value)| Pattern::read(value));
        let exchangers = all.collect::<Option<Vec<Pattern>>>()?;
        let is_whole =
            first("version") == Some("STSv1") && (mode == StsMode::None || !exchangers.is_empty());
        let max_age = Micros::from_secs(seconds.min(MAX_AGE_SECONDS_MAX));
        is_whole.then_some(StsPolicy { mode, max_age, exchangers })
    }

    /// The approximate size of the policy in bytes.
    pub fn bytes(&self) -> usize {
        let of_one = |pattern: &Pattern| match pattern {
            Pattern::Name(name) | Pattern::Below(name) => {
                size_of::<Pattern>() + name.as_str().len()
            }
        };
        self.exchangers.iter().map(of_one).sum()
    }

    /// Whether a host of this name may accept the domain's mail.
    pub fn allows(&self, host: &Name) -> bool {
        let parent = host.parent();
        self.exchangers.iter().any(|pattern| match pattern {
            Pattern::Name(name) => name == host,
            Pattern::Below(name) => parent.as_ref() == Some(name),
        })
    }
}

impl Pattern {
    fn read(text: &str) -> Option<Pattern> {
        match text.strip_prefix("*.") {
            Some(below) => {
                Name::parse(below).ok().filter(|name| !name.is_root()).map(Pattern::Below)
            }
            None => Name::parse(text).ok().filter(|name| !name.is_root()).map(Pattern::Name),
        }
    }
}
