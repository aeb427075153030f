//! What the crate promises, each promise a test.

mod examples;
mod frames;
mod limits;
mod oracle;
mod speaker;
