//! POP3: a script of client bytes and events, carried out at three paces, and judged by a reading of its own.
//!
//! Oracles:
//! - Whatever comes, no panic, nothing is asked after the end, what was opened is left exactly once, and nothing is deleted
//!   but by QUIT (`world`).
//! - One well-formed response for each command; messages and lists come whole and undo to what is in the maildrop; what
//!   QUIT deletes is what was marked (`reading`).
//! - How bytes are cut, and how little room there is, changes nothing that the client hears.

mod reading;
mod world;

use pop3::{LINE_BYTES_MAX, Maildrop, Session, WaitsFor};

use crate::script::{Event, Pace, Step, steps};
use world::World;

/// What the first bytes of an input say.
#[derive(Clone, Copy, Debug)]
struct Settings {
    /// Which messages are in the maildrop.
    messages: u8,
    /// Room that the client makes whenever there is none.
    send_room: usize,
    /// Bytes of a message that come at once.
    read_bytes: usize,
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&[messages, send_room, read_bytes], script)) = data.split_first_chunk() else { return };
    let settings =
        Settings { messages, send_room: 1 + usize::from(send_room) * 2, read_bytes: 1 + usize::from(read_bytes) };
    let steps = steps(script);
    let as_cut = Conversation::run(&steps, settings, Pace::AsCut);
    let at_once = Conversation::run(&steps, settings, Pace::AtOnce);
    as_cut.assert_same(&at_once);
    if as_cut.taken.len() <= 600 {
        as_cut.assert_same(&Conversation::run(&steps, settings, Pace::ByteByByte));
    }
    reading::check(&as_cut.taken, &as_cut.world);
}

/// A session, its server, and the bytes that it has taken and not taken.
struct Conversation {
    session: Session,
    world: World,
    settings: Settings,
    pace: Pace,
    pending: Vec<u8>,
    kept: Vec<u8>,
    taken: Vec<u8>,
    /// Bytes of the message that is being read that the session has taken.
    read: usize,
    held: bool,
}

impl Conversation {
    fn run(steps: &[Step], settings: Settings, pace: Pace) -> Conversation {
        let mut world = World::new(settings.messages);
        let session = Session::connected(&mut world);
        let mut conversation = Conversation {
            session,
            world,
            settings,
            pace,
            pending: Vec::new(),
            kept: Vec::new(),
            taken: Vec::new(),
            read: 0,
            held: false,
        };
        for step in steps {
            match step {
                Step::Bytes(bytes) => conversation.pending.extend_from_slice(bytes),
                Step::Cut if pace == Pace::AsCut => conversation.segment_ends(),
                Step::Cut => {}
                Step::Event(event) => conversation.happens(*event),
            }
        }
        conversation.segment_ends();
        conversation
    }

    fn segment_ends(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        match self.pace {
            Pace::ByteByByte => pending.iter().for_each(|byte| self.arrives(&[*byte])),
            Pace::AsCut | Pace::AtOnce => self.arrives(&pending),
        }
    }

    fn happens(&mut self, event: Event) {
        self.segment_ends();
        match event {
            Event::Stopping => self.session.stopping(&mut self.world),
            Event::DeadlineExpired if self.world.deadline.is_some() => self.session.deadline_expired(&mut self.world),
            Event::DeadlineExpired => {}
            Event::PeerClosed => self.session.peer_closed(&mut self.world),
            Event::Hold => self.held = true,
            Event::Answer => self.held = false,
        }
        self.arrives(&[]);
    }

    /// Bytes arrive; the session gets what it waits for until it wants nothing but more, or what is held back.
    fn arrives(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        loop {
            let was_closed = self.world.closed;
            let taken = self.session.bytes_arrived(&self.kept, &mut self.world);
            assert!(taken <= self.kept.len(), "no more is taken than was offered");
            let taken: Vec<u8> = self.kept.drain(..taken).collect();
            if !was_closed {
                self.taken.extend(taken);
            }
            match self.session.waits_for() {
                WaitsFor::Bytes => {
                    assert!(self.kept.len() <= LINE_BYTES_MAX, "an incomplete command is no longer than a line");
                    assert!(self.world.deadline.is_some(), "nobody is waited for without an end");
                    break;
                }
                WaitsFor::Nothing => {
                    assert!(self.world.closed);
                    break;
                }
                WaitsFor::SendRoom => self.room_comes(),
                WaitsFor::Turn => self.session.resumed(&mut self.world),
                WaitsFor::Login | WaitsFor::Message | WaitsFor::Deletion if self.held => break,
                WaitsFor::Login => self.login_comes(),
                WaitsFor::Message => self.message_comes(),
                WaitsFor::Deletion => {
                    let result = self.world.delete();
                    self.session.deleted(result, &mut self.world);
                }
            }
        }
    }

    fn room_comes(&mut self) {
        let room = if self.pace == Pace::AtOnce { usize::MAX } else { self.settings.send_room };
        self.world.send_room = self.world.send_room.saturating_add(room);
        if self.world.reading.is_some() {
            self.message_comes();
        } else {
            self.session.resumed(&mut self.world);
        }
    }

    fn login_comes(&mut self) {
        let answer = self.world.log_in();
        let messages = self.world.messages.len() as u32;
        let bytes = self.world.messages.iter().map(|message| message.len() as u64).sum();
        self.session.login_answered(answer.map(|()| Maildrop { messages, bytes }), &mut self.world);
    }

    fn message_comes(&mut self) {
        let reading = self.world.reading.clone().expect("a message is waited for that is being read");
        let rest = &reading.bytes[self.read..];
        let failed = reading.fails_after.is_some_and(|after| self.read >= after);
        if rest.is_empty() || failed {
            self.read = 0;
            self.world.reading = None;
            let result = if failed { Err(pop3::ReadError::Damaged) } else { Ok(()) };
            return self.session.message_ended(result, &mut self.world);
        }
        let at_once = if self.pace == Pace::AtOnce { usize::MAX } else { self.settings.read_bytes };
        let until_failure = reading.fails_after.map_or(usize::MAX, |after| after - self.read);
        let piece = &rest[..rest.len().min(at_once).min(until_failure)];
        let taken = self.session.message_bytes_arrived(piece, &mut self.world);
        assert!(taken <= piece.len());
        self.read = if self.world.reading.is_some() { self.read + taken } else { 0 };
    }

    fn assert_same(&self, other: &Conversation) {
        let (ours, theirs) = (&self.world, &other.world);
        let sent = [ours, theirs].map(|world| String::from_utf8_lossy(&world.sent).into_owned());
        assert_eq!(sent[0], sent[1], "responses do not depend on cuts");
        assert_eq!(ours.log, theirs.log, "what is asked of the server does not depend on cuts");
        assert_eq!(ours.closed, theirs.closed, "the end does not depend on cuts");
    }
}
