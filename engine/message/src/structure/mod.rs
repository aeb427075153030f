//! What a message is made of: its parts, and where each of them lies.
//!
//! A [`Reader`] is told the message once, in pieces, and keeps nothing of it but the [`Structure`]: a flat list of parts, each behind the one
//! that holds it, with what is needed to show or offer it and the bytes of its header and body. Whoever shows a part reads those bytes from where the message is kept.
//!
//! Invariants:
//! - What comes out does not depend on how the message is cut into pieces.
//! - At most [`PARTS_MAX`] parts, at most [`DEPTH_MAX`] deep, and bounded text of each. What lies
//!   deeper is not taken apart, and what follows the last part is one more, so nothing of a message
//!   is lost: [`Structure::is_cut`] says so.
//! - A part lies inside of the one that holds it, and behind the one before it.
//! - The work is linear in the bytes; a line that begins with two dashes is held against the boundary of each open part.
//!
//! Read as mail has it, beyond the RFC: lines may end in LF alone; a multipart that never ends ends with what holds it; a header that no empty line ends, ends with the
//! first line that is no field; what is declared to be encoded and holds parts is taken apart all the same if it is a multipart.
//!
//! Answers to: RFC 2045, RFC 2046 section 5, RFC 2183, RFC 2387.

mod part;
mod reader;

use alloc::vec::Vec;

pub use part::{Disposition, Encoding, Flow, Part, TEXT_BYTES_MAX};
pub use reader::{ADDRESS_FIELD_BYTES_MAX, FIELD_BYTES_MAX, Listener, Reader};

/// How many parts are told apart.
pub const PARTS_MAX: usize = 500;

/// How many parts may lie in each other: the message itself is the first.
pub const DEPTH_MAX: usize = 32;

/// The parts of a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Structure {
    /// The message itself, and then what it holds, each part before what that holds.
    pub parts: Vec<Part>,
    /// There were more than [`PARTS_MAX`], and the last part is all that followed them; or some lay
    /// deeper than [`DEPTH_MAX`].
    pub is_cut: bool,
}
