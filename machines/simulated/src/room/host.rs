//! A host: a computer with clients, and its cable.

use machine::{Ethernet, Instant};
use smoltcp::wire::Ipv4Address;

use super::scenario::Scenario;
use super::tls_client::SessionCache;
use crate::{Cable, Client, Connection};

/// A host. `left` has the connections that clients have left, but that are not closed yet.
pub(super) struct Host {
    pub(super) client: Client,
    pub(super) hardware: Ethernet,
    /// The time at which the cable is plugged in again; `None`: it is plugged in, or the host is
    /// gone.
    cable_at: Option<Instant>,
    pub(super) left: Vec<Connection>,
    pub(super) sessions: SessionCache,
    /// The host is gone for ever.
    is_gone: bool,
}

impl Host {
    pub(super) fn new(number: usize, scenario: &Scenario) -> Host {
        let last = 10 + number as u8;
        let client = Client::new(
            Ipv4Address::new(10, 0, 0, last),
            scenario.dice(&format!("host {number}")).roll(),
        );
        Host {
            client,
            hardware: Ethernet([0x02, 0, 0, 0, 1, last]),
            cable_at: None,
            left: Vec::new(),
            sessions: SessionCache::default(),
            is_gone: false,
        }
    }

    /// Unplugs the cable until this time.
    pub(super) fn pull_cable(&mut self, until: Instant) {
        self.client.cable = Cable::Out;
        self.cable_at = Some(until);
    }

    /// The time at which the cable is plugged in again, if it was unplugged for a while.
    pub(super) fn cable_at(&self) -> Option<Instant> {
        self.cable_at
    }

    /// Whether the host is gone for ever.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    pub(super) fn put_cable_in(&mut self) {
        self.cable_at = None;
        self.client.cable = if self.is_gone { Cable::Out } else { Cable::In };
    }

    pub(super) fn vanish(&mut self) {
        let [.., last] = self.hardware.0;
        self.client = Client::new(Ipv4Address::new(10, 0, 0, last), 0);
        self.client.cable = Cable::Out;
        self.left.clear();
        self.is_gone = true;
    }

    /// Forgets the connections in `left` that are closed.
    pub(super) fn forget_closed(&mut self) {
        let client = &mut self.client;
        self.left.retain(|connection| {
            let is_closed = client.is_closed(*connection);
            if is_closed {
                client.forget(*connection);
            }
            !is_closed
        });
    }
}
