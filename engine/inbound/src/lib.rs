//! SMTP served, for mail that comes and mail that is submitted.
//!
//! A transaction has a record while it is open, lent from a pool of a fixed size; an idle session
//! has none. The body goes from the received frame into the store's buffers, behind the trace
//! fields that are ours. Of a message from outside, the fields that say what was found out about
//! it come last, and are read first; so do the signatures under one that is submitted here.
//!
//! | file | what it has |
//! |---|---|
//! | `conversation` | what a connection is told |
//! | `shared` | what all sessions of a core have together |
//! | `context`, `waiting` | the parts of a core that sessions use, and what they wait for |
//! | `host`, `actions` | what a session acts by, and what it wants done |
//! | `transaction`, `incoming`, `trace` | an open transaction, its message on the way into the store, and our fields above it |
//! | `login` | logging in |
//! | `strangers`, `limits` | which clients are strangers, and how much they may do |
//! | `lists`, `sender` | what lists say of a client, and whether it may send for a domain (SPF) |
//! | `greylist`, `deferral` | whether a message is deferred until it comes again |
//! | `recipients`, `quota`, `allowance`, `posting` | the recipients, whether they have room, how much an account may send, and mail for other servers |
//! | `proof` | which domains answer for a message (DKIM, ARC, DMARC) |
//! | `ending` | the end of a message |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod actions;
mod allowance;
mod context;
mod conversation;
mod deferral;
mod ending;
mod greylist;
mod host;
mod incoming;
mod limits;
mod lists;
mod login;
mod posting;
mod proof;
mod quota;
mod recipients;
mod sender;
mod shared;
mod strangers;
mod trace;
mod transaction;
mod waiting;

pub use context::Context;
pub use conversation::SmtpConversation;
pub use shared::{Inbound, InboundInUse, InboundSeed, SmtpCall};
pub use strangers::is_judged;
