//! Tests of POP3 sessions, written as dialogues.

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
