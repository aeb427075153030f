//! Tests: our side against rustls' client and rustls' server, all in memory, with randomness from a seed.

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
