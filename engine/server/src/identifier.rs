//! Names for messages on their way through: what the `Received:` field and the reply to the client say.

/// Characters of an identifier.
pub(crate) const IDENTIFIER_BYTES: usize = 16;

/// Gives each message a name that no message of this machine had in this life, nor likely in any other.
#[derive(Debug)]
pub(crate) struct Identifiers {
    next: u64,
}

/// One name: printable, without a vowel or a character that is easily mistaken for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Identifier([u8; IDENTIFIER_BYTES]);

impl Identifiers {
    /// Names counted on from a random number, in two halves: no name of one is one of the other's.
    pub(crate) fn pair(random: u64) -> [Identifiers; 2] {
        [random, random ^ (1 << 63)].map(|next| Identifiers { next })
    }

    pub(crate) fn next(&mut self) -> Identifier {
        const ALPHABET: &[u8; 16] = b"23456789bcdfghjk";
        self.next = self.next.wrapping_add(1);
        // Names of successive messages should look different: multiplying by an odd number only shuffles.
        let shuffled = self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut name = [b'2'; IDENTIFIER_BYTES];
        for (place, shift) in name.iter_mut().zip((0..64).step_by(4)) {
            *place = *ALPHABET.get((shuffled >> shift & 0xf) as usize).unwrap_or(&b'2');
        }
        Identifier(name)
    }
}

impl Identifier {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
