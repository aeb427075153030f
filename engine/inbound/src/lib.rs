//! The SMTP service: incoming mail and submission.
//!
//! An open transaction has a record, from a pool of a fixed size. An idle session has no record.
//! The body goes from the received frame into the store's buffers, after our trace fields. The
//! check results of external mail, and the signatures of submitted mail, are written last. They are
//! read first, because the store puts them on top of the message.
//!
//! | file | content |
//! |---|---|
//! | `conversation` | an SMTP connection and its events |
//! | `shared` | what all sessions of a core share |
//! | `context`, `waiting` | the parts of a core that sessions use, and the awaited events |
//! | `host`, `actions` | what a session acts on, and its actions |
//! | `transaction`, `incoming`, `trace` | an open transaction, its message, our fields above it |
//! | `login` | logging in |
//! | `external_clients`, `limits` | which clients are external, and their rate limits |
//! | `lists`, `spf_check` | the listings of a client, and whether it may send for a domain (SPF) |
//! | `greylist`, `deferral` | greylisting |
//! | `recipients`, `quota`, `allowance`, `posting` | recipients, quotas, sending limits, mail out |
//! | `dmarc_check` | which domains answer for a message (DKIM, ARC, DMARC) |
//! | `end_of_data` | the end of a message |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod actions;
mod allowance;
mod context;
mod conversation;
mod deferral;
mod dmarc_check;
mod end_of_data;
mod external_clients;
mod greylist;
mod host;
mod incoming;
mod limits;
mod lists;
mod login;
mod posting;
mod quota;
mod recipients;
mod shared;
mod spf_check;
mod trace;
mod transaction;
mod waiting;

pub use context::SmtpContext;
pub use conversation::SmtpConversation;
pub use external_clients::inbound_policy_applies;
pub use shared::{Inbound, InboundInUse, InboundSeed, SmtpCall};
