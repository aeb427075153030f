//! The grants of the budget to its holders, and its sums.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail")]

extern crate std;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::vec::Vec;

use super::{Charge, MemoryBudget, Overdrawn};

const POOL: usize = 1 << 20;
const LEAST: u32 = 1000;

fn budget() -> MemoryBudget {
    MemoryBudget::new(POOL, *b"a key of 16 byte")
}

fn v4(network: u16, host: u8) -> IpAddr {
    let [high, low] = network.to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(203, high, low, host))
}

fn v6(site: u16, subnet: u16, host: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, site, subnet, 0, 0, 0, host))
}

/// Lets a holder at each address borrow as much as it can in small steps, one holder after the
/// other. Returns the number of bytes borrowed, and the holders.
fn take_all(
    budget: &mut MemoryBudget,
    addresses: impl Iterator<Item = IpAddr>,
) -> (usize, Vec<(IpAddr, Charge)>) {
    let mut holders = Vec::new();
    for address in addresses {
        let mut charge = Charge::new(0);
        let mut wanted = 512;
        while budget.charge(&mut charge, address, wanted).is_ok() {
            wanted += 512;
        }
        holders.push((address, charge));
    }
    (holders.iter().map(|(_, charge)| charge.bytes()).sum(), holders)
}

#[test]
fn a_least_share_is_never_refused() {
    let mut budget = budget();
    take_all(&mut budget, (0..2000).map(|network| v4(network, 1)));
    let mut charge = Charge::new(LEAST);
    assert_eq!(budget.charge(&mut charge, v4(1, 1), LEAST as usize), Ok(()));
    assert_eq!(budget.charge(&mut charge, v4(1, 1), LEAST as usize + 4096), Err(Overdrawn));
    assert_eq!(charge.bytes(), LEAST as usize);
}

#[test]
fn one_address_leaves_two_thirds_of_the_pool() {
    let mut budget = budget();
    let (taken, _) = take_all(&mut budget, core::iter::repeat_n(v4(1, 1), 50));
    assert!(taken > POOL / 3 - 1024 && taken <= POOL / 3, "{taken}");
}

#[test]
fn one_network_leaves_half_of_the_pool() {
    for addresses in [
        (0..=255).map(|host| v4(1, host)).collect::<Vec<_>>(),
        (0..256).map(|net| v6(1, net, 1)).collect(),
    ] {
        let mut budget = budget();
        let (taken, _) = take_all(&mut budget, addresses.into_iter());
        assert!(taken > POOL / 2 - 2048 && taken <= POOL / 2, "{taken}");
    }
}

#[test]
fn an_ipv6_subnet_counts_as_one_address() {
    let mut budget = budget();
    let (taken, _) = take_all(&mut budget, (0..1000).map(|host| v6(1, 7, host)));
    assert!(taken <= POOL / 3, "{taken}");
    let (mapped, _) = take_all(
        &mut budget,
        [IpAddr::V6(Ipv4Addr::new(203, 0, 1, 1).to_ipv6_mapped())].into_iter(),
    );
    let (again, _) = take_all(&mut budget, [v4(1, 1)].into_iter());
    assert!(mapped > 0 && again == 0, "an address mapped into IPv6 is the same address");
}

#[test]
fn a_newcomer_finds_room_however_many_networks_take_all() {
    for networks in [1, 5, 50, 200] {
        let mut budget = budget();
        let mut all = Vec::new();
        // The networks take all that they get, again and again. Some holders are ended whenever the
        // pool is short.
        for round in 0..20 {
            let (_, mut holders) =
                take_all(&mut budget, (0..networks).map(|network| v4(network, round)));
            all.append(&mut holders);
            while budget.is_short()
                && let Some(place) =
                    all.iter().position(|(address, charge)| budget.is_above_share(charge, *address))
            {
                let (address, mut charge) = all.swap_remove(place);
                budget.release(&mut charge, address);
            }
        }
        let mut newcomer = Charge::new(0);
        let wanted = POOL / (4 * (usize::from(networks) + 1));
        assert_eq!(
            budget.charge(&mut newcomer, v4(9999, 1), wanted),
            Ok(()),
            "a newcomer beside {networks} networks"
        );
        assert!(!budget.is_above_share(&newcomer, v4(9999, 1)));
    }
}

#[test]
fn a_refused_charge_changes_nothing() {
    let mut budget = budget();
    let mut charge = Charge::new(LEAST);
    budget.charge(&mut charge, v4(1, 1), 5000).unwrap();
    let before = (budget.held(), budget.free(), charge.bytes());
    for wanted in [POOL, 2 * POOL, usize::MAX] {
        assert!(!budget.would_grant(&charge, v4(1, 1), wanted));
        assert_eq!(budget.charge(&mut charge, v4(1, 1), wanted), Err(Overdrawn));
        assert_eq!((budget.held(), budget.free(), charge.bytes()), before);
    }
    budget.release(&mut charge, v4(1, 1));
    assert_eq!((budget.held(), budget.free()), (0, POOL));
}

#[test]
fn a_short_pool_is_reported() {
    let mut budget = budget();
    assert!(!budget.is_short());
    let (_, holders) = take_all(&mut budget, (0..100).map(|network| v4(network, 1)));
    assert!(budget.is_short());
    for (address, mut charge) in holders {
        budget.release(&mut charge, address);
    }
    assert!(!budget.is_short() && budget.held() == 0);
}

/// Of 500 networks with one address each, about one in twenty shares its counters in both rows. The
/// test allows one in ten.
#[test]
fn few_networks_share_their_counters_with_others() {
    let mut budget = budget();
    for network in 0..500 {
        let mut charge = Charge::new(0);
        budget.charge(&mut charge, v4(network, 1), 256).unwrap();
    }
    let holding = |network| budget.holding(budget.places(v4(network, 1))[1]);
    let wrong = (0..500).filter(|network| holding(*network) != 256).count();
    assert!(wrong < 50, "{wrong} of 500 networks");
}

/// Random holders grow, shrink and leave, and a model counts the bytes that they hold.
#[test]
fn sums_are_right_whatever_holders_do() {
    let mut state = 7_u64;
    let mut roll = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut budget = budget();
    let mut holders: Vec<(IpAddr, Charge)> = Vec::new();
    for _ in 0..20_000 {
        match roll(4) {
            0 => holders.push((v4(roll(5) as u16, roll(3) as u8), Charge::new(LEAST))),
            1 if !holders.is_empty() => {
                let (address, mut charge) =
                    holders.swap_remove(roll(holders.len() as u64) as usize);
                budget.release(&mut charge, address);
            }
            _ if !holders.is_empty() => {
                let place = roll(holders.len() as u64) as usize;
                let (address, charge) = &mut holders[place];
                let (before, wanted) = (charge.bytes(), roll(40_000) as usize);
                let would = budget.would_grant(charge, *address, wanted);
                let is_granted = budget.charge(charge, *address, wanted).is_ok();
                assert_eq!(would, is_granted);
                assert!(
                    is_granted || wanted > before.max(LEAST as usize),
                    "only growth is refused"
                );
                assert_eq!(charge.bytes(), if is_granted { wanted } else { before });
            }
            _ => {}
        }
        let mut networks: HashMap<[u8; 3], usize> = HashMap::new();
        for (address, charge) in &holders {
            let IpAddr::V4(address) = address else { continue };
            let [_, high, low, _] = address.octets();
            *networks.entry([0, high, low]).or_default() += charge.lent();
        }
        assert_eq!(budget.held(), holders.iter().map(|(_, charge)| charge.bytes()).sum::<usize>());
        assert_eq!(budget.free(), POOL - networks.values().sum::<usize>());
        for ([_, high, low], held) in networks {
            let [_, of_network] = budget.places(IpAddr::V4(Ipv4Addr::new(203, high, low, 0)));
            assert!(budget.holding(of_network) >= held, "no network holds more than is counted");
        }
    }
}
