//! Tests of the network through its public interface, on a machine in memory with a test clock.

mod broken;
mod connecting;
mod cores;
mod dhcp_life;
mod handshakes;
mod ipv6_life;
mod ipv6_link;
mod ipv6_talk;
mod link_life;
mod machine_in_memory;
mod messages;
mod messages_ipv6;
mod part_timers;
mod peer;
mod world;
