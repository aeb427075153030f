//! Tests of the names of attachments.

use alloc::string::String;
use alloc::vec::Vec;

use message::structure::StructureReader;

use crate::jobs::attachments::names;

fn of(parts: &[&str]) -> Vec<String> {
    let parts: Vec<String> = parts.iter().map(|part| alloc::format!("--b\r\n{part}\r\n")).collect();
    let message =
        ["Content-Type: multipart/mixed; boundary=b\r\n\r\n", &parts.concat(), "--b--\r\n"]
            .concat();
    let mut reader = StructureReader::new();
    reader.bytes_arrived(message.as_bytes(), &mut ());
    names(&reader.message_ended(&mut ()).parts).split_off(1)
}

#[test]
fn attachments_without_a_name_get_one_by_type() {
    let types = ["text/calendar", "image/png", "text/plain", "text/x-patch"];
    let parts: Vec<String> =
        types.iter().map(|kind| alloc::format!("Content-Type: {kind}\r\n\r\nx")).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    assert_eq!(of(&parts), ["invite.ics", "image.png", "text.txt", "text.x-patch"]);
    let types = ["application/pgp-signature", "application/pkcs7-signature"];
    let parts = types.map(|kind| alloc::format!("Content-Type: {kind}\r\n\r\nx"));
    assert_eq!(of(&[&parts[0], &parts[1]]), ["signature.asc", "smime.p7s"]);
    let message = "Content-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\nx";
    assert_eq!(
        of(&[message, message]),
        ["message.eml", "text.txt", "message (2).eml", "text (2).txt"]
    );
}

#[test]
fn equal_names_of_attachments_are_told_apart() {
    let named = |name: &str| alloc::format!("Content-Type: image/png; name=\"{name}\"\r\n\r\nx");
    let parts =
        ["a.png", "a.png", "a (2).png", "a.png", "a", "a", ".x", ".x", "a.tar.gz", "a.tar.gz"];
    let parts: Vec<String> = parts.iter().map(|name| named(name)).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let names = of(&parts);
    assert_eq!(
        names,
        [
            "a.png",
            "a (2).png",
            "a (2) (2).png",
            "a (3).png",
            "a",
            "a (2)",
            ".x",
            ".x (2)",
            "a.tar.gz",
            "a.tar (2).gz"
        ]
    );
    let many = of(&["Content-Type: image/png; name=a\r\n\r\nx"; 490]);
    assert_eq!(many.last().map(String::as_str), Some("a (490)"));
}
