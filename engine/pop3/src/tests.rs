//! What a POP3 session promises, as conversations.

mod authorization;
mod events;
mod lines;
mod listing;
mod properties;
mod retrieval;
mod sasl;
mod scram;
mod stls;
mod transaction;
mod world;
