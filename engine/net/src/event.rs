//! The events that the network reports to its user.

use core::net::{Ipv6Addr, SocketAddr};
use core::ops::Range;

use tasks::FrameId;

use crate::config::Service;
use crate::interface::Ipv4Interface;
use crate::tcp::CloseReason;

/// Identifies a connection while it exists. After that, the id identifies no connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub FrameId);

impl ConnectionId {
    /// The slot of the connection: smaller than [`crate::Limits::connections`]. The slot is reused
    /// only after the connection has ended for the user: after [`Event::Closed`], after
    /// [`crate::Net::abort`], or after a [`crate::Net::close`] that no event follows.
    pub const fn index(self) -> usize {
        self.0.index()
    }
}

/// The place of the bytes of a datagram. Read them with [`crate::Net::datagram`] before the next
/// frame arrives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DatagramPlace {
    /// In the received frame.
    Frame(Range<usize>),
    /// In the buffer where its fragments were reassembled.
    Reassembled(Range<usize>),
}

impl DatagramPlace {
    /// The `length` bytes from `start` on.
    pub(crate) fn part(&self, start: usize, length: usize) -> DatagramPlace {
        match self {
            DatagramPlace::Frame(range) => {
                DatagramPlace::Frame(range.start + start..range.start + start + length)
            }
            DatagramPlace::Reassembled(range) => {
                DatagramPlace::Reassembled(range.start + start..range.start + start + length)
            }
        }
    }
}

/// An event for the user. Events of one connection are in the order in which they happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A peer has connected.
    Accepted {
        /// The new connection.
        connection: ConnectionId,
        /// The service that was registered for the port.
        service: Service,
        /// The peer's address and port.
        peer: SocketAddr,
    },
    /// A connection that we opened is established. If the peer has sent data or a FIN with its
    /// SYN, the events for them follow.
    Connected {
        /// The connection.
        connection: ConnectionId,
    },
    /// The next bytes of the connection are in the received frame. The user must pass the bytes
    /// that it does not consume at once to [`crate::Net::keep`], before any other operation on the
    /// connection.
    Data {
        /// The connection.
        connection: ConnectionId,
        /// The position, counted from the first byte of [`machine::Frame::bytes`].
        bytes: Range<usize>,
    },
    /// The next bytes wait in the connection: [`crate::Net::waiting`]. If a `Data` event is in the
    /// list too, these bytes follow the bytes of that event.
    Buffered {
        /// The connection.
        connection: ConnectionId,
    },
    /// There is room to send again, after a send that took only a part of its bytes, or after
    /// [`crate::Net::want_room`].
    SendRoom {
        /// The connection.
        connection: ConnectionId,
    },
    /// The peer has sent its last byte; we may still send.
    PeerClosed {
        /// The connection.
        connection: ConnectionId,
    },
    /// The connection is closed. No further event follows, and no operation has an effect.
    Closed {
        /// The connection.
        connection: ConnectionId,
        /// Why the connection was closed.
        reason: CloseReason,
    },
    /// A datagram for a bound port has arrived.
    Datagram {
        /// The port.
        port: u16,
        /// The sender's address and port.
        peer: SocketAddr,
        /// The place of its bytes.
        bytes: DatagramPlace,
    },
    /// Our IPv6 addresses have changed: [`crate::Net::ipv6_addresses`]. Connections of a removed
    /// address are closed.
    Ipv6AddressesChanged,
    /// Another machine uses an IPv6 address that we were about to use. We do not use it.
    AddressTaken {
        /// The address.
        address: Ipv6Addr,
    },
    /// Our IPv4 address has changed: DHCP assigned one or withdrew it. Connections of a former
    /// address are closed.
    AddressChanged {
        /// The current address.
        address: Option<Ipv4Interface>,
    },
}

/// The capacity of the event list: the most events that one frame can cause, and room for the
/// events of several timers.
pub const EVENTS_MAX: usize = 64;

/// The most events that one segment or one deadline of a connection can cause.
pub(crate) const EVENTS_AT_ONCE: usize = 6;

/// Events, oldest first. The user empties the list after each call that fills it.
pub type Events = heapless::Vec<Event, EVENTS_MAX>;

/// Whether there is room for the events of one segment or deadline of a connection.
pub(crate) fn has_room(events: &Events) -> bool {
    events.len() + EVENTS_AT_ONCE <= EVENTS_MAX
}
