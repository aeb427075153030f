//! The effects of one event on a connection, which the caller must handle.

use core::ops::Range;

/// Why a connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// Both directions were closed in order, and everything was acknowledged.
    Normal,
    /// The peer reset the connection.
    Reset,
    /// The peer refused our attempt to connect.
    Refused,
    /// The peer stopped answering: retransmissions, probes, or the wait for its FIN timed out.
    TimedOut,
    /// We aborted the connection.
    Aborted,
}

/// The effects of one event. The caller handles them in the order of the fields, before the next
/// event of the same connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Actions {
    /// An active open has succeeded.
    pub connected: bool,
    /// The range of in-order bytes in the payload of the segment that arrived. They count as
    /// received. The caller passes the bytes that the session does not consume at once to
    /// [`super::Tcb::keep`].
    pub data: Range<usize>,
    /// The receive queue has more readable bytes: [`super::Tcb::waiting`].
    pub buffered: bool,
    /// There is room again, after a send that was refused or took only a part of the bytes.
    pub send_room: bool,
    /// The peer has sent its FIN: no byte follows the bytes that are delivered or waiting.
    pub peer_closed: bool,
    /// The connection is closed. Only [`super::Tcb::ended`] is still to be checked.
    pub closed: Option<CloseReason>,
}
