//! Routes: parses the method and target of a request into a [`Route`], and writes the address of
//! each page.
//!
//! Invariants:
//! - Each page has one address: [`Route::of`] accepts the address that `Display` writes. It
//!   tolerates only another order of keys, another encoding of characters in values, and the number
//!   of a flash message.
//! - An address is not found if it has an unknown or duplicate key, a number with a sign or leading
//!   zeros, or a percent-encoded character in its path.
//! - A redirect to an address from a form or a query always goes to a page of the webmail
//!   ([`Destination`]).
//!
//! Implements: RFC 9110 section 9.3; RFC 3986 sections 3.3 and 3.4; the URL Standard section 5,
//! application/x-www-form-urlencoded.

use alloc::borrow::Cow;
use core::fmt;

use crate::address::{self, keys, number};
use outbound::QueueEntryId;

use crate::{Asset, Destination, ListPlace, MessageKey, PermanentId, SearchPlace};

/// The longest target of a request, in bytes.
pub const TARGET_BYTES_MAX: usize = 4096;

/// The address does not exist for this method: 404.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotFound;

/// The route of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Route<'a> {
    /// A page (GET, HEAD).
    Get(WebPage<'a>),
    /// A form (POST).
    Post(PostAction),
}

/// A page. A request for a page changes nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WebPage<'a> {
    /// `/mail/`: the start page.
    Home,
    /// `/mail/box/{id}`: the messages of a mailbox.
    List {
        /// The mailbox.
        mailbox: u32,
        /// The range of its messages.
        range: ListRange,
    },
    /// `/mail/box/{id}/{uid}`: the message with this UID, with its conversation.
    Read(MessageKey),
    /// `/mail/message/{id}?list={address}`: the same page. This address stays valid when the
    /// message is moved. The page leads back to the list, by default the newest messages of the
    /// mailbox.
    Message(PermanentId, Option<Destination>),
    /// `/mail/compose`: a new message.
    Compose(ComposeStart),
    /// `/mail/search?q={words}&in={id}&before={place}`: the results of a search.
    Search {
        /// The search, as the user typed it.
        words: Cow<'a, str>,
        /// The only mailbox to search.
        mailbox: Option<u32>,
        /// The search continues after this place.
        before: Option<SearchPlace>,
    },
    /// `/mail/settings`: the settings page.
    Settings,
    /// `/mail/boxes`: creates, renames and removes mailboxes.
    Mailboxes,
    /// `/mail/queue`, `/mail/queue?after={entry}`: the queue from its start or after this entry,
    /// for administrators.
    Queue(Option<QueueEntryId>),
    /// `/mail/events`: an event stream with the state of the mailboxes, now and after each change.
    Events,
    /// `/mail/style.css?v={digest}` and `/mail/mail.js?v={digest}`: the style sheet and the script.
    Asset(Asset),
    /// `/mail/source/{key}`: the octets of a message, as a text page.
    Source(MessageKey),
    /// `/mail/download/{key}`: the octets of a message, as a file.
    Download(MessageKey),
    /// `/mail/export/{id}`: a mailbox as one file.
    Export(u32),
    /// `/mail/print/{key}`: a message for printing.
    Print(MessageKey),
    /// `/mail/print/{key}/all`: the conversation of a message for printing.
    PrintAll(MessageKey),
    /// `/mail/part/{key}/{part}`: a part of a message as a file. Parts are numbered in their order,
    /// and 0 is the whole message.
    Part(MessageKey, u16),
    /// `/mail/inner/{key}/{part}.{file}`: a file in a `winmail.dat`. Its files are numbered from 0.
    Inner(MessageKey, u16, u16),
    /// `/mail/html/{key}/{part}`: an HTML part as a separate document. Only the beginning of a long
    /// part is shown.
    Html(MessageKey, u16),
    /// `/mail/whole/{key}/{part}`: a whole HTML part as a separate document.
    Whole(MessageKey, u16),
    /// `/mail/login?next={address}`: the login page.
    Login(Destination),
}

/// A form that changes something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostAction {
    /// `/mail/login`: logs in.
    LogIn,
    /// `/mail/logout`: logs out.
    LogOut,
    /// `/mail/act`: an action on messages.
    Act,
    /// `/mail/show`: loads the remote content of a message.
    Show,
    /// `/mail/undo`: undoes the last action.
    Undo,
    /// `/mail/compose`: sends, saves or discards a message.
    Write,
    /// `/mail/settings`: changes the settings.
    Set,
    /// `/mail/boxes`: creates, renames or removes a mailbox.
    Mailboxes,
    /// `/mail/queue`: an action on queue entries.
    Queue,
}

/// The messages of a mailbox that a list shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListRange {
    /// The newest messages.
    Newest,
    /// `?before={place}`: the newest of the messages before this place.
    Before(ListPlace),
    /// `?after={place}`: the oldest of the messages after this place.
    After(ListPlace),
}

/// The start of a new message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ComposeStart {
    /// An empty message.
    New,
    /// `?reply={key}`: a reply to the author of this message.
    Reply(MessageKey),
    /// `?all={key}`: a reply to the author and to all recipients of this message.
    ReplyToAll(MessageKey),
    /// `?forward={key}`: this message, forwarded.
    Forward(MessageKey),
    /// `?draft={key}`, `?draft={key}&answers={key}`: a saved draft, and the message that it replies
    /// to, if it is known.
    Draft {
        /// The draft.
        draft: MessageKey,
        /// The message that the draft replies to.
        answers: Option<MessageKey>,
    },
}

/// The addresses of forms.
const POST_ACTIONS: [(PostAction, &str); 9] = [
    (PostAction::LogIn, "/mail/login"),
    (PostAction::LogOut, "/mail/logout"),
    (PostAction::Act, "/mail/act"),
    (PostAction::Show, "/mail/show"),
    (PostAction::Undo, "/mail/undo"),
    (PostAction::Write, "/mail/compose"),
    (PostAction::Set, "/mail/settings"),
    (PostAction::Mailboxes, "/mail/boxes"),
    (PostAction::Queue, "/mail/queue"),
];

impl<'a> Route<'a> {
    /// The route of a request for `target` (a path with its query).
    ///
    /// Errors: the address does not exist for this method.
    pub fn of(method: &str, target: &'a str) -> Result<Route<'a>, NotFound> {
        match method {
            "GET" | "HEAD" => WebPage::of(target).map(Route::Get),
            "POST" => PostAction::of(target).map(Route::Post),
            _ => Err(NotFound),
        }
    }

    /// The method of the route.
    pub fn method(&self) -> &'static str {
        match self {
            Route::Get(_) => "GET",
            Route::Post(_) => "POST",
        }
    }
}

impl PostAction {
    fn of(target: &str) -> Result<PostAction, NotFound> {
        POST_ACTIONS
            .iter()
            .find(|(_, address)| *address == target)
            .map(|(action, _)| *action)
            .ok_or(NotFound)
    }
}

impl<'a> WebPage<'a> {
    /// The page at an address.
    ///
    /// Errors: the address has no page.
    pub fn of(target: &'a str) -> Result<WebPage<'a>, NotFound> {
        if target.len() > TARGET_BYTES_MAX || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(NotFound);
        }
        let (target, _) = address::split_flash(target);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut names = path.strip_prefix("/mail/").ok_or(NotFound)?.split('/');
        match (names.next(), names.next(), names.next(), names.next()) {
            (Some(name), None, None, None) => WebPage::named(name, query),
            (Some("box"), Some(mailbox), None, None) => list(number(mailbox)?, query),
            (Some("message"), Some(id), None, None) => message(id.parse()?, query),
            (Some(name), Some(first), second, None) => {
                let [] = keys(query, [])?;
                within(name, first, second)
            }
            _ => Err(NotFound),
        }
    }

    /// A page with one path segment.
    fn named(name: &str, query: &'a str) -> Result<WebPage<'a>, NotFound> {
        match name {
            "compose" => return compose(query),
            "search" => return search(query),
            "queue" => {
                let [after] = keys(query, ["after"])?;
                return Ok(WebPage::Queue(
                    after.map(|after| after.parse()).transpose().map_err(|_| NotFound)?,
                ));
            }
            "style.css" | "mail.js" => {
                let [version] = keys(query, ["v"])?;
                return Asset::named(name, &version.unwrap_or_default())
                    .map(WebPage::Asset)
                    .ok_or(NotFound);
            }
            "login" => {
                let [next] = keys(query, ["next"])?;
                return Ok(WebPage::Login(
                    next.map_or_else(Destination::default, |next| Destination::of(&next)),
                ));
            }
            _ => {}
        }
        let [] = keys(query, [])?;
        match name {
            "" => Ok(WebPage::Home),
            "settings" => Ok(WebPage::Settings),
            "boxes" => Ok(WebPage::Mailboxes),
            "events" => Ok(WebPage::Events),
            _ => Err(NotFound),
        }
    }
}

/// A page with several path segments.
fn within<'a>(name: &str, first: &str, second: Option<&str>) -> Result<WebPage<'a>, NotFound> {
    match (name, second) {
        ("box", Some(uid)) => {
            Ok(WebPage::Read(MessageKey { mailbox: number(first)?, uid: number(uid)? }))
        }
        ("source", None) => Ok(WebPage::Source(first.parse()?)),
        ("download", None) => Ok(WebPage::Download(first.parse()?)),
        ("export", None) => Ok(WebPage::Export(number(first)?)),
        ("print", None) => Ok(WebPage::Print(first.parse()?)),
        ("print", Some("all")) => Ok(WebPage::PrintAll(first.parse()?)),
        ("part", Some(part)) => Ok(WebPage::Part(first.parse()?, address::part(part)?)),
        ("inner", Some(file)) => {
            let (part, file) = file.split_once('.').ok_or(NotFound)?;
            Ok(WebPage::Inner(first.parse()?, address::part(part)?, address::part(file)?))
        }
        ("html", Some(part)) => Ok(WebPage::Html(first.parse()?, address::part(part)?)),
        ("whole", Some(part)) => Ok(WebPage::Whole(first.parse()?, address::part(part)?)),
        _ => Err(NotFound),
    }
}

fn message<'a>(id: PermanentId, query: &str) -> Result<WebPage<'a>, NotFound> {
    let [list] = keys(query, ["list"])?;
    let list = list.map(|list| Destination::of_list(&list).ok_or(NotFound)).transpose()?;
    Ok(WebPage::Message(id, list))
}

fn list<'a>(mailbox: u32, query: &str) -> Result<WebPage<'a>, NotFound> {
    let range = match keys(query, ["before", "after"])? {
        [None, None] => ListRange::Newest,
        [Some(place), None] => ListRange::Before(place.parse()?),
        [None, Some(place)] => ListRange::After(place.parse()?),
        _ => return Err(NotFound),
    };
    Ok(WebPage::List { mailbox, range })
}

fn compose<'a>(query: &str) -> Result<WebPage<'a>, NotFound> {
    let start = match keys(query, ["reply", "all", "forward", "draft", "answers"])? {
        [None, None, None, None, None] => ComposeStart::New,
        [Some(key), None, None, None, None] => ComposeStart::Reply(key.parse()?),
        [None, Some(key), None, None, None] => ComposeStart::ReplyToAll(key.parse()?),
        [None, None, Some(key), None, None] => ComposeStart::Forward(key.parse()?),
        [None, None, None, Some(draft), answers] => ComposeStart::Draft {
            draft: draft.parse()?,
            answers: answers.map(|key| key.parse()).transpose()?,
        },
        _ => return Err(NotFound),
    };
    Ok(WebPage::Compose(start))
}

/// A search page. For a search of all mailboxes the form sends an empty `in`.
fn search(query: &str) -> Result<WebPage<'_>, NotFound> {
    let [words, mailbox, before] = keys(query, ["q", "in", "before"])?;
    Ok(WebPage::Search {
        words: words.unwrap_or_default(),
        mailbox: mailbox.filter(|id| !id.is_empty()).map(|id| number(&id)).transpose()?,
        before: before.map(|place| place.parse()).transpose()?,
    })
}

impl fmt::Display for Route<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Route::Get(page) => page.fmt(out),
            Route::Post(action) => action.fmt(out),
        }
    }
}

impl fmt::Display for PostAction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = POST_ACTIONS.iter().find(|(action, _)| action == self);
        own.map_or(Err(fmt::Error), |(_, address)| out.write_str(address))
    }
}

impl fmt::Display for WebPage<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WebPage::Home => out.write_str("/mail/"),
            WebPage::List { mailbox, range } => write!(out, "/mail/box/{mailbox}{range}"),
            WebPage::Read(MessageKey { mailbox, uid }) => write!(out, "/mail/box/{mailbox}/{uid}"),
            WebPage::Message(id, list) => {
                write!(out, "/mail/message/{id}")?;
                list.as_ref().map_or(Ok(()), |list| {
                    out.write_str("?list=")?;
                    address::encoded(list.as_str(), out)
                })
            }
            WebPage::Compose(start) => write!(out, "/mail/compose{start}"),
            WebPage::Search { words, mailbox, before } => {
                out.write_str("/mail/search?q=")?;
                address::encoded(words, out)?;
                mailbox.map_or(Ok(()), |id| write!(out, "&in={id}"))?;
                before.map_or(Ok(()), |place| write!(out, "&before={place}"))
            }
            WebPage::Settings => out.write_str("/mail/settings"),
            WebPage::Mailboxes => out.write_str("/mail/boxes"),
            WebPage::Queue(None) => out.write_str("/mail/queue"),
            WebPage::Queue(Some(after)) => write!(out, "/mail/queue?after={after}"),
            WebPage::Events => out.write_str("/mail/events"),
            WebPage::Asset(asset) => asset.fmt(out),
            WebPage::Source(key) => write!(out, "/mail/source/{key}"),
            WebPage::Download(key) => write!(out, "/mail/download/{key}"),
            WebPage::Export(mailbox) => write!(out, "/mail/export/{mailbox}"),
            WebPage::Print(key) => write!(out, "/mail/print/{key}"),
            WebPage::PrintAll(key) => write!(out, "/mail/print/{key}/all"),
            WebPage::Part(key, part) => write!(out, "/mail/part/{key}/{part}"),
            WebPage::Inner(key, part, file) => write!(out, "/mail/inner/{key}/{part}.{file}"),
            WebPage::Html(key, part) => write!(out, "/mail/html/{key}/{part}"),
            WebPage::Whole(key, part) => write!(out, "/mail/whole/{key}/{part}"),
            WebPage::Login(next) if *next == Destination::default() => out.write_str("/mail/login"),
            WebPage::Login(next) => {
                out.write_str("/mail/login?next=")?;
                address::encoded(next.as_str(), out)
            }
        }
    }
}

impl fmt::Display for ListRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListRange::Newest => Ok(()),
            ListRange::Before(place) => write!(out, "?before={place}"),
            ListRange::After(place) => write!(out, "?after={place}"),
        }
    }
}

impl fmt::Display for ComposeStart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ComposeStart::New => Ok(()),
            ComposeStart::Reply(key) => write!(out, "?reply={key}"),
            ComposeStart::ReplyToAll(key) => write!(out, "?all={key}"),
            ComposeStart::Forward(key) => write!(out, "?forward={key}"),
            ComposeStart::Draft { draft, answers: None } => write!(out, "?draft={draft}"),
            ComposeStart::Draft { draft, answers: Some(answers) } => {
                write!(out, "?draft={draft}&answers={answers}")
            }
        }
    }
}
