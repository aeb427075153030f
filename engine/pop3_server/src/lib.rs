//! POP3 served.
//!
//! | file | what it has |
//! |---|---|
//! | `conversation` | what a connection is told |
//! | `host`, `actions` | what a session acts by, and what it wants done |
//! | `state` | what is known of a connection beside its session |
//! | `login`, `reading`, `deletion` | what takes time |
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
pub use host::{Context, Point, Pop3, Pop3Call};
