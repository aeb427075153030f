//! SMTP: a script of client bytes and events, carried out at three paces, and judged by a reading of its own.
//!
//! Oracles:
//! - Whatever comes, no panic, nothing is asked after the end, and what was begun is ended exactly once (`world`).
//! - Replies are well-formed and exactly one for each command, and what is stored is what a simple dot-unstuffer finds in
//!   the client's bytes (`reading`): nothing can be smuggled.
//! - How the bytes are cut into segments, and how little room there is, changes neither the replies nor what is stored.

mod reading;
mod world;

use smtp::{LINE_BYTES_MAX, Session, WaitsFor};

use crate::script::{Event, Pace, Step, steps};
use world::World;

/// What the first bytes of an input say.
#[derive(Clone, Copy, Debug)]
struct Settings {
    message_bytes_max: u64,
    /// Room that a client makes for replies, and the store for a message, whenever there is none.
    send_room: usize,
    message_room: usize,
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&[limit, send_room, message_room], script)) = data.split_first_chunk() else { return };
    let settings = Settings {
        message_bytes_max: 16 + u64::from(limit) * 8,
        send_room: 1 + usize::from(send_room) * 3,
        message_room: 1 + usize::from(message_room) * 2,
    };
    let steps = steps(script);
    let as_cut = Conversation::run(&steps, settings, Pace::AsCut);
    let at_once = Conversation::run(&steps, settings, Pace::AtOnce);
    as_cut.assert_same(&at_once);
    if as_cut.taken.len() <= 1_500 {
        as_cut.assert_same(&Conversation::run(&steps, settings, Pace::ByteByByte));
    }
    for conversation in [as_cut, at_once] {
        reading::check(&conversation.taken, &conversation.world, settings.message_bytes_max);
    }
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
    held: bool,
}

impl Conversation {
    fn run(steps: &[Step], settings: Settings, pace: Pace) -> Conversation {
        let mut world = World::new(settings.message_bytes_max);
        let session = Session::connected(&mut world);
        let mut conversation = Conversation {
            session,
            world,
            settings,
            pace,
            pending: Vec::new(),
            kept: Vec::new(),
            taken: Vec::new(),
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
                WaitsFor::Stored if self.held => break,
                WaitsFor::Stored => {
                    let result = self.world.store();
                    self.session.message_stored(result, &mut self.world);
                }
                WaitsFor::MessageRoom => {
                    assert!(self.world.message_room == 0, "room is waited for only where there is none");
                    self.world.message_room = self.more_room(self.settings.message_room);
                    self.session.message_room(&mut self.world);
                }
                WaitsFor::SendRoom => {
                    let room = self.more_room(self.settings.send_room);
                    self.world.send_room = self.world.send_room.saturating_add(room);
                }
            }
        }
    }

    fn more_room(&self, step: usize) -> usize {
        if self.pace == Pace::AtOnce { usize::MAX } else { step }
    }

    fn assert_same(&self, other: &Conversation) {
        let (ours, theirs) = (&self.world, &other.world);
        assert_eq!(ours.closed, theirs.closed, "the end does not depend on cuts");
        if !ours.dropped_bytes && !theirs.dropped_bytes {
            let replies = [ours, theirs].map(|world| String::from_utf8_lossy(&world.sent).into_owned());
            assert_eq!(replies[0], replies[1], "replies do not depend on cuts");
            assert_eq!(ours.log, theirs.log, "what is asked of the server does not depend on cuts");
        }
        assert_eq!(ours.stored, theirs.stored, "what is stored does not depend on cuts");
    }
}
