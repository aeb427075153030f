//! Marks by which this server recognises a message that it has forwarded before.
//!
//! Forwarded mail may come back, for example if an account here forwards to an account at another
//! server, which forwards to an account here. A `Delivered-To:` field says that a message passed an
//! account. But anyone can write that field, so a forged field could block mail for an account. So
//! only a mark in a separate field counts. The mark is a keyed hash of the account's address and of
//! the message's identifier, which does not change on the way.
//!
//! Invariants:
//! - Only this server can make a mark. A copied mark works only for the same account and messages
//!   with the same identifier: such a message counts as forwarded before.
//! - If another server removes the marks, the number of `Received:` fields ends the loop (RFC 5321
//!   section 6.3).

use alloc::string::String;

use crate::srs::{SrsKey, characters};

/// The name of the header field that holds a mark.
pub const FIELD: &str = "X-Loop";

/// The number of characters in a mark. Each has five bits.
const CHARACTERS: u32 = 12;

/// The mark of one message that one account has forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopMark(u64);

impl LoopMark {
    /// `identifier`: the value of the message's `Message-ID:` field, empty if it has none.
    pub fn new(key: &SrsKey, account: &str, identifier: &[u8]) -> LoopMark {
        // White space may change on the way, so it is left out. No address has a NUL, so each pair
        // of address and identifier has a different text.
        let identifier = identifier.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
        let text = b"\0"
            .iter()
            .copied()
            .chain(account.to_ascii_lowercase().into_bytes())
            .chain([0])
            .chain(identifier);
        let bits = u64::BITS.min(5 * CHARACTERS);
        LoopMark(
            key.hash(&text.collect::<alloc::vec::Vec<u8>>()) & (u64::MAX >> (u64::BITS - bits)),
        )
    }

    /// Whether the value of a field is this mark.
    pub fn is_in(self, value: &[u8]) -> bool {
        value.trim_ascii().eq_ignore_ascii_case(self.text().as_bytes())
    }

    /// The header field with the mark, including its line end.
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

    fn mark(key: u8, account: &str, identifier: &str) -> LoopMark {
        LoopMark::new(&SrsKey::new([key; 16]), account, identifier.as_bytes())
    }

    #[test]
    fn mark_depends_on_key_account_and_message() {
        let own = mark(1, "ada@us.test", " <1@far.test>");
        assert_eq!(
            own,
            mark(1, "Ada@us.test", "\r\n\t<1@far.test> "),
            "white space and case may change"
        );
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
    fn mark_is_recognised_in_its_field() {
        let own = mark(1, "ada@us.test", "<1@far.test>");
        let field = own.field();
        let value = field.strip_prefix("X-Loop:").unwrap();
        assert_eq!(value.trim().len(), 12);
        assert!(
            own.is_in(value.as_bytes()) && own.is_in(value.trim().to_ascii_lowercase().as_bytes())
        );
        for other in ["", "ada@us.test", value.get(..8).unwrap(), &[value.trim(), "A"].concat()] {
            assert!(!own.is_in(other.as_bytes()), "{other}");
        }
    }
}
