//! The webmail: HTML pages, forms and the request handlers that work on an account's mail.
//!
//! A template is compiled into constant pieces and holes (the "pre-parsed, indexed pages" of the
//! papers below). The caller lends the values that fill the holes. Every page works without
//! JavaScript: actions are forms, and state is in addresses. Style and script are separate files,
//! so the pages' policy needs no exception for inline code. A browser's request is parsed into a
//! [`Route`], its body into a [`Form`], its session cookie into a [`SessionTicket`], and a search
//! into a [`Query`].
//!
//! Invariants:
//! - Text of a message is written to a page only through the template's escaping or through
//!   [`Prose`]. `Prose` escapes all characters except those of its own tags.
//! - Every form that changes something carries the session's token.
//! - A page never contains HTML of a message. It only refers to the address of the HTML.
//!
//! Implements: WCAG 2.2 AA. The pages follow the papers *A Performance Study of Conventional and
//! Bare PC Webmail Servers* and *A Bare PC TLS Webmail Server*.
//!
//! A request is sent to the core that owns the account. A request handler of that core
//! ([`RequestHandlers`]) works on it, uses only the store of that core, and returns the reply.
//!
//! | file | what |
//! |---|---|
//! | `router`, `request` | requests on the core of the connection, and on the core of the account |
//! | `handlers`, `waiting` | the request handlers of a core, and the requests that wait for them |
//! | `context`, `jobs`, `step` | a handler's context, its jobs, and the result of a step |
//! | `moments`, `zone` | times and sizes as text, and the time zones of readers |
//! | `sessions`, `ended_sessions` | the sessions of a core, and the removal of their notes |
//! | `listeners` | pages that are notified of changes |
//! | `numbered`, `stream` | replies and uploads that are transferred in pieces |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod address;
mod answer;
mod assets;
mod compose;
mod context;
mod conversation;
mod ended_sessions;
mod flash;
mod form;
mod frame;
pub mod handler_reply;
mod handlers;
mod inert;
mod jobs;
mod layout;
mod list;
mod listeners;
mod login;
mod mailboxes;
mod message_style;
mod moments;
mod news;
mod notice;
mod numbered;
mod persisted_session;
mod phishing;
mod preferences;
mod program;
mod prose;
mod queue;
mod refused;
mod remote_content;
mod request;
mod route;
mod router;
mod search;
mod sessions;
mod settings;
mod source;
mod step;
mod stream;
#[cfg(test)]
mod tests;
mod ticket;
mod tls_counts;
mod waiting;
mod zone;

pub use address::{Destination, ListPlace, MessageKey, PermanentId, SearchPlace};
pub use askama::{Error, Template};
pub use assets::{Asset, SCRIPT, STYLE};
pub use compose::ComposePage;
pub use context::{QueueQuestion, WebmailContext};
pub use conversation::{Attachment, ConversationMessage, ConversationPage, Loads, MessageBody};
pub use flash::{FlashMessage, MessageRange, UndoAction};
pub use form::{
    FIELDS_MAX, FileEvent, Form, FormError, FormReader, MESSAGE_TEXT_BYTES_MAX, UploadedFile,
};
pub use frame::{Density, FlashNotice, MailboxLink, PageFrame, QuotaMeter, Theme};
pub use handlers::RequestHandlers;
pub use jobs::{
    Draft, LOOKED_AT_MAX, ROWS_MAX, RowCache, SHOWN_MAX, Secrets, TEXT_BYTES_MAX, UploadPiece,
    WALKED_MAX,
};
pub use list::{ListPage, ListRow, RenderedRow, RowTarget};
pub use listeners::issuer_of;
pub use login::{LoginPage, login_page};
pub use mailboxes::{MailboxesPage, OwnMailbox};
pub use news::MailboxEvent;
pub use notice::KindNotice;
pub use persisted_session::PersistedSession;
pub use preferences::{HoldTime, Preferences};
pub use prose::{Escaped, Prose};
pub use queue::{QueuePage, QueueRow};
pub use refused::RefusedPage;
pub use request::{LoginFacts, PasswordChange, ProofFailure, Request};
pub use route::{ComposeStart, ListRange, NotFound, PostAction, Route, TARGET_BYTES_MAX, WebPage};
pub use router::{
    BodyLimits, Dispatch, FORM_BYTES_MAX, MESSAGE_MEMORY_BYTES_MAX, METHODS, asked, form_arrived,
    is_path, login, too_large,
};
pub use search::{Candidate, Query, TERM_CHARS_MAX, TERMS_MAX};
pub use sessions::IDLE_SECONDS;
pub use settings::{SessionLine, SettingsPage};
pub use source::{PrintPage, SourcePage};
pub use step::READS_MAX;
pub use stream::PIECE_BYTES;
pub use ticket::{FormToken, NoTicket, SECRET_BYTES, SessionTicket, clear_cookie};
pub use tls_counts::TlsRow;
pub use waiting::too_many_requests;
