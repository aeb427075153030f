//! Tests: our side against rustls' client, all in memory, with randomness from a seed.

mod broken;
mod certificates;
mod handshakes;
mod hybrid;
mod memory;
mod records;
mod tickets;
mod world;
