//! Messages that arrive and are relayed, in turn at our server and at the peer.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use host::{Failure, Stop, remark};

use super::outside::{Destination, Outside, Sink};
use super::{SENDER, login};
use crate::beside::mailboxes::{CHARLES, address};
use crate::beside::{Beside, Outcome, Side, Target};
use crate::filling::Messages;
use crate::network::{enter, widen};
use crate::profile::Profiler;
use crate::statistics::median;
use crate::workplace::refuse_if_stopped;

const ROUNDS: usize = 2;
const BUDGET: Duration = Duration::from_secs(300);
const WARMING: usize = 20;
/// Sessions that send messages for two destinations.
const MIXED_SESSIONS: usize = 10;
/// The seconds that a slow destination takes for a message.
pub(super) const SLOW_SECONDS: u32 = 1;

/// The way in which an outbound message arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// An external sender sends it to an account with forwarding.
    Forwarded,
    /// A local user sends it. Our server signs it, and the peer does not.
    Sent,
}

/// A load: this many sessions send messages in one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Load {
    pub(super) way: Way,
    pub(super) sessions: usize,
}

impl Load {
    pub(super) const ALL: [Load; 4] = [
        Load { way: Way::Forwarded, sessions: 10 },
        Load { way: Way::Forwarded, sessions: 100 },
        Load { way: Way::Sent, sessions: 10 },
        Load { way: Way::Sent, sessions: 100 },
    ];

    /// The number of messages in one turn.
    fn messages_for(self, side: Side) -> usize {
        match (side, self.way) {
            (Side::Ours, Way::Forwarded) => 4_000,
            (Side::Ours, Way::Sent) => 1_000,
            (Side::Peer, _) => 200,
        }
    }

    pub(super) fn name(self) -> String {
        let how = match self.way {
            Way::Sent => "sent to others",
            Way::Forwarded => "sent on to others",
        };
        format!("messages of 1 KB {how}, {} sessions", self.sessions)
    }
}

/// A load and its results at both servers. The time of a load is from the first arrival of a
/// message to the last departure.
pub(super) struct Through {
    pub(super) load: Load,
    pub(super) ours: Outcome,
    pub(super) peers: Outcome,
}

/// The destination of every second message. The other messages go to a fast destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OtherHalf {
    /// A second destination, as fast as the first.
    Fast,
    /// A destination that takes a second for a message.
    Slow,
}

impl OtherHalf {
    pub(super) const ALL: [OtherHalf; 2] = [OtherHalf::Fast, OtherHalf::Slow];

    pub(super) fn name(self) -> &'static str {
        match self {
            OtherHalf::Fast => {
                "half of the messages for a fast destination, half for another: the one"
            }
            OtherHalf::Slow => {
                "half of the messages for a fast destination, half for a slow one: the fast one"
            }
        }
    }
}

/// The messages a second that reach the fast destination, at each server.
pub(super) struct Mixed {
    pub(super) other_half: OtherHalf,
    pub(super) ours: f64,
    pub(super) peers: f64,
}

/// All results.
#[derive(Default)]
pub(super) struct All {
    pub(super) through: Vec<Through>,
    pub(super) mixed: Vec<Mixed>,
}

/// The guests and external hosts of a measurement.
pub(super) struct Measurement<'a> {
    pub(super) beside: &'a Beside,
    pub(super) profiler: &'a Profiler,
    pub(super) outside: &'a Outside,
    pub(super) loads: Vec<Load>,
    pub(super) other_halves: Vec<OtherHalf>,
    pub(super) stop: &'a Stop,
}

impl Measurement<'_> {
    /// Measures all loads at both servers. Call this in a separate thread, because it moves the
    /// thread into a network namespace.
    pub(super) fn make(&self, folder: &Path) -> Result<All, Failure> {
        let Measurement { beside, outside, stop, .. } = self;
        enter()?;
        widen()?;
        // The name server and the guests run until these values are dropped.
        let _names = outside.begin(folder)?;
        let _guests =
            (beside.boot(Side::Ours, &[25, 587], stop)?, beside.boot(Side::Peer, &[25], stop)?);
        let targets = [Target::at(beside, Side::Ours)?, Target::at(beside, Side::Peer)?];
        let sinks = [Side::Ours, Side::Peer].map(|side| outside.open(Destination::Fast, side, 0));
        let [ours, peers] = sinks;
        let both = [(&targets[0], &ours?), (&targets[1], &peers?)];
        for (target, sink) in both {
            for way in [Way::Sent, Way::Forwarded] {
                self.put(Load { way, sessions: 1 }, WARMING, target, sink)?;
            }
        }
        let through =
            self.loads.iter().map(|load| self.by_turns(*load, both)).collect::<Result<_, _>>()?;
        // The slow destination comes last, because the bench does not wait for its messages.
        let mixed = self
            .other_halves
            .iter()
            .map(|half| self.mixed(*half, both))
            .collect::<Result<_, _>>()?;
        Ok(All { through, mixed })
    }

    fn by_turns(&self, load: Load, both: [(&Target<'_>, &Sink); 2]) -> Result<Through, Failure> {
        let mut rounds = [const { Vec::new() }; 2];
        for _ in 0..ROUNDS {
            for ((target, sink), outcomes) in both.iter().zip(&mut rounds) {
                let (count, before) = (load.messages_for(target.side), target.sample()?);
                outcomes.push(self.put(load, count, target, sink)?);
                if target.side == Side::Ours {
                    let executed = target.sample()?.since(&before);
                    self.profiler.write(
                        &load.name().replace(',', "").replace(' ', "-"),
                        &executed,
                        count as u32,
                    )?;
                }
            }
        }
        let [ours, peers] = rounds.map(|outcomes| Outcome {
            per_second: outcomes.iter().map(|one| one.per_second).fold(0.0, f64::max),
            instructions: median(outcomes.iter().map(|one| one.instructions).collect()),
        });
        remark(format_args!(
            "{}: {:.1} messages/s ({:.0} instructions) beside {:.1} ({:.0})",
            load.name(),
            ours.per_second,
            ours.instructions,
            peers.per_second,
            peers.instructions
        ));
        Ok(Through { load, ours, peers })
    }

    /// Errors: a message was not delivered, or was delivered twice.
    fn put(
        &self,
        load: Load,
        count: usize,
        target: &Target<'_>,
        sink: &Sink,
    ) -> Result<Outcome, Failure> {
        refuse_if_stopped(self.stop)?;
        let wanted = sink.taken() + count as u32;
        let messages = messages(target.side, load, &[Destination::Fast], count);
        let outcome = target.count(count as u32, || {
            let began = Instant::now();
            messages.deliver()?;
            sink.wait_for(wanted, BUDGET, self.stop)?;
            Ok(began.elapsed())
        })?;
        match sink.taken() - wanted {
            0 => Ok(outcome),
            more => Err(Failure::broke(format_args!(
                "{more} messages came twice from {}",
                target.side.guest()
            ))),
        }
    }

    fn mixed(
        &self,
        other_half: OtherHalf,
        both: [(&Target<'_>, &Sink); 2],
    ) -> Result<Mixed, Failure> {
        let rate = |(target, fast): (&Target<'_>, &Sink)| {
            refuse_if_stopped(self.stop)?;
            let load = Load { way: Way::Forwarded, sessions: MIXED_SESSIONS };
            let (side, half) = (target.side, load.messages_for(target.side));
            let (other, seconds) = match other_half {
                OtherHalf::Fast => (Destination::Other, 0),
                OtherHalf::Slow => (Destination::Slow, SLOW_SECONDS),
            };
            let sink = self.outside.open(other, side, seconds)?;
            let wanted = fast.taken() + half as u32;
            let began = Instant::now();
            messages(side, load, &[Destination::Fast, other], 2 * half).deliver()?;
            fast.wait_for(wanted, BUDGET, self.stop)?;
            let took = began.elapsed();
            if other_half == OtherHalf::Fast {
                sink.wait_for(half as u32, BUDGET, self.stop)?;
            }
            Ok::<f64, Failure>(half as f64 / took.as_secs_f64())
        };
        let [ours, peers] = both.map(rate);
        let mixed = Mixed { other_half, ours: ours?, peers: peers? };
        remark(format_args!(
            "{}: {:.1} messages/s beside {:.1}",
            other_half.name(),
            mixed.ours,
            mixed.peers
        ));
        Ok(mixed)
    }
}

/// Messages that alternate between these destinations.
fn messages(side: Side, load: Load, to: &[Destination], count: usize) -> Messages {
    let to = to
        .iter()
        .map(|one| if load.way == Way::Sent { one.address(side) } else { one.account() })
        .collect();
    let (port, login, from) = match (load.way, side) {
        (Way::Forwarded, _) => (25, String::new(), CHARLES.into()),
        (Way::Sent, Side::Ours) => (587, login(SENDER), address(SENDER)),
        // The peer relays for clients in its local network without a login.
        (Way::Sent, Side::Peer) => (25, String::new(), address(SENDER)),
    };
    Messages {
        server: SocketAddr::from((side.guest(), port)),
        sessions: load.sessions,
        login,
        from,
        to,
        count,
    }
}
