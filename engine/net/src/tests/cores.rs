//! Tests of several networks that act as one machine and exchange their messages in memory.

mod answering;
mod finding;
mod house;
mod sharing;
mod streams;
