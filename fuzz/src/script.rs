//! Scripts of a conversation: the client's bytes, with events between them.
//!
//! Most of the fuzzer's bytes are the client's bytes. A few byte values that never occur in UTF-8
//! text are events. So seeds are readable, and a dictionary's words are valid at any place. The
//! mutation of one byte can move the end of a segment or make the deadline expire.
//!
//! | byte | what happens |
//! |---|---|
//! | F8 | a segment ends here |
//! | F9 | the server is about to stop |
//! | FA | the deadline expires |
//! | FB | the peer closes |
//! | FC x | the client sends the byte x, whatever it is |
//! | FD x n | the client sends x, 16 × n times |
//! | FE | slow results are not given until FF |
//! | FF | slow results are given again |

/// One step of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// The client has sent these bytes.
    Bytes(Vec<u8>),
    /// A segment ends.
    Cut,
    /// An event between two segments.
    Event(Event),
}

/// An event other than the client's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Stopping,
    DeadlineExpired,
    PeerClosed,
    /// From now on slow results are held back.
    Hold,
    /// From now on slow results are given again.
    Answer,
}

/// The most bytes that a client sends in one script.
const BYTES_MAX: usize = 60_000;

/// Reads a script.
pub(crate) fn steps(mut bytes: &[u8]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut sent = 0;
    while let Some((&byte, rest)) = bytes.split_first() {
        bytes = rest;
        match byte {
            0xf8 => steps.push(Step::Cut),
            0xf9 => steps.push(Step::Event(Event::Stopping)),
            0xfa => steps.push(Step::Event(Event::DeadlineExpired)),
            0xfb => steps.push(Step::Event(Event::PeerClosed)),
            0xfc => sent += send(&mut steps, &take(&mut bytes, 1)),
            0xfd => {
                let repeated = take(&mut bytes, 2);
                if let [value, count] = repeated[..] {
                    sent += send(&mut steps, &vec![value; usize::from(count) * 16]);
                }
            }
            0xfe => steps.push(Step::Event(Event::Hold)),
            0xff => steps.push(Step::Event(Event::Answer)),
            _ => sent += send(&mut steps, &[byte]),
        }
        if sent > BYTES_MAX {
            break;
        }
    }
    steps
}

fn take(bytes: &mut &[u8], count: usize) -> Vec<u8> {
    let (taken, rest) = bytes.split_at(count.min(bytes.len()));
    *bytes = rest;
    taken.to_vec()
}

/// Appends bytes of the client to the script. Returns their number.
pub(crate) fn send(steps: &mut Vec<Step>, bytes: &[u8]) -> usize {
    if let Some(Step::Bytes(sent)) = steps.last_mut() {
        sent.extend_from_slice(bytes);
    } else {
        steps.push(Step::Bytes(bytes.to_vec()));
    }
    bytes.len()
}

/// The pieces in which the session gets the client's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// The segments of the script.
    AsCut,
    /// All bytes before an event in one piece.
    AtOnce,
    /// Single bytes.
    ByteByByte,
}
