//! Tests of DNS in the whole engine: a name server on the wire, and the checks of inbound mail.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;
use server::{InUse, Sizes};
use simulated::room::messages_on;
use simulated::{Connection, MemoryDisk, Port};
use smoltcp::wire::{
    DhcpMessageType, DhcpPacket, DhcpRepr, IpAddress, IpEndpoint, Ipv4Address, Ipv6Address,
};

use super::room::{CONFIGURATION, DISK_BYTES, Room, Talk, usual_sizes};

/// The address of external clients. Their host is also the gateway.
pub(super) const FAR: Ipv4Address = Ipv4Address::new(203, 0, 113, 7);
pub(super) const EXTERNAL: usize = 1;
pub(super) const SERVER: usize = 2;

const NAME_SERVER: Ipv4Address = Ipv4Address::new(10, 0, 0, 12);

/// The network configuration with this name server.
pub(super) const NAME_SERVER_LINE: &str =
    "address = \"10.0.0.2/24\"\ngateway = \"10.0.0.11\"\ndns = [\"10.0.0.12\"]";

const EXCHANGER: u16 = 15;
pub(super) const TEXT: u16 = 16;
pub(super) const IPV4: u16 = 1;
pub(super) const TLSA: u16 = 52;

/// The number of questions that a slow name server answers before it holds back an answer.
const LATE: usize = 7;

/// The number of TCP connections that the name server serves at a time.
const STREAMS: usize = 10;

/// The behaviour of the name server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mood {
    Answers,
    /// Every response in a datagram is truncated.
    CutsShort,
    Silent,
    /// The server is slow, and answers the question after the first [`LATE`] only when it gets
    /// another question.
    Slow,
}

/// A name server and its records.
pub(super) struct NameServer {
    port: Port,
    /// The TCP connections, each with the bytes of an incomplete question.
    streams: Vec<(Connection, Vec<u8>)>,
    /// A response that the server has held back, and its recipient.
    late: Option<(IpEndpoint, Vec<u8>)>,
    pub(super) mood: Mood,
    pub(super) zone: Vec<(&'static str, u16, Vec<u8>)>,
    /// `signed`: names for which the server marks responses as validated (DNSSEC). `failing`: names
    /// for which validation fails.
    pub(super) signed: Vec<&'static str>,
    pub(super) failing: Vec<&'static str>,
    /// The server does not answer for names with this ending.
    pub(super) ignored: Option<&'static str>,
    /// The name in each question so far, and whether the question came over TCP.
    pub(super) asked: Vec<(String, bool)>,
}

pub(super) fn text(text: &str) -> Vec<u8> {
    let mut data = vec![text.len() as u8];
    data.extend_from_slice(text.as_bytes());
    data
}

/// Listeners for TCP connections to the name server.
fn streams(room: &mut Room) -> Vec<(Connection, Vec<u8>)> {
    (0..STREAMS).map(|_| (room.hosts[SERVER].listen(53), Vec::new())).collect()
}

impl NameServer {
    fn answer(&mut self, question: &[u8], mood: Mood) -> Option<Vec<u8>> {
        let mut name = String::new();
        let mut at = 12;
        while question[at] > 0 {
            let end = at + 1 + usize::from(question[at]);
            name += &format!("{}.", String::from_utf8_lossy(&question[at + 1..end]).to_lowercase());
            at = end;
        }
        let name = name.trim_end_matches('.').to_string();
        let (kind, end) = (u16::from_be_bytes([question[at + 1], question[at + 2]]), at + 5);
        self.asked.push((name.clone(), mood == Mood::Answers && self.mood == Mood::CutsShort));
        let known: Vec<&Vec<u8>> = self
            .zone
            .iter()
            .filter(|(own, of, _)| *own == name && *of == kind)
            .map(|(_, _, data)| data)
            .collect();
        let exists = self.zone.iter().any(|(own, ..)| *own == name);
        let records: &[&Vec<u8>] = if mood == Mood::CutsShort { &[] } else { &known };
        let mut answer = question[..2].to_vec();
        answer.extend_from_slice(&[
            if mood == Mood::CutsShort { 0x83 } else { 0x81 },
            if exists { 0x80 } else { 0x83 },
        ]);
        if self.signed.contains(&name.as_str()) {
            answer[3] |= 0x20;
        }
        if self.failing.contains(&name.as_str()) {
            answer[3] = 0x82;
        }
        answer.extend_from_slice(&[0, 1, 0, records.len() as u8, 0, 0, 0, 0]);
        answer.extend_from_slice(&question[12..end]);
        for data in records {
            answer.extend_from_slice(&[0xc0, 12, (kind >> 8) as u8, kind as u8, 0, 1, 0, 0, 1, 44]);
            answer.extend_from_slice(&(data.len() as u16).to_be_bytes());
            answer.extend_from_slice(data);
        }
        let is_ignored = self.ignored.is_some_and(|end| name.ends_with(end));
        (mood != Mood::Silent && !is_ignored).then_some(answer)
    }

    /// Makes the server serve in another room. Adds the external client to that room, too.
    fn moves_to(&mut self, room: &mut Room) {
        assert_eq!((room.add_host(), room.add_host()), (EXTERNAL, SERVER));
        room.hosts[EXTERNAL].move_to(FAR);
        (self.port, self.streams) = (room.hosts[SERVER].bind(53), streams(room));
        room.until("the engine serves", |room| room.console_says("serving"));
    }

    /// A name server with MX records for `far.test` and other domains. Adds its host and the host
    /// of the external client to a room that has no hosts but the first.
    pub(super) fn of_mail(room: &mut Room) -> NameServer {
        assert_eq!((room.add_host(), room.add_host()), (EXTERNAL, SERVER));
        let (port, streams) = (room.hosts[SERVER].bind(53), streams(room));
        let exchanger = |preference: u8, host: &str| {
            let labels = host
                .split('.')
                .flat_map(|label| [&[label.len() as u8][..], label.as_bytes()].concat());
            [0, preference].into_iter().chain(labels).chain([0]).collect::<Vec<u8>>()
        };
        let zone = vec![
            ("far.test", EXCHANGER, exchanger(20, "mx.far.test")),
            ("far.test", EXCHANGER, exchanger(10, "gone.far.test")),
            ("mx.far.test", IPV4, vec![10, 0, 0, 13]),
            ("gone.far.test", IPV4, vec![10, 0, 0, 99]),
            ("null.test", EXCHANGER, vec![0, 0, 0]),
            ("silent.test", IPV4, vec![10, 0, 0, 98]),
            ("two.test", EXCHANGER, exchanger(10, "silent.test")),
            ("two.test", EXCHANGER, exchanger(20, "mx.far.test")),
            ("half.test", EXCHANGER, exchanger(10, "lost.test")),
            ("half.test", EXCHANGER, exchanger(20, "mx.far.test")),
        ];
        NameServer {
            port,
            streams,
            late: None,
            mood: Mood::Answers,
            zone,
            signed: Vec::new(),
            failing: Vec::new(),
            ignored: None,
            asked: Vec::new(),
        }
    }

    /// Answers the questions that have arrived.
    pub(super) fn serve(&mut self, room: &mut Room) {
        while let Some((from, question)) = room.hosts[SERVER].datagram(self.port) {
            let before = self.asked.len();
            if self.mood == Mood::Slow && before < LATE {
                room.pass(Micros::from_millis(2_800));
            }
            let Some(answer) = self.answer(&question, self.mood) else { continue };
            if self.mood == Mood::Slow && before == LATE {
                self.late = Some((from, answer));
                continue;
            }
            if let Some((from, answer)) = self.late.take() {
                room.hosts[SERVER].send_datagram(self.port, from, &answer);
                room.pass(Micros::from_millis(10));
            }
            room.hosts[SERVER].send_datagram(self.port, from, &answer);
        }
        for number in 0..self.streams.len() {
            self.serve_stream(room, number);
        }
    }

    fn serve_stream(&mut self, room: &mut Room, number: usize) {
        let host = &mut room.hosts[SERVER];
        let (connection, heard) = &mut self.streams[number];
        let connection = *connection;
        if host.is_over(connection) {
            self.streams[number] = (host.listen(53), Vec::new());
            return;
        }
        heard.extend(host.received(connection));
        if let Some((length, rest)) = heard.split_first_chunk::<2>()
            && rest.len() >= usize::from(u16::from_be_bytes(*length))
        {
            let question = rest.to_vec();
            heard.clear();
            let answer = self.answer(&question, Mood::Answers).expect("the server answers");
            let framed = [&(answer.len() as u16).to_be_bytes(), answer.as_slice()].concat();
            host.send(connection, &framed);
        }
    }

    /// Waits for the next reply in a conversation, while the name server serves. Returns the last
    /// line of the reply.
    pub(super) fn line(&mut self, room: &mut Room, talk: &mut Talk) -> String {
        let mut line = None;
        room.until("a line arrives", |room| {
            self.serve(room);
            let last = |line: &String| line.as_bytes().get(3) != Some(&b'-');
            line = std::iter::from_fn(|| room.line_heard(talk)).find(last);
            line.is_some()
        });
        line.unwrap_or_default()
    }

    pub(super) fn smtp(&mut self, room: &mut Room, talk: &mut Talk, command: &str) -> String {
        room.send(talk, format!("{command}\r\n").as_bytes());
        self.line(room, talk)
    }

    /// Connects an external client, which sends EHLO, MAIL with the sender `path`, and RCPT.
    pub(super) fn begin(&mut self, room: &mut Room, path: &str) -> Talk {
        let mut talk = room.connect_from(EXTERNAL, 25);
        assert!(self.line(room, &mut talk).starts_with("220 "));
        for command in
            ["EHLO far.test", &format!("MAIL FROM:<{path}>"), "RCPT TO:<ada@barepost.test>"]
        {
            let reply = self.smtp(room, &mut talk, command);
            assert!(reply.starts_with("250 "), "{command}: {reply}");
        }
        talk
    }

    /// Sends a message with the sender `path` from outside, with BDAT or DATA. Returns the fields
    /// above the `Received:` field of the delivered message.
    fn trace_of(&mut self, room: &mut Room, path: &str, in_chunks: bool) -> String {
        let talk = &mut self.begin(room, path);
        if in_chunks {
            assert!(self.smtp(room, talk, "BDAT 8 LAST\r\nLetter").starts_with("250 2.0.0 "));
        } else {
            assert!(self.smtp(room, talk, "DATA").starts_with("354 "));
            assert!(self.smtp(room, talk, "Letter\r\n.").starts_with("250 2.0.0 "));
        }
        room.close(talk);
        room.pass(Micros::from_millis(1));
        self.above(room, messages_on(&room.machine.disk, "ada@barepost.test").len())
    }

    /// The fields above the `Received:` field of a message.
    fn above(&self, room: &Room, number: usize) -> String {
        let (_, message) =
            messages_on(&room.machine.disk, "ada@barepost.test").swap_remove(number - 1);
        let message = String::from_utf8(message).expect("the bytes are UTF-8");
        assert!(message.ends_with("\r\nLetter\r\n"), "{message}");
        let (above, _) =
            message.split_once("Received: from far.test ([203.0.113.7])").expect("a trace");
        // The fields are padded with white space.
        above.split_inclusive("\r\n").map(|line| format!("{}\r\n", line.trim_end())).collect()
    }
}

pub(super) fn serving(seed: u64, mood: Mood) -> (Room, NameServer) {
    serving_as(seed, mood, "")
}

/// Like [`serving`], with these lines added to the configuration.
pub(super) fn serving_as(seed: u64, mood: Mood, more: &str) -> (Room, NameServer) {
    serving_in(usual_sizes(), seed, mood, more)
}

fn serving_in(sizes: Sizes, seed: u64, mood: Mood, more: &str) -> (Room, NameServer) {
    let configuration = CONFIGURATION.replace("address = \"10.0.0.2/24\"", NAME_SERVER_LINE) + more;
    let mut room = Room::configured(seed, MemoryDisk::blank(DISK_BYTES), sizes, &configuration);
    assert_eq!((room.add_host(), room.add_host()), (EXTERNAL, SERVER));
    room.hosts[EXTERNAL].move_to(FAR);
    let (port, streams) = (room.hosts[SERVER].bind(53), streams(&mut room));
    room.until("the engine serves", |room| room.console_says("serving"));
    let zone = vec![
        ("pass.test", TEXT, text("something else")),
        ("pass.test", TEXT, text("v=spf1 ip4:203.0.113.7 -all")),
        ("fail.test", TEXT, text("v=spf1 -all")),
        ("soft.test", TEXT, text("v=spf1 include:pass.test ~all")),
        ("soft.test", TEXT, text("v=spf1 include:fail.test ~all")),
        ("chain.test", TEXT, text("v=spf1 include:fail.test include:fail.test a:host.test -all")),
        ("host.test", IPV4, vec![203, 0, 113, 7]),
        (
            "slow.test",
            TEXT,
            text(
                "v=spf1 a:h1.test a:h2.test a:h3.test a:h4.test a:h5.test a:h6.test a:h7.test a:h8.test -all",
            ),
        ),
        ("far.test", TEXT, text("v=spf1 ip4:203.0.113.0/24 -all")),
    ];
    let others =
        ["h1.test", "h2.test", "h3.test", "h4.test", "h5.test", "h6.test", "h7.test", "h8.test"];
    let zone =
        zone.into_iter().chain(others.map(|name| (name, IPV4, vec![192, 0, 2, 1]))).collect();
    (
        room,
        NameServer {
            port,
            streams,
            late: None,
            mood,
            zone,
            signed: Vec::new(),
            failing: Vec::new(),
            ignored: None,
            asked: Vec::new(),
        },
    )
}

fn trace(path: &str, found: &str) -> String {
    let host = "Authentication-Results: mail.barepost.test";
    let others = "dmarc=permerror;\r\n\tarc=none smtp.remote-ip=203.0.113.7;\r\n\tdkim=none";
    let reason = "X-Barepost-Reason: the message has no From field";
    format!("Return-Path: <{path}>\r\n{host};\r\n\tspf={found};\r\n\t{others}\r\n{reason}\r\n")
}

#[test]
fn the_spf_result_is_in_the_trace_fields() {
    for seed in [1, 2] {
        let (mut room, mut server) = serving(seed, Mood::Answers);
        for (number, (path, found)) in [
            ("me@pass.test", "pass smtp.mailfrom=pass.test"),
            ("me@fail.test", "fail smtp.mailfrom=fail.test"),
            ("me@soft.test", "permerror smtp.mailfrom=soft.test"),
            ("\"a@b\"@chain.test", "pass smtp.mailfrom=chain.test"),
            ("me@nowhere.test", "none smtp.mailfrom=nowhere.test"),
            ("me@[203.0.113.7]", "none smtp.mailfrom=\"[203.0.113.7]\""),
            ("", "pass smtp.helo=far.test"),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(server.trace_of(&mut room, path, number % 2 == 1), trace(path, found));
        }
        let asked: Vec<&str> = server.asked.iter().map(|(name, _)| name.as_str()).collect();
        let once = [
            "pass.test",
            "fail.test",
            "soft.test",
            "chain.test",
            "host.test",
            "nowhere.test",
            "far.test",
        ];
        assert_eq!(asked, once, "a cached record is not queried again");
        room.until_nothing_is_in_use();
    }
}

#[test]
fn a_truncated_dns_response_is_retried_over_tcp() {
    for seed in [3, 4] {
        let (mut room, mut server) = serving(seed, Mood::CutsShort);
        let found = server.trace_of(&mut room, "me@pass.test", false);
        assert_eq!(found, trace("me@pass.test", "pass smtp.mailfrom=pass.test"));
        assert_eq!(
            server.asked,
            [("pass.test".to_string(), false), ("pass.test".to_string(), true)]
        );
        room.until_nothing_is_in_use();
    }
}

#[test]
fn mail_waits_at_most_20_seconds_for_name_servers() {
    for (seed, mood) in [(5, Mood::Silent), (6, Mood::Silent), (11, Mood::Slow), (12, Mood::Slow)] {
        let (mut room, mut server) = serving(seed, mood);
        if seed == 6 {
            room.hosts[SERVER].cable = simulated::Cable::Out;
        }
        let (name, seconds) =
            if mood == Mood::Silent { ("pass.test", 9) } else { ("slow.test", 20) };
        let mut talk = server.begin(&mut room, &format!("me@{name}"));
        let before = room.machine.now;
        assert!(server.smtp(&mut room, &mut talk, "DATA").starts_with("354 "));
        assert_eq!(
            room.machine.now.since(before).as_secs(),
            seconds,
            "{mood:?}: {:?}",
            server.asked
        );
        assert_eq!(room.engines.in_use().checks, 0);
        assert!(server.smtp(&mut room, &mut talk, "Letter\r\n.").starts_with("250 2.0.0 "));
        // The engine must not take a late response for the response to the next question.
        for command in
            ["MAIL FROM:<me@fail.test>", "RCPT TO:<ada@barepost.test>", "DATA", "Letter\r\n."]
        {
            let reply = server.smtp(&mut room, &mut talk, command);
            assert!(
                reply.starts_with(if command == "DATA" { "354 " } else { "250 " }),
                "{command}: {reply}"
            );
        }
        room.part(talk);
        let found = server.above(&room, 1);
        assert_eq!(found, trace(&format!("me@{name}"), &format!("temperror smtp.mailfrom={name}")));
        let verdict = if mood == Mood::Silent { "temperror" } else { "fail" };
        assert_eq!(
            server.above(&room, 2),
            trace("me@fail.test", &format!("{verdict} smtp.mailfrom=fail.test"))
        );
        room.until_nothing_is_in_use();
    }
}

#[test]
fn no_dns_checks_for_local_clients_or_without_a_name_server() {
    let (near, far) = (Ipv4Address::new(100, 1, 2, 3), IpAddress::from(super::room::SERVER));
    let networks = "[\"10.0.0.2/1\", \"2001:db8::2/64\"]\ndns = [\"10.0.0.12\"]";
    let configuration = CONFIGURATION.replace("\"10.0.0.2/24\"", networks);
    let (_, mut server) = serving(7, Mood::Answers);
    let mut room =
        Room::configured(7, MemoryDisk::blank(DISK_BYTES), usual_sizes(), &configuration);
    server.moves_to(&mut room);
    room.hosts[EXTERNAL].move_to(near);
    room.until("the addresses are ours", |room| room.console_says("2001:db8::2/64"));
    let ours = IpAddress::from(Ipv6Address::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2));
    for (number, (address, host)) in [(far, 0), (far, EXTERNAL), (ours, 0)].into_iter().enumerate()
    {
        let mut talk = room.connect_to(address, host, 25);
        server.line(&mut room, &mut talk);
        for command in [
            "HELO far.test",
            "MAIL FROM:<me@pass.test>",
            "RCPT TO:<ada@barepost.test>",
            "DATA",
            "Letter\r\n.",
        ] {
            let reply = server.smtp(&mut room, &mut talk, command);
            assert!(
                reply.starts_with(if command == "DATA" { "354 " } else { "250 " }),
                "{command}: {reply}"
            );
        }
        room.part(talk);
        let mut reader = room.log_in("ada");
        let message = String::from_utf8(room.retrieve_any(&mut reader, number + 1))
            .expect("the bytes are UTF-8");
        assert!(
            message.starts_with("Return-Path: <me@pass.test>\r\nReceived: from far.test ("),
            "{message}"
        );
        room.part(reader);
    }
    assert_eq!(server.asked, []);
    let (mut room, mut server) = serving(16, Mood::Answers);
    room.hosts[EXTERNAL].move_to(Ipv4Address::new(192, 168, 7, 7));
    let mut talk = server.begin(&mut room, "me@pass.test");
    assert!(server.smtp(&mut room, &mut talk, "DATA").starts_with("354 "));
    assert_eq!(server.asked, []);
    let mut unnamed = Room::configured(
        8,
        MemoryDisk::blank(DISK_BYTES),
        usual_sizes(),
        &CONFIGURATION.replace(
            "address = \"10.0.0.2/24\"",
            "address = \"10.0.0.2/24\"\ngateway = \"10.0.0.11\"",
        ),
    );
    server.moves_to(&mut unnamed);
    assert_eq!(
        server.trace_of(&mut unnamed, "me@pass.test", false),
        "Return-Path: <me@pass.test>\r\n"
    );
    assert_eq!(server.asked, []);
}

#[test]
fn a_client_that_leaves_during_spf_leaves_nothing_behind() {
    let (mut room, mut server) = serving(9, Mood::Silent);
    for hangs_up in [true, false] {
        let talk = server.begin(&mut room, "me@pass.test");
        room.send(&talk, b"DATA\r\n");
        room.pass(Micros::from_secs(1));
        let in_use = room.engines.in_use();
        assert_eq!((in_use.checks, in_use.questions), (1, 1), "the question waits");
        if hangs_up {
            room.abort(&talk);
        } else {
            room.close(&talk);
        }
        room.until_nothing_is_in_use();
    }
    let mut talk = server.begin(&mut room, "me@fail.test");
    room.send(&talk, b"DATA\r\n");
    room.pass(Micros::from_secs(1));
    room.machine.stop = true;
    assert!(server.line(&mut room, &mut talk).starts_with("421 "));
    room.until("the machine has stopped", |room| room.ended.is_some());
    assert_eq!(InUse { connections: 0, ..room.engines.in_use() }, InUse::default());
}

/// The core that queries name servers stops while questions of other cores wait for it.
#[test]
fn questions_to_a_stopping_core_are_dropped() {
    const TALKS: usize = 300;
    let limits = "connections = 1000\nconnections_a_minute = 9000\nmessages_a_minute = 9000\nrecipients_a_minute = 9000";
    let abuse = format!("[abuse]\ngreeting_delay = \"0s\"\n{limits}\n");
    let (mut room, mut server) =
        serving_in(Sizes { transactions: TALKS, ..usual_sizes() }, 15, Mood::Answers, &abuse);
    let talks: Vec<Talk> =
        (0..TALKS).map(|number| server.begin(&mut room, &format!("me@{number}.test"))).collect();
    room.engines.hold(Some(0));
    talks.iter().for_each(|talk| room.send(talk, b"DATA\r\n"));
    (0..100).for_each(|_| room.step());
    room.machine.stop = true;
    room.engines.hold(None);
    room.until("the machine has stopped", |room| room.ended.is_some());
}

#[test]
fn waiting_sender_checks_are_limited_without_a_queue() {
    let (mut room, mut server) = serving(10, Mood::Silent);
    let mut talks: Vec<Talk> =
        (0..99).map(|number| server.begin(&mut room, &format!("me@{number}.test"))).collect();
    talks.iter().for_each(|talk| room.send(talk, b"DATA\r\n"));
    room.pass(Micros::from_secs(1));
    // Of the checks that may wait, an address may have at most a third.
    let checks = room.engines.in_use().checks;
    assert_eq!(checks, 32);
    let taken = talks
        .iter_mut()
        .filter_map(|talk| room.line_heard(talk))
        .filter(|line| line.starts_with("354 "));
    assert_eq!(taken.count(), talks.len() - checks);
    talks.iter().for_each(|talk| room.abort(talk));
    room.until_nothing_is_in_use();
}

#[test]
fn an_spf_record_beyond_the_memory_limit_is_a_temperror() {
    let (mut room, mut server) = serving(13, Mood::CutsShort);
    for name in ["large.test", "larger.test"] {
        let texts = if name == "large.test" { 40 } else { 120 };
        server.zone.push((name, TEXT, text("v=spf1 a:host.test -all")));
        server.zone.extend((0..texts).map(|_| (name, TEXT, text(&"x".repeat(255)))));
    }
    let found = server.trace_of(&mut room, "me@large.test", false);
    assert_eq!(found, trace("me@large.test", "pass smtp.mailfrom=large.test"));
    let found = server.trace_of(&mut room, "me@larger.test", false);
    assert_eq!(found, trace("me@larger.test", "temperror smtp.mailfrom=larger.test"));
}

/// Gives the machine its address, as a DHCP server that also announces the name server.
fn lease(room: &mut Room, dhcp: Port) {
    room.until("the machine has its address", |room| {
        while let Some((_, message)) = room.hosts[SERVER].datagram(dhcp) {
            let packet = DhcpPacket::new_checked(message.as_slice()).expect("a message");
            let asked = DhcpRepr::parse(&packet).expect("a question");
            let offers = asked.message_type == DhcpMessageType::Discover;
            let answer = DhcpRepr {
                message_type: if offers { DhcpMessageType::Offer } else { DhcpMessageType::Ack },
                your_ip: super::room::SERVER,
                server_ip: NAME_SERVER,
                router: Some(Ipv4Address::new(10, 0, 0, 11)),
                subnet_mask: Some(Ipv4Address::new(255, 255, 255, 0)),
                server_identifier: Some(NAME_SERVER),
                dns_servers: Some([NAME_SERVER].into_iter().collect()),
                lease_duration: Some(86_400),
                requested_ip: None,
                client_identifier: None,
                parameter_request_list: None,
                max_size: None,
                ..asked
            };
            let mut bytes = vec![0; answer.buffer_len()];
            answer
                .emit(&mut DhcpPacket::new_unchecked(bytes.as_mut_slice()))
                .expect("the reply fits");
            let broadcast = IpEndpoint::new(Ipv4Address::BROADCAST.into(), 68);
            room.hosts[SERVER].send_datagram(dhcp, broadcast, &bytes);
        }
        room.console_says("net: 10.0.0.2/24")
    });
}

#[test]
fn name_servers_come_from_dhcp_without_a_configuration() {
    for seed in [14, 15] {
        let (_, mut server) = serving(seed, Mood::Answers);
        let configuration = CONFIGURATION.replace("[network]\naddress = \"10.0.0.2/24\"\n", "");
        let mut room =
            Room::configured(seed, MemoryDisk::blank(DISK_BYTES), usual_sizes(), &configuration);
        server.moves_to(&mut room);
        let dhcp = room.hosts[SERVER].bind(67);
        lease(&mut room, dhcp);
        let found = server.trace_of(&mut room, "me@pass.test", false);
        assert_eq!(found, trace("me@pass.test", "pass smtp.mailfrom=pass.test"));
        room.until_nothing_is_in_use();
    }
}
