//! The structure of a message: its parts, and their positions.
//!
//! A [`StructureReader`] gets the message once, in pieces, and keeps only the [`Structure`]: a flat
//! list of parts, each after the part that contains it. An entry has everything needed to show or
//! offer the part, and the byte ranges of its header and body. To show a part, those bytes are read
//! from the stored message.
//!
//! Invariants:
//! - The result does not depend on how the message is cut into pieces.
//! - At most [`PARTS_MAX`] parts on [`DEPTH_MAX`] levels are taken apart, and the texts of each
//!   part are bounded. Even beyond these limits, no bytes of a message are lost. A multipart on the
//!   last level is not taken apart. If a message has more parts, its remaining bytes are one
//!   additional part. [`Structure::is_cut`] reports both cases.
//! - The bytes of a part are inside the part that contains it, and after the part before it.
//! - The work is linear in the bytes. A line that begins with two dashes is compared with the
//!   boundary of each open part.
//!
//! The reader is more lenient than the RFC, as mail requires. Lines may end in LF alone. A
//! multipart without an end ends with the part that contains it. A header without an empty line
//! ends before the first line that is not a field. If a usual field follows that line, the line is
//! ignored. A byte order mark before the header is ignored, too. A multipart that is declared as
//! encoded is taken apart too.
//!
//! Implements: RFC 2045, RFC 2046 section 5, RFC 2183, RFC 2387.

mod content_size;
mod listener;
mod part;
mod reader;

use alloc::vec::Vec;

pub use listener::Listener;
pub use part::{Disposition, Encoding, Part, SmimeContent, TEXT_BYTES_MAX, TextFlow};
pub use reader::{ADDRESS_FIELD_BYTES_MAX, FIELD_BYTES_MAX, StructureReader};

/// The most parts of a message that are taken apart. If there are more, one additional part has the
/// rest of the message.
pub const PARTS_MAX: usize = 500;

/// The most levels of parts: the message itself is the first.
pub const DEPTH_MAX: usize = 32;

/// The parts of a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Structure {
    /// The message itself, and then its parts, each before the parts in it.
    pub parts: Vec<Part>,
    /// Whether there were more than [`PARTS_MAX`] parts, or more than [`DEPTH_MAX`] levels. In the
    /// first case, the last part is the rest of the message.
    pub is_cut: bool,
}
