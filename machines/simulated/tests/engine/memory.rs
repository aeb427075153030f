//! What clients make the machine keep: each kind of hoarder gets its share and no more, and others
//! are served meanwhile; what a core promises fits into its memory; connections end when the
//! machine runs low on it.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::sync::Arc;

use allocation_counter::measure;
use http::Site;
use http2::{FrameHead, Kind, PREFACE, flags};
use machine::Micros;
use rustls::ClientConfig;
use server::configuration::Configuration;
use server::{Papers, Sizes};
use simulated::{Engines, MemoryDisk, SimulatedMachine};

use super::room::pages::site;
use super::room::shielded::{Shielded, Trust, client};
use super::room::{CONFIGURATION, DISK_BYTES, Room, usual_sizes};
use super::webmail::Browser;
use crate::CORES;

/// Connections of each core in these tests.
const CONNECTIONS: usize = 256;
/// Connections that hoard, from two addresses.
const HOARDERS: usize = 160;
/// How a client makes the server keep what it can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hoard {
    /// HTTP/2: forms for the login are announced, with long cookies, and do not come.
    Questions,
    /// HTTP/2: the table of fields is filled.
    Table,
    /// HTTP/2: answers wait for a window that does not open.
    Streams,
    /// HTTP/1.1: a form is announced under a long head, and does not come.
    Head,
    /// HTTP/1.1: a wrong password, with a message that waits for the login.
    Login,
}

impl Hoard {
    const ALL: [Hoard; 5] =
        [Hoard::Questions, Hoard::Table, Hoard::Streams, Hoard::Head, Hoard::Login];

    fn says(self) -> Vec<u8> {
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
            Hoard::Questions => two(&[], (0..8).map(|nth| announced(2 * nth + 1, 7_500))),
            Hoard::Table => two(&[], (0..2).map(|nth| kept(2 * nth + 1, 1_900))),
            Hoard::Streams => two(&[0, 4, 0, 0, 0, 0], (0..90).map(|nth| asked(2 * nth + 1))),
        }
    }

    fn speaks(self, trust: &Trust) -> Arc<ClientConfig> {
        let protocol = if matches!(self, Hoard::Head | Hoard::Login) { "http/1.1" } else { "h2" };
        Arc::new(client(trust, &[protocol]))
    }
}

fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&FrameHead { length: payload.len() as u32, kind, flags, stream }.bytes()[..], payload].concat()
}

fn two(settings: &[u8], requests: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let begin = [PREFACE.as_slice(), &frame(Kind::Settings, 0, 0, settings)].concat();
    [begin].into_iter().chain(requests).flatten().collect()
}

/// A length in as many bytes as it takes (RFC 7541 section 5.1).
fn number(length: usize) -> Vec<u8> {
    match length {
        0..127 => vec![length as u8],
        _ => vec![127, (length - 127) as u8 | 0x80, ((length - 127) >> 7) as u8],
    }
}

fn said(name: &[u8], value: &[u8]) -> Vec<u8> {
    [name, &number(value.len()), value].concat()
}

fn asked(stream: u32) -> Vec<u8> {
    let block = [&[0x82, 0x87, 0x84][..], &said(&[0x01], b"web.test")].concat();
    frame(Kind::Headers, flags::END_HEADERS | flags::END_STREAM, stream, &block)
}

/// The same with a field for the table.
fn kept(stream: u32, bytes: usize) -> Vec<u8> {
    let block = [
        &[0x82, 0x87, 0x84][..],
        &said(&[0x01], b"web.test"),
        &said(&[0x40, 1, b'a'], &vec![b'v'; bytes]),
    ];
    frame(Kind::Headers, flags::END_HEADERS | flags::END_STREAM, stream, &block.concat())
}

fn announced(stream: u32, cookie_bytes: usize) -> Vec<u8> {
    let block = [
        vec![0x83, 0x87],
        said(&[0x04], b"/mail/login"),
        said(&[0x01], b"mail.barepost.test"),
        said(&[0x0f, 28 - 15], b"10"),
        said(&[0x0f, 32 - 15], &vec![b'c'; cookie_bytes]),
    ];
    frame(Kind::Headers, flags::END_HEADERS, stream, &block.concat())
}

fn sizes() -> Sizes {
    Sizes { connections: CONNECTIONS, ..usual_sizes() }
}

/// Says this, as far as the server listens.
fn say(room: &mut Room, shielded: &mut Shielded, text: &[u8]) {
    use std::io::Write;
    for part in text.chunks(16_000) {
        shielded.tls.writer().write_all(part).expect("it is memory");
        room.until("all is said", |room| {
            room.exchange(shielded);
            shielded.is_sent() || room.has_hung_up(&mut shielded.talk)
        });
    }
}

/// Many connections of one kind, from two addresses; a browser elsewhere is served all the while.
fn hoarders_come(hoard: Hoard, seed: u64) {
    let (mut room, trust) = Room::shielded(seed, site(1000), sizes());
    for _ in 0..3 {
        let host = room.add_host();
        room.hosts[host].buffer_bytes = 16 << 10;
    }
    let (settings, text) = (hoard.speaks(&trust), hoard.says());
    let most = sizes().kept_bytes_max() * usize::from(CORES);
    let (least, mut kept_most) = (most / 32, 0);
    let mut hoarders = Vec::new();
    for nth in 0..HOARDERS {
        let mut shielded = room.connect_shielded_from(1 + nth % 2, 443, &settings);
        room.shake_hands(&mut shielded);
        say(&mut room, &mut shielded, &text);
        hoarders.push(shielded);
        let in_use = room.engines.in_use();
        assert!(
            in_use.memory <= most,
            "{hoard:?}: {} bytes are charged, and {most} may be",
            in_use.memory
        );
        kept_most = kept_most.max(in_use.memory);
    }
    assert!(kept_most > least, "{hoard:?} gets something above least shares: {kept_most} bytes");
    let mut browser = Browser::new(&trust);
    browser.connection = Some(room.connect_shielded_from(3, 443, &browser.settings));
    assert_eq!(browser.get(&mut room, "/index.html").status, 200, "beside {hoard:?}");
    assert_eq!(browser.get(&mut room, "/mail/login").status, 200, "beside {hoard:?}");
    browser.log_in(&mut room, "grace", "lovelace");
    for hoarder in hoarders {
        room.abort(&hoarder.talk);
    }
    browser.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

#[test]
fn hoarders_get_their_share_and_others_are_served() {
    for (seed, hoard) in (1..).zip(Hoard::ALL) {
        hoarders_come(hoard, seed);
    }
}

#[test]
fn what_cores_promise_fits_into_their_memory() {
    let mut broken = Vec::new();
    for (mib, cores) in
        [(0, 1), (128, 1), (256, 1), (512, 1), (0, 2), (256, 2), (512, 2), (0, 4), (512, 4), (0, 8)]
    {
        let memory_bytes = if mib == 0 { Sizes::memory_bytes_min(cores) } else { mib << 20 };
        let sizes = Sizes::for_memory(memory_bytes, cores).expect("it is enough");
        let configuration = Configuration::parse(CONFIGURATION).expect("it is one");
        let mut machine = SimulatedMachine::new(1, MemoryDisk::blank(DISK_BYTES));
        let mut engines = None;
        let made = measure(|| {
            engines = Some(Engines::new(
                configuration,
                Site::default(),
                Papers::default(),
                sizes,
                cores,
                &mut machine,
            ));
        });
        let promised = sizes.promised_bytes() * u64::from(cores);
        let (mib, taken) = (memory_bytes >> 20, made.bytes_current.unsigned_abs());
        let told = format!(
            "{mib} MiB, {cores} cores: {} KiB taken, {} KiB promised, {} connections",
            taken >> 10,
            promised >> 10,
            sizes.connections
        );
        println!("{told}");
        if taken + promised > memory_bytes - memory_bytes / 32 {
            broken.push(told);
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn connections_that_keep_most_end_first_when_memory_is_low() {
    let (mut room, trust) = Room::shielded(9, site(1000), usual_sizes());
    let mut idle = Browser::new(&trust);
    assert_eq!(idle.get(&mut room, "/index.html").status, 200);
    let mut hoarder = room.connect_shielded(443, &Hoard::Questions.speaks(&trust));
    room.shake_hands(&mut hoarder);
    say(&mut room, &mut hoarder, &Hoard::Questions.says());
    room.until("much is kept", |room| room.engines.in_use().memory > 50_000);
    room.machine.low_on_memory = true;
    room.until("the hoarder is gone", |room| room.has_hung_up(&mut hoarder.talk));
    let mut newcomer = room.connect(25);
    assert!(room.smtp_reply(&mut newcomer).starts_with("421 "), "nobody is let in");
    room.machine.low_on_memory = false;
    let mut newcomer = room.connect(25);
    assert!(room.smtp_reply(&mut newcomer).starts_with("220 "));
    assert!(idle.connection.is_some());
    assert_eq!(idle.get(&mut room, "/index.html").status, 200);
}

#[test]
fn a_machine_whose_reserve_stays_touched_ends_all_and_goes_on() {
    let mut room = Room::with_sizes(10, MemoryDisk::blank(DISK_BYTES), usual_sizes());
    let mut talks: Vec<_> = [25, 110, 80].into_iter().map(|port| room.connect(port)).collect();
    for talk in &mut talks[..2] {
        room.line(talk);
    }
    room.machine.low_on_memory = true;
    for talk in &mut talks {
        room.until("it is ended", |room| room.has_hung_up(talk));
    }
    room.pass(Micros::from_secs(5));
    room.machine.low_on_memory = false;
    assert_eq!(
        room.deliver("ada@barepost.test", b"Subject: hello\r\n\r\nhello\r\n").get(..3),
        Some("250")
    );
}

#[test]
fn little_is_kept_of_a_password_of_any_length() {
    let (mut room, trust) = Room::shielded(11, Site::default(), usual_sizes());
    let mut browser = Browser::new(&trust);
    assert_eq!(browser.get(&mut room, "/mail/login").status, 200);
    let (name, password) = ("n".repeat(10_000), "p".repeat(150_000));
    browser.begin(
        &mut room,
        "/mail/login",
        &[("name", &name), ("password", &password), ("next", "/mail/")],
    );
    let mut most = 0;
    let mut shielded = browser.connection.take().expect("it is open");
    room.until("it is answered", |room| {
        room.exchange(&mut shielded);
        let in_use = room.engines.in_use();
        if in_use.logins > 0 {
            assert!(in_use.memory + in_use.bodies < 8 * 1024, "{in_use:?}");
            most = most.max(in_use.memory);
        }
        !shielded.heard.is_empty()
    });
    assert!(most > 1024, "it was charged: {most} bytes");
    browser.connection = Some(shielded);
    assert_eq!(browser.finish(&mut room).status, 403);
    browser.hang_up(&mut room);
    room.until_nothing_is_in_use();
}
