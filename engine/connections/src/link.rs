//! The lower side of a core's connections: frames, other cores, ports and datagrams.

use core::net::SocketAddr;

use machine::{CoreId, Frame, Instant, Machine};
use net::{Arrived, Events, NetMessage, OutputProgress, Route, Service};
use tasks::Budget;

use crate::connections::Connections;

impl Connections {
    /// Processes a received frame, and adds its events to `events`.
    #[inline]
    pub fn frame_arrived(&mut self, now: Instant, frame: &mut Frame, events: &mut Events) -> Route {
        self.net_mut().frame_arrived(now, frame, events)
    }

    /// The events of a frame are handled. Returns the frame, unless another core gets it.
    #[inline]
    pub fn frame_handled(&mut self, frame: Frame, route: Route) -> Option<Frame> {
        self.net_mut().frame_handled(frame, route)
    }

    /// The network of another core has sent a message.
    pub fn message_arrived(
        &mut self,
        now: Instant,
        message: NetMessage,
        events: &mut Events,
    ) -> Arrived {
        self.net_mut().message_arrived(now, message, events)
    }

    /// The events of a message are handled. Returns a frame that has come back.
    pub fn message_handled(&mut self, arrived: Arrived) -> Option<Frame> {
        self.net_mut().message_handled(arrived)
    }

    /// The next message for the network of another core.
    pub fn next_message(&mut self, to: CoreId) -> Option<NetMessage> {
        self.net_mut().next_message(to)
    }

    /// Does the work of the network that is due.
    #[inline]
    pub fn deadlines_expired(&mut self, now: Instant, events: &mut Events, budget: &mut Budget) {
        self.net_mut().deadlines_expired(now, events, budget);
    }

    /// Sends the output of connections.
    #[inline]
    pub fn output(
        &mut self,
        now: Instant,
        machine: &mut impl Machine,
        budget: &mut Budget,
    ) -> OutputProgress {
        self.net_mut().output(now, machine, budget)
    }

    /// Accepts connections to this port, for this service. Returns whether there is space for that.
    pub fn listen(&mut self, port: u16, service: Service) -> bool {
        self.net_mut().listen(port, service)
    }

    /// Refuses connections to this port again.
    pub fn stop_listening(&mut self, port: u16) {
        self.net_mut().stop_listening(port);
    }

    /// Begins to configure IPv6 addresses, from this secret.
    pub fn begin_ipv6(&mut self, now: Instant, secret: &[u8; 16]) {
        self.net_mut().begin_ipv6(now, secret);
    }

    /// Sends a datagram from `port`, and receives datagrams for `port` from now on. A datagram that
    /// cannot be sent counts as lost.
    pub fn send_datagram(&mut self, now: Instant, port: u16, to: SocketAddr, bytes: &[u8]) {
        let _ =
            self.net_mut().bind(port) && self.net_mut().send_datagram(now, port, to, bytes).is_ok();
    }

    /// Refuses datagrams to this port from now on.
    pub fn release(&mut self, port: u16) {
        self.net_mut().release(port);
    }
}
