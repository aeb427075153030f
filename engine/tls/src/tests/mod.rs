//! Tests of our server and client with the client and server of rustls. Everything is in memory,
//! and the random numbers come from a seed.

mod alerts;
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
