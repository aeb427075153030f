//! Tests of several networks that act as one machine and exchange their messages in memory.

mod answering;
mod finding;
mod sharing;
mod streams;
mod world;
