//! Scripts of a conversation: the client's bytes as they are, and what else happens in between.
//!
//! The fuzzer's bytes are the client's. A few byte values that occur in no UTF-8 text are events.
//! So seeds are readable, words of a dictionary fit in anywhere, and a mutation of one byte moves a
//! cut or makes the deadline expire.
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
    /// The client has sent these.
    Bytes(Vec<u8>),
    /// A segment ends.
    Cut,
    /// Something happens between two segments.
    Event(Event),
}

/// What happens beside the client's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Stopping,
    DeadlineExpired,
    PeerClosed,
    /// Nothing that takes time is answered.
    Hold,
    /// It is again.
    Answer,
}

/// The bytes that a client may send in all.
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

/// The client sends these. Returns how many they are.
pub(crate) fn send(steps: &mut Vec<Step>, bytes: &[u8]) -> usize {
    if let Some(Step::Bytes(sent)) = steps.last_mut() {
        sent.extend_from_slice(bytes);
    } else {
        steps.push(Step::Bytes(bytes.to_vec()));
    }
    bytes.len()
}

/// How the client's bytes are handed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// In the segments that the script says.
    AsCut,
    /// All that come before an event at once.
    AtOnce,
    /// Each by itself.
    ByteByByte,
}
