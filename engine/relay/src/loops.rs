//! Marks by which this server knows a message that it has sent on before.
//!
//! Mail that is sent on may come back: an account here sends on to an account elsewhere that sends on
//! to one here. A server says in a field that a message was there (`Delivered-To:`), but anybody can
//! write that field, and could so keep an account from getting mail. So what counts is a mark in a
//! field of its own: a keyed hash of the account's address and of the message's identifier, which
//! stays what it is on the way.
//!
//! Invariants:
//! - Nobody else can make a mark. One that was seen is of use for messages with the same identifier
//!   and the same account only: each of them is taken for the message that was there.
//! - A loop in which another server removes marks ends all the same, by the number of `Received:`
//!   fields (RFC 5321 section 6.3).

use alloc::string::String;

use crate::srs::{Key, characters};

/// The field that has a mark.
pub const FIELD: &str = "X-Loop";

/// Characters of a mark, of five bits each.
const CHARACTERS: u32 = 12;

/// The mark of one message that one account has sent on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark(u64);

impl Mark {
    /// `identifier`: the value of the message's `Message-ID:` field, empty where it has none.
    pub fn new(key: &Key, account: &str, identifier: &[u8]) -> Mark {
        // White space may change on the way, and no address has a NUL: nothing else hashes the same.
        let identifier = identifier.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
        let text = b"\0".iter().copied().chain(account.to_ascii_lowercase().into_bytes()).chain([0]).chain(identifier);
        let bits = u64::BITS.min(5 * CHARACTERS);
        Mark(key.hash(&text.collect::<alloc::vec::Vec<u8>>()) & (u64::MAX >> (u64::BITS - bits)))
    }

    /// Whether the value of a field is this mark.
    pub fn is_in(self, value: &[u8]) -> bool {
        value.trim_ascii().eq_ignore_ascii_case(self.text().as_bytes())
    }

    /// The field that has it, with its line end.
    pub fn field(self) -> String {
        [FIELD, ": ", &self.text(), "\r\n"].concat()
    }

    fn text(self) -> String {
        characters(self.0, CHARACTERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(key: u8, account: &str, identifier: &str) -> Mark {
        Mark::new(&Key::new([key; 16]), account, identifier.as_bytes())
    }

    #[test]
    fn a_mark_is_of_one_key_account_and_message() {
        let own = mark(1, "ada@us.test", " <1@far.test>");
        assert_eq!(own, mark(1, "Ada@us.test", "\r\n\t<1@far.test> "), "white space and case may change");
        for other in [
            mark(2, "ada@us.test", "<1@far.test>"),
            mark(1, "grace@us.test", "<1@far.test>"),
            mark(1, "ada@us.test", "<2@far.test>"),
            mark(1, "ada@us.test", "<1@FAR.test>"),
            mark(1, "ada@us.test", ""),
            mark(1, "", "ada@us.test<1@far.test>"),
        ] {
            assert_ne!(own, other);
            assert!(!own.is_in(other.text().as_bytes()));
        }
    }

    #[test]
    fn a_mark_is_known_in_its_field() {
        let own = mark(1, "ada@us.test", "<1@far.test>");
        let field = own.field();
        let value = field.strip_prefix("X-Loop:").unwrap();
        assert_eq!(value.trim().len(), 12);
        assert!(own.is_in(value.as_bytes()) && own.is_in(value.trim().to_ascii_lowercase().as_bytes()));
        for other in ["", "ada@us.test", value.get(..8).unwrap(), &[value.trim(), "A"].concat()] {
            assert!(!own.is_in(other.as_bytes()), "{other}");
        }
    }
}
