//! Tests: our side against the client and the server of rustls, all in memory, with seeded random
//! numbers.

mod authorities;
mod broken;
mod certificates;
mod client;
mod dane;
mod handshakes;
mod hybrid;
mod memory;
mod records;
mod tickets;
mod world;
