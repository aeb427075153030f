//! The receiver of a message's fields and bodies while the message is taken apart.

use super::part::Part;
use crate::header::Field;

/// Receives fields and bodies while the message is read. `()` receives nothing.
pub trait Listener {
    /// Whether to pass on a field with this name in the header of `part`.
    fn wants_field(&mut self, _part: &Part, _name: &[u8]) -> bool {
        false
    }

    /// A wanted field has arrived. It is cut to [`FIELD_BYTES_MAX`](super::FIELD_BYTES_MAX) bytes,
    /// or to [`ADDRESS_FIELD_BYTES_MAX`](super::ADDRESS_FIELD_BYTES_MAX) if it has addresses.
    fn field_arrived(&mut self, _field: &Field<'_>) {}

    /// A header has ended, and the body of its part begins. The part is the last of `parts`. The
    /// body of a multipart is here only the text before its first part. Returns whether to pass on
    /// the body.
    fn body_began(&mut self, _parts: &[Part]) -> bool {
        false
    }

    /// The next bytes of the body, still encoded. The line end before a boundary, which is not part
    /// of the body, may be among them.
    fn body_arrived(&mut self, _bytes: &[u8]) {}

    /// The body that was passed on has ended.
    fn body_ended(&mut self) {}

    /// Whether the rest of the message does not matter. `parts`: the parts that have begun.
    fn has_enough(&self, _parts: &[Part]) -> bool {
        false
    }
}

impl Listener for () {}
