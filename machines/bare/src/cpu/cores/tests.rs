//! No wish to be woken is lost, whichever core is faster.

use super::*;
use core::cell::Cell;
use std::sync::atomic::AtomicU64;

thread_local! {
    /// Which core the thread is.
    pub(crate) static THIS: Cell<usize> = const { Cell::new(0) };
}

#[test]
fn a_core_that_was_woken_before_it_sleeps_does_not_sleep() {
    let sleep = Sleep::new();
    assert!(!sleep.wake(), "one that is awake needs no interrupt");
    assert!(!sleep.begin());
    sleep.end();
    assert!(sleep.begin(), "a wish is good for one sleep");
}

#[test]
fn a_sleep_is_ended_by_one_interrupt_however_many_want_it() {
    let sleep = Sleep::new();
    assert!(sleep.begin());
    assert!(sleep.wake());
    assert!(!sleep.wake());
    sleep.end();
    assert!(!sleep.wake());
}

/// One thread sleeps until its interrupt, the other posts and wakes; each post must be met by an interrupt, or by a look before the sleep.
#[test]
fn nothing_that_was_posted_is_slept_through() {
    const POSTS: u64 = 20_000;
    let (sleep, interrupts, posted, seen) = (Sleep::new(), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let in_time = || std::time::Instant::now() < deadline;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for post in 1..=POSTS {
                posted.store(post, Relaxed);
                if sleep.wake() {
                    interrupts.fetch_add(1, SeqCst);
                }
                // Now before, now while the other falls asleep.
                while seen.load(Relaxed) + 2 < post && in_time() {
                    std::thread::yield_now();
                }
            }
        });
        let mut interrupts_seen = 0;
        while seen.load(Relaxed) < POSTS {
            if sleep.begin() {
                while interrupts.load(SeqCst) == interrupts_seen {
                    assert!(in_time(), "slept through what was posted after {}", seen.load(Relaxed));
                    std::thread::yield_now();
                }
                interrupts_seen = interrupts.load(SeqCst);
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
