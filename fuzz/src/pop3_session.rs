//! POP3: a script of client bytes and events, run at three paces, and judged by an independent
//! reader.
//!
//! Oracles:
//! - Any input: no panic. The session asks for nothing after its end, closes an opened maildrop
//!   exactly once, and deletes messages only at QUIT (`world`).
//! - There is one well-formed response for each command. Messages and lists are complete and decode
//!   to the content of the maildrop. QUIT deletes the marked messages (`reading`).
//! - Neither the pieces in which the bytes arrive nor the buffer space change the responses.

mod reading;
mod world;

use pop3::{Maildrop, Pop3WaitsFor, RESPONSE_LINE_BYTES_MAX, Session};

use crate::conversation::{Conversation, Party, Waits, more_room};
use crate::script::{Pace, steps};
use world::World;

/// The settings of a run, from the first bytes of an input.
#[derive(Clone, Copy, Debug)]
struct Settings {
    /// A set of bits that selects the messages in the maildrop.
    messages: u8,
    /// The buffer space that the client frees whenever none is left.
    send_room: usize,
    /// The bytes of a message that the store returns at once.
    read_bytes: usize,
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&[messages, send_room, read_bytes], script)) = data.split_first_chunk() else {
        return;
    };
    let settings = Settings {
        messages,
        send_room: 1 + usize::from(send_room) * 2,
        read_bytes: 1 + usize::from(read_bytes),
    };
    let steps = steps(script);
    let [as_cut, at_once] = [Pace::AsCut, Pace::AtOnce]
        .map(|pace| Conversation::run(Server::new(settings), &steps, pace));
    as_cut.party.assert_same(&at_once.party);
    if as_cut.taken.len() <= 600 {
        let byte_by_byte = Conversation::run(Server::new(settings), &steps, Pace::ByteByByte);
        as_cut.party.assert_same(&byte_by_byte.party);
    }
    reading::check(&as_cut.taken, &as_cut.party.world);
}

/// A session and its server.
struct Server {
    session: Session,
    world: World,
    settings: Settings,
    /// The number of bytes that the session has taken of the message that it reads.
    read: usize,
}

impl Party for Server {
    const KEPT_BYTES_MAX: usize = RESPONSE_LINE_BYTES_MAX;

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
            Pop3WaitsFor::Bytes => return Waits::ForBytes,
            Pop3WaitsFor::Handshake | Pop3WaitsFor::Nothing => return Waits::ForNothing,
            Pop3WaitsFor::SendRoom => self.give_room(pace),
            Pop3WaitsFor::Turn => self.session.resumed(&mut self.world),
            Pop3WaitsFor::Login | Pop3WaitsFor::Message | Pop3WaitsFor::Deletion if held => {
                return Waits::ForAnswer;
            }
            Pop3WaitsFor::Login => self.answer_login(),
            Pop3WaitsFor::Message => self.give_message(pace),
            Pop3WaitsFor::Deletion => {
                let result = self.world.delete();
                self.session.deleted(result, &mut self.world);
            }
        }
        Waits::Served
    }
}

impl Server {
    fn new(settings: Settings) -> Server {
        let mut world = World::new(settings.messages);
        let session = Session::connected(&mut world);
        Server { session, world, settings, read: 0 }
    }

    /// Gives the session more buffer space.
    fn give_room(&mut self, pace: Pace) {
        let room = more_room(pace, self.settings.send_room);
        self.world.send_room = self.world.send_room.saturating_add(room);
        if self.world.reading.is_some() {
            self.give_message(pace);
        } else {
            self.session.resumed(&mut self.world);
        }
    }

    /// Gives the session the result of its login.
    fn answer_login(&mut self) {
        let answer = self.world.log_in();
        let messages = self.world.messages.len() as u32;
        let bytes = self.world.messages.iter().map(|message| message.len() as u64).sum();
        self.session.login_answered(
            answer.map(|signature| (Maildrop { messages, bytes }, signature)),
            &mut self.world,
        );
    }

    /// Gives the session the next part of the message that it reads, or the end of the message.
    fn give_message(&mut self, pace: Pace) {
        let reading =
            self.world.reading.clone().expect("the session waits for a message that it reads");
        let rest = &reading.bytes[self.read..];
        let failed = reading.fails_after.is_some_and(|after| self.read >= after);
        if rest.is_empty() || failed {
            self.read = 0;
            self.world.reading = None;
            let result = if failed { Err(pop3::ReadError::Damaged) } else { Ok(()) };
            return self.session.message_ended(result, &mut self.world);
        }
        let at_once = more_room(pace, self.settings.read_bytes);
        let until_failure = reading.fails_after.map_or(usize::MAX, |after| after - self.read);
        let piece = &rest[..rest.len().min(at_once).min(until_failure)];
        let taken = self.session.message_bytes_arrived(piece, &mut self.world);
        assert!(taken <= piece.len());
        self.read = if self.world.reading.is_some() { self.read + taken } else { 0 };
    }

    fn assert_same(&self, other: &Server) {
        let (ours, theirs) = (&self.world, &other.world);
        let sent = [ours, theirs].map(|world| String::from_utf8_lossy(&world.sent).into_owned());
        assert_eq!(sent[0], sent[1], "responses do not depend on cuts");
        assert_eq!(ours.log, theirs.log, "requests to the server do not depend on cuts");
        assert_eq!(ours.closed, theirs.closed, "the end does not depend on cuts");
    }
}
