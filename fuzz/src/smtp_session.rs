//! SMTP: a script of client bytes and events, run at three paces, and judged by an independent
//! reader.
//!
//! Oracles:
//! - Any input: no panic. The session asks for nothing after its end. It ends each transaction and
//!   each message exactly once (`world`).
//! - Each command has exactly one well-formed reply. A simple dot-unstuffer finds the stored
//!   messages in the client's bytes (`reading`). So no message can be smuggled.
//! - Neither the pieces in which the bytes arrive nor the buffer space change the replies or the
//!   stored messages.

mod reading;
mod world;

use smtp::{LINE_BYTES_MAX, LoginPolicy, RESPONSE_LINE_BYTES_MAX, Session, SmtpWaitsFor};

use crate::conversation::{Conversation, Party, Waits, more_room};
use crate::script::{Pace, steps};
use world::World;

/// The settings of a run, from the first bytes of an input.
#[derive(Clone, Copy, Debug)]
struct Settings {
    message_bytes_max: u64,
    /// The buffer space for replies that the client frees whenever none is left.
    send_room: usize,
    /// The space for a message that the store frees whenever none is left.
    message_room: usize,
    login: LoginPolicy,
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&[limit, send_room, message_room], script)) = data.split_first_chunk() else {
        return;
    };
    let settings = Settings {
        message_bytes_max: 16 + u64::from(limit) * 8,
        send_room: 1 + usize::from(send_room) * 3,
        message_room: 1 + usize::from(message_room) * 2,
        login: if message_room >= 0xf0 { LoginPolicy::Required } else { LoginPolicy::Absent },
    };
    let steps = steps(script);
    let [as_cut, at_once] = [Pace::AsCut, Pace::AtOnce]
        .map(|pace| Conversation::run(Server::new(settings), &steps, pace));
    as_cut.party.assert_same(&at_once.party);
    if as_cut.taken.len() <= 1_500 {
        let byte_by_byte = Conversation::run(Server::new(settings), &steps, Pace::ByteByByte);
        as_cut.party.assert_same(&byte_by_byte.party);
    }
    for conversation in [as_cut, at_once] {
        reading::check(&conversation.taken, &conversation.party.world, settings.message_bytes_max);
    }
}

/// A session and its server.
struct Server {
    session: Session,
    world: World,
    settings: Settings,
}

impl Party for Server {
    const KEPT_BYTES_MAX: usize = if LINE_BYTES_MAX > RESPONSE_LINE_BYTES_MAX {
        LINE_BYTES_MAX
    } else {
        RESPONSE_LINE_BYTES_MAX
    };

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
        self.session.peer_closed(&mut self.world);
    }

    fn has_deadline(&self) -> bool {
        self.world.deadline.is_some()
    }

    fn is_closed(&self) -> bool {
        self.world.closed
    }

    fn serve(&mut self, pace: Pace, held: bool) -> Waits {
        match self.session.waits_for() {
            SmtpWaitsFor::Bytes => return Waits::ForBytes,
            SmtpWaitsFor::Handshake | SmtpWaitsFor::Nothing => return Waits::ForNothing,
            SmtpWaitsFor::Stored | SmtpWaitsFor::Login if held => return Waits::ForAnswer,
            SmtpWaitsFor::Login => {
                let result = self.world.log_in();
                self.session.login_answered(result, &mut self.world);
            }
            SmtpWaitsFor::Stored => {
                let result = self.world.store();
                self.session.message_stored(result, &mut self.world);
            }
            SmtpWaitsFor::Sender => {
                self.world.is_sender_checked = true;
                self.session.sender_known(&mut self.world);
            }
            SmtpWaitsFor::MessageRoom => {
                assert!(
                    self.world.message_room == 0,
                    "the session waits for space only if none is left"
                );
                self.world.message_room = more_room(pace, self.settings.message_room);
                self.session.message_room(&mut self.world);
            }
            SmtpWaitsFor::SendRoom => {
                let room = more_room(pace, self.settings.send_room);
                self.world.send_room = self.world.send_room.saturating_add(room);
            }
        }
        Waits::Served
    }
}

impl Server {
    fn new(settings: Settings) -> Server {
        let mut world = World::new(settings.message_bytes_max, settings.login);
        let session = Session::connected(&mut world);
        Server { session, world, settings }
    }

    fn assert_same(&self, other: &Server) {
        let (ours, theirs) = (&self.world, &other.world);
        assert_eq!(ours.closed, theirs.closed, "the end does not depend on cuts");
        if !ours.dropped_bytes && !theirs.dropped_bytes {
            let replies =
                [ours, theirs].map(|world| String::from_utf8_lossy(&world.sent).into_owned());
            assert_eq!(replies[0], replies[1], "replies do not depend on cuts");
            assert_eq!(ours.log, theirs.log, "requests to the server do not depend on cuts");
        }
        assert_eq!(ours.stored, theirs.stored, "stored messages do not depend on cuts");
    }
}
