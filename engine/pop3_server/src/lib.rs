//! The POP3 server.
//!
//! | file | what it has |
//! |---|---|
//! | `conversation` | a connection and its events |
//! | `host`, `actions` | the host of sessions, and the actions that it implements |
//! | `state` | the state of a connection outside its session |
//! | `login`, `reading`, `deletion` | operations that take several turns |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod actions;
mod conversation;
mod deletion;
mod host;
mod login;
mod reading;
mod state;

pub use conversation::Pop3Conversation;
pub use host::{Pop3, Pop3Call, Pop3Context, Pop3WaitPoint};
