//! Two windows set flags of a message at the same time, and both changes persist.

use machine::Micros;
use simulated::Mood;

use super::room::Room;
use super::webmail::{Browser, message, serving};

/// A room with a message for Ada, two windows of Ada with connections on any cores, and a form
/// token.
fn windows(seed: u64) -> (Room, [Browser; 2], String) {
    let (mut room, trust) = serving(seed);
    assert!(
        room.deliver("ada@barepost.test", &message("Engine", "It computes.")).starts_with("250")
    );
    let [mut one, mut other] = [(); 2].map(|()| Browser::new(&trust));
    one.log_in(&mut room, "ada", "lovelace");
    other.cookie = one.cookie.clone();
    let token = one.get(&mut room, "/mail/box/1").token();
    other.get(&mut room, "/mail/box/1");
    (room, [one, other], token)
}

/// Sends a request from each window. The second request arrives before the result of the first is
/// on the disk.
fn at_once(room: &mut Room, windows: &mut [Browser; 2], token: &str, fields: [(&str, &str); 2]) {
    room.machine.disk.mood = Mood::Waits;
    for (window, field) in windows.iter_mut().zip(fields) {
        window.begin(
            room,
            "/mail/act",
            &[("token", token), ("here", "/mail/box/1"), ("key", "1.1"), field],
        );
        room.pass(Micros::from_millis(20));
    }
    room.machine.disk.mood = Mood::Works;
    for window in windows {
        let page = window.answered(room);
        assert_eq!(page.status, 303, "{}", page.text());
    }
}

/// Whether the list shows the message with a star, and whether it shows it as unread.
fn marks(room: &mut Room, window: &mut Browser) -> (bool, bool) {
    let list = window.get(room, "/mail/box/1").text();
    (list.contains("aria-pressed=\"true\""), list.contains("<li class=\"row unread\">"))
}

#[test]
fn concurrent_star_and_unread_changes_both_persist() {
    for seed in 0..4 {
        let (mut room, mut windows, token) = windows(seed);
        let both = [("star", "1.1"), ("do", "read")];
        at_once(&mut room, &mut windows, &token, both);
        assert_eq!(marks(&mut room, &mut windows[0]), (true, false), "seed {seed}");
        at_once(&mut room, &mut windows, &token, [both[0], ("do", "unread")]);
        assert_eq!(marks(&mut room, &mut windows[1]), (false, true), "seed {seed}");
        windows.iter_mut().for_each(|window| window.hang_up(&mut room));
    }
}
