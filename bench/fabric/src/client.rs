//! A client: the engine's own network from the other side, and a dialogue in each of its connections.
//!
//! Invariants:
//! - There are as many connections as were asked for, each with one thing under way: when one ends, the next is opened in its place.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use machine::{Instant, Machine};
use net::tcp::PoolSizes;
use net::{Address, Addressing, Config, ConnectionId, Cores, Event, Events, Ipv6Addressing, Limits, Net};
use tasks::Budget;

use crate::card::{FabricMachine, Who};
use crate::dialogue::{Dialogue, Load, Then, Words};
use crate::disk::MemoryDisk;
use crate::server::{ACCOUNTS, ADDRESS};
use crate::wire::End;

/// Frames taken in one turn, and connections that may speak or whose timers may expire.
const A_TURN: u32 = 64;

pub(crate) struct Client {
    machine: FabricMachine,
    net: Net,
    events: Events,
    words: Words,
    server: SocketAddr,
    /// By the slot of their connection.
    dialogues: Vec<Option<Dialogue>>,
    wanted: usize,
    open: usize,
    done: u64,
    opened: usize,
}

impl Client {
    /// A client at the wire's end with the number `end`, with `connections` at once to a server of `cores` cores.
    pub(crate) fn new(load: Load, connections: usize, wire: End, end: u8, cores: u8) -> Client {
        let who = Who::Client { end, cores };
        let mut machine = FabricMachine::new(who, wire, MemoryDisk::blank(0), Arc::new(AtomicBool::new(false)));
        let mut seed = [0; 32];
        machine.random(&mut seed);
        let [a, b, c, _] = ADDRESS;
        let own = Address { address: Ipv4Addr::new(a, b, c, 10 + end), prefix_bits: 24, gateway: None };
        // Twice as many, since one that is over may still have something to say.
        let slots = connections * 2;
        let pools = PoolSizes { blocks: slots * 4, send_queues: slots, receive_queues: slots };
        let config = Config {
            addressing: Addressing::Static(own),
            ipv6: Ipv6Addressing::None,
            limits: Limits { connections: slots, half_open: 0, time_wait: slots, pools },
            cores: Cores::ALONE,
        };
        let now = machine.now();
        Client {
            net: Net::new(&config, &machine.card(), &seed, now),
            machine,
            events: Events::new(),
            words: Words::of(load),
            server: SocketAddr::from((ADDRESS, load.port())),
            dialogues: (0..slots).map(|_| None).collect(),
            wanted: connections,
            open: 0,
            done: 0,
            opened: 0,
        }
    }

    /// Pages or letters so far.
    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    /// One turn.
    ///
    /// Errors: what went otherwise than it should, for people.
    pub(crate) fn turn(&mut self) -> Result<(), String> {
        let now = self.machine.now();
        self.open_wanted(now);
        let mut budget = Budget::new(A_TURN);
        while budget.take()
            && let Some(mut frame) = self.machine.receive()
        {
            let route = self.net.frame_arrived(now, &mut frame, &mut self.events);
            self.handle_events(now, frame.bytes())?;
            if let Some(frame) = self.net.frame_handled(frame, route) {
                self.machine.give_back(frame);
            }
        }
        self.net.deadlines_expired(now, &mut self.events, &mut Budget::new(A_TURN));
        self.handle_events(now, &[])?;
        let _ = self.net.output(now, &mut self.machine, &mut Budget::new(A_TURN));
        self.machine.ring_doorbells();
        Ok(())
    }

    fn open_wanted(&mut self, now: Instant) {
        while self.open < self.wanted
            && let Ok(connection) = self.net.connect(now, self.server)
            && let Some(place) = self.dialogues.get_mut(connection.index())
        {
            *place = Some(Dialogue::new(&self.words, self.opened % ACCOUNTS));
            self.opened += 1;
            self.open += 1;
        }
    }

    fn handle_events(&mut self, now: Instant, frame: &[u8]) -> Result<(), String> {
        let mut handled = 0;
        while let Some(event) = self.events.get(handled).cloned() {
            handled += 1;
            match event {
                Event::Connected { connection } => self.connected(now, connection)?,
                Event::Data { connection, bytes } => {
                    self.heard(now, connection, frame.get(bytes).unwrap_or_default())?;
                }
                Event::Buffered { connection } => self.waiting(now, connection)?,
                Event::PeerClosed { connection } => {
                    if let Some(dialogue) = find(&mut self.dialogues, connection) {
                        dialogue.peer_closed()?;
                    }
                    self.net.close(connection);
                }
                Event::Closed { connection, reason } => self.closed(connection, &format!("{reason:?}"))?,
                _ => {}
            }
        }
        self.events.clear();
        Ok(())
    }

    fn connected(&mut self, now: Instant, connection: ConnectionId) -> Result<(), String> {
        let Some(dialogue) = find(&mut self.dialogues, connection) else { return Ok(()) };
        let then = dialogue.connected(&self.words);
        carry_out(&mut self.net, now, connection, &then)
    }

    fn heard(&mut self, now: Instant, connection: ConnectionId, bytes: &[u8]) -> Result<(), String> {
        let Some(dialogue) = find(&mut self.dialogues, connection) else { return Ok(()) };
        let before = dialogue.done;
        let then = dialogue.heard(bytes, &self.words)?;
        self.done += dialogue.done - before;
        carry_out(&mut self.net, now, connection, &then)
    }

    /// Bytes that came in another order than they were sent.
    fn waiting(&mut self, now: Instant, connection: ConnectionId) -> Result<(), String> {
        loop {
            let bytes = self.net.waiting(connection).to_vec();
            if bytes.is_empty() {
                return Ok(());
            }
            self.net.consumed(connection, bytes.len());
            self.heard(now, connection, &bytes)?;
        }
    }

    fn closed(&mut self, connection: ConnectionId, reason: &str) -> Result<(), String> {
        let Some(dialogue) = self.dialogues.get_mut(connection.index()).and_then(Option::take) else { return Ok(()) };
        self.open -= 1;
        // Not all cores of a server serve at the same moment.
        let is_early = self.done == 0 && !dialogue.is_connected();
        if dialogue.is_over() || is_early { Ok(()) } else { Err(format!("a connection is over: {reason}")) }
    }
}

fn find(dialogues: &mut [Option<Dialogue>], connection: ConnectionId) -> Option<&mut Dialogue> {
    dialogues.get_mut(connection.index())?.as_mut()
}

fn carry_out(net: &mut Net, now: Instant, connection: ConnectionId, then: &Then<'_>) -> Result<(), String> {
    match then {
        Then::Say(bytes) if net.send(now, connection, bytes) < bytes.len() => Err("there is no room to send".into()),
        Then::Say(_) | Then::Listen => Ok(()),
    }
}
