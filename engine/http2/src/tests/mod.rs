//! The promises of the crate, each with a test.

mod examples;
mod frames;
mod limits;
mod oracle;
mod speaker;
