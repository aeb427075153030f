//! The door: what a request for the webmail comes to, on whatever core its connection is.
//!
//! A request with a ticket goes on to the core that owns the account, as a [`Request`]. What has
//! none yet, and what is the same for all clients, is answered here.
//!
//! Invariants:
//! - Nothing of the webmail is spoken of in the clear: who asks there is sent to the same address over TLS.
//! - What changes something comes from a page of ours, as far as the browser says where it comes from.
//! - A body is let in only of who shows the ticket of a session; and a small one of who says who he is. Of a letter whose writer is not known any more only the words are kept.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::{Announced, Method, PIECE_BYTES_MAX, Question, Reply, Status};
use store::AccountId;

use crate::clerk::Draft;
use crate::form::{Form, LETTER_TEXT_BYTES_MAX};
use crate::login::{KEPT_BYTES_MAX, login_page};
use crate::visit::{self, NewPassword, Request};
use crate::{Deed, Destination, Page, Ticket, Wish, answer, program};

/// How much may come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Most {
    /// Bytes of a form that there may ever be memory for.
    pub form_bytes: usize,
    /// Octets of a message.
    pub message_octets: u64,
}

/// What may be done with the webmail's addresses.
pub const METHODS: &[Method] = &[Method::Get, Method::Head, Method::Post];

/// The longest form of who is not logged in yet.
const LOGIN_BYTES_MAX: usize = 4096 + 4 * KEPT_BYTES_MAX;

/// Bytes of a name that is said at a login, of which more is not kept.
const NAME_BYTES_MAX: usize = 1024;

/// The longest form of who is, but for letters, in bytes.
pub const FORM_BYTES_MAX: usize = 1 << 20;

/// Bytes of memory that a letter may take while its form comes: its texts, a piece that came, and one that is on its way.
pub const LETTER_MEMORY_BYTES_MAX: usize = LETTER_TEXT_BYTES_MAX + 2 * PIECE_BYTES_MAX;

/// A form of which nobody says how long it is may be so long.
const FORM_BYTES_USUAL: usize = 256 * 1024;

/// What comes before a request goes to the core that owns the account, or instead of that.
#[derive(Debug)]
pub enum Door {
    /// That is the answer.
    Reply(Reply),
    /// A form of so many bytes may come.
    Admit(usize),
    /// Whose mail it is has to be asked whether a form may come.
    Knock {
        /// What its core is asked.
        request: Box<Request>,
        /// Bytes of the form.
        bytes: usize,
    },
    /// The same of a letter, which comes in pieces.
    Letter {
        /// What the core of the account is asked.
        request: Box<Request>,
        /// How long its form may be, in bytes.
        bytes: u64,
        /// How much memory that takes meanwhile, in bytes.
        memory: usize,
    },
    /// Somebody says who he is, and where he wants to go.
    LogIn {
        /// His name.
        name: String,
        /// What he says is his password.
        password: Vec<u8>,
        /// Where he goes then.
        next: Destination,
        /// The program that says so.
        program: String,
        /// The letter that he was writing when he was not known any more.
        kept: Option<Box<Draft>>,
    },
    /// Somebody wants another password.
    SetPassword {
        /// Whose account it is, as he says.
        account: AccountId,
        /// What he says is the password.
        old: Vec<u8>,
        /// What he wants.
        new: Box<NewPassword>,
    },
}

/// Whether a path is the webmail's.
pub fn is_path(path: &[u8]) -> bool {
    path == b"/mail" || path.starts_with(b"/mail/")
}

/// What a request comes to, whose body, if it has one, is still to come. `host`: how we are found over TLS; `is_over_tls`: whether it came so; `most`: how much may come.
pub fn asked(
    question: &Question<'_>,
    host: &str,
    is_over_tls: bool,
    most: Most,
) -> Result<Request, Door> {
    let target = target(question);
    if !is_over_tls || question.path == "/mail" {
        let path = if question.path == "/mail" { "/mail/" } else { &target };
        return Err(Door::Reply(answer::elsewhere(&format!("https://{host}{path}"))));
    }
    let Ok(wish) = Wish::of(question.method.name(), &target) else {
        return Err(Door::Reply(answer::not_found()));
    };
    Err(match (wish, ticket_of(question)) {
        (Wish::See(Page::Asset(asset)), _) => Door::Reply(asset.reply()),
        (Wish::See(Page::Login(next)), None) => Door::Reply(login_page(host, "", &next, None, "")),
        (Wish::See(_), None) => Door::Reply(answer::login(Destination::of(&target))),
        (Wish::See(_), Some(ticket)) => return Ok(request(question, ticket, target, Vec::new())),
        (Wish::Do(_), _) if !is_from_our_page(question) => {
            Door::Reply(answer::told(Status::Forbidden, "This does not come from a page of ours."))
        }
        (Wish::Do(Deed::Write), ticket) => letter_announced(ticket, question, most.message_octets),
        (Wish::Do(deed), ticket) => form_announced(deed, ticket, question, most.form_bytes),
    })
}

/// A letter is to come. Its form may be as long as files are that make a message as large as messages may be.
fn letter_announced(ticket: Option<Ticket>, question: &Question<'_>, message_octets: u64) -> Door {
    let bytes = message_octets / 78 * 57;
    let announced = match question.body {
        Announced::Nothing => 0,
        Announced::Bytes(bytes) => bytes,
        Announced::Something => bytes,
    };
    if announced > bytes {
        return Door::Reply(too_large(question, bytes));
    }
    let memory = usize::try_from(announced).unwrap_or(usize::MAX).min(LETTER_MEMORY_BYTES_MAX);
    let request =
        Box::new(Request::Write(ticket, question.content_type.unwrap_or_default().into()));
    Door::Letter { request, bytes, memory }
}

fn form_announced(
    deed: Deed,
    ticket: Option<Ticket>,
    question: &Question<'_>,
    most: usize,
) -> Door {
    let most = if deed == Deed::LogIn { LOGIN_BYTES_MAX } else { most.min(FORM_BYTES_MAX) };
    let bytes = match question.body {
        Announced::Nothing => 0,
        Announced::Bytes(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
        Announced::Something => most.min(FORM_BYTES_USUAL),
    };
    match (deed, ticket) {
        _ if bytes > most => Door::Reply(too_large(question, most as u64)),
        (Deed::LogIn, _) => Door::Admit(bytes),
        (_, Some(ticket)) => Door::Knock { request: Box::new(Request::Knock(ticket)), bytes },
        (_, None) => Door::Reply(answer::login(Destination::default())),
    }
}

/// What is answered to whose form has more than so many bytes.
pub fn too_large(question: &Question<'_>, most: u64) -> Reply {
    let words = match Wish::of(question.method.name(), &target(question)) {
        Ok(Wish::Do(Deed::Write)) => format!(
            "That is too much: a letter has {} MB at most with all its files. Go back: your letter is still there.",
            most / 1_000_000
        ),
        _ => format!(
            "That is too much: {} KB is what can be sent from here. Go back: nothing is lost.",
            most / 1000
        ),
    };
    answer::told(Status::ContentTooLarge, &words)
}

/// What a request comes to whose body has come. `host`: as for [`asked`].
pub fn form_arrived(question: &Question<'_>, body: Vec<u8>, host: &str) -> Result<Request, Door> {
    let target = target(question);
    if let Ok(Wish::Do(Deed::LogIn)) = Wish::of(question.method.name(), &target) {
        let Ok(form) = Form::of(question.content_type.unwrap_or_default(), &body) else {
            return Err(Door::Reply(answer::told(
                Status::BadRequest,
                "This form is not understood.",
            )));
        };
        let text = |name| form.text(name).unwrap_or_default();
        let next = Destination::of(text("next"));
        return Err(Door::LogIn {
            name: start_of(text("name").trim()).to_string(),
            password: text("password").as_bytes().to_vec(),
            next,
            program: program::in_words(question.user_agent.unwrap_or_default()),
            kept: Draft::of_kept(text("kept")),
        });
    }
    if let Ok(Wish::Do(Deed::Set)) = Wish::of(question.method.name(), &target)
        && let Some(door) = new_password(question, &body)
    {
        return Err(door);
    }
    match ticket_of(question) {
        Some(ticket) => Ok(request(question, ticket, target, body)),
        None => Err(Door::Reply(visit::reply_to_stranger(question.method.name(), &target, host))),
    }
}

/// The start of a name that was said: no address is longer.
fn start_of(name: &str) -> &str {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default()
}

/// A form that asks for a password which may be one.
fn new_password(question: &Question<'_>, body: &[u8]) -> Option<Door> {
    let ticket = ticket_of(question)?;
    let form = Form::of(question.content_type.unwrap_or_default(), body).ok()?;
    let text = |name| form.text(name).unwrap_or_default();
    let wanted =
        visit::wanted(&form).ok().filter(|_| text("do") == "password")?.as_bytes().to_vec();
    let account = AccountId::from_bits(ticket.account);
    let new = Box::new(NewPassword { ticket, token: text("token").to_string(), wanted });
    Some(Door::SetPassword { account, old: text("old").as_bytes().to_vec(), new })
}

fn request(question: &Question<'_>, ticket: Ticket, target: String, body: Vec<u8>) -> Request {
    let media_type = question.content_type.unwrap_or_default().into();
    Request::Ask { ticket, method: question.method.name().into(), target, media_type, body }
}

/// What its browser shows to be somebody.
fn ticket_of(question: &Question<'_>) -> Option<Ticket> {
    Ticket::of_cookies(question.cookie.map(str::as_bytes))
}

fn target(question: &Question<'_>) -> String {
    match question.query {
        "" => question.path.into(),
        query => format!("{}?{query}", question.path),
    }
}

/// A browser that says where a request comes from says that it comes from us (Fetch Metadata; RFC 6454).
fn is_from_our_page(question: &Question<'_>) -> bool {
    let is_same_site = question.sec_fetch_site.is_none_or(|site| site == "same-origin");
    let is_same_origin =
        question.origin.is_none_or(|origin| origin.strip_prefix("https://") == Some(question.host));
    is_same_site && is_same_origin
}

/// Who asks has to log in first.
pub fn login() -> Reply {
    answer::login(Destination::default())
}
