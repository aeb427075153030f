//! The engine of a core: [`Engine::turn`] wires connections to sessions and sessions to the store.
//!
//! Everything that is on the machine meets here and nowhere else: `net` knows no protocol, the protocols know no store,
//! the store knows no mail. This crate holds what joins them.
//!
//! | file | story |
//! |---|---|
//! | `engine` | one turn, its six phases and their budgets |
//! | `clock` | the time of day, and a clock that is wrong |
//! | `cores`, `links` | many of them: what they tell each other |
//! | `session` | what happens to a connection, told to its session |
//! | `requests` | what HTTP sessions and the webmail's request handlers tell each other |
//! | `handshakes` | how a session begins to speak TLS |
//! | `replacing` | what certificates tell other cores and sessions |
//! | `outbound` | the part of a turn that outgoing mail gets |
//! | `pressure`, `crowding` | load shedding: which sessions end when something runs short |
//! | `life`, `making`, `start`, `sizes` | opening, making accounts, serving, stopping; sizes given once |
//! | `in_use` | how much of them is in use |
//! | `common` | the parts of a core |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod clock;
mod common;
mod cores;
mod crowding;
mod engine;
mod handshakes;
mod in_use;
mod life;
mod links;
mod making;
mod outbound;
mod pressure;
mod replacing;
mod requests;
mod session;
mod sizes;
mod start;

pub use certificates::CERTIFICATE_PATH;
pub use configuration::{self, pack};
pub use connections::Handshakes;
pub use cores::{CORES_MAX, Papers, Seed, seeds};
pub use engine::{Engine, Next};
pub use in_use::InUse;
pub use life::Ending;
pub use sizes::Sizes;
