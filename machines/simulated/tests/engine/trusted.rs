//! Trusted senders: their messages load remote content, but only if the messages are authenticated.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use super::dmarc::{send, serving_dmarc_as};
use super::dns::Mood;
use super::room::CONFIGURATION;
use super::settings::again;
use super::webmail::{Browser, serving};

#[test]
fn a_trusted_sender_loads_remote_content_if_dmarc_passes() {
    let (mut room, mut server) = serving_dmarc_as(60, Mood::Answers, "");
    let (_, trust) = serving(60);
    let senders =
        [("me@pass.test", "ada@pass.test"), ("me@far.test", "ada@soft.test"), ("", "ada@far.test")];
    for (path, from) in senders {
        let html = "<img src=\"https://pictures.test/x\">";
        let message =
            format!("From: {from}\r\nSubject: {from}\r\nContent-Type: text/html\r\n\r\n{html}\r\n");
        let message = format!(
            "Authentication-Results: elsewhere.test;\r\n\tdmarc=pass header.from=soft.test\r\n{message}"
        );
        assert!(send(&mut room, &mut server, path, &message).starts_with("250"), "{from}");
    }
    let mut room = again(room, 61, &trust, CONFIGURATION);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    for (uid, (_, from)) in (1..).zip(senders) {
        let here = format!("/mail/box/1/{uid}");
        let page = ada.get(&mut room, &here);
        assert!(page.text().contains("Remote images are blocked"), "{from}");
        let token = page.token();
        let key = format!("1.{uid}");
        let fields = [
            ("token", &*token),
            ("here", &here),
            ("key", &key),
            ("sender", from),
            ("do", "always"),
        ];
        let page = ada.post(&mut room, "/mail/show", &fields).text();
        let is_loaded = from == "ada@pass.test";
        assert_eq!(page.contains("Remote images are blocked"), !is_loaded, "{from}: {page}");
        let document = ada.get(&mut room, &format!("/mail/html/1.{uid}/0"));
        assert_eq!(
            document.field("Content-Security-Policy").contains("img-src https:"),
            is_loaded,
            "{from}"
        );
    }
}
