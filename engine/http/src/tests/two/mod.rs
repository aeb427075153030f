//! HTTP/2: what a connection promises.

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
