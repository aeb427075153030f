//! No wake-up is lost, whichever core is faster.
#![cfg(not(loom))]

use rings::Sleep;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

#[test]
fn a_core_woken_before_its_sleep_does_not_sleep() {
    let sleep = Sleep::new();
    assert!(!sleep.wake(), "a core that is awake need not be woken");
    assert!(!sleep.begin());
    sleep.end();
    assert!(sleep.begin(), "a wake-up counts for one sleep");
}

#[test]
fn only_one_waker_ends_a_sleep() {
    let sleep = Sleep::new();
    assert!(sleep.begin());
    assert!(sleep.wake());
    assert!(!sleep.wake());
    sleep.end();
    assert!(!sleep.wake());
}

/// A bounded wait: it checks often without a pause at first, and then at intervals.
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

/// One thread sleeps until its sleep is ended. The other thread posts and wakes it. Each post must
/// end a sleep, or be seen before the next sleep.
#[test]
fn no_post_is_missed_by_a_sleeping_core() {
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
                // The next post comes sometimes before the other thread sleeps, and sometimes while
                // it falls asleep.
                let mut patience = Patience::FULL;
                while seen.load(Relaxed) + 2 < post {
                    patience.wait("a post");
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
            // Stays awake longer at times, so that posts arrive before the next sleep begins.
            if posted.load(Relaxed) % 16 == 0 {
                std::thread::yield_now();
            }
        }
    });
}
