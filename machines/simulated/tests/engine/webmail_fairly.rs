//! Tests that each account of a core gets a fair share of the core's request handlers.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use http::Site;
use server::Sizes;
use simulated::{MemoryDisk, Mood};

use super::room::tls_stream::{TlsStream, Trust};
use super::room::{CONFIGURATION, Room};
use super::webmail::{Browser, answer, message};
use crate::CORES;

/// The number of requests of the account that sends many: more than a core has request handlers.
const REQUESTS: usize = 120;
/// The number of hosts that send the requests.
const HOSTS: usize = 4;
/// The most request handlers of one account.
const HANDLERS_MAX: usize = 16;
/// The most requests of one account that have a request handler or wait for one.
const REQUESTS_MAX: usize = HANDLERS_MAX + 128;
/// The most requests of the first account that are answered before the request of the other
/// account: twice the handlers of one account.
const BEFORE_MAX: usize = 2 * HANDLERS_MAX;

fn search(room: &mut Room, tls_stream: &mut TlsStream, browser: &Browser) {
    let cookie = browser.cookie.as_ref().expect("the user is logged in");
    let head = format!(
        "GET /mail/search?q=engine HTTP/1.1\r\nHost: mail.barepost.test\r\nCookie: {cookie}\r\n\r\n"
    );
    room.send_tls(tls_stream, head.as_bytes());
}

fn logged_in(room: &mut Room, trust: &Trust, name: &str) -> Browser {
    let mut browser = Browser::new(trust);
    browser.log_in(room, name, "lovelace");
    browser.hang_up(room);
    browser
}

/// A room in which Ada and Grace have mail.
fn serving(seed: u64, trust: &Trust) -> Room {
    let configuration = format!("{CONFIGURATION}unthrottled_from = [\"10.0.0.0/24\"]\n");
    let sizes =
        Sizes::for_memory(4 * Sizes::memory_bytes_min(CORES), CORES).expect("the memory is enough");
    let (disk, certificates) = (MemoryDisk::blank(256 << 20), vec![trust.certificate.clone()]);
    let mut room =
        Room::certified(seed, disk, sizes, &configuration, Site::default(), certificates);
    room.until("the engine serves", |room| room.console_says("serving"));
    for number in 0..8 {
        let message = message(&format!("Engine{number}"), "It computes.");
        assert!(room.deliver("ada@barepost.test", &message).starts_with("250"));
    }
    assert!(
        room.deliver("grace@barepost.test", &message("Engine", "It computes.")).starts_with("250")
    );
    room
}

/// Opens `count` idle connections of a browser.
fn connected(room: &mut Room, browser: &Browser, count: usize) -> Vec<TlsStream> {
    let hosts: Vec<usize> = (0..HOSTS).map(|_| room.add_host()).collect();
    let connect = |host: &usize| {
        let mut tls_stream = room.connect_tls_from(*host, 443, &browser.settings);
        room.complete_handshake(&mut tls_stream);
        tls_stream
    };
    hosts.iter().cycle().take(count).map(connect).collect()
}

#[test]
fn searches_of_one_account_do_not_hold_up_another() {
    let trust = Trust::new("mail.barepost.test");
    let mut room = serving(41, &trust);
    let ada = logged_in(&mut room, &trust, "ada");
    let grace = logged_in(&mut room, &trust, "grace");
    let mut of_ada = connected(&mut room, &ada, REQUESTS);
    let mut of_grace = room.connect_tls(443, &grace.settings);
    room.complete_handshake(&mut of_grace);

    room.machine.disk.mood = Mood::Waits;
    of_ada.iter_mut().for_each(|tls_stream| search(&mut room, tls_stream, &ada));
    search(&mut room, &mut of_grace, &grace);
    room.until("the other account has its page", |room| {
        room.machine.disk.carry_out_next();
        of_ada.iter_mut().for_each(|tls_stream| room.exchange(tls_stream));
        room.exchange(&mut of_grace);
        !of_grace.heard.is_empty()
    });
    let before = of_ada.iter().filter(|tls_stream| !tls_stream.heard.is_empty()).count();
    assert!(before <= BEFORE_MAX, "{before} requests of the first account were answered before");

    room.machine.disk.mood = Mood::Works;
    for mut tls_stream in of_ada.into_iter().chain([of_grace]) {
        let page = answer(&mut room, &mut tls_stream);
        assert_eq!(page.status, 200, "{}", page.text());
        room.close_tls(tls_stream);
    }
    room.until_nothing_is_in_use();
}

#[test]
fn a_request_beyond_the_limit_is_refused_at_once() {
    let trust = Trust::new("mail.barepost.test");
    let mut room = serving(43, &trust);
    let ada = logged_in(&mut room, &trust, "ada");
    let mut waiting = connected(&mut room, &ada, REQUESTS_MAX);
    let mut refused = connected(&mut room, &ada, 1).swap_remove(0);

    room.machine.disk.mood = Mood::Waits;
    for (begin, end) in [(0, HANDLERS_MAX), (HANDLERS_MAX, REQUESTS_MAX)] {
        waiting[begin..end].iter_mut().for_each(|tls_stream| search(&mut room, tls_stream, &ada));
        room.until("all requests wait", |room| {
            waiting.iter_mut().for_each(|tls_stream| room.exchange(tls_stream));
            room.engines.in_use().webmail_requests == end
        });
    }
    search(&mut room, &mut refused, &ada);
    assert_eq!(answer(&mut room, &mut refused).status, 503);
    assert_eq!(room.engines.in_use().webmail_requests, REQUESTS_MAX);

    room.machine.disk.mood = Mood::Works;
    room.machine.disk.carry_out_next();
    for mut tls_stream in waiting {
        assert_eq!(answer(&mut room, &mut tls_stream).status, 200);
        room.close_tls(tls_stream);
    }
    search(&mut room, &mut refused, &ada);
    assert_eq!(answer(&mut room, &mut refused).status, 200, "the request can be repeated");
    room.close_tls(refused);
    room.until_nothing_is_in_use();
}
