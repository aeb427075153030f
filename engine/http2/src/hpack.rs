//! Compressed header fields: RFC 7541.
//!
//! No maintained library works without the standard library and writes into a given buffer. So this
//! module has its own decoder with its dynamic table, limited as the protocol says. Of the encoder
//! it has only the part that needs no table.

mod decoder;
mod encoder;
mod fields;
pub(crate) mod huffman;
mod integer;
mod statics;
mod table;

pub use decoder::Decoder;
pub use encoder::{BufferFull, encode_field, encode_secret, encode_status};
pub use fields::{FIELDS_MAX, FieldList, LIST_BYTES_MAX};
pub use table::TABLE_BYTES_MAX;

/// A block that cannot be decoded. The tables of the two sides differ from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HpackError;
