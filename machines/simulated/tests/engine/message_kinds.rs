//! Tests of the statements about the kind of a message, on its page and on paper.

#![allow(clippy::expect_used, reason = "a test may fail")]

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
            "your message “\u{2068}&#60;b&#62;Lunch\u{2069}” was not delivered to:",
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
        let notice = before.split_once("You are invited to this event:").expect("a notice").1;
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
