//! A question that waits for its answer, and the attempt to get one that is under way.

use alloc::vec::Vec;

use machine::{Instant, Micros};

use crate::message::Sent;
use crate::question::Question;
use crate::share::Client;

/// How long a server may think about a datagram, and about a stream from the wish to connect on.
const DATAGRAM_PATIENCE: Micros = Micros::from_secs(3);
const STREAM_PATIENCE: Micros = Micros::from_secs(6);

/// Bytes of the length that stands before a message in a stream (RFC 7766 §8).
const LENGTH_BYTES: usize = 2;

/// `A`: who is to hear of it.
pub(crate) struct Open<A> {
    /// Names it for good.
    pub(crate) number: u64,
    pub(crate) question: Question,
    /// The client that caused it first; `None`: this machine itself.
    pub(crate) client: Option<Client>,
    pub(crate) askers: Vec<A>,
    pub(crate) attempt: Attempt,
    /// Attempts before this one.
    pub(crate) failures: usize,
    pub(crate) give_up_at: Instant,
}

pub(crate) struct Attempt {
    /// The server's place in the list.
    pub(crate) server: usize,
    pub(crate) sent: Sent,
    pub(crate) way: Way,
    pub(crate) deadline: Instant,
}

/// How a question is asked.
pub(crate) enum Way {
    /// From a port that nobody else knows.
    Datagram { port: u16 },
    /// By a stream, of which so much was read.
    Stream { received: Vec<u8> },
}

impl Attempt {
    pub(crate) fn by_datagram(server: usize, sent: Sent, port: u16, now: Instant) -> Attempt {
        Attempt { server, sent, way: Way::Datagram { port }, deadline: now + DATAGRAM_PATIENCE }
    }

    /// The same question by a stream.
    pub(crate) fn by_stream(self, now: Instant) -> Attempt {
        Attempt {
            way: Way::Stream { received: Vec::new() },
            deadline: now + STREAM_PATIENCE,
            ..self
        }
    }

    /// What is written to a stream: the question after its length.
    pub(crate) fn with_length(&self) -> Vec<u8> {
        let mut bytes = (self.sent.bytes.len() as u16).to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.sent.bytes);
        bytes
    }
}

impl<A> Open<A> {
    pub(crate) fn deadline(&self) -> Instant {
        self.attempt.deadline.min(self.give_up_at)
    }

    pub(crate) fn is_at_port(&self, wanted: u16) -> bool {
        matches!(self.attempt.way, Way::Datagram { port } if port == wanted)
    }

    /// Takes bytes of a stream; what comes after the first message is dropped.
    pub(crate) fn stream_arrived(&mut self, bytes: &[u8]) {
        if let Way::Stream { received } = &mut self.attempt.way {
            let room = (LENGTH_BYTES + usize::from(u16::MAX)).saturating_sub(received.len());
            received.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
    }

    /// The message that has come by the stream, when it is there as a whole.
    pub(crate) fn stream_message(&self) -> Option<&[u8]> {
        let Way::Stream { received } = &self.attempt.way else { return None };
        let (length, rest) = received.split_first_chunk::<LENGTH_BYTES>()?;
        rest.get(..u16::from_be_bytes(*length).into())
    }
}
