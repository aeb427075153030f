//! The services: what is spoken on which port.

/// A protocol that a connection speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// RFC 5321: from other servers.
    Smtp,
    /// RFC 6409: the same, from those who have an account here.
    Submission,
    /// RFC 1939.
    Pop3,
    /// RFC 9112.
    Http,
    /// RFC 9113: who speaks TLS may choose it in place of the other.
    Http2,
}

impl Protocol {
    /// The protocol that is spoken where this one is the service's, when the client has chosen
    /// among those that TLS offered.
    pub fn chosen(self, choice: Option<&[u8]>) -> Protocol {
        match (self, choice) {
            (Protocol::Http, Some(HTTP2)) => Protocol::Http2,
            _ => self,
        }
    }
}

/// What HTTP/2 is called within TLS.
const HTTP2: &[u8] = b"h2";

/// How a service hides what is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Security {
    /// Not at all.
    None,
    /// By TLS once the client asks for it: STARTTLS (RFC 3207), STLS (RFC 2595). This needs a
    /// certificate.
    OnRequest,
    /// TLS from the first byte on (RFC 8314).
    Implicit,
}

/// One service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceEntry {
    /// The TCP port.
    pub port: u16,
    /// What is spoken there.
    pub protocol: Protocol,
    /// How it hides what is said.
    pub security: Security,
    /// What the protocol is called within TLS (RFC 7301).
    pub alpn: &'static [&'static [u8]],
    /// The service's name, for people.
    pub name: &'static str,
}

/// Mail from the world.
pub const SMTP: ServiceEntry = in_the_clear(25, Protocol::Smtp, Security::OnRequest, "SMTP");
/// Mail from those who have an account here, once they have said who they are.
pub const SUBMISSION: ServiceEntry =
    in_the_clear(587, Protocol::Submission, Security::OnRequest, "submission");
/// Mail to its readers.
pub const POP3: ServiceEntry = in_the_clear(110, Protocol::Pop3, Security::OnRequest, "POP3");
/// Pages to everybody.
pub const HTTP: ServiceEntry = in_the_clear(80, Protocol::Http, Security::None, "HTTP");
/// Mail from those who have an account here, and nobody else hears it.
pub const SUBMISSIONS: ServiceEntry = over_tls(465, Protocol::Submission, &[], "submissions");
/// Mail to its readers, and to nobody else.
pub const POP3S: ServiceEntry = over_tls(995, Protocol::Pop3, &[b"pop3"], "POP3S");
/// Pages to everybody, and to each what it is to him alone.
pub const HTTPS: ServiceEntry = over_tls(443, Protocol::Http, &[HTTP2, b"http/1.1"], "HTTPS");

/// All services, in the order in which they are announced. Those that speak TLS from the start
/// need a certificate.
pub const SERVICES: &[ServiceEntry] = &[SMTP, POP3, HTTP, SUBMISSION, SUBMISSIONS, POP3S, HTTPS];

const fn in_the_clear(
    port: u16,
    protocol: Protocol,
    security: Security,
    name: &'static str,
) -> ServiceEntry {
    ServiceEntry { port, protocol, security, alpn: &[], name }
}

const fn over_tls(
    port: u16,
    protocol: Protocol,
    alpn: &'static [&'static [u8]],
    name: &'static str,
) -> ServiceEntry {
    ServiceEntry { port, protocol, security: Security::Implicit, alpn, name }
}
