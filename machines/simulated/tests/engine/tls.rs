//! Tests of TLS in the whole engine, with clients that have an independent TCP and TLS.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::sync::Arc;

use machine::Micros;
use rustls::ClientConfig;
use server::{InUse, MachineKeys};
use simulated::MemoryDisk;
use tls::Authorities;

use super::room::pages::{large, site};
use super::room::tls_stream::{BOTH, TlsStream, Trust, client, client_of};
use super::room::{CONFIGURATION, DISK_BYTES, Room, usual_sizes};

const LARGE_BYTES: usize = 700_000;

fn serving(seed: u64) -> (Room, Trust) {
    Room::with_tls(seed, site(LARGE_BYTES), usual_sizes())
}

fn browser(trust: &Trust) -> Arc<ClientConfig> {
    Arc::new(client(trust, &["http/1.1"]))
}

/// Requests a page, and returns its body.
fn page(room: &mut Room, tls_stream: &mut TlsStream, path: &str) -> Vec<u8> {
    room.send_tls(tls_stream, format!("GET {path} HTTP/1.1\r\nHost: web.test\r\n\r\n").as_bytes());
    body(room, tls_stream)
}

fn body(room: &mut Room, tls_stream: &mut TlsStream) -> Vec<u8> {
    assert_eq!(room.line_tls(tls_stream), "HTTP/1.1 200 OK");
    let mut length = 0;
    loop {
        let line = room.line_tls(tls_stream);
        match line.split_once(": ") {
            None => break,
            Some(("Content-Length", value)) => length = value.parse().expect("a length"),
            Some(_) => {}
        }
    }
    room.until_tls(tls_stream, "the body arrives", |tls_stream| tls_stream.heard.len() >= length);
    tls_stream.heard.drain(..length).collect()
}

#[test]
fn pages_arrive_over_tls_and_both_sides_close() {
    for (seed, version) in (0..).zip(BOTH) {
        let (mut room, trust) = serving(seed);
        let client = Arc::new(client_of(&trust, &["h3", "http/1.1"], &[version]));
        let mut tls_stream = room.connect_tls(443, &client);
        for _ in 0..20 {
            assert_eq!(page(&mut room, &mut tls_stream, "/"), b"Index");
        }
        assert_eq!(tls_stream.tls.alpn_protocol(), Some(b"http/1.1".as_slice()));
        assert!(
            page(&mut room, &mut tls_stream, "/large") == large(LARGE_BYTES),
            "the page arrives unchanged"
        );
        assert_eq!(room.engines.in_use().tls_connections, 1);
        assert_eq!(room.engines.in_use().handshakes, 0);
        tls_stream.tls.send_close_notify();
        room.until_tls(&mut tls_stream, "the server closes too", |tls_stream| tls_stream.is_closed);
        room.part(tls_stream.talk);
    }
}

#[test]
fn a_page_and_the_head_before_it_share_a_record() {
    let (mut room, trust) = serving(31);
    let mut tls_stream = room.connect_tls(443, &browser(&trust));
    assert_eq!(page(&mut room, &mut tls_stream, "/"), b"Index");
    room.pass(Micros::from_millis(100));
    room.exchange(&mut tls_stream);
    room.send_tls(&mut tls_stream, b"GET / HTTP/1.1\r\nHost: web.test\r\n\r\n");
    room.pass(Micros::from_millis(100));
    room.listen(&mut tls_stream.talk);
    let heard = &tls_stream.talk.heard;
    let (mut records, mut at) = (0, 0);
    while let Some(&[high, low]) = heard.get(at + 3..at + 5) {
        (records, at) = (records + 1, at + 5 + usize::from(u16::from_be_bytes([high, low])));
    }
    assert_eq!((records, at), (1, heard.len()));
    assert_eq!(body(&mut room, &mut tls_stream), b"Index");
    room.finish_tls(tls_stream);
}

#[test]
fn http_redirects_to_https_on_our_own_name() {
    let trust = Trust::new("mail.barepost.test");
    let configuration = format!("{CONFIGURATION}[web]\nhttps_only = true\n");
    let certificates = vec![trust.certificate.clone()];
    let disk = MemoryDisk::blank(DISK_BYTES);
    let mut room =
        Room::certified(15, disk, usual_sizes(), &configuration, site(LARGE_BYTES), certificates);
    room.until("the engine serves", |room| room.console_says("serving"));
    for (host, name) in
        [("MAIL.barepost.test:20080", "MAIL.barepost.test"), ("evil.test", "mail.barepost.test")]
    {
        let mut talk = room.connect(80);
        room.send(&talk, format!("GET /large?x HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        assert_eq!(room.line(&mut talk), "HTTP/1.1 308 Permanent Redirect");
        assert!(room.line(&mut talk).starts_with("Date: "));
        assert_eq!(room.line(&mut talk), format!("Location: https://{name}/large?x"));
        room.part(talk);
    }
    let mut tls_stream = room.connect_tls(443, &browser(&trust));
    room.send_tls(&mut tls_stream, b"GET / HTTP/1.1\r\nHost: mail.barepost.test\r\n\r\n");
    assert_eq!(room.line_tls(&mut tls_stream), "HTTP/1.1 200 OK");
    assert!(room.line_tls(&mut tls_stream).starts_with("Date: "));
    assert_eq!(room.line_tls(&mut tls_stream), "Strict-Transport-Security: max-age=31536000");
    room.finish_tls(tls_stream);
}

#[test]
fn hsts_is_sent_only_with_a_publicly_trusted_certificate() {
    for is_believed in [true, false] {
        let trust = Trust::new("mail.barepost.test");
        let believed = is_believed.then_some(trust.pem.as_slice());
        let browser_authorities = Authorities::with(believed).expect("the certificates are valid");
        let papers = MachineKeys {
            certificates: vec![trust.certificate.clone()],
            browser_authorities,
            ..MachineKeys::default()
        };
        let disk = MemoryDisk::blank(DISK_BYTES);
        let mut room =
            Room::with_papers(16, disk, usual_sizes(), CONFIGURATION, site(LARGE_BYTES), papers);
        room.until("the engine serves", |room| room.console_says("serving"));
        let is_hsts = |line: String| line.starts_with("Strict-Transport-Security: ");
        let mut tls_stream = room.connect_tls(443, &browser(&trust));
        room.send_tls(&mut tls_stream, b"GET / HTTP/1.1\r\nHost: mail.barepost.test\r\n\r\n");
        assert_eq!(room.line_tls(&mut tls_stream), "HTTP/1.1 200 OK");
        assert!(room.line_tls(&mut tls_stream).starts_with("Date: "));
        assert_eq!(is_hsts(room.line_tls(&mut tls_stream)), is_believed);
        room.finish_tls(tls_stream);
        let mut talk = room.connect(80);
        room.send(&talk, b"GET / HTTP/1.1\r\nHost: mail.barepost.test\r\n\r\n");
        assert_eq!(room.line(&mut talk), "HTTP/1.1 200 OK", "pages are still served in clear text");
        assert!(room.line(&mut talk).starts_with("Date: "));
        assert!(
            !is_hsts(room.line(&mut talk)),
            "HSTS is sent over TLS only (RFC 6797 section 7.2)"
        );
        room.part(talk);
    }
}

#[test]
fn pop3_over_tls_accepts_passwords_from_any_address() {
    let (mut room, trust) = serving(3);
    let body = "A line of mail, and one that is longer than the one before it.\r\n".repeat(2000);
    assert!(room.deliver("ada@barepost.test", body.as_bytes()).starts_with("250 "));
    let mut tls_stream = room.connect_tls(995, &Arc::new(client(&trust, &[])));
    assert!(room.line_tls(&mut tls_stream).starts_with("+OK"));
    for command in ["USER ada@barepost.test", "PASS lovelace", "RETR 1"] {
        room.send_tls(&mut tls_stream, format!("{command}\r\n").as_bytes());
        let response = room.line_tls(&mut tls_stream);
        assert!(response.starts_with("+OK"), "{command}: {response}");
    }
    room.until_tls(&mut tls_stream, "the message arrives", |tls_stream| {
        tls_stream.heard.ends_with(b"\r\n.\r\n")
    });
    assert!(
        tls_stream.heard.windows(body.len()).any(|part| part == body.as_bytes()),
        "the message arrives unchanged"
    );
    tls_stream.heard.clear();
    room.send_tls(&mut tls_stream, b"QUIT\r\n");
    assert!(room.line_tls(&mut tls_stream).starts_with("+OK"));
    room.until_tls(&mut tls_stream, "the server closes", |tls_stream| tls_stream.is_closed);
    room.part(tls_stream.talk);
}

#[test]
fn record_boundaries_do_not_affect_commands() {
    let (mut room, trust) = serving(4);
    let mut tls_stream = room.connect_tls(995, &Arc::new(client(&trust, &["pop3"])));
    assert!(room.line_tls(&mut tls_stream).starts_with("+OK"));
    for byte in b"USER ada@barepost.test\r\n" {
        room.send_tls(&mut tls_stream, &[*byte]);
        room.pass(Micros::from_millis(1));
    }
    assert!(room.line_tls(&mut tls_stream).starts_with("+OK"));
    room.send_tls(&mut tls_stream, b"PASS lovelace\r\nNOOP\r\nNOOP\r\nSTAT\r\nQU");
    for _ in 0..3 {
        assert!(room.line_tls(&mut tls_stream).starts_with("+OK"));
    }
    assert_eq!(room.line_tls(&mut tls_stream), "+OK 0 0");
    room.send_tls(&mut tls_stream, b"IT\r\n");
    assert!(room.line_tls(&mut tls_stream).starts_with("+OK"));
    room.until_tls(&mut tls_stream, "the server closes", |tls_stream| tls_stream.is_closed);
    room.part(tls_stream.talk);
}

#[test]
fn a_request_in_many_segments_is_answered() {
    let (mut room, trust) = serving(5);
    let mut tls_stream = room.connect_tls(443, &browser(&trust));
    let filler = format!("X-Filler: {}\r\n", "x".repeat(990)).repeat(7);
    let request = format!("GET / HTTP/1.1\r\nHost: web.test\r\n{filler}\r\n");
    let requests = request.repeat(30);
    room.complete_handshake(&mut tls_stream);
    room.send_tls(&mut tls_stream, requests.as_bytes());
    for _ in 0..30 {
        assert_eq!(body(&mut room, &mut tls_stream), b"Index");
    }
    room.finish_tls(tls_stream);
}

#[test]
fn a_returning_client_resumes_with_its_ticket() {
    let (mut room, trust) = serving(6);
    let client = browser(&trust);
    for time in 0..3 {
        let mut tls_stream = room.connect_tls(443, &client);
        assert_eq!(page(&mut room, &mut tls_stream, "/"), b"Index");
        let kind = tls_stream.tls.handshake_kind().expect("the handshake is done");
        assert_eq!(kind == rustls::HandshakeKind::Resumed, time > 0, "{kind:?}");
        room.finish_tls(tls_stream);
    }
}

#[test]
fn failed_handshakes_leave_nothing_behind() {
    let (mut room, trust) = serving(7);
    let mut silent = room.connect(443);
    let mut stopped = Vec::new();
    let mut hello = Vec::new();
    let mut tls_stream = room.connect_tls(443, &browser(&trust));
    tls_stream.tls.write_tls(&mut hello).expect("I/O in memory cannot fail");
    // Each of these clients stops after this many bytes of its first flight.
    for length in [1, 5, 6, hello.len() - 1, hello.len()] {
        let talk = room.connect(443);
        room.send(&talk, &hello[..length]);
        stopped.push(talk);
    }
    let mut garbage = room.connect(443);
    room.send(&garbage, b"GET / HTTP/1.1\r\n\r\n");
    room.until("garbage is answered by an alert", |room| room.has_hung_up(&mut garbage));
    assert_eq!(garbage.heard[..3], [21, 3, 3]);
    room.pass(Micros::from_secs(2));
    assert_eq!(room.engines.in_use().handshakes, stopped.len());
    room.pass(Micros::from_secs(10));
    assert!(room.has_hung_up(&mut silent), "a silent client times out");
    for mut talk in stopped {
        assert!(room.has_hung_up(&mut talk), "a client that stops times out");
    }
    room.close(&garbage);
    room.abort(&tls_stream.talk);
    room.until("nothing is left", |room| room.engines.in_use() == InUse::default());
}

#[test]
fn a_tampered_record_ends_only_its_connection() {
    let (mut room, trust) = serving(8);
    let mut tls_stream = room.connect_tls(443, &browser(&trust));
    assert_eq!(page(&mut room, &mut tls_stream, "/"), b"Index");
    use std::io::Write;
    tls_stream
        .tls
        .writer()
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("I/O in memory cannot fail");
    let mut record = Vec::new();
    tls_stream.tls.write_tls(&mut record).expect("I/O in memory cannot fail");
    record[20] ^= 1;
    room.send(&tls_stream.talk, &record);
    room.until_tls(&mut tls_stream, "the client hears why", |tls_stream| {
        tls_stream.complaint.is_some()
    });
    let alert = rustls::Error::AlertReceived(rustls::AlertDescription::BadRecordMac);
    assert_eq!(tls_stream.complaint, Some(alert));
    assert!(tls_stream.heard.is_empty());
    room.part(tls_stream.talk);
    let mut other = room.connect_tls(443, &browser(&trust));
    assert_eq!(page(&mut room, &mut other, "/"), b"Index");
    room.finish_tls(other);
}

#[test]
fn excess_handshakes_are_refused_and_stalled_ones_evicted() {
    let sizes = usual_sizes();
    let most = (sizes.connections / 32).max(32);
    let (mut room, trust) = Room::with_tls(9, site(LARGE_BYTES), sizes);
    let mut established = room.connect_tls(443, &browser(&trust));
    assert_eq!(page(&mut room, &mut established, "/"), b"Index");
    let mut hello = Vec::new();
    let tls_stream = room.connect_tls(443, &browser(&trust));
    let mut flood = Vec::new();
    {
        let mut tls_stream = tls_stream;
        tls_stream.tls.write_tls(&mut hello).expect("I/O in memory cannot fail");
        flood.push(tls_stream.talk);
    }
    for _ in 0..most + 40 {
        let talk = room.connect(443);
        room.send(&talk, &hello[..hello.len() - 1]);
        room.step();
        flood.push(talk);
    }
    let cores = room.engines.in_use_on_each().len();
    let under_way =
        |room: &Room| room.engines.in_use_on_each().iter().map(|core| core.handshakes).max();
    room.pass(Micros::from_millis(500));
    assert!(under_way(&room) <= Some(most), "{:?} of {most}", under_way(&room));
    if cores == 1 {
        let away = flood.iter_mut().map(|talk| usize::from(room.has_hung_up(talk))).sum::<usize>();
        assert!(away >= 40, "{away} were turned away");
    }
    assert_eq!(
        page(&mut room, &mut established, "/"),
        b"Index",
        "an established connection is not affected"
    );
    // The check is long before the timeout of a handshake.
    room.pass(Micros::from_secs(4));
    if cores == 1 {
        assert!(under_way(&room) < Some(most * 7 / 8 + 1), "{:?}", under_way(&room));
    }
    let mut late = room.connect_tls(443, &browser(&trust));
    assert_eq!(page(&mut room, &mut late, "/"), b"Index");
    room.close_tls(late);
    room.close_tls(established);
    flood.iter().for_each(|talk| room.abort(talk));
    room.until("nothing is left", |room| room.engines.in_use() == InUse::default());
}

#[test]
fn handshakes_do_one_step_per_turn() {
    let (mut room, trust) = serving(10);
    let client = browser(&trust);
    let mut crowd: Vec<TlsStream> = (0..20).map(|_| room.connect_tls(443, &client)).collect();
    let under_way = |room: &Room| -> Vec<usize> {
        room.engines.in_use_on_each().iter().map(|core| core.handshakes).collect()
    };
    // All clients send their last flight at the same time.
    for tls_stream in &mut crowd {
        let mut hello = Vec::new();
        tls_stream.tls.write_tls(&mut hello).expect("I/O in memory cannot fail");
        room.send(&tls_stream.talk, &hello);
        room.until("the server has spoken", |room| {
            room.listen(&mut tls_stream.talk);
            !tls_stream.talk.heard.is_empty()
        });
    }
    let mut before = under_way(&room);
    assert_eq!(before.iter().sum::<usize>(), crowd.len());
    room.until("all clients are served", |room| {
        // At most one turn of each core is between two checks.
        let now = under_way(room);
        let most_done =
            before.iter().zip(&now).map(|(before, now)| before.saturating_sub(*now)).max();
        assert!(most_done <= Some(1), "{before:?} {now:?}");
        before = now;
        crowd.iter_mut().for_each(|tls_stream| room.exchange(tls_stream));
        before.iter().sum::<usize>() == 0
    });
    for mut tls_stream in crowd {
        assert_eq!(page(&mut room, &mut tls_stream, "/"), b"Index");
        room.close_tls(tls_stream);
    }
    room.until("nothing is left", |room| room.engines.in_use() == InUse::default());
}

#[test]
fn output_leaves_before_a_handshake_step() {
    let (mut room, trust) = serving(32);
    if room.engines.in_use_on_each().len() > 1 {
        // With several cores the order also depends on the turns in which cores pass frames to each
        // other.
        return;
    }
    let mut tls_stream = room.connect_tls(443, &browser(&trust));
    let mut asking = room.connect(80);
    room.pass(Micros::from_millis(100));
    let mut hello = Vec::new();
    tls_stream.tls.write_tls(&mut hello).expect("I/O in memory cannot fail");
    room.send(&tls_stream.talk, &hello);
    room.send(&asking, b"GET / HTTP/1.1\r\nHost: web.test\r\n\r\n");
    // The ClientHello and the request arrive in one turn.
    room.until("the page comes", |room| {
        room.listen(&mut tls_stream.talk);
        assert!(tls_stream.talk.heard.is_empty(), "the page has waited for a handshake");
        room.listen(&mut asking);
        !asking.heard.is_empty()
    });
    room.complete_handshake(&mut tls_stream);
    room.part(asking);
    room.close_tls(tls_stream);
}

#[test]
fn without_a_certificate_tls_ports_are_closed() {
    let mut room = Room::new(11);
    let talk = room.connect(443);
    room.until("the connection is refused", |room| room.hosts[0].is_over(talk.connection));
    room.until("nothing is left", |room| room.engines.in_use() == InUse::default());
}

#[test]
fn an_expiring_certificate_is_announced_daily() {
    let announcements = |days: u32| {
        let trust = Trust::until("mail.barepost.test", days);
        let mut room =
            Room::with_certificates(14, site(LARGE_BYTES), vec![trust.certificate], usual_sizes());
        for _ in 0..3 {
            room.machine.wait(Micros::from_secs(24 * 3600));
            room.pass(Micros::from_millis(1));
        }
        let about = |line: &&String| line.contains("THE CERTIFICATE FOR mail.barepost.test");
        let lines: Vec<String> = room.machine.console.iter().filter(about).cloned().collect();
        let soon = lines
            .iter()
            .filter(|line| line.contains("EXPIRES SOON: it is valid until 2026-01-"))
            .count();
        (soon, lines.len() - soon)
    };
    assert_eq!(announcements(30), (0, 0));
    let (soon, gone) = announcements(10);
    assert_eq!((soon, gone), (4, 0), "at the start, and on each of three days");
    let (soon, gone) = announcements(1);
    assert!(soon >= 1 && soon + gone == 4 && gone >= 2, "{soon} {gone}");
}

#[test]
fn the_same_seed_repeats_the_same_run_over_tls() {
    let life = |seed: u64| {
        let (mut room, trust) = serving(seed);
        let mut tls_stream = room.connect_tls(443, &browser(&trust));
        let mut frames = Vec::new();
        room.send_tls(&mut tls_stream, b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
        room.until("the page is there", |room| {
            room.exchange(&mut tls_stream);
            frames.push((room.machine.now, room.turns, tls_stream.heard.len()));
            tls_stream.heard.len() > LARGE_BYTES
        });
        (
            frames,
            tls_stream
                .tls
                .export_keying_material([0; 32], b"life", None)
                .expect("the handshake is done"),
        )
    };
    assert!(life(12) == life(12));
    assert!(life(12) != life(13));
}
