//! The client at the other end of a session's connection.

use core::net::IpAddr;

use machine::{SERVICES, ServiceEntry};
use net::{ConnectionId, Service};

/// The protection of the bytes on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// In plaintext.
    Plain,
    /// In TLS records.
    Tls,
}

/// The client at the other end of a session's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The connection.
    pub connection: ConnectionId,
    /// The client's address.
    pub address: IpAddr,
    /// The service that the client uses.
    pub service: Service,
    /// The present protection of the bytes on the connection.
    pub channel: Channel,
}

impl Caller {
    /// The service that the client uses.
    pub fn service_entry(&self) -> &'static ServiceEntry {
        let Some(entry) = SERVICES.get(usize::from(self.service.0)) else {
            unreachable!("a service above the last one")
        };
        entry
    }
}
