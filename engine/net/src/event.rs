//! What the network tells its user.

use core::net::{Ipv6Addr, SocketAddr};
use core::ops::Range;

use tasks::FrameId;

use crate::config::Service;
use crate::interface::Address;
use crate::tcp::CloseReason;

/// Names a connection for as long as it lives; afterwards it names nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub FrameId);

impl ConnectionId {
    /// Its slot: smaller than [`crate::Limits::connections`]. A slot serves a new connection only after
    /// [`Event::Closed`], or after [`crate::Net::abort`], of the one before; or after [`crate::Net::close`] where no event follows it.
    pub const fn index(self) -> usize {
        self.0.index()
    }
}

/// Where the bytes of a datagram lie: to be read with [`crate::Net::datagram`] before the next frame arrives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the frame that arrived.
    Frame(Range<usize>),
    /// In the buffer where its fragments were put together.
    Reassembled(Range<usize>),
}

impl Place {
    /// The `length` bytes from `start` on.
    pub(crate) fn part(&self, start: usize, length: usize) -> Place {
        match self {
            Place::Frame(range) => Place::Frame(range.start + start..range.start + start + length),
            Place::Reassembled(range) => {
                Place::Reassembled(range.start + start..range.start + start + length)
            }
        }
    }
}

/// Something happened. Events of one connection come in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A peer has connected.
    Accepted {
        /// The new connection.
        connection: ConnectionId,
        /// What was registered for the port.
        service: Service,
        /// The peer's address and port.
        peer: SocketAddr,
    },
    /// A connection that we opened is established.
    Connected {
        /// Which one.
        connection: ConnectionId,
    },
    /// The next bytes of the connection lie in the frame that arrived. What is not taken at once must be handed to
    /// [`crate::Net::keep`] before anything else is done with the connection.
    Data {
        /// Whose.
        connection: ConnectionId,
        /// Where, counted from the first of [`machine::Frame::bytes`].
        bytes: Range<usize>,
    },
    /// The next bytes, after those of `Data` if both come, wait in the connection: [`crate::Net::waiting`].
    Buffered {
        /// Whose.
        connection: ConnectionId,
    },
    /// A send that was cut short may be tried again.
    SendRoom {
        /// Whose.
        connection: ConnectionId,
    },
    /// The peer has sent its last byte; we may still send.
    PeerClosed {
        /// Whose.
        connection: ConnectionId,
    },
    /// The connection is over. Nothing follows, and nothing more can be done with it.
    Closed {
        /// Which one.
        connection: ConnectionId,
        /// Why.
        reason: CloseReason,
    },
    /// A datagram came for a bound port.
    Datagram {
        /// The port.
        port: u16,
        /// Who sent it.
        peer: SocketAddr,
        /// Its bytes.
        bytes: Place,
    },
    /// Our IPv6 addresses have changed: [`crate::Net::ipv6_addresses`]. Connections of one that is gone are over.
    Ipv6AddressesChanged,
    /// Another machine uses an IPv6 address that was to be ours; we do without it.
    AddressTaken {
        /// The address.
        address: Ipv6Addr,
    },
    /// Our IPv4 address has changed: DHCP gave one or took it away. Connections of a former address are over.
    AddressChanged {
        /// The address now.
        address: Option<Address>,
    },
}

/// The most events that one frame can cause; and room for as many as a batch of timers may fill.
pub const EVENTS_MAX: usize = 64;

/// The most events that one happening of a connection can cause.
pub(crate) const EVENTS_AT_ONCE: usize = 6;

/// Events, oldest first: to be emptied after each call that fills it.
pub type Events = heapless::Vec<Event, EVENTS_MAX>;

/// Whether there is room for what one happening of a connection can cause.
pub(crate) fn has_room(events: &Events) -> bool {
    events.len() + EVENTS_AT_ONCE <= EVENTS_MAX
}
