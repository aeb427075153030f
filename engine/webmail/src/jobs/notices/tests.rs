//! Tests of the statements about the kind of a message.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use message::presentation::Preference;
use message::structure::StructureReader;

use super::*;
use crate::zone::ZoneCache;

/// The statements about a message for a reader in Berlin, each with its facts on lines.
fn notices(message: &str) -> Vec<String> {
    let berlin = ZoneCache::default().find("Europe/Berlin");
    let message = message.replace('\n', "\r\n");
    let (mut reader, mut contents) = (StructureReader::new(), MessageContents::default());
    reader.bytes_arrived(message.as_bytes(), &mut contents);
    let parts = reader.message_ended(&mut contents).parts;
    contents.message_ended(&parts);
    let presentation = contents.presentation(&parts, Preference::Html);
    let in_words = |notice: KindNotice| {
        let facts = notice.facts.iter().map(|(name, text)| format!("\n{name}: {text}"));
        facts.fold(notice.words, |all, fact| all + &fact)
    };
    let notices = of(&contents, &parts, &presentation, &mut Zones::of(&berlin));
    notices.into_iter().map(in_words).collect()
}

/// A multipart with these parts.
fn multipart(kind: &str, parts: &[&str]) -> String {
    let parts: String = parts.iter().map(|part| format!("--b\n{part}\n")).collect();
    format!("Subject: outer\nContent-Type: multipart/{kind}; boundary=b\n\n{parts}--b--\n")
}

const WORDS: &str = "\nIt failed.";
const STATUS: &str = "Content-Type: message/delivery-status\n\nReporting-MTA: dns; a.test\n\nFinal-Recipient: rfc822; bob@far.test\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 no <b>such</b> user";
const RETURNED: &str =
    "Content-Type: message/rfc822\n\nFrom: ada@a.test\nSubject: =?utf-8?q?L=C3=BCnch?=\n\nAt noon?";

#[test]
fn a_report_says_which_message_did_not_arrive_and_why() {
    let header = "Content-Type: text/rfc822-headers\n\nSubject: Lunch\nFrom: ada@a.test";
    let of = |parts: &[&str]| notices(&multipart("report; report-type=delivery-status", parts));
    let fact = "\nbob@far.test: The address does not exist. Details: 550 no <b>such</b> user";
    let words = "According to this report, your message was not delivered to the recipients below.";
    let failed = |subject: &str| [format!("{words}{subject}{fact}")];
    assert_eq!(of(&[WORDS, STATUS, RETURNED]), failed("\nSubject: Lünch"));
    assert_eq!(of(&[WORDS, STATUS, header]), failed("\nSubject: Lunch"));
    assert_eq!(of(&[WORDS, STATUS]), failed(""));
    assert_eq!(of(&[WORDS]), Vec::<String>::new());
    // The subject of a message before the report is not that of the reported message.
    assert_eq!(of(&[RETURNED, STATUS]), failed(""));
    // The report belongs to an attached message.
    let inner = multipart("report", &[WORDS, STATUS]).replace("--b", "--c").replace("=b", "=c");
    let forwarded = format!("Content-Type: message/rfc822\n\n{inner}");
    assert_eq!(notices(&multipart("mixed", &[WORDS, &forwarded])), Vec::<String>::new());
}

#[test]
fn a_report_says_what_became_of_each_recipient() {
    let of = |recipients: &[&str]| {
        let blocks: String = recipients
            .iter()
            .zip(1..)
            .map(|(fields, number)| {
                format!("\nFinal-Recipient: rfc822; r{number}@a.test\n{fields}")
            })
            .collect();
        let status =
            format!("Content-Type: message/delivery-status\n\nReporting-MTA: dns; a\n{blocks}");
        notices(&multipart("report", &[WORDS, &status])).pop().unwrap_or_default()
    };
    let until = "Will-Retry-Until: Tue, 3 Nov 2026 22:04:05 +0000\n";
    assert_eq!(
        of(&[&format!("Action: delayed\nStatus: 4.4.1\n{until}")]),
        "According to this report, your message has not been delivered yet to the recipients below.\nr1@a.test: The server could not be reached. The server keeps trying until 3 Nov 2026, 23:04."
    );
    assert_eq!(
        of(&["Action: delivered\nStatus: 2.0.0\n", "Action: delivered\nStatus: 2.1.5\n"]),
        "According to this report, your message was delivered to the recipients below.\nr1@a.test: Delivered.\nr2@a.test: Delivered."
    );
    assert_eq!(
        of(&["Action: failed\nStatus: 5.9.9\n", "Action: relayed\n", "Action: expanded\n"]),
        "According to this report, your message had different results for the recipients below.\nr1@a.test: Not delivered.\nr2@a.test: Relayed to a server that sends no reports.\nr3@a.test: Delivered, and forwarded to further addresses."
    );
    let many = of(&["Action: failed\n"; report::RECIPIENTS_MAX + 1]);
    assert!(many.ends_with("\n…: The report names more recipients."), "{many}");
}

#[test]
fn a_message_with_many_reports_has_few_statements() {
    let reports = |count: usize| {
        let parts = [&[WORDS][..], &vec![STATUS; count], &[RETURNED]].concat();
        notices(&multipart("report", &parts))
    };
    let most = reports(REPORTS_MAX);
    assert!(most.len() == REPORTS_MAX && most.iter().all(|notice| notice.contains("Lünch")));
    let more = reports(REPORTS_MAX + 1);
    assert_eq!(more.split_last().unwrap().1, most);
    assert_eq!(more.last().unwrap(), "This message has more reports.");
}

#[test]
fn a_receipt_says_what_it_means() {
    let of = |reader: &str, disposition: &str| {
        let receipt = format!(
            "Content-Type: message/disposition-notification\n\nFinal-Recipient: rfc822; {reader}\nDisposition: manual-action/MDN-sent-manually; {disposition}"
        );
        notices(&multipart("report", &[WORDS, &receipt, RETURNED]))
    };
    let displayed = "displayed to its reader. That does not mean that it was read.";
    for (disposition, expected) in [
        ("displayed", displayed),
        ("deleted", "deleted by its reader, perhaps without being displayed."),
        ("processed", "processed by a program of its reader, perhaps without being displayed."),
    ] {
        let message = "According to this receipt, your message was";
        let facts = "Subject: Lünch\nReader: bob@far.test";
        assert_eq!(of("bob@far.test", disposition), [format!("{message} {expected}\n{facts}")]);
    }
    // A reader that is not an address is left out: its words could be taken for words of the
    // webmail.
    for reader in ["Bob. Sign in at https://far.test/@x", "Bob"] {
        let notice = of(reader, "displayed").concat();
        assert!(notice.ends_with(&[displayed, "\nSubject: Lünch"].concat()), "{notice}");
    }
}

/// The statement about a calendar with one event with these lines.
fn event(method: &str, lines: &str) -> String {
    let calendar = format!(
        "Content-Type: text/calendar; charset=utf-8\n\nBEGIN:VCALENDAR\nMETHOD:{method}\nBEGIN:VEVENT\n{lines}\nEND:VEVENT\nEND:VCALENDAR"
    );
    let message = ["From: Grace <grace@a.test>\n", &multipart("alternative", &[WORDS, &calendar])];
    notices(&message.concat()).join("\n--\n")
}

#[test]
fn an_invitation_says_what_when_and_where() {
    let all = "DTSTART:20261103T140000Z\nDTEND:20261103T150000Z\nSUMMARY:Planning\nLOCATION:Room 4\nORGANIZER;CN=Grace:mailto:grace@a.test\nRRULE:FREQ=WEEKLY;INTERVAL=2\nATTENDEE;PARTSTAT=ACCEPTED:mailto:ada@a.test";
    let facts = "What: Planning\nWhen: Tue, 3 Nov 2026, 15:00 – 16:00 (Europe/Berlin)\nRepeats: every 2 weeks\nWhere: Room 4\nOrganizer: \"Grace\" <grace@a.test>";
    for (method, words, answer) in [
        ("REQUEST", "you are invited to this event:", ""),
        ("CANCEL", "this event is canceled:", ""),
        ("PUBLISH", "this event takes place:", ""),
        (
            "REPLY",
            "an invitation to this event is answered:",
            "\nAnswer: ada@a.test: accepted\nNot sent by that person, but by: grace@a.test",
        ),
        (
            "COUNTER",
            "a change to this event is proposed:",
            "\nAnswer: ada@a.test: accepted\nNot sent by that person, but by: grace@a.test",
        ),
    ] {
        assert_eq!(
            event(method, all),
            format!("According to this message, {words}\n{facts}{answer}")
        );
    }
    assert_eq!(
        event("REQUEST", "STATUS:CANCELLED"),
        "According to this message, this event is canceled:"
    );
    assert_eq!(event("REQUEST", "X-NOTHING:1"), "");
}

#[test]
fn an_invitation_names_another_sender_than_its_organizer() {
    let organizer = |organizer: &str| event("REQUEST", &format!("SUMMARY:x\nORGANIZER{organizer}"));
    let other = "\nNot sent by the organizer, but by: grace@a.test";
    for (person, is_other) in [
        (":mailto:Grace@A.test", false),
        (":mailto:ada@a.test", true),
        (";CN=grace@a.test:invalid:nomail", true),
    ] {
        assert_eq!(organizer(person).ends_with(other), is_other, "{person}");
    }
    assert!(!event("REQUEST", "SUMMARY:x").contains("Not sent"));
    let two = organizer(";CN=\"Boss <boss@corp.test>\":mailto:grace@a.test");
    assert!(two.ends_with("\nOrganizer: \"Boss <boss@corp.test>\" <grace@a.test>"), "{two}");
    let answer = event("REPLY", "SUMMARY:x\nATTENDEE;PARTSTAT=DECLINED:mailto:grace@a.test");
    assert!(answer.ends_with("\nAnswer: grace@a.test: declined"), "{answer}");
    let calendar = "Content-Type: text/calendar\n\nBEGIN:VCALENDAR\nBEGIN:VEVENT\nORGANIZER:mailto:ada@a.test\nEND:VEVENT\nEND:VCALENDAR\n";
    let notice = notices(calendar).concat();
    assert!(notice.ends_with("but by: an unknown sender"), "{notice}");
}

#[test]
fn times_of_events_are_in_the_zone_of_the_reader() {
    let when = |lines: &str| {
        let notice = event("REQUEST", lines);
        notice.split_once("When: ").map(|(_, when)| String::from(when)).unwrap_or(notice)
    };
    for (start, end, expected) in [
        (":20261103T140000Z", ":20261103T140000Z", "Tue, 3 Nov 2026, 15:00 (Europe/Berlin)"),
        (
            ":20261103T220000Z",
            ":20261103T233000Z",
            "Tue, 3 Nov 2026, 23:00 – Wed, 4 Nov 2026, 00:30 (Europe/Berlin)",
        ),
        (
            ";TZID=America/New_York:20260703T090000",
            ";TZID=America/New_York:20260703T100000",
            "Fri, 3 Jul 2026, 15:00 – 16:00 (Europe/Berlin)",
        ),
        (
            ";TZID=/mozilla.org/20050126_1/Asia/Tokyo:20260703T090000",
            ":20260703T010000Z",
            "Fri, 3 Jul 2026, 02:00 – 03:00 (Europe/Berlin)",
        ),
        (
            ";TZID=Mars Standard Time:20260703T090000",
            ";TZID=Mars Standard Time:20260703T100000",
            "Fri, 3 Jul 2026, 09:00 – 10:00 (Mars Standard Time)",
        ),
        (
            ";TZID=Mars Standard Time:20260703T090000",
            ":20260703T100000Z",
            "Fri, 3 Jul 2026, 09:00 (Mars Standard Time) – Fri, 3 Jul 2026, 12:00 (Europe/Berlin)",
        ),
        (":20260703T090000", ":20260703T100000", "Fri, 3 Jul 2026, 09:00 – 10:00 (local time)"),
        (";VALUE=DATE:20260703", ";VALUE=DATE:20260704", "Fri, 3 Jul 2026 (all day)"),
        (
            ";VALUE=DATE:20260703",
            ";VALUE=DATE:20260706",
            "Fri, 3 Jul 2026 – Sun, 5 Jul 2026 (all day)",
        ),
        (";VALUE=DATE:20260703", ";VALUE=DATE:20260601", "Fri, 3 Jul 2026 (all day)"),
        (";VALUE=DATE:20260703", ":20260704T100000Z", "Fri, 3 Jul 2026 (all day)"),
    ] {
        assert_eq!(when(&format!("DTSTART{start}\nDTEND{end}")), expected);
    }
    assert_eq!(when("DTSTART;VALUE=DATE:20260703"), "Fri, 3 Jul 2026 (all day)");
    assert_eq!(when("DTSTART;TZID=X/EST:20260703T090000"), "Fri, 3 Jul 2026, 09:00 (X/EST)");
    let zone = "DTSTART;TZID=Mine:20260703T090000\nEND:VEVENT\nBEGIN:VTIMEZONE\nTZID:Mine\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETTO:+0900\nEND:STANDARD\nEND:VTIMEZONE\nBEGIN:VEVENT";
    // The calendar defines its zones, also those that the database has.
    for name in ["Mine", "America/New_York", "EST"] {
        let when = when(&zone.replace("Mine", name));
        assert_eq!(when, "Fri, 3 Jul 2026, 02:00 (Europe/Berlin)", "{name}");
    }
    let repeated = |rule: &str| when(&format!("DTSTART;VALUE=DATE:20260703\nRRULE:{rule}"));
    let day = "Fri, 3 Jul 2026 (all day)\nRepeats:";
    assert_eq!(repeated("FREQ=DAILY;COUNT=3"), format!("{day} every day, 3 times"));
    assert_eq!(
        repeated("FREQ=WEEKLY;BYDAY=MO,WE;COUNT=10"),
        format!("{day} on certain days, every week, 10 times in all")
    );
    assert_eq!(
        repeated("FREQ=YEARLY;UNTIL=20301231T230000Z"),
        format!("{day} every year until Wed, 1 Jan 2031")
    );
}

#[test]
fn events_of_a_message_are_in_few_different_zones() {
    let zones = ["Tokyo", "Seoul", "Manila", "Dubai", "Kabul", "Karachi", "Kolkata", "Dhaka"];
    let events: Vec<String> = zones
        .iter()
        .chain(["Bangkok", "Tokyo"].iter())
        .map(|zone| format!("DTSTART;TZID=Asia/{zone}:20260703T090000"))
        .collect();
    let events = event("REQUEST", &events.join("\nEND:VEVENT\nBEGIN:VEVENT\n"));
    let shown: Vec<bool> =
        events.split("\n--\n").map(|event| event.ends_with("(Europe/Berlin)")).collect();
    assert_eq!(shown, [&[true; 8][..], &[false, true]].concat());
}

#[test]
fn an_invitation_is_shown_once_and_not_of_attached_messages() {
    let calendar = |media_type: &str, name: &str| {
        format!(
            "Content-Type: {media_type}\nContent-Transfer-Encoding: 8bit\n\nBEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:{name}\nEND:VEVENT\nEND:VCALENDAR\n"
        )
    };
    let [one, copy, other] = [
        calendar("text/calendar", "One"),
        calendar("application/ics; name=invite.ics", "One"),
        calendar("text/calendar; name=b.ics", "Other"),
    ];
    let of =
        |name: &str| format!("According to this message, this event takes place:\nWhat: {name}");
    assert_eq!(notices(&multipart("mixed", &[&one, &copy, &other])), [of("One"), of("Other")]);
    let attached = format!("Content-Type: message/rfc822\n\n{one}");
    assert_eq!(notices(&multipart("mixed", &[WORDS, &attached])), Vec::<String>::new());
    let many: Vec<String> =
        (0..9).map(|number| calendar("text/calendar", &format!("{number}"))).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(notices(&multipart("mixed", &many)).len(), 4);
    // Only the beginning of a large calendar is read.
    let large = calendar("text/calendar", "Large").replace(
        "END:VEVENT",
        &["DESCRIPTION:x\n".repeat(10_000), "LOCATION:end\nEND:VEVENT".into()].concat(),
    );
    let more = "The calendar has more than is shown here.".into();
    assert_eq!(notices(&multipart("mixed", &[&large])), [of("Large"), more]);
}

#[test]
fn signed_and_encrypted_messages_say_so() {
    let signature = |media_type: &str| format!("Content-Type: {media_type}\n\nabc");
    let openpgp = signature("application/pgp-signature");
    let smime = signature("application/x-pkcs7-signature; name=smime.p7s");
    let check = "has a digital signature ({}). Barepost does not check it.";
    let decrypt =
        "is encrypted ({}). Barepost cannot decrypt it: use a mail program that has your key.";
    let of = |what: &str, words: &str, format: &str| {
        [[what, " ", &words.replace("{}", format)].concat()]
    };
    let signed = |part: &str| notices(&multipart("signed", &[WORDS, part]));
    assert_eq!(signed(&openpgp), of("This message", check, "OpenPGP"));
    assert_eq!(signed(&smime), of("This message", check, "S/MIME"));
    assert_eq!(
        notices(&multipart(
            "encrypted",
            &["Content-Type: application/pgp-encrypted\n\nVersion: 1"]
        )),
        of("This message", decrypt, "OpenPGP")
    );
    for content in ["enveloped-data", "authEnveloped-data"] {
        let part = format!("Content-Type: application/pkcs7-mime; smime-type={content}\n\nabc");
        assert_eq!(notices(&part), of("This message", decrypt, "S/MIME"));
        assert_eq!(
            notices(&multipart("mixed", &[&part, &part])),
            of("A part of this message", decrypt, "S/MIME")
        );
    }
    let opaque = notices("Content-Type: application/x-pkcs7-mime; smime-type=Signed-Data\n\nabc");
    assert!(opaque[0].starts_with("This message has a digital signature (S/MIME) and is inside"));
    let unknown = notices("Content-Type: application/pkcs7-mime\n\nabc");
    assert!(unknown[0].starts_with("This message is encrypted or signed (S/MIME), and inside"));
    let text = "The text of this message";
    assert_eq!(
        notices("\nHello\n-----BEGIN PGP SIGNED MESSAGE-----\nx"),
        of(text, check, "OpenPGP")
    );
    assert_eq!(notices("\n-----BEGIN PGP MESSAGE-----\nx"), of(text, decrypt, "OpenPGP"));
    let quoted = "\n> -----BEGIN PGP MESSAGE-----\nx -----BEGIN PGP SIGNED MESSAGE-----\n";
    assert_eq!(notices(quoted), Vec::<String>::new());
    let inner = multipart("signed", &[WORDS, &smime]).replace("--b", "--c").replace("=b", "=c");
    let attached = format!("Content-Type: message/rfc822\n\n{inner}");
    assert_eq!(notices(&multipart("mixed", &[WORDS, &attached])), Vec::<String>::new());
}
