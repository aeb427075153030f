//! HTTP/2: what a connection promises.

mod bodies;
mod broken;
mod client;
mod floods;
mod properties;
mod requests;
mod sending;
mod time;
