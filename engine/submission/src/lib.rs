//! Submission: messages that were written in the webmail are held for as long as their writer may
//! take them back, and then brought to all recipients.
//!
//! | file | what it has |
//! |---|---|
//! | `context` | the parts of a core that submission uses, and what a job asks of them |
//! | `held` | the messages that a core holds, and their deadlines |
//! | `job` | how one of them is brought to its recipients, step by step |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod context;
mod held;
mod job;

pub use context::{Context, may_post, posting, recipient};
pub use held::{HOLD_SECONDS_MAX, Submission};
