//! The fuzz target for HTTP/2. An input is a script of a client's frames and other events. The
//! script runs at two paces, and a short script also byte by byte. `Reading` tracks the client's
//! state, and checks the server's output.
//!
//! Oracles:
//! - Any input: no panic. The session asks for nothing after its end, and queues output only where
//!   there is buffer space (`http_session::world`).
//! - The server sends only frames of the kinds that a server sends. Each answer is a head and a
//!   body of the declared length, with the site's bytes. After the end of a stream only its reset
//!   follows, or the reason why the connection ends (`reading`).
//! - The server sends at most the bytes that the windows of the connection and of the stream allow.
//!   It opens its own windows by at most the bytes received (`reading`).
//! - The server ends the connection of a client that floods it. The reader charges the server's
//!   acknowledgments, and its resets with an error, to a budget that must not be exceeded
//!   (`reading`).
//! - Memory that a program (a request handler) admits for a body is released in the end. A session
//!   that waits for buffer space or for a reply continues when it gets one.

mod reading;
mod script;

use http::h2::Http2Session;
use http::{BodyAdmission, HEAD_BYTES_MAX, HttpWaitsFor, Method};

use crate::conversation::{Conversation, Party, Waits, more_room};
use crate::http_session::world::{BODY_BYTES_MAX, KEPT_BYTES_MAX, Stage, World, program_reply};
use crate::script::{Pace, Step};
use reading::Reading;

/// The most streams that are served at a time.
const STREAMS_MAX: usize = 100;

/// The most memory that a session uses without admission: the field table, and output that waits
/// for buffer space.
const UNADMITTED_BYTES_MAX: usize = 32 * 1024;

/// With this much buffer space, a session sends something before it waits for more space.
const ROOM_ENOUGH: usize = 1 << 20;

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&[first], script)) = data.split_first_chunk() else { return };
    let send_room = 1 + usize::from(first) * 32;
    let steps = script::steps(script, first % 8 != 0);
    converse(send_room, &steps, Pace::AsCut);
    converse(send_room, &steps, Pace::AtOnce);
    let bytes: usize =
        steps.iter().map(|step| if let Step::Bytes(bytes) = step { bytes.len() } else { 0 }).sum();
    if bytes <= 2_000 {
        converse(send_room, &steps, Pace::ByteByByte);
    }
}

fn converse(send_room: usize, steps: &[Step], pace: Pace) {
    let mut party = Conversation::run(Server::new(send_room), steps, pace).party;
    let waits_for = party.session.waits_for();
    assert!(
        party.world.closed || waits_for != HttpWaitsFor::SendRoom,
        "each wait for buffer space ends"
    );
    party.reading.check_end(party.world.closed);
    if !party.world.closed {
        party.session.peer_closed(&mut party.world);
    }
    assert_eq!(party.world.admitted, 0, "an admitted body is released in the end");
}

/// A session, its server, and the client's reader.
struct Server {
    session: Http2Session,
    world: World,
    reading: Reading,
    /// The buffer space that the client frees whenever none is left.
    send_room: usize,
    /// The number of bytes that the session has taken.
    taken: usize,
    /// The number of bytes that were sent when the session last waited for buffer space.
    sent_before: usize,
}

impl Server {
    fn new(send_room: usize) -> Server {
        let mut world = World::small();
        let session = Http2Session::connected(&mut world);
        let reading = Reading::new(world.contents.clone());
        Server { session, world, reading, send_room, taken: 0, sent_before: 0 }
    }

    fn read_output(&mut self) {
        self.reading.read(&self.world.sent);
        assert!(
            self.world.admitted <= STREAMS_MAX * BODY_BYTES_MAX,
            "each stream has at most one body"
        );
        assert!(
            self.session.kept_bytes() <= KEPT_BYTES_MAX + UNADMITTED_BYTES_MAX,
            "the session keeps more than its limit"
        );
    }
}

impl Party for Server {
    const KEPT_BYTES_MAX: usize = HEAD_BYTES_MAX;

    fn bytes_arrived(&mut self, bytes: &[u8]) -> usize {
        self.reading.client.sends(self.taken, bytes);
        let taken = self.session.bytes_arrived(bytes, &mut self.world);
        self.taken += taken;
        self.read_output();
        taken
    }

    fn stopping(&mut self) {
        self.session.stopping(&mut self.world);
        self.read_output();
    }

    fn deadline_expired(&mut self) {
        self.session.deadline_expired(&mut self.world);
        self.read_output();
    }

    fn peer_closed(&mut self) {
        if !self.world.closed {
            self.session.peer_closed(&mut self.world);
        }
    }

    fn has_deadline(&self) -> bool {
        self.world.deadline.is_some()
    }

    fn is_closed(&self) -> bool {
        self.world.closed
    }

    fn serve(&mut self, pace: Pace, held: bool) -> Waits {
        match self.session.waits_for() {
            HttpWaitsFor::Bytes => Waits::ForBytes,
            HttpWaitsFor::Nothing => Waits::ForNothing,
            HttpWaitsFor::Us if held => Waits::ForAnswer,
            HttpWaitsFor::Us => {
                match self.world.stage.take() {
                    Some(Stage::Requested(Method::Post | Method::Put)) => {
                        self.world.admitted += BODY_BYTES_MAX;
                        self.session
                            .admitted(BodyAdmission::whole(BODY_BYTES_MAX), &mut self.world);
                    }
                    Some(_) => {
                        self.session.replied(program_reply(), &mut self.world);
                    }
                    None => unreachable!("the session has a request for the program"),
                }
                Waits::Served
            }
            HttpWaitsFor::SendRoom => {
                let has_sent = self.world.sent.len()
                    > std::mem::replace(&mut self.sent_before, self.world.sent.len());
                assert!(
                    has_sent || self.world.send_room < ROOM_ENOUGH,
                    "the session waits although there is buffer space"
                );
                let room = more_room(pace, self.send_room);
                self.world.send_room = self.world.send_room.saturating_add(room);
                Waits::Served
            }
        }
    }
}
