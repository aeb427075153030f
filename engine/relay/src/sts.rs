//! What a domain says of the hosts that take its mail, where names are not authenticated (MTA-STS): which they are, and that they speak TLS with certificates for their names.
//!
//! A record of the domain's announces that it has such a policy, and which version of it ([`announced`]). The policy itself is a text at a web server of the domain's own, over TLS ([`crate::Fetch`]),
//! and holds for as long as it says: whoever takes the record away, or the web server, does not take away what is known.
//!
//! Invariants:
//! - A policy that is not whole, or not understood, is none.
//! - What is kept of one is bounded, by [`TEXT_BYTES_MAX`].
//!
//! Answers to: RFC 8461 sections 3.1, 3.2, 4.1 and 5.

use alloc::boxed::Box;
use alloc::vec::Vec;

use dns::{Name, Record};
use machine::Micros;

/// The longest policy that is read, in bytes (RFC 8461 section 3.3).
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// A policy holds for a year at most.
const MAX_AGE_SECONDS_MAX: u64 = 31_557_600;

const ID_BYTES_MAX: usize = 32;

/// Which version of a domain's policy it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyId(Box<str>);

/// What a domain says of the hosts that take its mail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// What is to be done with the rest.
    pub mode: Mode,
    /// For how long it holds.
    pub max_age: Micros,
    exchangers: Vec<Pattern>,
}

/// What is to be done with a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Nothing goes to a host that does not keep to it.
    Enforce,
    /// It goes all the same.
    Testing,
    /// There is none.
    None,
}

/// A name, or all that have one label before it.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Pattern {
    Name(Name),
    Below(Name),
}

/// The version that the records at `_mta-sts` below a domain announce. `None`: it has no policy, or nobody can tell which.
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

impl Policy {
    /// Reads one. `None`: it is none.
    pub fn read(text: &[u8]) -> Option<Policy> {
        let text = core::str::from_utf8(text).ok()?;
        let fields = || {
            text.lines()
                .filter_map(|line| line.split_once(':'))
                .map(|(key, value)| (key.trim(), value.trim()))
        };
        // Of what stands twice the first counts.
        let first = |name: &str| fields().find(|(key, _)| *key == name).map(|(_, value)| value);
        let mode = match first("mode")? {
            "enforce" => Mode::Enforce,
            "testing" => Mode::Testing,
            "none" => Mode::None,
            _ => return None,
        };
        let seconds: u64 = first("max_age")
            .filter(|age| age.bytes().all(|byte| byte.is_ascii_digit()))?
            .parse()
            .ok()?;
        let all = fields().filter(|(key, _)| *key == "mx").map(|(_, value)| Pattern::read(value));
        let exchangers = all.collect::<Option<Vec<Pattern>>>()?;
        let is_whole =
            first("version") == Some("STSv1") && (mode == Mode::None || !exchangers.is_empty());
        let max_age = Micros::from_secs(seconds.min(MAX_AGE_SECONDS_MAX));
        is_whole.then_some(Policy { mode, max_age, exchangers })
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let of_one = |pattern: &Pattern| match pattern {
            Pattern::Name(name) | Pattern::Below(name) => {
                size_of::<Pattern>() + name.as_str().len()
            }
        };
        self.exchangers.iter().map(of_one).sum()
    }

    /// Whether a host of this name may take the domain's mail.
    pub fn allows(&self, host: &Name) -> bool {
        self.exchangers.iter().any(|pattern| match pattern {
            Pattern::Name(name) => name == host,
            Pattern::Below(name) => host.parent().is_some_and(|above| above == *name),
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
