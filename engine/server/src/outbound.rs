//! Outgoing mail in a turn of the engine: the parts that it works with, and what it is told.

use connections::Stir;
use outbound::{Context, Outbound};
use resolver::{Known, QuestionNumber};
use store::{AccountId, Outcome, Uid};
use tasks::{Entry, FrameId};

use crate::common::Common;
use crate::engine::Engine;

impl Engine {
    /// Outgoing mail does something.
    fn outbound(&mut self, act: impl FnOnce(&mut Outbound, &mut Context<'_>)) {
        let Common { turn, connections, store, directory, names, compute, signer, logins, console, .. } =
            &mut self.common;
        let mut parts = Context { turn: *turn, connections, store, directory, names, compute, signer, logins, console };
        act(&mut self.outbound, &mut parts);
    }

    /// Phase 4 too: messages leave when they are due, and attempts that can go on do.
    #[inline(never)]
    pub(crate) fn let_mail_leave(&mut self) {
        self.outbound(Outbound::work);
    }

    /// The machine stops.
    pub(crate) fn stop_mail(&mut self) {
        self.outbound(Outbound::stop);
    }

    #[inline(never)]
    pub(crate) fn queue_woken(&mut self, frame: FrameId, entry: Entry, outcome: Outcome) {
        self.outbound(|outbound, parts| outbound.woken(frame, entry, outcome, parts));
    }

    /// This came of a question of the attempt of this frame.
    pub(crate) fn attempt_name_known(&mut self, frame: FrameId, number: QuestionNumber, known: Known) {
        self.outbound(|outbound, parts| outbound.name_known(frame, number, known, parts));
    }

    /// Something has happened to the connection of the attempt of this frame.
    #[cold]
    pub(crate) fn attempt_stirred(&mut self, frame: FrameId, stir: Stir) {
        self.outbound(|outbound, parts| outbound.stirred(frame, stir, parts));
    }

    /// The signature that the attempt of this frame has asked for was computed.
    pub(crate) fn attempt_signature_made(&mut self, frame: FrameId) {
        self.outbound(|outbound, parts| outbound.signature_made(frame, parts));
    }

    /// Entries of this core's outboxes that are shown to administrators: all that wait to leave.
    pub fn queue_entries(&self) -> usize {
        self.outbound.entries()
    }

    /// Whether the queue shows this entry of an outbox.
    pub fn is_in_queue(&self, account: AccountId, uid: Uid) -> bool {
        self.outbound.has(account, uid)
    }
}
