//! Shares: how much of what waits may be because of one client.
//!
//! What is asked about a client's mail the client chooses, and how long the answer takes, too. A
//! client that asks for slow names could hold all questions that may wait, and nothing would be
//! found out about the mail of others. So an address and its network have a share of them.
//!
//! A network may hold as many as are free, an address half of that: the thresholds that `budget`
//! has for memory. One network alone gets half of all; when n networks want all, each gets
//! 1/(n + 1), and as many stay free for the next. A network of which none waits needs no more than
//! room for one. An IPv6 host has a /64 to itself (RFC 6177), which
//! counts as an address. A network is a /24 or a /48.
//!
//! Few wait at a time: they are counted when one more is to.

use core::net::IpAddr;

/// A client because of which names are looked up: its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Client(u64);

/// What an IPv4 address has in front; no IPv6 host has such an address (RFC 4291 section 2.4).
const IPV4: u64 = 0xffff << 32;

impl Client {
    /// The client at an address.
    pub fn at(address: IpAddr) -> Client {
        Client(match address.to_canonical() {
            IpAddr::V4(address) => IPV4 | u64::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        })
    }

    fn network(self) -> u64 {
        let host_bits = if self.0 >> 32 == IPV4 >> 32 { 8 } else { 16 };
        self.0 >> host_bits << host_bits
    }
}

/// Who asks a resolver.
pub trait OnBehalf {
    /// The client because of which that is; none: this machine itself wants to know it.
    fn client(&self) -> Option<Client>;
}

impl OnBehalf for () {
    fn client(&self) -> Option<Client> {
        None
    }
}

/// Whether one more may wait because of `client`. `waiting`: the clients because of which others do. `most`: so many may.
pub(crate) fn may_wait(client: Client, waiting: impl Iterator<Item = Client>, most: usize) -> bool {
    let (mut all, mut of_network, mut of_address) = (1, 1, 1);
    for other in waiting {
        all += 1;
        of_network += usize::from(other.network() == client.network());
        of_address += usize::from(other == client);
    }
    let is_first = of_network == 1;
    most.checked_sub(all).is_some_and(|free| is_first || of_network <= free && of_address <= free / 2)
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;

    const MOST: usize = 96;

    fn at(address: &str) -> Client {
        Client::at(address.parse().unwrap())
    }

    /// So many wait because of `client` beside others, when it wants all.
    fn share(client: Client, others: &[Client]) -> usize {
        let mut waiting = others.to_vec();
        while may_wait(client, waiting.iter().copied(), MOST) {
            waiting.push(client);
        }
        waiting.len() - others.len()
    }

    #[test]
    fn an_address_has_a_third_and_a_network_half() {
        for (network, neighbour, far) in
            [("192.0.2", "192.0.2.200", "192.0.3.1"), ("2001:db8:1", "2001:db8:1:ffff::1", "2001:db8:2::1")]
        {
            let host = |number: usize| match network.contains(':') {
                true => at(&format!("{network}:{number:x}::1")),
                false => at(&format!("{network}.{number}")),
            };
            assert_eq!(share(host(1), &[]), 32, "{network}");
            let network: Vec<Client> = (0..).map(|number| host(number % 250)).take(48).collect();
            assert!((0..48).all(|held| may_wait(network[held], network[..held].iter().copied(), MOST)));
            assert_eq!(share(at(neighbour), &network), 0);
            assert_eq!(share(at(far), &network), 16);
        }
        assert_eq!(share(at("::ffff:192.0.2.1"), &[at("192.0.2.1"); 32]), 0, "the same host");
        assert_eq!(share(at("2001:db8::2"), &[at("2001:db8::1"); 32]), 0, "the same /64");
    }

    /// Networks that want all have unequal shares at first, and equal ones as soon as answers come.
    #[test]
    fn networks_come_to_equal_shares_and_leave_one_free() {
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
        assert!((0..5).all(|network| (15..=17).contains(&held(network))), "{:?}", [0, 1, 2, 3, 4].map(held));
        assert!(share(at("192.0.2.1"), &waiting) >= 5);
    }

    #[test]
    fn a_network_of_which_none_waits_needs_no_more_than_room() {
        let others: Vec<Client> = (0..MOST).map(|number| at(&format!("198.51.{number}.1"))).collect();
        let (all, but_one) = (&others[..], &others[1..]);
        assert!(may_wait(at("192.0.2.1"), but_one.iter().copied(), MOST));
        assert!(!may_wait(at("198.51.1.2"), but_one.iter().copied(), MOST), "one of that network waits");
        assert!(!may_wait(at("192.0.2.1"), all.iter().copied(), MOST));
    }
}
