//! A wide network between the host and the guests: a wire (`tests/wire`) that delays and loses
//! frames, inserted while they serve.

use std::path::Path;

use host::Failure;

use super::Side;
use crate::goodput::Wire;
use crate::network::ip;

const SEED: u64 = 1;

impl Side {
    /// The interface where the host is once it has withdrawn from the guest's.
    pub(crate) fn near(self) -> String {
        format!("{}-near", self.interface())
    }

    /// The wire's other end.
    fn far(self) -> String {
        format!("{}-far", self.interface())
    }

    /// Moves the host away from the guest's interface. A bridge joins that interface to one where a
    /// wire may end. No client is connected now. A guest that knew the host finds its new card when
    /// it has something to send.
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
        // Linux would answer there for the address at this end of the wire, and frames for it would
        // come in past the wire.
        ip(&format!("link set {bridge} arp off up"))
    }

    /// Joins the host to the guest again, by a wire of this specification; until it is dropped.
    pub(crate) fn wire(self, program: &Path, spec: &str) -> Result<Wire, Failure> {
        Wire::between(program, &self.near(), &self.far(), spec, SEED)
    }
}
