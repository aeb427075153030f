//! How clients come: by which port, and what hides what they say there.

use chance::Dice;

/// What hides what a client says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// Nothing.
    Clear,
    /// TLS, once it has asked for that.
    Asks,
    /// TLS, from the first byte on.
    Tls,
}

/// What HTTP/2 is called. A machine chooses it where it is offered.
const HTTP2: &str = "h2";

/// How a client comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Approach {
    pub(super) port: u16,
    pub(super) way: Way,
    /// What it would speak within TLS, if it says so.
    pub(super) protocols: &'static [&'static str],
}

impl Approach {
    pub(super) const fn by(port: u16, way: Way, protocols: &'static [&'static str]) -> Approach {
        Approach { port, way, protocols }
    }

    pub(super) const SENDERS: [Approach; 5] = [
        Approach::by(25, Way::Clear, &[]),
        Approach::by(25, Way::Asks, &[]),
        Approach::by(587, Way::Clear, &[]),
        Approach::by(587, Way::Asks, &[]),
        Approach::by(465, Way::Tls, &[]),
    ];
    pub(super) const READERS: [Approach; 4] = [
        Approach::by(110, Way::Clear, &[]),
        Approach::by(110, Way::Asks, &[]),
        Approach::by(995, Way::Tls, &[]),
        Approach::by(995, Way::Tls, &["pop3"]),
    ];
    pub(super) const BROWSERS: [Approach; 4] = [
        Approach::by(80, Way::Clear, &[]),
        Approach::by(443, Way::Tls, &[]),
        Approach::by(443, Way::Tls, &["http/1.1"]),
        Approach::by(443, Way::Tls, &["http/1.1", HTTP2]),
    ];
    /// The webmail is spoken of over TLS alone.
    pub(super) const CORRESPONDENTS: [Approach; 2] = [
        Approach::by(443, Way::Tls, &["http/1.1"]),
        Approach::by(443, Way::Tls, &["http/1.1", HTTP2]),
    ];

    /// One of these: half of all clients come in the first way.
    pub(super) fn one_of(ways: &[Approach], dice: &mut Dice) -> Approach {
        let place = if dice.one_in(2) { 0 } else { dice.below(ways.len() as u64) };
        ways[place as usize]
    }

    /// Whether HTTP/2 is spoken.
    pub(super) fn is_http_2(self) -> bool {
        self.protocols.contains(&HTTP2)
    }

    /// Whether it is for those who have an account.
    pub(super) fn is_for_users(self) -> bool {
        matches!(self.port, 465 | 587)
    }
}
