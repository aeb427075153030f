//! The machine's services as the world reaches them: forwarded ports, and how to tell that somebody is there.

use std::net::{Ipv4Addr, SocketAddr};

use server::Protocol;
pub(crate) use server::{POP3, SERVICES, SMTP, ServiceEntry as Service};

/// What a client of any service says that leaves at once.
pub(crate) const FAREWELL: &[u8] = b"QUIT\r\n";

/// A service as a client sees it.
pub(crate) trait Reached {
    /// Where the service is reached when guest port P is port BASE+P of this machine.
    fn forwarded(&self, base: u16) -> SocketAddr;

    /// How its greeting starts.
    fn greeting(&self) -> &'static [u8];
}

impl Reached for Service {
    fn forwarded(&self, base: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, base.saturating_add(self.port)))
    }

    fn greeting(&self) -> &'static [u8] {
        match self.protocol {
            Protocol::Smtp => b"220",
            Protocol::Pop3 => b"+OK",
        }
    }
}

/// The highest BASE that leaves every service a port.
pub(crate) fn base_max() -> u16 {
    let highest = SERVICES.iter().map(|service| service.port).max().unwrap_or_default();
    u16::MAX.saturating_sub(highest)
}
