//! The engine of a core: [`Engine::turn`] passes events between connections, sessions and the
//! store.
//!
//! Only this crate knows all parts: `net` knows no protocol, the protocols know no store, and the
//! store knows no mail.
//!
//! | file | story |
//! |---|---|
//! | `engine` | one turn, its six phases and their budgets |
//! | `engine/cores`, `links` | several cores and their messages |
//! | `parts` | what the services and sessions of a core share |
//! | `server` | the parts, services and sessions of a core, and the dispatch of events |
//! | `server/services` | the list of services |
//! | `server/requests` | messages between HTTP sessions and the webmail's request handlers |
//! | `session`, `handshakes` | the session of a connection, and how it begins TLS |
//! | `pressure` | load shedding: which sessions end when something runs short |
//! | `life` | opening, creating accounts, serving, stopping |
//! | `seeds`, `start`, `sizes` | how an engine is made, and its fixed sizes |
//! | `in_use` | the resources in use |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod engine;
mod handshakes;
mod in_use;
mod life;
mod links;
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
pub use seeds::{CORES_MAX, MachineKeys, Seed, seeds};
pub use sizes::Sizes;
