//! The first step of a webmail request, on the core of its connection.
//!
//! A request with a ticket is sent to the core that owns the account, as a [`Request`]. This module
//! answers a request without a ticket, and a request with the same reply for all clients.
//!
//! Invariants:
//! - No page is served in plaintext: the client is redirected to the same address over TLS.
//! - A form must come from a page of the webmail, as far as the browser sends the form's origin.
//! - A page is shown, framed, downloaded or fetched by our script. It is never an image, a style or
//!   a font, as far as the browser says what it wants. So a message that may load images cannot
//!   open pages with the cookie of its reader, although its frame has our origin.
//! - A body is admitted only for a client with a valid session, or as a small login form. A message
//!   upload is also admitted without a valid session, but then only its text is kept.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::{Announced, HandlerRequest, Method, PIECE_BYTES_MAX, Reply, Status};
use store::AccountId;

use crate::form::{Form, MESSAGE_TEXT_BYTES_MAX};
use crate::jobs::Draft;
use crate::login::{DRAFT_BYTES_MAX, login_page};
use crate::request::{self, PasswordChange, Request};
use crate::{Destination, PostAction, Route, SessionTicket, WebPage, answer, program};

/// The limits of request bodies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyLimits {
    /// The longest form, in bytes, for which there may be memory.
    pub form_bytes: usize,
    /// The largest message, in octets.
    pub message_octets: u64,
}

/// The methods of the webmail.
pub const METHODS: &[Method] = &[Method::Get, Method::Head, Method::Post];

/// The longest form of a client without a session, in bytes.
const LOGIN_BYTES_MAX: usize = 4096 + 4 * DRAFT_BYTES_MAX;

/// The longest name in a login form, in bytes. A longer name is cut off.
const NAME_BYTES_MAX: usize = 1024;

/// The longest form of a client with a session, except for messages, in bytes.
pub const FORM_BYTES_MAX: usize = 1 << 20;

/// The memory for a message while its form arrives, in bytes: its texts, one piece that the handler
/// holds, and one piece that is arriving.
pub const MESSAGE_MEMORY_BYTES_MAX: usize = MESSAGE_TEXT_BYTES_MAX + 2 * PIECE_BYTES_MAX;

/// The maximum length that is assumed for a form without a `Content-Length`, in bytes.
const FORM_BYTES_UNANNOUNCED_MAX: usize = 256 * 1024;

/// The result of the first step, if the request is not sent to the core of the account at once.
#[derive(Debug)]
pub enum Dispatch {
    /// The request is answered with this reply.
    Reply(Reply),
    /// A form of this many bytes is admitted.
    AdmitForm(usize),
    /// The core of the account must decide whether a form is admitted.
    AskForForm {
        /// The question to the core of the account.
        request: Box<Request>,
        /// The length of the form in bytes.
        bytes: usize,
    },
    /// The core of the account must decide whether a message upload in pieces is admitted.
    AskForUpload {
        /// The question to the core of the account.
        request: Box<Request>,
        /// The longest form, in bytes.
        bytes: u64,
        /// The memory that the upload takes while it arrives, in bytes.
        memory: usize,
    },
    /// The client logs in.
    LogIn {
        /// The name in the login form.
        name: String,
        /// The password, not checked yet.
        password: Vec<u8>,
        /// The page that the client gets after the login.
        next: Destination,
        /// A short description of the client's program.
        program: String,
        /// The message that the client was writing when its session ended.
        draft: Option<Box<Draft>>,
    },
    /// The client wants to change the password.
    SetPassword {
        /// The account, as the ticket says.
        account: AccountId,
        /// The old password, not checked yet.
        old: Vec<u8>,
        /// The new password.
        new: Box<PasswordChange>,
    },
}

/// Whether the path belongs to the webmail.
pub fn is_path(path: &[u8]) -> bool {
    path == b"/mail" || path.starts_with(b"/mail/")
}

/// The first step of a request, before its body is admitted. `host`: our host name over TLS.
/// `is_over_tls`: the request arrived over TLS. `most`: the limits of the body.
pub fn asked(
    question: &HandlerRequest<'_>,
    host: &str,
    is_over_tls: bool,
    most: BodyLimits,
) -> Result<Request, Dispatch> {
    let target = target(question);
    if !is_over_tls || question.path == "/mail" {
        let path = if question.path == "/mail" { "/mail/" } else { &target };
        return Err(Dispatch::Reply(answer::redirect(&format!("https://{host}{path}"))));
    }
    let Ok(route) = Route::of(question.method.name(), &target) else {
        return Err(Dispatch::Reply(answer::not_found()));
    };
    Err(match (route, ticket_of(question)) {
        (Route::Get(WebPage::Asset(asset)), _) => Dispatch::Reply(asset.reply()),
        (Route::Get(_), _) if is_for_subresource(question) => Dispatch::Reply(answer::not_found()),
        (Route::Get(WebPage::Login(next)), None) => {
            Dispatch::Reply(login_page(host, "", &next, None, ""))
        }
        (Route::Get(_), None) => Dispatch::Reply(answer::login(Destination::of(&target))),
        (Route::Get(_), Some(ticket)) => return Ok(request(question, ticket, target, Vec::new())),
        (Route::Post(_), _) if !is_from_our_page(question) => Dispatch::Reply(answer::error_page(
            Status::Forbidden,
            "This form does not come from a page of this server.",
        )),
        (Route::Post(PostAction::Write), ticket) => {
            upload_announced(ticket, question, most.message_octets)
        }
        (Route::Post(action), ticket) => form_announced(action, ticket, question, most.form_bytes),
    })
}

/// The first step of a message upload. The form may have as many octets as the files of the largest
/// message. In a message, base64 turns 57 octets of a file into a line of 78 octets.
fn upload_announced(
    ticket: Option<SessionTicket>,
    question: &HandlerRequest<'_>,
    message_octets: u64,
) -> Dispatch {
    let bytes = message_octets / 78 * 57;
    let announced = match question.body {
        Announced::Nothing => 0,
        Announced::Bytes(bytes) => bytes,
        Announced::Something => bytes,
    };
    if announced > bytes {
        return Dispatch::Reply(too_large(question, bytes));
    }
    let memory = usize::try_from(announced).unwrap_or(usize::MAX).min(MESSAGE_MEMORY_BYTES_MAX);
    let request =
        Box::new(Request::Write(ticket, question.content_type.unwrap_or_default().into()));
    Dispatch::AskForUpload { request, bytes, memory }
}

fn form_announced(
    action: PostAction,
    ticket: Option<SessionTicket>,
    question: &HandlerRequest<'_>,
    most: usize,
) -> Dispatch {
    let most = if action == PostAction::LogIn { LOGIN_BYTES_MAX } else { most.min(FORM_BYTES_MAX) };
    let bytes = match question.body {
        Announced::Nothing => 0,
        Announced::Bytes(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
        Announced::Something => most.min(FORM_BYTES_UNANNOUNCED_MAX),
    };
    match (action, ticket) {
        _ if bytes > most => Dispatch::Reply(too_large(question, most as u64)),
        (PostAction::LogIn, _) => Dispatch::AdmitForm(bytes),
        (_, Some(ticket)) => {
            Dispatch::AskForForm { request: Box::new(Request::Form(ticket)), bytes }
        }
        (_, None) => Dispatch::Reply(answer::login(Destination::default())),
    }
}

/// The error page for a form of more than `most` bytes.
pub fn too_large(question: &HandlerRequest<'_>, most: u64) -> Reply {
    let words = match Route::of(question.method.name(), &target(question)) {
        Ok(Route::Post(PostAction::Write)) => format!(
            "The message is too large: with attachments it can have at most {} MB. Remove some attachments and try again.",
            most / 1_000_000
        ),
        _ => format!(
            "This form is too large: it can have at most {} KB. Go back to shorten it.",
            most / 1000
        ),
    };
    answer::error_page(Status::ContentTooLarge, &words)
}

/// The next step of a request, after its body has arrived. `host`: as for [`asked`].
pub fn form_arrived(
    question: &HandlerRequest<'_>,
    body: Vec<u8>,
    host: &str,
) -> Result<Request, Dispatch> {
    let target = target(question);
    if let Ok(Route::Post(PostAction::LogIn)) = Route::of(question.method.name(), &target) {
        let Ok(form) = Form::of(question.content_type.unwrap_or_default(), &body) else {
            return Err(Dispatch::Reply(answer::error_page(
                Status::BadRequest,
                "The server could not read this form. Go back, reload the page, and try again.",
            )));
        };
        let text = |name| form.text(name).unwrap_or_default();
        let next = Destination::of(text("next"));
        return Err(Dispatch::LogIn {
            name: start_of(text("name").trim()).to_string(),
            password: text("password").as_bytes().to_vec(),
            next,
            program: program::in_words(question.user_agent.unwrap_or_default()),
            draft: Draft::from_text(text("kept")),
        });
    }
    if let Ok(Route::Post(PostAction::Set)) = Route::of(question.method.name(), &target)
        && let Some(dispatch) = new_password(question, &body)
    {
        return Err(dispatch);
    }
    match ticket_of(question) {
        Some(ticket) => Ok(request(question, ticket, target, body)),
        None => Err(Dispatch::Reply(request::login_reply(question.method.name(), &target, host))),
    }
}

/// The first [`NAME_BYTES_MAX`] bytes of a name. No valid address is longer.
fn start_of(name: &str) -> &str {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default()
}

/// The dispatch of a form that changes the password, if the new password is acceptable.
fn new_password(question: &HandlerRequest<'_>, body: &[u8]) -> Option<Dispatch> {
    let ticket = ticket_of(question)?;
    let form = Form::of(question.content_type.unwrap_or_default(), body).ok()?;
    let text = |name| form.text(name).unwrap_or_default();
    let wanted =
        request::wanted(&form).ok().filter(|_| text("do") == "password")?.as_bytes().to_vec();
    let account = AccountId::from_bits(ticket.account);
    let new = Box::new(PasswordChange { ticket, token: text("token").to_string(), wanted });
    Some(Dispatch::SetPassword { account, old: text("old").as_bytes().to_vec(), new })
}

fn request(
    question: &HandlerRequest<'_>,
    ticket: SessionTicket,
    target: String,
    body: Vec<u8>,
) -> Request {
    let media_type = question.content_type.unwrap_or_default().into();
    Request::Ask { ticket, method: question.method.name().into(), target, media_type, body }
}

/// The session ticket in the request's cookies.
fn ticket_of(question: &HandlerRequest<'_>) -> Option<SessionTicket> {
    SessionTicket::of_cookies(question.cookie.map(str::as_bytes))
}

fn target(question: &HandlerRequest<'_>) -> String {
    match question.query {
        "" => question.path.into(),
        query => format!("{}?{query}", question.path),
    }
}

/// Whether the request comes from our origin, as far as the browser sends its origin (Fetch
/// Metadata; RFC 6454).
fn is_from_our_page(question: &HandlerRequest<'_>) -> bool {
    let is_same_site = question.sec_fetch_site.is_none_or(|site| site == "same-origin");
    let is_same_origin =
        question.origin.is_none_or(|origin| origin.strip_prefix("https://") == Some(question.host));
    is_same_site && is_same_origin
}

/// Whether the browser wants a part of a page or of a message: an image, a style and so on (Fetch
/// Metadata).
fn is_for_subresource(question: &HandlerRequest<'_>) -> bool {
    question.sec_fetch_dest.is_some_and(|wanted| !matches!(wanted, "document" | "iframe" | "empty"))
}

/// The reply that redirects a client to the login page.
pub fn login() -> Reply {
    answer::login(Destination::default())
}
