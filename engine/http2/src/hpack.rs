//! Compressed header fields: RFC 7541.
//!
//! No maintained library both works without the standard library and writes into a given buffer. So
//! this module has its own decoder, with a dynamic table of the size that the protocol allows. It
//! has only the part of an encoder that needs no table.

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

/// A block cannot be decoded. From then on the tables of the two sides differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HpackError;
