//! Compressed header fields: RFC 7541.
//!
//! A library would be used if there were one that is kept, needs no standard library, and writes into room that it is given. There is none; so here are the decoder with its
//! table, whose limit is the protocol's own, and of the encoder only what needs no table.

mod decoder;
mod encoder;
mod fields;
pub(crate) mod huffman;
mod integer;
mod statics;
mod table;

pub use decoder::Decoder;
pub use encoder::{Full, encode_field, encode_secret, encode_status};
pub use fields::{FIELDS_MAX, Fields, LIST_BYTES_MAX};
pub use table::TABLE_BYTES_MAX;

/// A block that cannot be decoded: the two sides do not know the same any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken;
