//! Runs two items of work at a time: one single-threaded item would leave half of the machine idle.

use std::sync::atomic::{AtomicUsize, Ordering};

use host::{Failure, Stop};

/// The number of items at a time: the processors of the smallest machine that tests run on.
pub(super) const LANES: usize = 2;

/// Runs `work` on each of `items`, started in their order, and returns the results in that order.
/// After a stop request, no more items are started.
///
/// Errors: the first error of `work`.
pub(super) fn work_through<T: Sync, R: Send>(
    items: &[T],
    stop: &Stop,
    work: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let lane = || {
        let mut done = Vec::new();
        while !stop.is_requested() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            done.push((index, work(item)?));
        }
        Ok(done)
    };
    let lanes = std::thread::scope(|scope| {
        let lanes = [(); LANES].map(|()| scope.spawn(lane));
        lanes.map(|lane| lane.join().unwrap_or_else(|_| Err(Failure::broke("a test panicked"))))
    });
    let mut done: Vec<(usize, R)> =
        lanes.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn work_runs_two_at_a_time_and_results_keep_their_order() {
        // An item passes the barrier only together with another item.
        let pairs = Barrier::new(LANES);
        let double = |item: &usize| {
            pairs.wait();
            Ok(item * 2)
        };
        let items: Vec<usize> = (0..2 * LANES).collect();
        assert_eq!(work_through(&items, &Stop::default(), double).unwrap(), [0, 2, 4, 6]);
    }

    #[test]
    fn failure_is_returned_and_nothing_starts_after_a_stop() {
        let fails = |item: &usize| if *item == 3 { Err(Failure::broke("three")) } else { Ok(()) };
        let failure = work_through(&[1, 2, 3, 4], &Stop::default(), fails).err().unwrap();
        assert_eq!(failure.to_string(), "three");
        assert_eq!(work_through(&[1], &Stop::requested(), fails).unwrap(), []);
    }
}
