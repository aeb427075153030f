//! Engines and client engines in one process: what the engine does where nothing else stands in its
//! way.
//!
//! Each core of the server is a thread on a processor of its own, and so is each client. Rings of
//! frames in shared memory connect each pair. There is no kernel, no wire and no wake-up in
//! between. Time is the host's, and the disk is in memory. The server is the real engine (crate
//! `server`). A client is the engine's own network (crate `net`) from the other side, with
//! dialogues on top.
//!
//! | file | story |
//! |---|---|
//! | `wire` | frames in buffers, from one end to another and back |
//! | `card` | the trait `Machine` over such an end: what a card with a queue for each core does |
//! | `disk` | sectors in memory |
//! | `server` | a core of the server |
//! | `client` | a client: connections, as many at once as it is told |
//! | `dialogue` | what is said in one of them, over and over |
//! | `tls_client`, `trusting` | a client's TLS, and the certificates that it accepts |
//! | `measure` | threads, each on its processor, and what they did in a span of time |
//! | `flood` | how long a page takes while handshakes arrive |
//! | `alone` | the libraries that TLS is made with, with nothing around them |
//!
//! Invariants:
//! - No thread sleeps: a thread without work looks again. So on a shared processor the measurement
//!   includes the other load.
//! - An unexpected answer in a dialogue ends the measurement. Only correct answers are counted.
#![forbid(unsafe_code)]

mod alone;
mod card;
mod client;
mod dialogue;
mod disk;
mod flood;
mod measure;
mod server;
#[cfg(test)]
mod tests;
mod tls_client;
pub mod trusting;
mod wire;

pub use alone::{Alone, alone};
pub use dialogue::{LARGE_BYTES, Load};
pub use flood::{Flooded, flood};
pub use measure::{Measured, cores_max, measure};
