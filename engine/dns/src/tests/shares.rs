//! Tests of shares: how many questions and askers may wait for one client or network.

use alloc::format;

use super::*;

const SHARED: Limits = Limits { questions: 20, of_clients: 16, askers: 16, cache_bytes: 64 * 1024 };
/// A host. `NEIGHBOUR` is in the same network, and `OTHER` in another.
const HOST: u32 = 0xc000_0201;
const NEIGHBOUR: u32 = 0xc000_0202;
const OTHER: u32 = 0xc633_6401;
const BUSY: Option<Result<Answer, Unanswered>> = Some(Err(Unanswered::Busy));

/// Asks for different names as `client` until no more may wait. Returns the number of waiting
/// questions.
fn asks(harness: &mut ResolverHarness, client: u32, name: &str) -> usize {
    (0..)
        .take_while(|number| {
            harness.ask(client, &format!("{name}{number}.test"), RecordKind::Ipv4).is_none()
        })
        .count()
}

#[test]
fn network_has_a_share_of_the_questions() {
    let mut harness = ResolverHarness::with(SHARED, &[FIRST]);
    assert_eq!(asks(&mut harness, HOST, "a"), 5);
    assert_eq!(asks(&mut harness, NEIGHBOUR, "b"), 3, "both hosts of the network have half");
    assert_eq!(
        harness.ask(HOST, "more.test", RecordKind::Ipv4),
        BUSY,
        "the share of the network is used up"
    );
    assert_eq!(asks(&mut harness, OTHER, "c"), 2);
    // Questions of this machine itself have places beside those of clients.
    assert_eq!(asks(&mut harness, 1, "d"), 10);
    assert_eq!(harness.ask(OTHER, "e.test", RecordKind::Ipv4), BUSY);
    // An answered question frees its place.
    harness.asked.clear();
    harness.resolver.set_servers([], harness.now);
    harness.work();
    assert_eq!(harness.results().len(), 20);
    harness.resolver.set_servers([FIRST.ip()], harness.now);
    assert_eq!(asks(&mut harness, HOST, "f"), 5);
}

#[test]
fn network_has_a_share_of_the_askers_of_one_answer() {
    let mut harness = ResolverHarness::with(SHARED, &[FIRST]);
    let waits = |harness: &mut ResolverHarness, client: u32| {
        (0..).take_while(|_| harness.ask(client, "slow.test", RecordKind::Text).is_none()).count()
    };
    assert_eq!((waits(&mut harness, HOST), waits(&mut harness, NEIGHBOUR)), (5, 3));
    assert_eq!((waits(&mut harness, OTHER), waits(&mut harness, 1)), (2, 6));
    assert_eq!(
        harness.ask(HOST, "other.test", RecordKind::Text),
        None,
        "another question has its own places for askers"
    );
}
