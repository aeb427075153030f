//! A remote host that takes mail for `far.test`, with many kinds of behaviour, and the world around
//! a room with this host.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use dkim::SigningKey;
use http::Site;
use machine::{Instant, Micros};
use server::Sizes;
use simulated::{Connection, MemoryDisk};

use super::dns::{NAME_SERVER_LINE, NameServer};
use super::relay_tls::{TlsBehaviour, TlsLayer, shown};
use super::room::tls_stream::Trust;
use super::room::{CONFIGURATION, DISK_BYTES, Room, Talk, stuffed, usual_sizes};

/// Ada's login: NUL, the name, NUL, `lovelace`, in base64.
pub(super) const ADA: &str = "AUTH PLAIN AGFkYUBiYXJlcG9zdC50ZXN0AGxvdmVsYWNl";

/// Grace's login, with the same password.
pub(super) const GRACE: &str = "AUTH PLAIN AGdyYWNlQGJhcmVwb3N0LnRlc3QAbG92ZWxhY2U=";

pub(super) const PEER: usize = 3;
/// The number of connections that the peer can have at a time.
pub(super) const LISTENERS: usize = 4;

/// The behaviour of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mood {
    Takes,
    /// The peer offers DSN and sends the reports itself. It does not offer 8BITMIME.
    Tells,
    /// The peer defers all mail.
    RefusesForNow,
    /// The peer rejects Bob permanently, and takes mail for others.
    RefusesBob,
    /// The peer rejects `bob1` permanently, and defers `bob2`.
    RefusesBob1,
    /// The peer accepts connections, and sends nothing.
    Silent,
    /// The peer resets the connection in the middle of a message.
    Cuts,
    /// The peer receives the whole message, and does not reply.
    SwallowsAnswer,
    /// The peer rejects Bob permanently. It replies to a complete message for others only when its
    /// behaviour changes.
    Thinks,
    /// The peer refuses all mail with its greeting.
    SendsAway,
    /// The peer sends an endless greeting, a line a minute.
    Drips,
    /// The peer takes one message per connection, and replies 421 to the next one.
    Tires,
    /// The peer takes one message per connection, and then closes the connection.
    Leaves,
    /// The peer takes mail, and never closes a connection.
    Stays,
}

/// A message that the peer has accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Taken {
    pub(super) from: String,
    pub(super) to: Vec<String>,
    /// The ESMTP parameters of the sender and of each recipient.
    pub(super) parameters: Vec<String>,
    pub(super) content: Vec<u8>,
    /// Whether the message came over TLS.
    pub(super) is_over_tls: bool,
}

/// One connection of the peer.
pub(super) struct Conversation {
    pub(super) connection: Connection,
    pub(super) is_greeted: bool,
    /// A complete message waits for its reply until the peer's behaviour changes
    /// ([`Mood::Thinks`]).
    pub(super) awaits_reply: bool,
    /// The time at which the next line of a dripping greeting is due.
    drips_at: Instant,
    pub(super) heard: Vec<u8>,
    /// The client is sending a message: DATA was answered with 354.
    pub(super) is_message: bool,
    /// The message of the current transaction.
    pub(super) open: Taken,
    /// The number of messages that this connection has carried.
    messages: usize,
    /// The TLS of the connection, if it has started.
    pub(super) tls_layer: TlsLayer,
}

/// A host that takes mail for `far.test`.
pub(super) struct Peer {
    pub(super) mood: Mood,
    pub(super) tls_behaviour: TlsBehaviour,
    /// Makes the certificate that the peer presents.
    pub(super) presented: fn() -> Trust,
    /// The number of EHLO commands in clear text, and of STARTTLS commands.
    pub(super) ehlo_count: usize,
    pub(super) starttls_count: usize,
    pub(super) conversations: Vec<Conversation>,
    pub(super) taken: Vec<Taken>,
    /// The number of RCPT commands.
    pub(super) rcpt_count: usize,
    /// `accepted`: how often the peer has accepted a connection. `messages_max`: the most messages
    /// of one connection.
    pub(super) accepted: usize,
    pub(super) messages_max: usize,
}

pub(super) fn nothing() -> Taken {
    Taken {
        from: String::new(),
        to: Vec::new(),
        parameters: Vec::new(),
        content: Vec::new(),
        is_over_tls: false,
    }
}

impl Conversation {
    /// A connection that no client has opened yet.
    pub(super) fn awaited(room: &mut Room) -> Conversation {
        let connection = room.hosts[PEER].listen(25);
        Conversation {
            connection,
            is_greeted: false,
            awaits_reply: false,
            drips_at: room.machine.now,
            heard: Vec::new(),
            is_message: false,
            open: nothing(),
            messages: 0,
            tls_layer: TlsLayer::default(),
        }
    }

    fn say(&mut self, room: &mut Room, bytes: &[u8]) {
        self.tls_layer.say(room, self.connection, bytes);
    }

    /// The reply to a line.
    fn answer(&mut self, line: &str, mood: Mood, tls_behaviour: TlsBehaviour) -> &'static str {
        let path = || line.split(['<', '>']).nth(1).unwrap_or_default().to_string();
        let parameters =
            || line.split_once('>').map_or("", |(_, rest)| rest.trim_start()).to_string();
        match line.get(..4).unwrap_or_default() {
            "EHLO" if !self.tls_layer.is_on() && tls_behaviour != TlsBehaviour::None => {
                tls_behaviour.hello()
            }
            "STAR" => tls_behaviour.answer(),
            "EHLO" if mood == Mood::Tells => "250-far.test\r\n250-DSN\r\n250 PIPELINING\r\n",
            "EHLO" => "250-far.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SIZE 9000000\r\n",
            "MAIL" if mood == Mood::Tires && self.messages > 0 => "421 4.7.0 Enough\r\n",
            "MAIL" => {
                self.messages += 1;
                let parameters = vec![parameters()];
                self.open = Taken {
                    from: path(),
                    parameters,
                    is_over_tls: self.tls_layer.is_on(),
                    ..nothing()
                };
                "250 2.1.0 OK\r\n"
            }
            "RCPT" if mood == Mood::RefusesForNow => "450 4.2.0 Not now\r\n",
            "RCPT"
                if [Mood::RefusesBob, Mood::Thinks].contains(&mood)
                    && path().starts_with("bob") =>
            {
                "550 5.1.1 No such user\r\n"
            }
            "RCPT" if mood == Mood::RefusesBob1 && path().starts_with("bob1") => {
                "550 5.1.1 No such user\r\n"
            }
            "RCPT" if mood == Mood::RefusesBob1 && path().starts_with("bob2") => {
                "451 4.2.0 Not now\r\n"
            }
            "RCPT" => {
                self.open.to.push(path());
                self.open.parameters.push(parameters());
                "250 2.1.5 OK\r\n"
            }
            "DATA" if self.open.to.is_empty() => "554 5.5.1 No valid recipients\r\n",
            "DATA" => {
                self.is_message = true;
                "354 Go on\r\n"
            }
            "QUIT" => "221 2.0.0 Bye\r\n",
            _ => "250 2.0.0 OK\r\n",
        }
    }
}

impl Peer {
    pub(super) fn new(mood: Mood, room: &mut Room) -> Peer {
        let conversations = (0..LISTENERS).map(|_| Conversation::awaited(room)).collect();
        let tls_behaviour = TlsBehaviour::None;
        Peer {
            mood,
            tls_behaviour,
            presented: shown,
            ehlo_count: 0,
            starttls_count: 0,
            conversations,
            taken: Vec::new(),
            rcpt_count: 0,
            accepted: 0,
            messages_max: 0,
        }
    }

    pub(super) fn serve(&mut self, room: &mut Room) {
        for index in 0..self.conversations.len() {
            self.speak(index, room);
        }
    }

    fn speak(&mut self, index: usize, room: &mut Room) {
        let Peer {
            mood,
            tls_behaviour,
            presented,
            ehlo_count,
            starttls_count,
            conversations,
            taken,
            rcpt_count,
            accepted,
            messages_max,
        } = self;
        let talk = &mut conversations[index];
        let connection = talk.connection;
        if room.hosts[PEER].is_over(connection) {
            *talk = Conversation::awaited(room);
            return;
        }
        talk.heard.extend(talk.tls_layer.heard(room, connection));
        let is_open = room.hosts[PEER].is_open(connection);
        if *mood == Mood::Drips && is_open && talk.drips_at <= room.machine.now {
            talk.drips_at = room.machine.now + Micros::from_secs(60);
            talk.say(room, b"220-far.test\r\n");
        }
        if !talk.is_greeted && is_open && ![Mood::Silent, Mood::Drips].contains(mood) {
            talk.is_greeted = true;
            *accepted += 1;
            let is_away = *mood == Mood::SendsAway;
            talk.say(
                room,
                if is_away { b"554 No mail here\r\n" } else { b"220 far.test ready\r\n" },
            );
        }
        if talk.awaits_reply && *mood != Mood::Thinks {
            talk.awaits_reply = false;
            taken.push(talk.open.clone());
            talk.say(room, b"250 2.0.0 Taken\r\n");
        }
        if talk.is_greeted && !room.hosts[PEER].is_open(connection) && *mood != Mood::Stays {
            room.hosts[PEER].close(connection);
        }
        loop {
            if talk.is_message {
                if *mood == Mood::Cuts && talk.heard.len() > 5_000 {
                    room.hosts[PEER].abort(connection);
                    return;
                }
                if *tls_behaviour == TlsBehaviour::Spoils
                    && talk.tls_layer.is_on()
                    && talk.heard.len() > 5_000
                {
                    return talk.tls_layer.spoil(room, connection);
                }
                let end = if talk.heard.starts_with(b".\r\n") {
                    Some(0)
                } else {
                    talk.heard.windows(5).rposition(|five| five == b"\r\n.\r\n").map(|at| at + 2)
                };
                let Some(end) = end else { return };
                talk.open.content = unstuffed(&talk.heard[..end]);
                talk.heard.drain(..end + 3);
                talk.is_message = false;
                if [Mood::SwallowsAnswer, Mood::Thinks].contains(mood) {
                    talk.awaits_reply = *mood == Mood::Thinks;
                    continue;
                }
                taken.push(talk.open.clone());
                *messages_max = talk.messages.max(*messages_max);
                talk.say(room, b"250 2.0.0 Taken\r\n");
                if *mood == Mood::Leaves {
                    return room.hosts[PEER].close(connection);
                }
            }
            let Some(end) = talk.heard.windows(2).position(|two| two == b"\r\n") else { return };
            let line: Vec<u8> = talk.heard.drain(..end + 2).take(end).collect();
            let line = String::from_utf8(line).expect("commands are text");
            *rcpt_count += usize::from(line.starts_with("RCPT"));
            *ehlo_count += usize::from(line.starts_with("EHLO") && !talk.tls_layer.is_on());
            let answer = talk.answer(&line, *mood, *tls_behaviour);
            talk.say(room, answer.as_bytes());
            if answer.starts_with("421 ") {
                return room.hosts[PEER].close(connection);
            }
            if line == "STARTTLS" {
                *starttls_count += 1;
                assert_eq!(talk.heard, b"", "no clear text follows STARTTLS");
                talk.tls_layer.begin(*tls_behaviour, &presented(), room, connection);
            }
        }
    }
}

pub(super) fn unstuffed(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.flat_map(|line| line.strip_prefix(b".").unwrap_or(line)).copied().collect()
}

/// The world around a room: a name server and the peer.
pub(super) struct World {
    pub(super) names: NameServer,
    pub(super) peer: Peer,
}

pub(super) fn configuration() -> String {
    CONFIGURATION.replace("address = \"10.0.0.2/24\"", NAME_SERVER_LINE)
}

pub(super) fn serving(seed: u64, mood: Mood) -> (Room, World) {
    serving_on(seed, MemoryDisk::blank(DISK_BYTES), mood)
}

/// Like [`serving`], with a name server that the machine trusts to validate DNSSEC.
pub(super) fn serving_trusting(seed: u64, mood: Mood) -> (Room, World) {
    let configuration = CONFIGURATION
        .replace("address = \"10.0.0.2/24\"", &[NAME_SERVER_LINE, "\ndnssec = true"].concat());
    world_of(
        Room::configured(seed, MemoryDisk::blank(DISK_BYTES), usual_sizes(), &configuration),
        mood,
    )
}

pub(super) fn serving_on(seed: u64, disk: MemoryDisk, mood: Mood) -> (Room, World) {
    world_of(Room::configured(seed, disk, usual_sizes(), &configuration()), mood)
}

/// Like [`serving_on`], with this number of transactions.
pub(super) fn serving_narrowly(
    seed: u64,
    disk: MemoryDisk,
    transactions: usize,
    mood: Mood,
) -> (Room, World) {
    let sizes = Sizes { transactions, ..usual_sizes() };
    world_of(Room::configured(seed, disk, sizes, &configuration()), mood)
}

pub(super) fn serving_pages(
    seed: u64,
    disk: MemoryDisk,
    mood: Mood,
    trust: &Trust,
) -> (Room, World) {
    let certificates = vec![trust.certificate.clone()];
    world_of(
        Room::certified(seed, disk, usual_sizes(), &configuration(), Site::default(), certificates),
        mood,
    )
}

/// Like [`serving`] with a certificate. The machine signs messages of its users with these keys.
pub(super) fn serving_signed(
    seed: u64,
    mood: Mood,
    trust: &Trust,
    keys: Vec<SigningKey>,
) -> (Room, World) {
    let (disk, certificates) = (MemoryDisk::blank(DISK_BYTES), vec![trust.certificate.clone()]);
    world_of(
        Room::keyed(
            seed,
            disk,
            usual_sizes(),
            &configuration(),
            Site::default(),
            certificates,
            keys,
        ),
        mood,
    )
}

pub(super) fn world_of(mut room: Room, mood: Mood) -> (Room, World) {
    let names = NameServer::of_mail(&mut room);
    assert_eq!(room.add_host(), PEER);
    let peer = Peer::new(mood, &mut room);
    let mut world = World { names, peer };
    world.until(&mut room, "the engine serves", |_, room| room.console_says("serving"));
    (room, world)
}

impl World {
    pub(super) fn until(
        &mut self,
        room: &mut Room,
        what: &str,
        mut reached: impl FnMut(&mut World, &mut Room) -> bool,
    ) {
        room.until(what, |room| {
            self.names.serve(room);
            self.peer.serve(room);
            reached(self, room)
        });
    }

    pub(super) fn pass(&mut self, room: &mut Room, seconds: u64) {
        room.pass_beside(Micros::from_secs(seconds), |room| {
            self.names.serve(room);
            self.peer.serve(room);
        });
    }

    /// Runs this many steps. Returns the time that they take.
    pub(super) fn step(&mut self, room: &mut Room, steps: u64) -> Micros {
        let start = room.machine.now;
        for _ in 0..steps {
            self.names.serve(room);
            self.peer.serve(room);
            room.step();
        }
        room.machine.now.since(start)
    }

    /// Connects and sends EHLO. Returns the lines of the reply.
    pub(super) fn offered(&mut self, room: &mut Room, port: u16) -> (Talk, Vec<String>) {
        let mut talk = room.connect(port);
        assert!(self.reply(room, &mut talk).starts_with("220 "));
        room.send(&talk, b"EHLO client.test\r\n");
        let mut lines = Vec::new();
        self.until(room, "it is greeted", |_, room| {
            lines.extend(std::iter::from_fn(|| room.line_heard(&mut talk)));
            lines.last().is_some_and(|line: &String| line.starts_with("250 "))
        });
        (talk, lines)
    }

    pub(super) fn reply(&mut self, room: &mut Room, talk: &mut Talk) -> String {
        let mut line = None;
        self.until(room, "a reply arrives", |_, room| {
            line = std::iter::from_fn(|| room.line_heard(talk))
                .find(|line| line.as_bytes().get(3) != Some(&b'-'));
            line.is_some()
        });
        line.unwrap_or_default()
    }

    pub(super) fn say(&mut self, room: &mut Room, talk: &mut Talk, command: &str) -> String {
        room.send(talk, format!("{command}\r\n").as_bytes());
        self.reply(room, talk)
    }

    /// Submits a message as Ada. The server must accept it.
    pub(super) fn submit(&mut self, room: &mut Room, recipients: &[&str], content: &[u8]) {
        self.submit_from(room, (ADA, "ada@barepost.test"), recipients, content);
    }

    /// Like [`World::submit`], with this login and sender.
    pub(super) fn submit_from(
        &mut self,
        room: &mut Room,
        (login, path): (&str, &str),
        recipients: &[&str],
        content: &[u8],
    ) {
        let recipients: Vec<String> =
            recipients.iter().map(|recipient| format!("<{recipient}>")).collect();
        self.submit_as(room, login, &format!("<{path}> BODY=8BITMIME"), &recipients, content);
    }

    /// Like [`World::submit`], with the arguments of MAIL and RCPT, including parameters.
    pub(super) fn submit_with(
        &mut self,
        room: &mut Room,
        from: &str,
        to: &[impl AsRef<str>],
        content: &[u8],
    ) {
        self.submit_as(room, ADA, from, to, content);
    }

    fn submit_as(
        &mut self,
        room: &mut Room,
        login: &str,
        from: &str,
        to: &[impl AsRef<str>],
        content: &[u8],
    ) {
        let mut talk = room.connect(587);
        assert!(self.reply(room, &mut talk).starts_with("220 "));
        for command in ["EHLO client.test", login, &format!("MAIL FROM:{from}")] {
            let reply = self.say(room, &mut talk, command);
            assert!(reply.starts_with('2'), "{command}: {reply}");
        }
        for recipient in to {
            let reply = self.say(room, &mut talk, &format!("RCPT TO:{}", recipient.as_ref()));
            assert!(reply.starts_with("250 "), "{}: {reply}", recipient.as_ref());
        }
        assert!(self.say(room, &mut talk, "DATA").starts_with("354 "));
        room.send(&talk, &stuffed(content));
        let reply = self.say(room, &mut talk, ".");
        assert!(reply.starts_with("250 "), "{reply}");
        room.close(&talk);
    }

    /// The messages in a user's inbox.
    pub(super) fn inbox(&mut self, room: &mut Room, user: &str) -> Vec<String> {
        let mut talk = room.log_in(user);
        let count = room.pop3(&mut talk, "STAT");
        let count: usize =
            count.split(' ').nth(1).and_then(|count| count.parse().ok()).expect("a count");
        let all = (1..=count).map(|number| {
            String::from_utf8_lossy(&room.retrieve_any(&mut talk, number)).into_owned()
        });
        let all = all.collect();
        room.pop3(&mut talk, "QUIT");
        room.close(&talk);
        all
    }

    /// Cuts the power, and continues with the remaining disk. The world stays as it was.
    pub(super) fn power_cut(self, room: Room, seed: u64) -> (Room, World) {
        let (taken, mood, tls_behaviour) =
            (self.peer.taken, self.peer.mood, self.peer.tls_behaviour);
        let (room, mut world) =
            serving_on(seed, room.machine.disk.power_cut(&mut Dice::new(seed)), mood);
        (world.peer.taken, world.peer.tls_behaviour) = (taken, tls_behaviour);
        (room, world)
    }
}

pub(super) const MESSAGE: &[u8] =
    b"Subject: Away\r\nFrom: ada@barepost.test\r\nDate: then\r\nMessage-ID: <1@client.test>\r\n\r\n.\r\n..two\r\nZ\xc3\xbcrich\r\n.end\r\n";

/// Whether the content is the submitted message below our trace field.
pub(super) fn is_whole(content: &[u8], submitted: &[u8]) -> bool {
    content.starts_with(b"Received: from client.test ([10.0.0.1])\r\n")
        && content.ends_with(submitted)
}
