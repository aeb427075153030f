//! Makes an engine: every table, pool and queue gets its size here, once.

use alloc::string::ToString;
use alloc::sync::Arc;
use core::net::IpAddr;

use accounts::{Directory, Logins};
use budget::MemoryBudget;
use certificates::Certificates;
use compute::Compute;
use configuration::{Configuration, DISK_FORMAT, DiskFormat, Network};
use connections::{Connections, TlsTable};
use inbound::{Inbound, InboundSeed};
use machine::{Card, ConsoleLines, CoreId, Entropy, Machine, Turn};
use mail::Greylist;
use net::{Addressing, Config, Cores, Ipv4Interface, Ipv6Address, Ipv6Addressing, Limits, Net};
use outbound::{self, Outbound};
use pop3_server::Pop3;
use relay::QueueIds;
use resolver::NameLookups;
use sasl::Nonces;
use shards::{Facts, ShardedStore};
use signing::Signer;
use submission::Submission;
use web::{Web, WebSeed};
use webmail::{RequestHandlers, RowCache};

use crate::parts::Parts;
use crate::seeds::{MachineKeys, Seed};
use crate::server::{Server, Services, Webmail};
use crate::session::Sessions;
use crate::sizes::{CHECKED_BYTES_POOLED, Sizes};

const _: () =
    assert!(DISK_FORMAT == store::FORMAT_VERSION, "the configuration names the newest format");

/// Makes the server of the core of this seed, on that core.
pub(crate) fn start(seed: Seed, machine: &mut impl Machine) -> Server {
    let Seed { core, cores, configuration, site, machine_keys, sizes, secret, links } = seed;
    let MachineKeys { certificates, signing_keys, authorities, browser_authorities } = machine_keys;
    let now = machine.now();
    let card = machine.card();
    if core == CoreId::FIRST {
        announce(cores, &sizes, &card, machine);
    }
    let wall = certificates::clock::time_of_day(machine.wall_clock(), machine.program_date(), now);
    let own = Cores { own: core, count: cores };
    let net = Net::new(&network(&configuration, &sizes, own), &card, &secret, now);
    let tls = TlsTable::new(
        &certificates,
        [authorities, browser_authorities],
        &secret,
        sizes.connections,
    );
    let connections = Connections::new(net, tls, sizes.connections, http::HEAD_BYTES_MAX, now);
    // The parts draw random numbers in this order. Another order would change every simulation.
    let (seed, disk) = (random(machine), machine.disk());
    let mut store = ShardedStore::new(
        (core, cores),
        &sizes.of_shards(cores),
        seed,
        disk,
        facts(&configuration, &secret),
    );
    if configuration.disk == DiskFormat::Newest {
        store.own.store.convert();
    }
    let [of_reports, of_inbound] = QueueIds::pair(u64::from_le_bytes(random(machine)));
    let memory = MemoryBudget::new(sizes.memory_pool_bytes(), random(machine));
    let keys = [random(machine), random(machine)];
    let logins =
        Logins::new(cores, configuration.access.clone(), keys, Nonces::new(random(machine)));
    let names = NameLookups::new(core, configuration.network.as_ref(), random(machine));
    let seed = InboundSeed {
        cores,
        transactions: sizes.transactions,
        checked_bytes: CHECKED_BYTES_POOLED,
        filter_bytes: sizes.filter_bytes(),
        queue_ids: of_inbound,
        rate_limits_key: random(machine),
        proofs_key: random(machine),
    };
    let hostname = configuration.hostname.as_str().to_string();
    let of_mail = outbound::Config::new(hostname.clone(), configuration.relay.clone());
    let services = Services {
        inbound: Inbound::new(&configuration, seed, wall),
        pop3: Pop3::default(),
        web: Web::new(
            &configuration,
            WebSeed { site, bodies_max: sizes.http_bodies_bytes() },
            wall,
        ),
        submission: Submission::new(now),
        outbound: Outbound::new(now, of_mail, of_reports),
        certificates: Certificates::new(core, certificates),
        names,
        webmail: Webmail { handlers: RequestHandlers::default(), rows: RowCache::new() },
    };
    let parts = Parts {
        turn: Turn { now, wall },
        connections,
        links,
        store,
        hostname,
        directory: Directory::new(&configuration),
        memory,
        logins,
        compute: Compute::new(core, cores, Arc::clone(&signing_keys)),
        signer: Signer::new(signing_keys, random(machine)),
        console: ConsoleLines::default(),
    };
    Server { parts, services, sessions: Sessions::new(sizes.connections) }
}

/// The facts about remote hosts, which are empty at the start.
fn facts(configuration: &Configuration, secret: &[u8; 32]) -> Facts {
    let keys =
        [secret.first_chunk(), secret.last_chunk()].map(|key| key.copied().unwrap_or_default());
    let [of_origins, of_destinations] = keys;
    Facts::new(
        configuration.abuse.greylist.map(|delay| Greylist::new(delay, of_origins)),
        of_destinations,
    )
}

fn announce(cores: u8, sizes: &Sizes, card: &Card, machine: &mut impl Machine) {
    match cores {
        1 => machine.print(format_args!("sizes: {sizes}")),
        _ => machine.print(format_args!("sizes: {cores} cores, each with {sizes}")),
    }
    machine.print(format_args!("net: card {}, MTU {}", card.address, card.mtu));
}

fn network(configuration: &Configuration, sizes: &Sizes, cores: Cores) -> Config {
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
    Config { addressing, ipv6, limits, cores }
}

fn ipv4_addressing(network: &Network) -> Addressing {
    let own = network.addresses.iter().find_map(|own| match own.address {
        IpAddr::V4(address) => {
            Some(Ipv4Interface { address, prefix_bits: own.length, gateway: network.gateway })
        }
        IpAddr::V6(_) => None,
    });
    own.map_or(Addressing::None, Addressing::Static)
}

fn ipv6_addressing(network: &Network) -> Ipv6Addressing {
    let mut own = network.addresses.iter().filter_map(|own| match own.address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(Ipv6Address { address, prefix_bits: own.length }),
    });
    // The configuration accepts as many addresses as the network has places for.
    const { assert!(configuration::IPV6_ADDRESSES_MAX == net::IPV6_FIXED_MAX) };
    let addresses = [(); net::IPV6_FIXED_MAX].map(|()| own.next());
    match addresses {
        [None, ..] => Ipv6Addressing::None,
        _ => Ipv6Addressing::Static { addresses, gateway: network.ipv6_gateway },
    }
}

fn random<const BYTES: usize>(entropy: &mut impl Entropy) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    entropy.random(&mut bytes);
    bytes
}
