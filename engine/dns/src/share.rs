//! Shares: the number of waiting questions, or of askers of one question, that a client may cause.
//!
//! A client chooses which names are looked up about its mail, and how long the answers take. A
//! client with slow names could fill all places for waiting questions. If that happened, no other
//! client's mail could be checked. So each address and each network has a share of the places.
//!
//! A network may hold at most as many places as are free, and an address at most half of that. The
//! crate `budget` has the same thresholds for memory. One network alone gets half of all places. If
//! n networks want all places, each gets 1/(n + 1) of them, and the same number stays free for the
//! next network. A network that holds no place gets a place as long as one is free.
//!
//! A network is a /24 (IPv4) or a /48 (IPv6). An IPv6 host has a /64 to itself (RFC 6177), so a /64
//! counts as one address.
//!
//! Few questions wait at a time, so all of them are counted again for each new question.

use core::net::IpAddr;

/// A client that causes lookups: its IPv4 address, or its IPv6 /64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LookupClient(u64);

/// The upper 32 bits of a client with an IPv4 address. No IPv6 host has an address that begins with
/// them (RFC 4291 section 2.4).
const IPV4: u64 = 0xffff << 32;

impl LookupClient {
    /// The client at an address.
    pub fn at(address: IpAddr) -> LookupClient {
        LookupClient(match address.to_canonical() {
            IpAddr::V4(address) => IPV4 | u64::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        })
    }

    fn network(self) -> u64 {
        let host_bits = if self.0 >> 32 == IPV4 >> 32 { 8 } else { 16 };
        self.0 >> host_bits << host_bits
    }
}

/// An asker of a resolver.
pub trait OnBehalf {
    /// The client that causes the question. `None`: this machine asks for itself.
    fn client(&self) -> Option<LookupClient>;
}

impl OnBehalf for () {
    fn client(&self) -> Option<LookupClient> {
        None
    }
}

/// Whether one more question or asker of `client` may wait. `waiting`: the clients of all questions
/// or askers that wait now. `most`: the number of places.
pub(crate) fn may_wait(
    client: LookupClient,
    waiting: impl Iterator<Item = LookupClient>,
    most: usize,
) -> bool {
    let (mut all, mut of_network, mut of_address) = (1, 1, 1);
    for other in waiting {
        all += 1;
        of_network += usize::from(other.network() == client.network());
        of_address += usize::from(other == client);
    }
    let is_first = of_network == 1;
    most.checked_sub(all)
        .is_some_and(|free| is_first || of_network <= free && of_address <= free / 2)
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;

    const MOST: usize = 96;

    fn at(address: &str) -> LookupClient {
        LookupClient::at(address.parse().unwrap())
    }

    /// The number of places that `client` gets if it asks as often as it can, while `others` hold
    /// theirs.
    fn share(client: LookupClient, others: &[LookupClient]) -> usize {
        let mut waiting = others.to_vec();
        while may_wait(client, waiting.iter().copied(), MOST) {
            waiting.push(client);
        }
        waiting.len() - others.len()
    }

    #[test]
    fn an_address_has_a_third_of_the_questions_and_a_network_half() {
        for (network, neighbour, far) in [
            ("192.0.2", "192.0.2.200", "192.0.3.1"),
            ("2001:db8:1", "2001:db8:1:ffff::1", "2001:db8:2::1"),
        ] {
            let host = |number: usize| match network.contains(':') {
                true => at(&format!("{network}:{number:x}::1")),
                false => at(&format!("{network}.{number}")),
            };
            assert_eq!(share(host(1), &[]), 32, "{network}");
            let network: Vec<LookupClient> =
                (0..).map(|number| host(number % 250)).take(48).collect();
            assert!((0..48).all(|held| may_wait(
                network[held],
                network[..held].iter().copied(),
                MOST
            )));
            assert_eq!(share(at(neighbour), &network), 0);
            assert_eq!(share(at(far), &network), 16);
        }
        assert_eq!(share(at("::ffff:192.0.2.1"), &[at("192.0.2.1"); 32]), 0, "the same host");
        assert_eq!(share(at("2001:db8::2"), &[at("2001:db8::1"); 32]), 0, "the same /64");
    }

    /// Networks that want all places have unequal shares at first. The shares become equal when
    /// answers free places.
    #[test]
    fn networks_reach_equal_question_shares_and_leave_one_free() {
        let mut waiting = Vec::new();
        for round in 0..10 * MOST {
            for network in 0..5 {
                let client = |number: usize| at(&format!("198.51.{network}.{}", number % 250));
                let more = (round * MOST..).map(client).take(MOST);
                for client in more {
                    if may_wait(client, waiting.iter().copied(), MOST) {
                        waiting.push(client);
                    }
                }
            }
            waiting.remove(0);
        }
        let held = |network: u32| {
            let network = at(&format!("198.51.{network}.0")).network();
            waiting.iter().filter(|client| client.network() == network).count()
        };
        assert!(
            (0..5).all(|network| (15..=17).contains(&held(network))),
            "{:?}",
            [0, 1, 2, 3, 4].map(held)
        );
        assert!(share(at("192.0.2.1"), &waiting) >= 5);
    }

    #[test]
    fn first_asker_of_a_network_needs_only_one_place() {
        let others: Vec<LookupClient> =
            (0..MOST).map(|number| at(&format!("198.51.{number}.1"))).collect();
        let (all, but_one) = (&others[..], &others[1..]);
        assert!(may_wait(at("192.0.2.1"), but_one.iter().copied(), MOST));
        assert!(
            !may_wait(at("198.51.1.2"), but_one.iter().copied(), MOST),
            "a client of that network waits"
        );
        assert!(!may_wait(at("192.0.2.1"), all.iter().copied(), MOST));
    }
}
