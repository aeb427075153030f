//! Tests of HTTP/2 connections.

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
