//! A content filter that checks messages, with many kinds of behaviour, and the world around a room
//! with this filter.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;
use simulated::Connection;

use crate::CORES;

use super::dns::{self, EXTERNAL, IPV4, NameServer, serving_as};
use super::room::{Room, Talk, stuffed};

pub(super) const FILTER: usize = 3;
/// The number of connections that the filter can have at a time: more than all cores use.
const LISTENERS: usize = 16 * CORES as usize + 8;

/// The beginning of a response that never ends.
const DRIPS: &[u8] = b"HTTP/1.1 200 OK\r\nX-Answer: ";

/// The behaviour of the filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Mood {
    /// The filter responds with this action, and these additional JSON members.
    Says(&'static str, &'static str),
    /// The filter responds with this body.
    Babbles(String),
    /// The filter accepts connections, and sends nothing.
    Silent,
    /// The filter sends single bytes of an endless response.
    Drips,
    /// `CutsOff`: the filter closes the connection in the middle of its response. `Resets`: it
    /// resets the connection in the middle of the message.
    CutsOff,
    Resets,
    /// The filter accepts no connections.
    Down,
}

/// One connection to the filter.
struct Conversation {
    connection: Connection,
    heard: Vec<u8>,
    to_say: Vec<u8>,
    /// The number of bytes of the endless response that were sent.
    dripped: usize,
    is_over: bool,
}

/// A request to the filter: its head, and the message.
pub(super) struct Asked {
    pub(super) head: String,
    pub(super) message: Vec<u8>,
}

/// A host that filters messages.
pub(super) struct Filter {
    pub(super) mood: Mood,
    conversations: Vec<Conversation>,
    /// The complete requests so far.
    pub(super) asked: Vec<Asked>,
    /// `connections_used`: the finished connections on which a client has sent data.
    /// `connections_max`: the most open connections at a time.
    pub(super) connections_used: usize,
    pub(super) connections_max: usize,
}

impl Conversation {
    fn awaited(room: &mut Room) -> Conversation {
        let connection = room.hosts[FILTER].listen(11333);
        Conversation {
            connection,
            heard: Vec::new(),
            to_say: Vec::new(),
            dripped: 0,
            is_over: false,
        }
    }
}

impl Filter {
    fn new(room: &mut Room) -> Filter {
        assert_eq!(room.add_host(), FILTER);
        let conversations = (0..LISTENERS).map(|_| Conversation::awaited(room)).collect();
        Filter {
            mood: Mood::Says("no action", ""),
            conversations,
            asked: Vec::new(),
            connections_used: 0,
            connections_max: 0,
        }
    }

    fn serve(&mut self, room: &mut Room) {
        let is_open = |talk: &&Conversation| room.hosts[FILTER].is_open(talk.connection);
        self.connections_max =
            self.connections_max.max(self.conversations.iter().filter(is_open).count());
        for index in 0..self.conversations.len() {
            self.speak(index, room);
        }
    }

    fn speak(&mut self, index: usize, room: &mut Room) {
        let Filter { mood, conversations, asked, connections_used, .. } = self;
        let talk = &mut conversations[index];
        let connection = talk.connection;
        if room.hosts[FILTER].is_over(connection) {
            *connections_used += usize::from(!talk.heard.is_empty());
            *talk = Conversation::awaited(room);
            return;
        }
        let is_open = room.hosts[FILTER].is_open(connection);
        if *mood == Mood::Down && is_open {
            return room.hosts[FILTER].abort(connection);
        }
        talk.heard.extend(room.hosts[FILTER].received(connection));
        if *mood == Mood::Resets && talk.heard.len() > 1_000 {
            return room.hosts[FILTER].abort(connection);
        }
        if *mood == Mood::Drips && is_open && room.machine.now.0.is_multiple_of(7) {
            let byte = DRIPS.get(talk.dripped).copied().unwrap_or(b'x');
            talk.dripped += room.hosts[FILTER].send(connection, &[byte]);
        }
        if !talk.is_over
            && let Some(answer) = answer(&talk.heard, mood, asked)
        {
            (talk.to_say, talk.is_over) = (answer, true);
        }
        let sent = room.hosts[FILTER].send(connection, &talk.to_say);
        talk.to_say.drain(..sent);
        if talk.is_over && talk.to_say.is_empty() {
            room.hosts[FILTER].close(connection);
        }
    }
}

/// The response to the request in `heard`, once it is complete.
fn answer(heard: &[u8], mood: &Mood, asked: &mut Vec<Asked>) -> Option<Vec<u8>> {
    let end = heard.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(heard[..end].to_vec()).expect("the bytes are UTF-8");
    let length =
        head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
    let message = heard[end..].get(..length.parse().expect("a number"))?;
    let body = match mood {
        Mood::Says(action, more) => {
            format!(
                "{{\"is_skipped\":false,\"score\":8.5,\"required_score\":15.0,\"action\":\"{action}\"{more}}}"
            )
        }
        Mood::Babbles(body) => body.clone(),
        Mood::CutsOff => "{\"action\":\"rej".to_string(),
        Mood::Silent | Mood::Drips | Mood::Resets | Mood::Down => return None,
    };
    asked.push(Asked { head, message: message.to_vec() });
    let length = body.len() + if *mood == Mood::CutsOff { 20 } else { 0 };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    Some((head + &body).into_bytes())
}

/// The world around a room: a name server and the filter.
pub(super) struct World {
    pub(super) names: NameServer,
    pub(super) filter: Filter,
}

/// A room with the filter in its configuration, and these further lines in the section [filter].
pub(super) fn filtering(seed: u64, more: &str) -> (Room, World) {
    filtering_at("10.0.0.13", seed, more)
}

/// Like [`filtering`], with this name or address of the filter.
pub(super) fn filtering_at(host: &str, seed: u64, more: &str) -> (Room, World) {
    let more = format!("[filter]\nurl = \"http://{host}:11333\"\n{more}");
    let (mut room, mut names) = serving_as(seed, dns::Mood::Answers, &more);
    names.zone.push(("filter.test", IPV4, vec![10, 0, 0, 13]));
    let filter = Filter::new(&mut room);
    (room, World { names, filter })
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
            self.filter.serve(room);
            reached(self, room)
        });
    }

    pub(super) fn pass(&mut self, room: &mut Room, span: Micros) {
        room.pass_beside(span, |room| {
            self.names.serve(room);
            self.filter.serve(room);
        });
    }

    pub(super) fn line(&mut self, room: &mut Room, talk: &mut Talk) -> String {
        let mut line = None;
        self.until(room, "a line arrives", |_, room| {
            let last = |line: &String| line.as_bytes().get(3) != Some(&b'-');
            line = std::iter::from_fn(|| room.line_heard(talk)).find(last);
            line.is_some()
        });
        line.unwrap_or_default()
    }

    /// Connects from a host, and sends a message without its last line.
    pub(super) fn begin(&mut self, room: &mut Room, host: usize, message: &[u8]) -> Talk {
        let mut talk = room.connect_from(host, 25);
        assert!(self.line(room, &mut talk).starts_with("220 "));
        for command in
            ["EHLO far.test", "MAIL FROM:<me@pass.test>", "RCPT TO:<ada@barepost.test>", "DATA"]
        {
            room.send(&talk, format!("{command}\r\n").as_bytes());
            let reply = self.line(room, &mut talk);
            assert!(
                reply.starts_with(if command == "DATA" { "354 " } else { "250 " }),
                "{command}: {reply}"
            );
        }
        room.send(&talk, &stuffed(message));
        talk
    }

    /// Sends a message from outside. Returns the reply to its end, and the time until the reply.
    pub(super) fn send(&mut self, room: &mut Room, message: &[u8]) -> (String, Micros) {
        let mut talk = self.begin(room, EXTERNAL, message);
        let before = room.machine.now;
        room.send(&talk, b".\r\n");
        let reply = self.line(room, &mut talk);
        let took = room.machine.now.since(before);
        room.part(talk);
        (reply, took)
    }
}
