//! A client: the engine's own network as the side that connects, and a dialogue in each of its
//! connections.
//!
//! Invariants:
//! - There are as many connections as requested, each with one exchange in progress. When a
//!   connection ends, the client opens another one.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use machine::{Entropy, Instant, Machine};
use net::tcp::PoolSizes;
use net::{
    Addressing, Config, ConnectionId, Cores, Event, Events, Ipv4Interface, Ipv6Addressing, Limits,
    Net,
};
use tasks::Budget;

use crate::card::{FabricMachine, Role};
use crate::dialogue::{ClientAction, Dialogue, Words};
use crate::disk::MemoryDisk;
use crate::server::{ACCOUNTS, ADDRESS};
use crate::tls_client::TlsClient;
use crate::wire::End;

/// Three limits of one turn: the frames that it receives, the connections that it lets send, and
/// the timers that expire.
const A_TURN: u32 = 64;
/// The least number of connections for which memory is allocated.
const CONNECTIONS_LEAST: usize = 16;

pub(crate) struct Client {
    machine: FabricMachine,
    net: Net,
    events: Events,
    words: Arc<Words>,
    server: SocketAddr,
    /// The open connections, by their slot.
    talks: Vec<Option<Talk>>,
    wanted: usize,
    open: usize,
    done: u64,
    opened: usize,
}

/// One connection.
struct Talk {
    dialogue: Dialogue,
    tls_client: Option<TlsClient>,
}

impl Client {
    /// A client at the end `end` of the wire. It has `connections` connections at a time to a
    /// server with `cores` cores.
    pub(crate) fn new(
        words: Arc<Words>,
        connections: usize,
        wire: End,
        end: u8,
        cores: u8,
    ) -> Client {
        let role = Role::Client { end, cores };
        let mut machine =
            FabricMachine::new(role, wire, MemoryDisk::blank(0), Arc::new(AtomicBool::new(false)));
        let mut seed = [0; 32];
        machine.random(&mut seed);
        let [a, b, c, _] = ADDRESS;
        let own = Ipv4Interface {
            address: Ipv4Addr::new(a, b, c, 10 + end),
            prefix_bits: 24,
            gateway: None,
        };
        // Twice as many slots, since a closed connection may still have data to send.
        let slots = connections.max(CONNECTIONS_LEAST) * 2;
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
            server: SocketAddr::from((ADDRESS, words.port())),
            words,
            talks: (0..slots).map(|_| None).collect(),
            wanted: connections,
            open: 0,
            done: 0,
            opened: 0,
        }
    }

    /// The number of exchanges that are done, such as pages or messages.
    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    /// Runs one turn.
    ///
    /// Errors: the reason, as text for people.
    pub(crate) fn turn(&mut self) -> Result<(), String> {
        let now = self.machine.now();
        self.open_wanted(now)?;
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

    fn open_wanted(&mut self, now: Instant) -> Result<(), String> {
        while self.open < self.wanted
            && let Ok(connection) = self.net.connect(now, self.server)
            && let Some(place) = self.talks.get_mut(connection.index())
        {
            let tls_client = self.words.tls_client.as_ref().map(TlsClient::new).transpose()?;
            *place = Some(Talk {
                dialogue: Dialogue::new(&self.words, self.opened % ACCOUNTS),
                tls_client,
            });
            self.opened += 1;
            self.open += 1;
        }
        Ok(())
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
                    if let Some(talk) = find(&mut self.talks, connection) {
                        talk.dialogue.peer_closed()?;
                    }
                    self.net.close(connection);
                }
                Event::Closed { connection, reason } => {
                    self.closed(connection, &format!("{reason:?}"))?
                }
                _ => {}
            }
        }
        self.events.clear();
        Ok(())
    }

    fn connected(&mut self, now: Instant, connection: ConnectionId) -> Result<(), String> {
        let Some(talk) = find(&mut self.talks, connection) else { return Ok(()) };
        let then = talk.dialogue.connected(&self.words);
        match &mut talk.tls_client {
            None => carry_out(&mut self.net, now, connection, &then).map(drop),
            Some(tls_client) => {
                if let ClientAction::Say(text) = then {
                    tls_client.say(text)?;
                }
                say(&mut self.net, now, connection, &tls_client.words())
            }
        }
    }

    fn heard(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        bytes: &[u8],
    ) -> Result<(), String> {
        let Some(talk) = find(&mut self.talks, connection) else { return Ok(()) };
        let before = talk.dialogue.done;
        let Some(tls_client) = &mut talk.tls_client else {
            let then = talk.dialogue.heard(bytes, &self.words)?;
            self.done += talk.dialogue.done - before;
            return match carry_out(&mut self.net, now, connection, &then)? {
                ConnectionState::Open => Ok(()),
                ConnectionState::Aborted => self.closed(connection, "we have left"),
            };
        };
        let mut reply: &[u8] = &[];
        tls_client.heard(bytes, |text| {
            if let ClientAction::Say(text) = talk.dialogue.heard(text, &self.words)? {
                reply = text;
            }
            Ok(())
        })?;
        tls_client.say(reply)?;
        if tls_client
            .handshake()
            .is_some_and(|kind| talk.dialogue.handshake_ended(kind, &self.words))
        {
            tls_client.close();
        }
        self.done += talk.dialogue.done - before;
        say(&mut self.net, now, connection, &tls_client.words())
    }

    /// Handles the bytes that the network has buffered, because segments arrived out of order.
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
        let Some(Talk { dialogue, .. }) =
            self.talks.get_mut(connection.index()).and_then(Option::take)
        else {
            return Ok(());
        };
        self.open -= 1;
        // At first a connection may fail, because the server's cores do not all start to serve at
        // the same time.
        let is_early = self.done == 0 && !dialogue.is_connected();
        if dialogue.is_over() || is_early {
            Ok(())
        } else {
            Err(format!("a connection is over: {reason}"))
        }
    }
}

fn find(talks: &mut [Option<Talk>], connection: ConnectionId) -> Option<&mut Talk> {
    talks.get_mut(connection.index())?.as_mut()
}

/// The state of a connection after an action of its dialogue.
#[derive(PartialEq, Eq)]
enum ConnectionState {
    Open,
    Aborted,
}

fn carry_out(
    net: &mut Net,
    now: Instant,
    connection: ConnectionId,
    then: &ClientAction<'_>,
) -> Result<ConnectionState, String> {
    match then {
        ClientAction::Listen => Ok(ConnectionState::Open),
        ClientAction::Say(bytes) => {
            say(net, now, connection, bytes).map(|()| ConnectionState::Open)
        }
        ClientAction::Leave => {
            net.abort(connection);
            Ok(ConnectionState::Aborted)
        }
    }
}

fn say(net: &mut Net, now: Instant, connection: ConnectionId, bytes: &[u8]) -> Result<(), String> {
    if net.send(now, connection, bytes) < bytes.len() {
        Err("there is no buffer space to send".into())
    } else {
        Ok(())
    }
}
