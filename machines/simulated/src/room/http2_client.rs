//! The HTTP/2 side of a client: encodes requests as frames, and decodes responses to the form of
//! HTTP/1.1.

use std::collections::BTreeMap;

use http2::{Decoder, FRAME_HEAD_BYTES, FieldList, FrameHead, FrameType, PREFACE, flags};

use super::fixture::HOSTNAME;

/// A response, with its head in the form of HTTP/1.1.
#[derive(Default)]
pub(super) struct Response {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
    is_whole: bool,
}

/// The client's side of an HTTP/2 connection.
pub(super) struct Http2Client {
    decoder: Decoder,
    next_stream: u32,
    responses: BTreeMap<u32, Response>,
    /// The frames that are to be sent.
    pub(super) to_say: Vec<u8>,
    /// The machine accepts no further requests on this connection.
    pub(super) is_over: bool,
}

impl Http2Client {
    pub(super) fn new() -> Http2Client {
        let to_say = [PREFACE.as_slice(), &frame(FrameType::Settings, 0, 0, &[])].concat();
        Http2Client {
            decoder: Decoder::new(),
            next_stream: 1,
            responses: BTreeMap::new(),
            to_say,
            is_over: false,
        }
    }

    /// Sends a request. `fields`: lines in the form of HTTP/1.1. Returns the number of the stream.
    pub(super) fn ask(&mut self, method: &str, path: &str, fields: &str, body: &[u8]) -> u32 {
        let end = if body.is_empty() { flags::END_STREAM } else { 0 };
        let stream = self.open(method, path, fields, end);
        if !body.is_empty() {
            self.to_say.extend(frame(FrameType::Data, flags::END_STREAM, stream, body));
        }
        stream
    }

    /// Sends the head of a request. Its body never follows.
    pub(super) fn announce(&mut self, method: &str, path: &str, fields: &str) {
        self.open(method, path, fields, 0);
    }

    fn open(&mut self, method: &str, path: &str, fields: &str, end: u8) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        let mut block = Vec::new();
        let pseudo =
            [(":method", method), (":scheme", "https"), (":path", path), (":authority", HOSTNAME)];
        let fields = fields.lines().filter_map(|line| line.split_once(": "));
        for (name, value) in pseudo.into_iter().chain(fields) {
            // A literal without indexing (RFC 7541 section 6.2.2).
            block.push(0);
            for text in [name.to_ascii_lowercase().as_str(), value] {
                assert!(text.len() < 127, "the text has a length of one byte");
                block.push(text.len() as u8);
                block.extend_from_slice(text.as_bytes());
            }
        }
        self.to_say.extend(frame(FrameType::Headers, flags::END_HEADERS | end, stream, &block));
        stream
    }

    /// Takes the next complete response out of the input.
    pub(super) fn response(&mut self, heard: &mut Vec<u8>) -> Option<(u32, Response)> {
        loop {
            let whole = self
                .responses
                .iter()
                .find(|(_, response)| response.is_whole)
                .map(|(stream, _)| *stream);
            if let Some(stream) = whole {
                return self.responses.remove_entry(&stream);
            }
            let head = FrameHead::parse(heard)?;
            let end = FRAME_HEAD_BYTES + head.length as usize;
            if heard.len() < end {
                return None;
            }
            let bytes: Vec<u8> = heard.drain(..end).collect();
            self.frame_arrived(&head, &bytes[FRAME_HEAD_BYTES..]);
        }
    }

    fn frame_arrived(&mut self, head: &FrameHead, payload: &[u8]) {
        match head.kind {
            FrameType::Headers => {
                assert!(head.has(flags::END_HEADERS), "a head fits into one frame");
                let mut fields = FieldList::new();
                self.decoder.decode(payload, &mut fields).expect("the block of fields is valid");
                let response = self.responses.entry(head.stream).or_default();
                for (name, value) in fields.iter() {
                    let (name, value) =
                        (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
                    response.head += &if name == ":status" {
                        format!("HTTP/1.1 {value}\r\n")
                    } else {
                        format!("{name}: {value}\r\n")
                    };
                }
                response.is_whole = head.has(flags::END_STREAM);
            }
            FrameType::Data => {
                let response =
                    self.responses.get_mut(&head.stream).expect("the head arrives before the body");
                response.body.extend_from_slice(payload);
                response.is_whole = head.has(flags::END_STREAM);
                for stream in [0, head.stream].into_iter().filter(|_| head.length > 0) {
                    self.to_say.extend(frame(
                        FrameType::WindowUpdate,
                        0,
                        stream,
                        &head.length.to_be_bytes(),
                    ));
                }
            }
            FrameType::Settings if !head.has(flags::ACK) => {
                self.to_say.extend(frame(FrameType::Settings, flags::ACK, 0, &[]))
            }
            FrameType::GoAway => self.is_over = true,
            FrameType::ResetStream => self.is_over |= self.responses.contains_key(&head.stream),
            FrameType::Settings | FrameType::WindowUpdate | FrameType::Ping => {}
            kind => panic!("no machine sends {kind:?}"),
        }
    }
}

fn frame(kind: FrameType, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&FrameHead { length: payload.len() as u32, kind, flags, stream }.bytes()[..], payload].concat()
}
