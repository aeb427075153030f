//! The HTTP/2 wire format: frames (RFC 9113 section 4) and compressed header fields (HPACK, RFC
//! 7541), in both directions.
//!
//! The crate is only a codec. It has no state of streams or connections, and does not interpret
//! fields. The crate `http` handles frames.
//!
//! Invariants:
//! - Whatever the peer sends, the decoder keeps at most a table of [`TABLE_BYTES_MAX`], and writes
//!   at most the fields that fit into [`FieldList`].
//! - A block is decoded to its end even if not all its fields are kept, so that the tables of both
//!   sides stay equal. If it cannot be decoded, the error is [`HpackError`], and the connection
//!   ends.
//! - The encoder has no dynamic table and uses only the static one. So no setting of the peer
//!   affects it, and the compression reveals no secret.
//!
//! | file | story |
//! |---|---|
//! | `frame` | the head of a frame, its kinds and flags |
//! | `settings` | the settings that each side sends |
//! | `error` | why a stream or a connection ends |
//! | `hpack` | blocks of fields: decoded into [`FieldList`], encoded one by one |
//!
//! Implements: RFC 9113 sections 4, 6 and 7; RFC 7541.
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
pub use frame::{FRAME_BYTES_MAX, FRAME_HEAD_BYTES, FrameHead, FrameType, PREFACE, flags};
pub use hpack::{
    BufferFull, Decoder, FIELDS_MAX, FieldList, HpackError, LIST_BYTES_MAX, TABLE_BYTES_MAX,
    encode_field, encode_secret, encode_status,
};
pub use settings::{Setting, settings};

#[cfg(test)]
mod tests;
