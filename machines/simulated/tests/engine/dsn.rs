//! Delivery status notifications: the server passes the request to hosts that support DSN, and
//! otherwise sends the reports itself.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use simulated::MemoryDisk;

use super::relay::{MESSAGE, Mood, World, serving, serving_on};
use super::room::{DISK_BYTES, Room};

const FROM_ADA: &str = "<ada@barepost.test> BODY=8BITMIME";

/// Submits a message as Ada. Returns Ada's inbox two hours later.
fn inbox_after_submission(
    seed: u64,
    mood: Mood,
    from: &str,
    to: &[&str],
    message: &[u8],
) -> (Room, World, Vec<String>) {
    let (mut room, mut world) = serving(seed, mood);
    world.submit_with(&mut room, from, to, message);
    world.pass(&mut room, 7200);
    let inbox = world.inbox(&mut room, "ada");
    (room, world, inbox)
}

/// The actions that the reports state for a recipient.
fn actions<'a>(inbox: &'a [String], address: &str) -> Vec<&'a str> {
    let of = |text: &&String| text.contains(&format!("Final-Recipient: rfc822; {address}\r\n"));
    let action =
        |text: &'a String| text.split("Action: ").nth(1).and_then(|rest| rest.lines().next());
    inbox.iter().filter(of).filter_map(action).collect()
}

#[test]
fn dsn_requests_go_to_hosts_that_support_dsn() {
    let to = [
        "<bob@far.test> NOTIFY=FAILURE,SUCCESS ORCPT=rfc822;bob+2Bold@old.test",
        "<carol@far.test> NOTIFY=NEVER",
        "<dave@far.test>",
    ];
    let (mut room, world, inbox) = inbox_after_submission(
        1300,
        Mood::Tells,
        "<ada@barepost.test> ENVID=a+20b, RET=FULL",
        &to,
        b"Subject: x\r\n\r\n",
    );
    let mut parameters: Vec<_> =
        world.peer.taken.iter().map(|taken| taken.parameters.clone()).collect();
    parameters.sort();
    let mail = "RET=FULL ENVID=a+20b+2C";
    let bob = "NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;bob+2Bold@old.test";
    assert_eq!(parameters, [vec![mail, "NOTIFY=NEVER", ""], vec![mail, bob]]);
    assert_eq!(inbox, [""; 0]);
    room.until_nothing_is_in_use();
}

#[test]
fn success_is_reported_as_relayed_if_the_host_lacks_dsn() {
    let to = [
        "<bob@far.test> NOTIFY=SUCCESS ORCPT=rfc822;bob+2Bold@old.test",
        "<carol@far.test>",
        "<dave@far.test> NOTIFY=NEVER",
        "<grace@barepost.test> NOTIFY=SUCCESS,DELAY",
        "<postmaster@barepost.test>",
    ];
    let from = "<ada@barepost.test> BODY=8BITMIME ENVID=QQ1 RET=FULL";
    let (mut room, mut world, inbox) =
        inbox_after_submission(1301, Mood::Takes, from, &to, MESSAGE);
    assert_eq!(inbox.len(), 3, "{inbox:?}");
    assert_eq!(actions(&inbox, "bob@far.test"), ["relayed"]);
    assert_eq!(actions(&inbox, "grace@barepost.test"), ["delivered"]);
    let report =
        inbox.iter().find(|text| text.contains("Action: relayed")).expect("a report says relayed");
    for field in [
        "Return-Path: <>\r\n",
        "\r\nTo: <ada@barepost.test>\r\n",
        "\r\nOriginal-Envelope-Id: QQ1\r\n",
        "\r\nOriginal-Recipient: rfc822; bob+old@old.test\r\n",
        "\r\nStatus: 2.1.9\r\n",
        "\r\nRemote-MTA: dns; mx.far.test\r\n",
        "\r\nDiagnostic-Code: smtp; 250 2.0.0 Taken\r\n",
        "\r\nSubject: Away\r\n",
    ] {
        assert!(report.contains(field), "{field}: {report}");
    }
    let is_body = |text: &&String| text.contains("..two");
    assert_eq!(inbox.iter().filter(is_body).count(), 1, "only the message itself has its text");
    assert_eq!(world.inbox(&mut room, "grace").len(), 1);
    assert_eq!(world.peer.taken.iter().map(|taken| taken.to.len()).sum::<usize>(), 3);
    world.pass(&mut room, 90_000);
    assert_eq!(world.inbox(&mut room, "ada").len(), 3);
    room.until_nothing_is_in_use();
}

#[test]
fn each_recipient_of_a_domain_is_reported() {
    let friends: Vec<String> =
        (0..11).map(|number| format!("<friend{number}@far.test> NOTIFY=SUCCESS")).collect();
    let others: Vec<String> = (0..11).map(|number| format!("<other{number}@far.test>")).collect();
    let to: Vec<&str> =
        friends.iter().zip(&others).flat_map(|(friend, other)| [&friend[..], other]).collect();
    let (_, world, inbox) = inbox_after_submission(1302, Mood::Takes, FROM_ADA, &to, MESSAGE);
    assert_eq!(world.peer.taken.iter().map(|taken| taken.to.len()).sum::<usize>(), 22);
    // An entry that must be reported on success has up to four recipients, and causes one report.
    assert_eq!(inbox.len(), 3, "{inbox:?}");
    for number in 0..11 {
        let named = format!("Final-Recipient: rfc822; friend{number}@far.test\r\nAction: relayed");
        assert_eq!(inbox.iter().map(|text| text.matches(&named).count()).sum::<usize>(), 1);
    }
    assert!(inbox.iter().all(|text| !text.contains("; other")));
}

#[test]
fn failure_reports_honour_notify_and_ret() {
    let large = [MESSAGE, &b"Line.\r\n".repeat(170_000)].concat();
    for (number, (returned, notify, message, reports, is_whole)) in [
        ("", "", MESSAGE, 1, false),
        ("", " NOTIFY=FAILURE", MESSAGE, 1, false),
        (" RET=HDRS", " NOTIFY=FAILURE,DELAY", MESSAGE, 1, false),
        (" RET=FULL", " NOTIFY=SUCCESS,FAILURE", MESSAGE, 1, true),
        (" RET=FULL SMTPUTF8", "", MESSAGE, 1, true),
        (" RET=FULL", "", &large, 1, false),
        ("", " NOTIFY=NEVER", MESSAGE, 0, false),
        ("", " NOTIFY=SUCCESS", MESSAGE, 0, false),
        ("", " NOTIFY=DELAY", MESSAGE, 0, false),
    ]
    .into_iter()
    .enumerate()
    {
        let (from, to) = (format!("{FROM_ADA}{returned}"), format!("<bob@far.test>{notify}"));
        let mood = if returned.contains("UTF8") { Mood::Takes } else { Mood::RefusesBob };
        let (mut room, world, inbox) =
            inbox_after_submission(1310 + number as u64, mood, &from, &[&to], message);
        assert_eq!(
            (world.peer.taken.len(), inbox.len()),
            (0, reports),
            "{returned}{notify}: {inbox:?}"
        );
        for report in &inbox {
            let kind = if returned.contains("UTF8") { "message/global" } else { "message/rfc822" };
            let start = format!(
                "Content-Type: {kind}\r\nContent-Transfer-Encoding: 8bit\r\n\r\nReceived: from client.test"
            );
            assert_eq!(report.contains(&start), is_whole, "{report}");
            let message = String::from_utf8_lossy(message);
            let end = report.split_once(&*message).map_or("", |(_, end)| end);
            assert_eq!(
                end.starts_with("\r\n--=_r") && end.ends_with("--\r\n"),
                is_whole,
                "{report}"
            );
        }
        room.until_nothing_is_in_use();
    }
}

#[test]
fn no_reports_are_sent_for_the_null_sender() {
    let to = ["<bob@far.test> NOTIFY=SUCCESS", "<grace@barepost.test> NOTIFY=SUCCESS"];
    let (mut room, mut world, inbox) =
        inbox_after_submission(1303, Mood::Takes, "<>", &to, b"Subject: x\r\n\r\n");
    assert_eq!(
        (world.peer.taken.len(), world.inbox(&mut room, "grace").len(), inbox.len()),
        (1, 1, 0)
    );
    room.until_nothing_is_in_use();
}

#[test]
fn dsn_is_not_offered_to_external_clients() {
    let (mut room, mut world) = serving(1304, Mood::Takes);
    for (port, is_offered) in [(25, false), (587, true)] {
        let (mut talk, lines) = world.offered(&mut room, port);
        assert_eq!(lines.iter().any(|line| line == "250-DSN"), is_offered, "{lines:?}");
        if !is_offered {
            for (command, code) in [
                ("MAIL FROM:<bob@far.test> RET=FULL", "250"),
                ("RCPT TO:<grace@barepost.test> NOTIFY=SUCCESS", "250"),
                ("DATA", "354"),
                ("Subject: x\r\n\r\n.", "250"),
            ] {
                assert!(world.say(&mut room, &mut talk, command).starts_with(code), "{command}");
            }
        }
        room.close(&talk);
    }
    world.pass(&mut room, 7200);
    let inbox = world.inbox(&mut room, "grace");
    assert_eq!((inbox.len(), world.peer.taken.len()), (1, 0));
    assert!(inbox[0].starts_with("Return-Path: <bob@far.test>\r\n"), "{}", inbox[0]);
}

/// Runs the same scenario repeatedly, with the power cut one step later each time. Each recipient's
/// result is reported once.
#[test]
fn success_is_reported_once_at_any_power_cut() {
    let mut steps = 0;
    loop {
        let (mut room, mut world) =
            serving_on(1305, MemoryDisk::blank(DISK_BYTES), Mood::RefusesBob);
        let to = [
            "<bob@far.test> NOTIFY=SUCCESS,FAILURE",
            "<carol@far.test> NOTIFY=SUCCESS",
            "<dave@far.test> NOTIFY=SUCCESS",
            "<grace@barepost.test> NOTIFY=SUCCESS",
        ];
        world.submit_with(&mut room, &format!("{FROM_ADA} RET=FULL"), &to, MESSAGE);
        let is_over = world.step(&mut room, steps).as_secs() > 50;
        let (mut room, mut world) = world.power_cut(room, 7000 + steps);
        world.pass(&mut room, 5 * 3600);
        let inbox = world.inbox(&mut room, "ada");
        let all = ["bob@far.test", "carol@far.test", "dave@far.test", "grace@barepost.test"]
            .map(|address| actions(&inbox, address));
        let expected = [["failed"], ["relayed"], ["relayed"], ["delivered"]];
        assert_eq!(all, expected, "after {steps} steps");
        assert_eq!(
            (inbox.len(), world.inbox(&mut room, "grace").len()),
            (3, 1),
            "after {steps} steps"
        );
        if is_over {
            break;
        }
        steps += 1 + steps / 40;
    }
}
