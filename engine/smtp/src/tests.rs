//! Tests of the SMTP session, written as conversations.

mod chunks;
mod commands;
mod content;
mod events;
mod holds;
mod login;
mod paths;
mod properties;
mod room;
mod scram;
mod smuggling;
mod starttls;
mod wishes;
mod world;
