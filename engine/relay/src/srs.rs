//! Who a letter comes from that is sent on: the Sender Rewriting Scheme, so that the domain that sends a letter on speaks for it (SPF), and what is said of it comes back.
//!
//! ```text
//!   bob@there.test                               ──▸  SRS0=SEAL=DAY=there.test=bob@us.test
//!   SRS0=theirs=DAY=there.test=bob@first.test    ──▸  SRS1=SEALDAY=first.test==theirs=DAY=there.test=bob@us.test
//!   SRS1=other=first.test==theirs=…@second.test  ──▸  SRS1=SEALDAY=first.test==theirs=…@us.test
//! ```
//! The seal is a keyed hash that we alone can make; it does not depend on case, since not everybody
//! leaves that alone. The day is what the address was made on. Only who rewrote an address first
//! reads its day, so each who rewrites it again adds a day of its own, behind the seal. An address
//! that was rewritten before keeps the first one who did so, and no others: so it does not grow
//! with each who sends a letter on.
//!
//! Invariants:
//! - What is rewritten is a valid path, or is not rewritten: a local part has 64 octets at most (RFC 5321 section 4.5.3.1.1).
//! - What was sealed with another key, or changed, is nobody's; so is what is older than [`DAYS`].

use alloc::format;
use alloc::string::String;

use machine::UnixTime;
use siphasher::sip::SipHasher24;

use crate::letter::is_reverse_path;

/// How long what is said of a letter may take to come back.
pub const DAYS: u64 = 21;
/// Days that can be told from each other.
const DAYS_TOLD: u64 = 1024;
const SECONDS_A_DAY: u64 = 24 * 3600;
/// Characters of a seal, of five bits each.
const SEAL_CHARACTERS: u32 = 6;
const DAY_CHARACTERS: u32 = 2;
/// As RFC 4648 section 6 has them: case does not matter.
const CHARACTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// What seals are made with.
pub struct Key([u8; 16]);

/// What an address is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Restored {
    /// One that was not rewritten.
    Plain,
    /// One that was rewritten here, from this one.
    Of(String),
    /// It says that it was rewritten here, and was not, or too long ago.
    Nobody,
}

impl Key {
    /// From bytes that nobody else knows, and that are the same in each life of the machine.
    pub fn new(secret: [u8; 16]) -> Key {
        Key(secret)
    }

    /// A path, without angle brackets, as a domain of ours says it. `None`: it cannot say it so.
    pub fn rewrite(&self, path: &str, domain: &str, now: UnixTime) -> Option<String> {
        let (local_part, its_domain) = path.rsplit_once('@')?;
        let day = characters(day_of(now), DAY_CHARACTERS);
        let rewritten = match first_of(local_part, its_domain) {
            Some((first, rest)) => {
                let seal = self.seal(&["1", &day].concat(), first, rest);
                format!("SRS1={seal}{day}={first}={rest}@{domain}")
            }
            None => {
                format!(
                    "SRS0={}={day}={its_domain}={local_part}@{domain}",
                    self.seal(&day, its_domain, local_part)
                )
            }
        };
        is_reverse_path(&rewritten).then_some(rewritten)
    }

    /// What a local part at one of our domains was before it was rewritten.
    pub fn restore(&self, local_part: &str, now: UnixTime) -> Restored {
        let Some((kind, sealed)) = sealed_in(local_part) else { return Restored::Plain };
        let restored = match kind {
            Kind::Plain => self.restore_plain(sealed, now),
            Kind::Rewritten => self.restore_rewritten(sealed, now),
        };
        restored.filter(|path| is_reverse_path(path)).map_or(Restored::Nobody, Restored::Of)
    }

    fn restore_plain(&self, sealed: &str, now: UnixTime) -> Option<String> {
        let mut parts = sealed.splitn(4, '=');
        let (seal, day, domain, local_part) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_ours = self.seal(day, domain, local_part).eq_ignore_ascii_case(seal);
        (is_ours && is_recent(day, now)?).then(|| format!("{local_part}@{domain}"))
    }

    fn restore_rewritten(&self, sealed: &str, now: UnixTime) -> Option<String> {
        let mut parts = sealed.splitn(3, '=');
        let (sealed_day, first, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let (seal, day) = sealed_day.split_at_checked(SEAL_CHARACTERS as usize)?;
        let is_ours = self.seal(&["1", day].concat(), first, rest).eq_ignore_ascii_case(seal);
        (is_ours && is_recent(day, now)?).then(|| format!("SRS0{rest}@{first}"))
    }

    /// What nobody else can make of these.
    fn seal(&self, day: &str, domain: &str, rest: &str) -> String {
        let sealed = format!("{day}={domain}={rest}").to_ascii_lowercase();
        characters(self.hash(sealed.as_bytes()), SEAL_CHARACTERS)
    }

    /// The keyed hash of a text (SipHash-2-4), which only this server can compute.
    pub(crate) fn hash(&self, text: &[u8]) -> u64 {
        SipHasher24::new_with_key(&self.0).hash(text)
    }
}

/// What an address of ours was made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Plain,
    Rewritten,
}

/// Whether a local part says that somebody has rewritten it.
pub fn is_rewritten(local_part: &str) -> bool {
    sealed_in(local_part).is_some()
}

/// What stands behind the name of the scheme and its separator.
fn sealed_in(local_part: &str) -> Option<(Kind, &str)> {
    let (name, rest) = local_part.split_at_checked(4)?;
    let kind = match name {
        _ if name.eq_ignore_ascii_case("SRS0") => Kind::Plain,
        _ if name.eq_ignore_ascii_case("SRS1") => Kind::Rewritten,
        _ => return None,
    };
    Some((kind, rest.strip_prefix(['=', '-', '+'])?))
}

/// Who has rewritten an address first, and what is his alone to read; none: nobody has rewritten it.
fn first_of<'a>(local_part: &'a str, domain: &'a str) -> Option<(&'a str, &'a str)> {
    match sealed_in(local_part)?.0 {
        Kind::Plain => Some((domain, local_part.get(4..)?)),
        Kind::Rewritten => {
            let mut parts = local_part.get(5..)?.splitn(3, '=');
            let (_, first, rest) = (parts.next()?, parts.next()?, parts.next()?);
            // What is his begins with his separator.
            rest.starts_with(['=', '-', '+']).then_some((first, rest))
        }
    }
}

/// Whether a day is not too long ago. One of the future was made by a clock that went wrong since:
/// it is the oldest there can be. `None`: it is no day.
fn is_recent(day: &str, now: UnixTime) -> Option<bool> {
    let age = (DAYS_TOLD + day_of(now) - number(day)?) % DAYS_TOLD;
    Some(age <= DAYS)
}

fn day_of(now: UnixTime) -> u64 {
    now.seconds() / SECONDS_A_DAY % DAYS_TOLD
}

/// The lowest bits of a number, five a character.
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
