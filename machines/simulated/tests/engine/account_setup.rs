//! The accounts of the configuration at a start: what is changed on the disk, what the console says
//! about the rest, and how the passwords of new accounts are made.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fail")]

use chance::Dice;
use machine::{Instant, Micros};
use simulated::MemoryDisk;

use super::room::{DISK_BYTES, NO_QUOTA, Room, usual_sizes};
use crate::CORES;

/// The hash of "lovelace", of little cost.
const HASHED: &str = "password_hash = \"$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ\
    $Oi7AsNkSF11/Jvy4J3BMjBTrWUr2l8Z3T8a7yI9rNnQ\"";
/// The hash of "analytical".
const OTHER_HASHED: &str = "password_hash = \"$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ\
    $Hv9CoB7U4c2EIhjlV9WofLQ+evQsO1E+RBRSoR7tq4s\"";

fn configuration(domains: &str, users: &[String]) -> String {
    format!(
        "hostname = \"mail.barepost.test\"\ndomains = [{domains}]\n\
         [network]\naddress = \"10.0.0.2/24\"\n\
         [access]\nplaintext_auth_from = [\"10.0.0.0/24\"]\n{}",
        users.concat()
    )
}

fn of(users: &[String]) -> String {
    configuration("\"barepost.test\"", users)
}

fn user(name: &str, password: &str, aliases: &[&str]) -> String {
    let aliases: Vec<String> =
        aliases.iter().map(|alias| format!("\"{alias}@barepost.test\"")).collect();
    format!(
        "[[user]]\naddress = \"{name}@barepost.test\"\n{password}\naliases = [{}]\n",
        aliases.join(", ")
    )
}

fn plain(name: &str, password: &str) -> String {
    user(name, &format!("password = \"{password}\""), &[])
}

fn started(seed: u64, disk: MemoryDisk, configuration: &str) -> Room {
    let mut room = Room::configured(seed, disk, usual_sizes(), configuration);
    room.until("the engine serves", |room| room.console_says("serving"));
    room
}

fn first(configuration: &str) -> Room {
    started(1, MemoryDisk::blank(DISK_BYTES), configuration)
}

/// Starts again, with another configuration.
fn again(room: Room, seed: u64, configuration: &str) -> Room {
    started(seed, room.machine.disk.power_cut(&mut Dice::new(seed)), configuration)
}

/// The lines of the console about accounts.
fn lines(room: &Room) -> Vec<&str> {
    room.machine
        .console
        .iter()
        .filter_map(|line| line.split_once("accounts: "))
        .map(|(_, text)| text)
        .collect()
}

/// The account among `accounts` that gets mail for `name`. A message is sent to find it. `None` if
/// `name` is refused as unknown, or no inbox has grown.
fn reader(room: &mut Room, name: &str, accounts: &[&str]) -> Option<String> {
    let mut talk = room.connect(25);
    assert!(room.smtp_reply(&mut talk).starts_with("220 "));
    assert!(room.smtp(&mut talk, "EHLO client.test").starts_with("250 "));
    assert!(room.smtp(&mut talk, "MAIL FROM:<sender@elsewhere.test>").starts_with("250 "));
    let reply = room.smtp(&mut talk, &format!("RCPT TO:<{name}@barepost.test>"));
    if !reply.starts_with("250") {
        assert!(reply.starts_with("550 5.1.1"), "{reply}");
        room.part(talk);
        return None;
    }
    let count = |room: &mut Room| {
        accounts.iter().map(|account| messages(room, account)).collect::<Vec<usize>>()
    };
    let before = count(room);
    assert!(room.smtp(&mut talk, "DATA").starts_with("354 "));
    assert!(room.smtp(&mut talk, "A message.\r\n.").starts_with("250 "));
    room.part(talk);
    let after = count(room);
    let place = (0..accounts.len()).find(|place| after[*place] > before[*place]);
    place.map(|place| accounts[place].to_string())
}

/// The number of messages in the inbox of an account with the password "lovelace".
fn messages(room: &mut Room, account: &str) -> usize {
    let reply = login(room, account, "lovelace");
    let number = reply.split(' ').nth(1).and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("{account}: {reply}"))
}

/// The reply to a login over POP3.
fn login(room: &mut Room, account: &str, password: &str) -> String {
    let mut talk = room.connect(110);
    assert!(room.line(&mut talk).starts_with("+OK"));
    assert!(room.pop3(&mut talk, &format!("USER {account}")).starts_with("+OK"));
    let reply = room.pop3(&mut talk, &format!("PASS {password}"));
    room.abort(&talk);
    room.pass(Micros::from_millis(100));
    reply
}

const WRONG: &str = "-ERR [AUTH]";

#[test]
fn edited_aliases_apply_at_the_next_start() {
    let before = of(&[
        user("ada", HASHED, &["countess", "info", "sales"]),
        user("grace", HASHED, &["admiral"]),
    ]);
    let after = of(&[
        user("ada", HASHED, &["countess", "lovelace"]),
        user("grace", HASHED, &["admiral", "info"]),
    ]);
    let both = ["ada", "grace"];
    let mut room = first(&before);
    assert_eq!(lines(&room), [""; 0]);
    assert_eq!(reader(&mut room, "info", &both).as_deref(), Some("ada"));
    let mut room = again(room, 2, &after);
    let mut said = lines(&room);
    said.sort();
    assert_eq!(
        said,
        [
            "info@barepost.test is an alias of grace@barepost.test from now on",
            "info@barepost.test is not an alias of ada@barepost.test any more",
            "lovelace@barepost.test is an alias of ada@barepost.test from now on",
            "sales@barepost.test is not an alias of ada@barepost.test any more",
        ]
    );
    for seed in 3..5 {
        for (name, account) in [
            ("countess", Some("ada")),
            ("lovelace", Some("ada")),
            ("info", Some("grace")),
            ("admiral", Some("grace")),
            ("sales", None),
        ] {
            assert_eq!(reader(&mut room, name, &both).as_deref(), account, "{name}");
        }
        room = again(room, seed, &after);
        assert_eq!(lines(&room), [""; 0]);
    }
}

#[test]
fn former_alias_becomes_the_address_of_a_new_account() {
    let before = of(&[user("ada", HASHED, &["grace", "countess"])]);
    let after = of(&[user("ada", HASHED, &["countess"]), user("grace", HASHED, &[])]);
    let room = first(&before);
    let mut room = again(room, 2, &after);
    assert_eq!(lines(&room), ["grace@barepost.test is not an alias of ada@barepost.test any more"]);
    assert_eq!(reader(&mut room, "grace", &["ada", "grace"]).as_deref(), Some("grace"));
}

#[test]
fn address_of_an_account_is_not_made_an_alias() {
    let before = of(&[user("ada", HASHED, &[]), user("grace", HASHED, &["admiral"])]);
    let after = of(&[user("ada", HASHED, &["grace", "admiral"])]);
    let mut room = first(&before);
    for seed in 2..4 {
        room = again(room, seed, &after);
        let said = lines(&room).join("\n");
        assert!(said.contains("grace@barepost.test is not in the configuration"), "{said}");
        assert!(said.contains("grace@barepost.test has an account of its own and is not an alias of ada@barepost.test"), "{said}");
        assert_eq!(
            said.contains("admiral@barepost.test is an alias of ada@barepost.test from now on"),
            seed == 2
        );
        assert_eq!(reader(&mut room, "grace", &["ada", "grace"]).as_deref(), Some("grace"));
        assert_eq!(reader(&mut room, "admiral", &["ada", "grace"]).as_deref(), Some("ada"));
    }
}

#[test]
fn unconfigured_accounts_stay_and_are_named() {
    let gone: Vec<String> = (0..25).map(|number| format!("user{number}")).collect();
    let mut users: Vec<String> = gone.iter().map(|name| user(name, HASHED, &[])).collect();
    users.push(user("ada", HASHED, &[]));
    users.push(user("eve", HASHED, &[]).replace("barepost.test", "old.test"));
    let room = first(&configuration("\"barepost.test\", \"old.test\"", &users));
    let mut room = again(room, 2, &of(&users[25..26]));
    let said = lines(&room);
    let about_users = said
        .iter()
        .filter(|line| line.starts_with("user") && line.contains("the account and its mail stay"));
    assert_eq!(about_users.count(), 10, "{said:?}");
    assert!(said.contains(&"and 15 more accounts, not listed"), "{said:?}");
    assert!(
        said.iter()
            .any(|line| line.starts_with("old.test is not in `domains`; mail to its 1 account")),
        "{said:?}"
    );
    assert_eq!(said.len(), 12);
    assert_eq!(reader(&mut room, "user7", &["ada", "user7"]).as_deref(), Some("user7"));
    assert!(login(&mut room, "eve@old.test", "lovelace").starts_with("+OK"));
    let mut talk = room.connect(25);
    room.smtp_reply(&mut talk);
    room.smtp(&mut talk, "EHLO client.test");
    room.smtp(&mut talk, "MAIL FROM:<sender@elsewhere.test>");
    let reply = room.smtp(&mut talk, "RCPT TO:<eve@old.test>");
    assert!(reply.starts_with("550 5.7.1"), "{reply}");
}

#[test]
fn power_cuts_while_accounts_change_lose_no_address() {
    let before =
        of(&[user("ada", HASHED, &["info", "sales"]), user("grace", HASHED, &["admiral"])]);
    let after = of(&[
        user("ada", OTHER_HASHED, &["lovelace", "admiral"]),
        user("grace", HASHED, &["info"]),
        user("sales", HASHED, &[]),
    ]);
    let image = first(&before).machine.disk.image();
    for writes in 0.. {
        let disk = MemoryDisk::of_image(&image).expect("the image is valid");
        let mut room = Room::configured(writes, disk, usual_sizes(), &after);
        let until = room.machine.disk.writes() + writes;
        room.until("the cut", |room| {
            room.machine.disk.writes() >= until || room.console_says("serving")
        });
        let is_over = room.console_says("serving");
        let mut room = again(room, writes, &after);
        let all = ["grace", "sales"];
        assert!(login(&mut room, "ada", "lovelace").starts_with(WRONG));
        assert!(login(&mut room, "ada", "analytical").starts_with("+OK"));
        for (name, account) in [("info", "grace"), ("sales", "sales"), ("grace", "grace")] {
            assert_eq!(reader(&mut room, name, &all).as_deref(), Some(account), "{writes} {name}");
        }
        for name in ["lovelace", "admiral"] {
            assert!(room.deliver(&format!("{name}@barepost.test"), b"x\r\n").starts_with("250"));
        }
        assert!(login(&mut room, "ada", "analytical").starts_with("+OK 2 "));
        if is_over {
            assert!(writes > 4, "{writes}");
            break;
        }
    }
}

/// Sends these commands to a port as a client. Returns the last reply.
fn dialog(room: &mut Room, port: u16, commands: &[&str]) -> String {
    let mut talk = room.connect(port);
    assert!(room.smtp_reply(&mut talk).starts_with("220 "));
    let replies: Vec<String> =
        commands.iter().map(|command| room.smtp(&mut talk, command)).collect();
    room.abort(&talk);
    room.pass(Micros::from_millis(100));
    replies.last().expect("there is a reply").to_string()
}

fn rcpt(room: &mut Room, name: &str) -> String {
    let recipient = format!("RCPT TO:<{name}@barepost.test>");
    dialog(room, 25, &["EHLO client.test", "MAIL FROM:<sender@elsewhere.test>", &recipient])
}

#[test]
fn address_without_its_account_refuses_mail_for_now() {
    const HELD: [&str; 6] = [
        "EHLO client.test",
        "AUTH PLAIN AGFkYUBiYXJlcG9zdC50ZXN0AGxvdmVsYWNl",
        "MAIL FROM:<ada@barepost.test> HOLDFOR=600",
        "RCPT TO:<orders@new.test>",
        "DATA",
        "From: ada@barepost.test\r\nSubject: held\r\n\r\n.",
    ];
    let grace = || format!("{}catch_all = [\"barepost.test\"]\n", user("grace", HASHED, &[]));
    let orders = user("orders", HASHED, &[]).replace("barepost.test", "new.test");
    let users = [user("ada", HASHED, &[]), grace(), user("sales", HASHED, &[]), orders];
    let before = of(&[user("ada", HASHED, &["sales"]), grace(), NO_QUOTA.to_string()]);
    let domains = "\"barepost.test\", \"new.test\"";
    let after = [configuration(domains, &users), NO_QUOTA.to_string()].concat();
    let mut room = started(1, MemoryDisk::blank(2 << 20), &before);
    assert!(dialog(&mut room, 587, &HELD).starts_with("250"));
    let body = b"A line of its text, to fill the disk with\r\n".repeat(1_000);
    while rcpt(&mut room, "ada").starts_with("250")
        && room.deliver("ada@barepost.test", &body).starts_with("250")
    {}
    let mut room = again(room, 2, &after);
    let refused = "sales@barepost.test cannot be set up: the disk is full";
    assert!(room.console_says(refused), "{:?}", room.machine.console);

    let mut talk = room.log_in("ada");
    let filled = room.pop3(&mut talk, "STAT");
    let filled: u32 = filled.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("a number");
    for number in 1..=filled {
        assert!(room.pop3(&mut talk, &format!("DELE {number}")).starts_with("+OK"));
    }
    assert!(room.pop3(&mut talk, "QUIT").starts_with("+OK"));
    room.close(&talk);
    room.until_nothing_is_in_use();
    for name in ["sales", "SALES", "sales+orders"] {
        let reply = rcpt(&mut room, name);
        assert!(reply.starts_with("450 4.2.1"), "{name}: {reply}");
    }
    assert_eq!(reader(&mut room, "unknown", &["ada", "grace"]).as_deref(), Some("grace"));
    room.pass(Micros::from_secs(1200));
    // The held message is not returned to its sender.
    assert_eq!(["ada", "grace"].map(|name| messages(&mut room, name)), [0, 1]);

    let mut room = again(room, 3, &after);
    assert!(!room.console_says(refused), "{:?}", room.machine.console);
    room.pass(Micros::from_secs(1200));
    let all = ["ada", "grace", "sales", "orders@new.test"];
    assert_eq!(all.map(|name| messages(&mut room, name)), [0, 1, 0, 1]);
    assert_eq!(reader(&mut room, "sales", &["ada", "grace", "sales"]).as_deref(), Some("sales"));
}

const NAMES: [&str; 6] = ["ada", "grace", "mary", "jean", "hedy", "rosa"];

/// A configuration with these accounts, each with the password "lovelace".
fn with_plain(names: &[&str]) -> String {
    of(&names.iter().map(|name| plain(name, "lovelace")).collect::<Vec<_>>())
}

/// A machine that begins its first start. It takes 20 seconds for each hash.
fn slow_start(seed: u64, names: &[&str]) -> Room {
    let disk = MemoryDisk::blank(DISK_BYTES);
    let mut room = Room::configured(seed, disk, usual_sizes(), &with_plain(names));
    room.machine.computing = Micros::from_secs(10);
    room
}

#[test]
fn new_account_gets_mail_before_its_password_is_made() {
    let mut room = slow_start(1, &NAMES);
    room.until("the engine serves", |room| room.console_says("serving"));
    // All hashes together take 120 seconds. A hash that has begun is not cut.
    assert!(room.machine.now < Instant(100_000_000), "{:?}", room.machine.now);
    assert!(
        lines(&room).iter().any(|line| line.contains(" of 6 new accounts can log in; ")),
        "{:?}",
        room.machine.console
    );
    let waiting = NAMES
        .into_iter()
        .rfind(|name| login(&mut room, name, "lovelace").starts_with("-ERR [SYS/TEMP]"))
        .expect("an account is not ready");
    assert!(room.deliver(&format!("{waiting}@barepost.test"), b"x\r\n").starts_with("250"));
    assert!(login(&mut room, waiting, "guess").starts_with("-ERR [SYS/TEMP]"));
    room.machine.computing = Micros(0);
    room.until("all are ready", |room| room.console_says("all 6 new accounts can log in"));
    for name in NAMES {
        let count = if name == waiting { "+OK 1 " } else { "+OK 0 " };
        assert!(login(&mut room, name, "lovelace").starts_with(count), "{name}");
    }
    assert!(login(&mut room, waiting, "guess").starts_with(WRONG));
}

#[test]
fn progress_of_new_accounts_is_printed_sparsely() {
    let mut room = slow_start(2, &NAMES);
    room.until("all are ready", |room| room.console_says("all 6 new accounts can log in"));
    let told =
        lines(&room).iter().filter(|line| line.contains(" of 6 new accounts can log in; ")).count();
    assert!((1..=5).contains(&told), "{:?}", room.machine.console);
}

#[test]
fn accounts_that_are_made_quickly_are_ready_when_it_serves() {
    let mut room = first(&with_plain(&NAMES));
    assert_eq!(lines(&room), [""; 0]);
    for name in NAMES {
        assert!(login(&mut room, name, "lovelace").starts_with("+OK 0 "), "{name}");
    }
}

#[test]
fn no_core_listens_before_all_cores_are_ready() {
    for seed in 0..10 {
        let disk = MemoryDisk::blank(DISK_BYTES);
        let mut room = Room::configured(seed, disk, usual_sizes(), &with_plain(&NAMES));
        room.machine.computing = Micros::from_millis(5);
        let hosts: Vec<usize> = (0..8).map(|_| room.add_host()).collect();
        let mut talks = Vec::new();
        room.until("a core accepts a client", |room| {
            if room.engines.in_use().sessions > 0 {
                return true;
            }
            talks.iter().for_each(|talk| room.abort(talk));
            talks = hosts.iter().map(|host| room.connect_from(*host, 110)).collect();
            room.pass(Micros::from_millis(5));
            false
        });
        talks.iter().for_each(|talk| room.abort(talk));
        for name in NAMES {
            let reply = login(&mut room, name, "lovelace");
            assert!(reply.starts_with("+OK 0 "), "{seed} {name}: {reply}");
        }
    }
}

#[test]
fn unconfigured_account_without_a_password_is_no_new_account() {
    // With several cores, the others hash the password before the power cut.
    if CORES > 1 {
        return;
    }
    let mut room = slow_start(1, &NAMES[..2]);
    room.until("the engine serves", |room| room.console_says("serving"));
    assert!(login(&mut room, "grace", "lovelace").starts_with("-ERR [SYS/TEMP]"));
    let mut room = again(room, 2, &with_plain(&NAMES[..1]));
    assert_eq!(
        lines(&room),
        ["grace@barepost.test is not in the configuration and has no password; to read its mail, \
          add a user with this address and a password"]
    );
    for password in ["lovelace", ""] {
        assert!(login(&mut room, "grace", password).starts_with(WRONG));
    }
    assert!(room.deliver("grace@barepost.test", b"x\r\n").starts_with("250"));
    let mut room = again(room, 3, &with_plain(&NAMES[..2]));
    assert!(login(&mut room, "grace", "lovelace").starts_with("+OK 1 "));
}

#[test]
fn next_start_makes_passwords_that_a_power_cut_left() {
    for seed in 0..6 {
        let mut room = slow_start(seed, &NAMES[..3]);
        room.until("the engine serves", |room| room.console_says("serving"));
        assert!(room.deliver("mary@barepost.test", b"x\r\n").starts_with("250"));
        room.machine.computing = Micros::from_millis(1);
        (0..seed * seed * 40).for_each(|_| room.step());
        let mut room = again(room, seed, &with_plain(&NAMES[..3]));
        for (name, count) in [("ada", 0), ("grace", 0), ("mary", 1)] {
            let reply = login(&mut room, name, "lovelace");
            assert!(reply.starts_with(&format!("+OK {count} ")), "{name}: {reply}");
        }
    }
}

const SET: &str = "the password of ada@barepost.test was set from the configuration";

#[test]
fn edited_password_applies_and_ends_sessions() {
    let [old, new] = ["lovelace", "analytical"].map(|password| of(&[plain("ada", password)]));
    let room = first(&old);
    let disk = room.machine.disk.power_cut(&mut Dice::new(2));
    let mut room = Room::configured(2, disk, usual_sizes(), &new);
    room.machine.computing = Micros::from_secs(10);
    room.until("the engine serves", |room| room.console_says("serving"));
    // The check does not delay the start.
    assert!(!room.console_says(SET));
    let mut talk = room.log_in("ada");
    room.until("the password is set", |room| room.console_says(SET));
    room.machine.computing = Micros(0);
    assert_eq!(room.pop3(&mut talk, "STAT"), "-ERR [AUTH] Your password has changed, log in again");
    room.abort(&talk);
    for seed in 3..5 {
        assert!(login(&mut room, "ada", "lovelace").starts_with(WRONG));
        assert!(login(&mut room, "ada", "analytical").starts_with("+OK"));
        room = again(room, seed, &new);
        room.pass(Micros::from_secs(30));
        assert_eq!(lines(&room), [""; 0]);
    }
}

#[test]
fn password_changes_between_hash_and_plain_are_noticed() {
    let hashed = of(&[user("ada", HASHED, &[])]);
    let room = first(&hashed);
    // The password is the same, so nothing changes.
    let mut room = again(room, 2, &of(&[plain("ada", "lovelace")]));
    room.pass(Micros::from_secs(30));
    assert_eq!(lines(&room), [""; 0]);
    let mut room = again(room, 3, &of(&[plain("ada", "analytical")]));
    room.until("the password is set", |room| room.console_says(SET));
    assert!(login(&mut room, "ada", "analytical").starts_with("+OK"));
    let mut room = again(room, 4, &hashed);
    assert_eq!(lines(&room), [SET]);
    assert!(login(&mut room, "ada", "analytical").starts_with(WRONG));
    assert!(login(&mut room, "ada", "lovelace").starts_with("+OK"));
}
