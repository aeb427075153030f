//! A waiting question, and the current attempt to get its answer.

use alloc::vec::Vec;

use machine::{Instant, Micros};

use crate::message::OutgoingQuery;
use crate::question::Question;
use crate::share::LookupClient;

/// The longest time that a server may take to answer a datagram.
const DATAGRAM_PATIENCE: Micros = Micros::from_secs(3);
/// The longest time that a server may take to answer on a stream, including the connection.
const STREAM_PATIENCE: Micros = Micros::from_secs(6);

/// The length field before a message on a stream (RFC 7766 §8).
const LENGTH_BYTES: usize = 2;

/// A question that waits for its answer. `A`: an asker, which gets the answer.
pub(crate) struct OpenQuestion<A> {
    /// The number of the current attempt, which identifies its stream.
    pub(crate) number: u64,
    pub(crate) question: Question,
    /// The client that caused the question first. `None`: this machine asks for itself.
    pub(crate) client: Option<LookupClient>,
    pub(crate) askers: Vec<A>,
    pub(crate) attempt: QueryAttempt,
    /// The number of failed attempts before the current attempt.
    pub(crate) failures: usize,
    pub(crate) give_up_at: Instant,
}

pub(crate) struct QueryAttempt {
    /// The server's index in the list.
    pub(crate) server: usize,
    pub(crate) sent: OutgoingQuery,
    pub(crate) transport: Transport,
    pub(crate) deadline: Instant,
}

/// The transport of a question.
pub(crate) enum Transport {
    /// A datagram from a secret port.
    Datagram { port: u16 },
    /// A stream, with the bytes read so far.
    Stream { received: Vec<u8> },
}

impl QueryAttempt {
    pub(crate) fn by_datagram(
        server: usize,
        sent: OutgoingQuery,
        port: u16,
        now: Instant,
    ) -> QueryAttempt {
        QueryAttempt {
            server,
            sent,
            transport: Transport::Datagram { port },
            deadline: now + DATAGRAM_PATIENCE,
        }
    }

    /// Repeats the question of this attempt on a stream.
    pub(crate) fn by_stream(self, now: Instant) -> QueryAttempt {
        QueryAttempt {
            transport: Transport::Stream { received: Vec::new() },
            deadline: now + STREAM_PATIENCE,
            ..self
        }
    }

    /// The bytes for a stream: the question after its length.
    pub(crate) fn with_length(&self) -> Vec<u8> {
        let mut bytes = (self.sent.bytes.len() as u16).to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.sent.bytes);
        bytes
    }
}

impl<A> OpenQuestion<A> {
    pub(crate) fn deadline(&self) -> Instant {
        self.attempt.deadline.min(self.give_up_at)
    }

    /// Whether the question was sent in a datagram from this port.
    pub(crate) fn is_at_port(&self, wanted: u16) -> bool {
        matches!(self.attempt.transport, Transport::Datagram { port } if port == wanted)
    }

    /// Takes bytes of a stream. Bytes beyond the longest message are dropped.
    pub(crate) fn stream_arrived(&mut self, bytes: &[u8]) {
        if let Transport::Stream { received } = &mut self.attempt.transport {
            let room = (LENGTH_BYTES + usize::from(u16::MAX)).saturating_sub(received.len());
            received.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
    }

    /// The message on the stream, once it is complete.
    pub(crate) fn stream_message(&self) -> Option<&[u8]> {
        let Transport::Stream { received } = &self.attempt.transport else { return None };
        let (length, rest) = received.split_first_chunk::<LENGTH_BYTES>()?;
        rest.get(..u16::from_be_bytes(*length).into())
    }
}
