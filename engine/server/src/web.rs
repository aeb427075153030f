//! HTTP served, in either version.
//!
//! [`Web`] is what the sessions of a core share. What they want of the webmail, or of the
//! certificates, it keeps as requests ([`WebRequest`]) until the engine takes them further.

mod context;
mod conversation;
mod errand;
mod host;
mod passwords;
mod routes;
mod session;
mod shared;

pub(crate) use context::{Context, HttpCall};
pub(crate) use conversation::HttpConversation;
pub(crate) use shared::{Web, WebRequest, WebSeed};
