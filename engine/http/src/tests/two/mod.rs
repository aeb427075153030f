//! The promises of an HTTP/2 connection.

mod bodies;
mod broken;
pub(super) mod client;
mod floods;
mod kept;
mod properties;
mod questions;
mod requests;
mod sending;
mod time;
