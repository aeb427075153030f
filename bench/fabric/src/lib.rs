//! The server's engine and its clients in one process. They measure the speed of the engine without
//! the cost of a kernel, a wire or wake-ups.
//!
//! Each core of the server is a thread on its own processor, and so is each client. Rings of frames
//! in shared memory connect each core with each client. The clock is the host's, and the disk is in
//! memory. The server is the real engine (crate `server`). A client is the engine's own network
//! (crate `net`) as the side that connects, with a dialogue in each connection.
//!
//! | file | story |
//! |---|---|
//! | `wire` | rings that carry frames between ends and return their buffers |
//! | `card` | the trait `Machine` over one end: a card with a queue for each core |
//! | `disk` | sectors in memory |
//! | `server` | a core of the server |
//! | `client` | a client with a fixed number of connections at a time |
//! | `dialogue` | the requests and answers in one connection, repeated |
//! | `tls_client`, `trusting` | a client's TLS, and the certificates that it accepts |
//! | `measure` | threads, each on its processor, and their work in a span of time |
//! | `flood` | the time of a page while handshakes arrive |
//! | `alone` | the TLS libraries without a machine |
//!
//! Invariants:
//! - Server and client threads never sleep: a thread without work polls again. So on a shared
//!   processor the measurement includes the other load.
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
