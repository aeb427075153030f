//! Examines the bytes of a message as they arrive: undoes dot-stuffing, and finds the end of data
//! and bare line ends.
//!
//! After DATA, a bare CR or LF has no safe meaning: some servers take it for a line end, and so
//! find an end of data that others do not find. After BDAT, the client has said how long the chunk
//! is, so a bare LF can only be a line end, and gets its CR ([`ContentRun::MissingCr`]). Exchange
//! Online sends messages that have bare LF to servers that announce CHUNKING. A bare CR may be a
//! line end or not, so it is refused after BDAT too.
//!
//! The bytes are cut into runs. For each piece that arrives, nearly all of it is one long
//! [`ContentRun::Content`]: a slice of the received bytes, passed on without a copy. Only a line
//! that begins with a dot ends a run early. Line ends are examined one by one only near a dot or a
//! bare line end, and in the last bytes of a piece.
//!
//! Invariants:
//! - The concatenated content, and the position of the end, do not depend on how the bytes are cut
//!   into pieces.
//! - No byte is held back. A CR is passed on before the next byte is known, since the message is
//!   refused if that byte is not an LF. Only a CR after a removed dot is dropped. After DATA, a dot
//!   at a line's start is never content.
//! - The end of data is found only at CRLF.CRLF, or at .CRLF before any content. Bare line ends do
//!   not change that.
//!
//! Implements: RFC 5321 sections 2.3.8, 4.1.1.4 and 4.5.2; RFC 3030 section 2.

/// The end of the bytes of a message that were examined so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Position {
    /// No byte was examined, or the last two are CRLF.
    #[default]
    LineStart,
    /// Any other byte.
    InLine,
    /// A CR.
    AfterCr,
    /// A dot at a line's start, which was removed.
    AfterDot,
    /// A removed dot, and a CR after it.
    AfterDotCr,
}

impl Position {
    /// The position after content that ends in `last` and has no bare line ends.
    pub(crate) fn after(last: u8) -> Position {
        match last {
            b'\n' => Position::LineStart,
            b'\r' => Position::AfterCr,
            _ => Position::InLine,
        }
    }
}

/// Whether dots at the start of lines are doubled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dots {
    /// Dots are doubled, and a line of one dot ends the message: DATA.
    Stuffed,
    /// Dots are not doubled, and the chunk has a known size: BDAT.
    Plain,
}

/// The kind of a message's next bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ContentRun {
    /// This many bytes of content, and the position after them.
    Content(usize, Position),
    /// This many bytes that are not content.
    Dropped(usize, Position),
    /// The last bytes of the end of data.
    End(usize),
    /// This many bytes (perhaps none) that end in, or end before, a CR or an LF that is not part of
    /// a CRLF.
    BareLineEnd(usize, Position),
    /// The next byte is a bare LF in a chunk: a CR is to be added before it.
    MissingCr,
}

/// The next run of `bytes`, which is not empty.
pub(crate) fn next_run(position: Position, bytes: &[u8], dots: Dots) -> ContentRun {
    let first = bytes.first().copied();
    match position {
        Position::LineStart if dots == Dots::Stuffed && first == Some(b'.') => {
            if bytes.starts_with(b".\r\n") {
                ContentRun::End(3)
            } else {
                ContentRun::Dropped(1, Position::AfterDot)
            }
        }
        Position::AfterDot if first == Some(b'\r') => ContentRun::Dropped(1, Position::AfterDotCr),
        Position::AfterDotCr if first == Some(b'\n') => ContentRun::End(1),
        Position::AfterDotCr => ContentRun::BareLineEnd(0, Position::InLine),
        Position::AfterCr if first != Some(b'\n') => ContentRun::BareLineEnd(0, Position::InLine),
        Position::AfterCr if bytes.len() == 1 => ContentRun::Content(1, Position::LineStart),
        Position::AfterCr => match bytes.get(1) {
            Some(b'.') if dots == Dots::Stuffed => ContentRun::Content(1, Position::LineStart),
            _ => content_run(bytes, 1, dots),
        },
        Position::LineStart | Position::InLine | Position::AfterDot => content_run(bytes, 0, dots),
    }
}

/// The run of content at the start of `bytes`. An earlier check has found no bare line end in the
/// first `from` bytes.
fn content_run(bytes: &[u8], mut from: usize, dots: Dots) -> ContentRun {
    from += clean_blocks(bytes.get(from..).unwrap_or_default());
    if from > 0 && bytes.get(from - 1) == Some(&b'\r') {
        // If a line end is cut between two blocks, both of its bytes are examined again together.
        from -= 1;
    }
    loop {
        let rest = bytes.get(from..).unwrap_or_default();
        let Some(offset) = memchr::memchr2(b'\r', b'\n', rest) else {
            let position = if rest.is_empty() { Position::LineStart } else { Position::InLine };
            return ContentRun::Content(bytes.len(), position);
        };
        let line_end = from + offset;
        match (bytes.get(line_end), bytes.get(line_end + 1)) {
            (Some(b'\r'), Some(b'\n')) => {}
            (Some(b'\r'), None) => return ContentRun::Content(bytes.len(), Position::AfterCr),
            (Some(b'\n'), _) if dots == Dots::Plain => return before_bare_lf(bytes, line_end),
            _ => return ContentRun::BareLineEnd(line_end + 1, Position::InLine),
        }
        from = line_end + 2;
        if dots == Dots::Stuffed && bytes.get(from) == Some(&b'.') {
            return ContentRun::Content(from, Position::LineStart);
        }
    }
}

/// The run before the bare LF at `line_end` in a chunk.
fn before_bare_lf(bytes: &[u8], line_end: usize) -> ContentRun {
    match bytes.get(..line_end).and_then(|before| before.last()) {
        Some(&last) => ContentRun::Content(line_end, Position::after(last)),
        None => ContentRun::MissingCr,
    }
}

/// The number of bytes that are examined together.
const BLOCK_BYTES: usize = 64;
type ContentBlock = [u8; BLOCK_BYTES];

/// Returns the number of bytes in the leading whole blocks that are clean. In a clean block each CR
/// and each LF belongs to a CRLF, and no line begins with a dot. Nearly all blocks of a message are
/// clean. The comparisons need no branch, and use vector instructions.
fn clean_blocks(bytes: &[u8]) -> usize {
    if bytes.first() == Some(&b'\n') {
        return 0;
    }
    // Each byte is compared with the next two, so each LF is examined once, together with the bytes
    // before and after it.
    let from =
        |start: usize| bytes.get(start..).unwrap_or_default().as_chunks::<BLOCK_BYTES>().0.iter();
    let is_clean = |((block, next), second): &((&ContentBlock, &ContentBlock), &ContentBlock)| {
        let triples = block.iter().zip(next.iter()).zip(second.iter());
        !triples.fold(false, |doubtful, ((byte, next), second)| {
            let is_end = *next == b'\n';
            doubtful | ((*byte == b'\r') != is_end) | (is_end & (*second == b'.'))
        })
    };
    from(0).zip(from(1)).zip(from(2)).take_while(is_clean).count() * BLOCK_BYTES
}
