//! A conversation with a session: a script of client bytes and events, run at one of three paces.
//! The protocol decides what a session is told and what it waits for. All protocols receive, keep
//! and offer bytes again in the same way.

use crate::script::{Event, Pace, Step};

/// A session and the server around it.
pub(crate) trait Party {
    /// An incomplete command is no longer than this, in bytes.
    const KEPT_BYTES_MAX: usize;

    /// Offers bytes. Returns how many were taken.
    fn bytes_arrived(&mut self, bytes: &[u8]) -> usize;

    fn stopping(&mut self);

    fn deadline_expired(&mut self);

    fn peer_closed(&mut self);

    /// Whether the session has set a deadline.
    fn has_deadline(&self) -> bool;

    fn is_closed(&self) -> bool;

    /// What the session waits for. If it is something that this harness can give, the call gives
    /// it. While `held`, slow results are not given.
    fn is_served(&mut self, pace: Pace, held: bool) -> Waits;
}

/// What a session waits for, after it has taken all available input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// More bytes, and nothing else.
    ForBytes,
    /// An answer that takes time, and is held back.
    ForAnswer,
    /// Nothing: it is over.
    ForNothing,
    /// It was served: its bytes are to be offered again.
    NoMore,
}

/// A conversation, and the bytes that the session has taken and not taken.
pub(crate) struct Conversation<P> {
    pub(crate) party: P,
    pub(crate) taken: Vec<u8>,
    pace: Pace,
    pending: Vec<u8>,
    kept: Vec<u8>,
    held: bool,
}

impl<P: Party> Conversation<P> {
    /// Carries out the script.
    pub(crate) fn run(party: P, steps: &[Step], pace: Pace) -> Conversation<P> {
        let (pending, kept) = (Vec::new(), Vec::new());
        let mut conversation =
            Conversation { party, taken: Vec::new(), pace, pending, kept, held: false };
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
            Event::Stopping => self.party.stopping(),
            Event::DeadlineExpired if self.party.has_deadline() => self.party.deadline_expired(),
            Event::DeadlineExpired => {}
            Event::PeerClosed => self.party.peer_closed(),
            Event::Hold => self.held = true,
            Event::Answer => self.held = false,
        }
        self.arrives(&[]);
    }

    /// Bytes arrive. The session gets what it waits for, until it wants only more bytes, or
    /// something that is held back.
    fn arrives(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        loop {
            let was_closed = self.party.is_closed();
            let taken = self.party.bytes_arrived(&self.kept);
            assert!(taken <= self.kept.len(), "no more is taken than was offered");
            let taken: Vec<u8> = self.kept.drain(..taken).collect();
            if !was_closed {
                self.taken.extend(taken);
            }
            match self.party.is_served(self.pace, self.held) {
                Waits::ForBytes => {
                    assert!(
                        self.kept.len() <= P::KEPT_BYTES_MAX,
                        "an incomplete command is no longer than a line"
                    );
                    assert!(self.party.has_deadline(), "every wait for the client has a deadline");
                    break;
                }
                Waits::ForNothing => {
                    assert!(self.party.is_closed());
                    break;
                }
                Waits::ForAnswer => break,
                Waits::NoMore => {}
            }
        }
    }
}

/// The room that is made when there is none: as much as the script says, or all.
pub(crate) fn more_room(pace: Pace, step: usize) -> usize {
    if pace == Pace::AtOnce { usize::MAX } else { step }
}
