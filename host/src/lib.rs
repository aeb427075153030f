//! What the commands of this repository need from the machine that they run on: programs that die
//! with them, Debian packages, the repository's folders, and the image, built by cargo.
//!
//! It imports nothing of the engine, so a command that needs only this crate is built in seconds.
#![forbid(unsafe_code)]

mod command;
mod developers;
mod failure;
pub mod hold;
pub mod image;
pub mod packages;
pub mod randomness;
pub mod repository;
mod stop;
mod terminal;
pub mod unpacked;

pub use command::main;
pub use developers::FOR_DEVELOPERS;
pub use failure::Failure;
pub use repository::Repository;
pub use stop::Stop;
pub use terminal::{remark, say};
