//! Messages with very many recipients or parts in the webmail: no recipient and no part is lost
//! silently.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::collections::BTreeSet;

use super::webmail::{Browser, between, serving};

/// The addresses in a field of the compose form.
fn addresses(page: &str, field: &str) -> BTreeSet<String> {
    let value = page
        .split(&format!("name=\"{field}\""))
        .nth(1)
        .and_then(|rest| between(rest, "value=\"", "\""));
    value
        .unwrap_or_default()
        .split(", ")
        .filter(|address| !address.is_empty())
        .map(String::from)
        .collect()
}

fn many(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{name}-{number}@with-a-long-name.example.org")).collect()
}

#[test]
fn reply_all_leaves_out_own_addresses_and_duplicates() {
    let (mut room, trust) = serving(54);
    let message = "From: Grace <grace@example.org>\r\n\
         To: Ada <ada@barepost.test>, Countess@Barepost.test, Bob <bob@example.org>\r\n\
         Cc: BOB@example.org, postmaster@barepost.test, carol@example.org, grace@example.org\r\n\
         Subject: All\r\n\r\nHello.\r\n";
    assert!(room.deliver("ada@barepost.test", message.as_bytes()).starts_with("250"));
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let page = ada.get(&mut room, "/mail/compose?all=1.1").text();
    let expected = |all: &[&str]| all.iter().map(|one| one.to_string()).collect::<BTreeSet<_>>();
    assert_eq!(addresses(&page, "to"), expected(&["&#34;Grace&#34; &#60;grace@example.org&#62;"]));
    let cc = ["&#34;Bob&#34; &#60;bob@example.org&#62;", "carol@example.org"];
    assert_eq!(addresses(&page, "cc"), expected(&cc));
    // The page of the message tells the fields apart, and has all addresses.
    let page = ada.get(&mut room, "/mail/box/1/1").text();
    assert!(page.contains(">to Ada, Countess@Barepost.test, Bob, cc BOB@example.org, "), "{page}");
    let people = between(&page, "<dt>Cc</dt>", "</dd>").expect("the field");
    assert!(people.contains("carol@example.org") && !people.contains("Countess"), "{people}");
}

#[test]
fn reply_all_and_its_draft_keep_all_recipients() {
    let (mut room, trust) = serving(50);
    let (to, cc) = (many("to", 600), many("cc", 500));
    let message = format!(
        "From: x@example.org\r\nTo: {}\r\nCc: {}\r\nSubject: All\r\n\r\nHello.\r\n",
        to.join(",\r\n "),
        cc.join(", ")
    );
    assert!(room.deliver("ada@barepost.test", message.as_bytes()).starts_with("250"));
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let page = ada.get(&mut room, "/mail/compose?all=1.1").text();
    let expected: BTreeSet<String> = to.iter().chain(&cc).cloned().collect();
    assert_eq!(addresses(&page, "cc"), expected);
    assert!(!page.contains("more recipients"), "{page}");

    let token = ada.get(&mut room, "/mail/compose").token();
    let (to, cc, bcc) = (to.join(", "), cc.join(", "), many("bcc", 400).join(", "));
    let form = [
        ("token", &*token),
        ("to", &to),
        ("cc", &cc),
        ("bcc", &bcc),
        ("text", "Hello."),
        ("do", "save"),
    ];
    let draft = ada.post(&mut room, "/mail/compose", &form).text();
    assert!(draft.contains("Draft saved."), "{draft}");
    for (field, all) in [("to", 600), ("cc", 500), ("bcc", 400)] {
        assert_eq!(addresses(&draft, field).len(), all, "{field}");
    }
}

#[test]
fn a_reply_to_too_many_recipients_says_so() {
    let (mut room, trust) = serving(51);
    let fields = format!("Cc: {}\r\n", many("cc", 700).join(", ")).repeat(2);
    let message = format!(
        "From: x@example.org\r\n{}Subject: All\r\n\r\nHello.\r\n",
        fields.replacen("cc-", "c-", 700)
    );
    assert!(room.deliver("ada@barepost.test", message.as_bytes()).starts_with("250"));
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let page = ada.get(&mut room, "/mail/compose?all=1.1").text();
    assert_eq!(addresses(&page, "cc").len(), 1_000);
    assert!(page.contains("Only the first 1,000 of each field are shown"), "{page}");
}

#[test]
fn a_message_of_too_many_parts_has_the_rest_as_an_attachment() {
    let (mut room, trust) = serving(52);
    let parts =
        "--b\r\nContent-Type: image/png\r\nContent-Disposition: inline\r\n\r\nx\r\n".repeat(498);
    let rest = "Content-Type: application/x-last\r\nContent-Disposition: attachment\r\n\r\nThe last one.\r\n--b--\r\n";
    let message = format!(
        "From: x@example.org\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nText\r\n{parts}--b\r\n{rest}"
    );
    assert!(room.deliver("ada@barepost.test", message.as_bytes()).starts_with("250"));
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let page = ada.get(&mut room, "/mail/box/1/1").text();
    assert!(page.contains("too many parts") && page.contains("rest of message.txt"), "{page}");
    assert_eq!(ada.get(&mut room, "/mail/part/1.1/500").text(), rest);
}
