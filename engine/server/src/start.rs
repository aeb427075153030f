//! How an engine is made: every table, pool and queue gets its size here, once.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::net::IpAddr;

use http::Site;
use machine::Machine;
use mail::Hasher;
use message::DateTimeNow;
use net::{Address, Addressing, Config, Cores, Ipv6Address, Ipv6Addressing, Limits, Net};
use store::Store;
use tasks::{DelayQueue, ResumeQueue};

use crate::common::Common;
use crate::configuration::{Configuration, Network};
use crate::directory::Directory;
use crate::engine::Engine;
use crate::identifier::Identifiers;
use crate::logins::Logins;
use crate::sizes::Sizes;
use crate::smtp_service::{TRACE_BYTES_MAX, Transaction};

impl Engine {
    /// An engine that serves what `configuration` says, in as much memory as `sizes` says. Its first turns open the disk.
    pub fn new(configuration: Configuration, sizes: Sizes, machine: &mut impl Machine) -> Engine {
        let now = machine.now();
        let card = machine.card();
        machine.print(format_args!("sizes: {sizes}"));
        machine.print(format_args!("net: card {}, MTU {}", card.address, card.mtu));
        let wall = machine.wall_clock();
        let common = Common {
            now,
            wall,
            date_now: DateTimeNow::new(wall),
            net: Net::new(&network(&configuration, &sizes), &card, &random(machine), now),
            store: Store::new(sizes.store_limits(), machine.disk(), random(machine)),
            deadlines: DelayQueue::with_capacity(sizes.connections, now),
            ready: ResumeQueue::with_capacity(sizes.connections),
            hostname: configuration.hostname.as_str().to_string(),
            directory: Directory::new(&configuration),
            identifiers: Identifiers::new(u64::from_le_bytes(random(machine))),
            smtp_settings: smtp::Settings::default(),
            transactions: (0..sizes.transactions).map(|_| Box::new(Transaction::with_room())).collect(),
            trace: Box::new([0; TRACE_BYTES_MAX]),
            logins: Logins::new(sizes.connections, Hasher::new(), [random(machine), random(machine)]),
            site: Site::default(),
            logs_requests: configuration.web.access_log,
            request_log: Vec::new(),
            maildrops: BTreeSet::new(),
            orphans: Vec::new(),
            open_messages: 0,
            crowd: sizes.connections - sizes.connections / 16,
            broken: None,
            access: configuration.access,
        };
        let mut users = configuration.users;
        users.reverse();
        Engine::with(common, sizes, users)
    }

    /// Serves `site` from now on; until then there is none.
    pub fn publish(&mut self, site: Site) {
        self.common.site = site;
    }
}

fn network(configuration: &Configuration, sizes: &Sizes) -> Config {
    let (addressing, ipv6) = match &configuration.network {
        None => (Addressing::Dhcp, Ipv6Addressing::Automatic),
        Some(network) => (ipv4_addressing(network), ipv6_addressing(network)),
    };
    let limits = Limits {
        connections: sizes.connections,
        half_open: sizes.connections / 4,
        time_wait: sizes.connections,
        pools: sizes.pools(),
    };
    Config { addressing, ipv6, limits, cores: Cores::ALONE }
}

fn ipv4_addressing(network: &Network) -> Addressing {
    let own = network.addresses.iter().find_map(|own| match own.address {
        IpAddr::V4(address) => Some(Address { address, prefix_bits: own.length, gateway: network.gateway }),
        IpAddr::V6(_) => None,
    });
    own.map_or(Addressing::None, Addressing::Static)
}

fn ipv6_addressing(network: &Network) -> Ipv6Addressing {
    let mut own = network.addresses.iter().filter_map(|own| match own.address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(Ipv6Address { address, prefix_bits: own.length }),
    });
    let addresses = [(); net::IPV6_FIXED_MAX].map(|()| own.next());
    match addresses {
        [None, ..] => Ipv6Addressing::None,
        _ => Ipv6Addressing::Static { addresses, gateway: network.ipv6_gateway },
    }
}

fn random<const BYTES: usize>(machine: &mut impl Machine) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    machine.random(&mut bytes);
    bytes
}
