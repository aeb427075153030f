//! Tests of the statements about the kind of a message, on its page and on paper.

#![allow(clippy::expect_used, reason = "a test may fail")]

use base64ct::{Base64, Encoding};

use super::webmail::{Browser, serving};

#[test]
fn a_page_says_what_a_delivery_report_means() {
    let (mut room, trust) = serving(91);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let report = [
        "From: x@example.org\r\nSubject: Failure\r\n",
        "Content-Type: multipart/report; report-type=delivery-status; boundary=r\r\n\r\n",
        "--r\r\n\r\nIt failed.\r\n",
        "--r\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.test\r\n\r\n",
        "Final-Recipient: rfc822; bob@far.test\r\nAction: failed\r\nStatus: 5.1.1\r\n",
        "Diagnostic-Code: smtp; 550 <script>no</script> https://far.test/\r\n",
        "--r\r\nContent-Type: message/rfc822\r\n\r\nSubject: <b>Lunch\r\n\r\nAt noon?\r\n--r--\r\n",
    ]
    .concat();
    assert!(room.deliver("ada@barepost.test", report.as_bytes()).starts_with("250"));
    for address in ["/mail/box/1/1", "/mail/print/1.1"] {
        let page = ada.get(&mut room, address).text();
        let (before, after) = page.split_once("It failed.").expect("the text of the report");
        let notice = before.split_once("According to this report").expect("a notice").1;
        for words in [
            "your message was not delivered to the recipients below.",
            "<dd dir=\"auto\">&#60;b&#62;Lunch</dd>",
            "<dt dir=\"auto\">bob@far.test</dt>",
            "The address does not exist. Details: 550 &#60;script&#62;no&#60;/script&#62; https://far.test/</dd>",
        ] {
            assert!(notice.contains(words), "{words}: {notice}");
        }
        assert!(!notice.contains("<script>") && !notice.contains("<a href=\"https://"), "{notice}");
        assert!(after.contains("Status: 5.1.1"), "{after}");
    }
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

#[test]
fn a_page_says_what_an_invitation_is_about() {
    let (mut room, trust) = serving(92);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let token = ada.get(&mut room, "/mail/settings").token();
    let fields = [("token", token.as_str()), ("zone", "Asia/Tokyo"), ("do", "save")];
    assert_eq!(ada.send(&mut room, "/mail/settings", &fields).status, 303);
    let invitation = [
        "From: x@example.org\r\nSubject: Planning\r\n",
        "Content-Type: multipart/alternative; boundary=a\r\n\r\n",
        "--a\r\n\r\nPlease come.\r\n",
        "--a\r\nContent-Type: text/calendar; method=REQUEST\r\n\r\n",
        "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\n",
        "DTSTART;TZID=Europe/Berlin:20260703T090000\r\nDTEND;TZID=Europe/Berlin:20260703T103000\r\n",
        "SUMMARY:<i>Plan\r\nLOCATION:https://meet.test/\r\n",
        "END:VEVENT\r\nEND:VCALENDAR\r\n--a--\r\n",
    ]
    .concat();
    assert!(room.deliver("ada@barepost.test", invitation.as_bytes()).starts_with("250"));
    for address in ["/mail/box/1/1", "/mail/print/1.1"] {
        let page = ada.get(&mut room, address).text();
        let (before, after) = page.split_once("Please come.").expect("the text");
        let notice = before.split_once("you are invited to this event:").expect("a notice").1;
        for fact in ["&#60;i&#62;Plan", "Fri, 3 Jul 2026, 16:00 – 17:30 (Asia/Tokyo)"] {
            let fact = format!("<dd dir=\"auto\">{fact}</dd>");
            assert!(notice.contains(&fact), "{fact}: {notice}");
        }
        assert!(notice.contains("https://meet.test/</dd>") && !notice.contains("<a "), "{notice}");
        assert!(after.contains("invite.ics"), "{after}");
    }
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

#[test]
fn a_page_says_that_a_signature_is_not_checked() {
    let (mut room, trust) = serving(93);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let signed = [
        "From: x@example.org\r\nSubject: Signed\r\n",
        "Content-Type: multipart/signed; protocol=\"application/pgp-signature\"; boundary=s\r\n\r\n",
        "--s\r\n\r\nSigned words.\r\n",
        "--s\r\nContent-Type: application/pgp-signature\r\n\r\nabc\r\n--s--\r\n",
    ]
    .concat();
    assert!(room.deliver("ada@barepost.test", signed.as_bytes()).starts_with("250"));
    for address in ["/mail/box/1/1", "/mail/print/1.1"] {
        let page = ada.get(&mut room, address).text();
        let (before, after) = page.split_once("Signed words.").expect("the text");
        let notice = "This message has a digital signature (OpenPGP). Barepost does not check it.";
        assert!(before.contains(notice) && after.contains("signature.asc"), "{page}");
    }
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

/// An attribute of a container of Outlook.
fn attribute(identifier: u16, value: &[u8]) -> Vec<u8> {
    let length = (value.len() as u32).to_le_bytes();
    [&[2][..], &identifier.to_le_bytes(), &[1, 0], &length, value, &[0, 0]].concat()
}

/// A part that is a container of Outlook with these attributes.
fn container(attributes: &[Vec<u8>]) -> String {
    let bytes = [&[0x78, 0x9f, 0x3e, 0x22, 1, 0][..], &attributes.concat()].concat();
    let mut encoded = String::new();
    for line in bytes.chunks(57) {
        encoded += &Base64::encode_string(line);
        encoded += "\r\n";
    }
    [
        "Content-Type: application/ms-tnef; name=winmail.dat\r\n",
        "Content-Transfer-Encoding: base64\r\n\r\n",
        &encoded,
    ]
    .concat()
}

#[test]
fn files_in_a_winmail_dat_are_listed_and_downloaded() {
    let (mut room, trust) = serving(94);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let large: Vec<u8> = (0..200_000_u32).map(|number| (number % 251) as u8).collect();
    let container = container(&[
        attribute(0x9002, &[]),
        attribute(0x8010, b"..\\<b>.txt\0"),
        attribute(0x800f, b"It rains."),
        attribute(0x9002, &[]),
        attribute(0x9002, &[]),
        attribute(0x8010, b"large.bin\0"),
        attribute(0x800f, &large),
        attribute(0x9002, &[]),
        attribute(0x800f, b"1"),
        attribute(0x9002, &[]),
        attribute(0x8010, b"LONG~1.BIN\0"),
        attribute(0x800f, b"2"),
        attribute(0x9005, b"\x01\0\0\0\x1e\0\x07\x37\x01\0\0\0\x09\0\0\0large.bin\0\0\0"),
    ]);
    let message = [
        "From: x@example.org\r\nSubject: Container\r\n",
        "Content-Type: multipart/mixed; boundary=m\r\n\r\n",
        "--m\r\n\r\nSome words.\r\n--m\r\n",
        &container,
        "--m\r\nContent-Type: message/rfc822\r\n\r\nSubject: Inner\r\n\r\nHello\r\n",
        "--m--\r\n",
    ]
    .concat();
    assert!(room.deliver("ada@barepost.test", message.as_bytes()).starts_with("250"));
    let page = ada.get(&mut room, "/mail/box/1/1").text();
    for (name, size, href) in [
        ("&#60;b&#62;.txt", "9 bytes", "/mail/inner/1.1/2.0"),
        ("large.bin", "200 KB", "/mail/inner/1.1/2.2"),
        ("file", "1 bytes", "/mail/inner/1.1/2.3"),
        // The long name is after the content.
        ("large (2).bin", "1 bytes", "/mail/inner/1.1/2.4"),
    ] {
        let item = format!(
            "<a href=\"{href}\" download=\"{name}\"><span dir=\"auto\">{name}</span> <span class=\"size\">{size}</span>"
        );
        assert!(page.contains(&item), "{item}: {page}");
    }
    assert!(page.contains("winmail.dat") && !page.contains("/mail/inner/1.1/2.1"), "{page}");
    let small = ada.get(&mut room, "/mail/inner/1.1/2.0");
    assert_eq!((small.status, &*small.body), (200, &b"It rains."[..]));
    let whole = ada.get(&mut room, "/mail/inner/1.1/2.2");
    // A name in this field would replace the name that the link gives.
    assert_eq!(whole.field("Content-Disposition"), "attachment");
    assert!(whole.body == large, "{} bytes", whole.body.len());
    for missing in ["2.1", "2.5", "1.0", "3.0"] {
        let address = format!("/mail/inner/1.1/{missing}");
        assert_eq!(ada.get(&mut room, &address).status, 404, "{missing}");
    }
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

#[test]
fn a_text_in_a_winmail_dat_is_shown_and_quoted() {
    let (mut room, trust) = serving(95);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let container = container(&[attribute(0x800c, b"Words <inside>.\0")]);
    let message = ["From: x@example.org\r\nSubject: Container\r\n", &container].concat();
    assert!(room.deliver("ada@barepost.test", message.as_bytes()).starts_with("250"));
    for address in ["/mail/box/1/1", "/mail/print/1.1", "/mail/compose?reply=1.1"] {
        let page = ada.get(&mut room, address).text();
        let is_there = ["Words &lt;inside&gt;.", "Words &#60;inside&#62;."];
        assert!(is_there.iter().any(|words| page.contains(words)), "{address}: {page}");
    }
    let container = self::container(&[attribute(0x800c, &[b'x'; 70_000])]);
    let message = ["From: x@example.org\r\nSubject: Long\r\n", &container].concat();
    assert!(room.deliver("ada@barepost.test", message.as_bytes()).starts_with("250"));
    let page = ada.get(&mut room, "/mail/box/1/2").text();
    assert!(page.contains("too long to be shown in full"), "{page}");
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}
