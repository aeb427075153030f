//! Webmail settings and sessions: they survive power cuts, with the connections and the mail on any
//! cores.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use http::Site;
use machine::Micros;
use simulated::Mood;

use super::room::scram_client::ScramClient;
use super::room::tls_stream::Trust;
use super::room::{CONFIGURATION, Room, usual_sizes};
use super::webmail::{Browser, Page, between, serving};

/// The machine after a power cut, with this configuration.
pub(super) fn again(room: Room, seed: u64, trust: &Trust, configuration: &str) -> Room {
    let disk = room.machine.disk.power_cut(&mut Dice::new(seed));
    let certificates = vec![trust.certificate.clone()];
    let mut room =
        Room::certified(seed, disk, usual_sizes(), configuration, Site::default(), certificates);
    room.until("the engine serves", |room| room.console_says("serving"));
    room
}

pub(super) fn asks_for_login(page: &Page) -> bool {
    page.status == 303 && page.field("Location").starts_with("/mail/login")
}

/// Drops the browsers' connections, which ended with the previous life of the machine.
pub(super) fn forget_connections(browsers: &mut [&mut Browser]) {
    browsers.iter_mut().for_each(|browser| browser.connection = None);
}

#[test]
fn sessions_and_logouts_survive_a_power_cut() {
    let (mut room, trust) = serving(21);
    let [mut first, mut second, mut third] = [(); 3].map(|()| Browser::new(&trust));
    for browser in [&mut first, &mut second, &mut third] {
        browser.log_in(&mut room, "ada", "lovelace");
    }
    let token = third.get(&mut room, "/mail/box/1").token();
    let out = third.cookie.clone();
    third.send(&mut room, "/mail/logout", &[("token", &token)]);
    third.cookie = out;
    let mut room = again(room, 22, &trust, CONFIGURATION);
    forget_connections(&mut [&mut first, &mut second, &mut third]);
    assert!(asks_for_login(&third.get(&mut room, "/mail/box/1")));
    assert_eq!(second.get(&mut room, "/mail/box/1").status, 200);
    let page = first.get(&mut room, "/mail/settings");
    let text = page.text();
    assert_eq!(text.matches("name=\"end\"").count(), 1, "{text}");
    let key = between(&text, "name=\"end\" value=\"", "\"").expect("the other session").to_string();
    let token = page.token();
    let after = first.post(&mut room, "/mail/settings", &[("token", &token), ("end", &key)]);
    assert!(after.text().contains("Session signed out."), "{}", after.text());
    assert!(asks_for_login(&second.get(&mut room, "/mail/box/1")));
    let mut room = again(room, 23, &trust, CONFIGURATION);
    forget_connections(&mut [&mut first, &mut second]);
    assert!(asks_for_login(&second.get(&mut room, "/mail/box/1")));
    assert_eq!(first.get(&mut room, "/mail/box/1").status, 200);
}

#[test]
fn an_ended_session_leads_to_login_and_back() {
    let (mut room, trust) = serving(24);
    let [mut first, mut second] = [(); 2].map(|()| Browser::new(&trust));
    for browser in [&mut first, &mut second] {
        browser.log_in(&mut room, "ada", "lovelace");
    }
    let token = first.get(&mut room, "/mail/settings").token();
    first.post(&mut room, "/mail/settings", &[("token", &token), ("do", "end-others")]);
    let page = second.get(&mut room, "/mail/search?q=engine");
    assert!(asks_for_login(&page));
    let login = second.get(&mut room, page.field("Location")).text();
    assert!(login.contains("Your session has ended."), "{login}");
    let next = between(&login, "name=\"next\" value=\"", "\"").expect("a destination").to_string();
    let fields = [("name", "ada"), ("password", "lovelace"), ("next", &*next)];
    let back = second.send(&mut room, "/mail/login", &fields);
    assert_eq!(back.field("Location"), "/mail/search?q=engine");
    let mut stranger = Browser::new(&trust);
    let login = stranger.get(&mut room, page.field("Location")).text();
    assert!(!login.contains("Your session has ended."), "{login}");
}

#[test]
fn an_unstored_logout_says_so_and_holds_until_the_restart() {
    for seed in [27, 28] {
        let (mut room, trust) = serving(seed);
        let [mut first, mut second] = [(); 2].map(|()| Browser::new(&trust));
        let mut tickets = Vec::new();
        for browser in [&mut first, &mut second] {
            browser.log_in(&mut room, "ada", "lovelace");
            tickets.push((browser.cookie.clone(), browser.get(&mut room, "/mail/box/1").token()));
        }
        room.machine.disk.mood = Mood::FailsWrites;
        // The disk fails during the first logout. At the second one the store knows of the failure.
        for (browser, (ticket, token)) in [&mut first, &mut second].into_iter().zip(&tickets) {
            let out = browser.send(&mut room, "/mail/logout", &[("token", token)]);
            assert_eq!(out.status, 503);
            assert!(out.text().contains("could not save this to its disk"), "{}", out.text());
            assert!(browser.cookie.is_none() && out.field("Clear-Site-Data") == "\"cache\"");
            browser.cookie.clone_from(ticket);
            assert!(asks_for_login(&browser.get(&mut room, "/mail/box/1")));
        }
        room.machine.disk.mood = Mood::Works;
        let mut room = again(room, seed, &trust, CONFIGURATION);
        forget_connections(&mut [&mut first, &mut second]);
        first.cookie.clone_from(&tickets[0].0);
        assert_eq!(
            first.get(&mut room, "/mail/box/1").status,
            200,
            "the unstored logout is lost, as the page said"
        );
    }
}

/// The disk fails during the logout, and works again some time later.
#[test]
fn an_unstored_logout_is_stored_when_the_disk_works_again() {
    let (mut room, trust) = serving(29);
    let [mut first, mut second] = [(); 2].map(|()| Browser::new(&trust));
    first.log_in(&mut room, "ada", "lovelace");
    second.log_in(&mut room, "ada", "lovelace");
    let (ticket, token) = (first.cookie.clone(), first.get(&mut room, "/mail/box/1").token());
    room.machine.disk.mood = Mood::FailsWrites;
    let out = first.send(&mut room, "/mail/logout", &[("token", &token)]);
    assert!(out.text().contains("could not save this to its disk"), "{}", out.text());
    [&mut first, &mut second].into_iter().for_each(|browser| browser.hang_up(&mut room));
    room.pass(Micros::from_secs(600));
    room.machine.disk.mood = Mood::Works;
    room.pass(Micros::from_secs(600));
    let mut room = again(room, 29, &trust, CONFIGURATION);
    forget_connections(&mut [&mut first, &mut second]);
    first.cookie.clone_from(&ticket);
    assert!(asks_for_login(&first.get(&mut room, "/mail/box/1")));
    assert_eq!(second.get(&mut room, "/mail/box/1").status, 200, "the other session has not ended");
}

#[test]
fn a_login_beyond_the_limit_evicts_the_oldest_session() {
    let (mut room, trust) = serving(24);
    let mut all: Vec<Browser> = Vec::new();
    for _ in 0..17 {
        let mut browser = Browser::new(&trust);
        browser.log_in(&mut room, "ada", "lovelace");
        browser.hang_up(&mut room);
        room.pass(Micros::from_secs(2));
        all.push(browser);
    }
    for (number, browser) in all.iter_mut().enumerate() {
        assert_eq!(asks_for_login(&browser.get(&mut room, "/mail/box/1")), number == 0, "{number}");
        browser.hang_up(&mut room);
    }
    let token = all[1].get(&mut room, "/mail/settings").token();
    let one =
        all[1].post(&mut room, "/mail/settings", &[("token", &token), ("do", "end-others")]).text();
    assert!(
        one.contains("All other sessions were signed out.")
            && one.matches("from 10.0.0.1").count() == 1,
        "{one}"
    );
    assert!(asks_for_login(&all[2].get(&mut room, "/mail/box/1")));
}

#[test]
fn settings_apply_to_pages_and_messages_and_survive_power_cuts() {
    let (mut room, trust) = serving(25);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let page = ada.get(&mut room, "/mail/settings");
    assert!(page.text().contains("data-theme=\"auto\""));
    let token = page.token();
    let form = |name, signature| {
        [
            ("token", token.as_str()),
            ("name", name),
            ("signature", signature),
            ("hold", "10"),
            ("theme", "dark"),
            ("density", "compact"),
            ("do", "save"),
        ]
    };
    let long = format!("All of it: {}", "x".repeat(1100));
    let refused = ada.send(&mut room, "/mail/settings", &form("Ada", &long));
    assert!(refused.text().contains("The signature is too long") && refused.text().contains(&long));
    let saved =
        ada.post(&mut room, "/mail/settings", &form(" Ada \t Lövelace", "Ada\r\nAnalyst <&>"));
    assert!(saved.text().contains("Settings saved."), "{}", saved.text());

    let mut room = again(room, 26, &trust, CONFIGURATION);
    forget_connections(&mut [&mut ada]);
    let text = ada.get(&mut room, "/mail/settings").text();
    for words in [
        "value=\"10\" selected",
        "data-theme=\"dark\"",
        "data-density=\"compact\"",
        "value=\"Ada Lövelace\"",
        "Ada\nAnalyst &#60;&#38;&#62;",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let compose = ada.get(&mut room, "/mail/compose").text();
    assert!(compose.contains("\n-- \nAda\nAnalyst &#60;&#38;&#62;\n"), "{compose}");
    let message = [
        ("token", token.as_str()),
        ("to", "ada@barepost.test"),
        ("subject", "To me"),
        ("text", "x"),
        ("do", "send"),
    ];
    ada.post(&mut room, "/mail/compose", &message);
    room.pass(Micros::from_secs(12));
    let source = ada.get(&mut room, "/mail/source/1.1").text();
    assert!(
        source.contains("From: =?utf-8?") && source.contains("&#60;ada@barepost.test&#62;"),
        "{source}"
    );
    assert!(ada.get(&mut room, "/mail/box/1").text().contains("Ada Lövelace"));
    let reply = ada.get(&mut room, "/mail/compose?reply=1.1").text();
    assert!(reply.contains("&#62; x\n\n-- \nAda\nAnalyst"), "{reply}");
}

#[test]
fn a_logout_clears_the_browser_cache() {
    let (mut room, trust) = serving(27);
    let mut browser = Browser::new(&trust);
    browser.log_in(&mut room, "ada", "lovelace");
    let list = browser.get(&mut room, "/mail/box/1");
    assert_eq!((list.field("Cache-Control"), list.field("Clear-Site-Data")), ("no-store", ""));
    let out = browser.send(&mut room, "/mail/logout", &[("token", &list.token())]);
    assert_eq!(
        (out.field("Clear-Site-Data"), out.field("Cache-Control")),
        ("\"cache\"", "no-store")
    );
    assert!(browser.cookie.is_none());
}

#[test]
fn an_unused_session_expires_after_two_weeks() {
    const DAY: Micros = Micros::from_secs(86_400);
    let (mut room, trust) = serving(28);
    let [mut idle, mut busy] = [(); 2].map(|()| Browser::new(&trust));
    for browser in [&mut idle, &mut busy] {
        browser.log_in(&mut room, "ada", "lovelace");
        browser.hang_up(&mut room);
    }
    let mut written = Vec::new();
    for day in 0..15 {
        room.pass(DAY);
        for _ in 0..3 {
            let before = room.machine.disk.writes();
            assert_eq!(busy.get(&mut room, "/mail/box/1").status, 200, "day {day}");
            room.pass(Micros::from_secs(1));
            written.push(room.machine.disk.writes() > before);
        }
        busy.hang_up(&mut room);
    }
    assert_eq!(
        written,
        [true, false, false].repeat(15),
        "the use of a session is stored once a day"
    );
    assert!(asks_for_login(&idle.get(&mut room, "/mail/box/1")));
}

/// Whether POP3 accepts this password, on a new connection.
pub(super) fn accepts_password(room: &mut Room, password: &str) -> bool {
    let mut talk = room.connect(110);
    assert!(room.line(&mut talk).starts_with("+OK"));
    assert!(room.pop3(&mut talk, "USER ada").starts_with("+OK"));
    let is_in = room.pop3(&mut talk, &format!("PASS {password}")).starts_with("+OK");
    room.part(talk);
    is_in
}

/// Whether SCRAM over POP3 accepts this password.
fn accepts_scram(room: &mut Room, password: &str) -> bool {
    let mut scram_client = ScramClient::default();
    let mut talk = room.connect(110);
    assert!(room.line(&mut talk).starts_with("+OK"));
    let (mut scram, first) = scram_client.begin("ada", password);
    let challenge = room.pop3(&mut talk, &format!("AUTH SCRAM-SHA-256 {first}"));
    let last = scram_client.answer(&mut scram, challenge.trim_start_matches("+ "));
    let is_in = room.pop3(&mut talk, &last).starts_with("+ ");
    room.abort(&talk);
    is_in
}

pub(super) fn change(
    browser: &mut Browser,
    room: &mut Room,
    [old, new, again]: [&str; 3],
) -> String {
    forget_connections(&mut [&mut *browser]);
    let token = browser.get(room, "/mail/settings").token();
    let fields = [
        ("token", token.as_str()),
        ("old", old),
        ("new", new),
        ("again", again),
        ("do", "password"),
    ];
    let page = browser.send(room, "/mail/settings", &fields);
    if page.status == 303 { browser.get(room, page.field("Location")).text() } else { page.text() }
}

#[test]
fn a_changed_password_applies_at_once_on_every_core() {
    let (mut room, trust) = serving(30);
    let [mut ada, mut second_browser] = [(); 2].map(|()| Browser::new(&trust));
    for browser in [&mut ada, &mut second_browser] {
        browser.log_in(&mut room, "ada", "lovelace");
    }
    assert!(
        accepts_password(&mut room, "lovelace") && !accepts_scram(&mut room, "lovelace"),
        "SCRAM needs a verifier, which a hash does not give"
    );
    let before = room.machine.now;
    let page = change(&mut ada, &mut room, ["guess", "analytical", "analytical"]);
    assert!(page.contains("The current password is wrong."), "{page}");
    assert!(
        room.machine.now.since(before) >= Micros::from_secs(2),
        "a wrong current password costs time"
    );
    for [new, again, why] in [
        ["analytical", "analytica1", "don’t match"],
        ["short", "short", "at least 8 characters"],
        ["äöüß", "äöüß", "at least 8 characters"],
    ] {
        let page = change(&mut ada, &mut room, ["lovelace", new, again]);
        assert!(page.contains(why), "{page}");
    }
    let cookie = ada.cookie.clone();
    let page = change(&mut ada, &mut room, ["lovelace", "analytical", "analytical"]);
    assert!(page.contains("Password changed."), "{page}");
    assert_eq!(ada.cookie, cookie);
    let check = |room: &mut Room, ada: &mut Browser, second_browser: &mut Browser| {
        for _ in 0..2 {
            assert!(accepts_password(room, "analytical") && !accepts_password(room, "lovelace"));
        }
        assert!(accepts_scram(room, "analytical") && !accepts_scram(room, "lovelace"));
        // The delays for wrong passwords took so long that the connections have timed out.
        forget_connections(&mut [&mut *ada, &mut *second_browser]);
        assert!(asks_for_login(&second_browser.get(room, "/mail/box/1")));
        assert_eq!(ada.get(room, "/mail/box/1").status, 200);
    };
    check(&mut room, &mut ada, &mut second_browser);

    let mut room = again(room, 31, &trust, CONFIGURATION);
    forget_connections(&mut [&mut ada, &mut second_browser]);
    check(&mut room, &mut ada, &mut second_browser);
    let (_, behind) = CONFIGURATION.split_once("aliases").expect("Ada's account has the line");
    let (before, _) =
        CONFIGURATION.split_once("password_hash").expect("Ada's account has the line");
    let configured = format!("{before}password = \"configured anew\"\naliases{behind}");
    for seed in [32, 33] {
        room = again(room, seed, &trust, &configured);
        forget_connections(&mut [&mut ada]);
        // The check of a plain password ends after the start.
        room.pass(Micros::from_secs(1));
        assert_eq!(room.console_says("the password of ada@barepost.test was set"), seed == 32);
        assert!(
            accepts_password(&mut room, "configured anew")
                && !accepts_password(&mut room, "analytical")
        );
        assert!(accepts_scram(&mut room, "configured anew"));
        assert!(asks_for_login(&ada.get(&mut room, "/mail/box/1")));
    }
    ada.log_in(&mut room, "ada", "configured anew");
    assert!(
        change(&mut ada, &mut room, ["configured anew", "difference", "difference"])
            .contains("Password changed.")
    );
    let mut room = again(room, 34, &trust, &configured);
    room.pass(Micros::from_secs(1));
    assert!(
        accepts_password(&mut room, "difference")
            && !accepts_password(&mut room, "configured anew")
    );
}

#[test]
fn a_password_change_needs_the_token_of_the_session() {
    let (mut room, trust) = serving(35);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let cookie = ada.cookie.clone().expect("a ticket");
    let fields = [
        ("token", "x"),
        ("old", "lovelace"),
        ("new", "analytical"),
        ("again", "analytical"),
        ("do", "password"),
    ];
    assert_eq!(ada.send(&mut room, "/mail/settings", &fields).status, 403);
    ada.cookie = Some(format!("{}AAAA", &cookie[..cookie.len() - 4]));
    assert!(asks_for_login(&ada.send(&mut room, "/mail/settings", &fields)));
    assert!(accepts_password(&mut room, "lovelace") && !accepts_password(&mut room, "analytical"));
}
