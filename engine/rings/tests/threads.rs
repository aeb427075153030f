//! The promises of a ring, tested with threads of the host.
#![cfg(not(loom))]

use std::sync::Arc;
use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;
use rings::ring;

#[test]
fn a_full_ring_returns_the_message() {
    let (mut sender, mut receiver) = ring(2);
    assert_eq!((sender.send(1), sender.send(2), sender.send(3)), (Ok(()), Ok(()), Err(3)));
    assert!(!sender.has_room());
    assert_eq!(receiver.receive(), Some(1));
    assert!(sender.has_room());
    assert_eq!(sender.send(3), Ok(()));
    assert_eq!(
        (receiver.receive(), receiver.receive(), receiver.receive()),
        (Some(2), Some(3), None)
    );
    assert!(receiver.is_empty());
}

#[test]
fn messages_left_in_a_ring_are_dropped_with_it() {
    let witness = Arc::new(());
    let (mut sender, mut receiver) = ring(8);
    (0..6).for_each(|_| sender.send(Arc::clone(&witness)).unwrap());
    drop(receiver.receive());
    drop((sender, receiver));
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn messages_cross_between_threads_in_order() {
    let (mut sender, mut receiver) = ring(64);
    let sending = thread::spawn(move || {
        for number in 0..1_000_000u64 {
            let mut message = [number; 8];
            while let Err(refused) = sender.send(message) {
                message = refused;
                thread::yield_now();
            }
        }
    });
    let mut next = 0;
    while next < 1_000_000 {
        match receiver.receive() {
            Some(message) => {
                assert_eq!(message, [next; 8]);
                next += 1;
            }
            None => thread::yield_now(),
        }
    }
    sending.join().unwrap();
}

proptest! {
    #[test]
    fn a_ring_is_a_bounded_queue(steps in vec(any::<bool>(), 0..400), exponent in 0u32..5) {
        let capacity = 1 << exponent;
        let (mut sender, mut receiver) = ring(capacity);
        let mut model = std::collections::VecDeque::new();
        for (number, sends) in steps.into_iter().enumerate() {
            if sends {
                let expected = if model.len() < capacity { model.push_back(number); Ok(()) } else { Err(number) };
                prop_assert_eq!(sender.send(number), expected);
            } else {
                prop_assert_eq!(receiver.receive(), model.pop_front());
            }
        }
    }
}
