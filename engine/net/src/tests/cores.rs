//! Several networks that are one machine, and exchange their messages in memory.

mod answering;
mod finding;
mod house;
mod sharing;
mod streams;
