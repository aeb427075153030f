//! The services: the protocol, the port and the use of TLS of each.

/// A protocol that a connection speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// RFC 5321: mail from other servers.
    Smtp,
    /// RFC 6409: mail from clients with an account here.
    Submission,
    /// RFC 1939: access to a mailbox.
    Pop3,
    /// RFC 9112: web pages and the webmail.
    Http,
    /// RFC 9113: a client may choose HTTP/2 by ALPN instead of HTTP/1.1.
    Http2,
}

impl Protocol {
    /// The protocol of a connection to a service with this protocol. `choice`: the protocol that
    /// the client chose by ALPN.
    pub fn chosen(self, choice: Option<&[u8]>) -> Protocol {
        match (self, choice) {
            (Protocol::Http, Some(HTTP2)) => Protocol::Http2,
            _ => self,
        }
    }
}

/// The ALPN name of HTTP/2.
const HTTP2: &[u8] = b"h2";

/// The use of TLS by a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Security {
    /// The service has no TLS.
    None,
    /// TLS begins when the client asks for it: STARTTLS (RFC 3207), STLS (RFC 2595). A server
    /// without a certificate cannot offer this.
    OnRequest,
    /// TLS begins with the first byte (RFC 8314).
    Implicit,
}

/// One service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceEntry {
    /// The TCP port.
    pub port: u16,
    /// The protocol on this port.
    pub protocol: Protocol,
    /// The use of TLS by the service.
    pub security: Security,
    /// The ALPN names of the protocol (RFC 7301).
    pub alpn: &'static [&'static [u8]],
    /// The name of the service, for display.
    pub name: &'static str,
}

/// Mail from other servers.
pub const SMTP: ServiceEntry = in_the_clear(25, Protocol::Smtp, Security::OnRequest, "SMTP");
/// Mail from authenticated clients.
pub const SUBMISSION: ServiceEntry =
    in_the_clear(587, Protocol::Submission, Security::OnRequest, "submission");
/// Mailbox access.
pub const POP3: ServiceEntry = in_the_clear(110, Protocol::Pop3, Security::OnRequest, "POP3");
/// Web pages.
pub const HTTP: ServiceEntry = in_the_clear(80, Protocol::Http, Security::None, "HTTP");
/// Mail from authenticated clients, over TLS only.
pub const SUBMISSIONS: ServiceEntry = over_tls(465, Protocol::Submission, &[], "submissions");
/// Mailbox access, over TLS only.
pub const POP3S: ServiceEntry = over_tls(995, Protocol::Pop3, &[b"pop3"], "POP3S");
/// Web pages and the webmail, over TLS.
pub const HTTPS: ServiceEntry = over_tls(443, Protocol::Http, &[HTTP2, b"http/1.1"], "HTTPS");

/// All services, in the order in which the console announces them. The services with implicit TLS
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
