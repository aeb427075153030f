//! No wish to be woken is lost, whichever core is faster.
#![cfg(not(loom))]

use rings::Sleep;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

#[test]
fn a_core_that_was_woken_before_it_sleeps_does_not_sleep() {
    let sleep = Sleep::new();
    assert!(!sleep.wake(), "the sleep of one that is awake need not be ended");
    assert!(!sleep.begin());
    sleep.end();
    assert!(sleep.begin(), "a wish is good for one sleep");
}

#[test]
fn a_sleep_is_ended_once_however_many_want_it() {
    let sleep = Sleep::new();
    assert!(sleep.begin());
    assert!(sleep.wake());
    assert!(!sleep.wake());
    sleep.end();
    assert!(!sleep.wake());
}

/// A wait that ends: many looks one after the other, then some at intervals.
struct Patience(u32);

impl Patience {
    const FULL: Patience = Patience(30_000);

    fn wait(&mut self, why: &str) {
        assert!(self.0 > 0, "slept through: {why}");
        self.0 -= 1;
        if self.0 > 20_000 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(core::time::Duration::from_millis(1));
        }
    }
}

/// One thread sleeps until its sleep is ended, the other posts and wakes; each post must be met by such an end, or by a look before the
/// sleep.
#[test]
fn nothing_that_was_posted_is_slept_through() {
    const POSTS: u64 = 20_000;
    let (sleep, ends, posted, seen) =
        (Sleep::new(), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for post in 1..=POSTS {
                posted.store(post, Relaxed);
                if sleep.wake() {
                    ends.fetch_add(1, SeqCst);
                }
                // Now before, now while the other falls asleep.
                let mut patience = Patience::FULL;
                while seen.load(Relaxed) + 2 < post {
                    patience.wait("what was posted");
                }
            }
        });
        let mut ends_seen = 0;
        while seen.load(Relaxed) < POSTS {
            if sleep.begin() {
                let mut patience = Patience::FULL;
                while ends.load(SeqCst) == ends_seen {
                    patience.wait("the last post");
                }
                ends_seen = ends.load(SeqCst);
            }
            sleep.end();
            seen.store(posted.load(Relaxed), Relaxed);
            // Long awake at times, so that there are posts before the next sleep begins.
            if posted.load(Relaxed) % 16 == 0 {
                std::thread::yield_now();
            }
        }
    });
}
