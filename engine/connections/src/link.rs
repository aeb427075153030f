//! The link below a core's connections: frames, other cores, ports and datagrams.

use core::net::SocketAddr;

use machine::{CoreId, Frame, Instant, Machine};
use net::{Arrived, Events, NetMessage, Output, Route, Service};
use tasks::Budget;

use crate::connections::Connections;

impl Connections {
    /// A frame has arrived: what happened stands in `events`.
    #[inline]
    pub fn frame_arrived(&mut self, now: Instant, frame: &mut Frame, events: &mut Events) -> Route {
        self.net_mut().frame_arrived(now, frame, events)
    }

    /// Those events are handled. Gives back the frame, unless another core gets it.
    #[inline]
    pub fn frame_handled(&mut self, frame: Frame, route: Route) -> Option<Frame> {
        self.net_mut().frame_handled(frame, route)
    }

    /// The network of another core has sent something.
    pub fn message_arrived(
        &mut self,
        now: Instant,
        message: NetMessage,
        events: &mut Events,
    ) -> Arrived {
        self.net_mut().message_arrived(now, message, events)
    }

    /// What came of it is handled. Gives back a frame that is home again.
    pub fn message_handled(&mut self, arrived: Arrived) -> Option<Frame> {
        self.net_mut().message_handled(arrived)
    }

    /// What the network has for that of another core.
    pub fn next_message(&mut self, to: CoreId) -> Option<NetMessage> {
        self.net_mut().next_message(to)
    }

    /// Does what is due in the network.
    #[inline]
    pub fn deadlines_expired(&mut self, now: Instant, events: &mut Events, budget: &mut Budget) {
        self.net_mut().deadlines_expired(now, events, budget);
    }

    /// Sends what connections have to say.
    #[inline]
    pub fn output(
        &mut self,
        now: Instant,
        machine: &mut impl Machine,
        budget: &mut Budget,
    ) -> Output {
        self.net_mut().output(now, machine, budget)
    }

    /// Connections to this port are accepted, for this service. Whether there is room for that.
    pub fn listen(&mut self, port: u16, service: Service) -> bool {
        self.net_mut().listen(port, service)
    }

    /// They are refused again.
    pub fn stop_listening(&mut self, port: u16) {
        self.net_mut().stop_listening(port);
    }

    /// The machine gives itself IPv6 addresses, from this secret.
    pub fn begin_ipv6(&mut self, now: Instant, secret: &[u8; 16]) {
        self.net_mut().begin_ipv6(now, secret);
    }

    /// Sends a datagram. What is not sent is as good as lost on its way.
    pub fn send_datagram(&mut self, now: Instant, port: u16, to: SocketAddr, bytes: &[u8]) {
        let _ =
            self.net_mut().bind(port) && self.net_mut().send_datagram(now, port, to, bytes).is_ok();
    }

    /// Datagrams to this port are not for us any more.
    pub fn release(&mut self, port: u16) {
        self.net_mut().release(port);
    }
}
