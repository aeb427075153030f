//! Tests of HTTP/2 in the whole engine, over TLS. The client has small windows, and opens them as
//! it reads.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::sync::Arc;

use http2::{FRAME_HEAD_BYTES, FrameHead, FrameType, PREFACE, flags};
use machine::Micros;
use rustls::ClientConfig;
use server::InUse;

use super::room::pages::{large, site};
use super::room::tls_stream::{BOTH, TlsStream, Trust, client, client_of};
use super::room::{Room, usual_sizes};

const LARGE_BYTES: usize = 700_000;

/// The initial window of each stream and of the connection.
const WINDOW: u32 = 65_535;

fn serving(seed: u64) -> (Room, Trust) {
    Room::with_tls(seed, site(LARGE_BYTES), usual_sizes())
}

pub(super) fn browser(trust: &Trust) -> Arc<ClientConfig> {
    Arc::new(client(trust, &["h2", "http/1.1"]))
}

/// The client's side of an HTTP/2 connection.
pub(super) struct Two {
    pub(super) tls_stream: TlsStream,
    /// The received part of the body of each stream, and whether the stream has ended.
    pub(super) bodies: BTreeMap<u32, (Vec<u8>, bool)>,
    /// The number of response heads.
    answered: usize,
    /// The error code in the server's GOAWAY frame.
    gone: Option<u32>,
    pub(super) to_say: Vec<u8>,
}

fn frame(kind: FrameType, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&FrameHead { length: payload.len() as u32, kind, flags, stream }.bytes()[..], payload].concat()
}

fn get(stream: u32, path: &str) -> Vec<u8> {
    request(stream, "web.test", path, None)
}

pub(super) fn request(stream: u32, host: &str, path: &str, cookie: Option<&str>) -> Vec<u8> {
    let mut block = vec![0x82, 0x87];
    let mut say = |name: &[u8], value: &str| {
        assert!(value.len() < 127, "the length of the value fits in one byte");
        block.extend(name);
        block.push(value.len() as u8);
        block.extend(value.as_bytes());
    };
    say(&[0x01], host);
    say(&[0x04], path);
    if let Some(cookie) = cookie {
        // RFC 7541 appendix A: the name has index 32.
        say(&[0x0f, 32 - 15], cookie);
    }
    frame(FrameType::Headers, flags::END_HEADERS | flags::END_STREAM, stream, &block)
}

impl Two {
    pub(super) fn begin(room: &mut Room, client: &Arc<ClientConfig>) -> Two {
        let tls_stream = room.connect_tls(443, client);
        let to_say = [PREFACE.as_slice(), &frame(FrameType::Settings, 0, 0, &[])].concat();
        Two { tls_stream, bodies: BTreeMap::new(), answered: 0, gone: None, to_say }
    }

    /// Parses the received frames, and opens windows for the received data.
    fn read(&mut self) {
        while let Some(head) = FrameHead::parse(&self.tls_stream.heard) {
            let end = FRAME_HEAD_BYTES + head.length as usize;
            if self.tls_stream.heard.len() < end {
                return;
            }
            let frame_bytes: Vec<u8> = self.tls_stream.heard.drain(..end).collect();
            let payload = &frame_bytes[FRAME_HEAD_BYTES..];
            match head.kind {
                FrameType::Data => {
                    let (body, is_whole) = self.bodies.entry(head.stream).or_default();
                    body.extend(payload);
                    *is_whole |= head.has(flags::END_STREAM);
                    for stream in [0, head.stream].into_iter().filter(|_| head.length > 0) {
                        self.to_say.extend(frame(
                            FrameType::WindowUpdate,
                            0,
                            stream,
                            &head.length.to_be_bytes(),
                        ));
                    }
                }
                FrameType::Headers => {
                    assert_eq!(payload[0], 0x88, "200");
                    self.answered += 1;
                }
                FrameType::GoAway => self.gone = payload.last().map(|code| u32::from(*code)),
                FrameType::Settings | FrameType::Ping => {}
                kind => unreachable!("{kind:?}"),
            }
        }
    }

    /// Reads and steps until `reached`.
    pub(super) fn until(
        &mut self,
        room: &mut Room,
        what: &str,
        mut reached: impl FnMut(&Two) -> bool,
    ) {
        room.until(what, |room| {
            use std::io::Write;
            let output = std::mem::take(&mut self.to_say);
            self.tls_stream.tls.writer().write_all(&output).expect("I/O in memory cannot fail");
            room.exchange(&mut self.tls_stream);
            self.read();
            reached(self)
        });
    }

    fn whole(&self) -> usize {
        self.bodies.values().filter(|(_, is_whole)| *is_whole).count()
    }
}

#[test]
fn concurrent_pages_arrive_whole_over_http_2() {
    for (seed, version) in (20..).zip(BOTH) {
        let (mut room, trust) = serving(seed);
        let mut two =
            Two::begin(&mut room, &Arc::new(client_of(&trust, &["http/1.1", "h2"], &[version])));
        for number in 0..10 {
            two.to_say.extend(get(2 * number + 1, if number % 2 == 0 { "/large" } else { "/" }));
        }
        two.until(&mut room, "all pages have arrived", |two| two.whole() == 10);
        assert_eq!(
            two.tls_stream.tls.alpn_protocol(),
            Some(b"h2".as_slice()),
            "the server selects HTTP/2"
        );
        for (stream, (body, _)) in &two.bodies {
            let is_large = stream / 2 % 2 == 0;
            assert!(
                if is_large { *body == large(LARGE_BYTES) } else { body == b"Index" },
                "{stream}"
            );
        }
        assert_eq!(two.answered, 10);
        room.finish_tls(two.tls_stream);
    }
}

#[test]
fn an_http_2_client_that_stops_reading_is_closed_in_a_minute() {
    let (mut room, trust) = serving(22);
    let mut two = Two::begin(&mut room, &browser(&trust));
    two.to_say.extend(get(1, "/large"));
    two.until(&mut room, "half of the first window has arrived", |two| {
        two.bodies.get(&1).is_some_and(|(body, _)| body.len() >= WINDOW as usize / 2)
    });
    // The pending window updates are dropped.
    two.to_say.clear();
    room.pass(Micros::from_secs(70));
    room.until_tls(&mut two.tls_stream, "the server closes", |tls_stream| tls_stream.is_closed);
    two.read();
    assert_eq!(two.gone, Some(0));
    room.finish_tls(two.tls_stream);
}

#[test]
fn an_http_2_flood_ends_only_its_connection() {
    let (mut room, trust) = serving(23);
    let mut kept = Two::begin(&mut room, &browser(&trust));
    kept.to_say.extend(get(1, "/"));
    kept.until(&mut room, "a page has arrived", |two| two.whole() == 1);
    let mut two = Two::begin(&mut room, &browser(&trust));
    for number in 0..400 {
        two.to_say.extend(get(2 * number + 1, "/"));
        two.to_say.extend(frame(FrameType::ResetStream, 0, 2 * number + 1, &[0, 0, 0, 8]));
    }
    two.until(&mut room, "the server has sent ENHANCE_YOUR_CALM", |two| two.gone == Some(0xb));
    room.until_tls(&mut two.tls_stream, "the server closes", |tls_stream| tls_stream.is_closed);
    kept.to_say.extend(get(3, "/"));
    kept.until(&mut room, "another page has arrived", |two| two.whole() == 2);
    room.close_tls(two.tls_stream);
    room.close_tls(kept.tls_stream);
    room.until("nothing is left", |room| room.engines.in_use() == InUse::default());
}

#[test]
fn http_2_connections_get_a_goaway_at_the_stop() {
    let (mut room, trust) = serving(24);
    let mut two = Two::begin(&mut room, &browser(&trust));
    two.to_say.extend(get(1, "/"));
    two.until(&mut room, "a page has arrived", |two| two.whole() == 1);
    room.machine.stop = true;
    two.until(&mut room, "the server has sent GOAWAY", |two| two.gone == Some(0));
}
