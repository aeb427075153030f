//! Tests of the crate, through sessions in a test world.

mod conditions;
mod dates;
mod framing;
mod h2;
mod handler;
mod heads;
mod https_policy;
mod kept;
mod open;
mod parts;
mod pieces;
mod properties;
mod replies;
mod requests;
mod response_cache;
mod sites;
mod streamed;
mod waiting;
mod world;
