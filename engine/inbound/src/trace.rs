//! Where the trace fields of a message are put together, and what they say of this server.

use alloc::boxed::Box;
use alloc::string::String;

use machine::UnixTime;
use message::{DateTimeNow, RECEIVED_BYTES_MAX, RETURN_PATH_BYTES_MAX};
use store::Head;

/// Bytes of the trace fields at most: of those that come first, and of those that come last.
pub(super) const TRACE_BYTES_MAX: usize = Head::OCTETS_MAX;

const _: () = assert!(RETURN_PATH_BYTES_MAX + RECEIVED_BYTES_MAX <= TRACE_BYTES_MAX);

/// The trace fields of the message that is looked at.
pub(super) struct Trace {
    /// Our name.
    pub(super) hostname: String,
    pub(super) date_now: DateTimeNow,
    pub(super) buffer: Box<[u8; TRACE_BYTES_MAX]>,
}

impl Trace {
    pub(super) fn new(hostname: String, wall: UnixTime) -> Trace {
        Trace { hostname, date_now: DateTimeNow::new(wall), buffer: Box::new([0; TRACE_BYTES_MAX]) }
    }
}
