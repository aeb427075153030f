//! The webmail: HTML pages, forms and the request handlers that work on an account's mail.
//!
//! A template is compiled into constant pieces and holes (the papers' pre-parsed, indexed pages).
//! The caller lends the values that fill the holes. Every page works without JavaScript: actions
//! are forms, and state is in addresses. Style and script are separate files, so the pages' policy
//! needs no exception for inline code. The browser's request is a [`Wish`], its body a [`Form`],
//! its session cookie a [`Ticket`], and its search a [`Query`].
//!
//! Invariants:
//! - Text of a message enters a page only through the template's escaping or through [`Prose`].
//!   `Prose` escapes everything that it does not generate itself.
//! - Every form that changes something carries the session's token.
//! - No HTML of a message is ever part of a page. A page only refers to its address.
//!
//! Implements: WCAG 2.2 AA. The pages follow the papers *A Performance Study of Conventional and
//! Bare PC Webmail Servers* and *A Bare PC TLS Webmail Server*.
//!
//! A request goes to the core that owns the account. There a request handler ([`Clerks`]) works on
//! it with the store of that core alone, and the reply goes back.
//!
//! | file | what |
//! |---|---|
//! | `door`, `visit` | requests on the core of the connection, and on the core of the account |
//! | `clerks`, `waiting` | the request handlers of a core, and the requests that wait for them |
//! | `context`, `clerk`, `step` | a handler's context, its jobs, and the result of a step |
//! | `listeners` | pages that are notified of changes |
//! | `numbered`, `stream` | replies and uploads that are transferred in pieces |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod address;
mod answer;
mod assets;
mod chosen;
mod clerk;
mod clerks;
mod compose;
mod context;
mod conversation;
mod deceit;
mod door;
mod elsewhere;
mod form;
mod frame;
mod inert;
mod kept;
mod list;
mod listeners;
mod login;
mod mailboxes;
mod moments;
mod news;
mod numbered;
mod program;
mod prose;
mod queue;
mod refused;
mod route;
mod said;
mod search;
mod sessions;
mod settings;
mod source;
mod step;
mod stream;
mod surroundings;
#[cfg(test)]
mod tests;
mod ticket;
mod tls_counts;
pub mod told;
mod visit;
mod waiting;

pub use address::{Destination, Key};
pub use askama::{Error, Template};
pub use assets::{Asset, SCRIPT, STYLE};
pub use chosen::{Chosen, Hold};
pub use clerk::{
    Draft, LOOKED_AT_MAX, Piece, ROWS_MAX, SHOWN_MAX, Secrets, TEXT_BYTES_MAX, WALKED_MAX,
    WrittenRows,
};
pub use clerks::{Clerks, too_many_requests};
pub use compose::ComposePage;
pub use context::{Context, QueueQuestion};
pub use conversation::{Attachment, Body, ConversationPage, Letter, Loads};
pub use door::{
    Door, FORM_BYTES_MAX, LETTER_MEMORY_BYTES_MAX, METHODS, Most, asked, form_arrived, is_path,
    login, too_large,
};
pub use form::{FIELDS_MAX, File, Form, FormError, Heard, LETTER_TEXT_BYTES_MAX, Reader};
pub use frame::{Density, Frame, MailboxLink, Meter, Notice, Theme};
pub use kept::Kept;
pub use list::{ListPage, Row, WrittenRow};
pub use listeners::giver_of;
pub use login::{LoginPage, login_page};
pub use mailboxes::{MailboxesPage, OwnMailbox};
pub use news::News;
pub use prose::{Escaped, Prose};
pub use queue::{QueuePage, QueueRow};
pub use refused::RefusedPage;
pub use route::{Deed, NotFound, Page, Start, Stretch, TARGET_BYTES_MAX, Wish};
pub use said::{Messages, Said, Undo};
pub use search::{Candidate, Query, TERM_LETTERS_MAX, TERMS_MAX};
pub use sessions::IDLE_SECONDS;
pub use settings::{SessionLine, SettingsPage};
pub use source::{PrintPage, Printed, SourcePage};
pub use step::READS_MAX;
pub use stream::PIECE_BYTES;
pub use ticket::{FormToken, NoTicket, SECRET_BYTES, Ticket, clear_cookie};
pub use tls_counts::TlsRow;
pub use visit::{Arrival, NewPassword, NotProved, Request};
