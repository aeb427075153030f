//! Messages from other cores, and frames for other cores. [`crate::cores`] stores the state of the
//! other cores, and the queues of messages for them.

use machine::{Checksum, CoreId, Frame, Instant};
use sometimes::sometimes;

use super::Net;
use crate::config::Cores;
use crate::cores::{
    Arrived, Contents, LinkNews, MulticoreState, NetMessage, NetMessageKind, PassedFrame, Route,
};
use crate::counters::Counter;
use crate::event::Events;
use crate::icmp::IcmpReport;

impl Net {
    /// Ends the handling of a frame, after the user has handled its events. Passes the frame on if
    /// `route` requires this. Otherwise returns it for [`machine::Machine::give_back`].
    #[inline]
    pub fn frame_handled(&mut self, frame: Frame, route: Route) -> Option<Frame> {
        match route {
            Route::Here => Some(frame),
            Route::Onward => self.forward_own(frame),
        }
    }

    #[cold]
    fn forward_own(&mut self, frame: Frame) -> Option<Frame> {
        let Some(other_cores) = &mut self.other_cores else {
            unreachable!("a core that is alone passes nothing on")
        };
        other_cores.own_handled(frame, &mut self.link.counters)
    }

    /// Handles a message from another core. Adds its events to `events`, which must be empty.
    pub fn message_arrived(
        &mut self,
        now: Instant,
        message: NetMessage,
        events: &mut Events,
    ) -> Arrived {
        match message.0 {
            NetMessageKind::Frame(passed) => return self.passed_arrived(now, passed, events),
            NetMessageKind::Buffer(frame, charged_to) => {
                self.shared_state().came_home(charged_to);
                return Arrived(Contents::Buffer(frame));
            }
            NetMessageKind::Address(address) => self.change_address(now, address),
            NetMessageKind::Ipv6(state) => self.link.ndp.learn(*state),
            NetMessageKind::Load(load) => self.shared_state().load_reported(&load),
            NetMessageKind::LinkNews(LinkNews::Neighbour { address, hardware }) => {
                self.link.neighbour_heard(now, address, hardware);
            }
            NetMessageKind::LinkNews(LinkNews::Ipv6Neighbour { address, claim }) => {
                self.link.ipv6_neighbour_heard(now, address, claim);
            }
            NetMessageKind::LinkNews(LinkNews::TransportError(report)) => {
                self.icmp_report_arrived(now, &report, events)
            }
        }
        Arrived(Contents::Nothing)
    }

    /// Ends the handling of a message, after the user has handled its events. If the message has
    /// returned a buffer of this core's card, returns the buffer as a frame for
    /// [`machine::Machine::give_back`].
    pub fn message_handled(&mut self, arrived: Arrived) -> Option<Frame> {
        match arrived.0 {
            Contents::Nothing => None,
            Contents::Buffer(frame) => Some(frame),
            Contents::Frame(passed) => {
                let Some(other_cores) = &mut self.other_cores else {
                    unreachable!("a core that is alone is passed no frames")
                };
                other_cores.passed_handled(passed, &mut self.link.counters)
            }
        }
    }

    /// The next message for another core, if there is one. The caller must deliver messages
    /// reliably and in order.
    pub fn next_message(&mut self, to: CoreId) -> Option<NetMessage> {
        self.other_cores.as_mut()?.next_message(to, &self.link)
    }

    /// Whether a message waits for another core.
    pub fn has_messages(&self) -> bool {
        self.other_cores.as_ref().is_some_and(|other_cores| other_cores.has_messages(&self.link))
    }

    /// The number of frames of our card that are on other cores.
    pub fn frames_away(&self) -> usize {
        self.other_cores.as_ref().map_or(0, MulticoreState::frames_away)
    }

    pub(super) fn cores(&self) -> Cores {
        self.other_cores.as_ref().map_or(Cores::ALONE, MulticoreState::cores)
    }

    /// Handles a frame from the card, on a machine with several cores.
    #[cold]
    pub(super) fn frame_arrived_multicore(
        &mut self,
        now: Instant,
        frame: &Frame,
        events: &mut Events,
    ) -> Route {
        let Some(other_cores) = &mut self.other_cores else {
            unreachable!("there are several cores")
        };
        if other_cores.is_for_us(now, frame, &self.link, |flow| self.tcp.bucket(flow)) {
            self.process_frame_multicore(
                now,
                frame.bytes(),
                frame.checksum() == Checksum::Verified,
                events,
            );
        }
        if self.is_forwarded() { Route::Onward } else { Route::Here }
    }

    /// The state that is shared with the other cores. Panics on a machine with one core, because no
    /// messages arrive there.
    fn shared_state(&mut self) -> &mut MulticoreState {
        match &mut self.other_cores {
            Some(other_cores) => other_cores,
            None => unreachable!("a core that is alone gets no messages"),
        }
    }

    /// Whether the current frame is passed on to another core.
    fn is_forwarded(&self) -> bool {
        self.other_cores.as_ref().is_some_and(MulticoreState::is_forwarded)
    }

    #[inline(never)]
    fn process_frame_multicore(
        &mut self,
        now: Instant,
        bytes: &[u8],
        verified: bool,
        events: &mut Events,
    ) {
        self.process_frame(now, bytes, verified, events);
    }

    /// Handles a frame that another core has passed on to this core.
    fn passed_arrived(
        &mut self,
        now: Instant,
        passed: PassedFrame,
        events: &mut Events,
    ) -> Arrived {
        let Some(other_cores) = &mut self.other_cores else {
            unreachable!("a core that is alone gets no frames from others")
        };
        other_cores.passed_arrived(now, &passed);
        // The turn of the other core may have begun later than the turn of this core.
        self.link.counters.frame_was_passed(now.since(passed.seen_at));
        // A segment that goes round the cores is counted once: on the core with the card that
        // received it.
        let segments_in = self.link.counters.of(Counter::SegmentsIn);
        let verified = passed.verified || passed.frame.checksum() == Checksum::Verified;
        self.process_frame_multicore(now, passed.frame.bytes(), verified, events);
        if passed.hops > 0 {
            self.link.counters.take_back(Counter::SegmentsIn, segments_in);
            if passed.hops < self.cores().count && !self.is_forwarded() {
                sometimes!(StrayKept);
            }
        }
        Arrived(Contents::Frame(passed))
    }

    /// Handles a report of a host or router about a segment of ours. If this core does not know the
    /// segment's connection, the report is passed to the other cores.
    pub(super) fn icmp_report_arrived(
        &mut self,
        now: Instant,
        report: &IcmpReport,
        events: &mut Events,
    ) {
        if !self.tcp.icmp_report_arrived(now, report, &mut self.link.counters, events) {
            self.pass_on_link_news(LinkNews::TransportError(*report));
        }
    }

    /// Passes news from the link on to the other cores, if this is the first core.
    pub(super) fn pass_on_link_news(&mut self, link_news: LinkNews) {
        if let Some(other_cores) = &mut self.other_cores {
            other_cores.pass_on_link_news(link_news);
        }
    }
}
