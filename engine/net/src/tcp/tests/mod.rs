//! The guarantees of TCP, as conversations between a peer and us. `conversation` defines the
//! notation.

mod closing;
mod congestion;
mod conversation;
mod cookies;
mod ecn;
mod forged;
mod handshakes;
mod late_acknowledgments;
mod long_paths;
mod loss;
mod options;
mod pipe;
mod reassembly;
mod receiving;
mod repair;
mod round_trip;
mod selective;
mod sending;
mod silence;
mod states;
mod tables;
mod timestamps;

use conversation::{Conversation, everywhere};
