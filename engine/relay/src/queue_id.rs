//! Queue ids: the name of a message in its `Received:` field and in the reply to the client.

/// The number of characters in a queue id.
const QUEUE_ID_BYTES: usize = 16;

/// A source of ids. It gives each id at most once in a life of the machine. Most likely an earlier
/// life has not given the id either.
#[derive(Debug)]
pub struct QueueIds {
    next: u64,
}

/// One id: printable, without a vowel or a character that is easily mistaken for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueId([u8; QUEUE_ID_BYTES]);

impl QueueIds {
    /// Two sources that count up from a random number. They never give the same id.
    pub fn pair(random: u64) -> [QueueIds; 2] {
        [random, random ^ (1 << 63)].map(|next| QueueIds { next })
    }

    /// An id for the next message.
    pub fn draw(&mut self) -> QueueId {
        const ALPHABET: &[u8; 16] = b"23456789bcdfghjk";
        self.next = self.next.wrapping_add(1);
        // Successive ids should look different. Multiplying by an odd number is a bijection, so
        // they stay unique.
        let shuffled = self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut name = [b'2'; QUEUE_ID_BYTES];
        for (place, shift) in name.iter_mut().zip((0..64).step_by(4)) {
            *place = *ALPHABET.get((shuffled >> shift & 0xf) as usize).unwrap_or(&b'2');
        }
        QueueId(name)
    }
}

impl QueueId {
    /// The characters of the id, in ASCII.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
