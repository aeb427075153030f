//! How an attempt finds the hosts on its road (`road`), and what it says to one of them.
//!
//! The mail of a domain may go by a smarthost instead (`smarthosts`). All domains that use the same
//! smarthost share one road.
//!
//! Each host is called in turn until one speaks with us. What that host says of the recipients
//! counts. A host that has no port open, is silent, or refuses before a recipient was named is
//! followed by the next one (RFC 5321 section 5.1). A host that offers TLS and fails in it is
//! called once more without TLS.
//!
//! Invariants:
//! - Whatever a peer does, it is waited for no longer than RFC 5321 section 4.5.3.2 requires, and
//!   no longer than [`super::secrecy::CONVERSATION`] in all.
//! - No recipient is given up for what one host says of itself while another host could not be asked.

use alloc::vec::Vec;

use configuration::Way as Leaving;
use connections::Stir;
use dns::Missing;
use relay::destinations::Ended;
use relay::route::Unroutable;
use relay::{Action, Cause, Envelope, Letter, Lost, Outcome, Reason, Speaker, Stage as Talk};
use store::Refusal;

use super::attempt::AttemptCx;
use super::courier::Courier;
use super::demand::{Found, find};
use super::road::{Road, come_of, nobody};
use super::secrecy::{Barred, CALL_PATIENCE, Line};
use super::stages::{Come, Stage, Way, bits};
use super::why::Why;
use super::{Point, smarthosts};

impl Courier {
    /// Finds out which hosts take the mail.
    pub(super) fn seek(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        let Road { destination, leaving, random, knowledge, .. } = &self.road;
        let ourselves = cx.queue.config.ourselves(cx.parts.connections.net());
        let us = ourselves.us();
        let hosts = match leaving {
            Leaving::By(smarthost) => {
                smarthosts::hosts(smarthost, &us, *random, knowledge).map(|hosts| hosts.map(Found::Hosts))
            }
            Leaving::Direct => find(destination, (&us, *random), (&cx.queue.policies, &*cx.parts), knowledge),
        };
        match hosts {
            Err(Missing(question)) => {
                let at = cx.continuation(Point::NameKnown);
                let number = cx.parts.names.ask(at, question.clone());
                self.road.asked = Some((number, question));
                self.wait.is_waiting = true;
            }
            Ok(Ok(Found::Inquiry(inquiry))) => {
                self.inquiry = Some(inquiry);
                self.stage(Stage::Inquired);
            }
            Ok(Ok(Found::Hosts(hosts))) => {
                self.road.hosts = hosts.into();
                self.stage(Stage::Called);
            }
            Ok(Err(why)) if why.is_temporary() => {
                self.settle_all(&Come::Later(Why::Nowhere(why)), Ended::Unknown, cx);
            }
            Ok(Err(why)) => {
                self.settle_all(&Come::Never(Why::Nowhere(why)), Ended::Unknown, cx);
            }
        }
        Ok(())
    }

    /// Calls the next host.
    pub(super) fn call(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        let Some(host) = self.road.hosts.pop_front() else {
            let missed = self.road.missed.take().unwrap_or(nobody());
            self.settle_all(&missed, Ended::Failed, cx);
            return Ok(());
        };
        let host = match host {
            Ok(host) => host,
            Err(Barred { why, counts_as }) => {
                if let Some((rule, shortfall)) = counts_as {
                    cx.queue.count_tls(&self.road.destination, rule, Err(shortfall), cx.parts.turn.wall);
                }
                self.miss(Come::Later(Why::Nowhere(why)));
                return Ok(());
            }
        };
        let Some(line) = Line::to(host, cx.frame, cx.queue.config.hostname(), cx.parts) else {
            self.miss(nobody());
            return Ok(());
        };
        cx.queue.deadlines.set(cx.frame, cx.parts.turn.now + CALL_PATIENCE);
        self.line = Some(line);
        self.wait.is_waiting = true;
        Ok(())
    }

    /// The host has accepted the connection, or takes more of what is to be sent.
    pub(super) fn line_goes_on(&mut self, cx: &mut AttemptCx<'_, '_>) -> Way {
        if self.is_at(Stage::Inquired) {
            return self.inquiry_stirred(Stir::Room, cx);
        }
        if self.is_at(Stage::Called) {
            let letter = self.letter_for_peer(cx);
            if let (Some(line), Some(letter)) = (&mut self.line, letter) {
                line.opened(letter, cx.parts);
            }
            self.rewind();
            self.stage(Stage::Spoken);
        }
        self.wait.is_waiting = false;
        self.go_on(cx)
    }

    pub(super) fn letter_for_peer(&self, cx: &AttemptCx<'_, '_>) -> Option<Letter> {
        let bytes = self.letter_octets(cx).ok()?.into();
        let envelope = self.envelope()?;
        // In what leaves they are known by their bits.
        let known = |bit: u8| Some(relay::Recipient { number: bit.into(), ..self.recipient(bit)?.clone() });
        let recipients = bits(self.road.together).filter_map(known).collect();
        Some(Letter { envelope: Envelope { recipients, ..envelope.clone() }, bytes })
    }

    /// The peer has said something.
    pub(super) fn bytes_wait(&mut self, cx: &mut AttemptCx<'_, '_>) -> Way {
        if self.is_at(Stage::Inquired) {
            return self.inquiry_stirred(Stir::Bytes, cx);
        }
        if let Some(line) = &mut self.line {
            line.hear(cx.parts);
        }
        self.wait.is_waiting = false;
        self.go_on(cx)
    }

    /// It is the turn of the handshake with the host.
    pub(super) fn handshake_resumed(&mut self, cx: &mut AttemptCx<'_, '_>) -> Way {
        if self.is_at(Stage::Inquired) {
            return self.inquiry_stirred(Stir::Turn, cx);
        }
        if let Some(line) = &mut self.line {
            line.step(cx.parts);
        }
        self.wait.is_waiting = false;
        self.go_on(cx)
    }

    /// The peer says no more.
    pub(super) fn line_ended(&mut self, cx: &mut AttemptCx<'_, '_>) -> Way {
        self.lost(Lost::Closed, cx)
    }

    /// Nobody answers.
    pub(super) fn deadline_expired(&mut self, cx: &mut AttemptCx<'_, '_>) -> Way {
        self.lost(Lost::Silence, cx)
    }

    fn lost(&mut self, lost: Lost, cx: &mut AttemptCx<'_, '_>) -> Way {
        if self.is_at(Stage::Inquired) {
            return self.inquiry_stirred(Stir::Over, cx);
        }
        match &mut self.line {
            Some(line) if line.is_open() => line.client.lost(lost),
            _ => self.hang_up(cx),
        }
        self.wait.is_waiting = false;
        self.go_on(cx)
    }

    /// The letter cannot be read on.
    pub(super) fn body_lost(&mut self) {
        if let Some(line) = &mut self.line {
            line.client.lost(Lost::GivenUp);
        }
    }

    /// Says what there is to say, and does what the client wants done.
    pub(super) fn speak(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        loop {
            let Some(line) = &mut self.line else {
                self.wait.is_waiting = true;
                return Ok(());
            };
            line.say(cx.parts);
            match line.client.next_action() {
                Some(Action::NeedBody) => line.wants_body = true,
                Some(Action::BodyAnew) => {
                    line.is_body_over = false;
                    self.rewind();
                }
                Some(Action::Done { recipient, outcome }) => line.came.push((recipient as u8, outcome)),
                Some(Action::Idle) => {
                    self.letter_over(cx);
                    return Ok(());
                }
                Some(Action::HangUp) => {
                    self.hang_up(cx);
                    return Ok(());
                }
                Some(Action::StartTls) => line.begin_handshake(cx.parts),
                Some(Action::Compute) => {
                    line.client.compute();
                    self.wait.has_computed = true;
                    return Ok(());
                }
                None if line.wants_body => match self.give_body(cx)? {
                    Given::Something => {}
                    Given::Later => break,
                },
                None => break,
            }
        }
        self.wait.is_waiting = true;
        if let Some(line) = &self.line {
            let until = line.deadline(cx.parts.turn.now);
            cx.queue.deadlines.set(cx.frame, until);
        }
        Ok(())
    }

    /// Gives the client of what was read, or reads on.
    fn give_body(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<Given, Refusal> {
        if self.reader.rest.is_empty() {
            if self.read_on(cx)? {
                return Ok(Given::Later);
            }
            if let Some(line) = &mut self.line {
                (line.wants_body, line.is_body_over) = (false, true);
                line.client.body_ended();
            }
            return Ok(Given::Something);
        }
        let Courier { line: Some(line), reader, .. } = self else { return Ok(Given::Later) };
        let taken = line.client.body(&reader.rest);
        reader.rest.drain(..taken);
        line.wants_body = false;
        Ok(Given::Something)
    }

    /// The connection is ended at once.
    pub(super) fn hang_up(&mut self, cx: &mut AttemptCx<'_, '_>) {
        if let Some(line) = &mut self.line {
            line.end(cx.parts.connections);
        }
        self.line_is_over(cx);
    }

    /// What was heard counts, unless it was nothing and there is another host.
    pub(super) fn line_is_over(&mut self, cx: &mut AttemptCx<'_, '_>) {
        self.want_no_part();
        self.wait.is_waiting = false;
        cx.queue.deadlines.cancel(cx.frame);
        self.stage(Stage::Called);
        self.count_tls(cx);
        let Some(line) = self.line.take() else { return };
        if line.was_over() {
            return self.start_anew();
        }
        if let Some(host) = line.to_be_called_in_the_clear() {
            return self.road.hosts.push_front(Ok(host));
        }
        let reporter = line.reporter();
        let (host, mut came) = line.told();
        if let Leaving::By(_) = self.road.leaving {
            came = came.into_iter().map(|(bit, outcome)| (bit, smarthosts::mendable(outcome))).collect();
        }
        let host = host.as_ref();
        // It is not for the host that a letter was given up that could not be read on.
        let is_damaged = |(_, outcome): &(u8, Outcome)| self.round.is_damaged && is_given_up(outcome);
        let (damaged, came): (Vec<_>, Vec<_>) = came.into_iter().partition(is_damaged);
        damaged.iter().for_each(|(bit, _)| self.settle(*bit, Come::Later(Why::Damaged), cx));
        // Before anybody was named it is the host that is spoken of, and the next one may be another.
        let is_of_host = |(_, outcome): &(u8, Outcome)| match outcome {
            Outcome::Later(reason) | Outcome::Never(reason) => reason.stage < Talk::Sender,
            Outcome::Delivered(_) => false,
        };
        if damaged.is_empty() && came.iter().all(is_of_host) {
            let first = came.into_iter().next();
            self.miss(first.map_or(nobody(), |(_, outcome)| come_of(outcome, host, reporter)));
            return;
        }
        for (bit, outcome) in came {
            self.settle(bit, come_of(outcome, host, reporter), cx);
        }
        self.arrive(Ended::Reached, cx);
    }

    /// This host was none. As long as one of them may be one later, that is what counts; and of those what the first one came to with which there was a word.
    fn miss(&mut self, come: Come) {
        let is_kept = match &self.road.missed {
            Some(Come::Later(
                Why::Nowhere(Unroutable::Forbidden) | Why::Said(Reason { cause: Cause::Lost(Lost::NotMade), .. }, _),
            )) => !matches!(come, Come::Later(_)),
            Some(Come::Later(_)) => true,
            _ => false,
        };
        if !is_kept {
            self.road.missed = Some(come);
        }
    }

    /// The road ends here, whatever came of it. An entry that waits for it is next.
    pub(super) fn leave_road(&mut self, how: Ended, cx: &mut AttemptCx<'_, '_>) {
        let Road { destination, random, .. } = core::mem::take(&mut self.road);
        cx.queue.road_left(&destination, how, cx.parts.turn.now, random);
    }

    /// The same came of it for all who are on this road.
    fn settle_all(&mut self, come: &Come, how: Ended, cx: &mut AttemptCx<'_, '_>) {
        for bit in bits(self.road.together) {
            self.settle(bit, come.clone(), cx);
        }
        self.arrive(how, cx);
    }
}

/// Whether the client was given something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Given {
    Something,
    Later,
}

fn is_given_up(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Later(Reason { cause: Cause::Lost(Lost::GivenUp), .. }))
}
