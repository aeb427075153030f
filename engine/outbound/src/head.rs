//! The head of an entry, above the message: its signatures, a line that marks a message with long
//! lines, then its envelope.
//!
//! All three are read from the entry's beginning, which may arrive in parts of any size. The store
//! appends the signatures last, so they may cross the boundary of a chunk. The envelope begins in a
//! new part after the signatures (`store::PartialMessage`).
//!
//! Invariants:
//! - The result does not depend on where the parts end: the head is parsed again from its start
//!   until it is complete.
//! - A reader gathers at most [`BYTES_MAX`] bytes of an entry, and one more part.

use relay::Envelope;
use relay::envelope::{self, UnreadableEnvelope};
use store::{HeadSize, PartialMessage};

/// The greatest length of a head.
const BYTES_MAX: usize = HeadSize::OCTETS_MAX + envelope::BYTES_MAX;

/// The beginning of a field that is a signature.
const SIGNATURE: &[u8] = b"DKIM-Signature:";

/// The head of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct EntryHead {
    /// The length of its signatures in bytes.
    pub(super) signatures: usize,
    /// Whether the message has lines that are too long for other servers.
    pub(super) has_long_lines: bool,
    pub(super) envelope: Envelope,
    /// The offset of the message, after its signatures and the envelope.
    pub(super) message_at: usize,
}

/// The extent of an entry that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EntryExtent {
    /// The beginning of the entry: more can be read.
    Beginning,
    /// The whole entry, or all of it that can be read.
    Whole,
}

impl EntryExtent {
    /// The extent that was read of an entry of `octets` bytes.
    pub(super) fn of(beginning: &PartialMessage, octets: u32) -> EntryExtent {
        if beginning.is_all_of(octets) { EntryExtent::Whole } else { EntryExtent::Beginning }
    }
}

/// Reads the head of an entry from its first bytes. `extent`: whether these are all of its bytes.
///
/// Errors: `Partial` if the bytes may end within the head. A whole entry never gives `Partial`.
pub(super) fn read(entry: &[u8], extent: EntryExtent) -> Result<EntryHead, UnreadableEnvelope> {
    let read = signatures_length(entry).and_then(|signatures| {
        let mark = mark_length(entry.get(signatures..).unwrap_or_default())?;
        let envelope_at = signatures + mark;
        let (envelope, length) = envelope::read(entry.get(envelope_at..).unwrap_or_default())?;
        let message_at = envelope_at + length;
        Ok(EntryHead { signatures, has_long_lines: mark > 0, envelope, message_at })
    });
    match read {
        Err(UnreadableEnvelope::Partial)
            if extent == EntryExtent::Whole || entry.len() >= BYTES_MAX =>
        {
            Err(UnreadableEnvelope::Malformed)
        }
        read => read,
    }
}

/// The length in bytes of the signatures above an envelope.
fn signatures_length(entry: &[u8]) -> Result<usize, UnreadableEnvelope> {
    let mut length = 0;
    loop {
        let rest = entry.get(length..).unwrap_or_default();
        if !rest.starts_with(SIGNATURE) {
            let may_be_one = SIGNATURE.starts_with(rest);
            return if may_be_one { Err(UnreadableEnvelope::Partial) } else { Ok(length) };
        }
        // A field ends where the next line is not a continuation line. Only the first byte of the
        // next line shows that.
        let mut ends = memchr::memmem::find_iter(rest, b"\r\n").map(|end| end + 2);
        let end = ends
            .find(|end| !matches!(rest.get(*end), Some(b' ' | b'\t')))
            .filter(|end| *end < rest.len());
        length += end.ok_or(UnreadableEnvelope::Partial)?;
    }
}

/// The length in bytes of the line above an envelope that marks a message with long lines. The line
/// may be padded with spaces.
fn mark_length(entry: &[u8]) -> Result<usize, UnreadableEnvelope> {
    let mark = envelope::LONG_LINES.trim_ascii_end();
    let Some(rest) = entry.strip_prefix(mark) else {
        return if mark.starts_with(entry) { Err(UnreadableEnvelope::Partial) } else { Ok(0) };
    };
    let end = memchr::memmem::find(rest, b"\r\n").ok_or(UnreadableEnvelope::Partial)?;
    Ok(mark.len() + end + b"\r\n".len())
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;
    use accounts::entries::envelope_of;

    const PART: usize = store::CHUNK_OCTETS;

    fn signature(length: usize) -> Vec<u8> {
        let mut field = b"DKIM-Signature: v=1;\r\n\tb=".to_vec();
        assert!(length > field.len() + 2);
        field.resize(length - 2, b'x');
        field.extend_from_slice(b"\r\n");
        field
    }

    /// An entry, and where its signatures and its envelope end.
    fn entry(signatures: &[usize], mark: &str, recipients: usize) -> (Vec<u8>, usize, usize) {
        let mut entry: Vec<u8> = signatures.iter().flat_map(|length| signature(*length)).collect();
        let signatures = entry.len();
        entry.extend_from_slice(mark.as_bytes());
        let to: Vec<String> =
            (0..recipients).map(|number| alloc::format!("friend{number}@far.test")).collect();
        envelope::write(&envelope_of("ada@barepost.test", &to), &mut entry).unwrap();
        let message_at = entry.len();
        entry.extend_from_slice(b"Subject: a\r\n\r\nDKIM-Signature: of no concern\r\n");
        (entry, signatures, message_at)
    }

    /// Reads the head of an entry that comes in parts of these lengths, in the same way as a
    /// reader.
    fn gathered(
        entry: &[u8],
        mut part: impl FnMut() -> usize,
    ) -> Result<EntryHead, UnreadableEnvelope> {
        let mut beginning = PartialMessage::from(0);
        loop {
            let rest = &entry[beginning.next() as usize..];
            beginning.arrived(&rest[..part().min(rest.len())]);
            match read(beginning.octets(), EntryExtent::of(&beginning, entry.len() as u32)) {
                Err(UnreadableEnvelope::Partial) => {}
                read => return read,
            }
        }
    }

    #[test]
    fn entry_head_is_read_wherever_its_parts_end() {
        for (signatures, mark, recipients) in [
            (&[][..], "", 1),
            (&[], "Envelope-Lines: LONG  \r\n", 2),
            (&[400], "", 3),
            (&[600, 480], "Envelope-Lines: LONG\r\n", 9),
            (&[1000, 1040], "", 40),
        ] {
            let (entry, signatures, message_at) = entry(signatures, mark, recipients);
            let whole = read(&entry, EntryExtent::Whole).unwrap();
            assert_eq!(whole.has_long_lines, !mark.is_empty());
            assert_eq!((whole.signatures, whole.message_at), (signatures, message_at));
            assert_eq!(whole.envelope.recipients.len(), recipients);
            for first in 1..=message_at + 2 {
                let mut parts = [first].into_iter();
                assert_eq!(
                    gathered(&entry, || parts.next().unwrap_or(PART)),
                    Ok(whole.clone()),
                    "cut at {first}"
                );
            }
            for part in [1, 2, 7, 100] {
                assert_eq!(gathered(&entry, || part), Ok(whole.clone()), "in parts of {part}");
            }
        }
    }

    #[test]
    fn malformed_entry_head_is_reported_and_ends() {
        let (entry, _, message_at) = entry(&[400], "", 3);
        for end in 0..message_at {
            assert_eq!(
                gathered(&entry[..end], || 50),
                Err(UnreadableEnvelope::Malformed),
                "ends at {end}"
            );
        }
        let endless = signature(400).repeat(2000);
        assert!(endless.len() > 2 * BYTES_MAX);
        let mut parts = 0;
        let read = gathered(&endless, || {
            parts += 1;
            PART
        });
        assert_eq!((read, parts), (Err(UnreadableEnvelope::Malformed), BYTES_MAX.div_ceil(PART)));
        assert_eq!(read_of_rubbish(), Err(UnreadableEnvelope::Malformed));
    }

    fn read_of_rubbish() -> Result<EntryHead, UnreadableEnvelope> {
        gathered(b"Subject: no envelope\r\n\r\nHello.\r\n", || PART)
    }
}
