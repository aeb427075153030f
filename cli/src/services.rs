//! The services of the machine that the world can reach: the one list of them.

use std::net::{Ipv4Addr, SocketAddr};

/// A TCP service of the guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Service {
    pub(crate) name: &'static str,
    /// The port in the guest.
    pub(crate) port: u16,
    /// How its greeting starts.
    pub(crate) greeting: &'static [u8],
    /// What a client says that leaves at once.
    pub(crate) farewell: &'static [u8],
}

pub(crate) const SMTP: Service = Service { name: "SMTP", port: 25, greeting: b"220", farewell: b"QUIT\r\n" };
pub(crate) const POP3: Service = Service { name: "POP3", port: 110, greeting: b"+OK", farewell: b"QUIT\r\n" };

/// All of them.
pub(crate) const SERVICES: &[Service] = &[SMTP, POP3];

impl Service {
    /// Where the service is reached when guest port P is port BASE+P of this machine.
    pub(crate) fn forwarded(&self, base: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, base.saturating_add(self.port)))
    }
}

/// The highest BASE that leaves every service a port.
pub(crate) fn base_max() -> u16 {
    let highest = SERVICES.iter().map(|service| service.port).max().unwrap_or_default();
    u16::MAX.saturating_sub(highest)
}
