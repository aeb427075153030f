//! HTTP: a script of client bytes and events, run at three paces, and judged by an independent
//! reader.
//!
//! Oracles:
//! - Any input: no panic. The session asks for nothing after its end, and begins a response only
//!   when there is buffer space for its head (`world`).
//! - Responses are well-formed. There is one for each request in the access log, in order. Bodies
//!   are the site's, and have the declared length (`reading`).
//! - A program (a request handler behind the server) gets each request once. Each body that it
//!   admits is taken and released. The program gives the same reply to every request.
//! - Neither the segments in which the bytes arrive nor the buffer space change the requests that
//!   the server sees, or its responses. So the end of a segment cannot smuggle a request.

pub(crate) mod reading;
pub(crate) mod world;

use http::{BodyAdmission, HEAD_BYTES_MAX, HttpWaitsFor, HttpsPolicy, Method, Session};

use crate::conversation::{Conversation, Party, Waits, more_room};
use crate::script::{Pace, steps};
use world::{BODY_BYTES_MAX, Stage, World, program_reply};

/// The program's number for a body that it takes piece by piece.
const NUMBER: u64 = 7;

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&[first], script)) = data.split_first_chunk() else { return };
    let send_room = 1 + usize::from(first) * 5;
    let https_policy = match first % 8 {
        0 => HttpsPolicy::Redirect,
        1 => HttpsPolicy::Enforced,
        _ => HttpsPolicy::Optional,
    };
    let steps = steps(script);
    let [as_cut, at_once] = [Pace::AsCut, Pace::AtOnce]
        .map(|pace| Conversation::run(Server::new(send_room, https_policy), &steps, pace));
    as_cut.party.assert_same(&at_once.party);
    if as_cut.taken.len() <= 2_000 {
        let byte_by_byte =
            Conversation::run(Server::new(send_room, https_policy), &steps, Pace::ByteByByte);
        as_cut.party.assert_same(&byte_by_byte.party);
    }
    reading::check(&as_cut.party.world);
}

/// A session and its server.
struct Server {
    session: Session,
    world: World,
    send_room: usize,
}

impl Party for Server {
    const KEPT_BYTES_MAX: usize = HEAD_BYTES_MAX;

    fn bytes_arrived(&mut self, bytes: &[u8]) -> usize {
        self.session.bytes_arrived(bytes, &mut self.world)
    }

    fn stopping(&mut self) {
        self.session.stopping(&mut self.world);
    }

    fn deadline_expired(&mut self) {
        self.session.deadline_expired(&mut self.world);
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

    fn serve(&mut self, pace: Pace, _held: bool) -> Waits {
        match self.session.waits_for() {
            HttpWaitsFor::Bytes => Waits::ForBytes,
            HttpWaitsFor::Nothing => {
                assert_eq!(self.world.admitted, 0, "an admitted body is released in the end");
                Waits::ForNothing
            }
            HttpWaitsFor::Us => {
                if core::mem::take(&mut self.world.has_piece) {
                    self.session.piece_taken(NUMBER, &mut self.world);
                    return Waits::Served;
                }
                match self.world.stage.take() {
                    Some(Stage::Requested(method @ (Method::Post | Method::Put))) => {
                        let admission = BodyAdmission {
                            number: (method == Method::Put).then_some(NUMBER),
                            ..BodyAdmission::whole(BODY_BYTES_MAX)
                        };
                        self.world.admitted += admission.memory;
                        self.session.admitted(admission, &mut self.world);
                    }
                    Some(_) => {
                        self.session.replied(program_reply(), &mut self.world);
                    }
                    None => unreachable!("it waits for what it has asked"),
                }
                Waits::Served
            }
            HttpWaitsFor::SendRoom => {
                let room = more_room(pace, self.send_room);
                self.world.send_room = self.world.send_room.saturating_add(room);
                Waits::Served
            }
        }
    }
}

impl Server {
    fn new(send_room: usize, https_policy: HttpsPolicy) -> Server {
        let mut world = World::small();
        world.https_policy = https_policy;
        let session = Session::connected(&mut world);
        Server { session, world, send_room }
    }

    fn assert_same(&self, other: &Server) {
        let (ours, theirs) = (&self.world, &other.world);
        assert_eq!(ours.log, theirs.log, "the seen requests do not depend on cuts");
        let sent = [ours, theirs].map(|world| String::from_utf8_lossy(&world.sent).into_owned());
        assert_eq!(sent[0], sent[1], "responses do not depend on cuts");
        assert_eq!(ours.closed, theirs.closed, "the end does not depend on cuts");
    }
}
