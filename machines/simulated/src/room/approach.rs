//! How a client connects: the port, the use of TLS, and the protocols that it offers.

use chance::Dice;

/// The moment from which a client uses TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TlsUse {
    /// Never.
    Plain,
    /// After STARTTLS or STLS.
    StartTls,
    /// From the first byte on.
    Tls,
}

/// The ALPN name of HTTP/2. A machine selects HTTP/2 if the client offers it.
const HTTP2: &str = "h2";

/// How a client connects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Approach {
    pub(super) port: u16,
    pub(super) security: TlsUse,
    /// The ALPN protocols that the client offers. If empty, it sends no ALPN extension.
    pub(super) protocols: &'static [&'static str],
}

impl Approach {
    pub(super) const fn new(
        port: u16,
        security: TlsUse,
        protocols: &'static [&'static str],
    ) -> Approach {
        Approach { port, security, protocols }
    }

    pub(super) const SENDERS: [Approach; 5] = [
        Approach::new(25, TlsUse::Plain, &[]),
        Approach::new(25, TlsUse::StartTls, &[]),
        Approach::new(587, TlsUse::Plain, &[]),
        Approach::new(587, TlsUse::StartTls, &[]),
        Approach::new(465, TlsUse::Tls, &[]),
    ];
    pub(super) const READERS: [Approach; 4] = [
        Approach::new(110, TlsUse::Plain, &[]),
        Approach::new(110, TlsUse::StartTls, &[]),
        Approach::new(995, TlsUse::Tls, &[]),
        Approach::new(995, TlsUse::Tls, &["pop3"]),
    ];
    pub(super) const BROWSERS: [Approach; 4] = [
        Approach::new(80, TlsUse::Plain, &[]),
        Approach::new(443, TlsUse::Tls, &[]),
        Approach::new(443, TlsUse::Tls, &["http/1.1"]),
        Approach::new(443, TlsUse::Tls, &["http/1.1", HTTP2]),
    ];
    /// The webmail is available over TLS only.
    pub(super) const WEBMAIL_CLIENTS: [Approach; 2] = [
        Approach::new(443, TlsUse::Tls, &["http/1.1"]),
        Approach::new(443, TlsUse::Tls, &["http/1.1", HTTP2]),
    ];

    /// Draws one of `ways`. Half of all clients use the first one.
    pub(super) fn draw(ways: &[Approach], dice: &mut Dice) -> Approach {
        let place = if dice.one_in(2) { 0 } else { dice.below(ways.len() as u64) };
        ways[place as usize]
    }

    /// Whether the client offers HTTP/2.
    pub(super) fn is_http_2(self) -> bool {
        self.protocols.contains(&HTTP2)
    }

    /// Whether this port accepts mail only after a login.
    pub(super) fn is_for_users(self) -> bool {
        matches!(self.port, 465 | 587)
    }
}
