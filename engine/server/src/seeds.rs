//! The inputs of each core's engine: [`seeds`] makes them on the first core, and each core gets its
//! [`Seed`].

use alloc::sync::Arc;
use alloc::vec::Vec;

use channel::CoreLinks;
use configuration::Configuration;
use dkim::SigningKey;
use http::Site;
use machine::CoreId;
use sometimes::buggify;
use tls::{Authorities, Certificate};

use crate::links::Message;
use crate::sizes::Sizes;

/// The maximum number of cores of one machine.
pub const CORES_MAX: u8 = net::CORES_MAX as u8;

/// The number of messages that each ring holds.
const RING_MESSAGES: usize = 256;
/// The number of messages in each ring if a simulation makes rings short.
const RING_MESSAGES_FEW: usize = 2;

/// The input of a core's engine. It is made on the first core and moved to its core.
pub struct Seed {
    pub(crate) core: CoreId,
    pub(crate) cores: u8,
    pub(crate) configuration: Arc<Configuration>,
    pub(crate) site: Site,
    pub(crate) machine_keys: MachineKeys,
    pub(crate) sizes: Sizes,
    /// A secret of the cores of the machine. The keys that they share are derived from it.
    pub(crate) secret: [u8; 32],
    pub(crate) links: CoreLinks<Message>,
}

/// The credentials of the machine, and its trust anchors.
#[derive(Clone, Default)]
pub struct MachineKeys {
    /// TLS certificates, the default one first. Without a certificate, TLS is off. With one, the
    /// machine must give `randomness` a source before its first turn.
    pub certificates: Vec<Certificate>,
    /// DKIM keys for messages of our users, in the order of their signatures in a message. If
    /// empty, no message is signed. Signing needs the source of `randomness` too.
    pub signing_keys: Arc<[SigningKey]>,
    /// The authorities for the names of other servers.
    pub authorities: Authorities,
    /// The authorities that browsers trust. If our certificates chain to one of them, browsers are
    /// told to use TLS only.
    pub browser_authorities: Authorities,
}

const fn assert_is_send<T: Send>() {}
const _: () = assert_is_send::<Seed>();

/// Makes the seeds of a machine with `cores` cores, from 1 to [`CORES_MAX`]. Returns the first
/// core's seed, and the others in the order of their cores.
///
/// `sizes`: the sizes of each core. `site`: the static site. `secret`: 32 bytes from a
/// cryptographic generator.
pub fn seeds(
    configuration: Configuration,
    site: Site,
    machine_keys: MachineKeys,
    sizes: Sizes,
    cores: u8,
    secret: [u8; 32],
) -> (Seed, Vec<Seed>) {
    assert!((1..=CORES_MAX).contains(&cores), "a machine has 1 to 16 cores");
    let configuration = Arc::new(configuration);
    let seed = |links: CoreLinks<Message>| {
        let (configuration, machine_keys) = (Arc::clone(&configuration), machine_keys.clone());
        Seed { core: links.own(), cores, configuration, site, machine_keys, sizes, secret, links }
    };
    let (first, others) = channel::links(cores, ring_messages);
    (seed(first), others.into_iter().map(seed).collect())
}

fn ring_messages() -> usize {
    if buggify!(ShortRing) { RING_MESSAGES_FEW } else { RING_MESSAGES }
}
