//! HTTP served, in either version.
//!
//! [`Web`] is what the sessions of a core share. What they want of the webmail, or of the
//! certificates, it keeps as requests until the engine takes them further.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod context;
mod conversation;
mod errand;
mod host;
mod passwords;
mod routes;
mod session;
mod shared;

pub use context::{Context, HttpCall};
pub use conversation::{HttpConversation, KEPT_BYTES_LEAST};
pub use shared::{Web, WebSeed};
