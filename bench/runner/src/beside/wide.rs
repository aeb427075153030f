//! A wide-area network between the host and the guests. A wire program (`tests/wire`) that delays
//! and drops frames is inserted while the guests serve.

use std::path::Path;

use host::Failure;

use super::Side;
use crate::goodput::Wire;
use crate::network::ip;

const SEED: u64 = 1;

impl Side {
    /// The host's interface after [`Side::withdraw`]: the wire's end at the host.
    pub(crate) fn near(self) -> String {
        format!("{}-near", self.interface())
    }

    /// The wire's end at the guest. A bridge joins it to the guest's interface.
    fn far(self) -> String {
        format!("{}-far", self.interface())
    }

    /// Moves the host's address from the guest's interface to a new interface. Then a wire can join
    /// the host to the guest. Call this while no client is connected. The guest learns the host's
    /// new MAC address when the guest next sends to the host.
    pub(crate) fn withdraw(self) -> Result<(), Failure> {
        let interface = self.interface();
        let (near, far, bridge) = (self.near(), self.far(), format!("{interface}-br"));
        ip(&format!("addr flush dev {interface}"))?;
        for name in [&near, &far] {
            ip(&format!("tuntap add dev {name} mode tap"))?;
        }
        ip(&format!("addr add {}/24 dev {near}", self.host()))?;
        ip(&format!("link add {bridge} type bridge"))?;
        for name in [interface, &far] {
            ip(&format!("link set {name} master {bridge}"))?;
        }
        for name in [&near, &far] {
            ip(&format!("link set {name} up"))?;
        }
        // With ARP, Linux would answer on the bridge for the host's address, which is on the `near`
        // interface. Then the guest's frames for the host would bypass the wire.
        ip(&format!("link set {bridge} arp off up"))
    }

    /// Joins the host to the guest by a wire with the properties `spec`. The wire ends when the
    /// returned value is dropped.
    pub(crate) fn wire(self, program: &Path, spec: &str) -> Result<Wire, Failure> {
        Wire::between(program, &self.near(), &self.far(), spec, SEED)
    }
}
