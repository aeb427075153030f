//! The promises of TCP, told as conversations between a peer and us. See `conversation` for the language.

mod conversation;
mod handshakes;
mod receiving;
mod sending;

use conversation::Conversation;
