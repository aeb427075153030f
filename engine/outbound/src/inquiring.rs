//! How an attempt fetches the policy of a domain (`policies`) from its web server.

use alloc::string::ToString;

use connections::{Identity, Owner, Stir, Wire};
use relay::tally::Rule;
use relay::{Fetch, Lost, Speaker};
use store::Refusal;

use super::attempt::AttemptCx;
use super::courier::Courier;
use super::policies::Line;
use super::stages::{Stage, Way};

impl Courier {
    /// Goes on with a fetch: says what there is to say, or calls the next address, or is done.
    pub(super) fn inquire(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        let Some(inquiry) = &mut self.inquiry else {
            self.stage(Stage::Sought);
            return Ok(());
        };
        let parts = &mut *cx.parts;
        if let Some(Line { wire, fetch, .. }) = &mut inquiry.line {
            wire.say(fetch, parts.turn, parts.connections);
            match fetch.outcome() {
                None => self.wait.is_waiting = true,
                Some(Ok(policy)) => {
                    cx.queue.policies.learn(&inquiry.domain, inquiry.id.clone(), Some(policy), parts.turn.now);
                    self.end_inquiry(cx);
                }
                Some(Err(why)) => {
                    inquiry.shortfall = why;
                    self.drop_address(cx);
                }
            }
            return Ok(());
        }
        let address = inquiry.addresses.pop_front().filter(|_| parts.turn.now < inquiry.until);
        let Some(address) = address else {
            cx.queue.policies.learn(&inquiry.domain, inquiry.id.clone(), None, parts.turn.now);
            cx.queue.count_tls(&inquiry.domain, Rule::Sts, Err(inquiry.shortfall), parts.turn.wall);
            self.end_inquiry(cx);
            return Ok(());
        };
        let called = Some(inquiry.server.as_str().to_string());
        let owner = Owner::Outbound(cx.frame);
        let at = (parts.turn, &mut *parts.connections);
        let Some(wire) = Wire::to(address, Identity::Vouched, called, owner, at) else { return Ok(()) };
        cx.queue.deadlines.set(cx.frame, inquiry.until);
        inquiry.line = Some(Line { wire, fetch: Fetch::from(&inquiry.server), is_open: false });
        self.wait.is_waiting = true;
        Ok(())
    }

    /// Something has happened to the connection.
    pub(super) fn inquiry_stirred(&mut self, stir: Stir, cx: &mut AttemptCx<'_, '_>) -> Way {
        if let Some(Line { wire, fetch, is_open }) = self.inquiry.as_mut().and_then(|inquiry| inquiry.line.as_mut()) {
            let parts = &mut *cx.parts;
            match stir {
                Stir::Made | Stir::Room if !*is_open => {
                    *is_open = true;
                    wire.begin_handshake(fetch, parts.turn, parts.connections);
                }
                Stir::Made | Stir::Room => {}
                Stir::Bytes => wire.hear(fetch, parts.turn, parts.connections),
                Stir::Turn => wire.step(fetch, parts.turn, parts.connections),
                // What has no end of its own over TLS may have been cut off.
                Stir::Over => fetch.lost(Lost::Silence),
            }
        }
        self.wait.is_waiting = false;
        self.go_on(cx)
    }

    /// The policy is known, or that there is none. The connection is ended in good order.
    fn end_inquiry(&mut self, cx: &mut AttemptCx<'_, '_>) {
        let line = self.inquiry.take().and_then(|inquiry| inquiry.line);
        cx.queue.deadlines.cancel(cx.frame);
        line.into_iter().for_each(|mut line| line.wire.close(cx.parts.turn, cx.parts.connections));
        self.stage(Stage::Sought);
    }

    /// Nothing came from this address, or nothing is wanted from it any more.
    pub(super) fn drop_address(&mut self, cx: &mut AttemptCx<'_, '_>) {
        if let Some(mut line) = self.inquiry.as_mut().and_then(|inquiry| inquiry.line.take()) {
            line.wire.end(cx.parts.connections);
            cx.queue.deadlines.cancel(cx.frame);
        }
    }
}
