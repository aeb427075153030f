//! Messages from other cores, and frames that are for other cores. [`crate::cores`] keeps the state
//! of the other cores, and the messages that are queued for them.

use machine::{Checksum, CoreId, Frame, Instant};
use sometimes::sometimes;

use super::Net;
use crate::config::Cores;
use crate::cores::{Arrived, Fellows, Hearsay, Message, NetMessage, Passed, Route, What};
use crate::counters::Counter;
use crate::event::Events;
use crate::icmp::Report;

impl Net {
    /// The user has handled the events of a frame and does not need it any more. The frame goes
    /// where `route` says, or is returned for [`machine::Machine::give_back`].
    #[inline]
    pub fn frame_handled(&mut self, frame: Frame, route: Route) -> Option<Frame> {
        match route {
            Route::Here => Some(frame),
            Route::Onward => self.pass_on_own(frame),
        }
    }

    #[cold]
    fn pass_on_own(&mut self, frame: Frame) -> Option<Frame> {
        let Some(fellows) = &mut self.fellows else {
            unreachable!("a core that is alone passes nothing on")
        };
        fellows.own_handled(frame, &mut self.link.counters)
    }

    /// A message from another core has arrived. Its events are added to `events`, which must be
    /// empty.
    pub fn message_arrived(
        &mut self,
        now: Instant,
        message: NetMessage,
        events: &mut Events,
    ) -> Arrived {
        match message.0 {
            Message::Frame(passed) => return self.passed_arrived(now, passed, events),
            Message::Shell(frame, charged_to) => {
                self.among_fellows().came_home(charged_to);
                return Arrived(What::Shell(frame));
            }
            Message::Address(address) => self.change_address(now, address),
            Message::Ipv6(knowledge) => self.link.ndp.learn(*knowledge),
            Message::Load(load) => self.among_fellows().load_told(&load),
            Message::Hearsay(Hearsay::Neighbour { address, hardware }) => {
                self.link.neighbour_heard(now, address, hardware);
            }
            Message::Hearsay(Hearsay::Ipv6Neighbour { address, claim }) => {
                self.link.ipv6_neighbour_heard(now, address, claim);
            }
            Message::Hearsay(Hearsay::Trouble(report)) => {
                self.trouble_reported(now, &report, events)
            }
        }
        Arrived(What::Nothing)
    }

    /// A message has been handled. Returns a frame for [`machine::Machine::give_back`] if a buffer
    /// of this core's card came back.
    pub fn message_handled(&mut self, arrived: Arrived) -> Option<Frame> {
        match arrived.0 {
            What::Nothing => None,
            What::Shell(frame) => Some(frame),
            What::Frame(passed) => {
                let Some(fellows) = &mut self.fellows else {
                    unreachable!("a core that is alone is passed no frames")
                };
                fellows.passed_handled(passed, &mut self.link.counters)
            }
        }
    }

    /// The next message for another core, if there is one. The caller must deliver messages
    /// reliably and in order.
    pub fn next_message(&mut self, to: CoreId) -> Option<NetMessage> {
        self.fellows.as_mut()?.next_message(to, &self.link)
    }

    /// Whether a message waits for another core.
    pub fn has_messages(&self) -> bool {
        self.fellows.as_ref().is_some_and(|fellows| fellows.has_messages(&self.link))
    }

    /// How many frames of our card are on other cores.
    pub fn frames_away(&self) -> usize {
        self.fellows.as_ref().map_or(0, Fellows::frames_away)
    }

    pub(super) fn cores(&self) -> Cores {
        self.fellows.as_ref().map_or(Cores::ALONE, Fellows::cores)
    }

    /// A frame has arrived on the card of a machine with several cores.
    #[cold]
    pub(super) fn frame_arrived_among(
        &mut self,
        now: Instant,
        frame: &Frame,
        events: &mut Events,
    ) -> Route {
        let Some(fellows) = &mut self.fellows else { unreachable!("there are several cores") };
        if fellows.is_for_us(now, frame, &self.link, |flow| self.tcp.bucket(flow)) {
            self.goes_up_among(now, frame.bytes(), frame.checksum() == Checksum::Verified, events);
        }
        if self.goes_on() { Route::Onward } else { Route::Here }
    }

    /// The state shared with the other cores. Panics on a machine with one core, which gets no
    /// messages.
    fn among_fellows(&mut self) -> &mut Fellows {
        match &mut self.fellows {
            Some(fellows) => fellows,
            None => unreachable!("a core that is alone is told nothing by others"),
        }
    }

    /// Whether the current frame goes on to another core.
    fn goes_on(&self) -> bool {
        self.fellows.as_ref().is_some_and(Fellows::goes_on)
    }

    #[inline(never)]
    fn goes_up_among(&mut self, now: Instant, bytes: &[u8], verified: bool, events: &mut Events) {
        self.goes_up(now, bytes, verified, events);
    }

    /// Another core has passed a frame on to this one.
    fn passed_arrived(&mut self, now: Instant, passed: Passed, events: &mut Events) -> Arrived {
        let Some(fellows) = &mut self.fellows else {
            unreachable!("a core that is alone gets no frames from others")
        };
        fellows.passed_arrived(now, &passed);
        // The other core's turn may have begun after this one's.
        self.link.counters.frame_was_passed(now.since(passed.seen_at));
        // A segment that goes round the cores is counted only on the core where it began.
        let segments_in = self.link.counters.of(Counter::SegmentsIn);
        let verified = passed.verified || passed.frame.checksum() == Checksum::Verified;
        self.goes_up_among(now, passed.frame.bytes(), verified, events);
        if passed.hops > 0 {
            self.link.counters.take_back(Counter::SegmentsIn, segments_in);
            if passed.hops < self.cores().count && !self.goes_on() {
                sometimes!(StrayKept);
            }
        }
        Arrived(What::Frame(passed))
    }

    /// A host or router reports trouble with a segment of ours. If the connection is unknown here,
    /// the other cores are told.
    pub(super) fn trouble_reported(&mut self, now: Instant, report: &Report, events: &mut Events) {
        if !self.tcp.trouble_reported(now, report, &mut self.link.counters, events) {
            self.pass_on_hearsay(Hearsay::Trouble(*report));
        }
    }

    /// The first core passes news from the link on to the other cores.
    pub(super) fn pass_on_hearsay(&mut self, hearsay: Hearsay) {
        if let Some(fellows) = &mut self.fellows {
            fellows.pass_on_hearsay(hearsay);
        }
    }
}
