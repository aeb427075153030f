//! The structure of a message: its parts, and where each of them is.
//!
//! A [`StructureReader`] gets the message once, in pieces, and keeps only the [`Structure`]: a flat
//! list of parts, each after the part that contains it. An entry has everything needed to show or
//! offer the part, and the byte ranges of its header and body. To show a part, those bytes are read
//! from the stored message.
//!
//! Invariants:
//! - The result does not depend on how the message is cut into pieces.
//! - At most [`PARTS_MAX`] parts, at most [`DEPTH_MAX`] levels, and bounded text of each part. A
//!   deeper part is not taken apart, and the bytes after the last part are one more part, so
//!   nothing of a message is lost: [`Structure::is_cut`] says so.
//! - A part lies inside the part that contains it, and after the one before it.
//! - The work is linear in the bytes. A line that begins with two dashes is compared with the
//!   boundary of each open part.
//!
//! More lenient than the RFC, as mail requires: lines may end in LF alone; a multipart without an
//! end ends with the part that contains it; a header without an empty line ends with the first line
//! that is not a field; a multipart that is declared as encoded is taken apart all the same.
//!
//! Implements: RFC 2045, RFC 2046 section 5, RFC 2183, RFC 2387.

mod part;
mod reader;

use alloc::vec::Vec;

pub use part::{Disposition, Encoding, Part, TEXT_BYTES_MAX, TextFlow};
pub use reader::{ADDRESS_FIELD_BYTES_MAX, FIELD_BYTES_MAX, Listener, StructureReader};

/// The most parts of a message.
pub const PARTS_MAX: usize = 500;

/// The most levels of parts: the message itself is the first.
pub const DEPTH_MAX: usize = 32;

/// The parts of a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Structure {
    /// The message itself, and then its parts, each before the parts in it.
    pub parts: Vec<Part>,
    /// There were more than [`PARTS_MAX`] parts, and the last part is all the rest; or some were
    /// deeper than [`DEPTH_MAX`].
    pub is_cut: bool,
}
