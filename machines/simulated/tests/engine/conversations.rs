//! Conversations in the webmail: one row, one page, actions on all messages of a conversation, and
//! the inline and remote content of its messages.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;

use super::downloads::without_style;
use super::relay::{ADA, GRACE};
use super::room::Room;
use super::webmail::{Browser, between, message, serving};

/// A reply to the message with this subject.
fn answer(number: usize, subject: &str, text: &str) -> Vec<u8> {
    format!(
        "From: Mary <mary@example.org>\r\nTo: ada@barepost.test\r\nSubject: Re: {subject}\r\nMessage-ID: <{number}.{subject}@example.org>\r\n\
         In-Reply-To: <{subject}@example.org>\r\nReferences: <{subject}@example.org>\r\n\r\n{text}\r\n"
    )
    .into_bytes()
}

fn deliver(room: &mut Room, octets: &[u8]) {
    assert!(room.deliver("ada@barepost.test", octets).starts_with("250"));
}

/// A conversation of three messages: a received one, Ada's reply, and another received one. The
/// inbox also has a message of another conversation.
fn conversation(seed: u64) -> (Room, Browser, String) {
    let (mut room, trust) = serving(seed);
    deliver(&mut room, &message("Engine", "It computes."));
    deliver(&mut room, &message("Loom", "It weaves."));
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    ada.hold(&mut room, "0");
    let token = ada.get(&mut room, "/mail/compose?reply=1.1").token();
    let written = [
        ("to", "grace@barepost.test"),
        ("subject", "Re: Engine"),
        ("text", "Does it?"),
        ("answers", "1.1"),
    ];
    ada.post(
        &mut room,
        "/mail/compose",
        &[&[("token", token.as_str()), ("do", "send")], &written[..]].concat(),
    );
    deliver(&mut room, &answer(1, "Engine", "It does."));
    (room, ada, token)
}

#[test]
fn a_conversation_with_its_replies_is_one_row_and_one_page() {
    let (mut room, mut ada, _) = conversation(20);
    let list = ada.get(&mut room, "/mail/box/1").text();
    assert!(
        list.contains("name=\"key\" value=\"1.3\"")
            && list.matches("#opened\"").count() == 1
            && list.contains("<span class=\"number\">3<"),
        "{list}"
    );
    assert!(
        list.contains("name=\"key\" value=\"1.2\"") && !list.contains("name=\"key\" value=\"1.1\""),
        "{list}"
    );
    assert!(list.contains("1–3 of 3"), "{list}");
    let sent = ada.get(&mut room, "/mail/box/3").text();
    assert!(
        sent.contains("name=\"key\" value=\"3.1\"")
            && sent.contains("#opened\"")
            && sent.contains("<span class=\"number\">3<"),
        "{sent}"
    );

    let page = ada.get(&mut room, "/mail/box/1/3").text();
    let places =
        ["<p>It computes.</p>", "<p>Does it?</p>", "<p>It does.</p>"].map(|text| page.find(text));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} in {page}");
    assert!(!page.contains("It weaves.") && page.matches("<article").count() == 3, "{page}");
    // The first message was unread, and is open. Ada's own message is folded.
    assert_eq!(
        (page.matches("<details open>").count(), page.matches("<details>").count()),
        (1, 1),
        "{page}"
    );
    let list = ada.get(&mut room, "/mail/box/1").text();
    assert_eq!(
        list.matches("<li class=\"row unread\">").count(),
        1,
        "the conversation was read: {list}"
    );
    let again = ada.get(&mut room, "/mail/box/1/3").text();
    assert!(!again.contains("<details open>"), "{again}");
}

#[test]
fn conversation_actions_apply_to_all_messages_on_the_page() {
    let (mut room, mut ada, token) = conversation(21);
    let with = |what: &'static str, key: &'static str, here: &'static str| {
        [("do", what), ("key", key), ("here", here), ("whole", "conversation")]
    };
    let act = |ada: &mut Browser, room: &mut Room, fields: &[(&str, &str)]| {
        ada.post(room, "/mail/act", &[&[("token", token.as_str())], fields].concat()).text()
    };
    // A message that arrived after the page was made stays in the inbox.
    deliver(&mut room, &answer(2, "Engine", "Not seen yet."));
    let list = act(&mut ada, &mut room, &with("archive", "1.3", "/mail/box/1"));
    assert!(
        list.contains("2 messages moved to Archive.") && list.contains("Not seen yet."),
        "{list}"
    );
    let undo =
        between(&list, "name=\"what\" value=\"", "\"").expect("the page has an undo").to_string();
    let back = ada.post(&mut room, "/mail/undo", &[("token", &token), ("what", &undo)]).text();
    assert!(back.contains("1–4 of 4"), "{back}");

    // Discarded messages belong to a conversation only in their own mailbox.
    ada.post(
        &mut room,
        "/mail/act",
        &[("token", &token), ("do", "trash"), ("key", "1.4"), ("here", "/mail/box/1")],
    );
    let newest =
        between(&back, "name=\"key\" value=\"1.", "\"").expect("the conversation").to_string();
    let page = ada.get(&mut room, &format!("/mail/box/1/{newest}")).text();
    assert!(page.contains("It computes.") && !page.contains("Not seen yet."), "{page}");
    let trash = ada.get(&mut room, "/mail/box/6/1").text();
    assert!(trash.contains("It computes.") && trash.contains("<p>Not seen yet.</p>"), "{trash}");

    let starred = |list: &str| list.matches("aria-pressed=\"true\"").count();
    let all = [("star", newest.as_str()), ("whole", "conversation"), ("here", "/mail/box/1")];
    let newest = format!("1.{newest}");
    let all = [("star", newest.as_str()), all[1], all[2]];
    assert_eq!(starred(&act(&mut ada, &mut room, &all)), 1);
    assert_eq!(starred(&act(&mut ada, &mut room, &all)), 0);
    let unread = |list: &str| list.matches("<li class=\"row unread\">").count();
    let marked = |what| {
        [("do", what), ("key", newest.as_str()), ("here", "/mail/box/1"), ("whole", "conversation")]
    };
    assert_eq!(unread(&act(&mut ada, &mut room, &marked("read"))), 1);
    assert_eq!(unread(&act(&mut ada, &mut room, &marked("unread"))), 2);
}

#[test]
fn a_long_conversation_has_a_bounded_page_and_one_row() {
    let (mut room, trust) = serving(22);
    for number in 0..60 {
        deliver(&mut room, &message(&format!("Single-{number}."), "x"));
    }
    deliver(&mut room, &message("Engine", "It computes."));
    for number in 0..120 {
        deliver(&mut room, &answer(number, "Engine", &format!("Word {number}.")));
    }
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let list = ada.get(&mut room, "/mail/box/1").text();
    assert_eq!(list.matches("<li class=\"row").count(), 50, "{list}");
    assert!(
        list.contains("<span class=\"number\">121<") && list.contains("1–170 of 181"),
        "{list}"
    );
    let older = between(&list, "<a href=\"/mail/box/1?before=", "\"")
        .expect("there are older ones")
        .to_string();
    let older = ada.get(&mut room, &format!("/mail/box/1?before={older}")).text();
    assert_eq!(older.matches("<li class=\"row").count(), 11, "{older}");
    assert!(older.contains("171–181 of 181") && !older.contains("Engine"), "{older}");
    let newer = between(&older, "<a href=\"/mail/box/1?after=", "\"")
        .expect("there are newer ones")
        .to_string();
    let newer = ada.get(&mut room, &format!("/mail/box/1?after={newer}")).text();
    assert!(
        newer.contains("1–170 of 181") && newer.matches("<li class=\"row").count() == 50,
        "{newer}"
    );

    let page = ada.get(&mut room, "/mail/box/1/61").text();
    assert!(page.contains("<p>It computes.</p>") && page.contains("Only its newest messages"));
    assert_eq!(page.matches("<article").count(), 100);
    assert_eq!(page.matches("<details open>").count(), 16);
    assert!(
        page.contains("<p>Word 119.</p>") && page.contains("class=\"head\" href=\"/mail/message/"),
        "{page}"
    );
}

#[test]
fn inline_images_and_phishing_warnings_are_shown() {
    let (mut room, trust) = serving(23);
    let html = "<img src=\"cid:logo@bank.example\"><a href=\"https://evil.test/\">bank.example</a>";
    deliver(
        &mut room,
        format!(
            "From: \"service@bank.example\" <x@evil.test>\r\nSubject: Account\r\nContent-Type: multipart/related; boundary=b\r\n\r\n\
             --b\r\nContent-Type: text/html\r\n\r\n{html}\r\n--b\r\nContent-Type: image/png\r\nContent-ID: <logo@bank.example>\r\n\
             Content-Transfer-Encoding: base64\r\n\r\nAQID\r\n--b--\r\n"
        )
        .as_bytes(),
    );
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let page = ada.get(&mut room, "/mail/box/1/1").text();
    assert!(page.contains("A link that says bank.example leads to evil.test."), "{page}");
    assert!(
        page.contains("shows service@bank.example, but the message is from x@evil.test."),
        "{page}"
    );
    let document = ada.get(&mut room, "/mail/html/1.1/1");
    assert!(
        document.text().contains("<img src=\"data:image/png;base64,AQID\">"),
        "{}",
        document.text()
    );
    let policy = document.field("Content-Security-Policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("img-src data:;"), "{policy}");
}

#[test]
fn trusted_senders_load_remote_content_until_revoked() {
    let (mut room, trust) = serving(24);
    let html = "<img src=\"https://pictures.test/x\">";
    let written = |sender| {
        format!(
            "From: {sender}@barepost.test\r\nSubject: {sender}\r\nContent-Type: text/html\r\n\r\n{html}\r\n"
        )
    };
    let resent = ["Resent-From: ada@barepost.test\r\n", &written("grace")].concat();
    for (login, sender, message) in [
        (GRACE, "grace", written("grace")),
        (ADA, "ada", written("ada")),
        (GRACE, "grace", written("grace")),
        (ADA, "ada", resent),
    ] {
        let mut talk = room.connect(587);
        room.smtp_reply(&mut talk);
        let path = format!("MAIL FROM:<{sender}@barepost.test>");
        let envelope = ["EHLO client.test", login, &path, "RCPT TO:<ada@barepost.test>", "DATA"];
        envelope.iter().for_each(|command| drop(room.smtp(&mut talk, command)));
        room.send(&talk, message.as_bytes());
        assert!(room.smtp(&mut talk, ".").starts_with("250"), "{sender}");
        room.part(talk);
    }
    // The `From` field of a message from a client without login does not count.
    deliver(&mut room, written("grace").as_bytes());
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let token = ada.get(&mut room, "/mail/box/1/1").token();
    let loads = |ada: &mut Browser, room: &mut Room, uid: u32| {
        let document = ada.get(room, &format!("/mail/html/1.{uid}/0"));
        document.field("Content-Security-Policy").contains("img-src https:")
    };
    let show = |ada: &mut Browser, room: &mut Room, what: &str, token: &str| {
        let fields = [
            ("token", token),
            ("here", "/mail/box/1/1"),
            ("key", "1.1"),
            ("sender", "grace@barepost.test"),
            ("do", what),
        ];
        ada.post(room, "/mail/show", &fields).text()
    };
    assert_eq!([1, 2, 3, 4, 5].map(|uid| loads(&mut ada, &mut room, uid)), [false; 5]);
    let page = show(&mut ada, &mut room, "always", &token);
    assert!(
        page.contains(
            "Remote images in verified messages from grace@barepost.test are always shown"
        ),
        "{page}"
    );
    assert_eq!(
        [1, 2, 3, 4, 5].map(|uid| loads(&mut ada, &mut room, uid)),
        [true, false, true, false, false]
    );
    // The choice belongs to the account, in any session.
    let mut second_browser = Browser::new(&trust);
    second_browser.log_in(&mut room, "ada", "lovelace");
    assert!(loads(&mut second_browser, &mut room, 3));
    let page = show(&mut ada, &mut room, "never", &token);
    assert!(
        page.contains("Remote images are blocked")
            && page.contains("Always show from grace@barepost.test if verified"),
        "{page}"
    );
    assert_eq!([1, 2, 3].map(|uid| loads(&mut second_browser, &mut room, uid)), [false; 3]);
}

#[test]
fn different_messages_with_one_message_id_are_rows_apart() {
    let (mut room, trust) = serving(27);
    let scan = |date: &str, subject: &str| {
        format!(
            "From: Scanner <scanner@example.org>\r\nTo: ada@barepost.test\r\nDate: {date}\r\n\
             Subject: {subject}\r\nMessage-ID: <scan@scanner>\r\n\r\nSee the file.\r\n"
        )
    };
    let dates = ["Fri, 27 Nov 2026 09:00:00 +0000", "Fri, 27 Nov 2026 10:00:00 +0000"];
    for (date, subject) in [(dates[0], "Page 1"), (dates[0], "Page 2"), (dates[1], "Page 2")] {
        deliver(&mut room, scan(date, subject).as_bytes());
    }
    // The copy of a mailing list is of the same conversation.
    deliver(&mut room, scan(dates[1], "[office] Page 2").as_bytes());
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let list = ada.get(&mut room, "/mail/box/1").text();
    let links = [1, 2, 4].map(|uid| format!("name=\"key\" value=\"1.{uid}\""));
    assert!(links.iter().all(|link| list.contains(link)), "{list}");
    assert!(!list.contains("name=\"key\" value=\"1.3\"") && list.contains("#opened\""), "{list}");
    let page = ada.get(&mut room, "/mail/box/1/1").text();
    assert!(page.contains("Page 1") && page.matches("<article").count() == 1, "{page}");
}

#[test]
fn fields_after_a_long_header_are_listed_and_found() {
    let (mut room, trust) = serving(28);
    let recipients = "a person with a long name <someone@example.org>,\r\n ".repeat(1_400);
    let octets = format!(
        "To: {recipients}ada@barepost.test\r\nFrom: Bob <bob@example.org>\r\n\
         Subject: Behind the recipients\r\nMessage-ID: <long@example.org>\r\n\r\nThe text.\r\n"
    );
    deliver(&mut room, octets.as_bytes());
    deliver(&mut room, &message("Loom", "It weaves."));
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let list = ada.get(&mut room, "/mail/box/1").text();
    let texts = ["Bob", "Behind the recipients", "The text."];
    assert!(texts.iter().all(|text| list.contains(text)), "{list}");
    let found = ada.get(&mut room, "/mail/search?q=subject%3Abehind").text();
    assert!(found.contains("1 result<") && found.contains("name=\"key\" value=\"1.1\""), "{found}");
}

#[test]
fn a_message_to_oneself_is_shown_once_and_a_forgery_apart() {
    let (mut room, trust) = serving(25);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    ada.hold(&mut room, "0");
    let token = ada.get(&mut room, "/mail/compose").token();
    let long = format!("{}Mine.", "A note to myself. ".repeat(20));
    for text in [long.as_str(), "Milk.", "Bread, and something long.\n"] {
        let form = [
            ("to", "ada@barepost.test"),
            ("bcc", "grace@barepost.test"),
            ("subject", text),
            ("text", text),
        ];
        ada.post(
            &mut room,
            "/mail/compose",
            &[&[("token", token.as_str()), ("do", "send")], &form[..]].concat(),
        );
    }
    // The forger may be a recipient, and so knows the Message-ID and the beginning of the message.
    let source = ada.get(&mut room, "/mail/download/1.1").text();
    deliver(&mut room, source.replace("Mine.", "Forged.").as_bytes());
    let seen = |ada: &mut Browser, room: &mut Room, address: &str| {
        let page = ada.get(room, address).text();
        (
            page.matches("<article").count(),
            page.matches("/mail/compose?reply=").count(),
            page.contains("Forged."),
        )
    };
    assert_eq!(seen(&mut ada, &mut room, "/mail/box/1/2"), (1, 1, false));
    assert_eq!(seen(&mut ada, &mut room, "/mail/box/3/2"), (1, 1, false));
    assert!(ada.get(&mut room, "/mail/box/3/2").text().contains("/mail/compose?reply=3.2"));
    assert!(ada.get(&mut room, "/mail/box/1/2").text().contains("/mail/compose?reply=1.2"));
    assert_eq!(
        seen(&mut ada, &mut room, "/mail/box/1/1"),
        (2, 2, true),
        "one of Ada's two, and the forgery"
    );
    assert_eq!(seen(&mut ada, &mut room, "/mail/box/1/4"), (2, 2, true));
    assert_eq!(seen(&mut ada, &mut room, "/mail/box/3/1"), (2, 2, true));
    let counts = |ada: &mut Browser, room: &mut Room, mailbox: &str| {
        let list = ada.get(room, mailbox).text();
        let rows = list.split("<li class").skip(1);
        rows.map(|row| between(row, "class=\"number\">", "<").unwrap_or("1").to_string())
            .collect::<Vec<_>>()
    };
    for _ in 0..2 {
        assert_eq!(
            counts(&mut ada, &mut room, "/mail/box/1"),
            ["2", "1", "1"],
            "the forgery makes two messages"
        );
        assert_eq!(counts(&mut ada, &mut room, "/mail/box/3"), ["1", "1", "2"]);
    }
    let list = ada.get(&mut room, "/mail/box/1").text();
    let row = between(&list, "name=\"key\" value=\"1.2\"", "</li>").expect("a row");
    assert!(!row.contains("#opened"), "the row links to the message alone: {list}");
    // A message that was moved to another mailbox is still recognized as the same message.
    ada.post(
        &mut room,
        "/mail/act",
        &[("token", &token), ("do", "archive"), ("key", "1.3"), ("here", "/mail/box/1")],
    );
    assert_eq!(seen(&mut ada, &mut room, "/mail/box/4/1"), (1, 1, false));
    assert_eq!(counts(&mut ada, &mut room, "/mail/box/3"), ["1", "1", "2"]);
    assert_eq!(counts(&mut ada, &mut room, "/mail/box/4"), ["1"]);
    // A message that was held is recognized too, although it arrives later. A reply to oneself is a
    // second message.
    ada.hold(&mut room, "10");
    let form = [
        ("to", "ada@barepost.test"),
        ("subject", "Held"),
        ("text", "Held."),
        ("token", &token),
        ("do", "send"),
    ];
    ada.post(&mut room, "/mail/compose", &form);
    room.pass(Micros::from_secs(15));
    assert_eq!(counts(&mut ada, &mut room, "/mail/box/1").first().map(String::as_str), Some("1"));
    let answers =
        between(&ada.get(&mut room, "/mail/box/1").text(), "name=\"key\" value=\"1.", "\"")
            .map(|uid| format!("1.{uid}"));
    let form = [
        ("answers", answers.as_deref().expect("a row")),
        ("subject", "Re: Held"),
        ("to", "ada@barepost.test"),
        ("text", "So it was, and longer than that."),
        ("token", &token),
        ("do", "send"),
    ];
    ada.post(&mut room, "/mail/compose", &form);
    room.pass(Micros::from_secs(15));
    assert_eq!(counts(&mut ada, &mut room, "/mail/box/1").first().map(String::as_str), Some("2"));
    assert_eq!(counts(&mut ada, &mut room, "/mail/box/3").first().map(String::as_str), Some("2"));
}

#[test]
fn large_html_is_cut_and_the_page_says_so() {
    let (mut room, trust) = serving(20);
    let html = |count: usize| format!("{}<p>End.</p>", "<b>ä".repeat(count));
    for count in [1_000, 60_000] {
        let message = format!(
            "From: x@example.org\r\nSubject: Deep\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{}\r\n",
            html(count)
        );
        deliver(&mut room, message.as_bytes());
    }
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    for (uid, is_cut) in [(1, false), (2, true)] {
        let page = ada.get(&mut room, &format!("/mail/box/1/{uid}")).text();
        assert_eq!(
            page.contains(&format!("href=\"/mail/whole/1.{uid}/0\"")),
            is_cut,
            "{uid}: {page}"
        );
        assert_eq!(page.contains(">View entire message</a>"), is_cut, "{uid}: {page}");
        assert!(
            !page.contains("Remote images are blocked"),
            "the page loads no remote content: {page}"
        );
        let document = ada.get(&mut room, &format!("/mail/html/1.{uid}/0")).text();
        let document = without_style(&document);
        assert_eq!(document.contains("<p>End.</p>"), !is_cut, "{uid}");
        assert!(
            document.len() <= 102 * 1024
                && html(60_000).starts_with(document.trim_end().trim_end_matches("<p>End.</p>"))
        );
        let whole = ada.get(&mut room, &format!("/mail/whole/1.{uid}/0"));
        let text = whole.text();
        let text = without_style(&text);
        assert!(
            text.trim_end() == html([1_000, 60_000][uid - 1]),
            "{uid}: {} bytes",
            whole.body.len()
        );
        for field in
            ["Content-Security-Policy", "Content-Type", "X-Content-Type-Options", "Referrer-Policy"]
        {
            let framed = ada.get(&mut room, &format!("/mail/html/1.{uid}/0"));
            assert!(
                !whole.field(field).is_empty() && whole.field(field) == framed.field(field),
                "{field}"
            );
        }
        let downloaded = ada.get(&mut room, &format!("/mail/download/1.{uid}"));
        assert!(downloaded.text().trim_end().ends_with("<p>End.</p>"));
    }
}
