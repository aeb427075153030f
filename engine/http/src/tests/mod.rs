//! The promises of the crate, each with a test.

mod conditions;
mod dates;
mod framing;
mod heads;
mod kept;
mod open;
mod parts;
mod pieces;
mod properties;
mod questions;
mod remembered;
mod replies;
mod requests;
mod secrecy;
mod sites;
mod streamed;
mod two;
mod waiting;
mod world;
