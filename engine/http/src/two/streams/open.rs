//! Replies that stay open on a connection of HTTP/2: streams whose program goes on to say something.

use http2::ErrorCode;
use machine::Micros;

use super::StreamList;
use crate::actions::Actions;
use crate::open_reply::{End, Pace};
use crate::two::stream::{Expect, Stream};

impl StreamList {
    /// The program says more on the open reply with this number.
    pub(in crate::two) fn fed(&mut self, number: u64, bytes: &[u8]) {
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

    /// The program says no more on it.
    pub(in crate::two) fn fed_up(&mut self, number: u64, end: End, actions: &mut impl Actions) {
        let Some(stream) = self.list.iter_mut().find(|stream| stream.number() == Some(number))
        else {
            return;
        };
        if let (Expect::Window(outgoing), End::Whole) = (&mut stream.expect, end) {
            return outgoing.end(end);
        }
        stream.expect = Expect::Reset(if end == End::Whole {
            ErrorCode::NoError
        } else {
            ErrorCode::InternalError
        });
        actions.left(number);
    }

    /// No open reply goes on of which the program sets the pace.
    pub(in crate::two) fn end_open_replies(&mut self) {
        for stream in &mut self.list {
            if let Expect::Window(outgoing) = &mut stream.expect {
                outgoing.end_of_programs_pace();
            }
        }
    }

    /// How long open replies may be silent, if there are some of which the program sets the pace.
    pub(in crate::two) fn silence(&self) -> Option<Micros> {
        self.list.iter().filter_map(Stream::silence).min()
    }

    /// Nothing was said for long enough.
    pub(in crate::two) fn signs_of_life_are_due(&mut self) {
        for stream in &mut self.list {
            let Some(Pace::Program { sign_of_life, .. }) =
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
