//! The machine's services as clients see them: their forwarded ports, and the bytes that check
//! whether a service answers.

use std::net::{Ipv4Addr, SocketAddr};

pub use machine::{POP3, SERVICES, SMTP, ServiceEntry as Service};
use machine::{Protocol, Security};

/// A service as a client sees it.
pub trait Reached {
    /// The forwarded address of the service: guest port P is port BASE+P of this host.
    fn forwarded(&self, base: u16) -> SocketAddr;

    /// The bytes that a client must send before the service sends anything.
    fn question(&self) -> &'static [u8];

    /// The first three bytes that the service sends.
    fn greeting(&self) -> &'static [u8];

    /// The bytes that end the session at once after the greeting.
    fn farewell(&self) -> &'static [u8];
}

impl Reached for Service {
    fn forwarded(&self, base: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, base.saturating_add(self.port)))
    }

    fn question(&self) -> &'static [u8] {
        match self.protocol {
            // These bytes are not TLS, so the service answers with an alert. This avoids the cost
            // of a handshake.
            _ if self.security == Security::Implicit => b"\r\n",
            Protocol::Smtp | Protocol::Submission | Protocol::Pop3 => b"",
            Protocol::Http | Protocol::Http2 => b"OPTIONS * HTTP/1.0\r\n\r\n",
        }
    }

    fn greeting(&self) -> &'static [u8] {
        match self.protocol {
            // The beginning of an alert (RFC 8446 section 6).
            _ if self.security == Security::Implicit => &[21, 3, 3],
            Protocol::Smtp | Protocol::Submission => b"220",
            Protocol::Pop3 => b"+OK",
            Protocol::Http | Protocol::Http2 => b"HTT",
        }
    }

    fn farewell(&self) -> &'static [u8] {
        match self.protocol {
            _ if self.security == Security::Implicit => b"",
            Protocol::Smtp | Protocol::Submission | Protocol::Pop3 => b"QUIT\r\n",
            Protocol::Http | Protocol::Http2 => b"",
        }
    }
}

/// The highest BASE that leaves every service a port.
pub fn base_max() -> u16 {
    let highest = SERVICES.iter().map(|service| service.port).max().unwrap_or_default();
    u16::MAX.saturating_sub(highest)
}
