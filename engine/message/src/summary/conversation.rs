//! The numbers of conversations.
//!
//! The upper 48 bits of a number are the *thread*: the hash of the identifier of the first message.
//! The lower 16 bits are the *digest* of a first message: a hash of its date and its subject. All
//! other messages have the digest zero.
//!
//! Some scanners give all their messages one identifier. The digest keeps them apart. All copies of
//! one message have the same digest, even a copy from a mailing list that puts its name before the
//! subject.
//!
//! Invariant: the upper 16 bits of a number are not all zero. Other numbers are left to messages
//! without an identifier.

use core::hash::Hasher as _;

use machine::UnixTime;
use siphasher::sip::SipHasher13;

const DIGEST_BITS: u64 = 0xffff;

/// The bytes of a subject that count. A subject in a summary has at most 120 bytes, with the name
/// of a mailing list before it.
const SUBJECT_BYTES_COUNTED: usize = 60;

/// The conversation of a message that answers another. `first`: the hash of the identifier of the
/// conversation's first message.
pub(super) fn of_answer(first: u64) -> u64 {
    let thread = first & !DIGEST_BITS;
    if thread >> 48 == 0 { thread | 1 << 48 } else { thread }
}

/// The conversation of a message that answers no other. `own`: the hash of its identifier.
pub(super) fn of_first(own: u64, sent: Option<UnixTime>, subject: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write_u64(sent.map_or(0, UnixTime::seconds));
    let subject = without_prefixes(subject);
    hasher.write(subject.get(..SUBJECT_BYTES_COUNTED).unwrap_or(subject));
    of_answer(own) | (hasher.finish() & DIGEST_BITS).max(1)
}

/// A subject without `[name of a list]` and `Re:` before it.
fn without_prefixes(mut subject: &[u8]) -> &[u8] {
    loop {
        subject = subject.trim_ascii_start();
        subject = match subject {
            [b'[', rest @ ..] => match memchr::memchr(b']', rest) {
                Some(end) => rest.get(end + 1..).unwrap_or_default(),
                None => return subject,
            },
            [b'R' | b'r', b'E' | b'e', b':', rest @ ..] => rest,
            _ => return subject,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_messages_differ_by_date_and_by_subject() {
        let number = |seconds, subject: &str| {
            of_first(1 << 60, Some(UnixTime::from_seconds(seconds)), subject.as_bytes())
        };
        let first = number(1_000, "Scan of a page");
        assert_eq!(number(1_000, "[list] Re: [other]  Scan of a page"), first);
        assert_eq!(number(1_000, "re:Scan of a page"), first);
        for other in [number(1_001, "Scan of a page"), number(1_000, "Scan of two pages")] {
            assert_ne!(other, first);
            assert_eq!(other >> 16, first >> 16);
        }
        assert_eq!(number(1_000, "[not closed"), number(1_000, " [not closed"));
        assert_ne!(of_first(1, None, b"") & 0xffff, 0);
    }

    #[test]
    fn conversation_number_of_an_answer_has_no_digest() {
        let thread = of_first(u64::MAX, None, b"a subject") & !0xffff;
        assert_eq!(of_answer(u64::MAX), thread);
        assert_eq!([0, 1, 0xffff, (1 << 48) - 1].map(|hash| of_answer(hash) >> 48), [1; 4]);
    }
}
