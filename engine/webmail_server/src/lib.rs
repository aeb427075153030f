//! The webmail served: requests of its users, worked on where their mail is.
//!
//! A request goes to the core that owns the account, as a *visit*. There a request handler (crate
//! `webmail`) does what is wanted, with the store of that core alone, and the reply goes back.
//!
//! | file | what |
//! |---|---|
//! | `clerks` | the request handlers of a core, and the requests that wait for them |
//! | `desk` | what one of them works with |
//! | `listeners` | pages that are told of changes |
//! | `streams` | replies that go out in pieces |
//! | `letters` | messages that come in pieces |
//! | `waiting` | requests that wait for a request handler |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod clerks;
mod desk;
mod letters;
mod listeners;
mod streams;
mod waiting;

pub use clerks::{Clerks, Office, QueueQuestion};
pub use listeners::giver_of;
