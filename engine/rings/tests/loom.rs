//! Two cores at one ring, in every order of steps that the memory model allows. Runs with `--cfg loom` only.
#![cfg(loom)]

use loom::thread;
use rings::ring;

/// Sends `count` messages through a ring of `capacity` places, with a thread at each end.
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
fn messages_cross_a_ring_whole_and_in_order_in_every_order_of_steps() {
    passes(2, 3);
}

#[test]
fn a_place_is_used_again_only_when_its_message_is_out_in_every_order_of_steps() {
    passes(1, 3);
}

#[test]
fn what_nobody_received_is_dropped_once_whichever_end_goes_last() {
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
