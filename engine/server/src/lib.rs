//! The engine of a core: [`Engine::turn`] wires connections to sessions and sessions to the store.
//!
//! Everything that is on the machine meets here and nowhere else: `net` knows no protocol, the protocols know no store,
//! the store knows no mail. This crate holds what joins them.
//!
//! | file | story |
//! |---|---|
//! | `engine` | one turn, its six phases and their budgets |
//! | `engine/cores`, `links` | many of them: what they tell each other |
//! | `parts` | what the services and sessions of a core share |
//! | `server` | what a core serves with, and where what happens is brought |
//! | `server/services` | the list of services |
//! | `server/requests` | what HTTP sessions and the webmail's request handlers tell each other |
//! | `session`, `handshakes` | the sessions: what happens to a connection; how it begins TLS |
//! | `pressure`, `crowding` | load shedding: which sessions end when something runs short |
//! | `life`, `making` | opening, making accounts, serving, stopping |
//! | `seeds`, `start`, `sizes` | how an engine is made; sizes given once |
//! | `clock` | the time of day, and a clock that is wrong |
//! | `in_use` | how much of everything is in use |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod clock;
mod crowding;
mod engine;
mod handshakes;
mod in_use;
mod life;
mod links;
mod making;
mod parts;
mod pressure;
mod seeds;
mod server;
mod session;
mod sizes;
mod start;

pub use certificates::CERTIFICATE_PATH;
pub use configuration::{self, pack};
pub use connections::Handshakes;
pub use engine::{Engine, Next};
pub use in_use::InUse;
pub use life::Ending;
pub use seeds::{CORES_MAX, Papers, Seed, seeds};
pub use sizes::Sizes;
