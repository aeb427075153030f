//! How many questions and askers may wait for one client or network.

use alloc::format;

use super::*;

const SHARED: Limits = Limits { questions: 20, of_clients: 16, askers: 16, cache_bytes: 64 * 1024 };
/// Hosts of one network, and one of another.
const HOST: u32 = 0xc000_0201;
const NEIGHBOUR: u32 = 0xc000_0202;
const OTHER: u32 = 0xc633_6401;
const BUSY: Option<Result<Answer, Unanswered>> = Some(Err(Unanswered::Busy));

/// How many questions `client` may have waiting, each for another name.
fn asks(house: &mut House, client: u32, name: &str) -> usize {
    (0..)
        .take_while(|number| {
            house.ask(client, &format!("{name}{number}.test"), RecordKind::Ipv4).is_none()
        })
        .count()
}

#[test]
fn network_has_a_share_of_the_questions() {
    let mut house = House::with(SHARED, &[FIRST]);
    assert_eq!(asks(&mut house, HOST, "a"), 5);
    assert_eq!(asks(&mut house, NEIGHBOUR, "b"), 3, "with its neighbour it has half");
    assert_eq!(
        house.ask(HOST, "more.test", RecordKind::Ipv4),
        BUSY,
        "that says nothing of the name"
    );
    assert_eq!(asks(&mut house, OTHER, "c"), 2);
    // Questions of this machine itself have places beside those of clients.
    assert_eq!(asks(&mut house, 1, "d"), 10);
    assert_eq!(house.ask(OTHER, "e.test", RecordKind::Ipv4), BUSY);
    // An answered question frees its place.
    house.asked.clear();
    house.resolver.set_servers([], house.now);
    house.work();
    assert_eq!(house.told().len(), 20);
    house.resolver.set_servers([FIRST.ip()], house.now);
    assert_eq!(asks(&mut house, HOST, "f"), 5);
}

#[test]
fn network_has_a_share_of_the_askers_of_one_answer() {
    let mut house = House::with(SHARED, &[FIRST]);
    let waits = |house: &mut House, client: u32| {
        (0..).take_while(|_| house.ask(client, "slow.test", RecordKind::Text).is_none()).count()
    };
    assert_eq!((waits(&mut house, HOST), waits(&mut house, NEIGHBOUR)), (5, 3));
    assert_eq!((waits(&mut house, OTHER), waits(&mut house, 1)), (2, 6));
    assert_eq!(
        house.ask(HOST, "other.test", RecordKind::Text),
        None,
        "of another question it has as many"
    );
}
