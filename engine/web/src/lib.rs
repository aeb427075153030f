//! The web server, for HTTP/1.1 and HTTP/2.
//!
//! [`Web`] is the state that the sessions of a core share. It queues the sessions' webmail requests
//! and certificate uploads until the engine forwards them.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod context;
mod conversation;
mod host;
mod passwords;
mod pending;
mod routes;
mod session;
mod shared;

pub use context::{HttpCall, WebContext};
pub use conversation::{HttpConversation, KEPT_BYTES_LEAST};
pub use shared::{Web, WebSeed};
