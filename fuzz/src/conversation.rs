//! A conversation with a session: a script of client bytes and events, run at one of three paces.
//! Each protocol implements [`Party`]. The code here is the same for all protocols: it receives
//! bytes, keeps those that the session did not take, and offers them again.

use crate::script::{Event, Pace, Step};

/// A session and the server around it.
pub(crate) trait Party {
    /// The most bytes of an incomplete command.
    const KEPT_BYTES_MAX: usize;

    /// Offers bytes to the session. Returns the number of bytes that it has taken.
    fn bytes_arrived(&mut self, bytes: &[u8]) -> usize;

    fn stopping(&mut self);

    fn deadline_expired(&mut self);

    fn peer_closed(&mut self);

    /// Whether the session has set a deadline.
    fn has_deadline(&self) -> bool;

    fn is_closed(&self) -> bool;

    /// Gives the session the result that it waits for, and returns [`Waits::Served`]. If the
    /// session waits for no result, or if `held` and the result is slow, gives nothing, and returns
    /// the state of the session.
    fn serve(&mut self, pace: Pace, held: bool) -> Waits;
}

/// The state of a session that has taken all available input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// More bytes of the client.
    ForBytes,
    /// A slow result that the script holds back.
    ForAnswer,
    /// Nothing: the session is over.
    ForNothing,
    /// The harness gave the result. The untaken bytes must be offered again.
    Served,
}

/// A conversation. It records the bytes that the session has taken. It keeps the bytes that the
/// session has not taken, to offer them again.
pub(crate) struct Conversation<P> {
    pub(crate) party: P,
    /// The bytes that the session has taken before its end.
    pub(crate) taken: Vec<u8>,
    pace: Pace,
    /// The client's bytes of the current segment, which has not ended yet.
    pending: Vec<u8>,
    /// The bytes that were offered to the session and not taken.
    kept: Vec<u8>,
    /// Whether the script holds back slow results.
    held: bool,
}

impl<P: Party> Conversation<P> {
    /// Runs the script to its end.
    pub(crate) fn run(party: P, steps: &[Step], pace: Pace) -> Conversation<P> {
        let (pending, kept) = (Vec::new(), Vec::new());
        let mut conversation =
            Conversation { party, taken: Vec::new(), pace, pending, kept, held: false };
        for step in steps {
            match step {
                Step::Bytes(bytes) => conversation.pending.extend_from_slice(bytes),
                Step::Cut if pace == Pace::AsCut => conversation.end_segment(),
                Step::Cut => {}
                Step::Event(event) => conversation.handle_event(*event),
            }
        }
        conversation.end_segment();
        conversation
    }

    fn end_segment(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        match self.pace {
            Pace::ByteByByte => pending.iter().for_each(|byte| self.offer(&[*byte])),
            Pace::AsCut | Pace::AtOnce => self.offer(&pending),
        }
    }

    fn handle_event(&mut self, event: Event) {
        self.end_segment();
        match event {
            Event::Stopping => self.party.stopping(),
            Event::DeadlineExpired if self.party.has_deadline() => self.party.deadline_expired(),
            Event::DeadlineExpired => {}
            Event::PeerClosed => self.party.peer_closed(),
            Event::Hold => self.held = true,
            Event::Answer => self.held = false,
        }
        self.offer(&[]);
    }

    /// Offers bytes to the session, and serves the session until it waits only for more bytes or
    /// for a held result.
    fn offer(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        loop {
            let was_closed = self.party.is_closed();
            let taken = self.party.bytes_arrived(&self.kept);
            assert!(taken <= self.kept.len(), "the session takes at most the offered bytes");
            let taken: Vec<u8> = self.kept.drain(..taken).collect();
            if !was_closed {
                self.taken.extend(taken);
            }
            match self.party.serve(self.pace, self.held) {
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
                Waits::Served => {}
            }
        }
    }
}

/// The buffer space that the harness adds when none is left: `step` bytes, or no limit if all bytes
/// arrive at once.
pub(crate) fn more_room(pace: Pace, step: usize) -> usize {
    if pace == Pace::AtOnce { usize::MAX } else { step }
}
