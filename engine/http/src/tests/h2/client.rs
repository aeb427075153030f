//! An HTTP/2 client that can violate the protocol, and a parser of the server's frames.

use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec::Vec;

use http2::{
    Decoder, ErrorCode, FRAME_HEAD_BYTES, FieldList, FrameHead, FrameType, PREFACE, flags,
};

use crate::h2::Http2Session;
use crate::tests::world::{World, files, site};
use crate::{BodyAdmission, HttpWaitsFor, Reply, ResponseCache};

pub(in crate::tests) const END_STREAM: u8 = flags::END_STREAM;
pub(in crate::tests) const END_HEADERS: u8 = flags::END_HEADERS;

/// A frame from the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::tests) struct Frame {
    pub(in crate::tests) kind: FrameType,
    pub(in crate::tests) flags: u8,
    pub(in crate::tests) stream: u32,
    pub(in crate::tests) payload: Vec<u8>,
}

/// The response on a stream.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(in crate::tests) struct ClientResponse {
    pub(in crate::tests) fields: Vec<(String, String)>,
    pub(in crate::tests) body: Vec<u8>,
    pub(in crate::tests) is_over: bool,
    /// The error code, if the server has reset the stream.
    pub(in crate::tests) reset: Option<u32>,
}

impl ClientResponse {
    pub(in crate::tests) fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(field, _)| field == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} occurs once");
        value
    }

    pub(in crate::tests) fn status(&self) -> &str {
        self.field(":status").unwrap_or("none")
    }
}

pub(in crate::tests) struct Client {
    pub(in crate::tests) session: Http2Session,
    pub(in crate::tests) world: World,
    pub(in crate::tests) kept: Vec<u8>,
    decoder: Decoder,
}

pub(in crate::tests) fn frame(kind: FrameType, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead { length: payload.len() as u32, kind, flags, stream }.bytes();
    [head.as_slice(), payload].concat()
}

/// A field block without compression.
pub(in crate::tests) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            match text.len() {
                length @ ..127 => block.push(length as u8),
                length => {
                    let left = length - 127;
                    assert!(left < 1 << 14);
                    block.extend([127, left as u8 | 0x80, (left >> 7) as u8]);
                }
            }
            block.extend(text.as_bytes());
        }
    }
    block
}

pub(in crate::tests) fn fields<'a>(method: &'a str, path: &'a str) -> Vec<(&'a str, &'a str)> {
    Vec::from([
        (":method", method),
        (":scheme", "https"),
        (":authority", "web.test"),
        (":path", path),
    ])
}

/// A request without a body.
pub(in crate::tests) fn ask(stream: u32, method: &str, path: &str) -> Vec<u8> {
    frame(FrameType::Headers, END_STREAM | END_HEADERS, stream, &block(&fields(method, path)))
}

pub(in crate::tests) fn get(stream: u32, path: &str) -> Vec<u8> {
    ask(stream, "GET", path)
}

pub(in crate::tests) fn window(stream: u32, increment: u32) -> Vec<u8> {
    frame(FrameType::WindowUpdate, 0, stream, &increment.to_be_bytes())
}

pub(in crate::tests) fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = settings
        .iter()
        .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
        .collect();
    frame(FrameType::Settings, 0, 0, &payload)
}

impl Client {
    /// A client that has sent nothing yet.
    pub(in crate::tests) fn silent() -> Client {
        let mut world = World::new(site(&files()), ResponseCache::empty());
        Client {
            session: Http2Session::connected(&mut world),
            world,
            kept: Vec::new(),
            decoder: Decoder::new(),
        }
    }

    /// A client that has sent its preface and the settings `own`, and got the server's settings.
    pub(in crate::tests) fn with(own: &[(u16, u32)]) -> Client {
        let mut client = Client::silent();
        client.arrive(&[PREFACE.as_slice(), &settings(own)].concat());
        let frames = client.frames();
        let kinds: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.flags)).collect();
        assert_eq!(kinds, [(FrameType::Settings, 0), (FrameType::Settings, flags::ACK)]);
        client
    }

    pub(in crate::tests) fn new() -> Client {
        Client::with(&[])
    }

    /// Offers bytes to the session. The bytes that it does not take are kept and offered again.
    pub(in crate::tests) fn arrive(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        loop {
            let taken = self.session.bytes_arrived(&self.kept, &mut self.world);
            self.kept.drain(..taken);
            if taken == 0 || self.kept.is_empty() {
                break;
            }
        }
        if self.session.waits_for() == HttpWaitsFor::Bytes {
            assert!(self.kept.len() < crate::HEAD_BYTES_MAX, "at most a head is left");
        }
    }

    /// The handler admits a body.
    pub(in crate::tests) fn admit(&mut self, limit: usize) {
        self.admit_as(BodyAdmission::whole(limit));
    }

    pub(in crate::tests) fn admit_as(&mut self, admission: BodyAdmission) {
        self.world.admitted += admission.memory;
        self.session.admitted(admission, &mut self.world);
        self.arrive(b"");
    }

    /// The handler takes a piece of a body.
    pub(in crate::tests) fn take_piece(&mut self, number: u64) {
        self.session.piece_taken(number, &mut self.world);
        self.arrive(b"");
    }

    /// The handler replies.
    pub(in crate::tests) fn reply(&mut self, reply: Reply) {
        self.session.replied(reply, &mut self.world);
        self.arrive(b"");
    }

    /// All frames of the server since the last call.
    pub(in crate::tests) fn frames(&mut self) -> Vec<Frame> {
        let output = std::mem::take(&mut self.world.output);
        self.world.room += output.len();
        let mut rest = output.as_slice();
        let mut frames = Vec::new();
        while let Some(head) = FrameHead::parse(rest) {
            let end = FRAME_HEAD_BYTES + head.length as usize;
            let payload = rest[FRAME_HEAD_BYTES..end].to_vec();
            frames.push(Frame { kind: head.kind, flags: head.flags, stream: head.stream, payload });
            rest = &rest[end..];
        }
        assert!(rest.is_empty(), "all frames are complete");
        frames
    }

    /// All responses since the last call, by stream.
    pub(in crate::tests) fn answers(&mut self) -> BTreeMap<u32, ClientResponse> {
        let mut answers = BTreeMap::<u32, ClientResponse>::new();
        for frame in self.frames() {
            if frame.stream == 0 {
                continue;
            }
            let answer = answers.entry(frame.stream).or_default();
            match frame.kind {
                FrameType::Headers => {
                    assert!(answer.fields.is_empty() && frame.flags & END_HEADERS != 0);
                    let mut fields = FieldList::new();
                    self.decoder.decode(&frame.payload, &mut fields).unwrap();
                    let text = |bytes: &[u8]| std::str::from_utf8(bytes).unwrap().to_string();
                    answer.fields =
                        fields.iter().map(|(name, value)| (text(name), text(value))).collect();
                }
                FrameType::Data => {
                    assert!(!answer.is_over);
                    answer.body.extend(&frame.payload);
                }
                FrameType::ResetStream => {
                    answer.reset = Some(u32::from_be_bytes(frame.payload.try_into().unwrap()));
                    continue;
                }
                kind => panic!("{kind:?} on a stream"),
            }
            answer.is_over |= frame.flags & END_STREAM != 0;
        }
        answers
    }

    /// Sends a request with the additional fields `more`, and returns the response.
    pub(in crate::tests) fn ask(
        &mut self,
        stream: u32,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
    ) -> ClientResponse {
        let fields: Vec<_> = fields(method, path).into_iter().chain(more.iter().copied()).collect();
        self.arrive(&frame(FrameType::Headers, END_STREAM | END_HEADERS, stream, &block(&fields)));
        self.answers().remove(&stream).expect("an answer")
    }

    /// The code of the GOAWAY frame, if the connection was ended.
    pub(in crate::tests) fn ended(&mut self) -> Option<u32> {
        let last = self.frames().pop().filter(|frame| frame.kind == FrameType::GoAway)?;
        assert!(self.world.closed);
        Some(u32::from_be_bytes(last.payload[4..8].try_into().unwrap()))
    }

    pub(in crate::tests) fn assert_ended(&mut self, code: ErrorCode, why: &str) {
        assert_eq!(self.ended(), Some(code as u32), "{why}");
        assert_eq!(self.session.waits_for(), HttpWaitsFor::Nothing);
    }

    pub(in crate::tests) fn assert_lives(&mut self) {
        let stream = 0x7fff_ffff;
        self.frames();
        assert_eq!(self.ask(stream, "GET", "/hello.txt", &[]).body, crate::tests::world::HELLO);
    }
}
