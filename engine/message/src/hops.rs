//! Counts the `Received:` fields of a message while it streams by: many of them mean that it runs in circles.
//!
//! Invariants:
//! - The count does not depend on how the message is cut into pieces.
//! - Nothing is counted after the empty line that ends the header, and nothing but a position is kept.
//!
//! Answers to: RFC 5321 section 6.3 (loop detection by counting, at least 100), RFC 5322 section 4.5.

const FIELD_NAME: &[u8; 8] = b"received";

/// The count of a message's `Received:` fields so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceivedCount {
    count: u16,
    expect: Expect,
}

/// What the next byte may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expect {
    /// The field's name, of which so many bytes matched; 0 at the start of a line.
    Name { matched: u8 },
    /// The colon, after the whole name (old mail may put white space before it).
    Colon,
    /// The rest of a line that is no `Received:` field, or not any more.
    LineEnd,
    /// Nothing: the header is over.
    Body,
}

impl Default for Expect {
    fn default() -> Expect {
        Expect::Name { matched: 0 }
    }
}

impl ReceivedCount {
    /// Looks at the next bytes of the message. Free once the header is over.
    pub fn bytes_arrived(&mut self, mut bytes: &[u8]) {
        while self.expect != Expect::Body {
            if self.expect == Expect::LineEnd {
                let Some(line_end) = memchr::memchr(b'\n', bytes) else { return };
                bytes = bytes.get(line_end..).unwrap_or_default();
            }
            let Some((&byte, rest)) = bytes.split_first() else { return };
            self.byte_arrived(byte);
            bytes = rest;
        }
    }

    /// How many there were so far; 65,535 stands for that and more.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Whether the header is over and the count final.
    pub fn is_final(&self) -> bool {
        self.expect == Expect::Body
    }

    fn byte_arrived(&mut self, byte: u8) {
        self.expect = match self.expect {
            _ if byte == b'\n' => match self.expect {
                Expect::Name { matched: 0 } => Expect::Body,
                _ => Expect::Name { matched: 0 },
            },
            // The CR of an empty line: what follows decides.
            Expect::Name { matched: 0 } if byte == b'\r' => Expect::Name { matched: 0 },
            Expect::Name { matched } => match FIELD_NAME.get(usize::from(matched)) {
                Some(&expected) if byte.eq_ignore_ascii_case(&expected) => {
                    if usize::from(matched) + 1 == FIELD_NAME.len() {
                        Expect::Colon
                    } else {
                        Expect::Name { matched: matched + 1 }
                    }
                }
                _ => Expect::LineEnd,
            },
            Expect::Colon => match byte {
                b':' => {
                    self.count = self.count.saturating_add(1);
                    Expect::LineEnd
                }
                b' ' | b'\t' => Expect::Colon,
                _ => Expect::LineEnd,
            },
            Expect::LineEnd => Expect::LineEnd,
            Expect::Body => Expect::Body,
        };
    }
}

const _: () = assert!(size_of::<ReceivedCount>() <= 4);
