//! An open reply on an HTTP/1.1 connection.
//!
//! If the handler sets the pace, the session reads no other request, and the connection ends with
//! the reply. If the client sets the pace, the next request waits until the reply is over.

use crate::actions::Actions;
use crate::open_reply::{ReplyEnd, ReplyPace};
use crate::types::After;

use super::{Expect, HandlerProgress, HttpWaitsFor, IDLE_TIMEOUT, RESPONSE_TIMEOUT, Session};

impl Session {
    /// Adds bytes from the handler to the open reply `number`. The caller must then call
    /// [`Session::bytes_arrived`], at least with an empty slice, to send them.
    #[cold]
    #[inline(never)]
    pub fn continue_reply(&mut self, number: u64, bytes: &[u8]) {
        match &mut self.expect {
            Expect::More { .. }
                if self.outgoing.open_reply().is_some_and(|open| open.number == number) =>
            {
                self.outgoing.say(bytes);
            }
            Expect::Body { answer, .. } | Expect::Reply { answer, .. } => answer.say(number, bytes),
            _ => {}
        }
    }

    /// The handler ends the open reply `number`.
    #[cold]
    #[inline(never)]
    pub fn end_reply(&mut self, number: u64, end: ReplyEnd, actions: &mut impl Actions) {
        let is_open = self.outgoing.open_reply().is_some_and(|open| open.number == number);
        if is_open {
            self.outgoing.end(end);
        } else if self.open_number() == Some(number) {
            self.finish(actions);
        }
    }

    /// The open reply may have bytes to send, or there may be space for them. If the handler sets
    /// the pace, bytes from the client are dropped.
    pub(super) fn more_goes_out(
        &mut self,
        came: usize,
        after: After,
        actions: &mut impl Actions,
    ) -> HandlerProgress {
        let Some(open) = self.outgoing.open_reply() else {
            return HandlerProgress::AndWait(came, HttpWaitsFor::Nothing);
        };
        // If the client sets the pace, bytes after the request may be the client's next request.
        let came = if open.is_paced_by_client() { 0 } else { came };
        let was_silent = self.outgoing.is_silent();
        let room = actions.send_room();
        let is_cut = self.outgoing.is_cut();
        if !was_silent && self.outgoing.send_on(actions) {
            actions.left(open.number);
            if is_cut || after == After::Close || self.stopping {
                self.finish(actions);
                return HandlerProgress::AndWait(came, HttpWaitsFor::Nothing);
            }
            self.expect = Expect::Head { searched: 0 };
            actions.set_deadline(Some(IDLE_TIMEOUT));
            return HandlerProgress::AndGoOn(came);
        }
        if self.outgoing.is_silent() {
            let ReplyPace::Handler { silence, .. } = open.pace else {
                return self.more_is_asked_for(actions);
            };
            if !was_silent {
                actions.set_deadline(Some(silence));
            }
            return HandlerProgress::AndWait(came, HttpWaitsFor::Bytes);
        }
        // The deadline restarts whenever the client takes something.
        if self.waits_for != HttpWaitsFor::SendRoom || room != actions.send_room() {
            actions.set_deadline(Some(RESPONSE_TIMEOUT));
        }
        HandlerProgress::AndWait(came, HttpWaitsFor::SendRoom)
    }

    /// The client has taken all bytes, so the session asks the handler for more. The client has no
    /// deadline while it waits for the handler.
    fn more_is_asked_for(&mut self, actions: &mut impl Actions) -> HandlerProgress {
        if let Some(number) = self.outgoing.ask() {
            actions.set_deadline(None);
            actions.wanted(number);
        }
        HandlerProgress::AndWait(0, HttpWaitsFor::Us)
    }

    /// The bytes to send if the open reply was silent for too long. They show whether the client is
    /// still connected.
    pub(super) fn sign_of_life_is_due(&self) -> Option<&'static [u8]> {
        match self.outgoing.open_reply()?.pace {
            ReplyPace::Handler { sign_of_life, .. } if self.outgoing.is_silent() => {
                Some(sign_of_life)
            }
            _ => None,
        }
    }

    fn open_number(&self) -> Option<u64> {
        match &self.expect {
            Expect::Body { answer, .. } | Expect::Reply { answer, .. } => answer.number(),
            _ => self.outgoing.open_reply().map(|open| open.number),
        }
    }

    /// The connection is over. Reports the end of its open reply, which may not have begun yet.
    pub(super) fn open_reply_ended(&mut self, actions: &mut impl Actions) {
        self.open_number().into_iter().for_each(|number| actions.left(number));
    }
}
