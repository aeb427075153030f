//! The reverse path of a forwarded message: the Sender Rewriting Scheme. The forwarding domain
//! becomes responsible for the message (SPF), and bounces come back through it.
//!
//! ```text
//!   bob@there.test
//!     ──▸  SRS0=HASH=DAY=there.test=bob@us.test
//!   SRS0=theirs=DAY=there.test=bob@first.test
//!     ──▸  SRS1=HASHDAY=first.test==theirs=DAY=there.test=bob@us.test
//!   SRS1=other=first.test==theirs=…@second.test
//!     ──▸  SRS1=HASHDAY=first.test==theirs=…@us.test
//! ```
//! The hash is keyed, so only this server can make it. It does not depend on case, since some
//! servers change the case. DAY is the day on which the address was made. Only the first forwarder
//! reads the day of an SRS0 address. So each later forwarder adds its own day after the hash. An
//! address that was rewritten before keeps only its first forwarder, so it does not grow with each
//! forwarder.
//!
//! Invariants:
//! - A path is rewritten only if the result is valid: a local part has at most 64 octets (RFC 5321
//!   section 4.5.3.1.1).
//! - An address that was signed with another key, was changed, or is older than [`DAYS`] stands for
//!   no sender.

use alloc::format;
use alloc::string::String;

use machine::UnixTime;
use siphasher::sip::SipHasher24;

use crate::outgoing_message::is_reverse_path;

/// The days that a bounce may take to come back.
pub const DAYS: u64 = 21;
/// The number of days that can be distinguished.
const DAYS_DISTINGUISHED: u64 = 1024;
const SECONDS_A_DAY: u64 = 24 * 3600;
/// The number of characters in a hash. Each has five bits.
const HASH_CHARACTERS: u32 = 6;
const DAY_CHARACTERS: u32 = 2;
/// The alphabet of RFC 4648 section 6: case does not matter.
const CHARACTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The key of the hashes.
pub struct SrsKey([u8; 16]);

/// The result of restoring an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Restored {
    /// The address was not rewritten.
    Plain,
    /// The address was rewritten here, and stands for this address.
    Of(String),
    /// The address has the form of a rewritten one, but was not made here, or too long ago.
    Nobody,
}

impl SrsKey {
    /// A key from secret bytes, which are the same in each life of the machine.
    pub fn new(secret: [u8; 16]) -> SrsKey {
        SrsKey(secret)
    }

    /// Rewrites a path, without angle brackets, for a domain of ours. `None`: the result would not
    /// be valid.
    pub fn rewrite(&self, path: &str, domain: &str, now: UnixTime) -> Option<String> {
        let (local_part, its_domain) = path.rsplit_once('@')?;
        let day = characters(day_of(now), DAY_CHARACTERS);
        let rewritten = match first_of(local_part, its_domain) {
            Some((first, rest)) => {
                let keyed_hash = self.keyed_hash(&["1", &day].concat(), first, rest);
                format!("SRS1={keyed_hash}{day}={first}={rest}@{domain}")
            }
            None => {
                format!(
                    "SRS0={}={day}={its_domain}={local_part}@{domain}",
                    self.keyed_hash(&day, its_domain, local_part)
                )
            }
        };
        is_reverse_path(&rewritten).then_some(rewritten)
    }

    /// The address that a local part at one of our domains stands for.
    pub fn restore(&self, local_part: &str, now: UnixTime) -> Restored {
        let Some((kind, after_scheme)) = parse_scheme(local_part) else { return Restored::Plain };
        let restored = match kind {
            SrsForm::Plain => self.restore_plain(after_scheme, now),
            SrsForm::Rewritten => self.restore_rewritten(after_scheme, now),
        };
        restored.filter(|path| is_reverse_path(path)).map_or(Restored::Nobody, Restored::Of)
    }

    fn restore_plain(&self, after_scheme: &str, now: UnixTime) -> Option<String> {
        let mut parts = after_scheme.splitn(4, '=');
        let (keyed_hash, day, domain, local_part) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_ours = self.keyed_hash(day, domain, local_part).eq_ignore_ascii_case(keyed_hash);
        (is_ours && is_recent(day, now)?).then(|| format!("{local_part}@{domain}"))
    }

    fn restore_rewritten(&self, after_scheme: &str, now: UnixTime) -> Option<String> {
        let mut parts = after_scheme.splitn(3, '=');
        let (hash_and_day, first, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let (keyed_hash, day) = hash_and_day.split_at_checked(HASH_CHARACTERS as usize)?;
        let is_ours =
            self.keyed_hash(&["1", day].concat(), first, rest).eq_ignore_ascii_case(keyed_hash);
        (is_ours && is_recent(day, now)?).then(|| format!("SRS0{rest}@{first}"))
    }

    /// The keyed hash that protects these parts, as text.
    fn keyed_hash(&self, day: &str, domain: &str, rest: &str) -> String {
        let text = format!("{day}={domain}={rest}").to_ascii_lowercase();
        characters(self.hash(text.as_bytes()), HASH_CHARACTERS)
    }

    /// The keyed hash of a text (SipHash-2-4), which only this server can compute.
    pub(crate) fn hash(&self, text: &[u8]) -> u64 {
        SipHasher24::new_with_key(&self.0).hash(text)
    }
}

/// The form of a rewritten address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SrsForm {
    Plain,
    Rewritten,
}

/// Whether a local part claims to be rewritten.
pub fn is_rewritten(local_part: &str) -> bool {
    parse_scheme(local_part).is_some()
}

/// The form of a rewritten local part, and the text after the name of the scheme and its separator.
/// `None`: the local part was not rewritten.
fn parse_scheme(local_part: &str) -> Option<(SrsForm, &str)> {
    let (name, rest) = local_part.split_at_checked(4)?;
    let kind = match name {
        _ if name.eq_ignore_ascii_case("SRS0") => SrsForm::Plain,
        _ if name.eq_ignore_ascii_case("SRS1") => SrsForm::Rewritten,
        _ => return None,
    };
    Some((kind, rest.strip_prefix(['=', '-', '+'])?))
}

/// The first forwarder of an address, and the part that only this forwarder reads. `None`: the
/// address was not rewritten.
fn first_of<'a>(local_part: &'a str, domain: &'a str) -> Option<(&'a str, &'a str)> {
    match parse_scheme(local_part)?.0 {
        SrsForm::Plain => Some((domain, local_part.get(4..)?)),
        SrsForm::Rewritten => {
            let mut parts = local_part.get(5..)?.splitn(3, '=');
            let (_, first, rest) = (parts.next()?, parts.next()?, parts.next()?);
            // The part begins with the forwarder's separator.
            rest.starts_with(['=', '-', '+']).then_some((first, rest))
        }
    }
}

/// Whether a day is recent enough. A day in the future comes from a clock that was wrong, and
/// counts as the oldest day. `None`: the text is not a valid day.
fn is_recent(day: &str, now: UnixTime) -> Option<bool> {
    let age = (DAYS_DISTINGUISHED + day_of(now) - number(day)?) % DAYS_DISTINGUISHED;
    Some(age <= DAYS)
}

fn day_of(now: UnixTime) -> u64 {
    now.seconds() / SECONDS_A_DAY % DAYS_DISTINGUISHED
}

/// The lowest bits of a number, five in each character.
pub(crate) fn characters(number: u64, count: u32) -> String {
    let character =
        |at: u32| CHARACTERS.get((number >> (5 * at) & 31) as usize).copied().unwrap_or_default();
    (0..count).rev().map(|at| char::from(character(at))).collect()
}

fn number(text: &str) -> Option<u64> {
    let value = |byte: u8| CHARACTERS.iter().position(|own| own.eq_ignore_ascii_case(&byte));
    if text.len() != DAY_CHARACTERS as usize {
        return None;
    }
    text.bytes().try_fold(0, |number, byte| Some(number * 32 + value(byte)? as u64))
}
