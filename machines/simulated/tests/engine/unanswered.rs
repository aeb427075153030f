//! Requests for a core that does not answer: the link to it takes a limited number of requests, and
//! each client gets a reply.

#![allow(clippy::indexing_slicing, reason = "a test may fail")]

use channel::CREDITS;
use http::Site;
use machine::Micros;
use server::Sizes;
use simulated::MemoryDisk;

use super::room::tls_stream::{TlsStream, Trust};
use super::room::{CONFIGURATION, Room};
use super::webmail::{Browser, answer};
use crate::CORES;

/// The number of requests beyond the capacity of a link.
const BEYOND: usize = 20;
/// The number of hosts that send the requests. A single host may not have as many connections.
const HOSTS: usize = 4;
/// The number of connections to other cores that may be open before one of them waits too long for
/// its handshake.
const OTHER_CORES_MAX: usize = 256;

/// Opens `count` connections to the first core, ready for a request. Connections that reach other
/// cores are closed.
fn connect_to_first(room: &mut Room, count: usize, browser: &Browser) -> Vec<TlsStream> {
    let hosts: Vec<usize> = (0..HOSTS).map(|_| room.add_host()).collect();
    let (mut first, mut on_other_cores) = (Vec::new(), Vec::new());
    for host in hosts.iter().cycle() {
        if first.len() == count || on_other_cores.len() == OTHER_CORES_MAX {
            on_other_cores.drain(..).for_each(|talk| room.abort(&talk));
            room.until("the connections to other cores have ended", |room| {
                room.engines.in_use().sessions == first.len()
            });
        }
        if first.len() == count {
            break;
        }
        let talk = room.connect_from(*host, 443);
        room.until("a core has the connection", |room| {
            room.engines.in_use().sessions > first.len() + on_other_cores.len()
        });
        if room.engines.in_use_on_each()[0].sessions > first.len() {
            let mut tls_stream = room.start_tls(talk, &browser.settings);
            room.complete_handshake(&mut tls_stream);
            first.push(tls_stream);
        } else {
            on_other_cores.push(talk);
        }
    }
    first
}

fn say(room: &mut Room, tls_stream: &mut TlsStream, browser: &Browser) {
    let cookie = browser.cookie.as_ref().map_or("", |cookie| cookie);
    let head =
        format!("GET /mail/box/1 HTTP/1.1\r\nHost: mail.barepost.test\r\nCookie: {cookie}\r\n\r\n");
    room.send_tls(tls_stream, head.as_bytes());
}

/// Lets enough time pass for a core with turns to answer, and receives the responses.
fn wait(room: &mut Room, all: &mut [TlsStream]) {
    for _ in 0..3 {
        room.pass(Micros::from_millis(10));
        all.iter_mut().for_each(|tls_stream| room.exchange(tls_stream));
    }
}

/// The core that has the mail of the browser's user; `None`: the first core.
fn owner(room: &mut Room, browser: &Browser) -> Option<u8> {
    (1..CORES).find(|core| {
        let mut one = connect_to_first(room, 1, browser);
        room.engines.hold(Some(*core));
        say(room, &mut one[0], browser);
        wait(room, &mut one);
        let is_owner = one[0].heard.is_empty();
        room.engines.hold(None);
        assert_eq!(answer(room, &mut one[0]).status, 200);
        leave(room, one);
        is_owner
    })
}

fn leave(room: &mut Room, all: Vec<TlsStream>) {
    all.into_iter().for_each(|tls_stream| room.close_tls(tls_stream));
    room.until_nothing_is_in_use();
}

/// Holds the core that has the mail of the user `name` while more requests arrive than its link
/// takes. False: the first core has the mail, and nothing was tested.
fn hold_owner(room: &mut Room, trust: &Trust, name: &str) -> bool {
    let mut browser = Browser::new(trust);
    browser.log_in(room, name, "lovelace");
    browser.hang_up(room);
    room.until_nothing_is_in_use();
    let Some(owner) = owner(room, &browser) else { return false };
    let mut all = connect_to_first(room, CREDITS + BEYOND, &browser);
    room.engines.hold(Some(owner));
    for tls_stream in &mut all {
        say(room, tls_stream, &browser);
    }
    wait(room, &mut all);
    let is_refused: Vec<bool> = all.iter().map(|tls_stream| !tls_stream.heard.is_empty()).collect();
    // The frames of some connections pass through the held core, so not all clients have a reply
    // yet.
    assert!(is_refused.contains(&true));
    room.engines.hold(None);
    for (tls_stream, is_refused) in all.iter_mut().zip(is_refused) {
        assert_eq!(answer(room, tls_stream).status, if is_refused { 503 } else { 200 });
    }
    leave(room, all);
    true
}

#[test]
fn a_core_that_does_not_answer_leaves_no_client_without_a_reply() {
    let trust = Trust::new("mail.barepost.test");
    let configuration = format!("{CONFIGURATION}unthrottled_from = [\"10.0.0.0/24\"]\n");
    let sizes =
        Sizes::for_memory(4 * Sizes::memory_bytes_min(CORES), CORES).expect("the memory is enough");
    // The core that owns an account depends on the seed.
    let is_held = (31..40).any(|seed| {
        let (disk, certificates) = (MemoryDisk::blank(256 << 20), vec![trust.certificate.clone()]);
        let mut room =
            Room::certified(seed, disk, sizes, &configuration, Site::default(), certificates);
        room.until("the engine serves", |room| room.console_says("serving"));
        hold_owner(&mut room, &trust, "ada") || hold_owner(&mut room, &trust, "grace")
    });
    assert_eq!(is_held, CORES > 1);
}
