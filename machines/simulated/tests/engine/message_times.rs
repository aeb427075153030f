//! Times and places of messages in the webmail: times in the user's zone, the time in a message's
//! date field, lists in the order of time, permanent addresses, and the way back to a list.

#![allow(clippy::expect_used, reason = "a test may fail")]

use machine::Micros;

use super::room::{CONFIGURATION, Room};
use super::settings::again;
use super::webmail::{Browser, between, serving};

/// Delivers a message with this date field.
fn deliver_dated(room: &mut Room, subject: &str, date: &str) {
    let message = format!(
        "From: Charles Babbage <charles@example.org>\r\nTo: ada@barepost.test\r\nSubject: {subject}\r\nDate: {date}\r\n\r\nIt computes.\r\n"
    );
    assert!(room.deliver("ada@barepost.test", message.as_bytes()).starts_with("250"));
}

fn set_zone(room: &mut Room, browser: &mut Browser, zone: &str) -> String {
    let token = browser.get(room, "/mail/settings").token();
    let fields = [("token", token.as_str()), ("zone", zone), ("do", "save")];
    let page = browser.send(room, "/mail/settings", &fields);
    if page.status == 303 { "saved".into() } else { page.text() }
}

/// The day in the form of a query and the time of day, so many hours after `moment`.
fn shifted(moment: &str, hours: u32) -> (String, String) {
    let day: u32 = moment[8..10].parse().expect("a day");
    let hour: u32 = moment[11..13].parse().expect("an hour");
    let (day, hour) =
        if hour + hours >= 24 { (day + 1, hour + hours - 24) } else { (day, hour + hours) };
    (format!("{}-{day:02}", &moment[..7]), format!("{hour:02}{}", &moment[13..16]))
}

#[test]
fn times_and_search_days_follow_the_users_zone() {
    let (mut room, trust) = serving(61);
    deliver_dated(&mut room, "Engine", "Sat, 03 Jan 2026 10:00:00 +0000");
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let refused = set_zone(&mut room, &mut ada, "Mars/Olympus_Mons");
    assert!(refused.contains("There is no such time zone."), "{refused}");
    // Kiritimati is always 14 hours ahead of UTC.
    for (zone, hours) in [("", 0), ("Pacific/Kiritimati", 14)] {
        assert_eq!(set_zone(&mut room, &mut ada, zone), "saved");
        let list = ada.get(&mut room, "/mail/box/1").text();
        let moment = between(&list, "<time datetime=\"", "\"").expect("a time").to_string();
        let (day, time) = shifted(&moment, hours);
        assert!(list.contains(&format!(">{time}</time>")), "{time}: {list}");
        for (words, is_found) in [(format!("after:{day}"), true), (format!("before:{day}"), false)]
        {
            let found = ada.get(&mut room, &format!("/mail/search?q={words}")).text();
            assert_eq!(found.contains("Engine"), is_found, "{words}: {found}");
        }
    }
    // A zone that the browser reports does not replace the setting.
    let token = ada.get(&mut room, "/mail/settings").token();
    let fields = [("token", token.as_str()), ("zone", "Pacific/Pitcairn"), ("do", "zone")];
    assert_eq!(ada.send(&mut room, "/mail/settings", &fields).status, 204);
    let settings = ada.get(&mut room, "/mail/settings").text();
    assert!(settings.contains("name=\"zone\" value=\"Pacific/Kiritimati\""), "{settings}");
    assert_eq!(set_zone(&mut room, &mut ada, ""), "saved");
    assert_eq!(ada.send(&mut room, "/mail/settings", &fields).status, 204);
    let settings = ada.get(&mut room, "/mail/settings").text();
    assert!(settings.contains("name=\"zone\" value=\"Pacific/Pitcairn\""), "{settings}");
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

#[test]
fn the_date_field_of_a_message_is_shown_and_quoted() {
    let (mut room, trust) = serving(62);
    deliver_dated(&mut room, "Engine", "Fri, 03 Oct 2025 14:20:00 -0800");
    deliver_dated(&mut room, "Loom", "Fri, 03 Oct 2425 14:20:00 -0800");
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let page = ada.get(&mut room, "/mail/box/1/1").text();
    let sent = "sent <time datetime=\"2025-10-03T22:20:00Z\">3 Oct 2025, 22:20</time>";
    assert!(page.contains(sent), "{page}");
    let reply = ada.get(&mut room, "/mail/compose?reply=1.1").text();
    assert!(reply.contains("On 3 Oct 2025, 22:20 (+0000), Charles Babbage wrote:"), "{reply}");
    let forward = ada.get(&mut room, "/mail/compose?forward=1.1").text();
    assert!(forward.contains("Date: 3 Oct 2025, 14:20 (-0800)"), "{forward}");
    // A date in the future is shown, but not quoted.
    let page = ada.get(&mut room, "/mail/box/1/2").text();
    assert!(page.contains("<time datetime=\"2425-10-03T22:20:00Z\">"), "{page}");
    let reply = ada.get(&mut room, "/mail/compose?reply=1.2").text();
    assert!(reply.contains("wrote:") && !reply.contains("2425"), "{reply}");
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

/// The subjects of the rows of a list, in their order.
fn subjects(list: &str) -> Vec<&str> {
    list.split("<span class=\"subject\">")
        .skip(1)
        .filter_map(|rest| rest.split('<').next())
        .collect()
}

#[test]
fn an_undone_move_keeps_the_place_in_the_list() {
    let (mut room, trust) = serving(63);
    let names = ["First", "Second", "Third", "Fourth"];
    for name in names {
        deliver_dated(&mut room, name, "Sat, 03 Jan 2026 10:00:00 +0000");
        room.pass(Micros::from_secs(2));
    }
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let token = ada.get(&mut room, "/mail/compose").token();
    let list = ada.get(&mut room, "/mail/box/1").text();
    let newest_first = ["Fourth", "Third", "Second", "First"];
    assert_eq!(subjects(&list), newest_first);
    for key in ["1.2", "1.3"] {
        let filing = [("token", &*token), ("here", "/mail/box/1"), ("key", key), ("do", "archive")];
        let after = ada.post(&mut room, "/mail/act", &filing).text();
        let undo = between(&after, "name=\"what\" value=\"", "\"").expect("an undo").to_string();
        let back = ada.post(&mut room, "/mail/undo", &[("token", &token), ("what", &undo)]).text();
        assert_eq!(subjects(&back), newest_first);
    }
    // In the archive the message that was sent later comes first, although it was moved first.
    for key in ["1.6", "1.1"] {
        let filing = [("token", &*token), ("here", "/mail/box/1"), ("key", key), ("do", "archive")];
        ada.post(&mut room, "/mail/act", &filing);
    }
    assert_eq!(subjects(&ada.get(&mut room, "/mail/box/4").text()), ["Third", "First"]);
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

#[test]
fn a_list_goes_on_from_the_place_of_a_moved_message() {
    // In the second mailbox the message of the place came back, and has the highest UID.
    for (seed, came_back) in [(69, false), (70, true)] {
        let (mut room, trust) = serving(seed);
        for number in 0..60 {
            let date = "Sat, 03 Jan 2026 10:00:00 +0000";
            deliver_dated(&mut room, &format!("Number-{number}."), date);
            room.pass(Micros::from_secs(2));
        }
        let mut ada = Browser::new(&trust);
        ada.log_in(&mut room, "ada", "lovelace");
        let token = ada.get(&mut room, "/mail/compose").token();
        let file = |ada: &mut Browser, room: &mut Room, key: &str, to: &str| {
            let form = [("token", &*token), ("here", "/mail/"), ("key", key), ("do", to)];
            ada.post(room, "/mail/act", &form);
        };
        if came_back {
            file(&mut ada, &mut room, "1.11", "archive");
            file(&mut ada, &mut room, "4.1", "inbox");
        }
        let list = ada.get(&mut room, "/mail/box/1").text();
        assert_eq!(subjects(&list).last(), Some(&"Number-10."));
        let place = between(&list, "<a href=\"/mail/box/1?before=", "\"").expect("a link");
        file(&mut ada, &mut room, if came_back { "1.61" } else { "1.11" }, "trash");
        let older = ada.get(&mut room, &format!("/mail/box/1?before={place}")).text();
        let expected: Vec<_> = (0..10).rev().map(|number| format!("Number-{number}.")).collect();
        assert_eq!(subjects(&older), expected);
        ada.hang_up(&mut room);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn the_address_of_a_message_survives_moves_and_power_cuts() {
    let (mut room, trust) = serving(64);
    deliver_dated(&mut room, "Engine", "Sat, 03 Jan 2026 10:00:00 +0000");
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let token = ada.get(&mut room, "/mail/compose").token();
    let list = ada.get(&mut room, "/mail/box/1").text();
    let address = between(&list, "class=\"what\" href=\"", "\"").expect("a row").to_string();
    assert!(address.starts_with("/mail/message/"), "{address}");
    for (key, to) in [("1.1", "archive"), ("4.1", "inbox"), ("1.2", "trash")] {
        let page = ada.get(&mut room, &address);
        assert!(page.status == 200 && page.text().contains("It computes."), "{}", page.text());
        let filing = [("token", &*token), ("here", &*address), ("key", key), ("do", to)];
        let moved = ada.post(&mut room, "/mail/act", &filing).text();
        assert!(moved.contains("<h1 class=\"subject\" dir=\"auto\">Engine</h1>"), "{moved}");
    }
    let mut room = again(room, 65, &trust, CONFIGURATION);
    ada.connection = None;
    let page = ada.get(&mut room, &address).text();
    assert!(page.contains("It computes.") && page.contains("value=\"6.1\""), "{page}");
    let erasing = [("token", &*token), ("here", &*address), ("key", "6.1"), ("do", "erase")];
    assert_eq!(ada.post(&mut room, "/mail/act", &erasing).status, 404);
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

#[test]
fn a_search_lists_messages_of_all_folders_by_date() {
    let (mut room, trust) = serving(68);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let token = ada.get(&mut room, "/mail/compose").token();
    for number in 0..120 {
        deliver_dated(&mut room, &format!("Number-{number}."), "Sat, 03 Jan 2026 10:00:00 +0000");
        // Many messages arrive in the same second.
        if number % 30 == 29 {
            room.pass(Micros::from_secs(2));
        }
    }
    // Every third message is archived, and some of them come back.
    for (key, to) in (1..=120)
        .step_by(3)
        .map(|uid| (format!("1.{uid}"), "archive"))
        .chain((1..=40).step_by(9).map(|uid| (format!("4.{uid}"), "inbox")))
    {
        let form = [("token", &*token), ("here", "/mail/"), ("key", &*key), ("do", to)];
        ada.post(&mut room, "/mail/act", &form);
    }
    let mut path = "/mail/search?q=subject%3Anumber".to_string();
    let (mut times, mut seen) = (Vec::new(), Vec::new());
    loop {
        let page = ada.get(&mut room, &path).text();
        let moments = page.split("<time datetime=\"").skip(1);
        times.extend(moments.map(|rest| rest[..20].to_string()));
        seen.extend(subjects(&page).into_iter().map(String::from));
        let older = between(&page, "<a href=\"/mail/search", " rel=\"next\"");
        match older.and_then(|link| between(link, "before=", "\"")) {
            Some(place) => path = format!("/mail/search?q=subject%3Anumber&before={place}"),
            None => break,
        }
    }
    assert!(times.is_sorted_by(|one, other| one >= other), "{times:?}");
    assert_eq!(seen.len(), 120, "{seen:?}");
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 120, "{seen:?}");
}

#[test]
fn emptying_trash_deletes_what_the_page_showed() {
    let (mut room, trust) = serving(67);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let token = ada.get(&mut room, "/mail/compose").token();
    for number in 0..3 {
        deliver_dated(&mut room, &format!("Number-{number}."), "Sat, 03 Jan 2026 10:00:00 +0000");
    }
    let act = |ada: &mut Browser, room: &mut Room, action, keys: &[&str]| {
        let mut form = vec![("token", token.as_str()), ("here", "/mail/box/6"), ("do", action)];
        form.extend(keys.iter().map(|key| ("key", *key)));
        ada.post(room, "/mail/act", &form).text()
    };
    act(&mut ada, &mut room, "trash", &["1.1", "1.2"]);
    let list = ada.get(&mut room, "/mail/box/6").text();
    let last = between(&list, "name=\"last\" value=\"", "\"").expect("a field").to_string();
    // A message that came into Trash after the page was made stays.
    act(&mut ada, &mut room, "trash", &["1.3"]);
    let mut empty = |last: Option<&str>| {
        let mut form = vec![("token", &*token), ("here", "/mail/box/6"), ("do", "empty-trash")];
        form.extend(last.map(|last| ("last", last)));
        ada.post(&mut room, "/mail/act", &form).text()
    };
    for last in [None, Some("0"), Some("x")] {
        let unchanged = empty(last);
        assert!(unchanged.contains("Nothing was changed."), "{unchanged}");
        assert_eq!(subjects(&unchanged), ["Number-2.", "Number-1.", "Number-0."]);
    }
    let emptied = empty(Some(&last));
    assert!(emptied.contains("2 messages deleted forever."), "{emptied}");
    assert_eq!(subjects(&emptied), ["Number-2."]);
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

#[test]
fn marks_that_change_nothing_are_not_announced() {
    let (mut room, trust) = serving(71);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let token = ada.get(&mut room, "/mail/compose").token();
    deliver_dated(&mut room, "Engine", "Sat, 03 Jan 2026 10:00:00 +0000");
    let mut act = |action| {
        let form = [("token", &*token), ("here", "/mail/box/1"), ("do", action), ("key", "1.1")];
        ada.post(&mut room, "/mail/act", &form).text()
    };
    let unread = act("unread");
    assert!(!unread.contains("class=\"notice"), "it is unread already: {unread}");
    assert!(act("read").contains("Marked as read."));
    assert!(act("unread").contains("Marked as unread."));
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

#[test]
fn a_message_leads_back_to_the_list_from_which_it_was_opened() {
    let (mut room, trust) = serving(66);
    for number in 0..60 {
        deliver_dated(&mut room, &format!("Number-{number}."), "Sat, 03 Jan 2026 10:00:00 +0000");
    }
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let newest = ada.get(&mut room, "/mail/box/1").text();
    let older = between(&newest, "<a href=\"/mail/box/1?before=", "\"").expect("a link");
    let older = format!("/mail/box/1?before={older}");
    for list in ["/mail/box/1", &older, "/mail/search?q=number-3"] {
        // The second time the rows are in the cache.
        for _ in 0..2 {
            let rows = ada.get(&mut room, list).text();
            let address =
                between(&rows, "class=\"what\" href=\"", "\"").expect("a row").to_string();
            let page = ada.get(&mut room, &address).text();
            assert!(page.contains(&format!("class=\"back\" href=\"{list}\"")), "{page}");
            assert!(page.contains(&format!("name=\"here\" value=\"{list}\"")), "{page}");
        }
    }
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}
