//! From what the engine of each core is made: [`seeds`] makes it on the first core, and a [`Seed`]
//! is carried to its core.

use alloc::sync::Arc;
use alloc::vec::Vec;

use channel::Links;
use configuration::Configuration;
use dkim::SigningKey;
use http::Site;
use machine::CoreId;
use sometimes::buggify;
use tls::{Authorities, Certificate};

use crate::links::Message;
use crate::sizes::Sizes;

/// The most cores of one machine.
pub const CORES_MAX: u8 = net::CORES_MAX as u8;

/// Places in each ring.
const RING_MESSAGES: usize = 256;
/// Places where simulations make rings short.
const RING_MESSAGES_FEW: usize = 2;

/// What a core's engine is made from: carried to its core, and used there.
pub struct Seed {
    pub(crate) core: CoreId,
    pub(crate) cores: u8,
    pub(crate) configuration: Arc<Configuration>,
    pub(crate) site: Site,
    pub(crate) papers: Papers,
    pub(crate) sizes: Sizes,
    /// Known to the cores of the machine alone: from it come the keys in which they have to agree.
    pub(crate) secret: [u8; 32],
    pub(crate) links: Links<Message>,
}

/// By what others know the machine, and by what it knows others.
#[derive(Clone, Default)]
pub struct Papers {
    /// For TLS, the one for all other names first. Without any there is no TLS; with one, the
    /// machine gives `randomness` a source before its first turn.
    pub certificates: Vec<Certificate>,
    /// By which messages of our own users are signed, in the order in which their signatures stand
    /// above one; without any none is. They need `randomness`, too.
    pub signing_keys: Arc<[SigningKey]>,
    /// Who is believed about the names of other servers.
    pub authorities: Authorities,
    /// The authorities that browsers trust. If they vouch for our certificates, browsers are told
    /// to use TLS alone.
    pub browser_authorities: Authorities,
}

const fn is_carried_to_another_core<T: Send>() {}
const _: () = is_carried_to_another_core::<Seed>();

/// The seeds of a machine with `cores` cores, of which there is at least one and at most
/// [`CORES_MAX`]: the first core's, and the others' in their order.
///
/// `sizes`: of each core. `site`: what is served by HTTP. `secret`: 32 bytes from a cryptographic
/// generator.
pub fn seeds(
    configuration: Configuration,
    site: Site,
    papers: Papers,
    sizes: Sizes,
    cores: u8,
    secret: [u8; 32],
) -> (Seed, Vec<Seed>) {
    assert!((1..=CORES_MAX).contains(&cores), "a machine has 1 to 16 cores");
    let configuration = Arc::new(configuration);
    let seed = |links: Links<Message>| {
        let (configuration, papers) = (Arc::clone(&configuration), papers.clone());
        Seed { core: links.own(), cores, configuration, site, papers, sizes, secret, links }
    };
    let (first, others) = channel::links(cores, ring_messages);
    (seed(first), others.into_iter().map(seed).collect())
}

fn ring_messages() -> usize {
    if buggify!(ShortRing) { RING_MESSAGES_FEW } else { RING_MESSAGES }
}
