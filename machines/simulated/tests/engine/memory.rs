//! The memory that clients make the machine keep. Each kind of hoarder gets only its share, while
//! the server serves other clients. The memory that a core promises to clients fits into its
//! memory. The server closes connections when memory runs low.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::sync::Arc;

use allocation_counter::measure;
use http::Site;
use http2::{FrameHead, FrameType, PREFACE, flags};
use machine::Micros;
use rustls::ClientConfig;
use server::configuration::Configuration;
use server::{MachineKeys, Sizes};
use simulated::{Engines, MemoryDisk, SimulatedMachine};

use super::room::pages::site;
use super::room::tls_stream::{TlsStream, Trust, client};
use super::room::{CONFIGURATION, DISK_BYTES, Room, usual_sizes};
use super::webmail::Browser;
use crate::CORES;

/// The capacity for connections of each core in these tests.
const CONNECTIONS: usize = 256;
/// The number of hoarding connections, from two addresses.
const HOARDERS: usize = 160;
/// The way in which a client makes the server keep as much memory as possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hoard {
    /// HTTP/2: the client announces login forms with long cookies, and never sends their bodies.
    Questions,
    /// HTTP/2: the client fills the header table.
    Table,
    /// HTTP/2: responses wait for a window that stays closed.
    Streams,
    /// HTTP/1.1: the client announces a form with a long head, and never sends its body.
    Head,
    /// HTTP/1.1: a login with a wrong password. Its form has a composed message, which the server
    /// would keep until after the login.
    Login,
}

impl Hoard {
    const ALL: [Hoard; 5] =
        [Hoard::Questions, Hoard::Table, Hoard::Streams, Hoard::Head, Hoard::Login];

    /// The bytes that a hoarder of this kind sends.
    fn output(self) -> Vec<u8> {
        let form = "application/x-www-form-urlencoded";
        match self {
            Hoard::Head => format!(
                "POST /mail/login HTTP/1.1\r\nHost: mail.barepost.test\r\nContent-Type: {form}\r\nCookie: a={}\r\nContent-Length: 10\r\n\r\n",
                "c".repeat(7_000)
            )
            .into_bytes(),
            Hoard::Login => {
                let kept = format!("text%3D{}", "m".repeat(30_000));
                let body = format!("name=ada&password=wrong&kept={kept}");
                let length = body.len();
                format!("POST /mail/login HTTP/1.1\r\nHost: mail.barepost.test\r\nContent-Type: {form}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
            }
            Hoard::Questions => http2_output(&[], (0..8).map(|nth| announced(2 * nth + 1, 7_500))),
            Hoard::Table => http2_output(&[], (0..2).map(|nth| kept(2 * nth + 1, 1_900))),
            Hoard::Streams => http2_output(&[0, 4, 0, 0, 0, 0], (0..90).map(|nth| request(2 * nth + 1))),
        }
    }

    fn client_config(self, trust: &Trust) -> Arc<ClientConfig> {
        let protocol = if matches!(self, Hoard::Head | Hoard::Login) { "http/1.1" } else { "h2" };
        Arc::new(client(trust, &[protocol]))
    }
}

fn frame(kind: FrameType, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&FrameHead { length: payload.len() as u32, kind, flags, stream }.bytes()[..], payload].concat()
}

/// The preface, the SETTINGS frame with this payload, and the requests.
fn http2_output(settings: &[u8], requests: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let begin = [PREFACE.as_slice(), &frame(FrameType::Settings, 0, 0, settings)].concat();
    [begin].into_iter().chain(requests).flatten().collect()
}

/// Encodes a length as an integer of HPACK with a 7-bit prefix (RFC 7541 section 5.1).
fn number(length: usize) -> Vec<u8> {
    match length {
        0..127 => vec![length as u8],
        _ => vec![127, (length - 127) as u8 | 0x80, ((length - 127) >> 7) as u8],
    }
}

/// A header field as an HPACK literal. `name`: the encoded representation and name.
fn field(name: &[u8], value: &[u8]) -> Vec<u8> {
    [name, &number(value.len()), value].concat()
}

fn request(stream: u32) -> Vec<u8> {
    let block = [&[0x82, 0x87, 0x84][..], &field(&[0x01], b"web.test")].concat();
    frame(FrameType::Headers, flags::END_HEADERS | flags::END_STREAM, stream, &block)
}

/// A request with a field of this many bytes that the server puts into its header table.
fn kept(stream: u32, bytes: usize) -> Vec<u8> {
    let block = [
        &[0x82, 0x87, 0x84][..],
        &field(&[0x01], b"web.test"),
        &field(&[0x40, 1, b'a'], &vec![b'v'; bytes]),
    ];
    frame(FrameType::Headers, flags::END_HEADERS | flags::END_STREAM, stream, &block.concat())
}

/// The head of a login request with a long cookie. The body never follows.
fn announced(stream: u32, cookie_bytes: usize) -> Vec<u8> {
    let block = [
        vec![0x83, 0x87],
        field(&[0x04], b"/mail/login"),
        field(&[0x01], b"mail.barepost.test"),
        field(&[0x0f, 28 - 15], b"10"),
        field(&[0x0f, 32 - 15], &vec![b'c'; cookie_bytes]),
    ];
    frame(FrameType::Headers, flags::END_HEADERS, stream, &block.concat())
}

fn sizes() -> Sizes {
    Sizes { connections: CONNECTIONS, ..usual_sizes() }
}

/// Sends `text`, and steps until the server has taken it or closes.
fn say(room: &mut Room, tls_stream: &mut TlsStream, text: &[u8]) {
    use std::io::Write;
    for part in text.chunks(16_000) {
        tls_stream.tls.writer().write_all(part).expect("I/O in memory cannot fail");
        room.until("all data is sent", |room| {
            room.exchange(tls_stream);
            tls_stream.is_sent() || room.has_hung_up(&mut tls_stream.talk)
        });
    }
}

/// Opens many connections of one kind of hoarder, from two addresses. Checks that a browser at
/// another address is served all the time.
fn check_hoarders(hoard: Hoard, seed: u64) {
    let (mut room, trust) = Room::with_tls(seed, site(1000), sizes());
    for _ in 0..3 {
        let host = room.add_host();
        room.hosts[host].buffer_bytes = 16 << 10;
    }
    let (settings, text) = (hoard.client_config(&trust), hoard.output());
    let most = sizes().kept_bytes_max() * usize::from(CORES);
    let (least, mut kept_most) = (most / 32, 0);
    let mut hoarders = Vec::new();
    for nth in 0..HOARDERS {
        let mut tls_stream = room.connect_tls_from(1 + nth % 2, 443, &settings);
        room.complete_handshake(&mut tls_stream);
        say(&mut room, &mut tls_stream, &text);
        hoarders.push(tls_stream);
        let in_use = room.engines.in_use();
        assert!(
            in_use.memory <= most,
            "{hoard:?}: {} bytes are charged, and {most} may be",
            in_use.memory
        );
        kept_most = kept_most.max(in_use.memory);
    }
    assert!(kept_most > least, "{hoard:?} borrows from the pool: {kept_most} bytes");
    let mut browser = Browser::new(&trust);
    browser.connection = Some(room.connect_tls_from(3, 443, &browser.settings));
    assert_eq!(browser.get(&mut room, "/index.html").status, 200, "beside {hoard:?}");
    assert_eq!(browser.get(&mut room, "/mail/login").status, 200, "beside {hoard:?}");
    browser.log_in(&mut room, "grace", "lovelace");
    least_shares_are_enough_for_pages(&mut room, &trust, 1);
    let mut neighbour = Browser::new(&trust);
    neighbour.connection = Some(room.connect_tls_from(1, 443, &neighbour.settings));
    neighbour.log_in(&mut room, "grace", "lovelace");
    neighbour.hang_up(&mut room);
    for hoarder in hoarders {
        room.abort(&hoarder.talk);
    }
    browser.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

/// The fields that Firefox sends with a request for the login page.
const FIREFOX: [(&str, &str); 8] = [
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("accept-language", "en-US,en;q=0.5"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("cookie", "session=0123456789abcdef0123456789abcdef0123456789abcdef"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-site", "same-origin"),
];

/// A request with these fields, over HTTP/1.1 and over HTTP/2. It has a body if they announce one.
fn over_both(method: &str, path: &str, fields: &[(&str, &str)]) -> [(&'static str, Vec<u8>); 2] {
    let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let one = format!("{method} {path} HTTP/1.1\r\nHost: mail.barepost.test\r\n{lines}\r\n");
    let mut block = vec![if method == "GET" { 0x82 } else { 0x83 }, 0x87];
    block.extend(field(&[0x04], path.as_bytes()));
    block.extend(field(&[0x01], b"mail.barepost.test"));
    for (name, value) in fields {
        block.extend([field(&[0x00], name.as_bytes()), field(&[], value.as_bytes())].concat());
    }
    let has_body = fields.iter().any(|(name, _)| *name == "content-length");
    let ends = if has_body { 0 } else { flags::END_STREAM };
    let headers = frame(FrameType::Headers, flags::END_HEADERS | ends, 1, &block);
    [("http/1.1", one.into_bytes()), ("h2", http2_output(&[], [headers].into_iter()))]
}

/// Checks that a client at this host gets the login page over HTTP/1.1 and HTTP/2. Its address may
/// have used up its share of the pool.
fn least_shares_are_enough_for_pages(room: &mut Room, trust: &Trust, host: usize) {
    for (protocol, text) in over_both("GET", "/mail/login", &FIREFOX) {
        let settings = Arc::new(client(trust, &[protocol]));
        let mut tls_stream = room.connect_tls_from(host, 443, &settings);
        room.complete_handshake(&mut tls_stream);
        say(room, &mut tls_stream, &text);
        room.until("the page has arrived", |room| {
            room.exchange(&mut tls_stream);
            let has_ended = room.has_hung_up(&mut tls_stream.talk);
            assert!(!has_ended, "{protocol}: {}", tls_stream.heard.escape_ascii());
            tls_stream.heard.windows(7).any(|bytes| bytes == b"</form>")
        });
        room.abort(&tls_stream.talk);
    }
}

#[test]
fn hoarders_get_only_their_share_of_memory() {
    for (seed, hoard) in (1..).zip(Hoard::ALL) {
        check_hoarders(hoard, seed);
    }
}

#[test]
fn uploads_refused_for_memory_get_their_late_admission() {
    let (mut room, trust) = Room::with_tls(13, site(1000), sizes());
    let host = room.add_host();
    let mut connections = Vec::new();
    let ask = |room: &mut Room, protocol: &str, text: &[u8]| {
        let settings = Arc::new(client(&trust, &[protocol]));
        let mut tls_stream = room.connect_tls_from(host, 443, &settings);
        room.complete_handshake(&mut tls_stream);
        say(room, &mut tls_stream, text);
        tls_stream
    };
    // Smaller and smaller forms use up the share of the address to the last bytes.
    for length in [7000; 12].into_iter().chain((0..40).map(|nth| 3000 >> (nth / 4))) {
        let cookie = "c".repeat(500 + length);
        let fields = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("content-length", "10"),
            ("cookie", &cookie),
        ];
        let [(protocol, text), _] = over_both("POST", "/mail/login", &fields);
        connections.push(ask(&mut room, protocol, &text));
    }
    // With some of these lengths the memory suffices for the request, but not for its wait for
    // admission.
    for length in (300..700).step_by(10) {
        let agent = "a".repeat(length);
        let fields = [
            ("content-type", "multipart/form-data; boundary=b"),
            ("content-length", "100000"),
            ("user-agent", &agent),
        ];
        for (protocol, text) in over_both("POST", "/mail/compose", &fields) {
            let tls_stream = ask(&mut room, protocol, &text);
            room.pass(Micros::from_millis(100));
            room.abort(&tls_stream.talk);
            room.pass(Micros::from_millis(10));
        }
    }
    for connection in connections {
        room.abort(&connection.talk);
    }
    room.until_nothing_is_in_use();
}

#[test]
fn replies_known_at_once_stay_within_the_limit_of_bodies() {
    let (mut room, trust) = Room::with_tls(14, site(1000), sizes());
    let path = webmail::Asset::Script.to_string();
    let most = (sizes().buffer_bytes / 2).max(512 << 10);
    let get =
        [vec![0x82, 0x87], field(&[0x04], path.as_bytes()), field(&[0x01], b"mail.barepost.test")]
            .concat();
    let streams = (0..90).map(|nth| {
        frame(FrameType::Headers, flags::END_HEADERS | flags::END_STREAM, 2 * nth + 1, &get)
    });
    let form =
        format!("GET {path} HTTP/1.1\r\nHost: mail.barepost.test\r\nContent-Length: 60000\r\n\r\n");
    // Over HTTP/2 the windows stay closed. Over HTTP/1.1 each reply waits for a body.
    let closed = http2_output(&[0, 4, 0, 0, 0, 0], streams);
    for (protocol, text, connections) in [("h2", closed, 1), ("http/1.1", form.into_bytes(), 60)] {
        let settings = Arc::new(client(&trust, &[protocol]));
        let mut held = Vec::new();
        let mut held_most = 0;
        for _ in 0..connections {
            let mut tls_stream = room.connect_tls(443, &settings);
            room.complete_handshake(&mut tls_stream);
            say(&mut room, &mut tls_stream, &text);
            room.pass(Micros::from_millis(10));
            held.push(tls_stream);
            held_most = held_most.max(room.engines.in_use().bodies);
        }
        // Each core has its limit. Refusals are short, and not limited.
        let limit = (most + (16 << 10)) * usize::from(CORES).min(connections);
        assert!(held_most <= limit, "{protocol}: {held_most} bytes are held, at most {limit}");
        assert!(held_most > most / 2, "{protocol}: only {held_most} bytes are held");
        for tls_stream in held {
            room.abort(&tls_stream.talk);
        }
        room.until_nothing_is_in_use();
    }
}

#[test]
fn memory_promises_of_cores_fit_into_their_memory() {
    let mut broken = Vec::new();
    for (mib, cores) in
        [(0, 1), (128, 1), (256, 1), (512, 1), (0, 2), (256, 2), (512, 2), (0, 4), (512, 4), (0, 8)]
    {
        let memory_bytes = if mib == 0 { Sizes::memory_bytes_min(cores) } else { mib << 20 };
        let sizes = Sizes::for_memory(memory_bytes, cores).expect("the memory is enough");
        let configuration =
            Configuration::parse(CONFIGURATION).expect("the configuration is valid");
        let mut machine = SimulatedMachine::new(1, MemoryDisk::blank(DISK_BYTES));
        let mut engines = None;
        let made = measure(|| {
            engines = Some(Engines::new(
                configuration,
                Site::default(),
                MachineKeys::default(),
                sizes,
                cores,
                &mut machine,
            ));
        });
        let promised = sizes.promised_bytes() * u64::from(cores);
        let (mib, taken) = (memory_bytes >> 20, made.bytes_current.unsigned_abs());
        let line = format!(
            "{mib} MiB, {cores} cores: {} KiB taken, {} KiB promised, {} connections",
            taken >> 10,
            promised >> 10,
            sizes.connections
        );
        println!("{line}");
        if taken + promised > memory_bytes - memory_bytes / 32 {
            broken.push(line);
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_largest_connections_are_closed_first_on_low_memory() {
    let (mut room, trust) = Room::with_tls(9, site(1000), usual_sizes());
    let mut idle = Browser::new(&trust);
    assert_eq!(idle.get(&mut room, "/index.html").status, 200);
    let mut hoarder = room.connect_tls(443, &Hoard::Questions.client_config(&trust));
    room.complete_handshake(&mut hoarder);
    say(&mut room, &mut hoarder, &Hoard::Questions.output());
    room.until("much is kept", |room| room.engines.in_use().memory > 50_000);
    room.machine.low_on_memory = true;
    room.until("the hoarder is gone", |room| room.has_hung_up(&mut hoarder.talk));
    let mut newcomer = room.connect(25);
    assert!(room.smtp_reply(&mut newcomer).starts_with("421 "), "no client is accepted");
    room.machine.low_on_memory = false;
    let mut newcomer = room.connect(25);
    assert!(room.smtp_reply(&mut newcomer).starts_with("220 "));
    assert!(idle.connection.is_some());
    assert_eq!(idle.get(&mut room, "/index.html").status, 200);
}

#[test]
fn persistent_low_memory_closes_all_and_the_machine_continues() {
    let mut room = Room::with_sizes(10, MemoryDisk::blank(DISK_BYTES), usual_sizes());
    // Most of the cores have connections, and all cores sleep.
    let ports = [25, 110, 80].into_iter().cycle().take(4 * usize::from(CORES));
    let mut talks: Vec<_> = ports.map(|port| room.connect(port)).collect();
    room.pass(Micros::from_secs(1));
    assert_eq!(room.engines.in_use().sessions, talks.len());
    room.machine.low_on_memory = true;
    for talk in &mut talks {
        room.until("the server has closed the connection", |room| room.has_hung_up(talk));
    }
    room.pass(Micros::from_secs(5));
    room.machine.low_on_memory = false;
    assert_eq!(
        room.deliver("ada@barepost.test", b"Subject: hello\r\n\r\nhello\r\n").get(..3),
        Some("250")
    );
}

#[test]
fn a_password_of_any_length_uses_little_memory() {
    // On the smallest machine with four cores, a form of this size is the share of an address.
    let memory_bytes = Sizes::memory_bytes_min(CORES) * u64::from(CORES.max(4)) / 4;
    let sizes = Sizes::for_memory(memory_bytes, CORES).expect("the memory is enough");
    let (mut room, trust) = Room::with_tls(11, Site::default(), sizes);
    let mut browser = Browser::new(&trust);
    assert_eq!(browser.get(&mut room, "/mail/login").status, 200);
    let (name, password) = ("n".repeat(10_000), "p".repeat(150_000));
    browser.begin(
        &mut room,
        "/mail/login",
        &[("name", &name), ("password", &password), ("next", "/mail/")],
    );
    let mut most = 0;
    let mut tls_stream = browser.connection.take().expect("the browser is connected");
    room.until("the form is answered", |room| {
        room.exchange(&mut tls_stream);
        let in_use = room.engines.in_use();
        if in_use.logins > 0 {
            assert!(in_use.memory + in_use.bodies < 8 * 1024, "{in_use:?}");
            most = most.max(in_use.memory);
        }
        !tls_stream.heard.is_empty()
    });
    assert!(most > 1024, "the form is charged to the client: {most} bytes");
    browser.connection = Some(tls_stream);
    assert_eq!(browser.finish(&mut room).status, 403);
    browser.hang_up(&mut room);
    room.until_nothing_is_in_use();
}
