//! What addresses are made of: numbers, keys of messages, the keys of a query, which notice a page is to tell, and where somebody is sent.
//!
//! Answers to: RFC 9051 section 2.3.1.1 (a UID is never 0); the URL Standard section 5.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use store::{MailboxId, Uid};

use crate::{NotFound, Page};

/// Names a message in addresses and forms: `{mailbox}.{uid}`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// The number of its mailbox, never 0.
    pub mailbox: u32,
    /// Its UID there, never 0.
    pub uid: u32,
}

impl Key {
    /// As the store speaks of it.
    pub(crate) fn in_store(self) -> (MailboxId, Uid) {
        (MailboxId(self.mailbox), Uid(self.uid))
    }
}

impl FromStr for Key {
    type Err = NotFound;

    fn from_str(text: &str) -> Result<Key, NotFound> {
        let (mailbox, uid) = text.split_once('.').ok_or(NotFound)?;
        Ok(Key { mailbox: number(mailbox)?, uid: number(uid)? })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.mailbox, self.uid)
    }
}

/// A page of ours that somebody is sent to because of what a form or an address said.
///
/// Whatever was said, this is an address that was written here: of a page that there is, and not of the login.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destination(String);

impl Destination {
    /// Where `said` leads, if that is a page of ours, and else where a reader begins.
    pub fn of(said: &str) -> Destination {
        // Before it is parsed: who comes from a login to a login may have said so many times over.
        let is_login = said.split('?').next() == Some("/mail/login");
        let page = if is_login { Page::Home } else { Page::of(said).unwrap_or(Page::Home) };
        Destination(page.to_string())
    }

    /// Its address: a path, and perhaps a query.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where a reader begins.
impl Default for Destination {
    fn default() -> Destination {
        Destination(Page::Home.to_string())
    }
}

/// What the address of a page ends with that has something to tell: the number of a notice of the session. It names no other page.
const TOLD: &str = "told=";

/// The address of a page that tells the notice of this number.
pub(crate) fn telling(address: &str, notice: u64) -> String {
    let sign = if address.contains('?') { '&' } else { '?' };
    format!("{address}{sign}{TOLD}{notice}")
}

/// The address of a page, and which notice that is to tell, if it says one.
pub(crate) fn told(target: &str) -> (&str, Option<u64>) {
    let split = target.rsplit_once(['?', '&']);
    let told =
        split.and_then(|(address, last)| Some((address, last.strip_prefix(TOLD)?.parse().ok()?)));
    told.map_or((target, None), |(address, notice)| (address, Some(notice)))
}

/// A number that is never 0, as `Display` writes it.
pub(crate) fn number(text: &str) -> Result<u32, NotFound> {
    let is_plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain).ok_or(NotFound)
}

/// The number of a part, as `Display` writes it.
pub(crate) fn part(text: &str) -> Result<u16, NotFound> {
    if text == "0" { Ok(0) } else { number(text)?.try_into().map_err(|_| NotFound) }
}

/// What a query says under each of `names`.
///
/// Errors: it says something else, or something twice.
pub(crate) fn keys<'a, const N: usize>(
    query: &'a str,
    names: [&str; N],
) -> Result<[Option<Cow<'a, str>>; N], NotFound> {
    let mut said = [const { None }; N];
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let place = names
            .iter()
            .position(|known| *known == name)
            .and_then(|at| said.get_mut(at))
            .ok_or(NotFound)?;
        if place.replace(value).is_some() {
            return Err(NotFound);
        }
    }
    Ok(said)
}

/// Writes `text` as it stands behind a key.
pub(crate) fn encoded(text: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    form_urlencoded::byte_serialize(text.as_bytes()).try_for_each(|piece| out.write_str(piece))
}
