//! A reply that stays open on a connection of HTTP/1.1: nothing else is asked there any more, and the connection's end is the reply's.

use crate::actions::Actions;

use super::{Expect, RESPONSE_TIMEOUT, Session, Taken, WaitsFor};

impl Session {
    /// The program says more on the open reply with this number. It goes out when the session is offered bytes, or none.
    #[cold]
    #[inline(never)]
    pub fn fed(&mut self, number: u64, bytes: &[u8]) {
        match &mut self.expect {
            Expect::More if self.outgoing.open_reply().is_some_and(|open| open.number == number) => {
                self.outgoing.say(bytes);
            }
            Expect::Body { answer, .. } | Expect::Reply { answer, .. } => answer.say(number, bytes),
            _ => {}
        }
    }

    /// The program says no more on it.
    #[cold]
    #[inline(never)]
    pub fn fed_up(&mut self, number: u64, actions: &mut impl Actions) {
        let is_open = self.outgoing.open_reply().is_some_and(|open| open.number == number);
        if is_open {
            self.outgoing.end();
        } else if self.open_number() == Some(number) {
            self.finish(actions);
        }
    }

    /// There may be something to send, or room for it; and bytes of the client's, which nobody wants.
    pub(super) fn more_goes_out(&mut self, came: usize, actions: &mut impl Actions) -> Taken {
        if self.outgoing.is_silent() {
            return Taken::AndWait(came, WaitsFor::Bytes);
        }
        let room = actions.send_room();
        let open = self.outgoing.open_reply();
        if self.outgoing.send_on(actions) {
            open.into_iter().for_each(|open| actions.left(open.number));
            self.finish(actions);
            return Taken::AndWait(came, WaitsFor::Nothing);
        }
        if self.outgoing.is_silent() {
            actions.set_deadline(open.map(|open| open.silence));
            return Taken::AndWait(came, WaitsFor::Bytes);
        }
        // The client has its time whenever it takes something.
        if self.waits_for != WaitsFor::SendRoom || room != actions.send_room() {
            actions.set_deadline(Some(RESPONSE_TIMEOUT));
        }
        Taken::AndWait(came, WaitsFor::SendRoom)
    }

    /// Nothing was said for long enough.
    pub(super) fn sign_of_life_is_due(&mut self, actions: &mut impl Actions) {
        let Some(open) = self.outgoing.open_reply() else { return };
        self.outgoing.say(open.sign_of_life);
        self.bytes_arrived(&[], actions);
    }

    fn open_number(&self) -> Option<u64> {
        match &self.expect {
            Expect::Body { answer, .. } | Expect::Reply { answer, .. } => answer.number(),
            _ => self.outgoing.open_reply().map(|open| open.number),
        }
    }

    /// The connection is over, and with it the open reply that there is, or was to be.
    pub(super) fn listener_left(&mut self, actions: &mut impl Actions) {
        self.open_number().into_iter().for_each(|number| actions.left(number));
    }
}
