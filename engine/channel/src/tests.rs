//! Links of two cores, without a machine.

use super::*;

const OTHER: CoreId = CoreId(1);

/// The links of two cores. `places`: the size of each ring.
fn pair(places: usize) -> (CoreLinks<u32>, CoreLinks<u32>) {
    let (first, mut others) = links(2, || places);
    (first, others.pop().expect("there are two cores"))
}

fn post(links: &mut CoreLinks<u32>) {
    links.post(|_, _| None, |_| {});
}

fn received(links: &mut CoreLinks<u32>) -> Vec<u32> {
    core::iter::from_fn(|| links.receive(0)).collect()
}

#[test]
fn urgent_messages_overtake_and_each_class_keeps_its_order() {
    let (mut one, mut other) = pair(16);
    for (class, message) in
        [(Class::Hearsay, 30), (Class::Bulk, 20), (Class::Answer, 10), (Class::Control, 0)]
    {
        one.tell(OTHER, class, message);
        one.tell(OTHER, class, message + 1);
    }
    post(&mut one);
    assert_eq!(received(&mut other), [0, 1, 10, 11, 20, 21, 30, 31]);
}

#[test]
fn pulled_messages_follow_queued_ones_of_their_class() {
    let (mut one, mut other) = pair(16);
    one.tell(OTHER, Class::Bulk, 3);
    one.tell(OTHER, Class::Control, 1);
    let mut pulled = [(Class::Control, 2), (Class::Bulk, 4)].into_iter().peekable();
    one.post(
        |_, class| pulled.next_if(|(own, _)| *own == class).map(|(_, message)| message),
        |_| {},
    );
    assert_eq!(received(&mut other), [1, 2, 3, 4]);
}

#[test]
fn bulk_leaves_places_in_the_ring_for_the_next_turn() {
    let (mut one, mut other) = pair(256);
    (0..200).for_each(|message| one.tell(OTHER, Class::Bulk, message));
    post(&mut one);
    assert!(one.has_waiting());
    one.tell(OTHER, Class::Answer, 1000);
    post(&mut one);
    let all = received(&mut other);
    assert_eq!(all.iter().position(|message| *message == 1000), Some(BULK_PER_TURN));
}

#[test]
fn a_full_ring_keeps_messages_waiting_and_loses_none() {
    let (mut one, mut other) = pair(2);
    (0..5).for_each(|message| one.tell(OTHER, Class::Answer, message));
    let mut all = Vec::new();
    while one.has_waiting() {
        post(&mut one);
        all.extend(received(&mut other));
    }
    assert_eq!(all, [0, 1, 2, 3, 4]);
}

#[test]
fn requests_without_a_reply_are_bounded_on_each_link() {
    let (mut one, _other) = pair(2);
    (0..CREDITS)
        .for_each(|number| assert_eq!(one.ask(OTHER, Class::Answer, number as u32), Ok(())));
    assert_eq!(one.ask(OTHER, Class::Answer, 7), Err(7));
    one.answered(OTHER);
    assert_eq!(one.ask(OTHER, Class::Answer, 8), Ok(()));
    assert_eq!(one.unanswered(), CREDITS);
}

#[test]
fn waiting_hearsay_messages_are_bounded() {
    let (mut one, _other) = pair(2);
    while one.takes_hearsay() {
        one.tell_others(Class::Hearsay, || 1);
    }
    post(&mut one);
    assert!(one.takes_hearsay(), "sending has freed two places");
}

#[test]
fn closed_link_drops_everything_and_keeps_no_core_awake() {
    let (mut one, other) = pair(2);
    (0..9).for_each(|message| one.tell(OTHER, Class::Bulk, message));
    assert_eq!(one.ask(OTHER, Class::Answer, 1), Ok(()));
    post(&mut one);
    assert!(one.has_waiting());
    one.end(OTHER);
    drop(other);
    one.tell(OTHER, Class::Control, 1);
    assert!(!one.has_waiting() && one.unanswered() == 0);
    let mut frames = 0..100;
    one.post(|_, class| frames.next().filter(|_| class == Class::Bulk), |_| {});
    assert_eq!(frames.next(), None, "pulled messages are dropped, too");
}

#[test]
fn messages_of_a_core_to_itself_keep_their_order() {
    let (mut one, _other) = pair(2);
    one.tell(CoreId::FIRST, Class::Bulk, 1);
    one.tell(CoreId::FIRST, Class::Control, 2);
    assert!(one.has_own() && !one.has_waiting());
    assert_eq!([one.next_own(), one.next_own(), one.next_own()], [Some(1), Some(2), None]);
}
