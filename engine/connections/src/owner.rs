//! The owner of each connection: the part of the engine that gets its events.
//!
//! Invariant: a connection that this machine opens has an owner until the owner releases it,
//! whatever happens to its slot. Every other connection belongs to the session in its slot.

use alloc::collections::BTreeMap;

use net::ConnectionId;
use tasks::FrameId;

/// The owner of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// The session in the connection's slot.
    Session,
    /// The resolver: a TCP connection to a name server.
    Resolver,
    /// The delivery attempt of this frame.
    Outbound(FrameId),
    /// The session of this frame, for a query to the filter about its message.
    Filter(FrameId),
}

/// The owners of connections that this machine has opened. Compared with sessions, there are few of
/// them.
#[derive(Default)]
pub(crate) struct OwnerTable {
    opened: BTreeMap<ConnectionId, Owner>,
}

impl OwnerTable {
    #[inline]
    pub(crate) fn of(&self, connection: ConnectionId) -> Owner {
        if self.opened.is_empty() { Owner::Session } else { self.among_opened(connection) }
    }

    fn among_opened(&self, connection: ConnectionId) -> Owner {
        self.opened.get(&connection).copied().unwrap_or(Owner::Session)
    }

    pub(crate) fn set(&mut self, connection: ConnectionId, owner: Owner) {
        self.opened.insert(connection, owner);
    }

    pub(crate) fn count(&self) -> usize {
        self.opened.len()
    }

    pub(crate) fn remove(&mut self, connection: ConnectionId) {
        self.opened.remove(&connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn connection(slot: u32, generation: u32) -> ConnectionId {
        ConnectionId(FrameId::new(slot, generation))
    }

    #[test]
    fn a_connection_keeps_its_owner_when_its_slot_is_reused() {
        let (before, after) = (connection(3, 1), connection(3, 2));
        let attempt = Owner::Outbound(FrameId::new(7, 1));
        let mut owners = OwnerTable::default();
        owners.set(before, attempt);
        assert_eq!(owners.of(after), Owner::Session);
        owners.set(after, Owner::Resolver);
        assert_eq!((owners.of(before), owners.of(after)), (attempt, Owner::Resolver));
        owners.remove(before);
        assert_eq!((owners.of(before), owners.of(after)), (Owner::Session, Owner::Resolver));
    }

    #[test]
    fn a_connection_that_is_handed_over_has_one_owner() {
        let mut owners = OwnerTable::default();
        owners.set(connection(1, 1), Owner::Outbound(FrameId::new(7, 1)));
        owners.set(connection(1, 1), Owner::Outbound(FrameId::new(8, 1)));
        assert_eq!(owners.of(connection(1, 1)), Owner::Outbound(FrameId::new(8, 1)));
        owners.remove(connection(1, 1));
        assert_eq!(owners.of(connection(1, 1)), Owner::Session);
    }
}
