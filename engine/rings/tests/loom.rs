//! Two cores at one ring, in every order of steps that the memory model allows. Runs only with
//! `--cfg loom`.
#![cfg(loom)]

use loom::thread;
use rings::ring;

/// Sends `count` messages through a ring with `capacity` slots, with a thread at each end.
fn passes(capacity: usize, count: usize) {
    loom::model(move || {
        let (mut sender, mut receiver) = ring::<Box<usize>>(capacity);
        let sending = thread::spawn(move || {
            for number in 0..count {
                let mut message = Box::new(number);
                while let Err(refused) = sender.send(message) {
                    message = refused;
                    thread::yield_now();
                }
            }
        });
        for number in 0..count {
            let message = loop {
                match receiver.receive() {
                    Some(message) => break message,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(*message, number);
        }
        assert!(receiver.receive().is_none());
        sending.join().unwrap();
    });
}

#[test]
fn messages_cross_a_ring_in_order_under_loom() {
    passes(2, 3);
}

#[test]
fn a_slot_is_reused_only_when_it_is_free_under_loom() {
    passes(1, 3);
}

#[test]
fn unreceived_messages_are_dropped_once_under_loom() {
    loom::model(|| {
        let (mut sender, mut receiver) = ring::<loom::sync::Arc<()>>(2);
        let witness = loom::sync::Arc::new(());
        let sent = [witness.clone(), witness.clone()];
        let sending =
            thread::spawn(move || sent.into_iter().for_each(|message| drop(sender.send(message))));
        drop(receiver.receive());
        drop(receiver);
        sending.join().unwrap();
        assert_eq!(loom::sync::Arc::strong_count(&witness), 1);
    });
}
