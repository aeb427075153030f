//! The client's state: the frames that it has sent and received, and its windows (RFC 9113 sections
//! 5 and 6).
//!
//! Bytes of the client count as soon as they are offered to the server, so windows are never
//! underestimated. A new initial window counts from the server's acknowledgment (section 6.5.3).

use std::collections::{HashMap, VecDeque};

use loona_hpack::Decoder;

const HEAD_BYTES: usize = 9;
const PREFACE_BYTES: usize = 24;
const FRAME_BYTES_MAX: usize = 16_384;
const WINDOW_BYTES: u64 = 65_535;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The flood budget of a new client, and the points that its frames cost and earn.
const POINTS: u64 = 1000;
const ANSWER_PRICE: u64 = 10;
const RESET_PRICE: u64 = 20;
const ANSWER_EARNS: u64 = 5;
const BYTES_PER_POINT: u64 = 1024;

/// A frame. `payload` is the part of its payload that has arrived.
struct Frame<'a> {
    kind: u8,
    flags: u8,
    stream: u32,
    length: usize,
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    fn first(bytes: &'a [u8]) -> Option<Frame<'a>> {
        let (&[l0, l1, l2, kind, flags, s0, s1, s2, s3], rest) =
            bytes.split_first_chunk::<HEAD_BYTES>()?;
        let length = u32::from_be_bytes([0, l0, l1, l2]) as usize;
        let payload = &rest[..length.min(rest.len())];
        Some(Frame {
            kind,
            flags,
            stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]),
            length,
            payload,
        })
    }

    fn is_whole(&self) -> bool {
        self.payload.len() == self.length
    }

    fn number(&self) -> Option<u32> {
        self.payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes) & 0x7fff_ffff)
    }
}

/// The state of the client's output.
#[derive(Default)]
pub(super) struct Client {
    /// All bytes that the client has sent.
    offered: Vec<u8>,
    /// The number of these bytes that belong to complete frames, with the preface.
    read: usize,
    /// Whether `sent` includes the DATA frame that begins at `read`.
    is_counted: bool,
    /// The highest stream that the client has opened.
    last_stream: u32,
    /// The sum of the client's WINDOW_UPDATE increments, by stream. 0 is the connection.
    opened: HashMap<u32, u64>,
    /// The bytes of DATA frames, by stream. The entry of 0 is the sum.
    sent: HashMap<u32, u64>,
    /// SETTINGS frames without an acknowledgment: the initial window of each, if it is set.
    settings: VecDeque<Option<u64>>,
    /// Payloads of the PING frames without an answer.
    pings: VecDeque<Vec<u8>>,
}

impl Client {
    /// The client sends `bytes`, which follow its first `taken` bytes. Bytes that were offered
    /// before are skipped.
    pub(super) fn sends(&mut self, taken: usize, bytes: &[u8]) {
        let known = self.offered.len() - taken;
        self.offered.extend_from_slice(bytes.get(known..).unwrap_or_default());
        let offered = std::mem::take(&mut self.offered);
        self.read = self.read.max(PREFACE_BYTES);
        while let Some(frame) = offered.get(self.read..).and_then(Frame::first) {
            if frame.kind == DATA && !self.is_counted {
                *self.sent.entry(0).or_default() += frame.length as u64;
                *self.sent.entry(frame.stream).or_default() += frame.length as u64;
                self.is_counted = true;
            }
            if !frame.is_whole() {
                break;
            }
            self.frame_sent(&frame);
            self.is_counted = false;
            self.read += HEAD_BYTES + frame.length;
        }
        self.offered = offered;
    }

    fn frame_sent(&mut self, frame: &Frame<'_>) {
        match frame.kind {
            HEADERS => self.last_stream = self.last_stream.max(frame.stream),
            SETTINGS if frame.flags & ACK == 0 => {
                let settings = frame.payload.chunks_exact(6);
                let windows =
                    settings.filter_map(|setting| setting.strip_prefix(&[0, 4])?.first_chunk());
                self.settings
                    .push_back(windows.last().map(|bytes| u64::from(u32::from_be_bytes(*bytes))));
            }
            PING if frame.flags & ACK == 0 => self.pings.push_back(frame.payload.to_vec()),
            WINDOW_UPDATE => {
                *self.opened.entry(frame.stream).or_default() +=
                    u64::from(frame.number().unwrap_or(0));
            }
            _ => {}
        }
    }

    fn opened(&self, stream: u32) -> u64 {
        self.opened.get(&stream).copied().unwrap_or(0)
    }
}

/// The response that was received on a stream.
#[derive(Default)]
struct Answer {
    status: Option<u16>,
    length: Option<u64>,
    body: Vec<u8>,
    is_over: bool,
}

/// The state of the client's input.
pub(super) struct Reading {
    pub(super) client: Client,
    /// The possible bodies of responses with the status 200.
    contents: Vec<&'static [u8]>,
    decoder: Decoder<'static>,
    /// The number of the server's bytes that belong to complete frames.
    read: usize,
    /// The number of bytes after them, which are not a whole frame yet.
    left: usize,
    /// The number of complete frames from the server.
    frames: usize,
    answers: HashMap<u32, Answer>,
    /// The initial window of streams, as the server has acknowledged it.
    initial_window: u64,
    /// The bytes of all DATA frames from the server.
    bytes: u64,
    /// The number of response heads.
    heads: u64,
    /// The number of the server's acknowledgments of PING and SETTINGS frames.
    acknowledged: u64,
    /// The number of streams that the server has reset with an error.
    resets: u64,
    /// The sum of the server's WINDOW_UPDATE increments, by stream. 0 is the connection.
    increments: HashMap<u32, u64>,
    /// The last stream of the server's GOAWAY.
    last_stream: Option<u32>,
    /// Whether the server has sent GOAWAY with an error.
    has_ended: bool,
}

impl Reading {
    pub(super) fn new(contents: Vec<&'static [u8]>) -> Reading {
        Reading {
            client: Client::default(),
            contents,
            decoder: Decoder::new(),
            read: 0,
            left: 0,
            frames: 0,
            answers: HashMap::new(),
            initial_window: WINDOW_BYTES,
            bytes: 0,
            heads: 0,
            acknowledged: 0,
            resets: 0,
            increments: HashMap::new(),
            last_stream: None,
            has_ended: false,
        }
    }

    /// Reads the new frames in `sent`, which is the server's whole output.
    pub(super) fn read(&mut self, sent: &[u8]) {
        while let Some(frame) = sent.get(self.read..).and_then(Frame::first) {
            assert!(frame.length <= FRAME_BYTES_MAX, "a frame of {} bytes", frame.length);
            if !frame.is_whole() {
                break;
            }
            self.frame_arrived(&frame);
            self.frames += 1;
            self.read += HEAD_BYTES + frame.length;
        }
        self.left = sent.len() - self.read;
        let cost = self.acknowledged * ANSWER_PRICE + self.resets * RESET_PRICE;
        let earned = self.heads * ANSWER_EARNS + self.bytes / BYTES_PER_POINT;
        assert!(cost <= POINTS + earned, "a flood is answered: {cost} for {earned}");
    }

    /// Checks the end of the server's output.
    pub(super) fn check_end(&self, is_closed: bool) {
        assert!(is_closed || self.left == 0, "the last frame is complete");
        assert!(
            is_closed || !self.has_ended,
            "after GOAWAY with an error the connection is closed"
        );
    }

    fn frame_arrived(&mut self, frame: &Frame<'_>) {
        assert!(!self.has_ended, "nothing follows GOAWAY with an error");
        assert!(
            self.frames > 0 || (frame.kind == SETTINGS && frame.flags == 0),
            "settings come first"
        );
        match frame.kind {
            DATA => self.part_arrived(frame),
            HEADERS => self.head_arrived(frame),
            RST_STREAM => self.reset_arrived(frame),
            SETTINGS => self.settings_arrived(frame),
            PING => {
                assert_eq!(
                    (frame.flags, frame.stream),
                    (ACK, 0),
                    "the server sends no PING of its own"
                );
                assert_eq!(
                    self.client.pings.pop_front().as_deref(),
                    Some(frame.payload),
                    "pings are answered in order"
                );
                self.acknowledged += 1;
            }
            GOAWAY => {
                let (Some(last), Some(code)) = (frame.number(), frame.payload.get(4..8)) else {
                    panic!("GOAWAY is too short")
                };
                assert!(frame.stream == 0 && last <= self.client.last_stream);
                self.last_stream = Some(last);
                self.has_ended = code != [0; 4];
            }
            WINDOW_UPDATE => {
                let increment = u64::from(frame.number().expect("WINDOW_UPDATE has an increment"));
                let increments = self.increments.entry(frame.stream).or_default();
                *increments += increment;
                let received = self.client.sent.get(&frame.stream).copied().unwrap_or(0);
                assert!(
                    increment > 0 && *increments <= received,
                    "the window grew by {increments} bytes for {received} received ones on stream {}",
                    frame.stream
                );
            }
            kind => panic!("a server sends no frame of kind {kind}"),
        }
    }

    fn settings_arrived(&mut self, frame: &Frame<'_>) {
        assert_eq!(frame.stream, 0);
        if frame.flags & ACK == 0 {
            assert!(self.frames == 0 && frame.length.is_multiple_of(6), "settings are sent once");
            return;
        }
        assert!(frame.payload.is_empty());
        let window = self.client.settings.pop_front().expect("only sent settings are acknowledged");
        self.initial_window = window.unwrap_or(self.initial_window);
        // The client must send its first SETTINGS, so their acknowledgment costs nothing.
        self.acknowledged += u64::from(self.frames > 1);
    }

    /// The response on a stream. Checks that the client has opened the stream.
    fn answer(&mut self, stream: u32) -> &mut Answer {
        assert!(
            stream % 2 == 1 && stream <= self.client.last_stream,
            "the client has not opened stream {stream}"
        );
        self.answers.entry(stream).or_default()
    }

    fn head_arrived(&mut self, frame: &Frame<'_>) {
        assert_eq!(frame.flags & !END_STREAM, END_HEADERS, "a head is in one frame");
        assert!(
            self.last_stream.is_none_or(|last| frame.stream <= last),
            "no stream above the last one of GOAWAY gets a response"
        );
        self.heads += 1;
        let fields = self.decoder.decode(frame.payload).expect("a block of fields");
        let (name, status) = fields.first().expect("a head has a status");
        assert_eq!(name, b":status");
        let mut length = None;
        for (name, value) in &fields[1..] {
            let is_name =
                |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
            assert!(!name.is_empty() && name.iter().all(is_name), "{name:?}");
            assert!(value.iter().all(|byte| (b' '..=b'~').contains(byte)), "{value:?}");
            assert!(name != b"connection" && name != b"transfer-encoding", "a field of HTTP/1.1");
            if name == b"content-length" {
                assert!(length.is_none(), "content-length occurs once");
                length = Some(number(value));
            }
        }
        let answer = self.answer(frame.stream);
        assert!(answer.status.is_none() && !answer.is_over, "a second answer on {}", frame.stream);
        answer.status = Some(number(status) as u16);
        answer.length = length;
        answer.is_over = frame.flags & END_STREAM != 0;
    }

    fn part_arrived(&mut self, frame: &Frame<'_>) {
        assert_eq!(frame.flags & !END_STREAM, 0, "a body is not padded");
        let count = frame.length as u64;
        self.bytes += count;
        assert!(
            count == 0 || self.bytes <= WINDOW_BYTES + self.client.opened(0),
            "the connection's window is exceeded"
        );
        let window = self.initial_window + self.client.opened(frame.stream);
        let answer = self.answer(frame.stream);
        assert!(
            answer.status.is_some() && !answer.is_over,
            "a body without a head, or after its end"
        );
        answer.body.extend_from_slice(frame.payload);
        assert!(count == 0 || answer.body.len() as u64 <= window, "window of {}", frame.stream);
        if frame.flags & END_STREAM == 0 {
            return;
        }
        answer.is_over = true;
        let (status, length, body) =
            (answer.status, answer.length, std::mem::take(&mut answer.body));
        assert_eq!(length, Some(body.len() as u64), "a body is as long as its head says");
        assert!(
            status != Some(200) || self.contents.contains(&body.as_slice()),
            "a whole file, or the reply"
        );
    }

    fn reset_arrived(&mut self, frame: &Frame<'_>) {
        assert!(frame.length == 4 && frame.flags == 0);
        self.resets += u64::from(frame.payload != [0; 4]);
        self.answer(frame.stream).is_over = true;
    }
}

fn number(digits: &[u8]) -> u64 {
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).expect("a number")
}
