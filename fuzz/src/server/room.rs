//! The test world: one engine in a simulated machine, and a client host with its own TCP. It
//! records the bytes of both directions.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

use chance::Dice;
use http::{Site, SiteFile, pack};
use machine::{Instant, Micros};
use server::configuration::Configuration;
use server::{Engine, InUse, MachineKeys, Next, Sizes};
use simulated::{Client, Connection, MemoryDisk, Mood, SimulatedMachine};

use super::action::{Action, Family, Mishap, PHRASES, Port};
use crate::network::check;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SERVER_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DISK_BYTES: u64 = 4 << 20;
/// The most connections of clients at the same time.
const CLIENTS_MAX: usize = 12;
/// The most bytes that a client sends on one connection.
const SENT_BYTES_MAX: usize = 40_000;
/// After this many turns in a row without any effect, the engine counts as spinning.
const IDLE_TURNS_MAX: u32 = 1_000;
/// The most steps until an awaited state must be reached.
const STEPS_MAX: usize = 60_000;
const SIZES: Sizes = Sizes {
    connections: 24,
    transactions: 6,
    blocks: 128,
    buffer_bytes: 1 << 20,
    index_bytes: 1 << 20,
};

const CONFIGURATION: &str = r#"
hostname = "mail.barepost.test"
domains = ["barepost.test"]
[network]
address = ["10.0.0.2/24", "2001:db8::2/64"]
[[user]]
address = "ada@barepost.test"
# The hash of "lovelace", of little cost.
password_hash = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$Oi7AsNkSF11/Jvy4J3BMjBTrWUr2l8Z3T8a7yI9rNnQ"
[[user]]
address = "grace@barepost.test"
password_hash = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$Oi7AsNkSF11/Jvy4J3BMjBTrWUr2l8Z3T8a7yI9rNnQ"
[access]
plaintext_auth_from = ["10.0.0.0/24"]
unthrottled_from = ["10.0.0.0/24", "2001:db8::/64"]
"#;

static SITE: OnceLock<Site> = OnceLock::new();

fn site() -> Site {
    *SITE.get_or_init(|| {
        let file = |plain: &[u8]| SiteFile {
            content_type: "text/plain".into(),
            modified: "Sun, 06 Nov 1994 08:49:37 GMT".into(),
            plain: plain.to_vec(),
            gzip: None,
            brotli: None,
        };
        let files = [("/index.html", file(b"index")), ("/a.txt", file(&[b'a'; 5_000]))];
        let packed = pack(&files.map(|(path, file)| (path.to_string(), file)).into())
            .expect("the files are right");
        Site::new(packed.leak()).expect("the packed files are a site")
    })
}

/// One connection of a client, and the bytes of both directions.
struct ConnectedClient {
    connection: Connection,
    port: Port,
    sent: Vec<u8>,
    received: Vec<u8>,
}

pub(super) struct Room {
    machine: SimulatedMachine,
    engine: Engine,
    host: Client,
    clients: Vec<ConnectedClient>,
    dice: Dice,
    next: Next,
    idle_turns: u32,
    /// The number of acknowledged messages.
    pub(super) acknowledged: usize,
    /// The number of DELE commands, which limits the number of deleted messages.
    pub(super) deleted_at_most: usize,
}

impl Room {
    /// A test world with an engine that serves.
    pub(super) fn new(seed: u64) -> Room {
        let mut machine = SimulatedMachine::new(seed, MemoryDisk::blank(DISK_BYTES));
        let configuration =
            Configuration::parse(CONFIGURATION).expect("the configuration is right");
        let (seed_of_engine, _) =
            server::seeds(configuration, site(), MachineKeys::default(), SIZES, 1, [7; 32]);
        let engine = Engine::new(seed_of_engine, &mut machine);
        let host = Client::new(CLIENT, seed);
        let dice = Dice::new(seed);
        let (next, idle_turns, clients) = (Next::Now, 0, Vec::new());
        let mut room = Room {
            machine,
            engine,
            host,
            clients,
            dice,
            next,
            idle_turns,
            acknowledged: 0,
            deleted_at_most: 0,
        };
        room.until("the engine serves", |room| {
            room.machine.console.iter().any(|line| line.starts_with("serving"))
        });
        // The engine probes for its addresses before it uses them.
        let ready = room.machine.now + Micros::from_secs(5);
        room.until("its addresses are in use", |room| room.machine.now >= ready);
        room
    }

    pub(super) fn act(&mut self, action: &Action) {
        match action {
            Action::Open { port, family } => self.open(*port, *family),
            Action::Say { which, phrase, times } => {
                let phrase = PHRASES[usize::from(*phrase) % PHRASES.len()];
                self.send(*which, phrase.repeat(1 + usize::from(times % 3)).as_bytes());
            }
            Action::SayBytes { which, bytes } => self.send(*which, bytes),
            Action::SayMuch { which, byte, count } => {
                self.send(*which, &vec![*byte; usize::from(*count) % 8_192])
            }
            Action::Close { which } => {
                if let Some(client) = self.client(*which) {
                    let connection = client.connection;
                    self.host.close(connection);
                }
            }
            Action::Reset { which } => {
                if let Some(client) = self.client(*which) {
                    let connection = client.connection;
                    self.host.abort(connection);
                }
            }
            Action::Turns { count } => (0..*count).for_each(|_| self.step()),
            Action::Wait { millis } => {
                self.step();
                self.machine.wait(Micros::from_millis(u64::from(*millis)));
                self.step();
            }
            Action::DiskWaits { waits } => {
                self.machine.disk.mood = if *waits { Mood::Waits } else { Mood::Works }
            }
            Action::Disk { count } => {
                for _ in 0..*count % 8 {
                    self.machine.disk.carry_out_any(&mut self.dice);
                }
            }
            Action::Mishap { kind, frame } => self.mishap(*kind, *frame),
            Action::Frame { kind, bytes } => self.frame(*kind, bytes),
            Action::Ring { frames } => self.machine.transmit_ring = usize::from(*frames),
        }
    }

    fn client(&mut self, which: u8) -> Option<&mut ConnectedClient> {
        let number = usize::from(which).checked_rem(self.clients.len())?;
        self.clients.get_mut(number)
    }

    fn open(&mut self, port: Port, family: Family) {
        if self.clients.len() < CLIENTS_MAX {
            let connection = match family {
                Family::Ipv4 => self.host.connect(SERVER, port.number()),
                Family::Ipv6 => self.host.connect(SERVER_IPV6, port.number()),
            };
            self.clients.push(ConnectedClient {
                connection,
                port,
                sent: Vec::new(),
                received: Vec::new(),
            });
        }
        (0..4).for_each(|_| self.step());
    }

    fn send(&mut self, which: u8, bytes: &[u8]) {
        let Some(number) = usize::from(which).checked_rem(self.clients.len()) else { return };
        let client = &mut self.clients[number];
        if client.sent.len() + bytes.len() <= SENT_BYTES_MAX {
            let taken = self.host.send(client.connection, bytes);
            client.sent.extend_from_slice(&bytes[..taken]);
        }
        self.step();
    }

    fn mishap(&mut self, kind: Mishap, frame: u8) {
        self.host.work(self.machine.now, &mut self.machine.to_engine);
        let frames = &mut self.machine.to_engine;
        let Some(at) = usize::from(frame).checked_rem(frames.len()) else { return };
        match kind {
            Mishap::Lost => drop(frames.remove(at)),
            Mishap::Twice => {
                let again = frames[at].clone();
                frames.push_back(again);
            }
            Mishap::Overtaken => {
                if let Some(late) = frames.remove(at) {
                    frames.push_back(late);
                }
            }
            Mishap::Spoiled(place) => {
                let frame = &mut frames[at];
                let place = 14 + usize::from(place) % frame.len().saturating_sub(14).max(1);
                // ARP has no checksum. The engine could not detect damage, so ARP is not changed.
                if frame[12..14] != [8, 6]
                    && let Some(byte) = frame.get_mut(place)
                {
                    *byte ^= 0x41;
                }
            }
        }
    }

    /// Sends the engine a frame of a host that is not the clients' host.
    fn frame(&mut self, kind: u8, bytes: &[u8]) {
        let kind: [u8; 2] = match kind % 3 {
            0 => [8, 0],
            1 => [0x86, 0xdd],
            _ => [9, 9],
        };
        let to = simulated::ADDRESS.0;
        self.machine.to_engine.push_back([&to[..], &[2, 0, 0, 0, 9, 9], &kind, bytes].concat());
        self.step();
    }

    /// Runs each part that has something to do, for one turn. Time passes if all parts are idle.
    fn step(&mut self) {
        let now = self.machine.now;
        let is_woken = !self.machine.to_engine.is_empty() || self.machine.disk.has_completions();
        let is_due = match self.next {
            Next::Now => true,
            Next::At(at) => at <= now || is_woken,
            Next::Stopped(ending) => {
                panic!("the engine ended: {ending:?}; {:?}", self.machine.console)
            }
        };
        if is_due {
            let waiting = self.machine.disk.waiting();
            self.next = self.engine.turn(&mut self.machine);
            let brought_something = is_woken
                || !self.machine.from_engine.is_empty()
                || self.machine.disk.has_completions()
                || self.machine.disk.waiting() != waiting;
            self.idle_turns = if brought_something { 0 } else { self.idle_turns + 1 };
            assert!(self.idle_turns < IDLE_TURNS_MAX, "the engine spins at {now}");
        }
        while let Some(frame) = self.machine.from_engine.pop_front() {
            check::frame(&frame);
            self.host.hear(&frame);
        }
        self.host.work(now, &mut self.machine.to_engine);
        for client in &mut self.clients {
            client.received.extend(self.host.received(client.connection));
        }
        self.host.work(now, &mut self.machine.to_engine);
        self.pass_time();
    }

    fn pass_time(&mut self) {
        let now = self.machine.now;
        if self.next == Next::Now
            || !self.machine.to_engine.is_empty()
            || self.machine.disk.has_completions()
        {
            return;
        }
        let engine_at = match self.next {
            Next::At(at) => at,
            _ => Instant::NEVER,
        };
        let next = self.host.next_deadline().map_or(engine_at, |at| at.min(engine_at));
        self.machine.now = next.clamp(now + Micros(50), now + Micros::from_secs(1));
    }

    fn until(&mut self, what: &str, mut reached: impl FnMut(&Room) -> bool) {
        for _ in 0..STEPS_MAX {
            if reached(self) {
                return;
            }
            self.step();
        }
        panic!(
            "stuck while waiting until {what}: {:?}; {:?}",
            self.engine.in_use(),
            self.machine.console
        );
    }

    /// Ends all faults and connections, and waits until no resource is in use.
    pub(super) fn come_to_rest(&mut self) {
        self.machine.disk.mood = Mood::Works;
        while self.machine.disk.waiting() > 0 {
            self.machine.disk.carry_out_next();
        }
        self.machine.transmit_ring = simulated::TRANSMIT_RING;
        let quiet = self.machine.now + Micros::from_secs(5);
        self.until("replies have arrived", |room| room.machine.now >= quiet);
        let clients = std::mem::take(&mut self.clients);
        for client in &clients {
            self.count(client);
            self.host.abort(client.connection);
        }
        self.step();
        clients.iter().for_each(|client| self.host.forget(client.connection));
        self.until("no resource is in use", |room| room.engine.in_use() == InUse::default());
    }

    /// Counts the acknowledged messages and the DELE commands on a connection.
    fn count(&mut self, client: &ConnectedClient) {
        let count = |bytes: &[u8], words: &[u8]| {
            bytes.windows(words.len()).filter(|window| *window == words).count()
        };
        match client.port {
            Port::Smtp => self.acknowledged += count(&client.received, b"250 2.0.0 Stored as "),
            Port::Pop3 => self.deleted_at_most += count(&client.sent.to_ascii_uppercase(), b"DELE"),
            Port::Http => {}
        }
    }

    /// The conversation of a correct client. Each turn is the text to send and a part of the
    /// expected answer, which the client awaits before the next turn. Returns all answers.
    pub(super) fn converse(&mut self, port: Port, turns: &[(&str, &str)]) -> String {
        let connection = self.host.connect(SERVER, port.number());
        let mut received = String::new();
        for (text, ends) in turns {
            let before = received.len();
            let mut rest = text.as_bytes();
            for step in 0.. {
                rest = &rest[self.host.send(connection, rest)..];
                received.push_str(&String::from_utf8_lossy(&self.host.received(connection)));
                if received[before..].contains(ends) {
                    break;
                }
                assert!(
                    step < STEPS_MAX,
                    "{text:?} is not answered by {ends:?} but by {:?}",
                    &received[before..]
                );
                self.step();
            }
        }
        self.host.abort(connection);
        self.host.work(self.machine.now, &mut self.machine.to_engine);
        self.host.forget(connection);
        self.step();
        received
    }
}
