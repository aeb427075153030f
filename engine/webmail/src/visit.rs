//! What somebody who has logged in asks for: received where his mail is, and answered at once or given to a clerk.
//!
//! Invariants:
//! - Whoever shows a ticket of no session that there is, is asked to log in, whatever he wants.
//! - What changes something is a form of a page of ours: it carries the session's token.

mod passwords;
mod settings;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;

use http::{Field, Reply, Status};
use machine::UnixTime;
use mail::PasswordMark;
use store::{ARCHIVE, AccountId, Flags, INBOX, JUNK, MailboxId, NoteChange, Store, TRASH};
use tasks::Continuation;

use crate::address::{self, number};
use crate::answer;
use crate::clerk::{
    BoxChange, Change, Clerk, Document, Draft, Elsewhere, Extent, Noted, Overview, Secrets, Task, Trust, Whom, together,
};
use crate::form::{Form, Reader};
use crate::kept::Kept;
use crate::login::login_page;
use crate::queue::handling_named;
use crate::said::{Said, Undo};
use crate::sessions::{Digest, Sessions, Standing};
use crate::surroundings::Visitor;
use crate::{Deed, Destination, Key, Page, Stretch, Ticket, Wish};
use outbound::{QueueAsked, Which};

pub use passwords::{NewPassword, NotProved};

pub(crate) use passwords::wanted;

/// What somebody comes for.
#[derive(Clone, Debug)]
pub enum Visit {
    /// He has said who he is, and gets a ticket. Where he goes then, or the letter that he was writing.
    Begin(AccountId, Arrival, Destination, Option<Box<Draft>>),
    /// He shows a ticket, and asks for something.
    Ask(Ticket, Request),
    /// He shows a ticket, and wants to send a form.
    Knock(Ticket),
    /// A letter is to come in pieces, in a form of this type; with a ticket, if its writer is not logged out.
    Write(Option<Ticket>, String),
    /// He shows a ticket, and wants another password: what his form carries, and what is kept of the new one, if he has proved the old one.
    SetPassword(Ticket, String, Result<Secrets, NotProved>),
}

/// With what somebody has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The password that was right.
    pub password: PasswordMark,
    /// His address.
    pub from: IpAddr,
    /// His program, in a few words.
    pub program: String,
}

/// What he asks for, as he says it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// GET, HEAD or POST.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// What the body is; empty if that is not said.
    pub media_type: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Visit {
    /// The account that it is for, as the client says. A message of a client without a session is
    /// for no account.
    pub fn account(&self) -> AccountId {
        match self {
            Visit::Begin(account, ..) => *account,
            Visit::Ask(ticket, _) | Visit::Knock(ticket) | Visit::SetPassword(ticket, ..) => {
                AccountId::from_bits(ticket.account)
            }
            Visit::Write(ticket, _) => AccountId::from_bits(ticket.as_ref().map_or(0, |ticket| ticket.account)),
        }
    }

    /// Bytes of the form that comes with it.
    pub fn form_bytes(&self) -> usize {
        if let Visit::Ask(_, request) = self { request.body.len() } else { 0 }
    }
}

impl Request {
    /// He has to log in first.
    pub(crate) fn answer_to_stranger(&self, host: &str) -> Reply {
        match Wish::of(&self.method, &self.target) {
            // A browser still shows the ticket of a session that is over.
            Ok(Wish::See(Page::Login(next))) => login_page(host, "", &next, None, ""),
            Ok(Wish::See(_)) => answer::login(Destination::of(&self.target)),
            _ => answer::login(Destination::default()),
        }
    }
}

/// How somebody was received.
#[derive(Debug)]
pub(crate) enum Reception {
    /// That was all.
    Answered(Reply),
    /// His form may come.
    Admitted,
    /// It may come to this clerk, piece by piece.
    Awaited(Box<Clerk>),
    /// He is not known, or not any more.
    Stranger,
    /// A clerk takes care of it.
    Taken(Box<Clerk>),
    /// He listens to what happens to his mail, as long as this session lasts.
    Listens(AccountId, Digest),
}

/// Where somebody is received.
pub(crate) struct Office<'a> {
    /// Who is logged in.
    pub sessions: &'a mut Sessions,
    /// The store of the core that owns his account.
    pub store: &'a mut Store,
    /// The continuation of what nobody waits for.
    pub nobody: Continuation,
    /// The machine's name.
    pub host: &'a str,
    /// Whether a clerk is about to change the password of an account, so that no two change it at
    /// once.
    pub is_changing: &'a dyn Fn(AccountId) -> bool,
    /// The addresses of the accounts that see what is for administrators.
    pub administrators: &'a [String],
    /// The time of day.
    pub now: UnixTime,
}

/// Receives somebody, on the core that owns his account. `secret`: 32 bytes from a cryptographic generator, used once.
pub(crate) fn receive(visit: Visit, secret: [u8; 32], mut office: Office<'_>) -> Reception {
    match visit {
        Visit::Begin(account, arrival, next, kept) => {
            let ticket = Ticket::new(account.to_bits(), secret);
            office.begin(account, ticket.digest(), arrival);
            let reply = match kept {
                None => answer::elsewhere(next.as_str()),
                Some(draft) => {
                    let visitor = Visitor {
                        account,
                        session: ticket.digest(),
                        token: office.sessions.form_token(&ticket.digest(), &ticket),
                        said: None,
                        is_administrator: office.is_administrator(account),
                    };
                    draft.page("You are logged in again, and your letter is still here.", &visitor, office.store)
                }
            };
            Reception::Answered(reply.with(Field::SetCookie, &ticket.set_cookie().to_string()))
        }
        Visit::Knock(ticket) => match office.known(&ticket) {
            Some(_) => Reception::Admitted,
            None => Reception::Stranger,
        },
        Visit::Write(ticket, media_type) => match Reader::of(&media_type) {
            Ok(reader) => Reception::Awaited(Box::new(office.clerk_of_letter(ticket, reader))),
            Err(_) => Reception::Answered(answer::told(Status::BadRequest, "This form is not understood.")),
        },
        Visit::SetPassword(ticket, token, proved) => match office.known(&ticket) {
            Some((account, session)) => Asking::new(account, ticket, session, office).set_password(&token, proved),
            None => Reception::Answered(answer::login(Destination::default())),
        },
        Visit::Ask(ticket, request) => match office.known(&ticket) {
            Some((account, session)) => Asking::new(account, ticket, session, office).ask(&request),
            None => Reception::Answered(request.answer_to_stranger(office.host)),
        },
    }
}

impl Office<'_> {
    /// Somebody has logged in. His session is known at once; the store may know it a moment later.
    fn begin(&mut self, account: AccountId, session: Digest, arrival: Arrival) {
        let Arrival { password, from, program } = arrival;
        let kept = Kept { since: self.now, seen: self.now, password, from, program };
        if let Some(known) = self.store.account(account) {
            let changes = self.sessions.begin(&known, session, kept);
            self.note(account, &session, changes);
        }
    }

    /// Whose ticket it is, if it is one of a session.
    fn known(&mut self, ticket: &Ticket) -> Option<(AccountId, Digest)> {
        let (account, session) = (AccountId::from_bits(ticket.account), ticket.digest());
        let Standing::Known(seen) = self.sessions.is_of(&self.store.account(account)?, &session, self.now) else {
            return None;
        };
        if let Some(seen) = seen {
            self.note(account, &session, alloc::vec![seen]);
        }
        Some((account, session))
    }

    /// Who takes a letter; of a stranger too, whose words are not to be lost.
    fn clerk_of_letter(&mut self, ticket: Option<Ticket>, form: Reader) -> Clerk {
        let known = ticket.and_then(|ticket| Some((self.known(&ticket)?, ticket)));
        let Some(((account, session), ticket)) = known else {
            let (account, session, token) = (AccountId::from_bits(0), Digest::default(), "".into());
            let visitor = Visitor { account, session, token, said: None, is_administrator: false };
            return Clerk::of_letter(visitor, None, form);
        };
        let token = self.sessions.form_token(&session, &ticket);
        let is_administrator = self.is_administrator(account);
        let visitor = Visitor { account, session, token, said: None, is_administrator };
        Clerk::of_letter(visitor, Some(ticket.form_token()), form)
    }

    fn is_administrator(&self, account: AccountId) -> bool {
        let known = self.store.account(account);
        known.is_some_and(|known| self.administrators.iter().any(|own| own == known.address()))
    }

    fn note(&mut self, account: AccountId, session: &Digest, changes: Vec<NoteChange>) {
        if self.store.change_notes(account, changes, self.nobody).is_err() {
            self.sessions.not_noted(session);
        }
    }
}

/// Somebody who is known asks.
struct Asking<'a> {
    account: AccountId,
    ticket: Ticket,
    session: Digest,
    office: Office<'a>,
    /// What the page is to tell him.
    said: Option<Said>,
}

impl<'a> Asking<'a> {
    fn new(account: AccountId, ticket: Ticket, session: Digest, office: Office<'a>) -> Asking<'a> {
        Asking { account, ticket, session, office, said: None }
    }
}

impl Asking<'_> {
    fn ask(mut self, request: &Request) -> Reception {
        let (_, notice) = address::told(&request.target);
        self.said = notice.and_then(|notice| self.office.sessions.take_said(&self.session, notice));
        let answer = match Wish::of(&request.method, &request.target) {
            Ok(Wish::See(Page::Events)) if request.method == "GET" => {
                return Reception::Listens(self.account, self.session);
            }
            Ok(Wish::See(page)) => match self.task(&page) {
                Ok(task) => return self.begin(task),
                Err(answer) => answer,
            },
            Ok(Wish::Do(deed)) => match self.deed(deed, request) {
                Ok(task) => return self.begin(task),
                Err(answer) => answer,
            },
            Err(_) => answer::not_found(),
        };
        Reception::Answered(answer)
    }

    fn begin(self, task: Task) -> Reception {
        let token = self.office.sessions.form_token(&self.session, &self.ticket);
        let is_administrator = self.office.is_administrator(self.account);
        let visitor =
            Visitor { account: self.account, session: self.session, token, said: self.said, is_administrator };
        Reception::Taken(Box::new(Clerk::new(visitor, task)))
    }

    /// What is to be seen; or what is answered at once.
    fn task(&self, page: &Page<'_>) -> Result<Task, Reply> {
        let elsewhere = |key| {
            if self.office.sessions.loaded(&self.session) == Some(key) { Elsewhere::Loaded } else { Elsewhere::Kept }
        };
        Ok(match page {
            Page::Home | Page::Login(_) => {
                let inbox = Page::List { mailbox: INBOX.0, stretch: Stretch::Newest };
                return Err(answer::elsewhere(&inbox.to_string()));
            }
            Page::List { mailbox, stretch } => Task::List(MailboxId(*mailbox), *stretch),
            Page::Read(key) => Task::Read(*key, self.office.sessions.loaded(&self.session)),
            Page::Print(key) => Task::Print(*key),
            Page::Mailboxes => Task::Mailboxes(None),
            Page::Source(key) => Task::Send(*key, Document::Source),
            Page::Download(key) => Task::Send(*key, Document::Message),
            Page::Export(mailbox) => Task::Export(MailboxId(*mailbox)),
            Page::Part(key, part) => Task::Send(*key, Document::Part(*part)),
            Page::Html(key, part) => Task::Show(*key, *part, elsewhere(*key), Extent::Beginning),
            Page::Whole(key, part) => Task::Show(*key, *part, elsewhere(*key), Extent::Whole),
            Page::Asset(asset) => return Err(asset.reply()),
            Page::Compose(start) => Task::Compose(*start),
            Page::Search { words, mailbox, before } => Task::Search(words.to_string(), mailbox.map(MailboxId), *before),
            Page::Settings => Task::Settings(Overview { sessions: self.sessions(), typed: None }),
            Page::Queue(after) if self.office.is_administrator(self.account) => {
                Task::Queue(QueueAsked::Look(*after), page.to_string())
            }
            Page::Queue(_) | Page::Events => return Err(answer::not_found()),
        })
    }

    /// What is to be done; or what is answered at once.
    fn deed(&mut self, deed: Deed, request: &Request) -> Result<Task, Reply> {
        let form = Form::of(&request.media_type, &request.body)
            .map_err(|_| answer::told(Status::BadRequest, "This form is not understood."))?;
        if !self.ticket.form_token().is(form.text("token").unwrap_or_default()) {
            return Err(answer::not_of_session());
        }
        let then = Destination::of(form.text("here").unwrap_or_default());
        match deed {
            Deed::LogIn | Deed::Write => Err(answer::elsewhere(Destination::default().as_str())),
            Deed::LogOut => {
                let session = self.session;
                Ok(Task::Note(self.end(|digest| *digest == session), Noted::LoggedOut))
            }
            Deed::Act => self.act(&form, &then),
            Deed::Show => {
                let sender = || form.text("sender").unwrap_or_default().to_string();
                match form.text("do") {
                    Some("always") => return Ok(Task::Trust(Trust::Begin(sender()), then.as_str().into())),
                    Some("never") => return Ok(Task::Trust(Trust::End(sender()), then.as_str().into())),
                    _ => {}
                }
                if let Some(key) = form.text("key").and_then(|key| key.parse().ok()) {
                    self.office.sessions.load(&self.session, key);
                }
                Err(answer::elsewhere(then.as_str()))
            }
            Deed::Undo => {
                let undo: Undo = form.text("what").and_then(|what| what.parse().ok()).ok_or_else(answer::not_found)?;
                match undo {
                    Undo::Filing { messages, to } => {
                        let back = Page::List { mailbox: to.0, stretch: Stretch::Newest };
                        Ok(Task::Change(Change::File(to), Whom::These(alloc::vec![messages]), back.to_string()))
                    }
                    Undo::Sending(key) => Ok(Task::TakeBack(key)),
                }
            }
            Deed::Queue if !self.office.is_administrator(self.account) => Err(answer::not_found()),
            Deed::Queue => {
                let asked = handling(&form).ok_or_else(answer::not_found)?;
                Ok(Task::Queue(asked, then.as_str().into()))
            }
            Deed::Mailboxes => Ok(Task::Mailboxes(Some(mailbox(&form).ok_or_else(answer::not_found)?))),
            Deed::Set => self.set(&form),
        }
    }

    /// Something with messages: a star is one message's, all else that of those that are marked.
    fn act(&mut self, form: &Form<'_>, then: &Destination) -> Result<Task, Reply> {
        if let Some(key) = form.text("star").and_then(|key| key.parse().ok()) {
            return Ok(Task::Change(Change::Star, whom(form, core::iter::once(key)), then.as_str().into()));
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
            let notice = self.office.sessions.say(&self.session, Said::wrong("Choose a mailbox first."));
            return Err(answer::elsewhere_told(then.as_str(), notice));
        };
        let keys = form.texts("key").filter_map(|key| key.parse().ok());
        Ok(Task::Change(change, whom(form, keys), then.as_str().into()))
    }
}

/// What is done with a mailbox.
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

/// What is done with entries of the queue.
fn handling(form: &Form<'_>) -> Option<QueueAsked> {
    let handling = handling_named(form.text("do")?)?;
    let which = match form.text("key") {
        Some(key) => Which::One(key.parse().ok()?),
        None => Which::Domain(form.text("domain")?.trim().to_ascii_lowercase()),
    };
    Some(QueueAsked::Handle(handling, which))
}

/// Whom these keys of a form mean.
fn whom(form: &Form<'_>, keys: impl Iterator<Item = Key>) -> Whom {
    match form.text("whole") {
        Some("conversation") => Whom::Conversations(keys.collect()),
        _ => Whom::These(together(keys.collect())),
    }
}
