//! Parts of page addresses: numbers, keys of messages, keys of a query, the number of a flash
//! message, and the destination of a redirect.
//!
//! Implements: RFC 9051 section 2.3.1.1 (a UID is never 0); the URL Standard section 5.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use store::{AccountId, DatePlace, MailboxId, MessageInfo, Store, Uid};

use crate::{NotFound, WebPage};

/// Names a message in addresses and forms: `{mailbox}.{uid}`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MessageKey {
    /// The number of the message's mailbox, never 0.
    pub mailbox: u32,
    /// The UID of the message in that mailbox, never 0.
    pub uid: u32,
}

impl MessageKey {
    /// The message's mailbox and UID, as types of the store.
    pub(crate) fn in_store(self) -> (MailboxId, Uid) {
        (MailboxId(self.mailbox), Uid(self.uid))
    }
}

/// Names a message in the address of its page, even after the message was moved:
/// `{conversation}.{guid}`, in hexadecimal digits. Both numbers are permanent, and the store finds
/// the messages of a conversation quickly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PermanentId {
    /// The number of the conversation.
    pub conversation: u64,
    /// The lower half of the GUID. All messages of a store have the same upper half.
    pub guid: u64,
}

impl PermanentId {
    /// The maximum number of messages of a conversation that are looked at among the newest of all
    /// mailboxes, and again among the others.
    const LOOKED_AT_MAX: usize = 10_000;

    pub(crate) fn of(info: &MessageInfo) -> PermanentId {
        PermanentId { conversation: info.conversation, guid: info.guid.0 as u64 }
    }

    /// The present place of the message. A message in the outbox is also in Sent.
    pub(crate) fn place(self, account: AccountId, store: &Store) -> Option<MessageKey> {
        let known = store.account(account)?;
        let mailboxes: Vec<MailboxId> = known.mailboxes().map(|(id, _)| id).collect();
        let share = Self::LOOKED_AT_MAX / mailboxes.len().max(1);
        let within = |mailbox: &MailboxId| {
            let mailbox = *mailbox;
            let uids = store.conversation_in(account, mailbox, self.conversation).rev();
            uids.map(move |uid| (mailbox, uid))
        };
        // First the newest messages of each mailbox are looked at, so that no mailbox with many
        // messages hides those of another.
        let newest = mailboxes.iter().flat_map(|mailbox| within(mailbox).take(share));
        let others = mailboxes.iter().flat_map(|mailbox| within(mailbox).skip(share));
        let is_it = |(mailbox, uid): &(MailboxId, Uid)| {
            let info = store.message(account, *mailbox, *uid);
            info.is_some_and(|info| PermanentId::of(&info) == self)
        };
        let (mailbox, uid) = newest.chain(others.take(Self::LOOKED_AT_MAX)).find(is_it)?;
        Some(MessageKey { mailbox: mailbox.0, uid: uid.0 })
    }
}

impl FromStr for PermanentId {
    type Err = NotFound;

    fn from_str(text: &str) -> Result<PermanentId, NotFound> {
        let (conversation, guid) = text.split_once('.').ok_or(NotFound)?;
        let number = |digits| u64::from_str_radix(digits, 16).map_err(|_| NotFound);
        let id = PermanentId { conversation: number(conversation)?, guid: number(guid)? };
        // Each message has one address.
        if id.to_string() == text { Ok(id) } else { Err(NotFound) }
    }
}

impl fmt::Display for PermanentId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:x}.{:x}", self.conversation, self.guid)
    }
}

/// A place in a list, as addresses name it: `{date}.{guid}.{uid}`, the GUID in hexadecimal digits.
/// If the message at the place is moved or deleted, the list still goes on from the same place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListPlace(pub DatePlace);

impl FromStr for ListPlace {
    type Err = NotFound;

    fn from_str(text: &str) -> Result<ListPlace, NotFound> {
        let mut parts = text.splitn(3, '.');
        let mut next = || parts.next().ok_or(NotFound);
        let date = next()?.parse().map_err(|_| NotFound)?;
        let guid = u64::from_str_radix(next()?, 16).map_err(|_| NotFound)?;
        let place = ListPlace(DatePlace { date, guid, uid: number(next()?)? });
        // Each place has one form.
        if place.to_string() == text { Ok(place) } else { Err(NotFound) }
    }
}

impl fmt::Display for ListPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ListPlace(DatePlace { date, guid, uid }) = self;
        write!(out, "{date}.{guid:x}.{uid}")
    }
}

/// A place in the results of a search, as addresses name it: `{mailbox}.{place}`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SearchPlace {
    /// The number of the mailbox that has the message at this place, never 0.
    pub mailbox: u32,
    /// The place of the message.
    pub place: ListPlace,
}

impl FromStr for SearchPlace {
    type Err = NotFound;

    fn from_str(text: &str) -> Result<SearchPlace, NotFound> {
        let (mailbox, place) = text.split_once('.').ok_or(NotFound)?;
        Ok(SearchPlace { mailbox: number(mailbox)?, place: place.parse()? })
    }
}

impl fmt::Display for SearchPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.mailbox, self.place)
    }
}

impl FromStr for MessageKey {
    type Err = NotFound;

    fn from_str(text: &str) -> Result<MessageKey, NotFound> {
        let (mailbox, uid) = text.split_once('.').ok_or(NotFound)?;
        Ok(MessageKey { mailbox: number(mailbox)?, uid: number(uid)? })
    }
}

impl fmt::Display for MessageKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.mailbox, self.uid)
    }
}

/// A page of the webmail to which a form or an address redirects.
///
/// Whatever the client sends, the value is an address that this program has written. It is a valid
/// address of a page, and never of the login page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destination(String);

impl Destination {
    /// The destination that the client asks for, if it is a page of the webmail. Otherwise the
    /// start page.
    pub fn of(target: &str) -> Destination {
        // The login page is excluded before the target is parsed, since an attacker can nest login
        // addresses deeply.
        let is_login = target.split('?').next() == Some("/mail/login");
        let page =
            if is_login { WebPage::Home } else { WebPage::of(target).unwrap_or(WebPage::Home) };
        Destination(page.to_string())
    }

    /// The destination, if it is a list or a search. `None`: it is another page, or none.
    pub(crate) fn of_list(target: &str) -> Option<Destination> {
        // These addresses have no other address in them.
        let is_candidate = ["/mail/box/", "/mail/search?"].iter().any(|is| target.starts_with(is));
        let page = is_candidate.then(|| WebPage::of(target).ok()).flatten()?;
        let is_list = matches!(page, WebPage::List { .. } | WebPage::Search { .. });
        is_list.then(|| Destination(page.to_string()))
    }

    /// The address: a path, and perhaps a query.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The start page.
impl Default for Destination {
    fn default() -> Destination {
        Destination(WebPage::Home.to_string())
    }
}

/// The last key in the address of a page that shows a flash message. Its value is the number of the
/// flash message in the session. The rest of the address names the page.
const FLASH_KEY: &str = "told=";

/// The address of a page that shows the flash message with the number `notice`.
pub(crate) fn with_flash(address: &str, notice: u64) -> String {
    let sign = if address.contains('?') { '&' } else { '?' };
    format!("{address}{sign}{FLASH_KEY}{notice}")
}

/// Splits the target into the address of the page and the number of its flash message, if it has
/// one.
pub(crate) fn split_flash(target: &str) -> (&str, Option<u64>) {
    let split = target.rsplit_once(['?', '&']);
    let found = split
        .and_then(|(address, last)| Some((address, last.strip_prefix(FLASH_KEY)?.parse().ok()?)));
    found.map_or((target, None), |(address, notice)| (address, Some(notice)))
}

/// Parses a number other than 0, in the form in which `Display` writes it.
pub(crate) fn number(text: &str) -> Result<u32, NotFound> {
    let is_plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain).ok_or(NotFound)
}

/// Parses the number of a part, in the form in which `Display` writes it.
pub(crate) fn part(text: &str) -> Result<u16, NotFound> {
    if text == "0" { Ok(0) } else { number(text)?.try_into().map_err(|_| NotFound) }
}

/// The values of a query for each of `names`.
///
/// Errors: the query has another key, or a key twice.
pub(crate) fn keys<'a, const N: usize>(
    query: &'a str,
    names: [&str; N],
) -> Result<[Option<Cow<'a, str>>; N], NotFound> {
    let mut values = [const { None }; N];
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let place = names
            .iter()
            .position(|known| *known == name)
            .and_then(|at| values.get_mut(at))
            .ok_or(NotFound)?;
        if place.replace(value).is_some() {
            return Err(NotFound);
        }
    }
    Ok(values)
}

/// The longest [`list_query`] in bytes, so that an address with it is not too long.
const LIST_QUERY_BYTES_MAX: usize = 3_000;

/// The query of a message's address that leads back to the list with this address. Empty if it
/// would be too long: then the page leads to the mailbox of the message.
pub(crate) fn list_query(list: &str) -> String {
    let mut query = String::from("?list=");
    query.extend(form_urlencoded::byte_serialize(list.as_bytes()));
    if query.len() <= LIST_QUERY_BYTES_MAX { query } else { String::new() }
}

/// Writes `text` percent-encoded, as the value of a key.
pub(crate) fn encoded(text: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    form_urlencoded::byte_serialize(text.as_bytes()).try_for_each(|piece| out.write_str(piece))
}
