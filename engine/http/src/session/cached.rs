//! Requests with the same bytes as an earlier request. Their responses are cached, and frequently
//! requested responses are already prepared.

use super::{Expect, HttpWaitsFor, Session, exchange};
use crate::actions::Actions;
use crate::answer::PendingResponse;
use crate::outgoing::OutgoingBody;
use crate::response::ResponseHead;
use crate::response_cache::{CachedFile, PlaceNumber};

impl Session {
    /// A request with a cached head has arrived.
    pub(super) fn cached_request_arrived(
        &mut self,
        head: &[u8],
        page: CachedFile,
        place: PlaceNumber,
        actions: &mut impl Actions,
    ) {
        let mut words = head.split(|byte| *byte == b' ');
        actions.answered(|| {
            exchange(
                words.next().unwrap_or_default(),
                words.next().unwrap_or_default(),
                &PendingResponse::from(page),
            )
        });
        if !actions.shares() || !page.is_short() || !self.respond_at_once(page, place, actions) {
            self.respond(&mut PendingResponse::from(page), actions);
        }
    }

    /// Sends the prepared response. Prepares it first if it was already requested in the same
    /// second. Returns whether it was sent.
    fn respond_at_once(
        &mut self,
        page: CachedFile,
        place: PlaceNumber,
        actions: &mut impl Actions,
    ) -> bool {
        let date = actions.date();
        let mut ready = actions.response_cache().ready(place, &date);
        if ready.is_none() && actions.response_cache().record_use(place, &date) {
            let mut head = ResponseHead::default();
            if let OutgoingBody::Bytes(bytes) =
                PendingResponse::from(page).begin(&mut head, actions)
            {
                actions.response_cache().make_ready(place, head.end(), bytes);
                ready = actions.response_cache().ready(place, &date);
            }
        }
        let is_sent = ready.is_some_and(|ready| actions.send_shared(ready));
        if is_sent {
            self.outgoing = OutgoingBody::Nothing;
            self.expect = Expect::Room { after: page.after };
            self.waits_for = HttpWaitsFor::Bytes;
        }
        is_sent
    }
}
