//! Scripts of an HTTP/2 client: frames, raw bytes, and other events.
//!
//! | byte (mod 24) | and after it | what happens |
//! |---|---|---|
//! | 0 to 9 | flags, stream, n, n bytes | a frame of this kind |
//! | 10, 11, 12 | what, stream | a request of `REQUESTS`; see `request` |
//! | 13 | stream, flags, n | a part of a body of 64 × n bytes |
//! | 14 | stream, bits | a window opens by a power of two, less one if the highest bit is set |
//! | 15 | bits | another initial window: a power of two, less one |
//! | 16 | n | the last frame is sent n more times |
//! | 17 | n, n bytes | the n bytes are sent |
//! | 18 | n | a frame of an unknown kind, of 16 × n bytes |
//! | 19 | | the server is about to stop |
//! | 20 | | the deadline expires |
//! | 21 | | the peer closes |
//! | 22 | | slow results are held back from now on, or no longer held back |
//! | 23 | | a segment ends |

use crate::script::{Event, Step, send};

/// The most bytes that a client sends in one script.
const BYTES_MAX: usize = 40_000;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Method and path of each request.
const REQUESTS: [(&str, &str); 8] = [
    ("GET", "/a.txt"),
    ("GET", "/large"),
    ("HEAD", "/a.css"),
    ("POST", "/p/form"),
    ("PUT", "/p/form"),
    ("GET", "/p/page"),
    ("POST", "/"),
    ("GET", "/none"),
];

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;

/// Reads a script. `begins_well`: the client first sends its preface and SETTINGS.
pub(super) fn steps(bytes: &[u8], begins_well: bool) -> Vec<Step> {
    let mut script = Script { bytes, steps: Vec::new(), sent: 0, last: Vec::new(), is_held: false };
    if begins_well {
        let settings = frame(SETTINGS, 0, 0, &[]);
        script.send_bytes(&[PREFACE, &settings].concat());
    }
    while script.sent <= BYTES_MAX && script.step().is_some() {}
    script.steps
}

struct Script<'a> {
    /// The rest of the input.
    bytes: &'a [u8],
    steps: Vec<Step>,
    /// The number of bytes that the client has sent.
    sent: usize,
    /// The last frame.
    last: Vec<u8>,
    /// Whether slow results are held back.
    is_held: bool,
}

impl Script<'_> {
    fn step(&mut self) -> Option<()> {
        match self.byte()? % 24 {
            kind @ 0..=9 => {
                let (flags, stream, length) = (self.byte()?, self.stream()?, self.byte()?);
                let payload = self.take(length);
                self.send_frame(frame(kind, flags, stream, &payload));
            }
            10..=12 => {
                let (what, stream) = (self.byte()?, self.stream()?);
                self.send_frame(request(what, stream));
            }
            13 => {
                let (stream, flags, count) = (self.stream()?, self.byte()?, self.byte()?);
                self.send_frame(frame(
                    0,
                    flags & END_STREAM,
                    stream,
                    &vec![b'x'; usize::from(count) * 64],
                ));
            }
            14 => {
                let (stream, bits) = (self.stream()?, self.byte()?);
                let increment = (1_u32 << (bits % 32)) - u32::from(bits >> 7);
                self.send_frame(frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes()));
            }
            15 => {
                let window = (1_u32 << (self.byte()? % 32)) - 1;
                self.send_frame(frame(
                    SETTINGS,
                    0,
                    0,
                    &[&[0, 4][..], &window.to_be_bytes()].concat(),
                ));
            }
            16 => {
                for _ in 0..self.byte()? {
                    self.send_bytes(&self.last.clone());
                }
            }
            17 => {
                let length = self.byte()?;
                let raw = self.take(length);
                self.send_bytes(&raw);
            }
            18 => {
                let count = self.byte()?;
                self.send_frame(frame(0xfa, 0, 0, &vec![0; usize::from(count) * 16]));
            }
            19 => self.steps.push(Step::Event(Event::Stopping)),
            20 => self.steps.push(Step::Event(Event::DeadlineExpired)),
            21 => self.steps.push(Step::Event(Event::PeerClosed)),
            22 => {
                self.is_held = !self.is_held;
                self.steps.push(Step::Event(if self.is_held {
                    Event::Hold
                } else {
                    Event::Answer
                }));
            }
            _ => self.steps.push(Step::Cut),
        }
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    /// Reads a stream number. Most are odd, like those that a client opens.
    fn stream(&mut self) -> Option<u32> {
        Some(match self.byte()? {
            number @ ..0xe0 => u32::from(number) * 2 + 1,
            0xff => 0x7fff_ffff,
            number => u32::from(number - 0xe0) * 2,
        })
    }

    fn take(&mut self, length: u8) -> Vec<u8> {
        let (taken, rest) = self.bytes.split_at(usize::from(length).min(self.bytes.len()));
        self.bytes = rest;
        taken.to_vec()
    }

    fn send_frame(&mut self, frame: Vec<u8>) {
        self.send_bytes(&frame);
        self.last = frame;
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
        if self.sent <= BYTES_MAX {
            self.sent += send(&mut self.steps, bytes);
        }
    }
}

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = (payload.len() as u32).to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The frames of a request. `what` % 8 selects the request. The other bits of `what` mean, from the
/// lowest: a body follows, a declared length, padding, a priority, and a head in two frames.
fn request(what: u8, stream: u32) -> Vec<u8> {
    let (method, path) = REQUESTS[usize::from(what % 8)];
    let mut fields =
        vec![(":method", method), (":scheme", "https"), (":authority", "a"), (":path", path)];
    let (has_body, has_length) = (what & 8 != 0, what & 16 != 0);
    if has_length {
        fields.push(("content-length", "64"));
    }
    let block: Vec<u8> = fields.into_iter().flat_map(|(name, value)| field(name, value)).collect();
    let flags = if has_body { 0 } else { END_STREAM };
    let is_padded = what & 32 != 0;
    let has_priority = what & 64 != 0;
    let before =
        [&[3][..usize::from(is_padded)], &[0; 5][..usize::from(has_priority) * 5]].concat();
    let padding = &[0; 3][..usize::from(is_padded) * 3];
    let flags =
        flags | if is_padded { PADDED } else { 0 } | if has_priority { PRIORITY } else { 0 };
    if what < 128 {
        return frame(
            HEADERS,
            flags | END_HEADERS,
            stream,
            &[&before, block.as_slice(), padding].concat(),
        );
    }
    let (first, second) = block.split_at(block.len() / 2);
    let first = frame(HEADERS, flags, stream, &[&before, first, padding].concat());
    [first, frame(CONTINUATION, END_HEADERS, stream, second)].concat()
}

/// A header field as an HPACK literal.
fn field(name: &str, value: &str) -> Vec<u8> {
    [&[0, name.len() as u8][..], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
}
