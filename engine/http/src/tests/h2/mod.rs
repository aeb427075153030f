//! The promises of an HTTP/2 connection.

mod bodies;
mod broken;
pub(super) mod client;
mod floods;
mod handler;
mod kept;
mod properties;
mod requests;
mod sending;
mod time;
