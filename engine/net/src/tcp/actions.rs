//! What one event did to a connection, and what the caller is to do about it.

use core::ops::Range;

/// Why a connection is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// Both directions were closed in order and everything was acknowledged.
    Normal,
    /// The peer reset it.
    Reset,
    /// The peer refused our attempt to connect.
    Refused,
    /// The peer stopped answering: retransmissions, probes, or the wait for its FIN ran out.
    TimedOut,
    /// We aborted it.
    Aborted,
}

/// What one event did. To be acted upon in the order of the fields, at once, before the next event of the same
/// connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Actions {
    /// An active open has succeeded.
    pub connected: bool,
    /// In-order bytes lie here in the payload of the segment that arrived. They count as received: what the session
    /// does not take at once is handed to [`super::Tcb::keep`].
    pub data: Range<usize>,
    /// Bytes that follow all those delivered so far wait in the receive queue: [`super::Tcb::waiting`].
    pub buffered: bool,
    /// A send that was cut short, or refused, may be tried again.
    pub send_room: bool,
    /// The peer has sent its FIN: no byte follows those delivered or waiting.
    pub peer_closed: bool,
    /// The connection is over. Nothing follows but what [`super::Tcb::ended`] says.
    pub closed: Option<CloseReason>,
}
