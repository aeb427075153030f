//! The player: takes the events of a script one after the other, lets time pass between them, and keeps the books of sockets,
//! lines and flows.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::OnceLock;

use machine::{Instant, Micros};

use super::applicable;
use super::calls::{self, Pending};
use super::compare::{Offers, Terms};
use super::config::Config;
use super::flow::Flow;
use super::host::{BASE, HALF_OPEN, Happened, Host};
use super::script::{Action, Event, Script, TcpOption, When};
use super::settings::{self, Meaning, State};
use super::sockets::{Kind, Line, Socket};
use super::wire::{IpPacket, PROTOCOL_TCP, Segment};
use super::{Outcome, Stop, Verdict};

/// How long a call that blocks may go on behind the last event of a script.
pub(super) const PATIENCE: Micros = Micros::from_secs(600);

/// Everything that a script has set going.
pub(super) struct Player {
    pub(super) config: Config,
    pub(super) terms: Terms,
    pub(super) host: Host,
    pub(super) flows: Vec<Flow>,
    /// The flow that packets without ports are of.
    pub(super) under_test: Option<usize>,
    /// The script has a new listener since `under_test` was set: the next SYN without ports begins a flow.
    pub(super) expects_caller: bool,
    pub(super) sockets: BTreeMap<i64, Socket>,
    pub(super) lines: Vec<Line>,
    pub(super) pending: Option<Pending>,
    /// When the call that polls began, and when it wants to be tried again at the latest.
    pub(super) polled: Option<Instant>,
    pub(super) wake_at: Option<Instant>,
    /// When the event before happened, as the script has it.
    pub(super) last: Instant,
    pub(super) liberties: Vec<(usize, String)>,
    /// Where the script first did what makes everything behind it say nothing, and what that was.
    pub(super) excuse: Option<(usize, &'static str)>,
    /// The next port of a caller, and the next number of a listener.
    pub(super) next_port: u16,
    pub(super) next_service: u8,
}

/// Plays a script that was read.
pub(super) fn play(script: &Script) -> Outcome {
    let mut liberties = Vec::new();
    let verdict = match Player::for_script(script) {
        Ok(mut player) => {
            let result = player.run(script).map_err(|stop| player.excused(stop));
            liberties = std::mem::take(&mut player.liberties);
            result
        }
        Err(stop) => Err(stop),
    };
    Outcome { verdict: verdict.map_or_else(|Stop(verdict)| verdict, |()| Verdict::Passed), liberties }
}

impl Player {
    fn for_script(script: &Script) -> Result<Player, Stop> {
        let config = Config::of(script)?;
        let offers = *OFFERS.get_or_init(offers);
        let foreign = script.events.iter().any(|event| matches!(event.action, Action::Command(_)));
        let terms = Terms { foreign, offers, met: applicable::met(script, offers) };
        applicable::check(script, terms)?;
        let is_cookie_asked = |event: &Event| match &event.action {
            Action::Command(command) => settings::asks_for_cookies(command),
            _ => false,
        };
        let half_open = if script.events.iter().any(is_cookie_asked) { 0 } else { HALF_OPEN };
        let host = Host::new(config.own, config.mtu, half_open);
        Ok(Player {
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
        })
    }

    fn run(&mut self, script: &Script) -> Result<(), Stop> {
        for event in &script.events {
            self.act(event)?;
            self.check_host(event.line)?;
        }
        let last_line = script.events.last().map_or(0, |event| event.line);
        self.finish_pending(self.host.now + PATIENCE)?;
        self.check_host(last_line)
    }

    /// What goes wrong after the script has done something that leaves the rest to us says nothing.
    fn excused(&self, stop: Stop) -> Stop {
        match (&stop, self.excuse) {
            (Stop(Verdict::Failed { .. }), Some((line, excuse))) => Stop::not_applicable(line, excuse),
            _ => stop,
        }
    }

    fn check_host(&mut self, line: usize) -> Result<(), Stop> {
        match self.host.malformed.take() {
            Some(what) => Err(Stop::failed(line, "well-formed packets", what)),
            None => Ok(()),
        }
    }

    fn act(&mut self, event: &Event) -> Result<(), Stop> {
        if let Action::Outbound(packet) = &event.action {
            let window = self.window_of(event);
            self.expect_packet(event.line, packet, window)?;
            self.last = self.host.now;
            return Ok(());
        }
        let at = match event.when {
            When::At(span) => BASE + span,
            When::After(span) => self.last + span,
            _ => self.host.now,
        };
        if at < self.last {
            return Err(Stop::failed(event.line, "a time that is not before the event above", seconds(at)));
        }
        self.wait_until(at)?;
        self.check_time(event.line, at)?;
        match &event.action {
            Action::Inbound(packet) => self.inject(event.line, packet)?,
            Action::Call(call) => {
                self.finish_pending(at + PATIENCE)?;
                let returns = call.returns.map(|span| match event.when {
                    When::After(_) => self.last + span,
                    _ => BASE + span,
                });
                self.call(event.line, call, returns)?;
            }
            Action::Command(command) => self.command(event.line, command)?,
            Action::Code(code) => super::code::check(event.line, code)?,
            Action::Outbound(_) => {}
        }
        self.settle()?;
        self.last = self.host.now.max(at);
        Ok(())
    }

    /// A call that blocked longer than the script says makes all that follows late.
    fn check_time(&self, line: usize, at: Instant) -> Result<(), Stop> {
        let late = self.host.now.since(at);
        if late > self.tolerance(at) {
            return Err(Stop::failed(line, format!("this at {}", seconds(at)), seconds(self.host.now)));
        }
        Ok(())
    }

    /// How far from the script's time something may happen: packetdrill's tolerances.
    pub(super) fn tolerance(&self, at: Instant) -> Micros {
        let share = at.since(self.last).0.saturating_mul(self.config.tolerance_share) / 10_000;
        self.config.tolerance.max(Micros(share))
    }

    /// The earliest and the latest time of a packet, tolerance left out; `None` for any.
    fn window_of(&self, event: &Event) -> Option<(Instant, Instant)> {
        match event.when {
            When::At(span) => Some((BASE + span, BASE + span)),
            When::After(span) => Some((self.last + span, self.last + span)),
            When::Between(from, to) => Some((BASE + from, BASE + to)),
            When::AfterBetween(from, to) => Some((self.last + from, self.last + to)),
            When::Anytime => None,
        }
    }

    /// Lets time pass up to `at`; whatever is due on the way happens at its own time.
    pub(super) fn wait_until(&mut self, at: Instant) -> Result<(), Stop> {
        while self.step(at)? {}
        self.host.now = self.host.now.max(at);
        Ok(())
    }

    /// Lets time pass up to the next thing that is due, but not beyond `limit`. False when nothing is due by then.
    pub(super) fn step(&mut self, limit: Instant) -> Result<bool, Stop> {
        let next = Instant::or_never(self.host.next_deadline()).min(Instant::or_never(self.next_wake()));
        if next > limit || next == Instant::NEVER {
            return Ok(false);
        }
        let deadline = next;
        self.host.now = deadline;
        self.host.expire();
        self.settle()?;
        Ok(true)
    }

    /// Lets everybody know what happened, and ends the call that waited for it.
    pub(super) fn settle(&mut self) -> Result<(), Stop> {
        loop {
            self.learn_flows();
            let Some(happened) = self.host.happened.pop_front() else { break };
            self.learn(&happened);
        }
        self.retry_pending()
    }

    /// SYNs of ours show the numbers and the port of a flow.
    fn learn_flows(&mut self) {
        for sent in &self.host.sent {
            let Some(segment) = &sent.segment else { continue };
            if let Some(flow) = self.flows.iter_mut().rev().find(|flow| flow.owns(segment)) {
                flow.noticed(segment);
            }
        }
    }

    fn learn(&mut self, happened: &Happened) {
        let connection = match happened {
            Happened::Accepted { connection, service, peer } => return self.accepted(*connection, *service, *peer),
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
        let flow = self.flows.iter().rposition(|flow| flow.peer_port == peer.port()).unwrap_or_default();
        let line = self.lines.len();
        self.lines.push(Line::new(connection, flow, true));
        for socket in self.sockets.values_mut() {
            if let Kind::Listens { service: number, waiting } = &mut socket.kind
                && *number == service
            {
                waiting.push_back(line);
            }
        }
    }

    fn command(&mut self, line: usize, command: &str) -> Result<(), Stop> {
        let meanings = settings::meaning(command, self.terms.met);
        for meaning in meanings.map_err(|reason| Stop::not_applicable(line, reason))? {
            match meaning {
                Meaning::Nothing => {}
                Meaning::Wait(span) => self.wait_until(self.host.now + span)?,
                Meaning::Count { state, wanted } => {
                    let count = match state {
                        State::SynReceived => self.host.net.handshake_count(),
                        State::TimeWait => self.host.net.time_wait_count(),
                    };
                    if !count.to_string().contains(&wanted) {
                        return Err(Stop::failed(line, format!("{wanted} connections in this state"), count));
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits for the call that blocks, if one does.
    pub(super) fn finish_pending(&mut self, limit: Instant) -> Result<(), Stop> {
        self.retry_pending()?;
        while self.pending.is_some() {
            if !self.step(limit)? {
                return calls::never_returned(self.pending.take());
            }
        }
        Ok(())
    }
}

/// What the engine offers; asked once.
static OFFERS: OnceLock<Offers> = OnceLock::new();

/// What the engine offers to a caller that offers everything: asked of a machine of its own.
fn offers() -> Offers {
    let config = Config::default();
    let mut host = Host::new(config.own, config.mtu, HALF_OPEN);
    host.net.listen(1, net::Service(0));
    let syn = Segment {
        source_port: 2,
        destination_port: 1,
        sequence: 0,
        acknowledgment: 0,
        flags: super::script::Flags { bits: 0x2 | 0x40 | 0x80 },
        window: 65_535,
        urgent: 0,
        options: vec![
            TcpOption::Mss(1460),
            TcpOption::SackPermitted,
            TcpOption::Timestamp { value: Some(1), echo: 0, absolute: false },
            TcpOption::WindowScale(7),
        ],
        payload: Vec::new(),
    };
    let payload = syn.bytes(config.peer, config.own);
    host.hear(&IpPacket::new(config.peer, config.own, PROTOCOL_TCP, payload));
    let Some(answer) = host.sent.pop_front().and_then(|sent| sent.segment) else { return Offers::default() };
    let has = |is: fn(&TcpOption) -> bool| answer.options.iter().any(is);
    Offers {
        window_scale: has(|option| matches!(option, TcpOption::WindowScale(_))),
        sack: has(|option| matches!(option, TcpOption::SackPermitted)),
        timestamps: has(|option| matches!(option, TcpOption::Timestamp { .. })),
        ecn: answer.flags.has(super::script::Flags::ECE),
    }
}

/// A time as scripts write it.
pub(super) fn seconds(at: Instant) -> String {
    let since = at.since(BASE).0;
    format!("{}.{:06}", since / 1_000_000, since % 1_000_000)
}
