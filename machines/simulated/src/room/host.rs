//! A host: the computer of some clients, with its cable.

use machine::{Ethernet, Instant};
use smoltcp::wire::Ipv4Address;

use super::scenario::Scenario;
use super::tls_client::SessionCache;
use crate::{Cable, Client, Connection};

/// A host, and the connections that its clients have left but that are not closed yet.
pub(super) struct Host {
    pub(super) client: Client,
    pub(super) hardware: Ethernet,
    /// When its cable is plugged in again.
    cable_at: Option<Instant>,
    pub(super) left: Vec<Connection>,
    pub(super) sessions: SessionCache,
    /// It never comes back.
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

    /// Unplugs its cable until this time.
    pub(super) fn pull_cable(&mut self, until: Instant) {
        self.client.cable = Cable::Out;
        self.cable_at = Some(until);
    }

    /// When its cable is plugged in again.
    pub(super) fn cable_at(&self) -> Option<Instant> {
        self.cable_at
    }

    /// Whether it never comes back.
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

    /// Forgets connections that are closed.
    pub(super) fn sweep(&mut self) {
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
