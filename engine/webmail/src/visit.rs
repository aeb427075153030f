//! Requests from the core of a connection to the core that owns the account. Each is answered there
//! at once, or becomes a job of a request handler.
//!
//! Invariants:
//! - A client with a ticket of no existing session is asked to log in, whatever it requests.
//! - Every change comes from a form of our pages: it carries the session's token.

mod passwords;
mod settings;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;

use http::{Field, Reply, Status};
use mail::PasswordMark;
use store::{ARCHIVE, AccountId, Flags, INBOX, JUNK, MailboxId, NoteChange, Store, TRASH};
use tasks::Continuation;

use crate::address::{self, number};
use crate::answer;
use crate::clerk::{
    BoxChange, Change, Document, Draft, Elsewhere, Extent, Job, Noted, Overview, Piece, Secrets,
    Trust, Whom, together,
};
use crate::context::Context;
use crate::form::{Form, Reader};
use crate::kept::Kept;
use crate::login::login_page;
use crate::queue::handling_named;
use crate::said::{Said, Undo};
use crate::sessions::{Digest, Sessions, Standing};
use crate::surroundings::Visitor;
use crate::told::Told;
use crate::{Deed, Destination, Key, Page, Stretch, Ticket, Wish};
use outbound::{QueueAsked, Which};

pub use passwords::{NewPassword, NotProved};

pub(crate) use passwords::wanted;

/// A request from the core of a connection to the core that owns the account.
#[derive(Clone, Debug)]
pub enum Request {
    /// The client has logged in and gets a ticket. Then it is redirected to the destination, or
    /// sees the page with the message that it was writing.
    Begin(AccountId, Arrival, Destination, Option<Box<Draft>>),
    /// A request of a client with a ticket.
    Ask {
        /// The ticket.
        ticket: Ticket,
        /// GET, HEAD or POST.
        method: String,
        /// Path and query.
        target: String,
        /// The media type of the body; empty if the client sends none.
        media_type: String,
        /// The body.
        body: Vec<u8>,
    },
    /// A client with a ticket wants to send a form.
    Knock(Ticket),
    /// A message is to come in pieces, in a form of this type. The ticket is absent if the client
    /// has no session.
    Write(Option<Ticket>, String),
    /// A client with a ticket wants to change the password. It has the form's token, and the new
    /// password's hash if the old password was right.
    SetPassword(Ticket, String, Result<Secrets, NotProved>),
    /// A piece of the message with this number has come.
    Piece(u64, Piece),
    /// The client wants more of the reply with this number.
    Wanted(u64),
    /// The client of the reply with this number has left, or the rest of its message does not come.
    Left(u64),
}

/// Facts about a login.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// A mark of the password that was right.
    pub password: PasswordMark,
    /// The client's address.
    pub from: IpAddr,
    /// A short description of the client's program.
    pub program: String,
}

impl Request {
    /// The account that the request is for, as the client's ticket says. A message of a client
    /// without a session is for account 0, which does not exist.
    pub fn account(&self) -> AccountId {
        match self {
            Request::Begin(account, ..) => *account,
            Request::Ask { ticket, .. }
            | Request::Knock(ticket)
            | Request::SetPassword(ticket, ..) => AccountId::from_bits(ticket.account),
            Request::Write(ticket, _) => {
                AccountId::from_bits(ticket.as_ref().map_or(0, |ticket| ticket.account))
            }
            Request::Piece(..) | Request::Wanted(_) | Request::Left(_) => AccountId::from_bits(0),
        }
    }

    /// The number of the reply or message that the request belongs to. The request goes to the core
    /// that has assigned the number.
    pub fn number(&self) -> Option<u64> {
        match self {
            Request::Piece(number, _) | Request::Wanted(number) | Request::Left(number) => {
                Some(*number)
            }
            _ => None,
        }
    }

    /// Bytes of the form in the request.
    pub fn form_bytes(&self) -> usize {
        if let Request::Ask { body, .. } = self { body.len() } else { 0 }
    }
}

/// The reply to a client without a session: it must log in first.
pub(crate) fn reply_to_stranger(method: &str, target: &str, host: &str) -> Reply {
    match Wish::of(method, target) {
        // The browser still sends the ticket of an expired session.
        Ok(Wish::See(Page::Login(next))) => login_page(host, "", &next, None, ""),
        Ok(Wish::See(_)) => answer::login(Destination::of(target)),
        _ => answer::login(Destination::default()),
    }
}

/// The sessions of a core, and its parts.
pub(crate) struct SessionContext<'a, 'c> {
    pub(crate) sessions: &'a mut Sessions,
    /// The continuation of store requests that no handler waits for.
    pub(crate) nobody: Continuation,
    /// Whether a job is changing the account's password. Two jobs never change it at once.
    pub(crate) is_changing: &'a dyn Fn(AccountId) -> bool,
    pub(crate) cx: &'a mut Context<'c>,
}

/// The job of a request on the core that owns the account, and the client that it serves. `secret`:
/// 32 bytes from a cryptographic generator, used once. Errors: the reply, if the request is
/// answered at once.
pub(crate) fn job_for(
    request: Request,
    secret: [u8; 32],
    mut cx: SessionContext<'_, '_>,
) -> Result<(Visitor, Job), Told> {
    match request {
        Request::Begin(account, arrival, next, kept) => {
            let ticket = Ticket::new(account.to_bits(), secret);
            cx.begin(account, ticket.digest(), arrival);
            let reply = match kept {
                None => answer::elsewhere(next.as_str()),
                Some(draft) => {
                    let visitor = Visitor {
                        account,
                        session: ticket.digest(),
                        token: cx.sessions.form_token(&ticket.digest(), &ticket),
                        said: None,
                        is_administrator: cx.is_administrator(account),
                    };
                    draft.page(
                        "You are logged in again, and your letter is still here.",
                        &visitor,
                        cx.store(),
                    )
                }
            };
            Err(Told::Reply(reply.with(Field::SetCookie, &ticket.set_cookie().to_string())))
        }
        Request::Knock(ticket) => Err(match cx.known(&ticket) {
            Some(_) => Told::Admitted,
            None => Told::Stranger,
        }),
        Request::Write(ticket, media_type) => match Reader::of(&media_type) {
            Ok(reader) => Ok(cx.job_of_message(ticket, reader)),
            Err(_) => {
                Err(Told::Reply(answer::told(Status::BadRequest, "This form is not understood.")))
            }
        },
        Request::SetPassword(ticket, token, proved) => match cx.known(&ticket) {
            Some((account, session)) => {
                Asking { account, ticket, session, cx, said: None }.set_password(&token, proved)
            }
            None => Err(Told::Reply(answer::login(Destination::default()))),
        },
        Request::Ask { ticket, method, target, media_type, body } => match cx.known(&ticket) {
            Some((account, session)) => {
                let asking = Asking { account, ticket, session, cx, said: None };
                asking.ask(&method, &target, &media_type, &body)
            }
            None => Err(Told::Reply(reply_to_stranger(&method, &target, cx.cx.hostname))),
        },
        Request::Piece(..) | Request::Wanted(_) | Request::Left(_) => {
            unreachable!("a request with a number goes to its handler at once")
        }
    }
}

impl SessionContext<'_, '_> {
    fn store(&self) -> &Store {
        &self.cx.archive.own.store
    }

    /// A client has logged in. Its session is valid at once; the store may persist it a moment
    /// later.
    fn begin(&mut self, account: AccountId, session: Digest, arrival: Arrival) {
        let Arrival { password, from, program } = arrival;
        let kept =
            Kept { since: self.cx.turn.wall, seen: self.cx.turn.wall, password, from, program };
        if let Some(known) = self.cx.archive.own.store.account(account) {
            let changes = self.sessions.begin(&known, session, kept);
            self.note(account, &session, changes);
        }
    }

    /// The account and session of a ticket, if the session is valid.
    fn known(&mut self, ticket: &Ticket) -> Option<(AccountId, Digest)> {
        let (account, session) = (AccountId::from_bits(ticket.account), ticket.digest());
        let Standing::Known(seen) = self.sessions.is_of(
            &self.cx.archive.own.store.account(account)?,
            &session,
            self.cx.turn.wall,
        ) else {
            return None;
        };
        if let Some(seen) = seen {
            self.note(account, &session, alloc::vec![seen]);
        }
        Some((account, session))
    }

    /// The job that receives a message. A client without a session gets one too, so that its text
    /// is not lost.
    fn job_of_message(&mut self, ticket: Option<Ticket>, form: Reader) -> (Visitor, Job) {
        let known = ticket.and_then(|ticket| Some((self.known(&ticket)?, ticket)));
        let Some(((account, session), ticket)) = known else {
            let (account, session, token) = (AccountId::from_bits(0), Digest::default(), "".into());
            let visitor = Visitor { account, session, token, said: None, is_administrator: false };
            return (visitor, Job::write(None, form));
        };
        let token = self.sessions.form_token(&session, &ticket);
        let is_administrator = self.is_administrator(account);
        let visitor = Visitor { account, session, token, said: None, is_administrator };
        (visitor, Job::write(Some(ticket.form_token()), form))
    }

    fn is_administrator(&self, account: AccountId) -> bool {
        let known = self.store().account(account);
        known.is_some_and(|known| {
            self.cx.directory.administrators().iter().any(|own| own == known.address())
        })
    }

    fn note(&mut self, account: AccountId, session: &Digest, changes: Vec<NoteChange>) {
        if self.cx.archive.own.store.change_notes(account, changes, self.nobody).is_err() {
            self.sessions.not_noted(session);
        }
    }
}

/// A request of a client with a session.
struct Asking<'a, 'c> {
    account: AccountId,
    ticket: Ticket,
    session: Digest,
    cx: SessionContext<'a, 'c>,
    /// The flash message for the page.
    said: Option<Said>,
}

impl Asking<'_, '_> {
    fn ask(
        mut self,
        method: &str,
        target: &str,
        media_type: &str,
        body: &[u8],
    ) -> Result<(Visitor, Job), Told> {
        let (_, notice) = address::told(target);
        self.said = notice.and_then(|notice| self.cx.sessions.take_said(&self.session, notice));
        let job = match Wish::of(method, target) {
            Ok(Wish::See(Page::Events)) if method == "GET" => Ok(Job::Listen),
            Ok(Wish::See(page)) => self.page(&page),
            Ok(Wish::Do(deed)) => self.deed(deed, media_type, body),
            Err(_) => Err(answer::not_found()),
        };
        match job {
            Ok(job) => Ok((self.visitor(), job)),
            Err(reply) => Err(Told::Reply(reply)),
        }
    }

    fn visitor(self) -> Visitor {
        let token = self.cx.sessions.form_token(&self.session, &self.ticket);
        let is_administrator = self.cx.is_administrator(self.account);
        Visitor {
            account: self.account,
            session: self.session,
            token,
            said: self.said,
            is_administrator,
        }
    }

    /// The job of a page. Errors: the reply, if the request is answered at once.
    fn page(&self, page: &Page<'_>) -> Result<Job, Reply> {
        let elsewhere = |key| {
            if self.cx.sessions.loaded(&self.session) == Some(key) {
                Elsewhere::Loaded
            } else {
                Elsewhere::Kept
            }
        };
        Ok(match page {
            Page::Home | Page::Login(_) => {
                let inbox = Page::List { mailbox: INBOX.0, stretch: Stretch::Newest };
                return Err(answer::elsewhere(&inbox.to_string()));
            }
            Page::List { mailbox, stretch } => Job::list(MailboxId(*mailbox), *stretch),
            Page::Read(key) => Job::read(*key, self.cx.sessions.loaded(&self.session)),
            Page::Print(key) => Job::print(*key),
            Page::Mailboxes => Job::mailboxes(None),
            Page::Source(key) => Job::send(*key, Document::Source),
            Page::Download(key) => Job::send(*key, Document::Message),
            Page::Export(mailbox) => Job::export(MailboxId(*mailbox)),
            Page::Part(key, part) => Job::send(*key, Document::Part(*part)),
            Page::Html(key, part) => Job::show(*key, *part, elsewhere(*key), Extent::Beginning),
            Page::Whole(key, part) => Job::show(*key, *part, elsewhere(*key), Extent::Whole),
            Page::Asset(asset) => return Err(asset.reply()),
            Page::Compose(start) => Job::compose(*start),
            Page::Search { words, mailbox, before } => {
                Job::search(words.to_string(), mailbox.map(MailboxId), *before)
            }
            Page::Settings => Job::Settings(Overview { sessions: self.sessions(), typed: None }),
            Page::Queue(after) if self.cx.is_administrator(self.account) => {
                Job::queue(QueueAsked::Look(*after), page.to_string())
            }
            Page::Queue(_) | Page::Events => return Err(answer::not_found()),
        })
    }

    /// The job of a form. Errors: the reply, if the request is answered at once.
    fn deed(&mut self, deed: Deed, media_type: &str, body: &[u8]) -> Result<Job, Reply> {
        let form = Form::of(media_type, body)
            .map_err(|_| answer::told(Status::BadRequest, "This form is not understood."))?;
        if !self.ticket.form_token().is(form.text("token").unwrap_or_default()) {
            return Err(answer::not_of_session());
        }
        let then = Destination::of(form.text("here").unwrap_or_default());
        match deed {
            Deed::LogIn | Deed::Write => Err(answer::elsewhere(Destination::default().as_str())),
            Deed::LogOut => {
                let session = self.session;
                Ok(Job::note(self.end(|digest| *digest == session), Noted::LoggedOut))
            }
            Deed::Act => self.act(&form, &then),
            Deed::Show => {
                let sender = || form.text("sender").unwrap_or_default().to_string();
                match form.text("do") {
                    Some("always") => {
                        return Ok(Job::trust(Trust::Begin(sender()), then.as_str().into()));
                    }
                    Some("never") => {
                        return Ok(Job::trust(Trust::End(sender()), then.as_str().into()));
                    }
                    _ => {}
                }
                if let Some(key) = form.text("key").and_then(|key| key.parse().ok()) {
                    self.cx.sessions.load(&self.session, key);
                }
                Err(answer::elsewhere(then.as_str()))
            }
            Deed::Undo => {
                let undo: Undo = form
                    .text("what")
                    .and_then(|what| what.parse().ok())
                    .ok_or_else(answer::not_found)?;
                match undo {
                    Undo::Filing { messages, to } => {
                        let back = Page::List { mailbox: to.0, stretch: Stretch::Newest };
                        Ok(Job::change(
                            Change::File(to),
                            Whom::These(alloc::vec![messages]),
                            back.to_string(),
                        ))
                    }
                    Undo::Sending(key) => Ok(Job::take_back(key)),
                }
            }
            Deed::Queue if !self.cx.is_administrator(self.account) => Err(answer::not_found()),
            Deed::Queue => {
                let asked = handling(&form).ok_or_else(answer::not_found)?;
                Ok(Job::queue(asked, then.as_str().into()))
            }
            Deed::Mailboxes => {
                Ok(Job::mailboxes(Some(mailbox(&form).ok_or_else(answer::not_found)?)))
            }
            Deed::Set => self.set(&form),
        }
    }

    /// An action on messages. A star button names one message; all other actions apply to the
    /// selected messages.
    fn act(&mut self, form: &Form<'_>, then: &Destination) -> Result<Job, Reply> {
        if let Some(key) = form.text("star").and_then(|key| key.parse().ok()) {
            return Ok(Job::change(
                Change::Star,
                whom(form, core::iter::once(key)),
                then.as_str().into(),
            ));
        }
        let to = || form.text("to").and_then(|to| to.parse().ok()).map(MailboxId);
        let change = match form.text("do").unwrap_or_default() {
            "archive" => Some(Change::File(ARCHIVE)),
            "trash" => Some(Change::File(TRASH)),
            "junk" => Some(Change::File(JUNK)),
            "inbox" => Some(Change::File(INBOX)),
            "move" => to().map(Change::File),
            "erase" => Some(Change::Erase),
            "read" => Some(Change::Flag(Flags::SEEN)),
            "unread" => Some(Change::Unflag(Flags::SEEN)),
            _ => None,
        };
        let Some(change) = change else {
            let notice =
                self.cx.sessions.say(&self.session, Said::wrong("Choose a mailbox first."));
            return Err(answer::elsewhere_told(then.as_str(), notice));
        };
        let keys = form.texts("key").filter_map(|key| key.parse().ok());
        Ok(Job::change(change, whom(form, keys), then.as_str().into()))
    }
}

/// The mailbox change that a form asks for.
fn mailbox(form: &Form<'_>) -> Option<BoxChange> {
    let id = || form.text("box").and_then(|id| number(id).ok()).map(MailboxId);
    let name = || form.text("name").unwrap_or_default().to_string();
    match form.text("do").unwrap_or_default() {
        "make" => Some(BoxChange::Make(name())),
        "rename" => Some(BoxChange::Rename(id()?, name())),
        "remove" => Some(BoxChange::Remove(id()?)),
        _ => None,
    }
}

/// The change of queue entries that a form asks for.
fn handling(form: &Form<'_>) -> Option<QueueAsked> {
    let handling = handling_named(form.text("do")?)?;
    let which = match form.text("key") {
        Some(key) => Which::One(key.parse().ok()?),
        None => Which::Domain(form.text("domain")?.trim().to_ascii_lowercase()),
    };
    Some(QueueAsked::Handle(handling, which))
}

/// The messages that the keys of a form name.
fn whom(form: &Form<'_>, keys: impl Iterator<Item = Key>) -> Whom {
    match form.text("whole") {
        Some("conversation") => Whom::Conversations(keys.collect()),
        _ => Whom::These(together(keys.collect())),
    }
}
