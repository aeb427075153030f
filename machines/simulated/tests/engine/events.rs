//! Change events for open pages of the webmail, with the connection and the mail on any cores.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;
use server::InUse;

use super::http2::{Two, browser, request};
use super::room::Room;
use super::room::tls_stream::TlsStream;
use super::webmail::{Browser, message, serving};

/// Opens an event stream of the browser on a new connection. Returns the connection and the first
/// event, which is the state of the inbox.
fn listen(room: &mut Room, browser: &Browser) -> (TlsStream, String) {
    let mut tls_stream = room.connect_tls(443, &browser.settings);
    let cookie = browser.cookie.as_ref().expect("a ticket");
    let head = format!(
        "GET /mail/events HTTP/1.1\r\nHost: mail.barepost.test\r\nCookie: {cookie}\r\n\r\n"
    );
    room.send_tls(&mut tls_stream, head.as_bytes());
    assert_eq!(room.line_tls(&mut tls_stream), "HTTP/1.1 200 OK");
    let mut fields = Vec::new();
    while let line = room.line_tls(&mut tls_stream)
        && !line.is_empty()
    {
        fields.push(line);
    }
    assert!(fields.iter().any(|field| field == "Content-Type: text/event-stream"), "{fields:?}");
    let news = next(room, &mut tls_stream);
    (tls_stream, news)
}

/// The next event: the state of the inbox.
fn next(room: &mut Room, tls_stream: &mut TlsStream) -> String {
    loop {
        let line = room.line_tls(tls_stream);
        if let Some(data) = line.strip_prefix("data: {\"1\":[") {
            assert_eq!(room.line_tls(tls_stream), "");
            return data.split(']').next().expect("an end").to_string();
        }
        assert!(line.is_empty() || line == ":", "{line}");
    }
}

fn unread(news: &str) -> &str {
    news.split(',').next().unwrap_or_default()
}

#[test]
fn an_event_stream_reports_changes_of_its_account_only() {
    for seed in 0..4 {
        let (mut room, trust) = serving(seed);
        let [mut ada, mut grace] = [(); 2].map(|()| Browser::new(&trust));
        ada.log_in(&mut room, "ada", "lovelace");
        grace.log_in(&mut room, "grace", "lovelace");
        let (mut adas, first) = listen(&mut room, &ada);
        let (mut others, _) = listen(&mut room, &grace);
        assert_eq!(unread(&first), "0");
        assert!(
            room.deliver("ada@barepost.test", &message("Engine", "It computes."))
                .starts_with("250")
        );
        let second = next(&mut room, &mut adas);
        assert_eq!(unread(&second), "1");
        ada.get(&mut room, "/mail/box/1/1");
        let third = next(&mut room, &mut adas);
        assert_eq!(unread(&third), "0");
        assert_ne!(first, third, "the state of the inbox has changed");
        room.pass(Micros::from_secs(5));
        room.exchange(&mut others);
        assert!(others.heard.is_empty(), "an event stream has no events of other accounts");
        for tls_stream in [adas, others] {
            room.close_tls(tls_stream);
        }
        ada.hang_up(&mut room);
        grace.hang_up(&mut room);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn an_idle_event_stream_stays_open_without_a_buffer() {
    let (mut room, trust) = serving(1);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let (mut tls_stream, _) = listen(&mut room, &ada);
    ada.hang_up(&mut room);
    for _ in 0..60 {
        room.pass(Micros::from_secs(60));
        room.exchange(&mut tls_stream);
    }
    let signs = tls_stream.heard.iter().filter(|byte| **byte == b':').count();
    assert!((120..=150).contains(&signs), "{signs} signs of life");
    room.until("the stream has no buffer", |room| {
        room.exchange(&mut tls_stream);
        room.engines.in_use().blocks == 0
    });
    let InUse { listeners, sessions, bodies, send_queues, receive_queues, .. } =
        room.engines.in_use();
    assert_eq!((listeners, sessions, bodies, send_queues, receive_queues), (1, 1, 0, 0, 0));
    assert!(
        room.deliver("ada@barepost.test", &message("Engine", "It computes.")).starts_with("250")
    );
    assert_eq!(unread(&next(&mut room, &mut tls_stream)), "1");
    // The client resets the connection, and the server frees its resources.
    room.abort(&tls_stream.talk);
    room.until_nothing_is_in_use();
}

#[test]
fn an_event_stream_ends_at_logout() {
    for seed in 0..4 {
        let (mut room, trust) = serving(seed);
        let mut ada = Browser::new(&trust);
        ada.log_in(&mut room, "ada", "lovelace");
        let (mut tls_stream, _) = listen(&mut room, &ada);
        let token = ada.get(&mut room, "/mail/box/1").token();
        ada.send(&mut room, "/mail/logout", &[("token", &token)]);
        room.until_tls(&mut tls_stream, "the reply is over", |tls_stream| tls_stream.is_closed);
        room.close_tls(tls_stream);
        ada.hang_up(&mut room);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn event_streams_per_account_are_limited_and_the_oldest_ends() {
    let (mut room, trust) = serving(2);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let (mut first, _) = listen(&mut room, &ada);
    let mut others: Vec<TlsStream> = (0..32).map(|_| listen(&mut room, &ada).0).collect();
    room.until_tls(&mut first, "the reply is over", |tls_stream| tls_stream.is_closed);
    assert_eq!(room.engines.in_use().listeners, 32);
    assert!(
        room.deliver("ada@barepost.test", &message("Engine", "It computes.")).starts_with("250")
    );
    for tls_stream in &mut others {
        assert_eq!(unread(&next(&mut room, tls_stream)), "1");
    }
    for tls_stream in others.into_iter().chain([first]) {
        room.close_tls(tls_stream);
    }
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

/// There are more streams than one turn handles. Only the SMTP client sends anything: the message
/// that causes the events.
#[test]
fn all_event_streams_get_an_event_without_other_traffic() {
    const LISTENERS: usize = 32;
    let (mut room, trust) = serving(5);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let mut listeners: Vec<TlsStream> = (0..LISTENERS).map(|_| listen(&mut room, &ada).0).collect();
    ada.hang_up(&mut room);
    let mut talk = room.connect(25);
    room.smtp_reply(&mut talk);
    for command in ["EHLO client.test", "MAIL FROM:<>", "RCPT TO:<ada@barepost.test>", "DATA"] {
        room.smtp(&mut talk, command);
    }
    room.pass(Micros::from_secs(1));
    assert_eq!(room.engines.in_use().send_queues, 0);
    room.carries = 0;
    room.send(&talk, b"Subject: Engine\r\n\r\nIt computes.\r\n.\r\n");
    room.pass(Micros::from_millis(1));
    assert_eq!(
        room.engines.in_use().send_queues,
        LISTENERS + 1,
        "each stream gets the event, and the sender gets its reply"
    );
    room.carries = usize::MAX;
    for tls_stream in &mut listeners {
        assert_eq!(unread(&next(&mut room, tls_stream)), "1");
    }
    listeners.into_iter().for_each(|tls_stream| room.close_tls(tls_stream));
    room.close(&talk);
    room.until_nothing_is_in_use();
}

/// The events that have arrived on a stream, and whether the stream has ended.
fn events_of(two: &Two, stream: u32) -> (Vec<String>, bool) {
    let Some((body, is_whole)) = two.bodies.get(&stream) else { return (Vec::new(), false) };
    let text = String::from_utf8_lossy(body).into_owned();
    let events = text.lines().filter_map(|line| {
        line.strip_prefix("data: {\"1\":[")?.split(']').next().map(String::from)
    });
    (events.collect(), *is_whole)
}

#[test]
fn an_event_stream_shares_an_http_2_connection() {
    for seed in 0..4 {
        let (mut room, trust) = serving(seed);
        let mut ada = Browser::new(&trust);
        ada.log_in(&mut room, "ada", "lovelace");
        let token = ada.get(&mut room, "/mail/box/1").token();
        let cookie = ada.cookie.clone();
        let mut two = Two::begin(&mut room, &browser(&trust));
        let get = |stream, path| request(stream, "mail.barepost.test", path, cookie.as_deref());
        two.to_say.extend(get(1, "/mail/events"));
        two.until(&mut room, "the first event has arrived", |two| events_of(two, 1).0.len() == 1);
        assert_eq!(two.tls_stream.tls.alpn_protocol(), Some(b"h2".as_slice()));
        assert!(
            room.deliver("grace@barepost.test", &message("Loom", "It weaves.")).starts_with("250")
        );
        assert!(
            room.deliver("ada@barepost.test", &message("Engine", "It computes."))
                .starts_with("250")
        );
        two.until(&mut room, "the event of the message has arrived", |two| {
            events_of(two, 1).0.len() == 2
        });
        // Other streams of the connection work at the same time.
        two.to_say.extend(get(3, "/mail/box/1/1"));
        two.until(&mut room, "the page of the message has arrived", |two| events_of(two, 3).1);
        assert!(String::from_utf8_lossy(&two.bodies[&3].0).contains("It computes."));
        two.until(&mut room, "the event of the read message has arrived", |two| {
            events_of(two, 1).0.len() == 3
        });
        let (events, is_over) = events_of(&two, 1);
        assert_eq!(
            (events.iter().map(|news| unread(news)).collect::<Vec<_>>(), is_over),
            (vec!["0", "1", "0"], false)
        );
        ada.send(&mut room, "/mail/logout", &[("token", &token)]);
        two.until(&mut room, "the event stream has ended", |two| events_of(two, 1).1);
        assert_eq!(events_of(&two, 1).0.len(), 3);
        room.close_tls(two.tls_stream);
        ada.hang_up(&mut room);
        room.until_nothing_is_in_use();
    }
}
