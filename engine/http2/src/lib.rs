//! HTTP/2 on the wire: frames (RFC 9113 section 4) and compressed header fields (HPACK, RFC 7541), in and out.
//!
//! A codec and no more: it knows no streams, no connection and no meaning of a field. What is done with frames is the crate `http`'s affair.
//!
//! Invariants:
//! - Nothing that arrives makes it hold more than a table of [`TABLE_BYTES_MAX`], or write more than [`Fields`] has room for.
//! - A block of fields is decoded to its end even when it says more than is kept, so that both sides' tables stay the same; or it is [`Broken`], and the connection is over.
//! - The encoder has no table: it refers to the static one alone. So no setting of the peer's concerns it, and no secret can be guessed by how well it compresses.
//!
//! | file | story |
//! |---|---|
//! | `frame` | a frame's head, its kinds and flags |
//! | `settings` | what each side tells the other of itself |
//! | `error` | why a stream or a connection ends |
//! | `hpack` | blocks of fields: decoded into [`Fields`], encoded one by one |
//!
//! Answers to: RFC 9113 sections 4, 6 and 7; RFC 7541.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod error;
mod frame;
mod hpack;
mod settings;

pub use error::ErrorCode;
pub use frame::{FRAME_BYTES_MAX, FRAME_HEAD_BYTES, FrameHead, Kind, PREFACE, flags};
pub use hpack::{
    Broken, Decoder, FIELDS_MAX, Fields, Full, LIST_BYTES_MAX, TABLE_BYTES_MAX, encode_field,
    encode_secret, encode_status,
};
pub use settings::{Setting, settings};

#[cfg(test)]
mod tests;
