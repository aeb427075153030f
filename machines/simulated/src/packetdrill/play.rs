//! Plays a script: its events in order, with the time between them.

use std::sync::OnceLock;

use machine::Instant;

use super::applicable;
use super::compare::{Offers, ScriptTerms};
use super::config::Config;
use super::host::{BASE, HALF_OPEN, HostUnderTest};
use super::player::{Player, seconds};
use super::script::{Event, Flags, Script, ScriptAction, TcpOption, When};
use super::settings::{self, CommandMeaning, State};
use super::verdict::{Outcome, ScriptStop, Verdict};
use super::waiting::PATIENCE;
use super::wire::{IpPacket, PROTOCOL_TCP, Segment};

/// Plays a parsed script.
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
    Outcome {
        verdict: verdict.map_or_else(|ScriptStop(verdict)| verdict, |()| Verdict::Passed),
        liberties,
    }
}

impl Player {
    fn for_script(script: &Script) -> Result<Player, ScriptStop> {
        let config = Config::of(script)?;
        let offers = *OFFERS.get_or_init(offers);
        let foreign =
            script.events.iter().any(|event| matches!(event.action, ScriptAction::Command(_)));
        let terms = ScriptTerms { foreign, offers, agreed: applicable::agreed(script, offers) };
        applicable::check(script, terms)?;
        let is_cookie_asked = |event: &Event| match &event.action {
            ScriptAction::Command(command) => settings::asks_for_cookies(command),
            _ => false,
        };
        let half_open = if script.events.iter().any(is_cookie_asked) { 0 } else { HALF_OPEN };
        Ok(Player::new(config, terms, half_open))
    }

    fn run(&mut self, script: &Script) -> Result<(), ScriptStop> {
        for event in &script.events {
            self.act(event)?;
            self.check_host(event.line)?;
        }
        let last_line = script.events.last().map_or(0, |event| event.line);
        self.finish_pending(self.host.now + PATIENCE)?;
        self.check_host(last_line)
    }

    fn act(&mut self, event: &Event) -> Result<(), ScriptStop> {
        if let ScriptAction::Outbound(packet) = &event.action {
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
            return Err(ScriptStop::failed(
                event.line,
                "a time that is not before the event above",
                seconds(at),
            ));
        }
        self.wait_until(at)?;
        self.check_time(event.line, at)?;
        match &event.action {
            ScriptAction::Inbound(packet) => self.inject(event.line, packet)?,
            ScriptAction::SocketCall(call) => {
                self.finish_pending(at + PATIENCE)?;
                let returns = call.returns.map(|span| match event.when {
                    When::After(_) => self.last + span,
                    _ => BASE + span,
                });
                self.call(event.line, call, returns)?;
            }
            ScriptAction::Command(command) => self.command(event.line, command)?,
            ScriptAction::Code(code) => super::code::check(event.line, code)?,
            ScriptAction::Outbound(_) => {}
        }
        self.settle()?;
        self.last = self.host.now.max(at);
        Ok(())
    }

    /// Checks that an event happens at its time. It may be late because a call blocked longer than
    /// the script says.
    fn check_time(&self, line: usize, at: Instant) -> Result<(), ScriptStop> {
        let late = self.host.now.since(at);
        if late > self.tolerance(at) {
            return Err(ScriptStop::failed(
                line,
                format!("this at {}", seconds(at)),
                seconds(self.host.now),
            ));
        }
        Ok(())
    }

    /// The earliest and the latest time of a packet, without the tolerance; `None` for any time.
    fn window_of(&self, event: &Event) -> Option<(Instant, Instant)> {
        match event.when {
            When::At(span) => Some((BASE + span, BASE + span)),
            When::After(span) => Some((self.last + span, self.last + span)),
            When::Between(from, to) => Some((BASE + from, BASE + to)),
            When::AfterBetween(from, to) => Some((self.last + from, self.last + to)),
            When::Anytime => None,
        }
    }

    fn command(&mut self, line: usize, command: &str) -> Result<(), ScriptStop> {
        let meanings = settings::meaning(command, self.terms.agreed);
        for meaning in meanings.map_err(|reason| ScriptStop::not_applicable(line, reason))? {
            match meaning {
                CommandMeaning::Nothing => {}
                CommandMeaning::Wait(span) => self.wait_until(self.host.now + span)?,
                CommandMeaning::Count { state, wanted } => {
                    let count = match state {
                        State::SynReceived => self.host.net.handshake_count(),
                        State::TimeWait => self.host.net.time_wait_count(),
                    };
                    if !count.to_string().contains(&wanted) {
                        return Err(ScriptStop::failed(
                            line,
                            format!("{wanted} connections in this state"),
                            count,
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The result of [`offers`], which is determined once.
static OFFERS: OnceLock<Offers> = OnceLock::new();

/// The features that the engine offers to a client that offers everything. The function starts a
/// separate machine, and sends it a SYN that offers everything.
fn offers() -> Offers {
    let config = Config::default();
    let mut host = HostUnderTest::new(config.own, config.mtu, HALF_OPEN);
    host.net.listen(1, net::Service(0));
    let syn = Segment {
        source_port: 2,
        destination_port: 1,
        sequence: 0,
        acknowledgment: 0,
        flags: Flags { bits: 0x2 | 0x40 | 0x80 },
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
    let Some(answer) = host.sent.pop_front().and_then(|sent| sent.segment) else {
        return Offers::default();
    };
    let has = |is: fn(&TcpOption) -> bool| answer.options.iter().any(is);
    Offers {
        window_scale: has(|option| matches!(option, TcpOption::WindowScale(_))),
        sack: has(|option| matches!(option, TcpOption::SackPermitted)),
        timestamps: has(|option| matches!(option, TcpOption::Timestamp { .. })),
        ecn: answer.flags.has(Flags::ECE),
    }
}
