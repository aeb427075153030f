//! Submission: messages from the webmail are held for as long as the author may undo the sending,
//! and then delivered to all recipients.
//!
//! | file | what it has |
//! |---|---|
//! | `context` | the parts of a core that submission uses, and a job's requests to them |
//! | `held` | the held messages of a core, and their deadlines |
//! | `job` | the delivery of one message to its recipients, step by step |
//! | `notice` | the notice to the writer of a message that cannot be sent |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod context;
mod held;
mod job;
mod notice;

pub use context::{SubmissionContext, may_post, posting, recipient};
pub use held::{HOLD_SECONDS_MAX, Submission};
