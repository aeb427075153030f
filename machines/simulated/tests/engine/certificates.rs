//! Certificates that are replaced while the machine serves.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::ops::Range;
use std::sync::Arc;

use chance::Dice;
use http::Site;
use machine::Micros;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, HandshakeKind};
use simulated::{MemoryDisk, Mood};
use tls::Certificate;

use super::room::pages::site;
use super::room::tls_stream::{TlsStream, Trust, client_of_all};
use super::room::{CONFIGURATION, DISK_BYTES, NO_QUOTA, Room, usual_sizes};
use crate::CORES;

pub(super) const NAME: &str = "mail.barepost.test";

/// HTTP credentials: of Ada, an administrator, of Grace, an ordinary user, and of Ada with a wrong
/// password.
pub(super) const ADA: &str = "YWRhOmxvdmVsYWNl";
pub(super) const GRACE: &str = "Z3JhY2U6bG92ZWxhY2U=";
pub(super) const GUESS: &str = "YWRhOmd1ZXNz";

pub(super) fn configuration() -> String {
    [&CONFIGURATION.replace("aliases = [", "admin = true\naliases = ["), NO_QUOTA].concat()
}

/// A machine on `disk` with these certificates in its configuration.
fn on(seed: u64, disk: MemoryDisk, certificates: &[&Trust], site: Site) -> Room {
    let certificates: Vec<Certificate> =
        certificates.iter().map(|trust| trust.certificate.clone()).collect();
    let mut room = Room::certified(seed, disk, usual_sizes(), &configuration(), site, certificates);
    room.until("the engine serves", |room| room.console_says("serving"));
    room
}

pub(super) fn serving(seed: u64, first: &Trust) -> Room {
    on(seed, MemoryDisk::blank(DISK_BYTES), &[first], site(1000))
}

/// The machine after a power cut and a restart.
fn again(room: Room, seed: u64, certificates: &[&Trust]) -> Room {
    on(seed, room.machine.disk.power_cut(&mut Dice::new(seed)), certificates, Site::default())
}

/// A certificate for [`NAME`] with the key of this seed, valid for these days.
pub(super) fn other(seed: u64, days: Range<i64>) -> Trust {
    Trust::made(seed, &[NAME], days)
}

pub(super) fn client(trusted: &[&Trust]) -> Arc<ClientConfig> {
    Arc::new(client_of_all(trusted, &["http/1.1"]))
}

/// Uploads `pem` with these credentials.
fn send(room: &mut Room, tls_stream: &mut TlsStream, credentials: &str, pem: &[u8]) {
    send_part(room, tls_stream, credentials, pem, pem.len());
}

/// Sends only the first bytes of an upload of `length` bytes.
pub(super) fn send_part(
    room: &mut Room,
    tls_stream: &mut TlsStream,
    credentials: &str,
    begin: &[u8],
    length: usize,
) {
    let path = server::CERTIFICATE_PATH;
    let head = format!(
        "PUT {path} HTTP/1.1\r\nHost: {NAME}\r\nAuthorization: Basic {credentials}\r\nContent-Length: {length}\r\n\r\n"
    );
    room.send_tls(tls_stream, &[head.as_bytes(), begin].concat());
}

/// The status and the text of the next response.
fn answer(room: &mut Room, tls_stream: &mut TlsStream) -> (String, String) {
    let status = room.line_tls(tls_stream).trim_start_matches("HTTP/1.1 ").to_string();
    let mut length = 0;
    loop {
        match room.line_tls(tls_stream).split_once(": ") {
            None => break,
            Some(("Content-Length", value)) => length = value.parse().expect("a length"),
            Some(_) => {}
        }
    }
    room.until_tls(tls_stream, "the text is there", |tls_stream| tls_stream.heard.len() >= length);
    let text = tls_stream.heard.drain(..length).collect();
    (status, String::from_utf8(text).expect("the bytes are UTF-8"))
}

/// Uploads `pem` as Ada on a new connection. Returns the response.
fn upload(room: &mut Room, trusted: &[&Trust], pem: &[u8]) -> (String, String) {
    let mut tls_stream = room.connect_tls(443, &client(trusted));
    send(room, &mut tls_stream, ADA, pem);
    let answer = answer(room, &mut tls_stream);
    room.close_tls(tls_stream);
    answer
}

/// The certificate that a client of the service on `port` gets.
fn shown(room: &mut Room, port: u16, trusted: &[&Trust]) -> CertificateDer<'static> {
    let mut tls_stream = room.connect_tls(port, &Arc::new(client_of_all(trusted, &[])));
    room.complete_handshake(&mut tls_stream);
    let shown =
        tls_stream.tls.peer_certificates().expect("the handshake is done")[0].clone().into_owned();
    room.abort(&tls_stream.talk);
    shown
}

#[test]
fn an_acknowledged_certificate_is_used_on_every_core() {
    let (first, second) = (Trust::new(NAME), other(8, -1..90));
    let both = [&first, &second];
    let mut room = serving(1, &first);
    let known = client(&both);
    let mut old = room.connect_tls(443, &known);
    let get = b"GET / HTTP/1.1\r\nHost: web.test\r\n\r\n";
    room.send_tls(&mut old, get);
    assert_eq!(answer(&mut room, &mut old).1, "Index");

    let (status, text) = upload(&mut room, &both, &second.pem);
    assert_eq!(status, "200 OK");
    assert!(
        text.starts_with("names: mail.barepost.test\nvalid until: 2026-04-01T00:00:00Z\nSHA-256: "),
        "{text}"
    );
    let mut crowd = Vec::new();
    while crowd.len() < 6 * usize::from(CORES) {
        let host = room.add_host();
        let mut tls_stream = room.connect_tls_from(host, 443, &client(&both));
        room.complete_handshake(&mut tls_stream);
        assert_eq!(
            tls_stream.tls.peer_certificates().expect("the handshake is done")[0],
            second.root
        );
        crowd.push(tls_stream);
    }
    let spread = room.engines.in_use_on_each();
    assert!(
        spread.iter().all(|core| core.tls_connections > 0),
        "the connections are on every core: {spread:?}"
    );
    for tls_stream in crowd {
        room.close_tls(tls_stream);
    }
    assert_eq!(shown(&mut room, 995, &both), second.root);
    assert_eq!(shown(&mut room, 465, &both), second.root);

    room.send_tls(&mut old, get);
    assert_eq!(answer(&mut room, &mut old).1, "Index", "an open connection is not affected");
    room.finish_tls(old);
    let mut later = room.connect_tls(443, &known);
    room.send_tls(&mut later, get);
    assert_eq!(answer(&mut room, &mut later).1, "Index");
    assert_eq!(
        later.tls.handshake_kind(),
        Some(HandshakeKind::Resumed),
        "an earlier ticket is still valid"
    );
    room.finish_tls(later);
}

/// The server stores the certificate although no client sends anything after it.
#[test]
fn an_upload_needs_no_further_input_to_be_stored() {
    let (first, second) = (Trust::new(NAME), other(8, -1..90));
    let mut room = serving(3, &first);
    let mut tls_stream = room.connect_tls(443, &client(&[&first]));
    let (begin, rest) = second.pem.split_at(100);
    send_part(&mut room, &mut tls_stream, ADA, begin, second.pem.len());
    room.pass(Micros::from_secs(1));
    (room.carries, room.machine.disk.mood) = (0, Mood::Waits);
    room.send_tls(&mut tls_stream, rest);
    room.pass(Micros::from_millis(1));
    assert_eq!(room.engines.in_use().deliveries, 1);
    (room.carries, room.machine.disk.mood) = (usize::MAX, Mood::Works);
    room.machine.disk.carry_out_next();
    assert_eq!(answer(&mut room, &mut tls_stream).0, "200 OK");
    room.finish_tls(tls_stream);
}

#[test]
fn an_upload_is_acknowledged_after_every_core_uses_it() {
    let (first, second) = (Trust::new(NAME), other(8, -1..90));
    // The core that stores certificates depends on the disk. With several seeds the held core is
    // not always that core.
    for (seed, held) in
        (0..u64::from(16 / CORES)).flat_map(|seed| (0..CORES).map(move |held| (16 + seed, held)))
    {
        let mut room = serving(seed, &first);
        let mut tls_stream = room.connect_tls(443, &client(&[&first]));
        room.complete_handshake(&mut tls_stream);
        room.pass(Micros::from_millis(1));
        if room.engines.in_use_on_each()[usize::from(held)].sessions > 0 {
            continue;
        }
        // The server checks the login before the core is held.
        let (begin, rest) = second.pem.split_at(100);
        send_part(&mut room, &mut tls_stream, ADA, begin, second.pem.len());
        room.pass(Micros::from_millis(100));
        room.engines.hold(Some(held));
        room.send_tls(&mut tls_stream, rest);
        for _ in 0..20 {
            room.pass(Micros::from_millis(10));
            room.exchange(&mut tls_stream);
        }
        assert!(
            tls_stream.heard.is_empty(),
            "core {held} of {CORES} does not use the certificate yet"
        );
        room.engines.hold(None);
        assert_eq!(answer(&mut room, &mut tls_stream).0, "200 OK");
        room.finish_tls(tls_stream);
    }
}

#[test]
fn only_administrators_replace_certificates() {
    let (first, second) = (Trust::new(NAME), other(8, -1..90));
    let mut room = serving(2, &first);
    for (credentials, expected, delay) in [
        (GRACE, "403 Forbidden", 0),
        (GUESS, "401 Unauthorized", 2),
        (GUESS, "401 Unauthorized", 4),
    ] {
        let mut tls_stream = room.connect_tls(443, &client(&[&first]));
        room.complete_handshake(&mut tls_stream);
        let before = room.machine.now;
        send(&mut room, &mut tls_stream, credentials, &second.pem);
        assert_eq!(answer(&mut room, &mut tls_stream).0, expected);
        assert_eq!(room.machine.now.since(before).as_secs(), delay, "{expected}");
        room.finish_tls(tls_stream);
    }
    let mut talk = room.connect(80);
    let path = server::CERTIFICATE_PATH;
    let request = format!(
        "PUT {path} HTTP/1.1\r\nHost: {NAME}\r\nAuthorization: Basic {ADA}\r\nContent-Length: 1\r\n\r\nx"
    );
    room.send(&talk, request.as_bytes());
    assert_eq!(room.line(&mut talk), "HTTP/1.1 403 Forbidden");
    room.part(talk);
    assert_eq!(shown(&mut room, 443, &[&first, &second]), first.root);
}

#[test]
fn an_unusable_certificate_is_refused_with_a_reason() {
    let first = Trust::new(NAME);
    let mut room = serving(3, &first);
    // A certificate is still valid in its last second.
    room.pass(Micros::from_secs(1));
    let (second, third) = (other(8, -1..90), other(9, -1..90));
    let halves = |trust: &Trust| {
        let text = String::from_utf8(trust.pem.clone()).expect("the bytes are UTF-8");
        let (certificate, key) =
            text.split_at(text.find("-----BEGIN PRIVATE").expect("the file has a key"));
        (certificate.to_string(), key.to_string())
    };
    let mismatched = [halves(&second).0, halves(&third).1].concat().into_bytes();
    for (pem, reason) in [
        (&mismatched, "the private key does not belong to the certificate"),
        (
            &other(8, -90..0).pem,
            "the certificate has expired: it was valid until 2026-01-01T00:00:00Z",
        ),
        (&other(8, 1..90).pem, "the certificate is not valid before 2026-01-02T00:00:00Z"),
        (&b"garbage".to_vec(), "the file contains no certificate"),
        (
            &b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n".to_vec(),
            "the certificate file is not in PEM format",
        ),
        (&halves(&second).0.into_bytes(), "the file contains no private key"),
        (&Trust::made(8, &[], -1..90).pem, "the certificate has no DNS name"),
        (&Vec::new(), "the file contains no certificate"),
    ] {
        let (status, text) = upload(&mut room, &[&first], pem);
        assert!(status.starts_with("422 ") && text.starts_with(reason), "{status}: {text}");
    }
    let mut tls_stream = room.connect_tls(443, &client(&[&first]));
    let request = format!(
        "PUT {} HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {ADA}\r\nContent-Length: 32769\r\nExpect: 100-continue\r\n\r\n",
        server::CERTIFICATE_PATH
    );
    room.send_tls(&mut tls_stream, request.as_bytes());
    assert_eq!(answer(&mut room, &mut tls_stream).0, "413 Content Too Large");
    room.finish_tls(tls_stream);
    assert_eq!(shown(&mut room, 443, &[&first]), first.root, "the certificate has not changed");
    let mut room = again(room, 3, &[&first]);
    assert_eq!(shown(&mut room, 443, &[&first]), first.root);
}

#[test]
fn an_uploaded_certificate_counts_until_a_later_configured_one() {
    let (first, second, third) = (Trust::new(NAME), other(8, -1..90), other(9, -60..90));
    let all = [&first, &second, &third];
    let mut room = serving(4, &first);
    assert_eq!(upload(&mut room, &all, &second.pem).0, "200 OK");
    let mut room = again(room, 5, &[&first]);
    assert_eq!(shown(&mut room, 443, &all), second.root);
    // The later upload counts, independent of the dates in the certificates.
    assert_eq!(upload(&mut room, &all, &third.pem).0, "200 OK");
    assert_eq!(shown(&mut room, 443, &all), third.root);
    let mut room = again(room, 6, &[&first]);
    assert_eq!(shown(&mut room, 443, &all), third.root);
    let mut room = again(room, 7, &[&other(10, 5..90)]);
    assert!(
        room.console_says("ignored: the configuration has a newer certificate for the same names")
    );
    // The client's clock is before the validity of this certificate. So the client's complaint
    // shows that it got this certificate.
    let mut tls_stream = room.connect_tls(443, &client(&all));
    room.until_tls(&mut tls_stream, "the client refuses it", |tls_stream| {
        tls_stream.complaint.is_some()
    });
    room.abort(&tls_stream.talk);
}

#[test]
fn an_uploaded_certificate_is_read_after_a_disk_outage() {
    let (first, second) = (Trust::new(NAME), other(8, -1..90));
    let mut room = serving(14, &first);
    assert_eq!(upload(&mut room, &[&first, &second], &second.pem).0, "200 OK");
    for (steps, seconds) in (0..60).flat_map(|steps| [(steps, 5), (steps, 60)]) {
        let mut disk = room.machine.disk.power_cut(&mut Dice::new(15));
        disk.mood = Mood::Waits;
        let certificates = vec![first.certificate.clone()];
        room = Room::certified(
            15,
            disk,
            usual_sizes(),
            &configuration(),
            Site::default(),
            certificates,
        );
        for _ in 0..steps {
            room.step();
            room.machine.disk.carry_out_next();
        }
        room.machine.disk.mood = Mood::FailsReads;
        room.pass(Micros::from_secs(seconds));
        room.machine.disk.mood = Mood::Works;
        room.until("the engine serves", |room| room.console_says("serving"));
        let is_given_up = room.console_says("tls: uploaded certificate cannot be read");
        assert!(!is_given_up || seconds == 60, "{:?}", room.machine.console);
        let expected = if is_given_up { &first } else { &second };
        assert_eq!(shown(&mut room, 443, &[&first, &second]), expected.root, "{steps} {seconds}");
        if is_given_up {
            // An upload removes certificates that no longer count, but not one that could not be
            // read.
            let others = Trust::made(16, &["www.barepost.test"], -1..90);
            assert_eq!(upload(&mut room, &[&first, &second], &others.pem).0, "200 OK");
            let mut room = again(room, 17, &[&first]);
            assert_eq!(shown(&mut room, 443, &[&first, &second]), second.root);
            return;
        }
    }
    panic!("the certificate was read before");
}

#[test]
fn the_newest_certificate_is_used_for_its_names_only() {
    let own = Trust::made(7, &[NAME, "localhost"], -1..90);
    let web = Trust::made(8, &["web.test"], -1..90);
    let (new, newer) = (other(9, -1..80), other(10, -1..70));
    let mut room = on(8, MemoryDisk::blank(DISK_BYTES), &[&own, &web], Site::default());
    let all = [&own, &web, &new, &newer];
    assert_eq!(upload(&mut room, &all, &new.pem).0, "200 OK");
    let (status, text) = upload(&mut room, &all, &newer.pem);
    assert_eq!(status, "200 OK");
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("names: ")).collect();
    assert_eq!(names, [NAME, "mail.barepost.test, localhost", "web.test"], "{text}");
    assert_eq!(shown(&mut room, 443, &all), newer.root);
    let wide = Trust::made(11, &[NAME, "localhost", "*.test"], -1..60);
    let (_, text) = upload(&mut room, &all, &wide.pem);
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("names: ")).collect();
    assert_eq!(names, ["mail.barepost.test, localhost, *.test"]);
    let mut tls_stream = room.connect_tls(443, &client(&[&wide]));
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {ADA}\r\n\r\n",
        server::CERTIFICATE_PATH
    );
    room.send_tls(&mut tls_stream, request.as_bytes());
    assert_eq!(answer(&mut room, &mut tls_stream).1, text);
    room.finish_tls(tls_stream);
}

#[test]
fn an_acknowledged_certificate_survives_any_power_cut() {
    let (first, second, third) = (Trust::new(NAME), other(8, -1..90), other(9, -1..80));
    let all = [&first, &second, &third];
    // Steps until the upload is acknowledged, at most `steps_max` times. Returns the number of
    // steps, whether it was acknowledged, and the machine.
    let life = |steps_max: usize| {
        let mut room = serving(9, &first);
        assert_eq!(upload(&mut room, &all, &second.pem).0, "200 OK");
        let mut tls_stream = room.connect_tls(443, &client(&all));
        room.complete_handshake(&mut tls_stream);
        send(&mut room, &mut tls_stream, ADA, &third.pem);
        let mut steps = 0;
        while steps < steps_max && tls_stream.heard.is_empty() {
            room.step();
            room.exchange(&mut tls_stream);
            steps += 1;
        }
        (room, steps, !tls_stream.heard.is_empty())
    };
    let (_, all_steps, _) = life(usize::MAX);
    let (mut old, mut new) = (0, 0);
    for tenth in 0..=10 {
        let (room, _, is_acknowledged) = life(all_steps * tenth / 10);
        assert_eq!(is_acknowledged, tenth == 10);
        let mut room = again(room, 100 + tenth as u64, &[&first]);
        let shown = shown(&mut room, 443, &all);
        assert!(
            shown == third.root || shown == second.root && !is_acknowledged,
            "after {tenth} tenths"
        );
        if shown == third.root { new += 1 } else { old += 1 }
    }
    assert!(old > 0 && new > 0, "{old} {new}");
}

#[test]
fn concurrent_uploads_leave_one_certificate_on_all_cores() {
    let (first, second, third) = (Trust::new(NAME), other(8, -1..90), other(9, -1..80));
    let all = [&first, &second, &third];
    let mut room = serving(10, &first);
    let mut senders = Vec::new();
    for trust in [&second, &third, &second, &third] {
        let mut tls_stream = room.connect_tls(443, &client(&all));
        room.complete_handshake(&mut tls_stream);
        senders.push((tls_stream, trust));
    }
    for (tls_stream, trust) in &mut senders {
        send(&mut room, tls_stream, ADA, &trust.pem);
    }
    for (mut tls_stream, _) in senders {
        assert_eq!(answer(&mut room, &mut tls_stream).0, "200 OK");
        room.close_tls(tls_stream);
    }
    let last = shown(&mut room, 443, &all);
    assert!(last == second.root || last == third.root);
    for _ in 0..4 * CORES {
        assert_eq!(shown(&mut room, 443, &all), last);
    }
    let mut room = again(room, 11, &[&first]);
    assert_eq!(shown(&mut room, 443, &all), last, "the same certificate is used after a restart");
}

#[test]
fn an_upload_whose_client_leaves_blocks_no_other_client() {
    let (first, second) = (Trust::new(NAME), other(8, -1..90));
    let both = [&first, &second];
    let mut room = serving(12, &first);
    for steps in 0..12 {
        let mut tls_stream = room.connect_tls(443, &client(&both));
        room.complete_handshake(&mut tls_stream);
        send(&mut room, &mut tls_stream, ADA, &second.pem);
        (0..steps).for_each(|_| room.step());
        room.abort(&tls_stream.talk);
    }
    room.pass(Micros::from_secs(5));
    room.until_nothing_is_in_use();
    assert_eq!(upload(&mut room, &both, &second.pem).0, "200 OK");
    assert_eq!(shown(&mut room, 443, &both), second.root);
}

/// Whether the machine accepts a message.
fn is_message_taken(room: &mut Room) -> bool {
    let mut talk = room.connect(25);
    room.smtp_reply(&mut talk);
    room.smtp(&mut talk, "EHLO client.test");
    let is_taken = room.smtp(&mut talk, "MAIL FROM:<sender@elsewhere.test>").starts_with("250")
        && {
            room.smtp(&mut talk, "RCPT TO:<grace@barepost.test>");
            room.smtp(&mut talk, "DATA");
            room.send(&talk, &b"A line of its text, to fill the disk with\r\n".repeat(700));
            room.smtp(&mut talk, ".").starts_with("250")
        };
    room.close(&talk);
    is_taken
}

#[test]
fn a_failed_upload_is_reported_and_keeps_the_old_certificate() {
    let (first, second) = (Trust::new(NAME), other(8, -1..90));
    let both = [&first, &second];
    let mut room = on(13, MemoryDisk::blank(2 << 20), &[&first], Site::default());
    while is_message_taken(&mut room) {}
    let (status, text) = upload(&mut room, &both, &second.pem);
    assert_eq!(
        (status.as_str(), text.as_str()),
        ("507 Insufficient Storage", "the disk is full\n")
    );
    assert_eq!(shown(&mut room, 443, &both), first.root);
    for mood in [Mood::FailsFlushes, Mood::FailsWrites] {
        let mut room = serving(14, &first);
        room.machine.disk.mood = mood;
        let (status, text) = upload(&mut room, &both, &second.pem);
        assert_eq!(
            (status.as_str(), text.as_str()),
            ("503 Service Unavailable", "the disk has failed\n")
        );
        assert_eq!(shown(&mut room, 443, &both), first.root);
    }
}

#[test]
fn only_certificates_in_use_are_announced_as_expiring() {
    let (first, second, third) = (Trust::until(NAME, 10), other(8, -1..90), other(9, -1..12));
    let all = [&first, &second, &third];
    let mut room = serving(15, &first);
    let warnings = |room: &Room| {
        room.machine.console.iter().filter(|line| line.contains("EXPIRES SOON")).count()
    };
    assert_eq!(warnings(&room), 1);
    assert_eq!(upload(&mut room, &all, &second.pem).0, "200 OK");
    room.machine.wait(Micros::from_secs(24 * 3600));
    room.pass(Micros::from_millis(1));
    assert_eq!(warnings(&room), 1);
    assert_eq!(upload(&mut room, &all, &third.pem).0, "200 OK");
    room.pass(Micros::from_millis(1));
    assert_eq!(warnings(&room), 2);
    assert!(room.console_says(
        "tls: new certificate for mail.barepost.test, valid until 2026-01-13T00:00:00Z"
    ));
}
