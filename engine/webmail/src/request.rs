//! Requests from the core of a connection to the core that owns the account. That core answers a
//! request at once, or gives it to a request handler as a job.
//!
//! Invariants:
//! - A client without the ticket of a valid session is asked to log in, whatever it requests.
//! - Every change needs a form from our pages, which has the session's token.

mod actions;
mod passwords;
mod settings;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;

use http::{Reply, ReplyField, Status};
use mail::PasswordMark;
use store::{AccountId, INBOX, MailboxId, NoteChange, Store};
use tasks::Continuation;

use crate::address::{self, number};
use crate::answer;
use crate::context::WebmailContext;
use crate::flash::{FlashMessage, UndoAction};
use crate::form::{Form, FormReader};
use crate::handler_reply::HandlerReply;
use crate::jobs::{
    Change, ConversationView, DocumentKind, Draft, Extent, Job, MailboxChange, Noted, Secrets,
    Selection, SettingsJob, TrustChange, UploadPiece,
};
use crate::layout::AuthenticatedClient;
use crate::login::login_page_with;
use crate::persisted_session::PersistedSession;
use crate::queue::handling_named;
use crate::remote_content::RemoteContent;
use crate::sessions::{Digest, SessionLookup, WebSessions};
use crate::{Destination, ListRange, PostAction, Route, SessionTicket, WebPage};
use outbound::{QueueQuery, Which};

pub use passwords::{PasswordChange, ProofFailure};

pub(crate) use passwords::wanted;

/// A request from the core of a connection to the core that owns the account.
#[derive(Clone, Debug)]
pub enum Request {
    /// The client has logged in and gets a ticket. After that, it is redirected to the destination,
    /// or gets the page with the message that it was writing.
    Begin(AccountId, LoginFacts, Destination, Option<Box<Draft>>),
    /// A request of a client with a ticket.
    Ask {
        /// The ticket of the client's session.
        ticket: SessionTicket,
        /// GET, HEAD or POST.
        method: String,
        /// The path and the query.
        target: String,
        /// The media type of the body, or empty.
        media_type: String,
        /// The body of the request, or empty.
        body: Vec<u8>,
    },
    /// A client with a ticket wants to send a form.
    Form(SessionTicket),
    /// A client wants to send a message, as a form of this media type that arrives in pieces. The
    /// ticket is `None` if the client has no session.
    Write(Option<SessionTicket>, String),
    /// A client with a ticket wants to change the password. The text is the token of the form. The
    /// result has the new secrets, if the client has proved that it knows the old password.
    SetPassword(SessionTicket, String, Result<Secrets, ProofFailure>),
    /// A piece of the upload with this number has arrived.
    Piece(u64, UploadPiece),
    /// The client wants more of the reply with this number.
    Wanted(u64),
    /// The client of the open reply with this number has left, or the rest of the upload with this
    /// number will not arrive.
    Left(u64),
}

/// Facts about a login.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoginFacts {
    /// A mark of the password with which the client has logged in.
    pub password: PasswordMark,
    /// The client's address.
    pub from: IpAddr,
    /// A short description of the client's program.
    pub program: String,
}

impl Request {
    /// The account in the client's ticket. A message of a client without a session has account 0,
    /// which does not exist.
    pub fn account(&self) -> AccountId {
        match self {
            Request::Begin(account, ..) => *account,
            Request::Ask { ticket, .. }
            | Request::Form(ticket)
            | Request::SetPassword(ticket, ..) => AccountId::from_bits(ticket.account),
            Request::Write(ticket, _) => {
                AccountId::from_bits(ticket.as_ref().map_or(0, |ticket| ticket.account))
            }
            Request::Piece(..) | Request::Wanted(_) | Request::Left(_) => AccountId::from_bits(0),
        }
    }

    /// The number of the open reply or the upload to which the request belongs. The request is sent
    /// to the core that has assigned the number.
    pub fn number(&self) -> Option<u64> {
        match self {
            Request::Piece(number, _) | Request::Wanted(number) | Request::Left(number) => {
                Some(*number)
            }
            _ => None,
        }
    }

    /// The length of the form in the request, in bytes.
    pub fn form_bytes(&self) -> usize {
        if let Request::Ask { body, .. } = self { body.len() } else { 0 }
    }
}

/// The reason for the login page, for a browser with the ticket of an ended session.
const SESSION_ENDED: &str = "Your session has ended. Sign in to go on where you were.";

/// The reply to a client without a session, which must log in first.
pub(crate) fn login_reply(method: &str, target: &str, host: &str) -> Reply {
    match Route::of(method, target) {
        // The login page is for a browser that still sends the ticket of an expired session.
        Ok(Route::Get(WebPage::Login(next))) => {
            let why = (next != Destination::default()).then_some(SESSION_ENDED);
            login_page_with(host, &next, why)
        }
        Ok(Route::Get(_)) => answer::login(Destination::of(target)),
        _ => answer::login(Destination::default()),
    }
}

/// The sessions of a core, with the parts of the core.
pub(crate) struct SessionContext<'a, 'c> {
    pub(crate) sessions: &'a mut WebSessions,
    /// The continuation of store requests that no handler waits for.
    pub(crate) unawaited: Continuation,
    /// Whether a job is changing the account's password. Only one job at a time may do so.
    pub(crate) is_changing: &'a dyn Fn(AccountId) -> bool,
    pub(crate) cx: &'a mut WebmailContext<'c>,
}

/// The job for a request on the core that owns the account, and its client. `secret`: 32 bytes from
/// a cryptographic generator, used once. Errors: the reply, if the request is answered at once.
pub(crate) fn job_for(
    request: Request,
    secret: [u8; 32],
    mut cx: SessionContext<'_, '_>,
) -> Result<(AuthenticatedClient, Job), HandlerReply> {
    match request {
        Request::Begin(account, arrival, next, draft) => {
            let ticket = SessionTicket::new(account.to_bits(), secret);
            cx.begin(account, ticket.digest(), arrival);
            let reply = match draft {
                None => answer::redirect(next.as_str()),
                Some(draft) => {
                    let client = AuthenticatedClient {
                        account,
                        session: ticket.digest(),
                        token: cx.sessions.form_token(&ticket.digest(), &ticket),
                        flash: None,
                        is_administrator: cx.is_administrator(account),
                    };
                    draft.page_again(client, cx.store())
                }
            };
            Err(HandlerReply::Reply(
                reply.with(ReplyField::SetCookie, &ticket.set_cookie().to_string()),
            ))
        }
        Request::Form(ticket) => Err(match cx.known(&ticket) {
            Some(_) => HandlerReply::FormAdmitted,
            None => HandlerReply::NoSession,
        }),
        Request::Write(ticket, media_type) => match FormReader::of(&media_type) {
            Ok(reader) => Ok(cx.job_of_message(ticket, reader)),
            Err(_) => Err(HandlerReply::Reply(answer::error_page(
                Status::BadRequest,
                "The server could not read this form. Go back, reload the page, and try again.",
            ))),
        },
        Request::SetPassword(ticket, token, proved) => match cx.known(&ticket) {
            Some((account, session)) => {
                AuthenticatedRequest { account, ticket, session, cx, flash: None }
                    .set_password(&token, proved)
            }
            None => Err(HandlerReply::Reply(answer::login(Destination::default()))),
        },
        Request::Ask { ticket, method, target, media_type, body } => match cx.known(&ticket) {
            Some((account, session)) => {
                let asking = AuthenticatedRequest { account, ticket, session, cx, flash: None };
                asking.ask(&method, &target, &media_type, &body)
            }
            None => Err(HandlerReply::Reply(login_reply(&method, &target, cx.cx.hostname))),
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

    /// Begins the session of a client that has logged in. The session is valid at once, although
    /// the store persists it later.
    fn begin(&mut self, account: AccountId, session: Digest, arrival: LoginFacts) {
        let LoginFacts { password, from, program } = arrival;
        let persisted = PersistedSession {
            since: self.cx.turn.wall,
            seen: self.cx.turn.wall,
            password,
            from,
            program,
        };
        if let Some(known) = self.cx.archive.own.store.account(account) {
            let changes = self.sessions.begin(&known, session, persisted);
            self.note(account, &session, changes);
        }
    }

    /// The account and session of a ticket, if the session is valid.
    fn known(&mut self, ticket: &SessionTicket) -> Option<(AccountId, Digest)> {
        let (account, session) = (AccountId::from_bits(ticket.account), ticket.digest());
        let SessionLookup::Known(seen) = self.sessions.look_up(
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

    /// The job that receives a message. A client without a session gets such a job too, so that the
    /// text is not lost.
    fn job_of_message(
        &mut self,
        ticket: Option<SessionTicket>,
        form: FormReader,
    ) -> (AuthenticatedClient, Job) {
        let known = ticket.and_then(|ticket| Some((self.known(&ticket)?, ticket)));
        let Some(((account, session), ticket)) = known else {
            let (account, session, token) = (AccountId::from_bits(0), Digest::default(), "".into());
            let client = AuthenticatedClient {
                account,
                session,
                token,
                flash: None,
                is_administrator: false,
            };
            return (client, Job::write(None, form));
        };
        let token = self.sessions.form_token(&session, &ticket);
        let is_administrator = self.is_administrator(account);
        let client = AuthenticatedClient { account, session, token, flash: None, is_administrator };
        (client, Job::write(Some(ticket.form_token()), form))
    }

    fn is_administrator(&self, account: AccountId) -> bool {
        let known = self.store().account(account);
        known.is_some_and(|known| {
            self.cx.directory.administrators().iter().any(|own| own == known.address())
        })
    }

    fn note(&mut self, account: AccountId, session: &Digest, changes: Vec<NoteChange>) {
        if self.cx.archive.own.store.change_notes(account, changes, self.unawaited).is_err() {
            self.sessions.persist_failed(session);
        }
    }
}

/// A request of a client with a session.
struct AuthenticatedRequest<'a, 'c> {
    account: AccountId,
    ticket: SessionTicket,
    session: Digest,
    cx: SessionContext<'a, 'c>,
    /// The flash message that the page shows.
    flash: Option<FlashMessage>,
}

impl AuthenticatedRequest<'_, '_> {
    fn ask(
        mut self,
        method: &str,
        target: &str,
        media_type: &str,
        body: &[u8],
    ) -> Result<(AuthenticatedClient, Job), HandlerReply> {
        let (_, notice) = address::split_flash(target);
        self.flash = notice.and_then(|notice| self.cx.sessions.take_flash(&self.session, notice));
        let job = match Route::of(method, target) {
            Ok(Route::Get(WebPage::Events)) if method == "GET" => Ok(Job::Listen),
            Ok(Route::Get(page)) => self.page(&page),
            Ok(Route::Post(action)) => self.post(action, media_type, body),
            Err(_) => Err(answer::not_found()),
        };
        match job {
            Ok(job) => Ok((self.client(), job)),
            Err(reply) => Err(HandlerReply::Reply(reply)),
        }
    }

    fn client(self) -> AuthenticatedClient {
        let token = self.cx.sessions.form_token(&self.session, &self.ticket);
        let is_administrator = self.cx.is_administrator(self.account);
        AuthenticatedClient {
            account: self.account,
            session: self.session,
            token,
            flash: self.flash,
            is_administrator,
        }
    }

    /// The job that makes a page. Errors: the reply, if the request is answered at once.
    fn page(&self, page: &WebPage<'_>) -> Result<Job, Reply> {
        let remote_content = |key| {
            if self.cx.sessions.loaded(&self.session) == Some(key) {
                RemoteContent::Loaded
            } else {
                RemoteContent::Blocked
            }
        };
        let read =
            |key, list, view| Job::read(key, list, self.cx.sessions.loaded(&self.session), view);
        Ok(match page {
            WebPage::Home | WebPage::Login(_) => {
                let inbox = WebPage::List { mailbox: INBOX.0, range: ListRange::Newest };
                return Err(answer::redirect(&inbox.to_string()));
            }
            WebPage::List { mailbox, range } => Job::list(MailboxId(*mailbox), *range),
            WebPage::Read(key) => read(*key, None, ConversationView::Screen),
            WebPage::Message(id, list) => {
                let key = id.place(self.account, self.cx.store()).ok_or_else(answer::not_found)?;
                read(key, list.clone(), ConversationView::Screen)
            }
            WebPage::Print(key) => read(*key, None, ConversationView::PaperOfOne),
            WebPage::PrintAll(key) => read(*key, None, ConversationView::Paper),
            WebPage::Mailboxes => Job::mailboxes(None),
            WebPage::Source(key) => Job::send(*key, DocumentKind::Source),
            WebPage::Download(key) => Job::send(*key, DocumentKind::Message),
            WebPage::Export(mailbox) => Job::export(MailboxId(*mailbox)),
            WebPage::Part(key, part) => Job::send(*key, DocumentKind::Part(*part)),
            WebPage::Inner(key, part, file) => Job::send(*key, DocumentKind::Inner(*part, *file)),
            WebPage::Html(key, part) => {
                Job::show(*key, *part, remote_content(*key), Extent::Beginning)
            }
            WebPage::Whole(key, part) => {
                Job::show(*key, *part, remote_content(*key), Extent::Whole)
            }
            WebPage::Asset(asset) => return Err(asset.reply()),
            WebPage::Compose(start) => Job::compose(*start),
            WebPage::Search { words, mailbox, before } => {
                Job::search(words.to_string(), mailbox.map(MailboxId), *before)
            }
            WebPage::Settings => {
                Job::Settings(SettingsJob { sessions: self.sessions(), typed: None })
            }
            WebPage::Queue(after) if self.cx.is_administrator(self.account) => {
                Job::queue(QueueQuery::Look(*after), page.to_string())
            }
            WebPage::Queue(_) | WebPage::Events => return Err(answer::not_found()),
        })
    }

    /// The job that carries out a form. Errors: the reply, if the request is answered at once.
    fn post(&mut self, action: PostAction, media_type: &str, body: &[u8]) -> Result<Job, Reply> {
        let form = Form::of(media_type, body).map_err(|_| {
            answer::error_page(
                Status::BadRequest,
                "The server could not read this form. Go back, reload the page, and try again.",
            )
        })?;
        if !self.ticket.form_token().is(form.text("token").unwrap_or_default()) {
            return Err(answer::not_of_session());
        }
        let then = Destination::of(form.text("here").unwrap_or_default());
        match action {
            PostAction::LogIn | PostAction::Write => {
                Err(answer::redirect(Destination::default().as_str()))
            }
            PostAction::LogOut => {
                let session = self.session;
                Ok(Job::note(self.end(|digest| *digest == session), Noted::LoggedOut))
            }
            PostAction::Act => self.act(&form, &then),
            PostAction::Show => {
                let sender = || form.text("sender").unwrap_or_default().to_string();
                match form.text("do") {
                    Some("always") => {
                        return Ok(Job::trust(TrustChange::Begin(sender()), then.as_str().into()));
                    }
                    Some("never") => {
                        return Ok(Job::trust(TrustChange::End(sender()), then.as_str().into()));
                    }
                    _ => {}
                }
                if let Some(key) = form.text("key").and_then(|key| key.parse().ok()) {
                    self.cx.sessions.load(&self.session, key);
                }
                Err(answer::redirect(then.as_str()))
            }
            PostAction::Undo => {
                let undo: UndoAction = form
                    .text("what")
                    .and_then(|what| what.parse().ok())
                    .ok_or_else(answer::not_found)?;
                match undo {
                    UndoAction::Filing { messages, to } => {
                        let back = WebPage::List { mailbox: to.0, range: ListRange::Newest };
                        Ok(Job::change(
                            Change::File(to),
                            Selection::These(alloc::vec![messages]),
                            back.to_string(),
                        ))
                    }
                    UndoAction::Sending(key) => Ok(Job::take_back(key)),
                }
            }
            PostAction::Queue if !self.cx.is_administrator(self.account) => {
                Err(answer::not_found())
            }
            PostAction::Queue => {
                let asked = handling(&form).ok_or_else(answer::not_found)?;
                Ok(Job::queue(asked, then.as_str().into()))
            }
            PostAction::Mailboxes => {
                Ok(Job::mailboxes(Some(mailbox(&form).ok_or_else(answer::not_found)?)))
            }
            PostAction::Set => self.set(&form),
        }
    }
}

/// The mailbox change that a form asks for.
fn mailbox(form: &Form<'_>) -> Option<MailboxChange> {
    let id = || form.text("box").and_then(|id| number(id).ok()).map(MailboxId);
    let name = || form.text("name").unwrap_or_default().to_string();
    match form.text("do").unwrap_or_default() {
        "make" => Some(MailboxChange::Make(name())),
        "rename" => Some(MailboxChange::Rename(id()?, name())),
        "remove" => Some(MailboxChange::Remove(id()?)),
        _ => None,
    }
}

/// The change of queue entries that a form asks for.
fn handling(form: &Form<'_>) -> Option<QueueQuery> {
    let handling = handling_named(form.text("do")?)?;
    let which = match form.text("key") {
        Some(key) => Which::One(key.parse().ok()?),
        None => Which::Domain(form.text("domain")?.trim().to_ascii_lowercase()),
    };
    Some(QueueQuery::Handle(handling, which))
}
