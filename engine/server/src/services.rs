//! The services: what is spoken on which port.

/// A protocol that a connection speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// RFC 5321.
    Smtp,
    /// RFC 1939.
    Pop3,
    /// RFC 9112.
    Http,
}

impl Protocol {
    /// What a caller is told for whom there is no session.
    pub(crate) fn busy(self) -> &'static [u8] {
        match self {
            Protocol::Smtp => smtp::BUSY,
            Protocol::Pop3 => pop3::BUSY,
            Protocol::Http => http::BUSY,
        }
    }
}

/// One service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceEntry {
    /// The TCP port.
    pub port: u16,
    /// What is spoken there.
    pub protocol: Protocol,
    /// The service's name, for people.
    pub name: &'static str,
}

/// Mail from the world.
pub const SMTP: ServiceEntry = ServiceEntry { port: 25, protocol: Protocol::Smtp, name: "SMTP" };
/// Mail to its readers.
pub const POP3: ServiceEntry = ServiceEntry { port: 110, protocol: Protocol::Pop3, name: "POP3" };

/// Pages to everybody.
pub const HTTP: ServiceEntry = ServiceEntry { port: 80, protocol: Protocol::Http, name: "HTTP" };

/// All services, in the order in which they are announced.
pub const SERVICES: &[ServiceEntry] = &[SMTP, POP3, HTTP];
