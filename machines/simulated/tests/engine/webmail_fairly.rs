//! The accounts of a core have a fair share of its request handlers.

#![allow(clippy::expect_used, reason = "a test may fail")]

use http::Site;
use server::Sizes;
use simulated::{MemoryDisk, Mood};

use super::room::shielded::{Shielded, Trust};
use super::room::{CONFIGURATION, Room};
use super::webmail::{Browser, answer, letter};
use crate::CORES;

/// Requests of the account that has many: more than a core has request handlers.
const REQUESTS: usize = 120;
/// Hosts that they come from.
const HOSTS: usize = 4;
/// The request of the other account goes past all but so many: twice what one account may have.
const BEFORE_MAX: usize = 32;

fn search(room: &mut Room, shielded: &mut Shielded, browser: &Browser) {
    let cookie = browser.cookie.as_ref().expect("the user is logged in");
    let head = format!("GET /mail/search?q=engine HTTP/1.1\r\nHost: mail.barepost.test\r\nCookie: {cookie}\r\n\r\n");
    room.say_shielded(shielded, head.as_bytes());
}

fn logged_in(room: &mut Room, trust: &Trust, name: &str) -> Browser {
    let mut browser = Browser::new(trust);
    browser.log_in(room, name, "lovelace");
    browser.hang_up(room);
    browser
}

#[test]
fn searches_of_one_account_do_not_hold_up_another() {
    let trust = Trust::new("mail.barepost.test");
    let configuration = format!("{CONFIGURATION}unthrottled_from = [\"10.0.0.0/24\"]\n");
    let sizes = Sizes::for_memory(4 * Sizes::memory_bytes_min(CORES), CORES).expect("it is enough");
    let (disk, certificates) = (MemoryDisk::blank(256 << 20), vec![trust.certificate.clone()]);
    let mut room = Room::certified(41, disk, sizes, &configuration, Site::default(), certificates);
    room.until("the engine serves", |room| room.console_says("serving"));
    for number in 0..8 {
        let message = letter(&format!("Engine{number}"), "It computes.");
        assert!(room.deliver("ada@barepost.test", &message).starts_with("250"));
    }
    assert!(room.deliver("grace@barepost.test", &letter("Engine", "It computes.")).starts_with("250"));
    let ada = logged_in(&mut room, &trust, "ada");
    let grace = logged_in(&mut room, &trust, "grace");
    let hosts: Vec<usize> = (0..HOSTS).map(|_| room.add_host()).collect();
    let mut of_ada: Vec<Shielded> = Vec::new();
    for host in hosts.iter().cycle().take(REQUESTS) {
        let mut shielded = room.connect_shielded_from(*host, 443, &ada.settings);
        room.shake_hands(&mut shielded);
        of_ada.push(shielded);
    }
    let mut of_grace = room.connect_shielded(443, &grace.settings);
    room.shake_hands(&mut of_grace);

    room.machine.disk.mood = Mood::Waits;
    of_ada.iter_mut().for_each(|shielded| search(&mut room, shielded, &ada));
    search(&mut room, &mut of_grace, &grace);
    room.until("the other account has its page", |room| {
        room.machine.disk.carry_out_next();
        of_ada.iter_mut().for_each(|shielded| room.exchange(shielded));
        room.exchange(&mut of_grace);
        !of_grace.heard.is_empty()
    });
    let before = of_ada.iter().filter(|shielded| !shielded.heard.is_empty()).count();
    assert!(before <= BEFORE_MAX, "{before} requests of the first account were answered before");

    room.machine.disk.mood = Mood::Works;
    for mut shielded in of_ada.into_iter().chain([of_grace]) {
        let page = answer(&mut room, &mut shielded);
        assert_eq!(page.status, 200, "{}", page.text());
        room.part_shielded_only(shielded);
    }
    room.until_nothing_is_in_use();
}
