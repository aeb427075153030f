//! The statements about signed and encrypted messages. Barepost has no keys of its users, so it
//! neither checks a signature nor decrypts anything.

use alloc::format;
use alloc::vec::Vec;

use message::structure::{Part, SmimeContent};

use crate::notice::KindNotice;

/// The formats of signatures and encryption.
const OPENPGP: &str = "OpenPGP";
const SMIME: &str = "S/MIME";

/// The statements about a message with these parts and these shown plain texts.
pub(super) fn notices<'a>(parts: &[Part], texts: impl Iterator<Item = &'a str>) -> Vec<KindNotice> {
    let of_parts = (0..parts.len()).filter_map(|index| of_part(parts, index));
    let of_texts = texts.filter_map(|text| {
        if has_line(text, "-----BEGIN PGP MESSAGE-----") {
            Some(encrypted("The text of this message", OPENPGP))
        } else if has_line(text, "-----BEGIN PGP SIGNED MESSAGE-----") {
            Some(signed("The text of this message", OPENPGP))
        } else {
            None
        }
    });
    let mut notices: Vec<KindNotice> = Vec::new();
    for notice in of_parts.chain(of_texts) {
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }
    notices
}

/// The statement about the part with this index.
fn of_part(parts: &[Part], index: usize) -> Option<KindNotice> {
    let part = parts.get(index)?;
    if part.is_enclosed(parts) {
        return None;
    }
    let what = if index == 0 { "This message" } else { "A part of this message" };
    match &*part.media_type {
        "multipart/signed" => Some(signed(what, format_of_signature(parts, index))),
        "multipart/encrypted" => Some(encrypted(what, OPENPGP)),
        "application/pkcs7-mime" | "application/x-pkcs7-mime" => match part.smime_content() {
            SmimeContent::Encrypted => Some(encrypted(what, SMIME)),
            SmimeContent::Signed => Some(KindNotice::sentence(&format!(
                "{what} has a digital signature ({SMIME}) and is inside the attachment. Barepost does not open it: use a mail program with {SMIME}."
            ))),
            SmimeContent::Other => Some(KindNotice::sentence(&format!(
                "{what} is encrypted or signed ({SMIME}), and inside the attachment. Barepost does not open it: use a mail program with {SMIME}."
            ))),
        },
        _ => None,
    }
}

/// The format of the signature in the part with this index.
fn format_of_signature(parts: &[Part], index: usize) -> &'static str {
    let mut inside = parts.iter().skip(index + 1).filter(|part| part.parent() == index);
    let is_openpgp = inside.any(|part| part.media_type == "application/pgp-signature");
    if is_openpgp { OPENPGP } else { SMIME }
}

fn signed(what: &str, format: &str) -> KindNotice {
    KindNotice::sentence(&format!(
        "{what} has a digital signature ({format}). Barepost does not check it."
    ))
}

fn encrypted(what: &str, format: &str) -> KindNotice {
    KindNotice::sentence(&format!(
        "{what} is encrypted ({format}). Barepost cannot decrypt it: use a mail program that has your key."
    ))
}

/// Whether the text has a line that begins with `beginning`.
fn has_line(text: &str, beginning: &str) -> bool {
    let mut found = memchr::memmem::find_iter(text.as_bytes(), beginning);
    found.any(|at| matches!(text.as_bytes().get(..at), Some([] | [.., b'\n'])))
}
