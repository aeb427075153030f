//! The buffer for the trace fields of a message, and the facts about this server in them.

use alloc::boxed::Box;
use alloc::string::String;

use machine::UnixTime;
use message::{DateTimeNow, RECEIVED_BYTES_MAX, RETURN_PATH_BYTES_MAX};
use store::HeadSize;

/// The most bytes of the trace fields: of the fields written first, and of the fields written last.
pub(super) const TRACE_BYTES_MAX: usize = HeadSize::OCTETS_MAX;

const _: () = assert!(RETURN_PATH_BYTES_MAX + RECEIVED_BYTES_MAX <= TRACE_BYTES_MAX);

/// The buffer for the trace fields of the message that is being handled.
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
