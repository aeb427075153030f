//! The DHCP client (RFC 2131, RFC 2132). It gets an address, and keeps it while the server extends
//! the lease. Otherwise it starts again.
//!
//! The client is a state machine. Its inputs are messages and the time. [`Dhcp::next_step`] returns
//! its next action.
//! ```text
//!   Discovery ─DISCOVER─> Offer ─REQUEST─> Acknowledgement ─ACK─> Renewal (bound) ─T1─> Extension
//!       ^                                        │ NAK, silence        ^                    │  ACK
//!       └────────────────────────────────────────┴───── NAK, expiry ───┴────────────────────┘
//! ```
//!
//! - The waits for an answer grow from 1 s to 64 s, with a jitter of up to a second (RFC 2131
//!   §4.1). The first wait is shorter than in the RFC, because a server on the link answers within
//!   milliseconds. Also, the first message is often lost while a link comes up.
//! - The start has no random delay (§4.4.1), and an acknowledged address is used at once. If
//!   another machine claims the address within [`PROBATION`], the client declines it. To probe the
//!   address first would cost seconds at each boot.
//! - The client accepts only answers with the identifier of its current transaction. Only the
//!   server that has offered an address may then grant or refuse it.

use core::net::Ipv4Addr;

use machine::{Ethernet, Instant, Micros};

use crate::interface::Ipv4Interface;
use crate::random::Random;

mod message;

pub(crate) use message::{CLIENT_PORT, SERVER_PORT};
use message::{DhcpReply, DhcpReplyKind};

/// For this time after the acknowledgement of an address, the client declines the address if
/// another machine claims it.
pub(crate) const PROBATION: Micros = Micros::from_secs(10);
/// The wait after the client has declined an address (RFC 2131 §3.1.5), or the server has refused
/// one.
const PAUSE: Micros = Micros::from_secs(10);
/// The least time between two attempts to extend a lease (RFC 2131 §4.4.5).
const EXTEND_AGAIN_MIN: Micros = Micros::from_secs(60);
/// The most requests for an offered address, before the client looks for servers again.
const REQUESTS_MAX: u8 = 4;
/// The shortest lease. The client treats a shorter lease as one of this length.
const LEASE_MIN: Micros = Micros::from_secs(30);

/// The most name servers that are stored.
pub(crate) const NAME_SERVERS_MAX: usize = 3;

/// Addresses of name servers.
pub(crate) type NameServers = heapless::Vec<Ipv4Addr, NAME_SERVERS_MAX>;

/// The lease that a server granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lease {
    pub(crate) address: Ipv4Interface,
    pub(crate) name_servers: NameServers,
    server: Ipv4Addr,
    acknowledged_at: Instant,
    renew_at: Instant,
    rebind_at: Instant,
    expires_at: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expect {
    /// The time at which the client looks for servers.
    Discovery {
        at: Instant,
    },
    Offer {
        attempts: u8,
        again_at: Instant,
    },
    Acknowledgement {
        offered: Ipv4Addr,
        server: Ipv4Addr,
        attempts: u8,
        again_at: Instant,
    },
    /// The time at which the client renews the lease.
    Renewal,
    /// The answer to an attempt to extend the lease. Before T2 the request is sent to the server of
    /// the lease, after T2 to all servers.
    Extension {
        again_at: Instant,
    },
}

/// An action that the client asks its caller for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DhcpAction {
    /// Send this message.
    Send(Request),
    /// Stop using the address.
    GiveUpAddress,
}

/// A message to be sent from [`CLIENT_PORT`] to [`SERVER_PORT`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    pub(crate) kind: DhcpRequestKind,
    /// The server to send it to; `None` for broadcast.
    pub(crate) server: Option<Ipv4Addr>,
    /// Our source address; unspecified while we have none.
    pub(crate) source: Ipv4Addr,
    transaction: u32,
    seconds: u16,
    hardware: Ethernet,
}

/// The purpose of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DhcpRequestKind {
    Discover,
    Request { address: Ipv4Addr, server: Ipv4Addr },
    Extend,
    Decline { address: Ipv4Addr, server: Ipv4Addr },
}

/// The effect of a received message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LeaseChange {
    Nothing,
    /// There is a new or extended lease: [`Dhcp::lease`].
    Leased,
    /// The client must stop using the address.
    Refused,
}

pub(crate) struct Dhcp {
    hardware: Ethernet,
    random: Random,
    expect: Expect,
    lease: Option<Lease>,
    transaction: u32,
    /// When this attempt to get or extend a lease began.
    began_at: Instant,
    /// A pending DHCPDECLINE for an address that another machine uses.
    decline: Option<DhcpRequestKind>,
}

impl Dhcp {
    pub(crate) fn new(hardware: Ethernet, random: Random, now: Instant) -> Dhcp {
        let expect = Expect::Discovery { at: now };
        Dhcp { hardware, random, expect, lease: None, transaction: 0, began_at: now, decline: None }
    }

    pub(crate) fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }

    /// When [`Dhcp::next_step`] next has an action.
    pub(crate) fn next_deadline(&self) -> Instant {
        if self.decline.is_some() {
            return Instant::START;
        }
        let expires_at = self.lease.as_ref().map_or(Instant::NEVER, |lease| lease.expires_at);
        match self.expect {
            Expect::Discovery { at } => at,
            Expect::Offer { again_at, .. } | Expect::Acknowledgement { again_at, .. } => again_at,
            Expect::Renewal => self.lease.as_ref().map_or(expires_at, |lease| lease.renew_at),
            Expect::Extension { again_at } => again_at.min(expires_at),
        }
    }

    /// The next action, if one is due.
    pub(crate) fn next_step(&mut self, now: Instant) -> Option<DhcpAction> {
        if self.next_deadline() > now {
            return None;
        }
        if let Some(decline) = self.decline.take() {
            return Some(self.send(now, decline, None, Ipv4Addr::UNSPECIFIED));
        }
        match self.expect {
            Expect::Discovery { .. } => {
                self.began_at = now;
                Some(self.discover(now, 0))
            }
            Expect::Offer { attempts, .. } => Some(self.discover(now, attempts)),
            Expect::Acknowledgement { attempts: REQUESTS_MAX.., .. } => {
                self.began_at = now;
                Some(self.discover(now, 0))
            }
            Expect::Acknowledgement { offered, server, attempts, .. } => {
                let again_at = self.again_at(now, attempts);
                self.expect =
                    Expect::Acknowledgement { offered, server, attempts: attempts + 1, again_at };
                let kind = DhcpRequestKind::Request { address: offered, server };
                Some(self.send(now, kind, None, Ipv4Addr::UNSPECIFIED))
            }
            Expect::Renewal | Expect::Extension { .. } => self.extend(now),
        }
    }

    /// Handles a message to [`CLIENT_PORT`].
    pub(crate) fn message_arrived(&mut self, now: Instant, bytes: &[u8]) -> LeaseChange {
        let Some(answer) = message::parse(bytes, self.hardware) else {
            return LeaseChange::Nothing;
        };
        if answer.transaction != self.transaction {
            return LeaseChange::Nothing;
        }
        match (self.expect, answer.kind) {
            (Expect::Offer { .. }, DhcpReplyKind::Offer)
                if crate::ipv4::is_possible_source(answer.address) =>
            {
                let (offered, server) = (answer.address, answer.server);
                self.expect =
                    Expect::Acknowledgement { offered, server, attempts: 0, again_at: now };
                LeaseChange::Nothing
            }
            (Expect::Acknowledgement { server, .. }, _) if answer.server != server => {
                LeaseChange::Nothing
            }
            (Expect::Acknowledgement { offered, .. }, DhcpReplyKind::Acknowledgement)
                if answer.address != offered =>
            {
                LeaseChange::Nothing
            }
            (
                Expect::Acknowledgement { .. } | Expect::Extension { .. },
                DhcpReplyKind::Acknowledgement,
            ) => self.acknowledged(now, answer),
            (Expect::Acknowledgement { .. } | Expect::Extension { .. }, DhcpReplyKind::Refusal) => {
                self.start_over(now);
                LeaseChange::Refused
            }
            _ => LeaseChange::Nothing,
        }
    }

    /// Handles the news that another machine uses our address. Returns `Refused` if the client
    /// gives the address up.
    pub(crate) fn conflict_seen(&mut self, now: Instant) -> LeaseChange {
        let Some(lease) = self.lease.take_if(|lease| now.since(lease.acknowledged_at) < PROBATION)
        else {
            return LeaseChange::Nothing;
        };
        self.decline =
            Some(DhcpRequestKind::Decline { address: lease.address.address, server: lease.server });
        self.expect = Expect::Discovery { at: now + PAUSE };
        LeaseChange::Refused
    }

    fn discover(&mut self, now: Instant, attempts: u8) -> DhcpAction {
        if attempts == 0 {
            self.transaction = self.random.next() as u32;
        }
        let again_at = self.again_at(now, attempts);
        self.expect = Expect::Offer { attempts: attempts.saturating_add(1), again_at };
        self.send(now, DhcpRequestKind::Discover, None, Ipv4Addr::UNSPECIFIED)
    }

    fn extend(&mut self, now: Instant) -> Option<DhcpAction> {
        let lease = self.lease.as_ref()?;
        if now >= lease.expires_at {
            self.lease = None;
            self.expect = Expect::Discovery { at: now };
            return Some(DhcpAction::GiveUpAddress);
        }
        let (phase_ends, server) = if now < lease.rebind_at {
            (lease.rebind_at, Some(lease.server))
        } else {
            (lease.expires_at, None)
        };
        let source = lease.address.address;
        let half = Micros(phase_ends.since(now).0 / 2).max(EXTEND_AGAIN_MIN);
        if self.expect == Expect::Renewal {
            self.transaction = self.random.next() as u32;
            self.began_at = now;
        }
        self.expect = Expect::Extension { again_at: phase_ends.min(now + half) };
        Some(self.send(now, DhcpRequestKind::Extend, server, source))
    }

    fn acknowledged(&mut self, now: Instant, answer: DhcpReply) -> LeaseChange {
        let previous =
            self.lease.as_ref().map(|lease| (lease.address.address, lease.acknowledged_at));
        let changed = previous.is_some_and(|(address, _)| address != answer.address);
        let Some(span) = answer.lease.map(|span| span.max(LEASE_MIN)) else {
            return LeaseChange::Nothing;
        };
        if changed || !crate::ipv4::is_possible_source(answer.address) {
            return LeaseChange::Nothing;
        }
        let rebind =
            answer.rebind.filter(|rebind| *rebind < span).unwrap_or(Micros(span.0 / 8 * 7));
        let renew =
            answer.renew.filter(|renew| *renew < rebind).unwrap_or(Micros(span.0 / 2).min(rebind));
        self.lease = Some(Lease {
            address: Ipv4Interface {
                address: answer.address,
                prefix_bits: answer.prefix_bits,
                gateway: answer.router.filter(|router| crate::ipv4::is_possible_source(*router)),
            },
            name_servers: answer.name_servers,
            server: answer.server,
            acknowledged_at: previous.map_or(now, |(_, first)| first),
            renew_at: now + renew,
            rebind_at: now + rebind,
            expires_at: now + span,
        });
        self.expect = Expect::Renewal;
        LeaseChange::Leased
    }

    fn start_over(&mut self, now: Instant) {
        // The pause prevents a tight loop of requests to a server that refuses its own offer.
        let at = if self.lease.take().is_some() { now } else { now + PAUSE };
        self.expect = Expect::Discovery { at };
    }

    /// The time of the next message after `attempts` messages. The waits are 1, 2, 4 … 64 seconds,
    /// each with up to one second more.
    fn again_at(&mut self, now: Instant, attempts: u8) -> Instant {
        now + Micros::from_secs(1 << attempts.min(6)) + Micros(self.random.below(1_000_000))
    }

    fn send(
        &self,
        now: Instant,
        kind: DhcpRequestKind,
        server: Option<Ipv4Addr>,
        source: Ipv4Addr,
    ) -> DhcpAction {
        let seconds = u16::try_from(now.since(self.began_at).as_secs()).unwrap_or(u16::MAX);
        DhcpAction::Send(Request {
            kind,
            server,
            source,
            transaction: self.transaction,
            seconds,
            hardware: self.hardware,
        })
    }
}
