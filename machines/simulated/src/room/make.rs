//! Builds a station's machine: its configuration, the sizes of its engines, and its cores.

use chance::Dice;
use dkim::SigningKey;
use machine::{Ethernet, Micros, UnixTime};
use server::configuration::Configuration;
use server::{MachineKeys, Sizes};
use smoltcp::wire::{Ipv4Address, Ipv6Address};

use super::fault::Fault;
use super::fixture::{ACCOUNTS, HOSTNAME, STARTED_SECONDS};
use super::remote::SMARTHOST;
use super::scenario::{Rates, Scenario};
use super::site;
use super::tls_client::certificates;
use crate::{CoreClock, Engines, MemoryDisk, Mood, SimulatedMachine};

/// The parameters from which a machine is built at each start.
pub(super) struct MachineParts {
    pub(super) address: Ipv4Address,
    pub(super) hardware: Ethernet,
    pub(super) sizes: Sizes,
    pub(super) cores: Cores,
}

/// The cores of a machine.
pub(super) struct Cores {
    pub(super) count: u8,
    /// The number of queue pairs of the card.
    queues: u8,
    clocks: Vec<CoreClock>,
}

impl Cores {
    pub(super) fn new(station: usize, scenario: &Scenario, rates: &Rates) -> Cores {
        let mut dice = scenario.dice(&format!("cores of {station}"));
        let count = scenario.cores;
        let few = dice.below(u64::from(count)) as u8;
        let queues = if scenario.faults.contain(Fault::FewQueues) { few.max(1) } else { count };
        let clocks = if count > 1 {
            (0..count).map(|_| clock(&mut dice, rates)).collect()
        } else {
            Vec::new()
        };
        Cores { count, queues, clocks }
    }
}

fn clock(dice: &mut Dice, rates: &Rates) -> CoreClock {
    let mut around = |most: u64| dice.below(2 * most + 1) as i64 - most as i64;
    let Micros(disagreement) = rates.disagreement;
    CoreClock { ahead: around(disagreement), drift: around(rates.core_drift) }
}

impl MachineParts {
    /// Builds the machine with `disk` in it, and its engines before their first turn.
    pub(super) fn start(
        &self,
        mut disk: MemoryDisk,
        rates: &Rates,
        dice: &mut Dice,
    ) -> (SimulatedMachine, Engines) {
        disk.mood = Mood::Waits;
        let mut machine = SimulatedMachine::new(dice.roll(), disk);
        machine.hardware = self.hardware;
        machine.transmit_ring = rates.ring;
        machine.started = UnixTime::from_seconds(STARTED_SECONDS + dice.below(1_000_000));
        (machine.queues, machine.strays) = (self.cores.queues, rates.strays);
        machine.clocks.clone_from(&self.cores.clocks);
        let configuration = configuration(self.address);
        let key = [
            &[0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20][..],
            &[7; 32],
        ]
        .concat();
        let signing_keys = [SigningKey::new(&key, "room").expect("a key of Ed25519")].into();
        let papers =
            MachineKeys { certificates: certificates(), signing_keys, ..MachineKeys::default() };
        let engines = Engines::new(
            configuration,
            site::packed(),
            papers,
            self.sizes,
            self.cores.count,
            &mut machine,
        );
        (machine, engines)
    }
}

/// The IPv6 address that belongs to an IPv4 address.
pub(super) fn ipv6_of(address: Ipv4Address) -> Ipv6Address {
    let [.., last] = address.octets();
    Ipv6Address::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last))
}

fn configuration(address: Ipv4Address) -> Configuration {
    let user = |name: &str| {
        format!(
            "[[user]]\naddress = \"{name}\"\n# The hash of \"lovelace\", of little cost.\n\
             password_hash = \"$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$Oi7AsNkSF11/Jvy4J3BMjBTrWUr2l8Z3T8a7yI9rNnQ\"\n"
        )
    };
    let users: String = ACCOUNTS.into_iter().map(user).collect();
    let text = format!(
        "hostname = \"{HOSTNAME}\"\ndomains = [\"barepost.test\"]\n[network]\n\
         address = [\"{address}/24\", \"{}/64\"]\n{users}\
         # So that small disks fill up.\n[limits]\nquota = \"unlimited\"\n\
         [relay]\nsmarthost = \"{SMARTHOST}\"\ntls = \"none\"\n\
         [access]\nplaintext_auth_from = [\"10.0.0.0/24\", \"2001:db8::/64\"]\n",
        ipv6_of(address)
    );
    Configuration::parse(&text).expect("the configuration is valid")
}

/// The sizes of each core.
pub(super) fn sizes(scenario: &Scenario, dice: &mut Dice) -> Sizes {
    if scenario.faults.contain(Fault::TightPools) {
        let connections = 16 + dice.below(16) as usize;
        let transactions = 1 + dice.below(7) as usize;
        return Sizes {
            connections,
            transactions,
            blocks: 96,
            buffer_bytes: 1 << 20,
            index_bytes: 1 << 22,
        };
    }
    Sizes {
        connections: 128,
        transactions: 32,
        blocks: 1024,
        buffer_bytes: 2 << 20,
        index_bytes: 1 << 22,
    }
}
