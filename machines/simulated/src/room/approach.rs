//! How clients come: by which port, and what hides what they say there. And how a host leaves, with all its clients.

use machine::Micros;
use smoltcp::wire::IpAddress;

use super::Room;
use super::client::{Talk, Visitor};
use super::line::{First, Line};
use super::shield::{Mischief, Shield};
use crate::Dice;

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
    pub(super) const CORRESPONDENTS: [Approach; 2] =
        [Approach::by(443, Way::Tls, &["http/1.1"]), Approach::by(443, Way::Tls, &["http/1.1", HTTP2])];

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

impl Room {
    /// A client comes from a host to a machine.
    pub(super) fn welcome(&mut self, host: usize, station: usize, approach: Approach, talk: Talk, mut dice: Dice) {
        let now = self.story.now;
        let place = &mut self.hosts[host];
        if place.is_gone {
            return;
        }
        let client = &mut place.client;
        client.buffer_bytes = 1 << (11 + dice.below(6));
        let one = &self.stations[station];
        let address: IpAddress = if dice.one_in(2) { one.address.into() } else { one.address_ipv6.into() };
        let first = if matches!(approach.port, 80 | 443) { First::Client } else { First::Machine };
        let mut line = Line::new(client.connect(address, approach.port), first, now);
        let mut means_well = true;
        if approach.way != Way::Clear {
            let mischief = draw_mischief(self.rates.damage, self.rates.stopping, &mut dice);
            line.may_be_covered(Shield::new(&mut place.keyring, approach, mischief, &mut dice));
            means_well = mischief == Mischief::None;
        }
        if approach.way == Way::Tls {
            line.cover(now);
        }
        let pace = Micros(500 + dice.skewed(400_000));
        let trusts = (self.nobody_is_reset && means_well && one.is_serving()).then_some(one.life);
        self.visitors.push(Visitor { host, station, line, talk, dice, next: now, pace, trusts });
    }

    /// A host is gone with all its clients. The first one stays: somebody has to look at what is left.
    pub(super) fn vanish(&mut self, number: usize) {
        if number > 0 {
            self.hosts[number].vanish();
            self.visitors.retain(|visitor| visitor.host != number);
        }
    }
}

fn draw_mischief(damage: u64, stopping: u64, dice: &mut Dice) -> Mischief {
    if dice.happens(damage) {
        Mischief::Damages { record: dice.below(12) }
    } else if dice.happens(stopping) {
        Mischief::Stops { flight: dice.below(2), thousandths: dice.below(1000) as usize }
    } else {
        Mischief::None
    }
}
