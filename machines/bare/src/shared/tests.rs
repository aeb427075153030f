//! Tests of shared values: only one core at a time uses a locked value, and no core reads a
//! half-written value.

use super::*;

#[test]
fn locked_value_is_used_by_one_core_at_a_time() {
    const EACH: u64 = 5_000;
    let lock = Lock::new((0_u64, 0_u64));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    lock.with(|(one, other)| {
                        let next = *one + 1;
                        if next % 64 == 0 {
                            std::thread::yield_now();
                        }
                        *one = next;
                        *other += 1;
                    });
                }
            });
        }
    });
    assert_eq!(lock.with(|value| *value), (4 * EACH, 4 * EACH));
}

#[test]
fn value_that_was_set_once_is_not_replaced() {
    let value = SetOnce::new();
    assert_eq!(value.get(), None);
    // SAFETY: this is the only thread.
    unsafe {
        value.set(1);
        value.set(2);
    }
    assert_eq!(value.get(), Some(1));
}
