//! A wide-area network between the host and the guests. A wire program (`tests/wire`) that delays
//! and drops frames is inserted while the guests serve.

use std::path::Path;

use host::Failure;

use super::Side;
use crate::goodput::Wire;
use crate::network::ip;

const SEED: u64 = 1;

impl Side {
    /// The host's interface after the host has left the guest's interface.
    pub(crate) fn near(self) -> String {
        format!("{}-near", self.interface())
    }

    /// The wire's other end.
    fn far(self) -> String {
        format!("{}-far", self.interface())
    }

    /// Moves the host's address away from the guest's interface. A bridge joins that interface to
    /// another one, where a wire can end. No client is connected at this moment. A guest that knew
    /// the host learns the host's new MAC address when it next sends.
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
        // Otherwise Linux would answer ARP on the bridge for the address at this end of the wire.
        // Frames for that address would then bypass the wire.
        ip(&format!("link set {bridge} arp off up"))
    }

    /// Joins the host to the guest with a wire of this specification, until the wire is dropped.
    pub(crate) fn wire(self, program: &Path, spec: &str) -> Result<Wire, Failure> {
        Wire::between(program, &self.near(), &self.far(), spec, SEED)
    }
}
