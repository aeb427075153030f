//! The bytes of a message as they stream by: undoes dot-stuffing, finds the end, and finds line ends that are none.
//!
//! The work is cut into runs. Nearly all of a message is one long [`Run::Content`] for each piece that arrives: a slice of
//! what was received, passed on where it lies. Only a line that begins with a dot ends a run early. Line ends are looked for
//! one by one only near a dot or a bare line end, and in the last bytes of a piece.
//!
//! Invariants:
//! - The concatenated content, and the place of the end, do not depend on how the bytes are cut into pieces.
//! - Nothing is held back: a CR is passed on at once, because it is content whatever follows it, and a dot at a line's
//!   start is content in no case.
//! - The end of data is found at CRLF.CRLF (or at .CRLF before any content) and nowhere else, bare line ends or not.
//!
//! Answers to: RFC 5321 sections 2.3.8, 4.1.1.4 and 4.5.2; RFC 3030 section 2.

/// What was seen last of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Position {
    /// Nothing yet, or a CRLF.
    #[default]
    LineStart,
    /// Something else than the others here.
    InLine,
    /// A CR.
    AfterCr,
    /// The dot at a line's start, which was taken away.
    AfterDot,
    /// That dot and a CR.
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

/// Whether dots at the start of lines were doubled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dots {
    /// They were, and a line of one dot is the end: DATA.
    Stuffed,
    /// They were not, and the end is known otherwise: BDAT.
    Plain,
}

/// What a message's next bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Run {
    /// So many bytes of content; then the position is another.
    Content(usize, Position),
    /// So many bytes that are no content.
    Dropped(usize, Position),
    /// The last so many bytes of the end of data.
    End(usize),
    /// So many bytes (perhaps none) that end in, or end before, a CR or an LF that is not part of a CRLF.
    BareLineEnd(usize, Position),
}

/// The next run of `bytes`, which is not empty.
pub(crate) fn next_run(position: Position, bytes: &[u8], dots: Dots) -> Run {
    let first = bytes.first().copied();
    match position {
        Position::LineStart if dots == Dots::Stuffed && first == Some(b'.') => {
            if bytes.starts_with(b".\r\n") {
                Run::End(3)
            } else {
                Run::Dropped(1, Position::AfterDot)
            }
        }
        Position::AfterDot if first == Some(b'\r') => Run::Dropped(1, Position::AfterDotCr),
        Position::AfterDotCr if first == Some(b'\n') => Run::End(1),
        Position::AfterDotCr => Run::BareLineEnd(0, Position::InLine),
        Position::AfterCr if first != Some(b'\n') => Run::BareLineEnd(0, Position::InLine),
        Position::AfterCr if bytes.len() == 1 => Run::Content(1, Position::LineStart),
        Position::AfterCr => match bytes.get(1) {
            Some(b'.') if dots == Dots::Stuffed => Run::Content(1, Position::LineStart),
            _ => content_run(bytes, 1, dots),
        },
        Position::LineStart | Position::InLine | Position::AfterDot => content_run(bytes, 0, dots),
    }
}

/// The run of content from the first of `bytes`, of which `from` are known to end a line or are none.
fn content_run(bytes: &[u8], mut from: usize, dots: Dots) -> Run {
    from += clean_blocks(bytes.get(from..).unwrap_or_default());
    if from > 0 && bytes.get(from - 1) == Some(&b'\r') {
        // The line end that two blocks share is looked at as a whole.
        from -= 1;
    }
    loop {
        let rest = bytes.get(from..).unwrap_or_default();
        let Some(offset) = memchr::memchr2(b'\r', b'\n', rest) else {
            let position = if rest.is_empty() { Position::LineStart } else { Position::InLine };
            return Run::Content(bytes.len(), position);
        };
        let line_end = from + offset;
        match (bytes.get(line_end), bytes.get(line_end + 1)) {
            (Some(b'\r'), Some(b'\n')) => {}
            (Some(b'\r'), None) => return Run::Content(bytes.len(), Position::AfterCr),
            _ => return Run::BareLineEnd(line_end + 1, Position::InLine),
        }
        from = line_end + 2;
        if dots == Dots::Stuffed && bytes.get(from) == Some(&b'.') {
            return Run::Content(from, Position::LineStart);
        }
    }
}

/// Bytes that are looked at together.
const BLOCK_BYTES: usize = 64;
type Block = [u8; BLOCK_BYTES];

/// How many of `bytes` are in whole blocks, from the first on, in which each CR has its LF, each LF its CR, and no line
/// begins with a dot. Nearly all of a message is, and the comparisons are made without a branch, a vector at a time.
fn clean_blocks(bytes: &[u8]) -> usize {
    if bytes.first() == Some(&b'\n') {
        return 0;
    }
    // Each byte with the two behind it: a dot is known by the LF before it, so an LF is looked for once.
    let from =
        |start: usize| bytes.get(start..).unwrap_or_default().as_chunks::<BLOCK_BYTES>().0.iter();
    let is_clean = |((block, next), second): &((&Block, &Block), &Block)| {
        let triples = block.iter().zip(next.iter()).zip(second.iter());
        !triples.fold(false, |doubtful, ((byte, next), second)| {
            let is_end = *next == b'\n';
            doubtful | ((*byte == b'\r') != is_end) | (is_end & (*second == b'.'))
        })
    };
    from(0).zip(from(1)).zip(from(2)).take_while(is_clean).count() * BLOCK_BYTES
}
