//! Tests of logins, rate limits and greylisting.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use machine::{Instant, Micros};

use crate::{
    ClientLimits, ClientRateLimits, ConnectionKind, Greylist, HashError, Hasher, NETWORK_SHARE,
    PENDING_MAX, RateLimitedAction, SenderOrigin, Throttle, VerifiedLogins, check_hash,
};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

fn elsewhere(host: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 1, 0, host))
}

#[test]
fn the_right_password_is_verified_and_a_wrong_one_is_not() {
    let mut hasher = Hasher::new();
    let hash = hasher.hash(b"correct horse", [7; 16]).unwrap();
    assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
    assert_eq!(hasher.verify(b"correct horse", &hash), Ok(true));
    assert_eq!(hasher.verify(b"correct Horse", &hash), Ok(false));
}

/// Hashes from the reference implementation of RFC 9106: argon2-cffi, `hash_secret(b"password",
/// b"somesalt", …)`.
const REFERENCE: [&str; 2] = [
    "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$cpx6VEQbwTVZvcpxNIxOVUWZ5xnAipUmAe1cg2GMG70",
    "$argon2id$v=19$m=256,t=3,p=4$c29tZXNhbHQ$gnktR/nN4iue/y0pIDOKVULnu6asBp/M",
];

#[test]
fn hashes_of_the_reference_implementation_are_verified() {
    let mut hasher = Hasher::new();
    for hash in REFERENCE {
        assert_eq!(hasher.verify(b"password", hash), Ok(true));
        assert_eq!(hasher.verify(b"Password", hash), Ok(false));
    }
}

#[test]
fn a_hash_that_needs_more_memory_is_rejected() {
    let large = REFERENCE[0].replace("m=64", "m=65536");
    assert_eq!(check_hash(&large), Ok(()));
    let mut hasher = Hasher::new();
    assert_eq!(hasher.verify(b"password", &large), Err(HashError::TooCostly));
    hasher.make_room_for([&*large, REFERENCE[0]].into_iter());
    assert_eq!(hasher.verify(b"password", &large), Ok(false));
}

#[test]
fn a_too_costly_or_malformed_hash_is_rejected() {
    for (hash, error) in [
        ("", HashError::Syntax),
        ("$2b$12$abcdefghijklmnopqrstuv", HashError::Syntax),
        (
            "$argon2id$v=19$m=65537,t=1,p=1$c29tZXNhbHQ$Zo3BGdTDYpTIeyD1W1yVG0oUKbTNGQ9QNC8RVBDnUqE",
            HashError::TooCostly,
        ),
        (
            "$argon2id$v=19$m=64,t=9999,p=1$c29tZXNhbHQ$Zo3BGdTDYpTIeyD1W1yVG0oUKbTNGQ9QNC8RVBDnUqE",
            HashError::TooCostly,
        ),
        (
            "$argon2id$v=16$m=64,t=1,p=1$c29tZXNhbHQ$Zo3BGdTDYpTIeyD1W1yVG0oUKbTNGQ9QNC8RVBDnUqE",
            HashError::Algorithm,
        ),
        ("$argon2id$v=19$m=64,t=1,p=1", HashError::Syntax),
    ] {
        assert_eq!(check_hash(hash), Err(error), "{hash}");
    }
}

#[test]
fn login_delay_doubles_with_failures_of_an_address() {
    let mut throttle = Throttle::new([1; 16]);
    let delays = [2, 4, 8, 16, 32, 64, 64].map(Micros::from_secs);
    for (host, delay) in delays.into_iter().enumerate() {
        let name = char::from(b'a' + host as u8).to_string();
        assert_eq!(throttle.login_failed(HERE, &name, Instant(0)), delay);
    }
    assert_eq!(throttle.login_failed(elsewhere(1), "x", Instant(0)), Micros::from_secs(2));
}

#[test]
fn login_delay_grows_with_failures_of_an_account() {
    let mut throttle = Throttle::new([1; 16]);
    let delays: [_; 9] = core::array::from_fn(|host| {
        throttle.login_failed(elsewhere(host as u8), "ada@barepost.test", Instant(0)).as_secs()
    });
    assert_eq!(delays, [2, 2, 2, 2, 4, 4, 4, 4, 8]);
}

#[test]
fn login_delay_grows_with_failures_of_a_network() {
    for (network, other) in [("203.0.113", "203.0.114.1"), ("2001:db8:1", "2001:db8:2:1::1")] {
        let mut throttle = Throttle::new([1; 16]);
        let at = |host: u32| match network.contains(':') {
            true => address(&alloc::format!("{network}:{host:x}::1")),
            false => address(&alloc::format!("{network}.{host}")),
        };
        let delays: alloc::vec::Vec<u64> = (0..100)
            .map(|host| {
                throttle.login_failed(at(host), &host.to_string(), Instant::START).as_secs()
            })
            .collect();
        assert_eq!(delays[..16], [2; 16]);
        assert_eq!((delays[16], delays[32], delays[99]), (4, 8, 64));
        assert_eq!(
            throttle.login_failed(address(other), "x", Instant::START).as_secs(),
            2,
            "another network"
        );
        assert_eq!(throttle.guilt(at(200), "new", Instant::START), 100);
        assert_eq!(throttle.guilt(at(3), "new", Instant::START), 101);
        assert_eq!(throttle.guilt(address("192.0.2.1"), "new", Instant::START), 0);
        let later = Instant::START + Micros::from_secs(301);
        assert_eq!(throttle.guilt(at(200), "new", later), 50, "half of them have decayed");
    }
}

#[test]
fn login_failures_decay_by_halves() {
    let mut throttle = Throttle::new([1; 16]);
    let mut fail = |seconds| {
        throttle.login_failed(HERE, "ada", Instant::START + Micros::from_secs(seconds)).as_secs()
    };
    assert_eq!([fail(0), fail(0), fail(0), fail(0)], [2, 4, 8, 16]);
    assert_eq!(fail(300), 8, "two of four are left");
    assert_eq!(fail(300 + 3600), 2);
}

#[test]
fn an_address_has_few_pending_logins() {
    let mut throttle = Throttle::new([1; 16]);
    for _ in 0..PENDING_MAX {
        assert!(throttle.login_begins(HERE, Instant(0)));
    }
    assert!(!throttle.login_begins(HERE, Instant(0)));
    assert!(throttle.login_begins(elsewhere(1), Instant(0)));
    throttle.login_ended(HERE, Instant(0));
    assert!(throttle.login_begins(HERE, Instant(0)));
}

#[test]
fn pending_logins_are_never_evicted() {
    let mut throttle = Throttle::new([1; 16]);
    for _ in 0..PENDING_MAX {
        assert!(throttle.login_begins(HERE, Instant(0)));
    }
    for host in 0..200_000u32 {
        let _ = throttle.login_failed(
            IpAddr::V4(Ipv4Addr::from(0x0b00_0000 + host)),
            &host.to_string(),
            Instant(0),
        );
    }
    assert!(!throttle.login_begins(HERE, Instant(0)));
}

#[test]
fn a_failed_login_is_pending_until_its_reply_is_due() {
    let mut throttle = Throttle::new([1; 16]);
    for _ in 0..PENDING_MAX {
        assert!(throttle.login_begins(HERE, Instant::START));
    }
    let due = Instant::START + throttle.login_failed(HERE, "ada", Instant::START);
    assert!(!throttle.login_begins(HERE, Instant(due.0 - 1)));
    assert!(throttle.login_begins(HERE, due));
    assert!(!throttle.login_begins(HERE, due));
}

#[test]
fn a_verified_login_is_cached_for_an_hour() {
    let mut verified = VerifiedLogins::new([3; 16]);
    verified.insert("$old", b"secret", Instant(0));
    let at = |seconds| Instant::START + Micros::from_secs(seconds);
    assert!(verified.contains("$old", b"secret", at(3_599)));
    assert!(!verified.contains("$old", b"secret", at(3_600)));
    assert!(!verified.contains("$new", b"secret", at(1)));
    assert!(!verified.contains("$old", b"Secret", at(1)));
}

const FEW: ClientLimits = ClientLimits {
    connections: 3,
    client_connections: 5,
    arrivals: 10,
    messages: 6,
    recipients: 60,
    guesses: 2,
};

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn connections_of_an_address_and_network_are_limited() {
    let mut rate_limits = ClientRateLimits::new(FEW, [7; 16], 1);
    let now = Instant::START;
    let open = |address: &str, rate_limits: &mut ClientRateLimits| {
        (0..20)
            .filter(|_| rate_limits.arrives(ConnectionKind::Mail, address.parse().unwrap(), now))
            .count()
    };
    assert_eq!(open("203.0.113.7", &mut rate_limits), 3);
    assert_eq!(open("203.0.113.8", &mut rate_limits), 3);
    assert_eq!(open("::ffff:203.0.113.8", &mut rate_limits), 0, "that is the same address");
    rate_limits.leaves(ConnectionKind::Mail, address("203.0.113.7"));
    assert_eq!(open("203.0.113.7", &mut rate_limits), 1);
    assert_eq!(open("203.0.113.9", &mut rate_limits) + open("203.0.113.10", &mut rate_limits), 6);
    assert_eq!(
        open("203.0.113.11", &mut rate_limits),
        0,
        "the network has {NETWORK_SHARE} times as many"
    );
    assert_eq!(open("203.0.114.7", &mut rate_limits), 3, "another network");
    assert_eq!(
        open("2001:db8:1:1::1", &mut rate_limits) + open("2001:db8:1:1::2", &mut rate_limits),
        3,
        "one host"
    );
    assert_eq!(open("2001:db8:1:2::1", &mut rate_limits), 3, "another");
    for host in 3..9 {
        open(&alloc::format!("2001:db8:1:{host}::1"), &mut rate_limits);
    }
    assert_eq!(open("2001:db8:1:9::1", &mut rate_limits), 0, "they belong to one site");
    assert_eq!(open("2001:db8:2:1::1", &mut rate_limits), 3, "another site");
}

#[test]
fn other_services_have_their_own_connection_limit() {
    let mut rate_limits = ClientRateLimits::new(FEW, [7; 16], 1);
    let now = Instant::START;
    let open = |kind, text: &str, rate_limits: &mut ClientRateLimits| {
        (0..50).filter(|_| rate_limits.arrives(kind, address(text), now)).count()
    };
    assert_eq!(open(ConnectionKind::Client, "203.0.113.7", &mut rate_limits), 5);
    assert_eq!(
        open(ConnectionKind::Mail, "203.0.113.7", &mut rate_limits),
        3,
        "that is another limit"
    );
    rate_limits.leaves(ConnectionKind::Mail, address("203.0.113.7"));
    assert_eq!(open(ConnectionKind::Client, "203.0.113.7", &mut rate_limits), 0);
    rate_limits.leaves(ConnectionKind::Client, address("203.0.113.7"));
    assert_eq!(open(ConnectionKind::Client, "203.0.113.7", &mut rate_limits), 1);
    let others: usize = (8..50)
        .map(|host| {
            open(ConnectionKind::Client, &alloc::format!("203.0.113.{host}"), &mut rate_limits)
        })
        .sum();
    assert_eq!(others, 15, "the network has {NETWORK_SHARE} times as many");
    assert_eq!(open(ConnectionKind::Client, "203.0.114.7", &mut rate_limits), 5);
}

#[test]
fn connection_share_counts_the_address_and_its_network() {
    let mut rate_limits =
        ClientRateLimits::new(ClientLimits { client_connections: 1_000, ..FEW }, [7; 16], 1);
    let now = Instant::START;
    let open = |text: &str, count, rate_limits: &mut ClientRateLimits| {
        assert!((0..count).all(|_| rate_limits.arrives(
            ConnectionKind::Client,
            address(text),
            now
        )));
    };
    assert_eq!(rate_limits.share_max(), 0);
    assert_eq!(rate_limits.share_of(address("203.0.113.7")), 0, "the address is unknown");
    open("203.0.113.7", 100, &mut rate_limits);
    open("203.0.113.8", 1, &mut rate_limits);
    open("192.0.2.1", 2, &mut rate_limits);
    assert_eq!(rate_limits.share_max(), 100);
    assert_eq!(rate_limits.share_of(address("203.0.113.7")), 100);
    assert_eq!(
        rate_limits.share_of(address("203.0.113.8")),
        101 / NETWORK_SHARE as u32,
        "its neighbour has many connections"
    );
    assert_eq!(rate_limits.share_of(address("192.0.2.1")), 2);
    (0..100).for_each(|host| open(&alloc::format!("198.51.100.{host}"), 8, &mut rate_limits));
    assert_eq!(
        rate_limits.share_max(),
        800 / NETWORK_SHARE as u32,
        "a network of many hosts with few each"
    );
    assert_eq!(rate_limits.share_of(address("198.51.100.3")), rate_limits.share_max());
}

#[test]
fn rate_limits_allow_a_burst_and_an_even_rate() {
    let mut rate_limits = ClientRateLimits::new(FEW, [7; 16], 1);
    let here = address("203.0.113.7");
    let mut now = Instant::START;
    let done = |rate_limits: &mut ClientRateLimits, now| {
        (0..20).filter(|_| rate_limits.may(RateLimitedAction::Message, here, now)).count()
    };
    assert_eq!(done(&mut rate_limits, now), 6, "at once");
    now = now + Micros::from_secs(9);
    assert_eq!(done(&mut rate_limits, now), 0);
    let later: usize = (0..60_000)
        .map(|_| {
            now = now + Micros::from_millis(1);
            usize::from(rate_limits.may(RateLimitedAction::Message, here, now))
        })
        .sum();
    assert_eq!(later, 6, "constant attempts get the same rate");
    assert!(
        rate_limits.may(RateLimitedAction::Recipient, here, now)
            && rate_limits.may(RateLimitedAction::Arrival, here, now),
        "other actions are still allowed"
    );
    now = now + Micros::from_secs(3_600);
    assert_eq!(done(&mut rate_limits, now), 6, "and never more at once");
}

/// An address does `action` on the cores in turn, all at the same time. Returns how often the
/// action is allowed, and the number of reports between cores.
fn done_on(cores: u8, limits: ClientLimits, action: RateLimitedAction) -> (usize, usize) {
    let mut all: Vec<ClientRateLimits> =
        (0..cores).map(|_| ClientRateLimits::new(limits, [7; 16], cores)).collect();
    let (mut done, mut reports) = (0, 0);
    for number in 0..20_000 {
        let own = number % usize::from(cores);
        done += usize::from(all[own].may(action, address("203.0.113.7"), Instant::START));
        while let Some(actions) = all[own].next_report() {
            reports += 1;
            let others = all.iter_mut().enumerate().filter(|(core, _)| *core != own);
            others.for_each(|(_, rate_limits)| {
                rate_limits.has_done_elsewhere(actions, Instant::START)
            });
        }
    }
    (done, reports)
}

#[test]
fn rate_limits_count_actions_of_all_cores() {
    let limits = ClientLimits::default();
    for (action, most) in [
        (RateLimitedAction::Arrival, limits.arrivals),
        (RateLimitedAction::Message, limits.messages),
        (RateLimitedAction::Recipient, limits.recipients),
        (RateLimitedAction::Guess, limits.guesses),
    ] {
        let most = usize::from(most);
        assert_eq!(done_on(1, limits, action), (most, 0), "{action:?}: one core sends no reports");
        for cores in [2, 4, 16] {
            let (done, reports) = done_on(cores, limits, action);
            assert!((most..=most + most / 4).contains(&done), "{cores}, {action:?}: {done}");
            let few = 4 * usize::from(cores).min(done) + done / 4;
            assert!(reports <= 2 * few, "{cores}, {action:?}: {reports} times for {done}");
        }
    }
    assert_eq!(
        done_on(4, FEW, RateLimitedAction::Message).0,
        6,
        "each action is reported if few are allowed"
    );
}

#[test]
fn unsent_action_counts_are_bounded_and_sent_later() {
    let mut rate_limits = ClientRateLimits::new(FEW, [7; 16], 16);
    let hosts = |host: u8| IpAddr::from([203, host, 113, 7]);
    (0..100).for_each(|host| {
        rate_limits.has_done(RateLimitedAction::Message, hosts(host), Instant::START)
    });
    assert_eq!(core::iter::from_fn(|| rate_limits.next_report()).count(), 64);
    rate_limits.has_done(RateLimitedAction::Message, hosts(99), Instant::START);
    let (mut other, now) = (ClientRateLimits::new(FEW, [7; 16], 16), Instant::START);
    while let Some(actions) = rate_limits.next_report() {
        other.has_done_elsewhere(actions, now);
    }
    assert_eq!(
        (0..9).filter(|_| other.may(RateLimitedAction::Message, hosts(99), now)).count(),
        4,
        "two were reported at once"
    );
}

#[test]
fn too_many_unknown_recipients_block_an_address() {
    let mut rate_limits = ClientRateLimits::new(FEW, [7; 16], 1);
    let here = address("203.0.113.7");
    let mut now = Instant::START;
    for _ in 0..9 {
        rate_limits.has_done(RateLimitedAction::Guess, here, now);
    }
    assert!(!rate_limits.could(RateLimitedAction::Guess, here, now));
    now = now + Micros::from_secs(1_799);
    assert!(!rate_limits.could(RateLimitedAction::Guess, here, now));
    now = now + Micros::from_secs(1);
    assert!(
        rate_limits.could(RateLimitedAction::Guess, here, now),
        "actions above the limit do not extend the wait"
    );
    assert!(
        rate_limits.could(RateLimitedAction::Guess, address("203.0.113.9"), now),
        "the network still has actions left"
    );
}

#[test]
fn addresses_with_connections_are_evicted_last() {
    let mut rate_limits =
        ClientRateLimits::new(ClientLimits { arrivals: 1_000, ..FEW }, [7; 16], 1);
    let (here, now) = (address("203.0.113.7"), Instant::START);
    assert!((0..3).all(|_| rate_limits.arrives(ConnectionKind::Mail, here, now)));
    for number in 0..100_000_u32 {
        let [_, a, b, c] = number.to_be_bytes();
        assert!(rate_limits.may(RateLimitedAction::Message, IpAddr::from([100 + a, b, c, 1]), now));
    }
    assert!(!rate_limits.arrives(ConnectionKind::Mail, here, now));
    for _ in 0..9 {
        rate_limits.leaves(ConnectionKind::Mail, here);
    }
    assert!(
        (0..3).all(|_| rate_limits.arrives(ConnectionKind::Mail, here, now))
            && !rate_limits.arrives(ConnectionKind::Mail, here, now)
    );
}

const MINUTE: Micros = Micros::from_secs(60);
const DAY: Micros = Micros::from_secs(24 * 3_600);

fn passes(
    list: &mut Greylist,
    origin: SenderOrigin<'_>,
    sender: &str,
    recipient: &str,
    now: Instant,
) -> bool {
    list.passes(list.triplet(origin, sender, recipient), now)
}

fn days(count: u64) -> Micros {
    Micros(DAY.0 * count)
}

#[test]
fn greylisting_knows_an_origin_for_35_days() {
    let mut list = Greylist::new(MINUTE, [7; 16]);
    let here = SenderOrigin::Host(address("203.0.113.7"));
    let mut now = Instant::START;
    let may = |list: &mut Greylist, now| passes(list, here, "Me@far.test", "ada@here.test", now);
    assert!(!may(&mut list, now));
    now = now + Micros(MINUTE.0 - 1);
    assert!(!may(&mut list, now), "too soon");
    now = now + Micros(1);
    let others = [("me@far.test", "bob@here.test"), ("you@far.test", "ada@here.test")];
    assert!(
        others.iter().all(|(sender, recipient)| !passes(&mut list, here, sender, recipient, now)),
        "other messages"
    );
    let neighbour = SenderOrigin::Host(address("203.0.113.9"));
    assert!(
        passes(&mut list, neighbour, "me@FAR.test", "Ada@here.test", now),
        "one network, one message"
    );
    assert!(
        others.iter().all(|(sender, recipient)| passes(&mut list, here, sender, recipient, now)),
        "the network is known"
    );
    assert!(!passes(
        &mut list,
        SenderOrigin::Host(address("203.0.114.7")),
        "me@far.test",
        "ada@here.test",
        now
    ));
    for _ in 0..3 {
        now = now + days(35);
        assert!(may(&mut list, now), "each message renews the origin");
    }
    now = now + days(35) + Micros(1);
    assert!(!may(&mut list, now), "then the origin is forgotten");
}

#[test]
fn a_retry_after_a_day_is_deferred_again() {
    let mut list = Greylist::new(MINUTE, [7; 16]);
    let mut now = Instant::START;
    let may = |list: &mut Greylist, now| {
        passes(list, SenderOrigin::Host(address("2001:db8::1")), "", "ada@here.test", now)
    };
    assert!(!may(&mut list, now));
    now = now + DAY + Micros(1);
    assert!(!may(&mut list, now));
    now = now + DAY;
    assert!(may(&mut list, now));
    assert!(
        passes(&mut list, SenderOrigin::Host(address("2001:db8::2")), "a", "b", now),
        "one /64"
    );
    assert!(
        !passes(&mut list, SenderOrigin::Host(address("2001:db8:0:1::2")), "a", "b", now),
        "another"
    );
}

#[test]
fn greylisting_knows_a_domain_across_networks() {
    let mut list = Greylist::new(MINUTE, [7; 16]);
    let later = Instant::START + MINUTE;
    assert!(!passes(
        &mut list,
        SenderOrigin::Domain("Far.test"),
        "me@far.test",
        "ada@here.test",
        Instant::START
    ));
    assert!(passes(
        &mut list,
        SenderOrigin::Domain("far.test"),
        "me@far.test",
        "ada@here.test",
        later
    ));
    assert!(passes(
        &mut list,
        SenderOrigin::Domain("far.test"),
        "you@far.test",
        "bob@here.test",
        later
    ));
    assert!(!passes(&mut list, SenderOrigin::Domain("far.tes"), "t", "bob@here.test", later));
}

#[test]
fn many_deferred_messages_do_not_evict_known_origins() {
    let mut list = Greylist::new(MINUTE, [7; 16]);
    let (here, now) = (SenderOrigin::Domain("far.test"), Instant::START + MINUTE);
    assert!(
        !passes(&mut list, here, "a", "b", Instant::START)
            && passes(&mut list, here, "a", "b", now)
    );
    for number in 0..50_000_u32 {
        assert!(!passes(
            &mut list,
            SenderOrigin::Host(address("203.0.113.7")),
            &number.to_string(),
            "ada@here.test",
            now
        ));
    }
    assert!(passes(&mut list, here, "c", "d", now));
}

#[test]
fn a_message_that_is_deferred_again_keeps_its_time() {
    let (mut list, mut now) = (Greylist::new(MINUTE, [7; 16]), Instant::START);
    for _ in 0..3 {
        assert!(!passes(&mut list, SenderOrigin::Domain("far.test"), "a", "b", now));
        now = now + Micros(MINUTE.0 / 3);
    }
    assert!(
        passes(&mut list, SenderOrigin::Domain("far.test"), "a", "b", now),
        "a minute after the first time"
    );
}
