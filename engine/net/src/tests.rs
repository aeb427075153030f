//! The network through its facade, against a machine in memory and a clock that the test holds.

mod broken;
mod connecting;
mod dhcp_life;
mod handshakes;
mod link_life;
mod machine_in_memory;
mod messages;
mod peer;
mod world;
