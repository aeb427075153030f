//! A core's questions to name servers, and the route to a host that the configuration names.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod names;
mod places;

pub use names::{AddressedAnswer, Asker, Known, NameLookups, NameMessage, QuestionNumber};
pub use places::{Ourselves, route_to};
