//! The client at the other end of a session's connection.

use core::net::IpAddr;

use machine::{SERVICES, ServiceEntry};
use net::{ConnectionId, Service};

/// How a connection's bytes travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// As they are.
    Plain,
    /// In records of TLS.
    Tls,
}

/// The client at the other end of a session's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The connection.
    pub connection: ConnectionId,
    /// The client's address.
    pub address: IpAddr,
    /// The service that the client has called.
    pub service: Service,
    /// How the connection's bytes travel now.
    pub channel: Channel,
}

impl Caller {
    /// The service that the client has called.
    pub fn service_entry(&self) -> &'static ServiceEntry {
        let Some(entry) = SERVICES.get(usize::from(self.service.0)) else {
            unreachable!("a service above the last one")
        };
        entry
    }
}
