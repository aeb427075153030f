//! Open replies on an HTTP/2 connection: a handler continues to send on a stream.

use http2::ErrorCode;
use machine::Micros;

use super::StreamList;
use crate::actions::Actions;
use crate::h2::stream::{Expect, Stream};
use crate::open_reply::{ReplyEnd, ReplyPace};

impl StreamList {
    /// Adds bytes from the handler to the open reply `number`.
    pub(in crate::h2) fn continue_reply(&mut self, number: u64, bytes: &[u8]) {
        let Some(stream) = self.list.iter_mut().find(|stream| stream.number() == Some(number))
        else {
            return;
        };
        match &mut stream.expect {
            Expect::Window(outgoing) => outgoing.say(bytes),
            Expect::Body { answer, .. } | Expect::Room(answer) => answer.say(number, bytes),
            _ => {}
        }
    }

    /// The handler ends the open reply `number`.
    pub(in crate::h2) fn end_reply(
        &mut self,
        number: u64,
        end: ReplyEnd,
        actions: &mut impl Actions,
    ) {
        let Some(stream) = self.list.iter_mut().find(|stream| stream.number() == Some(number))
        else {
            return;
        };
        if let (Expect::Window(outgoing), ReplyEnd::Whole) = (&mut stream.expect, end) {
            return outgoing.end(end);
        }
        stream.expect = Expect::Reset(if end == ReplyEnd::Whole {
            ErrorCode::NoError
        } else {
            ErrorCode::InternalError
        });
        actions.left(number);
    }

    /// Ends the open replies for which the handler sets the pace, since the server is about to
    /// stop.
    pub(in crate::h2) fn end_open_replies(&mut self) {
        for stream in &mut self.list {
            if let Expect::Window(outgoing) = &mut stream.expect {
                outgoing.end_if_handler_paced();
            }
        }
    }

    /// The shortest silence that is allowed among the open replies for which the handler sets the
    /// pace.
    pub(in crate::h2) fn silence(&self) -> Option<Micros> {
        self.list.iter().filter_map(Stream::silence).min()
    }

    /// Sends the sign of life on each open reply for which the handler sets the pace, since the
    /// allowed silence has passed.
    pub(in crate::h2) fn signs_of_life_are_due(&mut self) {
        for stream in &mut self.list {
            let Some(ReplyPace::Handler { sign_of_life, .. }) =
                stream.open_reply().map(|open| open.pace)
            else {
                continue;
            };
            if let Expect::Window(outgoing) = &mut stream.expect {
                outgoing.say(sign_of_life);
            }
        }
    }
}
