//! The state of the player: the script's sockets, their connections and flows, and the host under
//! test.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use machine::{Instant, Micros};

use super::attempt::PendingCall;
use super::compare::ScriptTerms;
use super::config::Config;
use super::flow::Flow;
use super::host::{BASE, Happened, HostUnderTest};
use super::sockets::{Kind, Socket, SocketLine};
use super::verdict::{ScriptStop, Verdict};

/// The state of a running script.
pub(super) struct Player {
    pub(super) config: Config,
    pub(super) terms: ScriptTerms,
    pub(super) host: HostUnderTest,
    pub(super) flows: Vec<Flow>,
    /// The flow that packets of the script without ports belong to.
    pub(super) under_test: Option<usize>,
    /// Whether the script has a new listener since `under_test` was set. If so, the next SYN
    /// without ports begins a flow.
    pub(super) expects_caller: bool,
    pub(super) sockets: BTreeMap<i64, Socket>,
    pub(super) lines: Vec<SocketLine>,
    pub(super) pending: Option<PendingCall>,
    /// `polled`: when the pending call to `poll` or `epoll_wait` began. `wake_at`: when its timeout
    /// ends.
    pub(super) polled: Option<Instant>,
    pub(super) wake_at: Option<Instant>,
    /// The time of the previous event.
    pub(super) last: Instant,
    pub(super) liberties: Vec<(usize, String)>,
    /// The first line after which failures of the script prove nothing about the engine, and the
    /// reason.
    pub(super) excuse: Option<(usize, &'static str)>,
    /// The port of the next client, and the number of the next listener.
    pub(super) next_port: u16,
    pub(super) next_service: u8,
}

impl Player {
    /// A player before the first event. `half_open`: as for [`HostUnderTest::new`].
    pub(super) fn new(config: Config, terms: ScriptTerms, half_open: usize) -> Player {
        let host = HostUnderTest::new(config.own, config.mtu, half_open);
        Player {
            terms,
            host,
            config,
            flows: Vec::new(),
            under_test: None,
            expects_caller: false,
            sockets: BTreeMap::new(),
            lines: Vec::new(),
            pending: None,
            polled: None,
            wake_at: None,
            last: BASE,
            liberties: Vec::new(),
            excuse: None,
            next_port: 50_000,
            next_service: 0,
        }
    }

    /// Turns a failure into "not applicable" if `excuse` is set.
    pub(super) fn excused(&self, stop: ScriptStop) -> ScriptStop {
        match (&stop, self.excuse) {
            (ScriptStop(Verdict::Failed { .. }), Some((line, excuse))) => {
                ScriptStop::not_applicable(line, excuse)
            }
            _ => stop,
        }
    }

    pub(super) fn check_host(&mut self, line: usize) -> Result<(), ScriptStop> {
        match self.host.malformed.take() {
            Some(what) => Err(ScriptStop::failed(line, "well-formed packets", what)),
            None => Ok(()),
        }
    }

    /// The most that an event may differ from the script's time `at`, by packetdrill's tolerances.
    pub(super) fn tolerance(&self, at: Instant) -> Micros {
        let share = at.since(self.last).0.saturating_mul(self.config.tolerance_share) / 10_000;
        self.config.tolerance.max(Micros(share))
    }

    /// Learns the initial number and the port of flows from our SYNs.
    pub(super) fn learn_flows(&mut self) {
        for sent in &self.host.sent {
            let Some(segment) = &sent.segment else { continue };
            if let Some(flow) = self.flows.iter_mut().rev().find(|flow| flow.owns(segment)) {
                flow.noticed(segment);
            }
        }
    }

    pub(super) fn learn(&mut self, happened: &Happened) {
        let connection = match happened {
            Happened::Accepted { connection, service, peer } => {
                return self.accepted(*connection, *service, *peer);
            }
            Happened::Connected(connection)
            | Happened::Received(connection)
            | Happened::SendRoom(connection)
            | Happened::PeerClosed(connection)
            | Happened::Left(connection, _)
            | Happened::Closed(connection, _) => *connection,
        };
        let line = self.lines.iter_mut().rev().find(|line| line.connection == connection);
        if let Some(line) = line {
            line.learn(happened, &mut self.host);
        }
    }

    fn accepted(&mut self, connection: net::ConnectionId, service: u8, peer: SocketAddr) {
        let flow =
            self.flows.iter().rposition(|flow| flow.peer_port == peer.port()).unwrap_or_default();
        let line = self.lines.len();
        self.lines.push(SocketLine::new(connection, flow, true));
        for socket in self.sockets.values_mut() {
            if let Kind::Listens { service: number, waiting } = &mut socket.kind
                && *number == service
            {
                waiting.push_back(line);
            }
        }
    }
}

/// A time in the form of scripts.
pub(super) fn seconds(at: Instant) -> String {
    let since = at.since(BASE).0;
    format!("{}.{:06}", since / 1_000_000, since % 1_000_000)
}
